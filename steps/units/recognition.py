"""Character error rates of speech from units in egs/zerospeech, by a recogniser of the user.

The recogniser is a command. `COMMAND FILE...` prints, in UTF-8, one line of text for each file: in their order, or
behind the file's path, name or stem and a tab, as utils/transcribe.py does. A wrapper of any other is two lines.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.errors import UserError
from steps.units.corpus import plain_words, speaker_of, words_of

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment

LONGEST = 50_000  # characters of the files in a command line; systems take a hundred thousand or more
SHOWN = 400  # characters of a command's own message


def add_recognition(
    measured: dict[str, Any], exp: Experiment, recogniser: str, names: Mapping[tuple[str, str], str], test: Mapping[str, Cut]
) -> None:
    """ "recognition" in each of measured["pairs"], in "conversions", and as measured["recordings"] of the recordings of
    what is spoken, as `character_errors` gives it; measured["recogniser"] is the command.

    measured: of steps.units.voices.score_synthesis; nothing is added without a recogniser, or texts in the corpus.
    names: {(utterance, voice): file in wavs/}; test: {utterance: cut}.
    """
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.submission import write_wave
    from pyspeech.units.voices import RATE

    command = command_of(recogniser)
    if not command:
        return
    texts = {utterance: words_of(test[utterance]) for utterance, _ in sorted(names) if words_of(test[utterance])}
    if not texts:
        exp.log.warning("recogniser=%s: is not run, as the corpus has no texts of what is spoken", recogniser)
        return
    spoken = sorted((utterance, voice) for utterance, voice in names if utterance in texts)
    with tempfile.TemporaryDirectory() as folder:
        files = [(exp.dir / "wavs" / names[pair]).absolute() for pair in spoken]
        for place, utterance in enumerate(texts):
            files.append(Path(folder, f"recording-{place}.wav"))
            write_wave(files[-1], read_samples(test[utterance], RATE))
        heard = recognise(command, files)
    found = defaultdict(list)
    for (utterance, voice), text in zip(spoken, heard, strict=False):
        found[speaker_of(test[utterance]), voice].append((texts[utterance], text))
    for entry in measured["pairs"]:
        entry["recognition"] = character_errors(found[entry["source"], entry["target"]])
    measured["conversions"]["recognition"] = character_errors(
        [pair for (source, target), pairs in found.items() if source != target for pair in pairs]
    )
    measured["recordings"] = character_errors(list(zip(texts.values(), heard[len(spoken) :], strict=False)))
    measured["recogniser"] = recogniser


def command_of(recogniser: str) -> list[str]:
    """The words of a command line, [] of an empty one. UserError where its program is not there."""
    try:
        command = shlex.split(recogniser)
    except ValueError as error:
        raise UserError(f"recogniser={recogniser}: {error}; expected a command line") from None
    if command and not shutil.which(command[0]):
        raise UserError(
            f"recogniser={recogniser}: no program {command[0]} here; expected a command that prints a line "
            "of text for each audio file given"
        )
    return command


def character_errors(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """{"utterances", "errors", "characters", "rate"} of [(words said, text recognised), ...]; a rate is errors /
    characters, None without any. Both sides are lower-case words: punctuation is no error."""
    from pyspeech.text.wer import count_character_errors, rate

    counts = [count_character_errors(said, plain_words(heard)) for said, heard in pairs]
    errors, characters = (sum(count[place] for count in counts) for place in (0, 1))
    return {"utterances": len(pairs), "errors": errors, "characters": characters, "rate": rate(errors, characters)}


def recognise(command: Sequence[str], files: Iterable[Path | str]) -> list[str]:
    """The text of each file, by a command (list of str) that is given as many at a time as fit in a command line."""
    from tqdm import tqdm

    heard = []
    for batch in tqdm(batches([str(file) for file in files]), "recognise", disable=None):
        heard += in_order(command, batch, run(command, batch))
    return heard


def batches(paths: Sequence[str]) -> list[list[str]]:
    """Lists of paths, each with at least one and no more than LONGEST characters, about."""
    found, length = [], LONGEST
    for path in paths:
        if length + len(path) > LONGEST:
            found.append([])
            length = 0
        found[-1].append(path)
        length += len(path) + 1
    return found


def run(command: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The lines that a command prints. UserError where it fails."""
    shown = f"recogniser={shlex.join(command)}"
    try:
        done = subprocess.run([*command, *paths], stdin=subprocess.DEVNULL, capture_output=True)
    except OSError as error:
        raise UserError(f"{shown}: cannot be run: {error.strerror}") from None
    said = [" ".join(line.split()) for line in done.stderr.decode("utf-8", "replace").split("\n")]
    message = " / ".join(line for line in said if line)[-SHOWN:].strip(" /") or "nothing on standard error"
    if done.returncode:
        raise UserError(f"{shown}: ended with status {done.returncode}: {message}")
    try:
        lines = done.stdout.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{shown}: printed what is not UTF-8; expected text") from None
    lines = [line.rstrip("\r") for line in lines[:-1] + [line for line in lines[-1:] if line]]
    if len(lines) != len(paths):
        raise UserError(
            f"{shown}: printed {len(lines)} lines for {len(paths)} files; expected one for each (standard error: {message})"
        )
    return lines


def in_order(command: Sequence[str], paths: Sequence[str], lines: list[str]) -> list[str]:
    """The texts of lines, as many as paths, in the order of these: as they are, or by the names before their tabs."""
    places = {name: place for place, path in enumerate(paths) for name in (path, Path(path).name, Path(path).stem)}
    fields = [line.partition("\t") for line in lines]
    named = [places.get(name) for name, _, _ in fields]
    if set(named) == {None}:
        return lines
    if len(set(named)) < len(paths) or None in named:
        wrong = next(line for place, line in enumerate(lines) if named[place] is None or named[place] in named[:place])
        raise UserError(
            f"recogniser={shlex.join(command)}: printed '{wrong[:80]}'; expected each of the {len(paths)} "
            "files once before a tab, or none of them"
        )
    texts = dict(zip(named, (text for _, _, text in fields), strict=True))
    return [texts[place] for place in range(len(paths))]
