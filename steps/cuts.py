"""The manifests of a corpus as the stage `prepare` leaves them: <set>.jsonl.gz, Lhotse cuts."""

from pathlib import Path


def load_cuts(corpus, name):
    """The cuts of a set as a list, empty where the corpus lacks the set."""
    from lhotse import CutSet

    path = Path(corpus) / f"{name}.jsonl.gz"
    return list(CutSet.from_file(path)) if path.exists() else []
