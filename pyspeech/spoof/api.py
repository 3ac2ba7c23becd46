"""Fake audio detection in one call.

    score = FakeDetector().score("message.ogg")
    print(score.decision, score.p_genuine())
    score.save("message.json")

The bundled detector (shipped/README.md) needs no PyTorch. Its accuracy is limited: compare scores of recordings made alike.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pyspeech.audio.sound import Sound
from pyspeech.errors import UserError, naming_extras
from pyspeech.files import atomic_write, format_of

if TYPE_CHECKING:
    import numpy as np
    import torch

    from pyspeech.audio.inputs import AudioInput

FORMATS = {"text": ".txt", "json": ".json", "csv": ".csv", "scores": ".scores"}
HEADER = ["recording", "decision", "p_genuine", "p_fake", "score", "threshold", "seconds", "prior", "notes", "path"]


@dataclass(frozen=True)
class FakeScore:
    """Score of a recording: how likely it is genuine.

    Attributes:
        name: Of the recording.
        score: Log-likelihood ratio (natural logarithm) of genuine against fake speech; higher is genuine.
        threshold: Score from which a recording counts as genuine.
        duration: Seconds of the recording.
        windows: (start and end in seconds, score) of each window that the score is the mean of.
        notes: What makes the score less certain: "short" (under 2 s of sound; the score is then adjusted for that),
            "nothing above 4 kHz" (as over the telephone).
        path: Of the file; "" for audio in memory.
    """

    name: str
    score: float
    threshold: float
    duration: float
    windows: list[tuple[float, float, float]]
    notes: tuple[str, ...] = ()
    path: str = ""

    @property
    def decision(self) -> str:
        """ "genuine" or "fake"."""
        return "genuine" if self.score >= self.threshold else "fake"

    @property
    def segments(self) -> list[tuple[float, float, float]]:
        """Scores of parts between the edges of windows: (start and end in seconds, score), the mean over the windows that
        cover a part."""
        from pyspeech.spoof.segments import timeline

        return timeline(self.windows)

    @property
    def prior(self) -> float:
        """Prior probability of a genuine recording for which the threshold is optimal."""
        return _logistic(-self.threshold)

    def p_genuine(self, prior: float | None = None) -> float:
        """Probability that the recording is genuine if a share of `prior` (0 to 1, both excluded) of all is.

        None: the `prior` of the threshold, with which the decision is "genuine" from 0.5 on.
        """
        return _logistic(self.score - (self.threshold if prior is None else threshold_of(prior)))

    def with_prior(self, prior: float) -> FakeScore:
        """Return the score with the best threshold if a share of `prior` of all recordings is genuine."""
        return replace(self, threshold=threshold_of(prior))

    def as_dict(self) -> dict[str, Any]:
        """The fields of HEADER, and the windows."""
        genuine = self.p_genuine()
        values = (self.name, self.decision, genuine, 1 - genuine, self.score, self.threshold, self.duration, self.prior)
        windows = [list(window) for window in self.windows]
        return {**dict(zip(HEADER, (*values, list(self.notes), self.path), strict=True)), "windows": windows}

    def save(self, path: str | Path, format: str | None = None, prior: float | None = None) -> None:
        """Write the score to a file: format "text", "json", "csv" or "scores", by default that of the file's ending (.txt,
        .json, .csv, .scores). prior: as of `with_prior`. UserError for any other."""
        chosen = format_of(path, FORMATS, format)
        with atomic_write(path) as stream:
            stream.write(render([self if prior is None else self.with_prior(prior)], chosen))


def threshold_of(prior: float) -> float:
    """Threshold of log-likelihood ratios if a share of `prior` of all recordings is genuine."""
    if not 0 < prior < 1:
        raise UserError(f"prior {prior}: expected the probability of genuine speech, more than 0 and less than 1")
    return math.log1p(-prior) - math.log(prior)


def _logistic(value):
    return 0.5 * (1 + math.tanh(0.5 * value))


def render(scores: Iterable[FakeScore], format: str) -> str:
    """Return the text of scores in one of FORMATS."""
    rows = [score.as_dict() for score in scores]
    if format == "json":
        return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    lines = [csv_line(HEADER)] if format == "csv" else []
    return "".join([*lines, *(line_of(row, format) for row in rows)])


def line_of(row: dict[str, Any], format: str) -> str:
    """Write one score, as `FakeScore.as_dict` gives it, as a line of text, csv or scores."""
    row = {**row, "notes": ", ".join(row["notes"])}
    if format == "csv":
        return csv_line(map(row.get, HEADER))
    if format == "scores":
        return f"{row['recording']} {row['score']!r}\n"
    return (
        "{recording}: {decision}, P(genuine) {p_genuine:.3f}, P(fake) {p_fake:.3f}, score "
        "{score:+.3f} (genuine from {threshold:+.3f} on), {seconds:.1f} s{comma}{notes}\n".format(
            **row, comma=", " * bool(row["notes"])
        )
    )


def csv_line(cells: Iterable[Any]) -> str:
    """Write a line of CSV; numbers have six digits."""
    cells = [round(value, 6) if isinstance(value, float) else value for value in cells]
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


class FakeDetector:
    """Score recordings with the bundled detector of fake audio, or with a trained one.

    Attributes:
        sampling_rate: Hz at which it listens; audio of other rates is resampled.
        threshold: Score from which a recording counts as genuine. In telephone bandwidth the bundled detector has a lower one,
            unless it was given: see the `FakeScore`.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        threshold: float | None = None,
        prior: float | None = None,
        force: bool = False,
        own_calibration: bool = True,
        device: str | torch.device = "auto",
    ) -> None:
        """Load a detector; without arguments the bundled one.

        Args:
            model: Folder of a trained model.pt, or an ONNX file.
            threshold: Score from which a recording counts as genuine; None: the detector's own. Detectors that the recipe
                add2022 trains have that of the equal error rate on dev.
            prior: Share of genuine ones among the recordings, more than 0 and less than 1, instead of a threshold.
            force: Judge recordings of under half a second and without speech too, and leave scores of short ones as they are.
            own_calibration: Use the calibration.json beside the model, which `pyspeech detect-fake --calibrate` wrote, if any.
            device: "auto" (the GPU where there is one), "cpu" or "cuda". ONNX files run on the CPU, and so does the bundled
                detector unless this is "cuda".

        Raises:
            UserError: for a model that is missing or of another kind, and for a threshold or a prior out of range.
        """
        from pyspeech.spoof.heard import NEUTRAL, TELEPHONE_STEP

        if threshold is not None and not math.isfinite(threshold):
            raise UserError(f"threshold {threshold}: expected a finite number")
        if prior is not None:
            if threshold is not None:
                raise UserError(f"threshold {threshold}, prior {prior}: expected one of them, from which the other follows")
            threshold = threshold_of(prior)
        self.detector, bundled = _load(model, device, own_calibration)
        own_threshold = float(self.detector.calibration.log_likelihood_ratio(self.detector.threshold))
        self.force, self._neutral = force, own_threshold + (NEUTRAL if bundled else 0.0)
        self.threshold = own_threshold if threshold is None else threshold
        self._telephone_step = TELEPHONE_STEP if bundled and threshold is None else 0.0
        self.sampling_rate: int = self.detector.sampling_rate

    @classmethod
    def load(cls, model: str | Path | None = None, **options: Any) -> FakeDetector:
        """Load a detector; arguments as of the class."""
        return cls(model, **options)

    @property
    def shortest_window(self) -> float:
        """Seconds of the pieces of training."""
        return self.detector.crop.samples / self.sampling_rate

    def with_window(self, seconds: float) -> FakeDetector:
        """Return the detector with windows of so many seconds; short ones show fake parts of genuine recordings.

        Raises:
            UserError: for less than `shortest_window`.
        """
        other = copy.copy(self)
        other.detector = replace(self.detector, crop=self.detector.crop.in_windows_of(seconds, self.sampling_rate))
        return other

    @overload
    def score(self, audio: AudioInput, sampling_rate: int | None = None) -> FakeScore: ...
    @overload
    def score(self, audio: Sequence[AudioInput], sampling_rate: int | None = None) -> list[FakeScore]: ...

    def score(self, audio: AudioInput | Sequence[AudioInput], sampling_rate: int | None = None) -> FakeScore | list[FakeScore]:
        """Score a recording, or each of a list of them, in bounded memory.

        Args:
            audio: Path of an audio file of any format, rate and length, what else `pyspeech.audio.inputs` takes (bytes, a
                binary stream, samples, samples with their rate), or a list of these. Channels are averaged.
            sampling_rate: Hz of samples given alone. A file knows its own.

        Returns:
            A `FakeScore`, or a list of them in the order of the list given.

        Raises:
            UserError: for what cannot be read, is no audio, has less than half a second of sound or no speech, or has no
                finite score.
        """
        from pyspeech.audio.inputs import file_of, is_many, stream_inputs

        items: Any = audio if is_many(audio) else [audio]
        inputs = zip(items, stream_inputs(audio, sampling_rate, self.sampling_rate), strict=True)
        found = [replace(self.score_blocks(blocks, name), path=file_of(item)) for item, (name, blocks) in inputs]
        return found if is_many(audio) else found[0]

    __call__ = score

    def score_blocks(self, blocks: Iterable[np.ndarray], name: str = "recording") -> FakeScore:
        """Score blocks (n,) of samples at `sampling_rate`; name: of the recording, for the result and for messages."""
        from pyspeech.spoof.detector import score_blocks
        from pyspeech.spoof.heard import Heard

        heard = Heard(blocks, self.sampling_rate)
        limits, scores = score_blocks(self.detector, heard)
        if heard.watched.silent or len(scores) == 0:
            raise UserError(f"{name}: is silent; there is no speech to judge")
        scores = self.detector.calibration.log_likelihood_ratio(scores)
        if not math.isfinite(scores.mean()):  # powers of a spectrum that float32 cannot hold
            raise UserError(f"{name}: has no finite score; its samples go up to {heard.watched.peak:.3g}, expected -1 to 1")
        if not self.force:
            heard.check(name)
            scores = heard.calibrated(scores, self._neutral)
        windows = [(*span, value) for span, value in zip(limits.tolist(), scores.tolist(), strict=True)]
        seconds = heard.watched.count / self.sampling_rate
        threshold = self.threshold - (self._telephone_step if heard.narrow else 0.0)
        return FakeScore(name, float(scores.mean()), threshold, seconds, windows, heard.notes())


@overload
def anonymize(audio: AudioInput, coefficient: float = 0.8, sampling_rate: int | None = None, level: str = "rms") -> Sound: ...
@overload
def anonymize(
    audio: Sequence[AudioInput], coefficient: float = 0.8, sampling_rate: int | None = None, level: str = "rms"
) -> list[Sound]: ...


def anonymize(
    audio: AudioInput | Sequence[AudioInput], coefficient: float = 0.8, sampling_rate: int | None = None, level: str = "rms"
) -> Sound | list[Sound]:
    """Anonymise a speaker: shift formants by a McAdams coefficient (Patino et al. 2021; see mcadams.py).

    Args:
        audio: Path of an audio file, what else `pyspeech.audio.inputs` takes, or a list of these.
        coefficient: Above 0; 1 changes nothing, below 0.6 and above 1 is hard to understand.
        sampling_rate: Hz of samples in memory, which need it. A file knows its own. The coefficient is meant for 16 kHz.
        level: "rms" (as loud as before), "peak" (to full scale) or "none".

    Returns:
        A `Sound` of the same rate and as many channels, of a list a list of them. The samples of a file are (channels, N),
        those of an array have its shape.

    Raises:
        UserError: for what cannot be read or is no audio, and for arguments out of range.
    """
    from pyspeech.audio.inputs import is_many, read_input
    from pyspeech.spoof import mcadams

    if is_many(audio):
        return [anonymize(item, coefficient, sampling_rate, level) for item in audio]  # pyright: ignore[reportGeneralTypeIssues]
    samples, rate = read_input(audio, sampling_rate)
    return Sound(mcadams.anonymize(samples, coefficient, rate, level), rate)


@naming_extras()
def _load(model, device, own):
    """(the Detector of a folder, of an ONNX file, or the bundled one; whether it is the bundled one as it comes).

    own: with the calibration beside it, which knows how long the recordings are.
    """
    from pyspeech.compat import check_device
    from pyspeech.model_file import MODEL_FILE, ONNX_FILE, find_model
    from pyspeech.spoof.config import KIND
    from pyspeech.spoof.onnx_network import SHIPPED, load_onnx
    from pyspeech.spoof.own_calibration import with_own

    if (model is None and str(device) in ("auto", "cpu")) or str(model).endswith(".onnx"):
        path = Path(model or SHIPPED)
    else:
        folder = find_model(model or SHIPPED.parent, KIND, ((MODEL_FILE,), (ONNX_FILE,)), option="model")
        path = folder / MODEL_FILE if (folder / MODEL_FILE).is_file() else folder / ONNX_FILE
    if path.suffix == ".onnx":
        check_device(device)
        found = load_onnx(path)
    else:
        from pyspeech.compat import named_device
        from pyspeech.spoof.checkpoint import load_model

        found = load_model(path, named_device(device, option="device"))
    chosen = with_own(found, path) if own else found
    return chosen, chosen is found and path.parent.samefile(SHIPPED.parent)
