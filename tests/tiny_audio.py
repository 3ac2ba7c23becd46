"""Short noise, audio files of it, and the cuts of what was made from them, for tests of corpora and features."""

import numpy as np
import soundfile


def noise(seconds=0.5, rate=16000, channels=1, seed=0):
    """White noise of standard deviation 0.1: (N,) float64, or (N, channels) of several channels."""
    samples = 0.1 * np.random.default_rng(seed).standard_normal((int(seconds * rate), channels))
    return samples[:, 0] if channels == 1 else samples


def noise_tensor(count, seed=0, scale=0.1):
    """White noise of standard deviation `scale`: (count,) float32."""
    import torch

    return torch.randn(count, generator=torch.Generator().manual_seed(seed)) * scale


def write_audio(path, seconds=0.5, rate=16000, channels=1, seed=0, samples=None, **options):
    """Write a file of `samples`, or of noise, and the folders that it lies in; options: those of soundfile.write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = noise(seconds, rate, channels, seed) if samples is None else samples
    soundfile.write(str(path), samples, rate, **{"subtype": "PCM_16", **options})
    return path


def read_cuts(folder, part):
    """The cuts of the manifest <part>.jsonl.gz, in its order."""
    from lhotse import CutSet

    return list(CutSet.from_file(folder / f"{part}.jsonl.gz"))
