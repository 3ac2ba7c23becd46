"""The parts of a recording between the edges of windows."""

import numpy as np
import pytest

from pyspeech.spoof.segments import stretches, timeline


def test_parts_have_the_mean_of_the_windows_over_them(rng):
    windows = [(start, start + 2.0, float(rng.standard_normal())) for start in (0.0, 0.5, 1.0, 1.5, 7.0, 7.2)]
    parts = timeline(windows)
    assert parts[0][0] == 0 and parts[-1][1] == 9.2
    assert sum(end - start for start, end, _ in parts) == pytest.approx(3.5 + 2.2)  # nothing between 3.5 and 7
    for start, end, score in parts:
        over = [value for first, last, value in windows if first <= start and end <= last]
        assert over and score == pytest.approx(np.mean(over))
    assert timeline([]) == [] and timeline([(0.0, 4.0, 1.5)]) == [(0.0, 4.0, 1.5)]


def test_a_fake_part_is_seen():
    """3 s of 30, in windows of 2 s."""
    starts = np.arange(0, 28.5, 0.5)
    inside = np.clip(np.minimum(starts + 2, 15) - np.maximum(starts, 12), 0, None) / 2
    parts = timeline([(start, start + 2, 4 - 8 * share) for start, share in zip(starts, inside, strict=True)])
    found = stretches(parts, 0.0)
    assert [score < 0 for _, _, score in found] == [False, True, False]
    assert found[1] == pytest.approx((12, 15, np.mean([score for start, _, score in parts if 12 <= start < 15])), abs=0.6)
    assert (found[0][0], found[-1][1]) == (0, 30) and found[0][1] == found[1][0]


def test_joined_parts_have_their_mean_over_time():
    assert stretches([(0.0, 3.0, 1.0), (3.0, 4.0, 5.0), (4.0, 5.0, -1.0)], 0.0) == [(0.0, 4.0, 2.0), (4.0, 5.0, -1.0)]
