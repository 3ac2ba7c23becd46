"""Speech segments of an audio file in one call, for every system of this repository.

    detect = load_detector()
    found = detect("call.wav")            # found.segments: (n, 2) seconds

Files are read as streams: any sampling rate, hours of audio in bounded memory. By default the detector is the one that comes
with this package (shipped/README.md): turns, or words with point="words". The statistical system needs no model. A further
network is a folder as the recipe fearless leaves it: `model.pt`, with the threshold and the smoothing that were best
on the development set; or the ONNX file that utils/export_onnx.py makes of it, which needs no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.audio.level import STEP, Watched
from pyspeech.errors import UserError
from pyspeech.files import atomic_write, format_of
from pyspeech.model_file import ONNX_FILE
from pyspeech.sad.config import SECONDS, OperatingPoint, StatisticalConfig
from pyspeech.sad.formats import FORMATS, render
from pyspeech.sad.registry import NETWORKS
from pyspeech.sad.segments import decided_segments

if TYPE_CHECKING:
    import torch

    from pyspeech.sad.decoding import Scorer

STATISTICAL = {"statistical": True, "statistical_plain": False}  # whether it looks at the voicing; the paper's does not
SHIPPED = Path(__file__).parent / "shipped" / "detector.onnx"  # made by the recipe detector
BUNDLED = {"shipped": SHIPPED, "causal": SHIPPED.with_name("causal.onnx")}  # the second by its profile causal
SYSTEMS = (*BUNDLED, *STATISTICAL, *NETWORKS)
SHORTEST_LIMIT = 0.1  # seconds: what limits segments is to hold some frames
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Speech:
    """The speech found in a recording.

    Attributes:
        segments: float64 (n, 2), start and end of each in seconds, in order.
        duration: Seconds of the recording.
        scores: float32 (T,), one every `frame_shift` seconds; higher is speech. Log-likelihood ratios of the statistical
            system, 0 to 1 of a network.
        frame_shift: Seconds from frame to frame.
        frame_offset: Seconds at which the time begins that the first score stands for.
        name: Of the recording: the stem of its file.
    """

    segments: np.ndarray
    duration: float
    scores: np.ndarray
    frame_shift: float
    frame_offset: float = 0.0
    name: str = "recording"

    def save(self, path: str | Path, format: str | None = None, scores: bool = False) -> None:
        """Write the segments to a file, whole or not at all.

        Args:
            path: The file.
            format: One of pyspeech.sad.formats.FORMATS (rttm, fearless, segments, audacity, json, textgrid, csv, lhotse); by
                default the one of the file's ending: .labels.txt is audacity, another .txt fearless.
            scores: Keep the frame scores too, which json can.

        Raises:
            UserError: for an ending or a format that is none of these, or without a place for scores.
        """
        chosen = format_of(path, {name: ending for name, (_, ending) in FORMATS.items()}, format)
        if scores and chosen != "json":
            raise UserError(f"{path}: format {chosen} has no place for frame scores; expected json")
        kept = self.scores if scores else None
        text = render(chosen, self.name, self.segments, self.duration, self.frame_shift, kept, frame_offset=self.frame_offset)
        with atomic_write(path) as stream:
            stream.write(text)


@dataclass(frozen=True)
class Detector:
    """A detector as `load_detector` gives it. decide: blocks of samples -> (decisions (T,), scores (T,), shift, offset)."""

    decide: Callable[..., tuple[np.ndarray, np.ndarray, float, float]]
    sampling_rate: int
    point: OperatingPoint

    def __call__(
        self, path: str | Path, channel: int | None = None, start: float = 0.0, duration: float | None = None
    ) -> Speech:
        """Detect the speech in a file, or a part of it; arguments as of `pyspeech.audio.io.stream_audio`."""
        blocks = stream_audio(path, self.sampling_rate, channel, start=start, duration=duration)
        name = "standard input" if str(path) == "-" else str(path)
        return replace(self.detect_blocks(blocks, name), name=Path(path).stem)

    def detect_blocks(self, blocks: Iterable[np.ndarray], name: str = "recording") -> Speech:
        """Detect the speech in blocks (n,) at `sampling_rate`, in bounded memory. name: for messages."""
        audio = Watched(blocks)
        try:
            decisions, scores, shift, offset = self.decide(audio)
        except UserError as error:
            if error is audio.error:  # of reading, which names its file
                raise
            raise UserError(f"{name}: {error}") from None
        if audio.peak <= STEP and not decisions.any():
            log.warning("%s: silent", name)
        seconds = audio.count / self.sampling_rate
        segments = decided_segments(decisions, self.point, shift, seconds, offset, scores)
        return Speech(segments, seconds, scores.astype(np.float32), shift, offset, name)


def load_detector(
    system: str | None = None,
    model: str | Path | None = None,
    threshold: float | None = None,
    point: str | None = None,
    device: str | torch.device = "auto",
    **tidying: float | None,
) -> Detector:
    """Load a detector: `detect(path, channel=None, start=0.0, duration=None)` -> Speech.

    system: one of SYSTEMS; None takes the network that the model holds, "shipped" without one; "causal" is the bundled network
    that decides within 0.3 s. model: the folder of a trained network, or its model.pt, or an ONNX file; of a folder with both,
    ONNX is taken. point: the name of one of the model's operating points; None takes its first. threshold: of the scores,
    instead of the system's own (0 for log-likelihood ratios). device: as of `SpeechDetector`. tidying: other fields of an
    OperatingPoint, instead of the operating point's own.
    path, channel, start and duration are as `pyspeech.audio.io.stream_audio` takes them. UserError where the network is
    missing or of another system, and for a threshold that is no number; those of `detect` begin with the path, and it
    warns of silence.
    """
    found, chosen = choose_system(system, model, threshold, point, device, **tidying)
    if isinstance(found, StatisticalConfig):
        return Detector(partial(_by_statistics, found, chosen.threshold), found.sampling_rate, chosen)
    return Detector(partial(_by_network, found, chosen), found.stft_config.sampling_rate, chosen)


def choose_system(
    system: str | None,
    model: str | Path | None,
    threshold: float | None,
    point: str | None,
    device: str | torch.device,
    **tidying: float | None,
) -> tuple[StatisticalConfig | Scorer, OperatingPoint]:
    """The options of a statistical system, or what scores for a network, and the operating point; arguments as of
    `load_detector`."""
    if system in STATISTICAL:
        points = {"default": OperatingPoint(0.0)}
        for name in ("peak", "brief_peak"):
            if tidying.get(name):
                raise UserError(f"{name} {tidying[name]}: the statistical system has none; expected a network")
        chosen = choose_point(system, points, point, threshold=threshold, **tidying)
        return StatisticalConfig(voicing=STATISTICAL[system]), chosen
    given = {"threshold": threshold, "peak": tidying.get("peak"), "brief_peak": tidying.get("brief_peak")}
    for name, value in given.items():
        if value is not None and not 0 <= _number(name, value) <= 1:
            raise UserError(f"{name} {value:g}: expected 0 to 1, as the scores of networks are")
    scorer, points = find_scorer(system, model, device)
    return scorer, choose_point(model or BUNDLED[system or "shipped"], points, point, threshold=threshold, **tidying)


def find_scorer(
    system: str | None, model: str | Path | None, device: str | torch.device
) -> tuple[Scorer, dict[str, OperatingPoint]]:
    """`load_scorer` of the network that `load_detector` is asked for."""
    if system is not None and system not in SYSTEMS:
        raise UserError(f"system '{system}'; expected one of {', '.join(SYSTEMS)}")
    if system in BUNDLED and model is not None:
        raise UserError(f"system '{system}' has a model of its own; expected none, found {model}")
    if model is None:
        if system not in (None, *BUNDLED):
            raise UserError(f"system '{system}': expected the folder of a trained network")
        system, model = None, BUNDLED[system or "shipped"]
    scorer, points = load_scorer(model, device)
    found = scorer.network.temporal
    if system not in (None, found):
        raise UserError(f"{model}: holds a {found} network, not {system}; use --system {found} or another folder")
    return scorer, points


def load_scorer(model: str | Path, device: str | torch.device = "auto") -> tuple[Scorer, dict[str, OperatingPoint]]:
    """Load the scorer of a model (see `load_detector`) and its operating points, the default first."""
    path = Path(model)
    exported = path if path.suffix == ".onnx" else path / ONNX_FILE
    if exported == path or exported.is_file():
        from pyspeech.compat import check_device
        from pyspeech.sad.onnx_network import OnnxNetwork

        check_device(device)
        network = OnnxNetwork(exported)
        return network, network.points
    from pyspeech.compat import named_device
    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.piece_network import scoring_network

    trained = load_model(path, named_device(device, "device"))
    own = OperatingPoint(trained.threshold, trained.smoothing)  # pyright: ignore[reportArgumentType]
    return scoring_network(trained), {"default": own}  # pyright: ignore[reportReturnType]


def choose_point(
    model: object, points: dict[str, OperatingPoint], name: str | None = None, **changes: float | None
) -> OperatingPoint:
    """The operating point of that name, or else the first; with what is given (not None) in place of its own. With a threshold
    that is given, speech is all that scores more: no peak."""
    if name is not None and name not in points:
        raise UserError(f"operating point '{name}': expected one of {', '.join(points)}, those of {model}")
    given = {field: value for field, value in changes.items() if value is not None}
    for field, value in given.items():
        if np.isnan(_number(field, value)):
            raise UserError(f"{field} nan: expected a number")
        if field in SECONDS and not 0 <= value < np.inf:
            raise UserError(f"{field} {value:g}: expected seconds, 0 or more")
    if 0 < given.get("max_speech", 0) < SHORTEST_LIMIT:
        raise UserError(f"max_speech {given['max_speech']:g}: expected at least {SHORTEST_LIMIT:g} s, or 0 for no limit")
    if "threshold" in given:
        given.setdefault("peak", 0.0)
    if "peak" in given:
        given = {"brief_peak": None, **given}
    if "pad" in given:
        given = {"pad_before": None, "pad_after": None, **given}
    return replace(points[name or next(iter(points))], **given)  # pyright: ignore[reportArgumentType]


def _number(name, value):
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        raise UserError(f"{name} {value!r}: expected a number")
    return value


def _by_statistics(config, threshold, blocks):
    from pyspeech.sad.statistical import detect_stream

    found = detect_stream(blocks, config, threshold)
    return found.decisions, found.llr, config.frame_shift, 0.0


def _by_network(scorer, point, blocks):
    from pyspeech.sad.decoding import score_stream
    from pyspeech.sad.smoothing import decide_at

    scores = score_stream(scorer, blocks)
    stft = scorer.stft_config
    return decide_at(scores, point, stft.frame_shift), scores, stft.frame_shift, stft.frame_offset
