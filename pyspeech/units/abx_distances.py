"""Distances between speech items, many pairs at a time: frames compared, then aligned by dynamic time warping (DTW).

An item is a run of frames. Two items X (its frames are rows) and Y (columns) are compared frame by frame, and aligned by
steps up, left and diagonal; the distance is the cost of the cheapest alignment divided by the number of frame pairs on the
path that a back-trace finds. Where costs are equal the back-trace goes diagonally, else left, else up, so with repeated
frames the distance of X to Y may differ from that of Y to X. The Levenshtein distance counts edits and is not divided.

    cosine        angle between the two frames / pi; 1 where exactly one frame is zero, 0 where both are
    kl            symmetrised Kullback-Leibler divergence (half the sum of both) of frames scaled to sum 1
    levenshtein   0 where the two frames are the same vector, 1 where not
"""

import numpy as np

from pyspeech.errors import UserError

DISTANCES = ("cosine", "kl", "levenshtein")
MAX_TABLE = 1024  # distinct frames of which all distances are tabulated
BATCH_ELEMENTS = 1 << 21  # float64 numbers that a batch of pairs needs, about
_BUCKETS = 3  # classes of item lengths an octave; a batch holds pairs of one class, padded


class FrameDistances:
    """Distances between any two of the frames (F, D) float64, by row numbers.

    Where there are few distinct frames (codes, one-hot vectors) their distances are computed once: fast, and equal where
    the frames are, which rounding would otherwise spoil. Frames of one number are codes: cosine and KL compare them as
    one-hot vectors. The attribute `meaningless` tells for KL whether there are frames with negative values, or zero
    throughout, which are no probabilities. UserError for frames of one number that is no code.
    """

    def __init__(self, frames: np.ndarray, distance: str) -> None:
        assert distance in DISTANCES, distance
        self.distance = distance
        codes = frames.shape[1] == 1
        if codes and distance != "levenshtein" and not np.all((frames >= 0) & (frames == np.round(frames))):
            raise UserError(
                f"--distance {distance}: features of one number a frame, in which all frames are alike; expected vectors, or "
                "code numbers (whole, from 0)"
            )
        self._codes = self._table = None
        self.width = 0  # float64 numbers that are gathered for a frame
        self.meaningless = False
        if distance == "levenshtein":
            self._codes, _ = _distinct(frames, len(frames))
            return
        numbers, distinct = _distinct(frames, len(frames) if codes else MAX_TABLE)
        if codes and distinct is not None:
            distinct = np.eye(len(distinct))
        self._prepare(frames if distinct is None else distinct)
        if distinct is not None:
            every = np.arange(len(distinct))[None]
            table = self._compute(every, every).reshape(len(distinct), -1)
            table = np.triu(table, 1) + np.triu(table, 1).T + np.diag(np.where(np.isnan(table.diagonal()), np.nan, 0))
            self._codes, self._table = numbers, table
        else:
            self.width = frames.shape[1]

    def _prepare(self, frames):
        if self.distance == "cosine":
            norms = np.sqrt(np.square(frames).sum(axis=1, keepdims=True))
            self._zero = norms[:, 0] == 0
            # A hair longer than 1: the cosine of a frame with itself is then cut off to 1, in spite of rounding.
            self._left = self._right = frames / np.where(norms == 0, 1, norms) * (1 + 1e-14)
            return
        epsilon = np.finfo(np.float64).eps
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = frames / frames.sum(axis=1, keepdims=True) + epsilon
            shares = shares / shares.sum(axis=1, keepdims=True)
            self._left, self._right = shares, np.log(shares)
            self._entropy = (self._left * self._right).sum(axis=1)
        self.meaningless = bool(np.isnan(self._entropy).any() or (frames < 0).any())

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Frame numbers (P, I) and (P, J) -> distances (I * J, P), row by row of the I x J matrices."""
        if self._codes is None:
            distances = self._compute(rows, columns).reshape(len(rows), -1)
            return np.ascontiguousarray(distances.T)
        rows, columns = self._codes[rows].T[:, None], self._codes[columns].T[None]
        if self._table is None:
            return (rows != columns).astype(np.float64).reshape(-1, rows.shape[-1])
        return np.take(self._table, rows * len(self._table) + columns).reshape(-1, rows.shape[-1])

    def _compute(self, rows, columns):
        """As `between`, from the frames: (P, I, J)."""
        with np.errstate(invalid="ignore"):
            product = np.matmul(self._left[rows], self._right[columns].transpose(0, 2, 1))
            if self.distance == "kl":
                product += np.matmul(self._right[rows], self._left[columns].transpose(0, 2, 1))
                both = self._entropy[rows][:, :, None] + self._entropy[columns][:, None]
                return np.maximum(0.5 * (both - product), 0)
        np.minimum(product, 1, out=product)  # np.clip is slower
        angles = np.arccos(np.maximum(product, -1, out=product), out=product)
        angles /= np.pi
        if self._zero.any():
            first, second = self._zero[rows][:, :, None], self._zero[columns][:, None]
            angles[first ^ second] = 1
            angles[first & second] = 0
        return angles


def _distinct(frames, limit):
    """Frames (F, D) -> (number of its vector (F,), the distinct vectors (K, D)), or (None, None) where K > limit."""
    frames = np.ascontiguousarray(frames + 0.0)  # -0.0 becomes 0.0: they are the same number
    seen, numbers = {}, np.empty(len(frames), np.int64)
    for place, frame in enumerate(frames):
        numbers[place] = seen.setdefault(frame.tobytes(), len(seen))
        if len(seen) > limit:
            return None, None
    return numbers, frames[np.unique(numbers, return_index=True)[1]]


def pair_distances(
    between: FrameDistances, starts: np.ndarray, lengths: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Distances of pairs of items: (P, 2), [:, 0] with the first item as X (rows of the alignment), [:, 1] the second.

    between: a FrameDistances; item i is its frames starts[i] .. starts[i] + lengths[i] - 1, lengths >= 1; first, second
    (P,): numbers of the items of each pair. Memory does not grow with the number of pairs beyond the result.
    """
    swapped = lengths[first] > lengths[second]  # rows are the shorter item: the fronts below are as short as can be
    rows, columns = np.where(swapped, second, first), np.where(swapped, first, second)
    heights, widths = lengths[rows], lengths[columns]
    classes = np.stack([np.ceil(_BUCKETS * np.log2(size)).astype(np.int64) for size in (heights, widths)])
    key = classes[0] << 32 | classes[1]
    order = np.lexsort((widths, heights, key))
    result = np.empty((len(rows), 2))
    align = edit_distances if between.distance == "levenshtein" else dtw
    edges = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
    for begin, end in zip(edges[:-1], edges[1:], strict=False):
        height, width = heights[order[begin:end]].max(), widths[order[begin:end]].max()
        size = max(1, BATCH_ELEMENTS // (4 * height * width + (height + width) * between.width))
        for part in range(begin, end, size):
            batch = order[part : min(part + size, end)]
            height, width = heights[batch].max(), widths[batch].max()
            local = between.between(
                _frame_numbers(starts, lengths, rows[batch], height), _frame_numbers(starts, lengths, columns[batch], width)
            )
            result[batch] = align(local, heights[batch], widths[batch], width)
    result[swapped] = result[swapped, ::-1]
    return result


def _frame_numbers(starts, lengths, items, size):
    """(P, size) numbers of the frames of each item; where it has fewer, its last one again."""
    return starts[items][:, None] + np.minimum(np.arange(size), lengths[items][:, None] - 1)


def dtw(local: np.ndarray, heights: np.ndarray, widths: np.ndarray, width: int) -> np.ndarray:
    """Normalised DTW costs (P, 2) of P matrices of local distances, with rows as X and with columns as X.

    local (I * J, P): matrices of J = `width` columns, flat; of matrix p the first heights[p] rows and widths[p] columns
    count, the rest is padding.

    All matrices advance together along one diagonal front i + j = k. The length of the back-traced path needs no
    back-trace: where that goes from (i, j) depends on the costs of the three cells before alone, so the path from (i, j)
    is one longer than the path from the cell chosen there, which is known by then. Exchanging rows and columns changes
    no cost and exchanges left and up, hence a second length for it, which prefers up.
    """
    height, count = len(local) // width, local.shape[1]
    costs = np.full((3, height + 1, count), np.inf)  # of three fronts in turn; cell (i, k - i) is at i + 1; outside is inf
    lengths = np.zeros((3, 2, height + 1, count), np.int16 if height + width < 1 << 15 else np.int32)
    costs[0, 1], lengths[0, :, 1] = local[0], 1
    result = np.empty((count, 2))
    for k, done in _ends(heights + widths - 2):
        cost, before, diagonal = (costs[(k - back) % 3] for back in range(3))
        length, length_before, length_diagonal = (lengths[(k - back) % 3] for back in range(3))
        if k > 0:
            low, high = max(0, k - width + 1), min(height - 1, k)
            inside, above = slice(low + 1, high + 2), slice(low, high + 1)
            left, up, corner = before[inside], before[above], diagonal[above]
            side = np.minimum(left, up)
            np.add(np.minimum(side, corner), _front(local, width, k, low, high), out=cost[inside])
            straight = corner <= side
            for way, goes_left in enumerate((left <= up, left < up)):
                taken = _chosen(goes_left, length_before[way, inside], length_before[way, above])
                np.add(_chosen(straight, length_diagonal[way, above], taken), 1, out=length[way, inside])
        result[done] = (cost[heights[done], done] / length[:, heights[done], done]).T
    return result


def _chosen(condition, first, second):
    """np.where of integers, several times faster: without branches."""
    difference = first - second
    difference *= condition.astype(first.dtype)
    difference += second
    return difference


def edit_distances(local: np.ndarray, heights: np.ndarray, widths: np.ndarray, width: int) -> np.ndarray:
    """Levenshtein distances (P, 2), both columns the same; arguments as of `dtw`, local distances 0 or 1."""
    height, count = len(local) // width, local.shape[1]
    costs = np.zeros((3, height + 1, count))  # row i, column k - i of the (I + 1) x (J + 1) cells
    result = np.empty((count, 2))
    for k, done in _ends(heights + widths):
        cost, before, diagonal = (costs[(k - back) % 3] for back in range(3))
        low, high = max(1, k - width), min(height, k - 1)
        if low <= high:
            inside, above = slice(low, high + 1), slice(low - 1, high)
            edits = np.minimum(before[inside], before[above]) + 1
            np.minimum(edits, diagonal[above] + _front(local, width, k - 2, low - 1, high - 1), out=cost[inside])
        if k <= width:
            cost[0] = k
        if k <= height:
            cost[k] = k
        result[done] = cost[heights[done], done][:, None]
    return result


def _ends(ends):
    """Yield (k, numbers of the matrices whose last cell is on front k) for all fronts; ends (P,): fronts of last cells."""
    order = np.argsort(ends, kind="stable")
    edges = np.searchsorted(ends[order], np.arange(ends[order[-1]] + 2))
    for k in range(len(edges) - 1):
        yield k, order[edges[k] : edges[k + 1]]


def _front(local, width, k, low, high):
    """The cells (i, k - i), low <= i <= high, of the flat matrices (I * J, P): a view (high - low + 1, P)."""
    step = max(1, width - 1)
    begin = low * width + k - low
    return local[begin : begin + (high - low) * step + 1 : step]
