"""Lhotse manifests of a speech activity detection corpus, one way for all corpora."""

import shutil
from pathlib import Path


def clear_split(out, split):
    """Remove what an earlier preparation with other settings left of a split: audio, label files, manifest."""
    for folder in ("audio", "reference"):
        shutil.rmtree(Path(out) / folder / split, ignore_errors=True)
    (Path(out) / f"{split}.jsonl.gz").unlink(missing_ok=True)


def write_split(out, split, streams):
    """Write `out/<split>.jsonl.gz`: a CutSet, one cut a stream, one supervision a speech segment.

    streams: list of (lhotse Recording, speech (n, 2) in seconds or None where there are no labels, end in seconds of
    what is labelled or None for all of it). The supervisions carry no text; a stream without labels has none and says
    `labelled: False` among its custom fields.
    """
    from lhotse import CutSet, MonoCut, SupervisionSegment

    cuts = []
    for recording, speech, end in streams:
        supervisions = [
            SupervisionSegment(
                id=f"{recording.id}-{index:05d}",
                recording_id=recording.id,
                channel=0,
                start=round(float(first), 6),
                duration=round(float(last - first), 6),
            )
            for index, (first, last) in enumerate(speech if speech is not None else ())
        ]
        duration = recording.duration if end is None else min(end, recording.duration)
        cuts.append(
            MonoCut(
                id=recording.id,
                start=0.0,
                duration=duration,
                channel=0,
                recording=recording,
                supervisions=supervisions,
                custom={"labelled": speech is not None},
            )
        )
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    temporary = out / f".partial.{split}.jsonl.gz"
    CutSet.from_cuts(cuts).to_file(temporary)
    temporary.replace(out / f"{split}.jsonl.gz")
