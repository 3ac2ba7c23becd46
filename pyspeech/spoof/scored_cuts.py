"""Scores of labelled cuts by a detector of fake speech, computed in parts that survive a kill, and its calibration."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.engine.process import model_processes
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.spoof.config import CropConfig
    from pyspeech.spoof.networks import DetectorNetwork

AT_ONCE = 64  # utterances that are scored at a time: what a kill can lose
TOGETHER = "+"  # between families of engines that are left out of one training


def choosing_cuts(corpus: Path | str, name: str, without: str | None = None) -> list[Cut]:
    """Return the cuts of a set whose label is known; [] where they are not of both kinds and so can choose nothing. without:
    families of engines whose fakes are left out, joined by TOGETHER."""
    cuts = left([cut for cut in load_cuts(corpus, name) if cut.supervisions[0].text], without)
    return cuts if {cut.supervisions[0].text for cut in cuts} == {"genuine", "fake"} else []


def scorable_cuts(corpus: Path | str, name: str) -> list[Cut]:
    """Return the cuts of `choosing_cuts` for a tool that --corpus names the corpus of; UserError where there are none."""
    path = Path(corpus) / f"{name}.jsonl.gz"
    if not path.is_file():
        raise UserError(f"--corpus {corpus}: no {path.name} in it; expected that of an experiment, EXP/corpus")
    try:
        cuts = choosing_cuts(corpus, name)
    except (ValueError, KeyError, EOFError) as error:
        raise UserError(f"{path}: no manifest of cuts ({error}); run the stage prepare again") from error
    if not cuts:
        raise UserError(f"{path}: expected labelled utterances, genuine and fake")
    return cuts


def left(cuts: Iterable[Cut], without: str | None) -> list[Cut]:
    """Return those of labelled cuts that are no fakes of some families of engines; all of them where it is None."""
    from pyspeech.spoof.formats import family_of

    return [cut for cut in cuts if without is None or family_of(cut) not in without.split(TOGETHER)]


def chunks(cuts: Sequence[Cut], name: str) -> dict[str, Sequence[Cut]]:
    """Split work on cuts into parts, {name of the part: its cuts}, so small that a kill loses little."""
    return {f"{name} {first:07d}": cuts[first : first + AT_ONCE] for first in range(0, len(cuts), AT_ONCE)}


def score_cuts(model: DetectorNetwork, crop: CropConfig, cuts: Iterable[Cut]) -> list[float]:
    """Score cuts, before calibration."""
    from pyspeech.data.reader import UtteranceReader
    from pyspeech.spoof.detector import score_utterances

    read = UtteranceReader(model.sampling_rate)
    return score_utterances(model.eval(), crop, map(read, cuts)).tolist()


def save_calibrated(
    folder: Path,
    model: DetectorNetwork,
    crop: CropConfig,
    name: str,
    cuts: Sequence[Cut],
    log: logging.Logger,
    parts: Parts | None = None,
) -> None:
    """Write the detector with the calibration and the threshold that its scores of `cuts`, of the set `name`, give, and
    those scores, before calibration, to <name>.txt beside it; without cuts, the detector as it is."""
    from pyspeech.spoof.calibration import Calibration, fit_calibration
    from pyspeech.spoof.checkpoint import save_model
    from pyspeech.spoof.detector import Detector
    from pyspeech.spoof.formats import label_of, write_scores
    from pyspeech.spoof.scoring import equal_error_rate

    if not cuts:
        save_model(folder, Detector(model, crop, Calibration()))
        return
    work, chunked = partial(score_cuts, model, crop), chunks(cuts, f"{folder.name} {name}")
    found = in_parts(parts, "calibration", work, chunked, model_processes(), log=log)
    scores = sum(found.values(), [])
    write_scores(folder / f"{name}.txt", {cut.id: score for cut, score in zip(cuts, scores, strict=True)})
    genuine, fake = (
        [score for score, cut in zip(scores, cuts, strict=True) if label_of(cut).genuine is kind] for kind in (True, False)
    )
    save_model(folder, Detector(model, crop, fit_calibration(genuine, fake), equal_error_rate(genuine, fake)[1]))
