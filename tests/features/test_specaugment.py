"""SpecAugment: what is masked and how much, its edges, and that it follows the global generator."""

import numpy as np
import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.features.specaugment import spec_augment


def masked(num_frames, **options):
    """bool (num_frames, 80): what is masked of frames without zeros."""
    config = SpecAugmentConfig(**{"frequency_masks": 0, "time_masks": 0, **options})
    return (spec_augment(torch.ones(num_frames, 80), config) == 0).numpy()


def run_lengths(mask):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return (edges[1::2] - edges[::2]).tolist()


@pytest.mark.parametrize(
    "axis, options, limit",
    [
        (1, {"frequency_masks": 1, "frequency_width": 10}, 10),
        (0, {"time_masks": 1, "time_width": 12, "time_fraction": 1.0}, 12),
        (0, {"time_masks": 1, "time_width": 500, "time_fraction": 0.2}, 20),
    ],
)
def test_one_mask_is_one_stretch_of_uniform_width(axis, options, limit):
    np.random.seed(1)
    widths, touched = [], np.zeros((100, 80)[axis], int)
    for _ in range(1500):
        mask = masked(100, **options)
        line = mask.any(axis=1 - axis)
        assert np.array_equal(mask, np.broadcast_to(line[None] if axis else line[:, None], mask.shape))
        runs = run_lengths(line)
        assert len(runs) <= 1
        widths.append(sum(runs))
        touched += line
    counts = np.bincount(widths, minlength=limit + 1)
    expected = 1500 / (limit + 1)
    assert len(counts) == limit + 1 and np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert touched.min() > 0  # every frame or bin may be masked, the first and the last too


def test_number_of_masks():
    np.random.seed(2)
    options = {"frequency_masks": 3, "frequency_width": 5, "time_masks": 2, "time_width": 5, "time_fraction": 1.0}
    most = {0: 0, 1: 0}
    for _ in range(200):
        mask = masked(200, **options)
        for axis in (0, 1):
            most[axis] = max(most[axis], len(run_lengths(mask.all(axis=1 - axis))))
    assert most == {0: 2, 1: 3}


def test_the_rest_stays_and_the_input_too():
    np.random.seed(3)
    frames = torch.randn(150, 80) + 5
    before = frames.clone()
    augmented = spec_augment(frames, SpecAugmentConfig())
    assert torch.equal(frames, before) and augmented.dtype == torch.float32
    kept = augmented != 0
    assert torch.equal(augmented[kept], frames[kept]) and 0 < (~kept).sum() < kept.numel()


@pytest.mark.parametrize("num_frames", [0, 1, 2, 4])
def test_very_short(num_frames):
    np.random.seed(4)
    config = SpecAugmentConfig(time_width=100)
    for _ in range(50):
        augmented = spec_augment(torch.ones(num_frames, 80), config)
        assert augmented.shape == (num_frames, 80)
        if num_frames:  # a fifth of four frames is less than one: no time is masked, and never all bins
            assert (augmented != 0).any(dim=1).all()


def test_follows_the_global_generator_by_a_fixed_number_of_draws():
    frames, config, after = torch.ones(90, 80), SpecAugmentConfig(), []
    np.random.seed(5)
    first = [spec_augment(frames, config) for _ in range(3)]
    after.append(np.random.rand())
    np.random.seed(5)
    assert all(torch.equal(spec_augment(frames, config), one) for one in first)
    assert np.random.rand() == after[0]
    assert not torch.equal(first[0], first[1])


def test_misuse():
    SpecAugmentConfig().check()
    with pytest.raises(UserError, match="^specaugment option time_masks=-1: expected at least 0"):
        SpecAugmentConfig(time_masks=-1).check()
    with pytest.raises(UserError, match="time_fraction=1.5"):
        SpecAugmentConfig(time_fraction=1.5).check()
