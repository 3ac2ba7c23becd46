"""Training speech as another device records it: its level controlled, overdriven, with the hiss of an amplifier.

None of this is a sign of a fake, but a detector takes for one what it has not heard: white noise 20 dB below speech, which is
no trouble to a listener, hid the high bands from one that knew recorded noises alone, and it called three in four people fake.
Genuine speech and fakes go through the same devices. Not of Li et al. 2022; distortions of the waveform for such detectors are
those of RawBoost (Tak et al. 2022, ICASSP), which has other ones.
"""

import numpy as np

CONTROLLED, OVERDRIVEN, HISSING = 0.3, 0.3, 0.8  # probabilities, each by itself
EXPONENT = (0.4, 0.9)  # of the level after control, to that before it
SECONDS = (0.02, 0.2)  # in which the level is measured
LIMIT = (0.2, 0.9)  # where it is overdriven, of the peak
SLOPE = (-6.0, 3.0)  # dB an octave of the hiss, from what falls over white to what rises
LEVEL_BELOW = 50.0  # Hz, below which it does not go on
SNR = (15.0, 50.0)  # dB


def recorded(samples: np.ndarray, rate: int, rng: np.random.Generator) -> np.ndarray:
    """Samples (N,) at `rate` Hz -> (N,) float32, of the same RMS but for the hiss. rng: numpy Generator, the only source of
    chance; what is drawn does not depend on the samples. Silence stays silence."""
    chosen, noise_rng = rng.random(3) < (CONTROLLED, OVERDRIVEN, HISSING), np.random.default_rng(rng.integers(2**63))
    seconds, exponent, limit, slope, snr = (rng.uniform(*limits) for limits in (SECONDS, EXPONENT, LIMIT, SLOPE, SNR))
    bend, rms = (clip_hard, clip_softly)[rng.integers(2)], root_mean_square(samples)
    heard = np.asarray(samples, dtype=np.float32)
    if rms == 0:
        return np.array(heard)
    if chosen[0]:
        heard = control_level(heard, max(1, round(seconds * rate)), exponent)
    if chosen[1]:
        heard = bend(heard, limit * float(np.abs(heard).max()))
    heard = heard * np.float32(rms / root_mean_square(heard))
    if chosen[2]:
        heard = heard + np.float32(rms * 10 ** (-snr / 20)) * hiss(noise_rng, len(heard), rate, slope)
    return np.array(heard, dtype=np.float32)


def control_level(samples: np.ndarray, size: int, exponent: float) -> np.ndarray:
    """Samples (N,) with the level of `size` samples around each to the power of `exponent`; below -60 dB of the highest level
    the gain is that of -60 dB."""
    from scipy.ndimage import uniform_filter1d

    level = np.sqrt(np.maximum(uniform_filter1d(np.square(samples, dtype=np.float64), size, mode="constant"), 0.0))
    highest = level.max()
    return (samples * (np.maximum(level, 1e-3 * highest) / highest) ** (exponent - 1.0)).astype(np.float32)


def clip_hard(samples: np.ndarray, limit: float) -> np.ndarray:
    return np.clip(samples, -limit, limit)


def clip_softly(samples: np.ndarray, limit: float) -> np.ndarray:
    return limit * np.tanh(samples / limit)


def hiss(rng: np.random.Generator, size: int, rate: int, slope: float) -> np.ndarray:
    """Gaussian noise (size,) float32 of unit power, whose spectrum rises by `slope` dB an octave from LEVEL_BELOW on."""
    from scipy.fft import irfft, next_fast_len, rfft, rfftfreq

    length = next_fast_len(size, real=True)
    spectrum = np.asarray(rfft(rng.standard_normal(length, dtype=np.float32)))
    octaves = np.log2(np.maximum(np.asarray(rfftfreq(length, 1 / rate)) / LEVEL_BELOW, 1.0))
    spectrum *= (10 ** (slope / 20 * octaves)).astype(np.float32)
    noise = np.asarray(irfft(spectrum, length))[:size]
    return noise / np.float32(root_mean_square(noise))


def power(samples: np.ndarray) -> float:
    """Mean square of samples (N,); 0 of none."""
    return float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0


def root_mean_square(samples: np.ndarray) -> float:
    return float(np.sqrt(power(samples)))
