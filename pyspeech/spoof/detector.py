"""Scores of audio of any length and sampling rate by a trained detector.

    detector = load_model(folder)                       # pyspeech.spoof.checkpoint
    score = score_samples(detector, samples, rate)      # log odds, higher is genuine
    detector.calibration.log_likelihood_ratio(score)    # as in the recipe's score files
    detector.calibration.probability(score)             # of being genuine

What is shorter than the pieces of training is filled up as there; of what is longer than a window (CropConfig.whole), the
score is the mean over windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.pieces import prepared, windows

if TYPE_CHECKING:
    from pyspeech.spoof.networks import DetectorNetwork
    from pyspeech.spoof.onnx_network import OnnxNetwork

BATCH = 16  # windows that are scored together


@dataclass
class Detector:
    """model: DetectorNetwork, in evaluation mode, or its ONNX form; crop: CropConfig of its training; threshold: what scores it
    or more counts as genuine (the one of equal error rates on the development set)."""

    model: Any
    crop: CropConfig
    calibration: Calibration
    threshold: float = 0.0

    @property
    def sampling_rate(self) -> int:
        return self.model.sampling_rate


def score_samples(detector: Detector, samples: np.ndarray, rate: int) -> float:
    """The mean log odds of genuine speech over the windows of samples (N,) float at `rate` Hz.

    UserError where there are none, or so few that resampling leaves none.
    """
    samples = np.asarray(samples, dtype=np.float32)
    if rate != detector.sampling_rate:
        import soxr

        samples = soxr.resample(samples, rate, detector.sampling_rate)
    _, scores = score_blocks(detector, [samples])
    if len(scores) == 0:
        raise UserError("no samples, or none but digital silence: there is nothing to score")
    return float(scores.mean())


def score_blocks(detector: Detector, blocks: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(starts and ends (W, 2) in seconds, log odds (W,)) of the windows of an utterance in blocks (n,) of any lengths.

    The blocks have the detector's sampling rate, as `stream_audio` gives them: hours in little memory. No samples
    have no window, and neither has digital silence where it is cut out.
    """
    limits = []

    def pieces():
        for start, end, piece in windows(blocks, detector.crop):
            limits.append((start, end))
            yield piece

    scores = np.fromiter(score_pieces(detector.model, pieces()), dtype=np.float64)
    return np.array(limits).reshape(-1, 2) / detector.sampling_rate, scores


def score_utterances(model: DetectorNetwork, crop: CropConfig, utterances: Iterable[np.ndarray]) -> np.ndarray:
    """Scores (U,) of an iterable of utterances, samples (N,) at the model's rate, N at least 1, in common batches."""
    counts = []

    def pieces():
        for samples in utterances:
            found = [piece for _, _, piece in windows([samples], crop)] or [prepared(samples[: crop.samples], crop)]  # silence
            counts.append(len(found))
            yield from found

    scores = np.fromiter(score_pieces(model, pieces()), dtype=np.float64)
    return np.add.reduceat(scores, np.cumsum([0, *counts[:-1]])) / counts if counts else scores


def score_pieces(model: DetectorNetwork | OnnxNetwork, pieces: Iterable[np.ndarray]) -> Iterator[float]:
    """Yield the log odds of pieces (N,) float32; those of one length that follow each other are scored together."""
    for _, alike in itertools.groupby(pieces, key=len):
        while batch := list(itertools.islice(alike, BATCH)):
            yield from model.score_batch(np.stack(batch))
