"""Segments and frames: both directions against plain loops, and the edges."""

import numpy as np
import pytest

from pyspeech.sad.segments import (
    as_segments,
    clip,
    complement,
    frames_to_segments,
    segments_to_frames,
    split,
    tidy,
    total,
    union,
)


def pairs(segments):
    return [tuple(pair) for pair in np.asarray(segments).tolist()]


@pytest.mark.parametrize("seed", range(10))
def test_frames_and_back(seed):
    random = np.random.default_rng(seed)
    decisions = random.random(random.integers(1, 500)) < random.random()
    segments = frames_to_segments(decisions)
    plain, start = [], None
    for t, is_speech in enumerate([*decisions, False]):
        if is_speech and start is None:
            start = t
        if not is_speech and start is not None:
            plain.append((start / 100, t / 100))
            start = None
    assert pairs(segments) == plain
    assert np.array_equal(segments_to_frames(segments, len(decisions)), decisions)


@pytest.mark.parametrize("decisions, expected", [([], []), ([False], []), ([True], [(0, 0.01)]), ([True] * 7, [(0, 0.07)])])
def test_frames_at_the_edges(decisions, expected):
    segments = frames_to_segments(np.array(decisions, dtype=bool))
    assert segments.shape == (len(expected), 2) and segments.dtype == np.float64 and pairs(segments) == expected
    assert segments_to_frames(segments, len(decisions)).tolist() == decisions


def test_duration_bounds_the_last_frame():
    assert pairs(frames_to_segments([True, False, True], 0.01, duration=0.05)) == [(0, 0.01), (0.02, 0.05)]
    assert pairs(frames_to_segments([True, False, True], 0.01, duration=0.025)) == [(0, 0.01), (0.02, 0.025)]
    assert pairs(frames_to_segments([True, True, False], 0.01, duration=0.05)) == [(0, 0.02)]
    assert pairs(frames_to_segments([True], 0.01, duration=0.0)) == []


def test_offset():
    """Frames in the middle of windows: the first one's decision holds from 0 on, the last one's up to the end."""
    assert pairs(frames_to_segments([False, True, True, False], 0.01, 0.08, 0.02)) == [(0.03, 0.05)]
    assert pairs(frames_to_segments([True, False, True], 0.01, 0.08, 0.02)) == [(0, 0.03), (0.04, 0.08)]
    assert pairs(frames_to_segments([False, False, True], 0.01, 0.03, 0.02)) == []
    assert pairs(frames_to_segments([True], 0.01, offset=0.02)) == [(0, 0.03)]


def test_very_long():
    decisions = np.tile([True] * 3 + [False] * 2, 1_000_000)  # 14 hours
    segments = frames_to_segments(decisions)
    assert len(segments) == 1_000_000 and pairs(segments[-1:]) == [(49999.95, 49999.98)]
    assert np.array_equal(segments_to_frames(segments, len(decisions)), decisions)


def test_segments_to_frames_cuts_and_overlaps():
    assert segments_to_frames([(0.01, 0.03), (0.02, 0.04), (0.08, 9.0)], 10).tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 1, 1]
    assert segments_to_frames([(0.2, 0.4)], 10).sum() == 0
    assert segments_to_frames([(0.0, 0.5)], 0).shape == (0,)


@pytest.mark.parametrize("seed", range(10))
def test_union_and_complement_by_sampling(seed):
    random = np.random.default_rng(seed)
    starts = random.integers(0, 300, size=random.integers(0, 20))
    segments = np.stack([starts, starts + random.integers(0, 40, size=len(starts))], axis=1)
    covered = np.zeros(400, dtype=bool)
    for start, end in segments:
        covered[start:end] = True
    for result, truth in (
        (union(segments), covered),
        (clip(segments, 250), covered[:250]),
        (complement(segments, 250), ~covered[:250]),
    ):
        seen = np.zeros(400, dtype=int)
        for start, end in result.astype(int):
            seen[start:end] += 1
        assert seen.max(initial=0) <= 1 and np.array_equal(seen[: len(truth)] > 0, truth) and not seen[len(truth) :].any()
        assert (result[1:, 0] > result[:-1, 1]).all() and total(result) == truth.sum()


def test_union_with_gap():
    assert pairs(union([(5, 6), (0, 1), (1.5, 2)], gap=0.5)) == [(0, 2), (5, 6)]
    assert union([]).shape == (0, 2)


def test_tidy():
    speech = [(1, 2), (2.2, 3), (5, 5.1), (9.5, 10)]
    assert pairs(tidy(speech, 10)) == [tuple(map(float, pair)) for pair in speech]
    assert pairs(tidy(speech, 10, min_silence=0.3)) == [(1, 3), (5, 5.1), (9.5, 10)]
    assert pairs(tidy(speech, 10, min_silence=0.2)) == pairs(tidy(speech, 10))  # 0.2 s is not shorter
    assert pairs(tidy(speech, 10, min_speech=0.5)) == [(1, 2), (2.2, 3), (9.5, 10)]
    assert pairs(tidy(speech, 10, min_speech=0.5, pad=0.3)) == [(0.7, 3.3), (9.2, 10)]
    assert pairs(tidy(speech, 10, min_speech=0.5, pad=(0.3, 0.0))) == [(0.7, 3), (9.2, 10)]
    assert pairs(tidy(speech, 10, min_speech=0.5, pad=(0.0, 0.2))) == [(1, 3.2), (9.5, 10)]
    assert tidy([], 0, 1, 1, 1).shape == (0, 2)


def test_long_segments_are_cut_at_their_lowest_score():
    scores = np.full(3000, 0.9)
    scores[[720, 1400, 2210]] = 0.5, 0.2, 0.1
    cut = split([(0, 0.5), (1, 29)], 10.0, scores, 0.01, 0.02)
    assert pairs(cut) == [(0, 0.5), (1, 7.22), (7.23, 14.02), (14.03, 22.12), (22.13, 29)]
    assert pairs(split([(1, 9)], 8.0, scores, 0.01)) == [(1, 9)]


@pytest.mark.parametrize("longest", [0.1, 0.5, 3.0, 7.7])
@pytest.mark.parametrize("shift, offset", [(0.01, 0.0), (0.02, 0.032)])
def test_pieces_are_short_disjoint_and_all_but_single_frames(rng, longest, shift, offset):
    segments = np.array([(0.0, 3.1), (4.0, 4.3), (5.0, 55.0), (56.0, 59.99)])
    scores = rng.random(round(60 / shift) - 3)
    cut = split(segments, longest, scores, shift, offset)
    lengths, gaps = cut[:, 1] - cut[:, 0], cut[1:, 0] - cut[:-1, 1]
    assert lengths.min() > 0 and lengths.max() <= longest and gaps.min() > 0
    assert total(segments) - total(cut) == pytest.approx(shift * (len(cut) - len(segments)))
    assert lengths.min() > min(longest / 4 - 1.5 * shift, 0.299)


@pytest.mark.parametrize("bad", [[(2, 1)], [(0, float("nan"))], [0.5, 1.0], [(1, 2, 3)]])
def test_not_segments(bad):
    with pytest.raises(ValueError):
        as_segments(bad)
