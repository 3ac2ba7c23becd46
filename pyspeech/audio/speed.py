"""Audio played faster or slower: speed perturbation, which changes pitch and formants as another voice would."""

import functools

import numpy as np


def play(samples: np.ndarray, speed: int) -> np.ndarray:
    """Play samples (N,) at `speed` percent: float32 (ceil(100 N / speed),), as scipy's resample_poly computes it.

    At 100 they are returned as they are. What becomes of `speed` samples and those around them is one row of a matrix
    product, a quarter of the time.
    """
    if speed == 100:
        return samples
    reach, weights = _weights(speed)
    count = -(-100 * len(samples) // speed)
    rows = -(-count // 100)
    padded = np.zeros((rows - 1) * speed + len(weights), np.float32)
    inside = samples[: len(padded) - reach]
    padded[reach : reach + len(inside)] = inside
    frames = np.lib.stride_tricks.sliding_window_view(padded, len(weights))[::speed]
    return (np.ascontiguousarray(frames) @ weights).reshape(-1)[:count]


@functools.cache
def _weights(speed):
    """(R, weights (R + speed + R, 100)): of `speed` samples and R to either side for the 100 samples that they become."""
    from scipy.signal import resample_poly

    reach = 10 * max(100, speed) // 100 + 1  # of its filter
    impulses = resample_poly(np.eye(3 * speed), 100, speed, axis=1)
    return reach, np.ascontiguousarray(impulses[speed - reach : 2 * speed + reach, 100:200], np.float32)
