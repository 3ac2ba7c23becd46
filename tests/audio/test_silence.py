"""Digital silence is cut out of audio that comes in blocks."""

import numpy as np
import pytest

from pyspeech.audio.silence import without_silence


def kept_by_hand(samples, size):
    """Whether each sample stays: frame after frame, and run after run of silent ones."""
    kept = np.ones(len(samples), dtype=bool)
    frames = [np.ptp(samples[i : i + size]) < 1e-4 for i in range(0, len(samples) // size * size, size)]
    first = 0
    for index, silent in enumerate([*frames, False]):
        if not silent:
            if index - first >= 5:
                kept[first * size : index * size] = False
                rest = samples[index * size :]
                if index == len(frames) and len(rest) and np.ptp(rest) < 1e-4:
                    kept[index * size :] = False
            first = index + 1
    return kept


@pytest.mark.parametrize("seed", range(40))
def test_as_by_hand_in_any_blocks(seed):
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal(size) if rng.random() < 0.5 else np.full(size, rng.random())
        for size in rng.integers(0, 400, rng.integers(1, 8))
    ]
    samples = np.concatenate(parts).astype(np.float32)
    blocks = np.split(samples, np.sort(rng.integers(0, len(samples) + 1, rng.integers(0, 12))))
    found = list(without_silence(blocks, 80))
    indices = np.concatenate([np.arange(0), *(np.arange(place, place + len(piece)) for place, piece in found)])
    assert np.array_equal(indices, np.flatnonzero(kept_by_hand(samples, 16)))
    assert all(np.array_equal(piece, samples[place : place + len(piece)]) for place, piece in found)


def test_at_the_edges(rng):
    assert list(without_silence([], 800)) == [] and list(without_silence([np.zeros(0)], 800)) == []
    assert list(without_silence([np.full(9000, 0.25)] * 9, 800)) == []
    short = np.full(700, 0.25)  # a stop of speech
    ((place, kept),) = without_silence([short], 800)
    assert place == 0 and np.array_equal(kept, short.astype(np.float32))
    dither = rng.integers(-1, 2, 16000) / 32768
    assert list(without_silence([dither], 800)) == []
