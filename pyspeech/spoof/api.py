"""Fake audio detection in one call.

    score = FakeDetector().score("message.ogg")
    print(score.decision, score.p_genuine())
    score.save("message.json")

The bundled detector (shipped/README.md) needs no PyTorch. Its accuracy is limited: compare scores of recordings made alike.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
HEADER = ["recording", "decision", "p_genuine", "p_fake", "score", "threshold", "seconds"]
SILENCE = 1e-4  # a recording whose samples lie this close together, of a full scale of -1 to 1, holds no speech


@dataclass(frozen=True)
class FakeScore:
    """How genuine a recording sounds.

    Attributes:
        name: Of the recording.
        score: Log-likelihood ratio (natural logarithm) of genuine against fake speech; higher is genuine.
        threshold: Score from which a recording counts as genuine.
        seconds: Of the recording.
        windows: (start in seconds, score) of each window that the score is the mean of.
    """

    name: str
    score: float
    threshold: float
    seconds: float
    windows: list[tuple[float, float]]

    @property
    def decision(self) -> str:
        """ "genuine" or "fake"."""
        return "genuine" if self.score >= self.threshold else "fake"

    def p_genuine(self, prior: float = 0.5) -> float:
        """Probability that the recording is genuine, where a share of `prior` (0 to 1, both excluded) of all is."""
        if not 0 < prior < 1:
            raise UserError(f"prior {prior}: expected the probability of genuine speech, more than 0 and less than 1")
        return 0.5 * (1 + math.tanh(0.5 * (self.score + math.log(prior) - math.log1p(-prior))))

    def as_dict(self, prior: float = 0.5) -> dict[str, Any]:
        """The fields of HEADER, and the windows."""
        genuine = self.p_genuine(prior)
        values = (self.name, self.decision, genuine, 1 - genuine, self.score, self.threshold, self.seconds)
        return {**dict(zip(HEADER, values, strict=True)), "windows": [list(window) for window in self.windows]}

    def save(self, path: str | Path, format: str | None = None, prior: float = 0.5) -> None:
        """Write the score to a file: format "text", "json", "csv" or "scores", by default that of the file's ending (.txt,
        .json, .csv, .scores). UserError for any other."""
        chosen = format_of(path, FORMATS, format)
        with atomic_write(path) as stream:
            stream.write(render([self], chosen, prior))


def render(scores: Iterable[FakeScore], format: str, prior: float = 0.5) -> str:
    """Return the text of scores in one of FORMATS."""
    rows = [score.as_dict(prior) for score in scores]
    if format == "json":
        return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    lines = [_csv_line(HEADER)] if format == "csv" else []
    return "".join([*lines, *(line_of(row, format) for row in rows)])


def line_of(row: dict[str, Any], format: str) -> str:
    """The line of one score, of `FakeScore.as_dict`, in a format of lines: text, csv, scores."""
    if format == "csv":
        return _csv_line([round(value, 6) if isinstance(value, float) else value for value in map(row.get, HEADER)])
    if format == "scores":
        return f"{row['recording']} {row['score']!r}\n"
    return (
        "{recording}: {decision}, P(genuine) {p_genuine:.3f}, P(fake) {p_fake:.3f}, score "
        "{score:+.3f} (genuine from {threshold:+.3f} on), {seconds:.1f} s\n".format(**row)
    )


def _csv_line(cells):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


class FakeDetector:
    """Score recordings with the bundled detector of fake audio, or with a trained one.

    Attributes:
        sampling_rate: Hz at which it listens; audio of other rates is resampled.
        threshold: Score from which a recording counts as genuine.
    """

    def __init__(
        self, model: str | Path | None = None, *, threshold: float | None = None, device: str | torch.device = "auto"
    ) -> None:
        """Load a detector; without arguments the bundled one.

        Args:
            model: Folder of a model.pt that egs/add2022/run.py trained, or an ONNX file.
            threshold: Score from which a recording counts as genuine; None: the detector's own, that of equal error rates on
                its development set.
            device: "auto" (the GPU where there is one), "cpu" or "cuda". ONNX files run on the CPU, and so does the bundled
                detector unless this is "cuda".

        Raises:
            UserError: for a model that is missing or of another kind, and for a threshold that is no number.
        """
        if threshold is not None and not math.isfinite(threshold):
            raise UserError(f"threshold {threshold}: expected a finite number")
        self.detector = _load(model, device)
        own = float(self.detector.calibration.log_likelihood_ratio(self.detector.threshold))
        self.threshold = own if threshold is None else threshold
        self.sampling_rate: int = self.detector.sampling_rate

    @classmethod
    def load(cls, model: str | Path | None = None, **options: Any) -> FakeDetector:
        """Load a detector; arguments as of the class."""
        return cls(model, **options)

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
            UserError: for what cannot be read, is no audio, is silent, or has no finite score.
        """
        from pyspeech.audio.inputs import is_many, stream_inputs

        inputs = stream_inputs(audio, sampling_rate, self.sampling_rate)
        found = [self.score_blocks(blocks, name) for name, blocks in inputs]
        return found if is_many(audio) else found[0]

    __call__ = score

    def score_blocks(self, blocks: Iterable[np.ndarray], name: str = "recording") -> FakeScore:
        """Score blocks (n,) of samples at `sampling_rate`; name: of the recording, for the result and for messages."""
        from pyspeech.audio.level import Watched
        from pyspeech.spoof.detector import score_blocks

        audio = Watched(blocks)
        starts, scores = score_blocks(self.detector, audio)
        if audio.highest - audio.lowest < SILENCE:
            raise SilentError(f"{name}: is silent; there is no speech to judge")
        ratio = self.detector.calibration.log_likelihood_ratio
        score = float(ratio(scores.mean()))
        if not math.isfinite(score):  # powers of a spectrum that float32 cannot hold
            raise UserError(f"{name}: has no finite score; its samples go up to {audio.peak:.3g}, expected -1 to 1")
        windows = [(float(start), float(value)) for start, value in zip(starts, ratio(scores), strict=True)]
        return FakeScore(name, score, self.threshold, audio.count / self.sampling_rate, windows)


def anonymize(audio: AudioInput, coefficient: float = 0.8, sampling_rate: int | None = None, level: str = "rms") -> Sound:
    """Hide who speaks: formants are moved by a McAdams coefficient (Patino et al. 2021; see mcadams.py).

    Args:
        audio: Path of an audio file, or what else `pyspeech.audio.inputs` takes.
        coefficient: Above 0; 1 changes nothing, below 0.6 and above 1 is hard to understand.
        sampling_rate: Hz of samples in memory, which need it. A file knows its own. The coefficient is meant for 16 kHz.
        level: "rms" (as loud as before), "peak" (to full scale) or "none".

    Returns:
        A `Sound` of the same shape and rate.

    Raises:
        UserError: for what cannot be read or is no audio, and for arguments out of range.
    """
    from pyspeech.audio.inputs import read_input
    from pyspeech.spoof import mcadams

    samples, rate = read_input(audio, sampling_rate)
    return Sound(mcadams.anonymize(samples, coefficient, rate, level), rate)


class SilentError(UserError):
    """A recording without any sound."""


@naming_extras()
def _load(model, device):
    """The Detector of a folder, of an ONNX file, or the bundled one."""
    from pyspeech.spoof.onnx_network import SHIPPED, load_onnx

    if (model is None and str(device) in ("auto", "cpu")) or str(model).endswith(".onnx"):
        return load_onnx(model or SHIPPED)
    from pyspeech.compat import named_device
    from pyspeech.model_file import find_model
    from pyspeech.spoof.checkpoint import load_model

    return load_model(
        find_model(model or SHIPPED.parent, "fake audio detector", option="model"), named_device(device, option="device")
    )
