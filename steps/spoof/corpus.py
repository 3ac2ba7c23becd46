"""The corpora of egs/add2022: manifests of genuine and fake utterances, and what training mixes with them.

corpus/{train,dev,adapt,eval}.jsonl.gz   Lhotse cuts, see pyspeech/spoof/formats.py; sets that a corpus lacks are missing
tests/<name>/eval.jsonl.gz               the same of the corpora of the option `test`, which nothing is trained on
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.errors import UserError
from pyspeech.fetch.download import cache_dir
from pyspeech.spoof.scored_cuts import left

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment

LAYOUTS = ("add2022", "asvspoof2019", "asvspoof2021", "asvspoof5", "labelled")  # modules of local/add2022/
KINDS = ("auto", *LAYOUTS)
WAYS = ("auto", "page", "speaker", "family", "utterance")  # of local/add2022/draw_sets.py
SETS = ("train", "dev", "adapt", "eval")
NAMED = {  # what the names of folders begin with
    "asvspoof2019_la": "asvspoof2019",
    "asvspoof2019_pa": "asvspoof2019",
    "asvspoof2021_": "asvspoof2021",
    "asvspoof5": "asvspoof5",
}


def prepare(exp: Experiment, conf: Any) -> None:
    """Corpus to Lhotse manifests: train, dev, adapt and eval; check for shortcuts in the files."""
    out, log = exp.dir / "corpus", exp.log
    if conf.corpus == "mini":
        from local.add2022 import mini

        mini.prepare(out, log, scale=conf.scale, parts=exp.parts)
        return
    corpus = fetch_public(conf, log) if conf.corpus == "public" else conf.corpus
    kind = kind_of(corpus) if conf.kind == "auto" else conf.kind
    options = {"split_by": conf.split_by} if kind == "labelled" else {}
    prepare_layout(kind, corpus, out, log, skip_bad=conf.skip_bad, parts=exp.parts, **options)


def fetch_public(conf: Any, log: logging.Logger) -> Path:
    """Bring the public list's files into the cache; returns the list of those that are there."""
    from local.add2022 import public

    clones = None if conf.clones == "none" else Path(conf.clones)
    return public.fetch(cache_dir() / "public_fakes", log, clones, conf.skip_bad)


def prepare_tests(exp: Experiment, conf: Any) -> None:
    """Corpora of the option `test` to Lhotse manifests: their eval set, where they have several."""
    for name, corpus in conf.test.items():
        parts = exp.parts and exp.parts._replace(folder=exp.parts.folder / name)
        try:
            options = {"test": True, "skip_bad": conf.skip_bad, "parts": parts}
            prepare_layout(kind_of(corpus), corpus, exp.dir / "tests" / name, exp.log, **options)
        except UserError as error:
            raise UserError(f"test.{name}: {error}") from error


def prepare_layout(kind: str, corpus: Path | str, out: Path, log: logging.Logger, **options: Any) -> None:
    """Write the manifests of a corpus of a layout, one of LAYOUTS, into `out`. options: of its module's `prepare`."""
    log.info("corpus=%s: the layout of %s", corpus, kind)
    counts = importlib.import_module(f"local.add2022.{kind}").prepare(corpus, out, log, **options)
    log.info(
        "%s",
        "; ".join(
            f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in count.items()) for name, count in counts.items()
        ),
    )


def kind_of(corpus: Path | str) -> str:
    """The layout of a corpus, one of LAYOUTS: that of the ASVspoof challenge whose protocols are found from the folder, or that
    a name in it says; labelled for a list, a folder with lists, or folders named after labels; else add2022."""
    from local.add2022 import add2022, asvspoof2019, labelled

    folder = Path(corpus).resolve()
    if folder.is_file():
        return "labelled"
    try:
        asvspoof2019.find_root(folder)
        return "asvspoof2019"
    except UserError:
        pass  # or the protocols are missing, which is said later
    names = [folder.name, *(path.name for path in [*folder.iterdir(), *filter(Path.is_dir, folder.glob("*/*"))])]
    for start, kind in NAMED.items():
        if any(name.lower().startswith(start) for name in names):
            return kind
    if labelled.find_lists(folder) or labelled.has_folders(folder) and not any(add2022.find_files(folder)[1].values()):
        return "labelled"
    return "add2022"


def cuts_of_set(exp: Experiment, name: str) -> list[Any]:
    """The cuts of a set of the corpus, or of one of the option `test` by its name there; [] where it is missing."""
    return load_cuts(*place_of_set(exp, name))


def place_of_set(exp: Experiment, name: str) -> tuple[Path, str]:
    """(folder, name of the manifest in it) of such a set."""
    return (exp.dir / "corpus", name) if name in SETS else (exp.dir / "tests" / name, "eval")


def training_cuts(corpus: Path, sets: Iterable[str], without: str | None = None) -> list[Cut]:
    """The cuts of some sets, to train with, but for the fakes of some families of engines. UserError where labels are
    missing."""
    cuts = [cut for name in sets for cut in load_cuts(corpus, name)]
    unlabelled = [cut.id for cut in cuts if not cut.supervisions[0].text]
    if unlabelled:
        raise UserError(
            f"{len(unlabelled)} training utterances have no label, {unlabelled[0]} for one; give their label "
            "file its place in the corpus"
        )
    return left(cuts, without)
