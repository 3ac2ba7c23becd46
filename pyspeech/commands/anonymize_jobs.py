"""Inputs and outputs of `utils/anonymize.py`: a file, a folder, a Kaldi table or a Kaldi data directory."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from pyspeech.audio.recordings import Recording
from pyspeech.errors import UserError

AUDIO = "wav"  # the folder of audio in a data directory that is written


@dataclass(frozen=True)
class Job(Recording):
    """A stretch of audio and the file that it becomes."""

    target: Path = Path()
    speaker: str | None = None


def find_jobs(source: str, output: str) -> list[Job]:
    """The jobs of IN and OUT; UserError where one would replace or become part of what is read."""
    if output == "-":
        raise UserError("OUT -: expected a file or folder to write; audio does not go to standard output")
    table, directory = source.lower().endswith(".scp"), is_data_dir(source)
    place = Path(output)
    if (table or directory or Path(source).is_dir()) and place.exists() and not place.is_dir():
        raise UserError(f"{output}: is a file; expected a folder")
    if table or directory:
        folder = Path(source) if directory else Path(source).parent
        if place.resolve() == folder.resolve():
            raise UserError(f"{output}: is the folder of the input {source}; expected another one")
        return list(_of_data_dir(folder, place) if directory else _of_table(source, place))
    return [Job(os.path.basename(path), path, target=target) for path, target in _find_targets(source, output).items()]


def is_data_dir(source: str) -> bool:
    return (Path(source) / "wav.scp").is_file()


def _of_data_dir(folder, output):
    from pyspeech.data.audio_files import safe_name
    from pyspeech.kaldi.reading import read_data_dir, require_sound
    from pyspeech.kaldi.utterances import located

    require_sound(folder)
    for one in read_data_dir(folder):
        target = output / AUDIO / f"{safe_name(one.id)}.wav"
        duration = None if one.end is None else one.end - (one.start or 0.0)
        yield Job(one.id, located(one.audio, folder), one.start or 0.0, duration, target=target, speaker=one.speaker)


def _of_table(source, output):
    from pyspeech.audio.recordings import find_recordings
    from pyspeech.data.audio_files import safe_name
    from pyspeech.kaldi.rules import read_table

    path = Path(source).with_name("utt2spk")
    speakers = {line.key: line.value for line in read_table(path)} if path.is_file() else {}
    for one in find_recordings([source]):
        target = output / f"{safe_name(one.name)}.wav"
        yield Job(one.name, one.path, target=target, speaker=speakers.get(one.name))


def _find_targets(source, output):
    """{path of an audio file: Path to write}."""
    from pyspeech.audio.io import find_audio

    files = [str(path) for path in find_audio([source])]
    several = Path(source).is_dir()
    folder, output = several or output.endswith("/") or Path(output).is_dir(), Path(output)
    if folder and output.exists() and not output.is_dir():
        raise UserError(f"{output}: is a file; expected a folder")
    if not several:
        if folder and source == "-":
            raise UserError(f"{output}: is a folder; expected a file to write standard input's audio to")
        target = output / Path(source).name if folder else output
        if target.is_dir() or source != "-" and target.resolve() == Path(source).resolve():
            raise UserError(f"{target}: expected a file to write that is not {source} itself")
        return {files[0]: target}
    if Path(source).resolve() in (output.resolve(), *output.resolve().parents):
        raise UserError(f"{output}: lies inside the input folder {source}; expected another place")
    return {path: output / Path(path).relative_to(source) for path in files}


def write_tables(source: str, output: str, done: dict[Job, tuple[Path, float]]) -> None:
    """The tables of what is written, where IN is a data directory or a table. done: {job: (path written, its seconds)}."""
    from pyspeech.files import atomic_write

    found = {job.name: written for job, written in done.items()}
    if is_data_dir(source):
        from pyspeech.kaldi.reading import read_data_dir
        from pyspeech.kaldi.writing import write_data_dir

        utterances = [
            replace(one, recording=one.id, audio=str(found[one.id][0].absolute()), start=None, end=None)
            for one in read_data_dir(source)
            if one.id in found
        ]
        write_data_dir(output, utterances, {name: seconds for name, (_, seconds) in found.items()})
    elif source.lower().endswith(".scp"):
        with atomic_write(Path(output) / "wav.scp") as stream:
            stream.writelines(f"{name} {path.absolute()}\n" for name, (path, _) in found.items())


class Coefficients:
    """The coefficient of each job: one for all, or one drawn evenly from a range for each speaker or utterance.

    What is drawn follows from the seed and the name, whatever else is anonymised.
    """

    def __init__(self, limits: tuple[float, float], by_speaker: bool, seed: int) -> None:
        self._limits, self._by_speaker, self._seed = limits, by_speaker, seed

    def __call__(self, job: Job) -> float:
        """UserError where the speaker is wanted and not known."""
        import numpy as np

        lowest, highest = self._limits
        if lowest == highest:
            return lowest
        if self._by_speaker and job.speaker is None:
            raise UserError(f"{job.name}: its speaker is not known; expected a data directory, or utt2spk beside the table")
        drawn_for = job.speaker if self._by_speaker else job.name
        digest = hashlib.sha256(f"{self._seed} {drawn_for}".encode("utf-8", "surrogateescape")).digest()
        return float(np.random.default_rng(int.from_bytes(digest, "big")).uniform(lowest, highest))
