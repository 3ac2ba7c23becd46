"""Viterbi smoothing of frame scores with a two-class hidden Markov model.

Implements the decoder at the end of section 2 of Heitkaemper, Schmalenstroeer and Haeb-Umbach, "Statistical and neural
network based speech activity detection in non-stationary acoustic environments" (Interspeech 2020): 5 consecutive noise
states, then 5 consecutive speech states, in a ring; each state is kept with probability 0.9 and left for the next one
with probability 0.1. So every stretch of noise or speech lasts at least 5 frames, and a short burst must earn its two
changes of class. All states of a class share its emission, so only the log-likelihood ratio of the classes matters.

`viterbi` works on all chunks of a recording at once, `viterbi_thresholds` also on those of several thresholds.
Both equal the frame-by-frame form exactly, which tests compare them with:
- Scores are rounded to multiples of 2^-20, so every sum is exact in float64, however the recording is cut.
- Forward: each chunk starts from a guess of its initial score vector; afterwards a chunk whose guess differs from the
  vector its predecessor ended with starts anew from that vector, until none differs. The first chunk's start is the true
  one, so by induction all are. Survivors merge within some dozen frames, so two or three rounds are the rule. Not where
  nothing happens: a chunk all of noise passes on what it started with, so those after it start anew at once.
- Backward, the same from the end: each chunk is traced back from a guess of its last state, and again where that is not
  the state that its successor was entered from. The last chunk's last state is the true one.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

CHUNK = 250  # frames: short enough for many chunks side by side, long enough for survivors to merge within one
SIDE_BY_SIDE = 8000  # chunks decoded at a time, at least those of one recording; takes some 60 MB
SLAB = 1000  # chunks whose scores stay in the processor's cache
RESOLUTION = 2.0**-20
LARGEST_RATIO = 1e4  # nats; keeps the sums of a chunk far below 2^53 * RESOLUTION, and replaces an infinite ratio


@dataclass
class HmmConfig:
    states: int = 5  # per class
    stay: float = 0.9  # probability of staying in a state; 1 - stay is that of moving to the next one

    def __post_init__(self) -> None:
        if self.states < 1 or not 0.0 < self.stay < 1.0:
            raise ValueError(f"expected states >= 1 and 0 < stay < 1, found states={self.states}, stay={self.stay}")


def viterbi(llr: ArrayLike, config: HmmConfig | None = None) -> np.ndarray:
    """The most probable class of every frame.

    llr: (T,) log-likelihood ratio log p(x_t | speech) - log p(x_t | noise) per frame, natural logarithm; infinite values
        are allowed, NaN is a ValueError. For a network: its log posterior odds (less the log prior odds, if wanted).
    Returns bool (T,), True for speech. Every state is equally probable before the first frame.
    """
    return _decode(_checked(llr)[None], config or HmmConfig())[0]


def viterbi_thresholds(llr: ArrayLike, thresholds: ArrayLike, config: HmmConfig | None = None) -> Iterator[np.ndarray]:
    """Yield `viterbi(llr - threshold)` for each of the thresholds: bool (T,) each.

    llr: (T,) as for `viterbi`. thresholds: (n,) natural logarithm, in any order. Several are decoded at once, but no
    more than SIDE_BY_SIDE chunks, so memory does not grow with n.
    """
    llr = np.asarray(llr, np.float64)
    return viterbi_each((llr - threshold for threshold in np.asarray(thresholds, np.float64)), config)


def viterbi_each(sequences: Iterable[ArrayLike], config: HmmConfig | None = None) -> Iterator[np.ndarray]:
    """Yield `viterbi` of each of the sequences (T,), all of one length: several are decoded at once, as above."""
    config, sequences = config or HmmConfig(), iter(sequences)
    for first in sequences:
        checked = _checked(first)
        at_once = max(1, SIDE_BY_SIDE // max(1, -(-len(checked) // CHUNK)))
        rows = [checked, *map(_checked, itertools.islice(sequences, at_once - 1))]
        yield from _decode(np.stack(rows), config)


def _step(scores, ratio, stay, move, states):
    """One frame: scores (S,) -> scores (S,), the largest 0, and which states were entered by a move, bool (S,)."""
    arriving = np.roll(scores, 1) + move
    scores = scores + stay
    moved = arriving > scores
    scores = np.maximum(arriving, scores)
    scores[states:] += ratio
    return scores - scores.max(), moved


class OnlineViterbi:
    """`viterbi` while the frames come in: a frame is decided once the best paths into all states agree on its class.

    They do so within some dozen frames, unless the ratios stay near 0; there is no bound. What is decided is never revised:
    joined, the decisions are those of `viterbi`.
    """

    def __init__(self, config: HmmConfig | None = None) -> None:
        self.config = config or HmmConfig()
        self._scores = np.zeros(2 * self.config.states)
        self._moved = np.zeros((0, 2 * self.config.states), bool)  # of the frames that are not decided

    @property
    def pending(self) -> int:
        """Frames that are not decided yet."""
        return len(self._moved)

    def add(self, llr: ArrayLike) -> np.ndarray:
        """Decisions, bool (n,), of the next frames, which further ratios (T,), as of `viterbi`, leave no choice for."""
        self._forward(_checked(llr))
        classes = self._trace(np.arange(len(self._scores)))
        open_frames = np.flatnonzero((classes != classes[:, :1]).any(1))
        decided = open_frames[0] if len(open_frames) else len(classes)
        self._moved = self._moved[decided:]
        return classes[:decided, 0]

    def finish(self) -> np.ndarray:
        """Decisions of the frames that are left, bool (n,), by the best of all paths."""
        classes = self._trace(np.array([self._scores.argmax()]))
        self.__init__(self.config)
        return classes[:, 0]

    def _forward(self, llr):
        stay, move = _transition_scores(self.config)
        scores, moved = self._scores, np.zeros((len(llr), len(self._scores)), bool)
        for t, ratio in enumerate(llr):
            scores, moved[t] = _step(scores, ratio, stay, move, self.config.states)
        self._scores, self._moved = scores, np.concatenate([self._moved, moved])

    def _trace(self, states):
        """The class of each undecided frame on the paths into `states` (n,): bool (T, n)."""
        classes = np.zeros((len(self._moved), len(states)), bool)
        for t in range(len(self._moved) - 1, -1, -1):
            classes[t] = states >= self.config.states
            states = (states - self._moved[t, states]) % len(self._scores)
        return classes


def _checked(llr: ArrayLike) -> np.ndarray:
    llr = np.asarray(llr, np.float64)
    if llr.ndim != 1:
        raise ValueError(f"expected one ratio per frame, (T,), found an array of shape {llr.shape}")
    if np.isnan(llr).any():
        raise ValueError(f"the log-likelihood ratio is NaN in {int(np.isnan(llr).sum())} of {len(llr)} frames")
    return _rounded(np.clip(llr, -LARGEST_RATIO, LARGEST_RATIO))


def _rounded(x):
    return np.round(x / RESOLUTION) * RESOLUTION


def _transition_scores(config):
    return _rounded(np.log(config.stay)), _rounded(np.log1p(-config.stay))


def _decode(llr, config):
    """`viterbi` for R sequences of equal length: checked ratios (R, T) -> bool (R, T)."""
    num_rows, num_frames = llr.shape
    if num_frames == 0:
        return np.zeros(llr.shape, bool)
    row_chunks = -(-num_frames // CHUNK)
    padded = np.zeros((num_rows, row_chunks * CHUNK))
    padded[:, :num_frames] = llr
    chunks = np.ascontiguousarray(padded.reshape(-1, CHUNK).T)  # (CHUNK, K): a row is one step of all chunks
    is_first = np.arange(num_rows * row_chunks) % row_chunks == 0
    is_last = np.roll(is_first, -1)

    start, end = _find_starts(chunks, is_first, config)
    moved = np.empty((CHUNK, 2 * config.states, len(is_first)), bool)
    _forward(chunks, start, config, moved)
    # The padded frames come after the last real one and its scores are needed before them.
    rest = num_frames - (row_chunks - 1) * CHUNK
    end[:, is_last] = _forward(chunks[:rest, is_last], start[:, is_last], config)
    moved[rest:, :, is_last] = False  # padding: the state before it is the state after it
    decisions = _trace_back_all(moved, end.argmax(0), is_first, config)
    return decisions.T.reshape(num_rows, -1)[:, :num_frames]


def _find_starts(chunks, is_first, config):
    """Scores before and after each chunk (CHUNK, K), both (S, K); a chain of chunks begins where is_first (K,)."""
    num_chunks = chunks.shape[1]
    start = np.zeros((2 * config.states, num_chunks))
    end = np.zeros_like(start)
    pending = np.arange(num_chunks)
    while len(pending):
        end[:, pending] = _forward(chunks[:, pending], start[:, pending], config)
        expected = np.where(is_first, 0.0, np.roll(end, 1, axis=1))
        changed = (expected != start).any(0)
        kept = (end == start).reshape(2, config.states, -1).all(1)  # by a chunk all of one class; the other's follow its ratios
        source = _passed_on(changed, kept.any(0) & ~is_first)
        news = (expected[:, source] != start).reshape(2, config.states, -1).any(1)
        pending = np.flatnonzero(changed | (source >= 0) & (kept & news).any(0))
        start[:, pending] = expected[:, source[pending]]
    return start, end


def _passed_on(changed, keeps):
    """For each chunk, the nearest one at or before it that `changed`, if all after that one up to it are such as `keeps`
    (what comes in comes out, so far), otherwise -1: both bool (K,) -> int (K,)."""
    place = np.arange(len(changed))
    nearest = np.maximum.accumulate(np.where(changed | ~keeps, place, -1))
    return np.where((nearest >= 0) & changed[nearest], nearest, -1)


def _forward(llr, start, config, moved=None):
    """All chunks one step at a time: llr (steps, K), scores (S, K) -> end scores (S, K), the largest 0.

    moved: bool (steps, S, K), where the moves go, if wanted.
    """
    end = np.empty_like(start)
    for first in range(0, llr.shape[1], SLAB):
        slab = slice(first, first + SLAB)
        end[:, slab] = _forward_slab(llr[:, slab], start[:, slab], config, None if moved is None else moved[:, :, slab])
    return end


def _forward_slab(llr, scores, config, moved):
    stay, move = _transition_scores(config)
    scores = scores.copy()
    arriving = np.empty_like(scores)
    for t, ratios in enumerate(llr):
        np.add(scores[:-1], move, out=arriving[1:])
        np.add(scores[-1], move, out=arriving[0])
        scores += stay
        if moved is not None:
            np.greater(arriving, scores, out=moved[t])
        np.maximum(arriving, scores, out=scores)
        scores[config.states :] += ratios
    return scores - scores.max(0)


def _trace_back_all(moved, last, is_first, config):
    """Decisions (CHUNK, K) from the moves (CHUNK, S, K).

    last: a guess of each chunk's last state (K,), the true one at the end of a chain of chunks.
    """
    decisions = np.empty((len(moved), len(last)), bool)
    entered = np.empty_like(last)
    pending = np.arange(len(last))
    while len(pending):
        decisions[:, pending], entered[pending] = _trace_back(moved, pending, last[pending], config)
        is_last = np.roll(is_first, -1)
        expected = np.where(is_last, last, np.roll(entered, -1))
        source = _passed_on((expected != last)[::-1], ((entered == last) & ~is_last)[::-1])[::-1]
        pending = np.flatnonzero(source >= 0)
        last[pending] = expected[len(last) - 1 - source[pending]]
    return decisions


def _trace_back(moved, columns, state, config):
    """Decisions (CHUNK, n) of the chunks `columns` (n,) from their last states (n,), and the states they came from."""
    _, num_states, num_chunks = moved.shape
    decisions = np.empty((len(moved), len(columns)), bool)
    for t in range(len(moved) - 1, -1, -1):
        np.greater_equal(state, config.states, out=decisions[t])
        state = state - moved[t].ravel().take(state * num_chunks + columns)
        state[state < 0] += num_states
    return decisions, state
