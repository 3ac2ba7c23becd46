"""One call from an audio file to its speech segments, for every system of this repository.

    detect = load_detector("statistical")
    found = detect("call.wav")            # found.speech: (n, 2) seconds

Files are read as streams: any sampling rate, hours of audio in bounded memory. The statistical system needs no model. A
network is a folder as egs/fearless/run.py leaves it: `model.pt`, with the threshold and the smoothing that were best
on the development set.
"""
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.errors import UserError
from pyspeech.sad.segments import frames_to_segments

NETWORKS = ("cnn", "rnn", "seg_rnn")
SYSTEMS = ("statistical", *NETWORKS)


@dataclass
class SpeechFound:
    """What a detector found in a recording.

    speech: float64 (n, 2), seconds. duration: seconds. scores: float32 (T,), one every frame_shift seconds. Scores are
    log-likelihood ratios of the statistical system, and between 0 and 1 of a network; higher is speech.
    """
    speech: np.ndarray
    duration: float
    scores: np.ndarray
    frame_shift: float


def load_detector(system="statistical", model=None, threshold=None):
    """Return a function `detect(path, channel=None, start=0.0, duration=None)` -> SpeechFound.

    system: one of SYSTEMS. model: the folder of a trained network. threshold: of the scores; None keeps the system's
    own (0 for log-likelihood ratios; for a network, what was best on its development set). path, channel, start and
    duration are as `pyspeech.audio.io.stream_audio` takes them. UserError where the network is missing or of another
    system, and for a threshold that is no number.
    """
    if threshold is not None and np.isnan(threshold):
        raise UserError("threshold nan: expected a number")
    if system == "statistical":
        return partial(_detect_statistical, 0.0 if threshold is None else threshold)
    if system not in NETWORKS:
        raise UserError(f"system '{system}'; expected one of {', '.join(SYSTEMS)}")
    if model is None or not Path(model).is_dir():
        raise UserError(f"model folder {model}: there is none; expected a trained {system} network, as "
                        f"egs/fearless/run.py leaves it in egs/fearless/exp/NAME/{system}")
    folder = Path(model)
    from pyspeech.compat import default_device
    from pyspeech.sad.decoding import load_model
    network = load_model(folder, default_device())
    if network.config.temporal != system:
        raise UserError(f"{folder}: holds a {network.config.temporal} network, not {system}; use --system "
                        f"{network.config.temporal} or another folder")
    threshold = network.threshold if threshold is None else threshold
    return partial(_detect_by_network, network, threshold, network.smoothing)


def newest_model(system, experiments):
    """The folder of the newest network of `system` with a tuned threshold: `experiments`/*/<system>."""
    found = sorted(Path(experiments).glob(f"*/{system}/model.pt"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UserError(f"no trained {system} network in {experiments}/*/{system}; train one with egs/fearless/run.py, "
                        "or name a folder with --model")
    return found[-1].parent


def _detect_statistical(threshold, path, channel=None, start=0.0, duration=None):
    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.statistical import detect_stream
    config = StatisticalConfig()
    audio = _Counted(stream_audio(path, config.sampling_rate, channel, start=start, duration=duration))
    found = detect_stream(audio, config, threshold)
    seconds = audio.samples / config.sampling_rate
    speech = frames_to_segments(found.decisions, config.frame_shift, seconds)
    return SpeechFound(speech, seconds, found.llr.astype(np.float32), config.frame_shift)


def _detect_by_network(network, threshold, smoothing, path, channel=None, start=0.0, duration=None):
    from pyspeech.sad.decoding import score_stream
    from pyspeech.sad.smoothing import decide
    features = network.stft.config
    audio = _Counted(stream_audio(path, features.sampling_rate, channel, start=start, duration=duration))
    scores = score_stream(network, audio)
    seconds = audio.samples / features.sampling_rate
    speech = frames_to_segments(decide(scores, threshold, smoothing), features.frame_shift, seconds)
    return SpeechFound(speech, seconds, scores, features.frame_shift)


class _Counted:
    """The blocks of an iterable, and how many samples they had."""

    def __init__(self, blocks):
        self._blocks, self.samples = blocks, 0

    def __iter__(self):
        for block in self._blocks:
            self.samples += len(block)
            yield block
