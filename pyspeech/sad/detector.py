"""One call from an audio file to its speech segments, for every system of this repository.

    detect = load_detector("statistical")
    found = detect("call.wav")            # found.speech: (n, 2) seconds

Files are read as streams: any sampling rate, hours of audio in bounded memory. The statistical system needs no model. A
network is a folder as egs/fearless/run.py leaves it: `model.pt`, with the threshold and the smoothing that were best
on the development set.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.audio.level import STEP, Watched
from pyspeech.errors import UserError
from pyspeech.sad.segments import frames_to_segments

NETWORKS = ("cnn", "rnn", "seg_rnn")
SYSTEMS = ("statistical", *NETWORKS)
log = logging.getLogger(__name__)


@dataclass
class SpeechFound:
    """What a detector found in a recording.

    speech: float64 (n, 2), seconds. duration: seconds. scores: float32 (T,), one every frame_shift seconds. Scores are
    log-likelihood ratios of the statistical system, and between 0 and 1 of a network; higher is speech. The time that the
    first stands for begins at frame_offset.
    """

    speech: np.ndarray
    duration: float
    scores: np.ndarray
    frame_shift: float
    frame_offset: float = 0.0


def load_detector(
    system: str = "statistical", model: str | Path | None = None, threshold: float | None = None
) -> Callable[..., SpeechFound]:
    """Return a function `detect(path, channel=None, start=0.0, duration=None)` -> SpeechFound.

    system: one of SYSTEMS. model: the folder of a trained network, or the model.pt in it. threshold: of the scores;
    None keeps the system's own (0 for log-likelihood ratios; for a network, what was best on its development set).
    path, channel, start and duration are as `pyspeech.audio.io.stream_audio` takes them. UserError where the network is
    missing or of another system, and for a threshold that is no number; those of `detect` begin with the path, and it
    warns of silence.
    """
    if threshold is not None and np.isnan(threshold):
        raise UserError("threshold nan: expected a number")
    if system == "statistical":
        from pyspeech.sad.config import StatisticalConfig

        config = StatisticalConfig()
        return partial(_detect, partial(_by_statistics, config, 0.0 if threshold is None else threshold), config.sampling_rate)
    if system not in NETWORKS:
        raise UserError(f"system '{system}'; expected one of {', '.join(SYSTEMS)}")
    if model is None:
        raise UserError(f"system '{system}': expected the folder of a trained network")
    from pyspeech.compat import default_device
    from pyspeech.sad.checkpoint import load_model

    network = load_model(model, default_device())
    if network.config.temporal != system:
        raise UserError(
            f"{model}: holds a {network.config.temporal} network, not {system}; use --system "
            f"{network.config.temporal} or another folder"
        )
    return partial(
        _detect,
        partial(_by_network, network, network.threshold if threshold is None else threshold),
        network.stft.config.sampling_rate,
    )


def _detect(decide, sampling_rate, path, channel=None, start=0.0, duration=None):
    """decide(blocks of samples) gives frame decisions (T,), scores (T,), the shift and the offset of the frames."""
    audio = Watched(stream_audio(path, sampling_rate, channel, start=start, duration=duration))
    try:
        decisions, scores, shift, offset = decide(audio)
    except UserError as error:
        name = "standard input" if str(path) == "-" else str(path)
        if str(error).startswith(name):
            raise
        raise UserError(f"{name}: {error}") from None
    if audio.peak <= STEP and not decisions.any():
        log.warning(
            "%s: silent%s",
            path,
            ""
            if channel is not None
            else " (if it has channels that cancel each other when mixed, choose one of them with --channel)",
        )
    seconds = audio.count / sampling_rate
    speech = frames_to_segments(decisions, shift, seconds, offset)
    return SpeechFound(speech, seconds, scores.astype(np.float32), shift, offset)


def _by_statistics(config, threshold, blocks):
    from pyspeech.sad.statistical import detect_stream

    found = detect_stream(blocks, config, threshold)
    return found.decisions, found.llr, config.frame_shift, 0.0


def _by_network(network, threshold, blocks):
    from pyspeech.sad.decoding import score_stream
    from pyspeech.sad.smoothing import decide

    scores = score_stream(network, blocks)
    stft = network.stft.config
    return decide(scores, threshold, network.smoothing), scores, stft.frame_shift, stft.frame_offset
