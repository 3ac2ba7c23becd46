"""Similarity of resynthesised speech to a sentence and to a voice, without listeners; for comparisons, not for quality.

Mel-cepstral distortion (Kubichek 1993) is taken after dynamic time warping, to the target speaker's own recording of
the sentence. The cepstra are of 40 mel filters' log energies (pyspeech.features.fbank), the first 13 but for C0, the
level; pauses are left out. Figures of the literature are mostly of WORLD's spectral envelope and 24 cepstra, so not the
same. On the TIMIT sentences that NLTK brings it is 0.2 dB after Griffin-Lim from the right magnitudes, 3.4 dB between
two speakers of one sentence and 4.3 dB between speakers of different sentences.

A voice is a Gaussian with a full covariance over the voiced frames of a speaker's training recordings: 12 cepstra
(pyspeech.features.mfcc, without C0) and the logarithm of the fundamental frequency. A recording is nearer to the voice
under which its voiced frames are likelier on average. What the recordings of a speaker have in common, such as a
microphone, is part of the voice. How far to trust this shows on natural recordings left out of the training: of the ten
speakers in those TIMIT sentences, two each left out, 20 of 20 are likeliest under their own speaker.

With the package Resemblyzer there is a second opinion: a network's embeddings of speakers (Wan et al. 2018).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from pyspeech.audio.level import rms
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.fbank import fbank
from pyspeech.features.mfcc import mfcc
from pyspeech.features.pitch import fundamental_frequency
from pyspeech.units.abx_distances import dtw

RATE = 16000
SPECTRUM = MfccConfig(mel_filters=40)  # of the distortion
VOICE = MfccConfig()
LEVEL = 10 ** (-30 / 20)  # root mean square that all recordings are brought to: Resemblyzer's
PAUSE = 40.0  # dB below the loudest frame, from where on a frame is a pause
MIN_FRAMES = 50  # voiced, half a second, for the statistics of a voice
SHRINKAGE = 0.01  # of the covariance towards its diagonal


class Voice(NamedTuple):
    """mean (13,), covariance (13, 13), float64: 12 cepstra and log Hz; frames: how many voiced ones these are from."""

    mean: np.ndarray
    covariance: np.ndarray
    frames: int

    @property
    def pitch(self) -> float:
        """Hz, the geometric mean."""
        return math.exp(self.mean[-1])


# A sentence


def mel_cepstral_distortion(samples: np.ndarray, reference: np.ndarray) -> float:
    """Mel-cepstral distortion of two recordings of a sentence, samples (N,) and (M,) at RATE: dB, 0 or more, a mean over the
    frames of the path.

    UserError where one of the two is silent throughout.
    """
    first, second = spectrum_frames(samples), spectrum_frames(reference)
    for frames, name in ((first, "the first"), (second, "the second")):
        if len(frames) == 0:
            raise UserError(f"mel-cepstral distortion: {name} of two recordings is silent; expected speech in both")
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1) - 2 * first @ second.T
    local = 10 / math.log(10) * np.sqrt(2 * np.maximum(squares, 0))
    heights, widths = (np.array([size]) for size in local.shape)
    return float(dtw(local.reshape(-1, 1), heights, widths, local.shape[1])[0, 0])


def spectrum_frames(samples: np.ndarray) -> np.ndarray:
    """Compute mel cepstra c_1, c_2, ... of the log amplitude, without pauses: samples (N,) at RATE -> (F, 12) float64.

    log amplitude = c_0 + 2 sum_d c_d cos(...), so that 2 sum_d c_d^2 is the mean square of what they stand for.
    """
    samples = _at_level(samples)
    log_energies = fbank(samples, SPECTRUM.log_mel).double().numpy()
    if not samples.any():
        return np.zeros((0, SPECTRUM.cepstra - 1))
    level = 10 / math.log(10) * np.log(np.exp(log_energies).sum(axis=1))
    log_amplitudes = log_energies[level > level.max() - PAUSE] / 2
    filters = log_energies.shape[1]
    waves = np.cos(np.pi / filters * np.outer(np.arange(filters) + 0.5, np.arange(1, SPECTRUM.cepstra)))
    return log_amplitudes @ waves / filters


def _at_level(samples):
    """samples (N,) -> float32, without offset, at one level for all: quiet ones must not meet a floor."""
    samples = np.asarray(samples, dtype=np.float32)
    level = rms(samples)
    return (samples - samples.mean()) * np.float32(LEVEL / level) if level else np.zeros_like(samples)


# A voice


def fit_voice(recordings: Iterable[np.ndarray]) -> Voice:
    """The Voice of recordings, an iterable of samples (N,) at RATE. UserError where they have too few voiced frames."""
    parts = [voice_frames(samples) for samples in recordings]
    frames = np.concatenate(parts) if parts else np.zeros((0, VOICE.cepstra))
    if len(frames) < MIN_FRAMES:
        raise UserError(
            f"{len(frames)} voiced frames in {len(parts)} recordings; expected at least {MIN_FRAMES} "
            "for the statistics of a voice"
        )
    covariance = np.cov(frames.T)
    covariance += SHRINKAGE * (np.diag(np.diag(covariance)) - covariance)
    return Voice(frames.mean(axis=0), covariance, len(frames))


def voice_frames(samples: np.ndarray) -> np.ndarray:
    """Compute the cepstra C1 to C12 and the logarithm of Hz of voiced frames: samples (N,) at RATE -> (V, 13) float64."""
    signal = torch.from_numpy(_at_level(samples))
    frequency = fundamental_frequency(signal, VOICE.log_mel).double()
    frames = torch.cat([mfcc(signal, VOICE).double()[:, 1:], frequency.clamp(min=1).log()[:, None]], dim=1)
    return frames[frequency > 0].numpy()


def log_likelihoods(samples: np.ndarray, voices: Mapping[str, Voice]) -> dict[str, float] | None:
    """Score samples (N,) at RATE by voices {name: Voice}: {name: mean log likelihood of a voiced frame}; None without any."""
    frames = voice_frames(samples)
    if len(frames) == 0:
        return None
    return {name: _mean_log_likelihood(frames, voice) for name, voice in voices.items()}


def _mean_log_likelihood(frames, voice):
    root = np.linalg.cholesky(voice.covariance)
    whitened = np.linalg.solve(root, (frames - voice.mean).T)
    constant = len(voice.mean) * math.log(2 * math.pi) + 2 * np.log(np.diag(root)).sum()
    return float(-0.5 * (np.square(whitened).sum(axis=0).mean() + constant))


# A second opinion


def load_embedder() -> Callable[[np.ndarray], np.ndarray | None] | None:
    """Load embed(samples (N,) at RATE) -> (256,) float32 of length 1, by Resemblyzer, or None for a recording without
    speech.

    None where Resemblyzer is not installed, ImportError where it is but does not load. Two recordings are as alike in
    voice as the product of their embeddings is near to 1.
    """
    try:
        import resemblyzer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if error.name == "resemblyzer":
            return None
        raise
    encoder = resemblyzer.VoiceEncoder("cpu", verbose=False)

    def embed(samples):
        samples = _at_level(samples)
        # Without its long pauses, as the network was trained. Silence would have an embedding too.
        speech = resemblyzer.trim_long_silences(samples) if len(samples) >= RATE // 10 and samples.any() else ()
        return encoder.embed_utterance(speech) if len(speech) else None

    return embed


def centroid(embeddings: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """The direction of the mean of embeddings, an iterable of (256,) or None, which are left out; None without any."""
    known = [embedding for embedding in embeddings if embedding is not None]
    if not known:
        return None
    total = np.sum(known, axis=0)
    return total / np.linalg.norm(total)
