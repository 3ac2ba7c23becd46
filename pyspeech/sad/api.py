"""Speech activity detection in one call.

    speech = SpeechDetector().detect("call.wav")
    print(speech.segments)                          # (n, 2) seconds
    speech.save("call.rttm")

The bundled detector (shipped/README.md) needs neither PyTorch nor a model file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import torch

    from pyspeech.audio.inputs import AudioInput
    from pyspeech.sad.detector import Speech
    from pyspeech.sad.streaming import StreamingDetector


class SpeechDetector:
    """Detect speech with the bundled network, a trained one, or the statistical system.

    Attributes:
        sampling_rate: Hz at which it listens; audio of other rates is resampled.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        system: str | None = None,
        point: str | None = None,
        threshold: float | None = None,
        min_silence: float | None = None,
        min_speech: float | None = None,
        pad: float | None = None,
        pad_before: float | None = None,
        pad_after: float | None = None,
        max_speech: float | None = None,
        peak: float | None = None,
        device: str | torch.device = "auto",
    ) -> None:
        """Load a detector; without arguments the bundled one.

        Args:
            model: Folder of a trained network, or an ONNX file.
            system: "shipped" (the default without a model), "causal" (the bundled network for streams, which decides within
                0.3 s), "statistical", "statistical_plain" (as in the paper), or the name of the network that the model holds.
            point: Operating point; of the bundled detector "turns" (pauses under half a second belong to the speech; the
                default) or "words" (every pause counts).
            threshold: Score above which a frame is speech; None: the operating point's.
            min_silence: Seconds; shorter pauses are filled. None, here and below: the operating point's.
            min_speech: Seconds; shorter segments are then dropped.
            pad: Seconds that are then added before and after each segment.
            pad_before: Seconds added before it, instead of `pad`.
            pad_after: Seconds added after it, instead of `pad`.
            max_speech: Seconds; longer segments are then cut at the frame with the lowest score, which is left out. 0: none is.
            peak: Score above which each segment has a frame (hysteresis); of a network. 0: any is speech.
            device: "auto" (the GPU where there is one), "cpu" or "cuda". The bundled network and ONNX files run on the CPU.

        Raises:
            UserError: for a model that is missing or of another kind, and for options that make no sense.
        """
        from pyspeech.errors import naming_extras
        from pyspeech.sad.detector import load_detector

        self._chosen = system, model, threshold, point
        self._others = {
            "device": device,
            "min_silence": min_silence,
            "min_speech": min_speech,
            "pad": pad,
            "pad_before": pad_before,
            "pad_after": pad_after,
            "max_speech": max_speech,
            "peak": peak,
        }
        with naming_extras():
            self._detector = load_detector(*self._chosen, **self._others)
        self.sampling_rate: int = self._detector.sampling_rate

    @classmethod
    def load(cls, model: str | Path | None = None, **options: Any) -> SpeechDetector:
        """Load a detector; arguments as of the class."""
        return cls(model, **options)

    @overload
    def detect(self, audio: AudioInput, sampling_rate: int | None = None) -> Speech: ...
    @overload
    def detect(self, audio: Sequence[AudioInput], sampling_rate: int | None = None) -> list[Speech]: ...

    def detect(self, audio: AudioInput | Sequence[AudioInput], sampling_rate: int | None = None) -> Speech | list[Speech]:
        """Detect the speech in a recording, or in each of a list of them, in bounded memory.

        Args:
            audio: Path of an audio file of any format, rate and length, what else `pyspeech.audio.inputs` takes (bytes, a
                binary stream, samples, samples with their rate), or a list of these. Channels are averaged.
            sampling_rate: Hz of samples given alone. A file knows its own.

        Returns:
            A `Speech`, or a list of them in the order of the list given.

        Raises:
            UserError: for what cannot be read, or is no audio.
        """
        from pyspeech.audio.inputs import is_many, stream_inputs

        found = [
            self._detector.detect_blocks(blocks, name)
            for name, blocks in stream_inputs(audio, sampling_rate, self.sampling_rate)
        ]
        return found if is_many(audio) else found[0]

    __call__ = detect

    def stream(self, sampling_rate: int | None = None) -> StreamingDetector:
        """Detect speech while audio comes in.

        `add(samples)` gives the segments that are over, (n, 2) seconds, and `finish()` the rest. After each, `events` has the
        starts and ends that it found, and `scores` the scores of its frames. `reset()` begins a new recording. The detector
        SpeechDetector(system="causal") knows a start after 0.3 s, others after seconds. An end is known when the pause behind
        it is longer than those that are filled; `delay` of the stream is the most that it takes.

        Args:
            sampling_rate: Hz of the samples that will be added; None: `sampling_rate` of this detector.

        Raises:
            UserError: for a rate that is none; `add` raises it for samples of another shape than (N,).
        """
        from pyspeech.sad.streaming import load_stream

        return load_stream(*self._chosen, sampling_rate=sampling_rate, **self._others)
