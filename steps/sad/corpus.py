"""The corpora of egs/fearless: which streams train, which tune, which are scored."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import clear, load_cuts
from pyspeech.errors import DownloadError, UserError

if TYPE_CHECKING:
    from pyspeech.engine.parts import Parts
    from pyspeech.engine.run import Experiment

ENOUGH_TRAINING_SECONDS = 2 * 3600  # less than this of a corpus's own: simulated streams are added


def prepare(exp: Experiment, conf: Any) -> None:
    """Corpus to Lhotse manifests and reference labels."""
    out = exp.dir / "corpus"
    real = prepare_real(conf, out, exp.log, exp.parts)
    prepare_fearless(conf, out, exp.log, exp.parts)
    add_real(out, real)


def prepare_real(conf: Any, out: Path, log: logging.Logger, parts: Parts | None = None) -> list[str]:
    """Read the folders `conf.real` of recordings with labels; return the sets that they are for, for `add_real`.

    Comes before the corpus is made, which takes longer: faults in a user's folders are told at once.
    """
    from local import labelled_speech

    for manifest in (out / "real").glob("*.jsonl.gz"):  # of other folders, in an earlier preparation
        name = manifest.name.removesuffix(".jsonl.gz")
        clear(out / "real", [name])
        if name.startswith("eval_"):
            clear(out, [name], f"reference/{name}", f"turns/{name}")
    if not conf.real:
        return []
    skip_bad = getattr(conf, "skip_bad", False)
    return labelled_speech.prepare(conf.real, conf.real_as, out / "real", log, skip_bad=skip_bad, parts=parts)


def add_real(out: Path, names: Iterable[str]) -> None:
    """Add the recordings of `prepare_real` to these sets of a corpus."""
    for name in names:
        _join(out, out / "real", name)


def prepare_fearless(conf: Any, out: Path, log: logging.Logger, parts: Parts | None = None) -> None:
    """Write `out`/{train,dev,...}.jsonl.gz and `out`/reference/<set>/*.txt for the corpus that `conf` names."""
    from local.fearless import ami_clips, fearless_steps, mini

    if conf.corpus == "mini":
        log.info("simulated corpus: %s minutes of train, dev and eval streams, and the AMI clips", conf.minutes)
        mini.prepare(out, log, minutes=conf.minutes, parts=parts)
        ami_clips.prepare(out, log)
        return
    fearless_steps.prepare(conf.corpus, out, log, skip_bad=conf.skip_bad, parts=parts)
    seconds = {name: _seconds(out, name) for name in ("train", "dev")}
    short = seconds["train"] < ENOUGH_TRAINING_SECONDS
    if conf.simulated == "always" or conf.simulated == "auto" and (short or not seconds["dev"]):
        log.info(
            "the corpus has %.1f min of train and %.1f min of dev streams: simulated ones are added "
            "(simulated=never leaves them out)",
            seconds["train"] / 60,
            seconds["dev"] / 60,
        )
        added = _simulate(conf, out / "simulated", log, parts)
        for name in ["train"] * added + ["dev"] * (added and not seconds["dev"]):
            _join(out, out / "simulated", name)
    for name in ("train", "dev"):
        if not _seconds(out, name):
            raise UserError(f"corpus={conf.corpus}: no labelled {name} streams; simulated=always makes some")


def _simulate(conf, out, log, parts):
    """Make simulated streams; False where what they are made of cannot be downloaded, if they were not asked for."""
    from local.fearless import mini

    try:
        mini.prepare(out, log, minutes=conf.minutes, parts=parts)
        return True
    except DownloadError as error:
        if conf.simulated == "always":
            raise
        log.warning("going on without simulated streams: %s", error)
        return False


def scored_sets(corpus: Path | str) -> list[str]:
    """Names of the sets that detectors run on: dev first, then eval sets."""
    names = sorted(path.name.split(".")[0] for path in Path(corpus).glob("*.jsonl.gz"))
    return ["dev"] + [name for name in names if name.startswith("eval")]


def _seconds(out, name):
    return sum(cut.duration for cut in load_cuts(out, name))


def _join(out, other, name):
    """Join the streams of a set in the folder `other` to the corpus's own; their labels go along."""
    import shutil

    from lhotse import CutSet

    from pyspeech.files import atomic_path

    own = load_cuts(out, name)
    added = load_cuts(other, name)
    with atomic_path(out / f"{name}.jsonl.gz") as temporary:
        CutSet.from_cuts([*own, *added]).to_file(temporary)
    for labels in other.glob(f"*/{name}/*.txt"):
        kind = labels.parent.parent.name
        if kind == "reference" or (out / kind).is_dir():
            (out / kind / name).mkdir(parents=True, exist_ok=True)
            shutil.copy2(labels, out / kind / name)
