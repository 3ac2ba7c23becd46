"""Audio to codes with a trained VQ-VAE (Tjandra et al. 2020, section 3.1), of any length, in bounded memory.

A recording of up to WINDOW seconds is encoded as a whole, as an utterance is in training. A longer one is encoded in
windows of that length, each as if it were an utterance of its own: its features are normalised within it and attention
sees nothing else. Neighbouring windows overlap by twice MARGIN seconds, of which each keeps the half that is farther
from its end. So

- up to WINDOW seconds the codes are exactly those of the whole;
- beyond that a code is exactly what its window alone has there, with at least MARGIN seconds seen on either side; what
  the whole recording would give may differ, as what attention and normalisation see differs;
- there are as many codes as of the whole, at the same times, and they do not depend on the blocks the audio comes in.

Code n stands for the features' frames [n * stride, (n + 1) * stride): 40 ms from n * 40 ms on with the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.errors import UserError
from pyspeech.features.mfcc import compute_features

if TYPE_CHECKING:
    from pyspeech.units.checkpoint import Bundle

WINDOW = 60.0  # seconds
MARGIN = 2.0


def encode(bundle: Bundle, samples: np.ndarray, name: str = "recording") -> tuple[np.ndarray, np.ndarray]:
    """Encode samples (N,) float from -1 to 1, at bundle.features.sampling_rate -> codes (C,) int64, vectors (C, D) float32.

    bundle: Bundle of a VQ-VAE (checkpoint.py). C is bundle.model.config.num_codes(bundle.features.num_frames(N)), at
    least 1. The arrays are numpy's. UserError where N is 0, which names what this is (`name`).
    """
    codes = encode_blocks(bundle, [samples], name)
    return codes, bundle.model.codebook.cpu().numpy()[codes]  # pyright: ignore[reportCallIssue]


def encode_blocks(bundle: Bundle, blocks: Iterable[np.ndarray], name: str = "recording") -> np.ndarray:
    """The codes alone of the joined blocks, an iterable of samples (n,); no more than a window and a block are kept."""
    return np.concatenate([_encode_window(bundle, samples)[kept] for samples, kept in _windows(bundle, blocks, name)])


def code_times(bundle: Bundle, num_codes: int, num_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts (C,), ends (C,)) of the codes in seconds; they follow each other without gaps, from 0 to the audio's end.

    num_codes: as `encode` gives for num_samples samples. The last code ends with the audio, whose last frame's window
    reaches farther than the frames do.
    """
    starts = np.arange(num_codes) * code_seconds(bundle)
    return starts, np.append(starts[1:], num_samples / bundle.features.sampling_rate)


def code_seconds(bundle: Bundle) -> float:
    """Seconds from code to code."""
    return bundle.features.frame_seconds * bundle.model.config.stride  # pyright: ignore[reportOperatorIssue, reportReturnType]


def _encode_window(bundle, samples):
    device = bundle.model.codebook.device
    features = compute_features(samples, bundle.features, bundle.stats)
    codes, _ = bundle.model.encode(features[None].to(device), torch.tensor([len(features)], device=device))
    return codes[0].cpu().numpy()


def _windows(bundle, blocks, name):
    """Yield (samples of a window, the slice of its codes that count); all but the last have equally many codes."""
    config, stride = bundle.features, bundle.model.config.stride
    size, margin = (max(1, round(seconds / code_seconds(bundle))) for seconds in (WINDOW, MARGIN))
    shift = config.magnitudes.shift
    length = (size * stride - 1) * shift + config.magnitudes.window  # just the samples of so many codes
    waiting, first = np.zeros(0, np.float32), 0
    for block in blocks:
        waiting = np.concatenate([waiting, np.asarray(block, dtype=np.float32)])
        while config.num_frames(len(waiting)) > size * stride:
            yield waiting[:length], slice(first, size - margin)
            waiting, first = waiting[(size - 2 * margin) * stride * shift :], margin
    if len(waiting) == 0:
        raise UserError(f"{name}: no samples at {config.sampling_rate} Hz; expected at least one")
    yield waiting, slice(first, None)
