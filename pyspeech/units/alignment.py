"""Forced alignment of phones by monophone hidden Markov models, trained from a flat start: times for ABX items.

The textbook recipe (Young et al., The HTK Book, sections 3.2 and 8): each phone three states from left to right with
mixtures of diagonal Gaussians, silence three more, which may be skipped, at the ends and between words. The first
alignment is even; then Viterbi alignment and re-estimation take turns, and the mixtures grow. Many utterances go
through the Viterbi recursion side by side, a frame of all of them at a time.

Speech is given as features (T, D), frames 10 ms apart, normalised by voice, the first coefficient growing with
loudness (MFCC with c0 first); a transcript as words, each a list of phones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Words = Sequence[Sequence[str]]  # of an utterance, each a list of phones
Segment = tuple[str, int, int]  # phone, first frame, frame after the last
SILENCE = "sil"
STATES = 3  # of a phone; no segment is shorter
SCHEDULE = (1,) * 6 + (2,) * 3 + (4,) * 4  # Gaussians a state in each pass
VARIANCE_FLOOR = 0.05  # of the variance of all frames
FEWEST = 8  # frames a Gaussian that may be split
QUIET, PAUSE = 0.25, 10  # of the way from the quiet to the loud frames, and frames: what is silence at first
CELLS = 8_000_000  # frames x states of the utterances that are aligned side by side, a byte each
_STEPS = (0, 1, STATES + 1)  # what the three moves advance by: stay, next state, next but a silence


@dataclass
class Aligner:
    """Trained models. Phone p of `phones` has the states STATES * p and following; phone 0 is silence."""

    phones: list
    means: np.ndarray  # (states, mixtures, D)
    variances: np.ndarray  # the same
    weights: np.ndarray  # (states, mixtures), a sum of 1 in each row
    stay: np.ndarray  # (states,) probability of staying one more frame
    floor: np.ndarray  # (D,) smallest variances

    @classmethod
    def train(
        cls,
        features: Sequence[np.ndarray],
        transcripts: Sequence[Words],
        schedule: Sequence[int] = SCHEDULE,
        progress: Callable[[str], object] | None = None,
    ) -> Aligner:
        """Models of all phones in `transcripts`, from a flat start.

        features: list of (T, D) arrays; transcripts: list of lists of words, a word being a list of phones. schedule:
        Gaussians a state in each pass, each at most twice the one before. progress: called with a line a pass.
        Utterances with fewer frames than states have no share; ValueError where none is left.
        """
        phones = [SILENCE, *sorted({phone for words in transcripts for word in words for phone in word})]
        graphs = [build_graph(words, phones) for words in transcripts]
        usable = [index for index, graph in enumerate(graphs) if graph.fewest_frames <= len(features[index])]
        if not usable:
            raise ValueError("no utterance that is as long as its phones need")
        frames = np.concatenate([np.asarray(features[index], np.float32) for index in usable])
        graphs = [graphs[index] for index in usable]
        lengths = np.array([len(features[index]) for index in usable])
        aligner = cls._flat(phones, frames)
        starts = np.cumsum(lengths) - lengths
        states = np.concatenate(
            [
                _even_states(frames[start : start + length], graph)
                for start, length, graph in zip(starts, lengths, graphs, strict=True)
            ]
        )
        aligner._estimate(frames, states, np.arange(len(states)) % 2 == 0)  # times unknown: half stay, half leave
        for number, mixtures in enumerate(schedule):
            if mixtures > aligner.weights.shape[1]:
                aligner._split()
            paths, score = aligner._align(frames, lengths, graphs)
            states = np.concatenate([graph.ids[path] for graph, path in zip(graphs, paths, strict=True)])
            left = np.concatenate([np.diff(path, append=-1) != 0 for path in paths])
            aligner._estimate(frames, states, left)
            if progress:
                progress(
                    f"alignment, pass {number + 1} of {len(schedule)}: {mixtures} Gaussians a state, "
                    f"log-likelihood {score / len(frames):.3f} a frame"
                )
        return aligner

    def align(self, features: np.ndarray, words: Words) -> list[Segment]:
        """[(phone, first frame, frame after the last), ...] of one utterance, from frame 0 to T without gaps.

        Silence that is there is an entry named SILENCE. ValueError where there are fewer frames than states, and for a
        phone without a model.
        """
        [segments] = self.align_all([features], [words])
        if segments is None:
            raise ValueError(
                f"{len(features)} frames; {sum(map(len, words))} phones need at least {STATES * max(1, sum(map(len, words)))}"
            )
        return segments

    def align_all(self, features: Sequence[np.ndarray], transcripts: Sequence[Words]) -> list[list[Segment] | None]:
        """`align` for many: list of segment lists, None for an utterance with fewer frames than its states."""
        graphs = [build_graph(words, self.phones) for words in transcripts]
        usable = [index for index, graph in enumerate(graphs) if graph.fewest_frames <= len(features[index])]
        found: list[list[Segment] | None] = [None] * len(graphs)
        if usable:
            paths, _ = self._align(
                np.concatenate([np.asarray(features[index], np.float32) for index in usable]),
                np.array([len(features[index]) for index in usable]),
                [graphs[index] for index in usable],
            )
            for index, path in zip(usable, paths, strict=True):
                found[index] = self._segments(graphs[index], path)
        return found

    def log_likelihoods(self, frames: np.ndarray) -> np.ndarray:
        """frames (N, D) -> natural logarithm of the density of each state (N, states), float32."""
        num_mixtures = self.means.shape[1]
        inverse = 1.0 / self.variances
        constant = np.log(self.weights) - 0.5 * (np.log(2 * np.pi * self.variances) + self.means**2 * inverse).sum(2)
        matrix = np.concatenate([self.means * inverse, -0.5 * inverse], axis=2).astype(np.float32)
        both = np.concatenate([frames, np.square(frames)], axis=1)
        scores = [both @ matrix[:, k].T + constant[:, k].astype(np.float32) for k in range(num_mixtures)]
        if num_mixtures == 1:
            return scores[0]
        best = functools.reduce(np.maximum, scores)
        return best + np.log(sum(np.exp(score - best) for score in scores))

    @classmethod
    def _flat(cls, phones, frames):
        """Every state the Gaussian of all frames."""
        shape = (STATES * len(phones), 1, frames.shape[1])
        variance = np.maximum(frames.var(axis=0, dtype=np.float64), 1e-6)
        return cls(
            phones,
            np.broadcast_to(frames.mean(axis=0, dtype=np.float64), shape).copy(),
            np.broadcast_to(variance, shape).copy(),
            np.ones(shape[:2]),
            np.full(shape[0], 0.5),
            VARIANCE_FLOOR * variance,
        )

    def _split(self):
        """Twice the Gaussians: each one's halves stand a fifth of its deviation to both sides of it."""
        shift = 0.2 * np.sqrt(self.variances)
        self.means = np.concatenate([self.means - shift, self.means + shift], axis=1)
        self.variances = np.concatenate([self.variances, self.variances], axis=1)
        self.weights = np.concatenate([self.weights, self.weights], axis=1) / 2.0

    def _estimate(self, frames, states, left):
        """One step of expectation maximisation in each state, given the state of each frame (N,).

        left: whether the next frame is in another place of the transcript (N,).
        """
        order = np.argsort(states, kind="stable")
        bounds = np.searchsorted(states[order], np.arange(len(self.means) + 1))
        for state, (first, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=False)):
            if end == first:
                continue
            rows = order[first:end]
            self.stay[state] = np.clip(1.0 - left[rows].mean(), 0.05, 0.98)
            self._estimate_state(state, frames[rows].astype(np.float64))

    def _estimate_state(self, state, x):
        means, variances, weights = self.means[state], self.variances[state], self.weights[state]
        squares = np.square(x)
        log = (
            np.log(weights)
            - 0.5 * (np.log(variances) + means**2 / variances).sum(axis=1)
            + x @ (means / variances).T
            - 0.5 * squares @ (1.0 / variances).T
        )
        share = np.exp(log - log.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        counts = share.sum(axis=0)
        enough = counts >= min(FEWEST, len(x) / len(weights))
        new = share.T @ x / np.maximum(counts, 1e-9)[:, None]
        spread = share.T @ squares / np.maximum(counts, 1e-9)[:, None] - new**2
        means[enough] = new[enough]
        variances[enough] = np.maximum(spread[enough], self.floor)
        weights[:] = (counts + 1e-3 * len(x)) / (counts + 1e-3 * len(x)).sum()

    def _align(self, frames, lengths, graphs):
        """(places in its graph of each utterance's frames [(T,), ...], sum of their scores)."""
        starts = np.cumsum(lengths) - lengths
        paths: list = [None] * len(graphs)
        total = 0.0
        for batch in _batches(lengths, [len(graph.ids) for graph in graphs]):
            emissions = np.zeros((lengths[batch].max(), len(batch), len(self.means)), np.float32)
            for column, index in enumerate(batch):
                rows = slice(starts[index], starts[index] + lengths[index])
                emissions[: lengths[index], column] = self.log_likelihoods(frames[rows])
            found, scores = viterbi(emissions, lengths[batch], [graphs[index] for index in batch], self.stay)
            total += scores.sum()
            for index, path in zip(batch, found, strict=True):
                paths[index] = path
        return paths, total

    def _segments(self, graph, path):
        edges = np.flatnonzero(np.diff(graph.owner[path], prepend=-1, append=-1))
        return [
            (self.phones[graph.ids[path[first]] // STATES], int(first), int(end))
            for first, end in zip(edges[:-1], edges[1:], strict=False)
        ]


@dataclass(frozen=True)
class Graph:
    """The states that an utterance may go through, in order: silence, word, silence, word, ..., silence."""

    ids: np.ndarray  # (S,) state of each place
    owner: np.ndarray  # (S,) which segment the place belongs to
    skip: np.ndarray  # (S,) bool, the place may follow the one STATES + 1 before it

    @property
    def fewest_frames(self) -> int:
        silences = self.ids < STATES
        return max(STATES, len(self.ids) - int(silences.sum()))


def build_graph(words: Sequence[Sequence[str]], phones: Sequence[str]) -> Graph:
    """The Graph of an utterance; words: lists of phones. ValueError for a phone that is not one of `phones`."""
    numbers = {phone: number for number, phone in enumerate(phones)}
    for word in words:
        for phone in word:
            if phone not in numbers:
                raise ValueError(f"no model of the phone {phone!r}; expected one of {' '.join(phones[1:])}")
    sequence, skipping = [0], [False]
    for word in words:
        if not word:
            continue
        sequence += [*(numbers[phone] for phone in word), 0]
        skipping += [True, *[False] * len(word)]
    skip = np.zeros(STATES * len(sequence), bool)
    skip[::STATES] = skipping
    ids = (STATES * np.array(sequence)[:, None] + np.arange(STATES)).reshape(-1)
    return Graph(ids, np.repeat(np.arange(len(sequence)), STATES), skip)


def _even_states(frames, graph):
    """First guess of each frame's state: long quiet stretches are silence, the phones share the rest evenly."""
    spoken = graph.ids[graph.ids >= STATES]
    low, high = np.quantile(frames[:, 0], [0.05, 0.95])
    silent = frames[:, 0] < low + QUIET * (high - low)
    edges = np.flatnonzero(np.diff(silent, prepend=False, append=False)).reshape(-1, 2)
    for first, end in edges:
        if end - first < PAUSE:
            silent[first:end] = False
    if not len(spoken):
        silent[:] = True
    elif len(frames) - silent.sum() < len(spoken):
        silent[:] = False
    states = np.empty(len(frames), np.int64)
    states[silent] = np.arange(silent.sum()) % STATES
    states[~silent] = _spread(spoken, len(frames) - silent.sum())
    return states


def _spread(states, count):
    return states[np.arange(count) * len(states) // max(count, 1)]


def _batches(lengths, sizes):
    """Utterances of similar length together, as many as memory allows: lists of indexes."""
    batch, widest = [], 0
    for index in sorted(range(len(lengths)), key=lambda index: (lengths[index], sizes[index])):
        widest = max(widest, sizes[index])
        if batch and (len(batch) + 1) * lengths[index] * widest > CELLS:
            yield np.array(batch)
            batch, widest = [], sizes[index]
        batch.append(index)
    yield np.array(batch)


def viterbi(
    emissions: np.ndarray, lengths: np.ndarray, graphs: Sequence[Graph], stay: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The best path of B utterances through their graphs.

    emissions: (T, B, states) log-likelihoods, lengths: (B,) frames of each; stay: (states,) probabilities. The end of
    the last word or of the silence behind it is the end of a path. Returns ([(length,) places, ...], (B,) scores); an
    utterance that is too short for its graph scores -inf and has a path that means nothing.
    """
    num_frames, batch, num_states = emissions.shape
    sizes = np.array([len(graph.ids) for graph in graphs])
    width = sizes.max()
    ids, skip = np.zeros((batch, width), np.int64), np.full((batch, width), -np.inf)
    for row, graph in enumerate(graphs):
        ids[row, : sizes[row]] = graph.ids
        skip[row, : sizes[row]][graph.skip] = 0.0
    kept, left = np.log(stay)[ids], np.log1p(-stay)[ids]
    jumped = left[:, : -_STEPS[2]] + skip[:, _STEPS[2] :]
    flat = ids + num_states * np.arange(batch)[:, None]
    scores = np.full((batch, width), -np.inf)
    scores[:, 0] = 0.0
    if width > STATES:
        scores[:, STATES] = skip[:, STATES]
    scores += emissions[0].reshape(-1).take(flat)
    final = scores.copy()
    moves = np.zeros((num_frames, batch, width), np.int8)
    for t in range(1, num_frames):
        stepped, skipped = scores[:, :-1] + left[:, :-1], scores[:, : -_STEPS[2]] + jumped
        scores = scores + kept
        better = stepped > scores[:, 1:]
        moves[t, :, 1:] = better
        np.maximum(stepped, scores[:, 1:], out=scores[:, 1:])
        better = skipped > scores[:, _STEPS[2] :]
        moves[t, :, _STEPS[2] :][better] = 2
        np.maximum(skipped, scores[:, _STEPS[2] :], out=scores[:, _STEPS[2] :])
        scores += emissions[t].reshape(-1).take(flat)
        running = lengths > t
        final[running] = scores[running]
    rows = np.arange(batch)
    ends = np.stack([sizes - 1, np.maximum(sizes - 1 - STATES, 0)])
    ends[1][sizes == STATES] = STATES - 1  # no word: all is silence
    choice = final[rows, ends].argmax(axis=0)
    place = ends[choice, rows]
    best = final[rows, place]
    return _trace_back(moves, lengths, place), best


def _trace_back(moves, lengths, place):
    num_frames, batch, _ = moves.shape
    rows, steps = np.arange(batch), np.array(_STEPS)
    paths = np.zeros((num_frames, batch), np.int64)
    for t in range(num_frames - 1, -1, -1):
        paths[t] = place
        place = np.where(t < lengths, np.maximum(place - steps[moves[t, rows, place]], 0), place)
    return [paths[:length, row].copy() for row, length in enumerate(lengths)]
