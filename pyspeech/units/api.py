"""Speech to discovered units with a trained VQ-VAE, and units to speech with its inverter.

encoder = UnitEncoder.load("exp/mini/models/trf128/42")
units = encoder.encode("talk.wav")
units.save("talk.jsonl")

synthesizer = UnitSynthesizer.load("exp/mini/models/synthesis")
synthesizer.resynthesize("talk.wav", "V001").save("spoken.wav")
synthesizer.speak(units, "V001").save("spoken.wav")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from pyspeech.audio.sound import Sound
from pyspeech.errors import UserError, naming_extras
from pyspeech.files import atomic_write, format_of
from pyspeech.model_file import MODEL_FILE, check_in_memory, find_model
from pyspeech.units.config import INVERTER, VQVAE

if TYPE_CHECKING:
    import numpy as np
    import torch

    from pyspeech.audio.inputs import AudioInput
    from pyspeech.units.checkpoint import Bundle

TABLE = "ark"  # the format that is a Kaldi table: of one recording here, of all of them in the command line tool
# format: ending of its file
FORMATS = {"json": ".jsonl", "text": ".txt", "onehot": ".txt", "vectors": ".txt", TABLE: ".ark"}


@dataclass
class Units:
    """Discovered units of a recording: a code every `frame_seconds`."""

    name: str  # of the recording
    codes: np.ndarray  # (C,) int64, 0 to K - 1; C is at least 1
    starts: np.ndarray  # (C,) seconds
    ends: np.ndarray  # (C,) seconds; a unit ends where the next one starts, the last one with the audio
    frame_seconds: float  # from code to code, 0.04 with the paper's settings
    codebook: np.ndarray  # (K, D) float32, the vector of each code
    lengths: np.ndarray | None = None  # (C,) codes that each one stands for, of `merged` units

    @property
    def duration(self) -> float:
        """Seconds of the audio."""
        return float(self.ends[-1])

    @property
    def vectors(self) -> np.ndarray:
        """Vectors of the units (C, D) float32, what the recipe zerospeech scores by ABX."""
        return self.codebook[self.codes]

    def merged(self) -> Units:
        """Return the units with each run of one code as one, as language models take them; `lengths` says how long it was."""
        import numpy as np

        from pyspeech.units.units_files import runs

        codes, lengths = runs(self.codes)
        first = np.cumsum(lengths) - lengths
        return replace(self, codes=codes, starts=self.starts[first], ends=self.ends[first + lengths - 1], lengths=lengths)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write the file that `pyspeech units` writes for the recording, whole or not at all.

        Args:
            path: File to write; its folder is made where it is missing. Format "ark" needs the ending .ark, and also writes the
                list beside it (.scp).
            format: "json" (a line for each unit, then one for the recording), "text" (the codes in a line), "onehot" (a line
                for each unit, as ZeroSpeech wants it), "vectors" (a line for each unit) or "ark" (a Kaldi table of
                `vectors`). None takes the ending of `path`: .jsonl is json, .txt text, .ark ark.

        Raises:
            UserError: for a format or an ending that is none of these, and for a name that a Kaldi table cannot have.
        """
        format = format_of(path, FORMATS, format)
        if format != TABLE:
            with atomic_write(path) as stream:
                stream.writelines(self.lines(format))
            return
        from pyspeech.units.features_files import kaldi_table

        if Path(path).suffix.lower() != FORMATS[TABLE]:
            raise UserError(f"{path}: format {TABLE} writes a Kaldi table; expected a path that ends in {FORMATS[TABLE]}")
        with kaldi_table(Path(path).with_suffix("")) as write:
            write(self.name, self.vectors)

    def lines(self, format: str) -> Iterator[str]:
        """Yield the lines of a format of text: json, text, onehot or vectors."""
        codes = self.codes.tolist()
        if format == "text":
            yield " ".join(map(str, codes)) + "\n"
        elif format == "json":
            lengths = [{}] * len(codes) if self.lengths is None else [{"frames": length} for length in self.lengths.tolist()]
            for start, end, code, length in zip(self.starts, self.ends, codes, lengths, strict=True):
                times = {"start": round(float(start), 6), "end": round(float(end), 6)}
                yield _json_line(recording=self.name, **times, code=code, **length)
            yield _json_line(
                recording=self.name,
                seconds=round(self.duration, 6),
                units=len(codes),
                distinct=len(set(codes)),
                codes=len(self.codebook),
            )
        else:
            count = len(self.codebook)
            onehot = ([int(place == code) for place in range(count)] for code in range(count))
            rows = [" ".join(map(str, row)) + "\n" for row in (onehot if format == "onehot" else self.codebook)]
            yield from (rows[code] for code in codes)


def _json_line(**values):
    return json.dumps(values, ensure_ascii=False) + "\n"


class UnitEncoder:
    """Encode speech into discovered units with a trained VQ-VAE (Tjandra et al. 2020).

    Attributes:
        sampling_rate: Hz of the audio that the model was trained with.
        num_codes: Number K of codes.
        frame_seconds: Seconds from code to code.
    """

    def __init__(self, bundle: Bundle) -> None:
        """Encode with a model in memory; `load` reads one."""
        from pyspeech.units.encoding import code_seconds

        check_in_memory(bundle, "UnitEncoder")
        self.bundle = bundle
        self.sampling_rate: int = bundle.features.sampling_rate
        self.num_codes: int = bundle.model.config.codes
        self.frame_seconds = code_seconds(bundle)

    @classmethod
    @naming_extras()
    def load(cls, model: str | Path | None = None, device: str | torch.device = "auto") -> UnitEncoder:
        """Load a trained VQ-VAE.

        Args:
            model: Folder of a VQ-VAE (model.pt) or of a VQ-VAE and its inverter, or a model.pt. No model is bundled.
            device: "auto" (the GPU where there is one), "cpu", "cuda", or a torch.device.

        Raises:
            UserError: for a model that is not there or of another kind, and for a device that is not there.
        """
        from pyspeech.compat import named_device
        from pyspeech.units.checkpoint import PAIR_FILES, load_vqvae

        folder = find_model(model, VQVAE, ((MODEL_FILE,), PAIR_FILES), "model")
        return cls(load_vqvae(folder, named_device(device, "device")))

    @overload
    def encode(self, audio: AudioInput, sampling_rate: int | None = None) -> Units: ...
    @overload
    def encode(self, audio: Sequence[AudioInput], sampling_rate: int | None = None) -> list[Units]: ...

    def encode(self, audio: AudioInput | Sequence[AudioInput], sampling_rate: int | None = None) -> Units | list[Units]:
        """Encode a recording, or each of a list of them, as the command `pyspeech units` does.

        Args:
            audio: Path of an audio file of any format, rate and length, what else `pyspeech.audio.inputs` takes,
                or a list of these. Channels are averaged.
            sampling_rate: Hz of samples given alone. A file knows its own.

        Returns:
            `Units`, or a list of them in the order of the list given.

        Raises:
            UserError: for what cannot be read, holds no samples or has another shape.
        """
        from pyspeech.audio.inputs import is_many, stream_inputs

        inputs = stream_inputs(audio, sampling_rate, self.sampling_rate)
        units = [self.encode_blocks(blocks, name) for name, blocks in inputs]
        return units if is_many(audio) else units[0]

    def encode_blocks(self, blocks: Iterable[np.ndarray], name: str = "recording", source: str | None = None) -> Units:
        """Encode the joined blocks of a recording: samples (n,) float at `sampling_rate`, of which few are kept.

        Args:
            blocks: Blocks of any lengths.
            name: Name of the recording.
            source: What messages call it; None for its name.

        Raises:
            UserError: where there are no samples.
        """
        from pyspeech.audio.level import Watched
        from pyspeech.units import encoding

        audio = Watched(blocks)
        codes = encoding.encode_blocks(self.bundle, audio, source or name)
        times = encoding.code_times(self.bundle, len(codes), audio.count)
        return Units(name, codes, *times, self.frame_seconds, self.bundle.model.codebook.cpu().numpy())


class UnitSynthesizer:
    """Speak discovered units in the voices that an inverter was trained with (Tjandra et al. 2020, section 4).

    Attributes:
        speakers: Names of the voices.
        sampling_rate: Hz of the speech.
        encoder: `UnitEncoder` of the VQ-VAE that the inverter belongs to.
    """

    def __init__(self, vqvae: Bundle, inverter: Bundle) -> None:
        """Speak with a pair of models in memory; `load` reads one."""
        self.encoder, self._inverter = UnitEncoder(vqvae), inverter
        self.speakers: list[str] = inverter.speakers
        self.sampling_rate: int = inverter.features.sampling_rate

    @classmethod
    @naming_extras()
    def load(cls, model: str | Path | None = None, device: str | torch.device = "auto") -> UnitSynthesizer:
        """Load a trained VQ-VAE and its inverter.

        Args:
            model: Folder of vqvae/model.pt and inverter/model.pt. No model is bundled.
            device: "auto" (the GPU where there is one), "cpu", "cuda", or a torch.device.

        Raises:
            UserError: for models that are not there or no pair, and for a device that is not there.
        """
        from pyspeech.compat import named_device
        from pyspeech.units.checkpoint import PAIR_FILES, load_pair

        folder = find_model(model, INVERTER, (PAIR_FILES,), "model")
        return cls(*load_pair(folder, named_device(device, "device")))

    @overload
    def speak(
        self, units: Units | np.ndarray | torch.Tensor | Sequence[int], speaker: str | None = None, seed: int = 0
    ) -> Sound: ...
    @overload
    def speak(self, units: Sequence[Units], speaker: str | None = None, seed: int = 0) -> list[Sound]: ...

    def speak(
        self,
        units: Units | np.ndarray | torch.Tensor | Sequence[int] | Sequence[Units],
        speaker: str | None = None,
        seed: int = 0,
    ) -> Sound | list[Sound]:
        """Speak units, or each of a list of `Units`, at the level that the voice was trained with.

        Args:
            units: `Units` of the same VQ-VAE, or codes (C,), integers from 0 to K - 1, at least one; or a list of `Units`.
            speaker: One of `speakers`; may be left out where there is one alone.
            seed: Of the phases that Griffin-Lim begins with; the same seed gives the same samples.

        Returns:
            `Sound`, as long as the audio of `Units`, or of C times the seconds of a code; or a list of them.

        Raises:
            UserError: for a voice or a code that the model does not have, and for no code.
        """
        if isinstance(units, (list, tuple)) and any(isinstance(item, Units) for item in units):
            return [self.speak(item, speaker, seed) for item in units]  # pyright: ignore[reportArgumentType, reportCallIssue]
        if isinstance(units, (str, Path)):
            raise UserError(f"units: the path {units}; expected Units or codes: resynthesize speaks a recording")
        import torch

        from pyspeech.units.resynthesis import speak

        codes = torch.as_tensor(units.codes if isinstance(units, Units) else units)
        if codes.dim() != 1 or not len(codes) or codes.is_floating_point():
            raise UserError(f"units: {codes.dtype} of shape {tuple(codes.shape)}; expected codes (C,), integers, at least one")
        if int(codes.min()) < 0 or int(codes.max()) >= self.encoder.num_codes:
            raise UserError(
                f"units: codes from {int(codes.min())} to {int(codes.max())}; expected 0 to {self.encoder.num_codes - 1}: "
                "encode with the VQ-VAE of this inverter"
            )
        samples = round(units.duration * self.sampling_rate) if isinstance(units, Units) else None
        return self._speech(speak(self._inverter, codes.long().cpu(), self._voice(speaker), samples, seed))

    @overload
    def resynthesize(
        self, audio: AudioInput, speaker: str | None = None, sampling_rate: int | None = None, seed: int = 0
    ) -> Sound: ...
    @overload
    def resynthesize(
        self, audio: Sequence[AudioInput], speaker: str | None = None, sampling_rate: int | None = None, seed: int = 0
    ) -> list[Sound]: ...

    def resynthesize(
        self,
        audio: AudioInput | Sequence[AudioInput],
        speaker: str | None = None,
        sampling_rate: int | None = None,
        seed: int = 0,
    ) -> Sound | list[Sound]:
        """Say what is said in a recording, or in each of a list of them, in another voice.

        Args:
            audio: Path of an audio file of any format, rate and length, what else `pyspeech.audio.inputs` takes,
                or a list of these. Channels are averaged.
            speaker: One of `speakers`; may be left out where there is one alone.
            sampling_rate: Hz of samples given alone. A file knows its own.
            seed: Of the phases that Griffin-Lim begins with; the same seed gives the same samples.

        Returns:
            `Sound` as long and about as loud as the recording, or a list of them in the order of the list given.

        Raises:
            UserError: for audio that cannot be read, holds no samples or has another shape, and for an unknown voice.
        """
        from pyspeech.audio.inputs import is_many, stream_inputs

        inputs = stream_inputs(audio, sampling_rate, self.sampling_rate)
        speech = [self.resynthesize_blocks(blocks, speaker, seed, source=name) for name, blocks in inputs]
        return speech if is_many(audio) else speech[0]

    def resynthesize_blocks(
        self,
        blocks: Iterable[np.ndarray],
        speaker: str | None = None,
        seed: int = 0,
        progress: Callable[[float], object] | None = None,
        source: str = "recording",
    ) -> Sound:
        """Resynthesise the joined blocks of a recording, like `resynthesize`: samples (n,) float at `sampling_rate`.

        Args:
            blocks: Blocks of any lengths, of which few are kept.
            speaker: As there.
            seed: As there.
            progress: Function that is called with the share of the speech that is made, from 0 to 1.
            source: What messages call the recording.
        """
        from pyspeech.units.resynthesis import resynthesize_blocks

        voice = self._voice(speaker)
        return self._speech(resynthesize_blocks(self.encoder.bundle, self._inverter, blocks, voice, seed, progress, source))

    def _voice(self, speaker):
        if speaker is None and len(self.speakers) == 1:
            return self.speakers[0]
        if speaker not in self.speakers:
            given = "none given" if speaker is None else f"'{speaker}' is not a voice of the model"
            raise UserError(f"speaker: {given}; expected one of {', '.join(self.speakers)}")
        return speaker

    def _speech(self, samples):
        return Sound(samples, self.sampling_rate)
