"""k-means over frames: the baseline of discovered units, at the same rate and number of codes.

Seeding after Arthur and Vassilvitskii 2007 (k-means++, with their greedy choice among several candidates), then the steps of
Lloyd 1982 until nothing moves. All in float64 and in slabs, so that memory is bounded by the frames themselves; a cluster
that has lost all its frames takes the frame that is farthest from its centre.
"""

import math
from collections.abc import Iterable

import torch

from pyspeech.errors import UserError
from pyspeech.units.quantizer import nearest_codes, totals

SLAB = 16384  # frames compared with all centres at once
SEEDED = 100_000  # frames, drawn at random, that the first centres are taken from
STEPS = 100
TOLERANCE = 1e-5  # of the mean squared distance: a step that gains less is the last


def fit(frames: torch.Tensor, k: int, seed: int, steps: int = STEPS) -> torch.Tensor:
    """Fit centres to frames (N, D) float, at least k of them -> (k, D) float32; the same for the same seed."""
    if k < 1 or len(frames) < k:
        raise UserError(f"k-means: {len(frames)} frames for k={k} clusters; expected at least one frame a cluster")
    if not torch.isfinite(frames).all():
        raise UserError("k-means: a frame has values that are not finite; look for broken audio")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(frames), generator=generator).to(frames.device)
    centres, before = _seed(frames[order[:SEEDED]], k, generator), math.inf
    for _ in range(steps):
        counts, sums, squares, farthest = _statistics(frames, centres)
        mean = squares / len(frames)
        empty = (counts == 0).nonzero()[:, 0]
        if mean == 0 or (len(empty) == 0 and not mean < before * (1 - TOLERANCE)):
            break
        centres = sums / counts.clamp(min=1)[:, None]
        centres[empty] = frames[farthest[: len(empty)]].double()
        before = mean
    return centres.float()


def assign(frames: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Assign frames (N, D) to the nearest of the centres (k, D): (N,) int64, the first of equals."""
    if len(frames) == 0:
        return torch.zeros(0, dtype=torch.int64, device=frames.device)
    return torch.cat([nearest_codes(slab, centres) for slab in frames.split(SLAB)])


def average_frames(frames: torch.Tensor, count: int) -> torch.Tensor:
    """Mean of each `count` frames, the last of those that are left: (F, n) -> (ceil(F / count), n); 100 to 25 Hz by 4."""
    if len(frames) == 0:
        return frames
    whole = len(frames) // count * count
    parts = [frames[:whole].view(-1, count, frames.shape[1]).mean(dim=1)]
    if whole < len(frames):
        parts.append(frames[whole:].mean(dim=0, keepdim=True))
    return torch.cat(parts)


def draw_frames(parts: Iterable[torch.Tensor], most: int, seed: int) -> torch.Tensor:
    """Join parts (n, D) of frames: all (N, D), or `most` of them, each as likely as any other, where there are more.

    No more than twice as many and a part are in memory at a time. UserError for parts of several dimensions.
    """
    generator = torch.Generator().manual_seed(seed)
    kept, keys, waiting = [], [], 0
    for part in parts:
        if kept and part.shape[1] != kept[0].shape[1]:
            raise UserError(
                f"k-means: frames of {kept[0].shape[1]} and of {part.shape[1]} numbers; expected the same size in all"
            )
        kept.append(part)
        keys.append(torch.rand(len(part), generator=generator, dtype=torch.float64))
        waiting += len(part)
        if waiting > 2 * most:
            kept, keys = _fewer(kept, keys, most)
            waiting = most
    return _fewer(kept, keys, most)[0][0]


def _fewer(kept, keys, most):
    """The frames with the lowest keys, in their order, as lists of one part."""
    frames, numbers = torch.cat(kept), torch.cat(keys)
    if len(frames) > most:
        chosen = numbers.argsort()[:most].sort().values
        frames, numbers = frames[chosen], numbers[chosen]
    return [frames], [numbers]


def _seed(frames, k, generator):
    """Of `frames`, k that are far from each other: (k, D) float64."""
    candidates = 2 + int(math.log(k))
    first = int(torch.randint(len(frames), (1,), generator=generator))
    centres, nearest = [frames[first].double()], _squares(frames, frames[first : first + 1])[:, 0]
    while len(centres) < k:
        ends = nearest.cumsum(dim=0)
        draws = torch.rand(candidates, generator=generator, dtype=torch.float64).to(frames.device) * ends[-1]
        chosen = torch.searchsorted(ends, draws, right=True).clamp(max=len(frames) - 1)
        remaining = torch.minimum(_squares(frames, frames[chosen]), nearest[:, None])
        best = int(remaining.sum(dim=0).argmin())
        centres.append(frames[chosen[best]].double())
        nearest = remaining[:, best]
    return torch.stack(centres)


def _squares(frames, centres):
    """Squared distances (N, C) float64, slab by slab."""
    return torch.cat(
        [
            torch.cdist(slab.double(), centres.double(), compute_mode="donot_use_mm_for_euclid_dist").square()
            for slab in frames.split(SLAB)
        ]
    )


def _statistics(frames, centres):
    """Of the clusters: sizes (k,), sums (k, D), the sum of all squared distances, and the k frames with the largest."""
    counts, sums = centres.new_zeros(len(centres)), torch.zeros_like(centres)
    distances = []
    for slab in frames.split(SLAB):
        codes = nearest_codes(slab, centres)
        distances.append((slab.double() - centres[codes]).square().sum(dim=1))
        slab_counts, slab_sums = totals(slab, codes, len(centres))
        counts, sums = counts + slab_counts, sums + slab_sums
    distances = torch.cat(distances)
    return counts, sums, distances.sum().item(), distances.topk(min(len(centres), len(distances))).indices
