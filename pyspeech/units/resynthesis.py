"""Speech in a voice of the inverter from codes, or from speech by way of its codes (Tjandra et al. 2020, section 4).

    samples -> VQ-VAE -> codes -> inverter, voice -> linear magnitudes -> Griffin-Lim -> samples, as loud as those

Up to WINDOW seconds of codes become speech as a whole. More do in windows of that length that overlap by OVERLAP
seconds; one goes over into the next where the overlap is quietest, within FADE seconds, as the phases of the two know
nothing of each other. The codes themselves are those of `encoding.encode`. The same input, voice and seed give the same
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.audio.level import Measured, rms
from pyspeech.units.encoding import encode_blocks
from pyspeech.units.griffin_lim import griffin_lim

if TYPE_CHECKING:
    from pyspeech.units.checkpoint import Bundle

WINDOW = 30.0  # seconds
OVERLAP = 2.0
FADE = 0.02
PEAK = 0.99  # of full scale; what would go beyond is made quieter as a whole


def resynthesize(
    vqvae: Bundle, inverter: Bundle, samples: np.ndarray, voice: str, seed: int = 0, name: str = "recording"
) -> np.ndarray:
    """Resynthesise samples (N,) float from -1 to 1 in the voice `voice`: (N,) float32, with the same timing and loudness.

    vqvae, inverter: the Bundles of a pair (checkpoint.load_pair); voice: one of inverter.speakers; samples: at
    vqvae.features.sampling_rate, as those returned. UserError for a voice that the inverter does not have, and where N
    is 0, which names what this is (`name`).
    """
    return resynthesize_blocks(vqvae, inverter, [samples], voice, seed, name=name)


def resynthesize_blocks(
    vqvae: Bundle,
    inverter: Bundle,
    blocks: Iterable[np.ndarray],
    voice: str,
    seed: int = 0,
    progress: Callable[[float], object] | None = None,
    name: str = "recording",
) -> np.ndarray:
    """Resynthesise the joined blocks, an iterable of samples (n,), in little memory; see `resynthesize`.

    progress: a function that is called with the share of the speech that is made, from 0 to 1.
    """
    inverter.speaker_index(voice)  # before the work
    audio = Measured(blocks)
    codes = encode_blocks(vqvae, audio, name)
    return match_level(speak(inverter, codes, voice, audio.count, seed, progress), audio.rms)


def speak(
    inverter: Bundle,
    codes: np.ndarray | torch.Tensor,
    voice: str,
    num_samples: int | None = None,
    seed: int = 0,
    progress: Callable[[float], object] | None = None,
) -> np.ndarray:
    """Speak codes (C,) int64, numpy or torch, at least one -> samples float32, at the level of the voice's training data.

    num_samples: of the result, with zeros where the codes end; None: the shifts of the codes' frames. progress: as of
    `resynthesize_blocks`.
    """
    speaker = inverter.speaker_index(voice)
    config, codes = inverter.features.magnitudes, torch.as_tensor(codes)
    # Samples a code.
    step: int = inverter.model.config.repeat * config.shift  # pyright: ignore[reportOperatorIssue, reportAssignmentType]
    size, overlap = (max(1, round(seconds * config.sampling_rate / step)) for seconds in (WINDOW, OVERLAP))
    speech = np.zeros(len(codes) * step + config.window, np.float32)
    for start in range(0, max(1, len(codes) - overlap), size - overlap):
        piece = _speak_window(inverter, codes[start : start + size], speaker, seed)
        _put(speech, start * step, piece, overlap * step if start else 0, round(FADE * config.sampling_rate))
        if progress is not None:
            progress(min(1.0, (start + size) / len(codes)))
    num_samples = len(codes) * step if num_samples is None else num_samples
    return np.pad(speech[:num_samples], (0, max(0, num_samples - len(speech))))


def match_level(samples: np.ndarray, level: float) -> np.ndarray:
    """The samples (N,) at a level of `level`, or less where their peak would go beyond PEAK; silence stays silence."""
    own = rms(samples)
    gain = level / own if own > 0 else 0.0
    peak = float(np.abs(samples).max(initial=0.0))
    return (samples * min(gain, PEAK / max(peak, 1e-9))).astype(np.float32)


def _speak_window(inverter, codes, voice, seed):
    """codes (n,) -> samples (n * repeat * shift + window,): a window more than the codes stand for."""
    device = inverter.model.codebook.device
    magnitudes = inverter.model.magnitudes(
        codes[None].to(device), torch.tensor([len(codes)], device=device), torch.tensor([voice], device=device)
    )[0]
    magnitudes = torch.cat([magnitudes, magnitudes[-1:]])  # so that none of the samples asked for lies beyond the end
    return griffin_lim(magnitudes, inverter.features.magnitudes, seed=seed).cpu().numpy()


def _put(speech, start, piece, overlap, fade):
    """Write `piece` into `speech` from sample `start` on, where `overlap` samples of the window before stand already.

    The change is in the middle half of the overlap, away from the ends of what each saw, where they are quietest.
    """
    if overlap == 0:
        speech[start : start + len(piece)] = piece
        return
    low, high = overlap // 4, 3 * overlap // 4
    energy = sum(np.square(part[low:high], dtype=np.float64) for part in (speech[start:], piece))
    sums = np.concatenate([[0.0], energy.cumsum()])  # pyright: ignore[reportAttributeAccessIssue]
    begin = low + int(np.argmin(sums[fade:] - sums[:-fade]))
    end = begin + fade
    angle = (np.arange(fade) + 0.5) / fade * (np.pi / 2)  # squares add up to 1: as what is unlike adds up in power
    faded = np.cos(angle) * speech[start + begin : start + end] + np.sin(angle) * piece[begin:end]
    speech[start + begin : start + end] = faded
    speech[start + end : start + len(piece)] = piece[end:]
