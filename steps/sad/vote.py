"""Majority voting of networks (Heitkaemper et al. 2020, section 4.3), with thresholds for what is voted on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from steps.sad.detect import Voter, labels_of_dev, read_scores

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut.data import DataCut

    from pyspeech.engine.run import Experiment
    from pyspeech.features.config import StftConfig

STEPS = 41  # thresholds that are tried for a network
ROUNDS = 4  # over the networks, at most


def tune_vote(exp: Experiment, voters: list[Voter], stft: StftConfig, collar: float) -> tuple[list[Voter], float]:
    """The voters with thresholds of a low DCF of their majority on dev, and that DCF, a fraction.

    voters: (folder of the scores, threshold, smoothing) of each network, tuned by itself. A threshold need not be where its
    network is best alone, for more than half have to agree. The best of several descents: from these thresholds, and from
    each network alone, so that the majority is no worse on dev than any of them. stft: StftConfig, whose frames the scores
    are of; collar: seconds.
    """
    starts, decisions = [voters, *(alone(voters, index) for index in range(len(voters)))], Decisions()

    def best_from(start):
        found, dcf = descend(exp, start, stft, collar, decisions)
        return [threshold for _, threshold, _ in found], dcf

    found = in_parts(exp.parts, f"votes {collar:g}", best_from, {str(number): start for number, start in enumerate(starts)})
    thresholds, dcf = min(found.values(), key=lambda one: one[1])
    return [(scores, threshold, smoothing) for (scores, _, smoothing), threshold in zip(voters, thresholds, strict=True)], dcf


def alone(voters: list[Voter], index: int) -> list[Voter]:
    """Voters whose majority is what one of them says: of the others, every second always says speech, and the rest never do."""
    others = [
        (scores, float(number % 2), smoothing)
        for number, (scores, _, smoothing) in enumerate(voters[:index] + voters[index + 1 :])
    ]
    return [*others[:index], voters[index], *others[index:]]


def descend(
    exp: Experiment, voters: list[Voter], stft: StftConfig, collar: float, decisions: Decisions
) -> tuple[list[Voter], float]:
    """Set the threshold of one voter after the other to the best on dev beside the others', until none changes. decisions:
    a Decisions."""
    import numpy as np

    from pyspeech.sad.thresholds import sweep_decisions

    dev, voters = load_cuts(exp.dir / "corpus", "dev"), list(voters)
    for _ in range(ROUNDS):
        before = list(voters)
        for index, (scores, threshold, smoothing) in enumerate(voters):
            others = voters[:index] + voters[index + 1 :]
            tried = np.append(threshold, np.linspace(0, 1, STEPS))  # the present one first: of equals, it stays
            voted = (votes(decisions, cut, voters[index], others, tried) for cut in dev)
            (found,) = sweep_decisions(voted, tried, *labels_of_dev(exp, dev), [collar], stft.frame_shift, stft.frame_offset)
            voters[index] = (scores, float(tried[found.dcf.argmin()]), smoothing)
        if voters == before:
            break
    return voters, found.best_dcf


def votes(
    decisions: Decisions, cut: DataCut, voter: Voter, others: Sequence[Voter], thresholds: Iterable[float]
) -> Iterator[np.ndarray]:
    """Yield the majority for a stream of dev at each threshold of one voter, those of the others as they are: bool (T,)."""
    from pyspeech.sad.smoothing import majority

    fixed = [
        decided for scores, threshold, smoothing in others for decided in decisions.at([threshold], cut, scores, smoothing)
    ]
    scores, _, smoothing = voter
    for decided in decisions.at(thresholds, cut, scores, smoothing):
        yield majority([*fixed, decided])


class Decisions:
    """Decisions of networks on streams of dev at any threshold: each is computed once, and kept as bits."""

    def __init__(self) -> None:
        self.bits = {}

    def at(self, thresholds: Iterable[float], cut: DataCut, scores: Path, smoothing: str) -> Iterator[np.ndarray]:
        """Yield the decisions, bool (T,), of a network at each of the thresholds. scores: the folder of its scores."""
        import numpy as np

        from pyspeech.sad.smoothing import decide_thresholds

        kept = self.bits.setdefault((cut.recording_id, scores, smoothing), {})
        thresholds = [float(threshold) for threshold in thresholds]
        missing = [threshold for threshold in thresholds if threshold not in kept]
        if missing:
            for threshold, decided in zip(
                missing, decide_thresholds(read_scores(scores / "dev", cut), missing, smoothing), strict=True
            ):
                kept[threshold] = len(decided), np.packbits(decided)
        for threshold in thresholds:
            count, bits = kept[threshold]
            yield np.unpackbits(bits, count=count).view(bool)
