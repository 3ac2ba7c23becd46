"""ABX discriminability of phones in features, as ZeroSpeech scores it (Dunbar et al. 2020; Schatz et al. 2013).

Items are tokens of phones with their context (phone before, phone after) and speaker. A and B are two phones in the same
context by one speaker, X is another token of the phone of A in that context: by another speaker (`across`) or by the same
one (`within`). A triplet is right where X is nearer to A than to B, and half right where both are equally near. Scores of a
cell (context, speaker of A and B, speaker of X, phone A, phone B) are means over its triplets, all of them. An average is

    zerospeech2020    over contexts, then over pairs of speakers, then over ordered pairs of phones
    joint             over contexts and speakers of X together, then over speakers of A and B, then over pairs of phones
                      (the rule of Libri-light and of fastabx)

and the error is 100 (1 - average). Distances are those of abx_distances.py; every pair of items is compared once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyspeech.errors import UserError
from pyspeech.units.abx_distances import DISTANCES, FrameDistances, pair_distances
from pyspeech.units.features_files import open_features
from pyspeech.units.items import Item

MODES = ("within", "across")
RULES = ("zerospeech2020", "joint")
TIE = 1e-9  # distances that differ by less are equal
COVERED = 0.75  # of the frames of a file: items that reach no farther in any file look like those of a wrong frame rate
_ROUNDING = 1e-6  # frames: times in seconds have few digits, a frame on the edge of an item is in it
CHUNK = 1 << 16  # distances of items in memory at a time, about; small enough for several processes
TRIPLETS = 1 << 19
log = logging.getLogger(__name__)


class NoTriplets(UserError):
    """Items of which none can be compared in a mode."""


class Frames(NamedTuple):
    """Frames of items one after the other: values (F, D) float64; starts (N,), lengths (N,) >= 1, one an item."""

    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class Cells(NamedTuple):
    """Scores of C cells: labels (C,) int64 for context, speaker of A and B, speaker of X, phone A, phone B; score (C,)."""

    context: np.ndarray
    speaker: np.ndarray
    speaker_x: np.ndarray
    phone_a: np.ndarray
    phone_b: np.ndarray
    score: np.ndarray


def score_modes(
    items: Sequence[Item],
    frames: Frames,
    distance: str = "cosine",
    modes: Sequence[str] = MODES,
    rule: str = "zerospeech2020",
    jobs: int = 1,
) -> Iterator[tuple[str, float | None, int]]:
    """Yield (mode, ABX error in %, number of cells) of each mode, with a bar on a terminal.

    Arguments as of `score_cells`. (mode, None, 0), and a warning, where the items have no triplets of that mode.
    """
    for mode, cells in cells_of_modes(items, frames, distance, modes, jobs):
        yield (mode, error_rate(cells, rule), len(cells.score)) if cells else (mode, None, 0)


def cells_of_modes(
    items: Sequence[Item], frames: Frames, distance: str = "cosine", modes: Sequence[str] = MODES, jobs: int = 1
) -> Iterator[tuple[str, Cells | None]]:
    """Yield (mode, its Cells); None, and a warning, where the items have no triplets of that mode."""
    for mode in modes:
        try:
            yield mode, score_cells(items, frames, distance, mode, jobs, progress=f"ABX {mode}")
        except NoTriplets as error:
            log.warning("no ABX %s: %s", mode, error)
            yield mode, None


def load_frames(items: Sequence[Item], features: Path | str | dict, frame_rate: float | None = None) -> Frames:
    """Frames of items.

    features: a folder, a Kaldi table or a dict, as `features_files.open_features` takes them, with every file of the
    items. Frames without times are at (i + 1/2) / frame_rate. Those within onset and offset belong to an item; where
    there are none (an item shorter than a frame) the nearest one does, and the log says how often; so it does of items
    that end more than 3 frames behind the last one, or long before it in all files, as at a wrong frame rate. UserError
    names the file that is missing, empty, of another dimension, or ends before its item begins.
    """
    if not items:
        raise UserError("no items to score; expected at least three tokens of phones")
    read, by_file = open_features(features), {}
    for number, item in enumerate(items):
        by_file.setdefault(item.file, []).append(number)
    parts, total, nearest, late, covered, dim = [], 0, 0, [], [], None
    starts, lengths = np.zeros(len(items), np.int64), np.zeros(len(items), np.int64)
    for name, numbers in by_file.items():
        values, times, source = read(name)
        if times is None and frame_rate is None:
            raise UserError(f"{source}: no times of its frames; give the frame rate (--frame-rate, frames a second)")
        dim = dim or values.shape[1]
        if values.shape[1] != dim:
            raise UserError(f"{source}: vectors of {values.shape[1]} numbers; expected {dim} as in the files before")
        of_file = [items[number] for number in numbers]
        first, last, outside, end = _frame_ranges(of_file, len(values), times, frame_rate, source)
        nearest += outside
        late += [(source, end, item.offset) for item in of_file if end < item.offset < math.inf]
        if times is None:
            covered.append(max(item.offset for item in of_file) * frame_rate / len(values))
        for number, begin, end in zip(numbers, first, last, strict=True):
            starts[number], lengths[number] = total, end - begin + 1
            parts.append(values[begin : end + 1])
            total += end - begin + 1
    if nearest:
        log.warning(
            "%d of %d items have no frame between their onset and offset: the nearest frame is taken", nearest, len(items)
        )
    if late:
        log.warning(
            "%d of %d items end more than 3 frames behind the last frame of their file (%s: expected by %.3f s, "
            "one ends at %.3f s); check the frame rate of the features",
            len(late),
            len(items),
            *late[0],
        )
    if covered and max(covered) < COVERED:
        log.warning(
            "the items end after %.0f %% of the frames of their files at most: at %g frames a second the features last longer "
            "than the speech; check the frame rate of the features",
            100 * max(covered),
            frame_rate,
        )
    return Frames(np.concatenate(parts), starts, lengths)


def _frame_ranges(items, count, times, frame_rate, source):
    """First and last frame (N,) of each of the items of one file, for how many that is the nearest frame, and until
    when in seconds items can be expected."""
    onset, offset = (np.array([item[place] for item in items]) for place in (1, 2))
    if times is None:
        times = (np.arange(count) + 0.5) / frame_rate
    spacing = 1 / frame_rate if frame_rate else (times[-1] - times[0]) / max(1, count - 1)
    late = int(np.argmax(onset))
    end = times[-1] + 3 * spacing
    if count > 1 and onset[late] > end:
        raise UserError(
            f"{source}: frames until {times[-1] + spacing / 2:.3f} s, but an item begins at "
            f"{onset[late]:.3f} s; check the frame rate of the features"
        )
    slack = _ROUNDING * spacing
    first = np.searchsorted(times, onset - slack, side="left")
    last = np.searchsorted(times, offset + slack, side="right") - 1
    middle = (onset + offset) / 2
    after = np.clip(np.searchsorted(times, middle), 0, count - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(middle - times[before] <= times[after] - middle, before, after)
    empty = last < first
    return np.where(empty, nearest, first), np.where(empty, nearest, last), int(empty.sum()), end if spacing else math.inf


def score_cells(
    items: Sequence[Item],
    frames: Frames,
    distance: str = "cosine",
    mode: str = "across",
    jobs: int = 1,
    progress: str | None = None,
) -> Cells:
    """Cells of all triplets of items (N) with the Frames that `load_frames` gives.

    jobs: processes; the scores do not depend on it. progress: title of a bar on a terminal, None for no bar. NoTriplets
    where no cell has any. KL of values that are no probabilities is not a number: then every triplet is half right.
    """
    if distance not in DISTANCES or mode not in MODES:
        raise UserError(
            f"distance {distance}, mode {mode}; expected one of {', '.join(DISTANCES)} and one of {', '.join(MODES)}"
        )
    plan = _Plan(items, mode)
    if not len(plan.cells[0]):
        raise NoTriplets(
            f"{len(items)} items without a single {mode}-speaker triplet; expected two phones of one speaker "
            "in a context, and another token of one of them"
        )
    between = FrameDistances(frames.values, distance)
    if between.meaningless:
        log.warning(
            "KL divergence of frames with negative values, or zero throughout, has no meaning (probabilities are, not their "
            "logarithms): triplets without a distance count as ties, an error of 50 % where all are"
        )
    state = (plan, between, frames.starts[plan.order], frames.lengths[plan.order])
    scores = np.concatenate(list(_progress(_run(state, plan.chunks, jobs), len(plan.chunks), progress)))
    a, b, x = plan.cells
    return Cells(plan.context[a], plan.speaker[a], plan.speaker[x], plan.phone[a], plan.phone[b], scores)


def error_rate(cells: Cells, rule: str = "zerospeech2020") -> float:
    """ABX error in % of Cells, averaged by a rule of `RULES`."""
    if rule not in RULES:
        raise UserError(f"rule {rule}; expected one of {', '.join(RULES)}")
    keys, scores = [cells.phone_a, cells.phone_b, cells.speaker], cells.score
    if rule == "zerospeech2020":
        keys, scores = _means([*keys, cells.speaker_x], scores)
        keys, scores = _means(keys[:2], scores)
    else:
        keys, scores = _means(keys, scores)
        keys, scores = _means(keys[:2], scores)
    return 100 * (1 - float(scores.mean()))


def errors_by_pair(items: Sequence[Item], cells: Cells) -> dict[str, list[tuple[str, str, float]]]:
    """ABX errors in % of pairs: {"phones": [(one, other, error)], "speakers": [(of A and B, of X, error)]}.

    Of phones the mean of both orders, each averaged as by the rule zerospeech2020. Of speakers the mean over contexts and
    phones.
    """
    keys, scores = _means([cells.phone_a, cells.phone_b, cells.speaker, cells.speaker_x], cells.score)
    (a, b), scores = _means(keys[:2], scores)
    phones = _named([np.minimum(a, b), np.maximum(a, b)], scores, [item.phone for item in items])
    return {
        "phones": phones,
        "speakers": _named([cells.speaker, cells.speaker_x], cells.score, [item.speaker for item in items]),
    }


def _named(keys, scores, values):
    """[(one, other, error in %)] of the means of scores over labels of `values`."""
    names = sorted(set(values))
    (one, other), means = _means(keys, scores)
    triples = zip(one.tolist(), other.tolist(), means.tolist(), strict=True)
    return [(names[left], names[right], round(100 * (1 - mean), 2)) for left, right, mean in triples]


def _means(keys, values):
    """Mean of values (n,) for each combination of keys, arrays (n,): (their arrays, means)."""
    combinations, inverse, counts = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True, return_counts=True)
    return list(combinations.T), np.bincount(inverse.reshape(-1), values, len(counts)) / counts


def _progress(results, total, title):
    if title is None:
        return results
    from tqdm import tqdm

    return tqdm(results, title, total, disable=None, leave=False)


class _Plan:
    """Which cells there are, in chunks whose distances fit in memory.

    Items are sorted by context, speaker, phone; `order` (N,) are their numbers before. A group is a run of items alike in
    all three, a block a run of groups of one context and speaker. `cells` are three arrays of group numbers (A, B, X).
    """

    def __init__(self, items, mode):
        context, speaker, phone = (_labels([item[place] for item in items]) for place in (4, 5, 3))
        self.order = np.lexsort((phone, speaker, context))
        context, speaker, phone = (labels[self.order] for labels in (context, speaker, phone))
        self.first = _run_starts(context, speaker, phone)  # item with which a group begins
        self.count = np.diff(self.first, append=len(items))
        self.context, self.speaker, self.phone = (labels[self.first] for labels in (context, speaker, phone))
        first_group = _run_starts(self.context, self.speaker)
        groups = np.diff(first_group, append=len(self.first))
        self.block = np.repeat(np.arange(len(groups)), groups)
        self.block_first = self.first[first_group]
        self.block_count = np.diff(self.block_first, append=len(items))
        a, x = self._targets(mode)
        owner, offset = _expand(groups[self.block[a]])
        b = first_group[self.block[a]][owner] + offset
        other = b != a[owner]
        a, b, x = a[owner[other]], b[other], x[owner[other]]
        # Distances between two blocks serve the cells with X in either: a unit of work is a pair of blocks.
        unit = np.minimum(self.block[a], self.block[x]) * len(groups) + np.maximum(self.block[a], self.block[x])
        by_unit = np.argsort(unit, kind="stable")
        self.cells = [groups[by_unit].astype(np.int64) for groups in (a, b, x)]
        self.chunks = self._chunks(unit[by_unit])

    def _targets(self, mode):
        """Groups (A, X) of the same phone and context, by the same speaker or by different ones."""
        if mode == "within":
            enough = np.flatnonzero(self.count > 1)
            return enough, enough
        order = np.lexsort((self.phone, self.context))
        begins = _run_starts(self.context[order], self.phone[order])
        sizes = np.diff(begins, append=len(order))
        owner, offset = _expand(np.repeat(sizes, sizes))
        a, x = order[owner], order[np.repeat(begins, sizes)[owner] + offset]
        return a[a != x], x[a != x]

    def _chunks(self, unit):
        """[(first cell, behind the last)]: whole units, together about CHUNK distances."""
        if not len(unit):
            return []
        begins = _run_starts(unit)
        a, _, x = (groups[begins] for groups in self.cells)
        size = np.cumsum(self.block_count[self.block[a]] * self.block_count[self.block[x]])
        edges = begins[_run_starts(size // CHUNK)]
        return list(zip(edges.tolist(), [*edges[1:].tolist(), len(unit)], strict=False))


def _labels(values):
    """Numbers (n,) that stand for values (n), in sorted order."""
    numbers = {value: number for number, value in enumerate(sorted(set(values)))}
    return np.array([numbers[value] for value in values], dtype=np.int64)


def _run_starts(*labels):
    """Where runs of equal labels, arrays (n,), begin."""
    changes = [np.diff(values) != 0 for values in labels]
    return np.concatenate([[0], np.flatnonzero(np.logical_or.reduce(changes)) + 1])


def _expand(counts):
    """counts (n,) -> (owner, offset), each (sum of counts,): 0, 0, 1 and 0, 1, 0 for counts 2, 1."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)


def _run(state, chunks, jobs):
    """Yield the scores of each chunk, in order."""
    if jobs <= 1 or len(chunks) < 2:
        yield from (_score_chunk(state, chunk) for chunk in chunks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not forked: the caller may have threads (torch, a progress bar), which a forked process can wait for for ever.
    with ProcessPoolExecutor(min(jobs, len(chunks)), get_context("spawn"), _begin_worker, (state,)) as pool:
        yield from pool.map(_score_in_worker, chunks)


def _begin_worker(state):
    global _state
    _state = state


def _score_in_worker(chunk):
    return _score_chunk(_state, chunk)


def _score_chunk(state, chunk):
    """Scores (last - first,) of the cells first .. last - 1."""
    plan, between, starts, lengths = state
    a, b, x = (groups[chunk[0] : chunk[1]] for groups in plan.cells)
    blocks = len(plan.block_count)
    rectangles, inverse = np.unique(plan.block[x] * blocks + plan.block[a], return_inverse=True)
    of_x, of_a = np.divmod(rectangles, blocks)
    widths = plan.block_count[of_a]
    sizes = plan.block_count[of_x] * widths
    # The distance of item i as X to item j as A or B is at base + i * width + j of the table.
    bases = np.cumsum(sizes) - sizes - plan.block_first[of_x] * widths - plan.block_first[of_a]
    base, width = bases[inverse.reshape(-1)], widths[inverse.reshape(-1)]
    table = np.full(sizes.sum(), np.nan)
    first, second, place = _item_pairs(plan, np.tile(x, 2), np.concatenate([a, b]), np.tile(base, 2), np.tile(width, 2))
    pairs, inverse = np.unique(np.minimum(first, second) * len(starts) + np.maximum(first, second), return_inverse=True)
    distances = pair_distances(between, starts, lengths, *np.divmod(pairs, len(starts)))
    table[place] = distances[inverse.reshape(-1), (first > second).astype(np.int64)]
    triplets = plan.count[x] * plan.count[a] * plan.count[b]
    edges = [*_run_starts(np.cumsum(triplets) // TRIPLETS).tolist(), len(a)]
    columns = (a, b, x, base, width)
    return np.concatenate(
        [
            _score_triplets(plan, *(values[begin:end] for values in columns), table)  # pyright: ignore[reportCallIssue]
            for begin, end in zip(edges[:-1], edges[1:], strict=False)
        ]
    )


def _item_pairs(plan, x, other, base, width):
    """Pairs of different items of groups x and other (n,), each once: (items of x, items of other, place in the table)."""
    chosen = np.unique(x * len(plan.first) + other, return_index=True)[1]
    x, other, base, width = (values[chosen] for values in (x, other, base, width))
    owner, offset = _expand(plan.count[x] * plan.count[other])
    row, column = np.divmod(offset, plan.count[other][owner])
    first, second = plan.first[x][owner] + row, plan.first[other][owner] + column
    place = base[owner] + first * width[owner] + second
    different = first != second
    return first[different], second[different], place[different]


def _score_triplets(plan, a, b, x, base, width, table):
    """Mean score (n,) of the triplets of cells: groups a, b, x (n,), where their distances are in the table."""
    cell, offset = _expand(plan.count[x] * plan.count[a])
    row, column = np.divmod(offset, plan.count[a][cell])
    item_x, item_a = plan.first[x][cell] + row, plan.first[a][cell] + column
    different = item_x != item_a
    cell, item_x, item_a = cell[different], item_x[different], item_a[different]
    place = base[cell] + item_x * width[cell]
    to_a, first_b, count_b = table[place + item_a], place + plan.first[b][cell], plan.count[b][cell]
    # A cell of many tokens has far more triplets than pairs: a part of the (X, A) at a time.
    edges = [*_run_starts(np.cumsum(count_b) // TRIPLETS).tolist(), len(cell)]
    nearer = np.empty(len(cell))
    for begin, end in zip(edges[:-1], edges[1:], strict=False):
        owner, offset = _expand(count_b[begin:end])
        gain = table[first_b[begin:end][owner] + offset] - to_a[begin:end][owner]
        with np.errstate(invalid="ignore"):  # not a number: neither is nearer, half right
            score = (1 + (gain >= TIE).astype(np.int8) - (gain <= -TIE)) / 2
        nearer[begin:end] = np.bincount(owner, score, end - begin)
    return np.bincount(cell, nearer, len(a)) / np.bincount(cell, count_b, len(a))
