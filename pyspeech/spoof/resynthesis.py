"""Made-up vocoders: a genuine recording taken apart and put together again, each time in another way.

A detector that is trained on the fakes of a few engines learns these engines. What most have in common is that a spectrogram of
magnitudes, smoother than the recording's, is given phases that were not recorded; here both are drawn at random:

    transform    Hann windows of 32 to 128 ms, 4 to 8 of them to a place
    magnitudes   as they are, through 40 to 128 mel bands and back, or smoothed over three frames; some with noise
    phases       the recording's, disturbed above some frequency, or found anew from the magnitudes by some
                 iterations of the algorithm of Griffin and Lim (1984)

Not of Li et al. 2022. `CropConfig.resynthesized` says how often training takes such a fake for one of the corpus.
"""

import functools

import numpy as np
import torch

WINDOWS = (0.032, 0.05, 0.064, 0.1, 0.128)  # seconds
OVERLAPS = (4, 4, 5, 8)  # windows to a place
BANDS = (40, 60, 80, 80, 80, 100, 128)
ITERATIONS = (1, 2, 4, 8)
NOISY = 0.3  # share whose magnitudes get noise
NOISE = (0.05, 0.3)  # nepers
DISTURBANCE = (0.3, 2.5)  # radians, standard deviation, of phases that are kept
LEAST = 1e-5  # of magnitudes


def resynthesize(samples: np.ndarray, rate: int, rng: np.random.Generator) -> np.ndarray:
    """Samples (N,) at `rate` Hz -> (N,) float32 of the same RMS, by a vocoder that is drawn from rng, a numpy Generator.

    Silence stays silence.
    """
    signal = torch.from_numpy(np.array(samples, dtype=np.float32))
    size = int(rng.choice(WINDOWS) * rate)
    hop = size // int(rng.choice(OVERLAPS))
    spectrum = _stft(signal, size, hop)
    smoothing = int(rng.integers(4))  # 0: none, 1: mel bands, 2: over time, 3: mel bands and perhaps over time
    magnitudes = spectrum.abs()
    if smoothing in (1, 3):
        magnitudes = _through_bands(magnitudes, int(rng.choice(BANDS)), size, rate)
    if smoothing == 2 or (smoothing == 3 and rng.random() < 0.5):
        magnitudes = _smoothed(magnitudes)
    if rng.random() < NOISY:
        magnitudes = magnitudes * _normal(rng, rng.uniform(*NOISE), magnitudes.shape).exp()
    # Phases as they are need magnitudes that are not.
    phases = _phases(spectrum.angle(), magnitudes, int(rng.integers(0 if smoothing else 1, 4)), rng, size, hop, len(signal))
    made = _istft(torch.polar(magnitudes, phases), size, hop, len(signal))
    return (made * (signal.square().mean() / made.square().mean().clamp_min(1e-20)).sqrt()).numpy()


def _phases(recorded, magnitudes, kind, rng, size, hop, length):
    """kind: 0 as recorded, 1 disturbed, 2 found anew from none, 3 found anew from disturbed ones."""
    if kind == 0:
        return recorded
    if kind == 1:
        disturbance = _normal(rng, rng.uniform(*DISTURBANCE), recorded.shape)
        disturbance[: int(rng.integers(0, len(recorded) * 3 // 4))] = 0
        return recorded + disturbance
    begin = torch.from_numpy(rng.uniform(-np.pi, np.pi, recorded.shape).astype(np.float32))
    phases = begin if kind == 2 else recorded + begin / 2
    for _ in range(int(rng.choice(ITERATIONS))):
        phases = _stft(_istft(torch.polar(magnitudes, phases), size, hop, length), size, hop).angle()
    return phases


def _through_bands(magnitudes, bands, size, rate):
    there, back = _filters(size, bands, rate)
    return (back @ (there @ magnitudes).clamp_min(LEAST)).clamp_min(LEAST)


@functools.cache
def _filters(size, bands, rate):
    """Mel filters (bands, bins) and their pseudo-inverse (bins, bands)."""
    from torchaudio.functional import melscale_fbanks

    filters = melscale_fbanks(size // 2 + 1, 0.0, rate / 2, bands, rate, norm="slaney", mel_scale="slaney").T
    return filters, torch.linalg.pinv(filters)


def _smoothed(magnitudes):
    """The geometric mean of each three frames."""
    padded = torch.nn.functional.pad(magnitudes.clamp_min(LEAST).log()[None], (1, 1), "replicate")
    return torch.nn.functional.avg_pool1d(padded, 3, 1)[0].exp()


def _normal(rng, deviation, shape):
    return torch.from_numpy(rng.normal(0.0, deviation, shape).astype(np.float32))


def _stft(signal, size, hop):
    return torch.stft(signal, size, hop, window=_window(size), return_complex=True, pad_mode="constant")


def _istft(spectrum, size, hop, length):
    return torch.istft(spectrum, size, hop, window=_window(size), length=length)


@functools.cache
def _window(size):
    return torch.hann_window(size)
