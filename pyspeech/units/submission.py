"""A ZeroSpeech 2020 submission of the track 2019 (units and resynthesis): written, and checked.

    metadata.yaml                       author, affiliation, open source (true or false)
    2019/metadata.yaml                  abx distance (dtw_cosine, dtw_kl, levenshtein), system description,
                                        using parallel train, using external data (true or false)
    2019/code/*                         where open source is true: the code, or the address of a public repository
    2019/english/test/S002_0379088085.txt     the units of a test utterance: a vector a line, single spaces between numbers
    2019/english/test/V002_0379088085.wav     it, spoken by V002 as the corpus's synthesis.txt asks: its name is the
                                              voice's in place of the speaker's
    2019/surprise/test/...                    alike; the challenge wants both languages
    2019/<language>/auxiliary_embedding1/*.txt    optional (then in all languages), like test's; auxiliary_embedding2 alike;
                                              `auxiliary1 description` and `auxiliary2 description` in 2019/metadata.yaml

Certain, from the challenge's own validator and evaluation: the folders, the required entries and their types, that more
entries or files in the upper folders are refused, that each test utterance has its .txt, each line of it as many
numbers, in all of a language's files; that the .wav files are those of the list and have samples. Its ABX passes over
lines of one number, hence at least two columns. Its instructions name an entry `hyperparameters`, which its validator
refuses; so does this one. A version of that refuses any submission that is not open source. Not certain: the format of
the .wav files, of which only that Python's `wave` module must read them is known (here 16 kHz, mono, PCM, as the corpus).
Stricter here than there: blank lines, numbers that are not finite, negative numbers under dtw_kl (its score is then 50),
files that nothing asks for.
Two utterances of the corpus that would give one name (never so in the challenge's, but S1_sa1 and S2_sa1 would) keep
their whole names: V001_S1_sa1.wav.
"""

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError
from pyspeech.files import atomic_path, atomic_write

TRACK = "2019"
LANGUAGES = ("english", "surprise")
DISTANCES = ("dtw_cosine", "dtw_kl", "levenshtein")
RATE = 16000
AUXILIARY = ("auxiliary_embedding1", "auxiliary_embedding2")
TOP_ENTRIES = {"author": str, "affiliation": str, "open source": bool}
TRACK_ENTRIES = {"abx distance": str, "system description": str, "using parallel train": bool, "using external data": bool}
OPTIONAL_ENTRIES = {"auxiliary1 description": str, "auxiliary2 description": str}
KINDS = {str: "text", bool: "true or false"}


def folder_of(language: str) -> str:
    """The folder of a language in a submission: english for one that the format has no folder for."""
    return language if language in LANGUAGES else LANGUAGES[0]


def printable(path: str) -> str:
    """A path as text that can be printed and stored: bytes that are no UTF-8 as \\udc and two digits."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def synthesis_names(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """{(utterance, voice): file name} of the resynthesised utterances, as the challenge names them."""
    by_name = defaultdict(set)
    for utterance, voice in pairs:
        by_name[_short_name(utterance, voice)].add((utterance, voice))
    return {
        (utterance, voice): name if len(same) == 1 else f"{voice}_{utterance}.wav"
        for name, same in by_name.items()
        for utterance, voice in same
    }


def _short_name(utterance, voice):
    speaker, underscore, rest = utterance.partition("_")
    return f"{voice}_{rest if underscore and rest else speaker}.wav"


# Writing


def write_metadata(
    folder: Path | str,
    author: str,
    affiliation: str,
    distance: str,
    description: str,
    code: str | None = None,
    parallel: bool = False,
    external: bool = False,
) -> None:
    """Write both metadata.yaml of a submission.

    distance: one of DISTANCES, that its units are meant for. code: text that says where the source is (then the
    submission is marked as open source and the text goes to 2019/code/README.txt); None or "": it is not open.
    parallel, external: whether the parallel set, or data from elsewhere, was trained on.
    """
    import yaml

    if distance not in DISTANCES:
        raise UserError(f"abx distance {distance}: expected one of {', '.join(DISTANCES)}")
    track = Path(folder) / TRACK
    contents = {
        Path(folder) / "metadata.yaml": {"author": author, "affiliation": affiliation, "open source": bool(code)},
        track / "metadata.yaml": {
            "abx distance": distance,
            "system description": description,
            "using parallel train": parallel,
            "using external data": external,
        },
    }
    for path, entries in contents.items():
        with atomic_write(path) as stream:
            yaml.safe_dump(entries, stream, sort_keys=False, allow_unicode=True)
    if code:
        with atomic_write(track / "code" / "README.txt") as stream:
            stream.write(code.rstrip("\n") + "\n")


def missing_languages(folder: Path | str) -> list[str]:
    """Languages that the challenge wants and a submission does not have."""
    return [language for language in LANGUAGES if not (Path(folder) / TRACK / language).is_dir()]


def write_embedding(folder: Path | str, language: str, utterance: str, rows: ArrayLike) -> None:
    """Write the units of a test utterance: rows (N, dim), N >= 1, dim >= 2, finite. Numbers keep all their digits."""
    rows = np.asarray(rows)
    rows = rows.astype(np.int64) if rows.dtype == bool else rows
    path = Path(folder) / TRACK / language / "test" / f"{utterance}.txt"
    if rows.ndim != 2 or not len(rows) or rows.shape[1] < 2 or not np.isfinite(rows).all():
        raise UserError(f"{path}: an array of shape {rows.shape}; expected at least one row of at least two finite numbers")
    with atomic_write(path) as stream:
        stream.writelines(" ".join(map(str, row)) + "\n" for row in rows)


def write_wave(path: Path | str, samples: ArrayLike) -> None:
    """Write samples (N,) in [-1, 1] at 16 kHz, N >= 1, as the WAV file `path`, 16 bit. UserError for others."""
    import soundfile

    samples = np.asarray(samples)
    if samples.ndim != 1 or not len(samples) or not np.isfinite(samples).all():
        raise UserError(f"{path}: samples of shape {samples.shape}; expected at least one, finite, of one channel")
    with atomic_path(path) as temporary:
        soundfile.write(str(temporary), np.clip(samples, -1.0, 1.0), RATE, "PCM_16", format="WAV")


# Checking


def check_submission(
    folder: Path | str, expected: dict[str, tuple[set[str], set[tuple[str, str]] | None]] | None = None
) -> list[tuple[str, str]]:
    """List the problems of a submission: [(path within it, problem), ...], empty if it is valid.

    expected: {language: (test utterances, {(utterance, voice) to synthesise} or None where not known)}, or None where
    the corpus is not known. Languages beyond those of the corpus may be english and surprise; of these, whether all
    utterances are there is not checked. UserError where the folder does not exist.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; expected a submission with metadata.yaml and {TRACK}")
    problems = _Problems(folder)
    problems.entries(folder, files=("metadata.yaml",), folders=(TRACK,), optional=("2017",))
    top = problems.metadata(folder / "metadata.yaml", TOP_ENTRIES, {})
    track = folder / TRACK
    if not track.is_dir():
        return problems.found
    there = [name for name in LANGUAGES if os.path.lexists(track / name)]
    languages = list(dict.fromkeys([*(expected or ()), *there]))
    if not languages:
        problems.add(track, f"no language; expected {' and '.join(LANGUAGES)}")
    is_open = top.get("open source")
    code = ["code"] * (is_open is True)
    problems.entries(track, ("metadata.yaml",), (*languages, *code), () if code else ("code",))
    _check_code(track / "code", is_open, problems)
    used = {name for name in AUXILIARY if any((track / language / name).is_dir() for language in languages)}
    metadata = _check_track_metadata(track / "metadata.yaml", used, problems)
    for language in languages:
        if (track / language).is_dir():
            problems.entries(track / language, (), ("test", *sorted(used)))
            utterances, pairs = (expected or {}).get(language, (None, None))
            _check_test(track / language / "test", utterances, pairs, metadata.get("abx distance"), problems)
            for name in sorted(used):
                _check_embeddings(track / language / name, utterances, None, problems)
    return problems.found


class _Problems:
    """What was found so far, and the checks of folders and metadata files."""

    def __init__(self, folder):
        self.folder, self.found = folder, []

    def add(self, path, problem):
        place = str(path.relative_to(self.folder))
        self.found.append((printable(place), problem))

    def entries(self, folder, files, folders, optional=()):
        """Names of the files and folders that a folder must have, and may have; no others."""
        there = {path.name for path in folder.iterdir()}
        for kind, names, right in (("file", files, Path.is_file), ("folder", folders, Path.is_dir)):
            for name in names:
                if name not in there:
                    self.add(folder / name, "is missing")
                elif not right(folder / name):
                    self.add(folder / name, f"is no {kind}; expected one")
        expected = [*files, *folders, *optional]
        for name in sorted(there - set(expected)):
            self.add(folder / name, f"is not expected here; expected {', '.join(expected)}")

    def metadata(self, path, required, optional):
        """Entries of a metadata.yaml, {} where it has none, after checking their names and types."""
        import yaml

        if not path.is_file():
            return {}
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
        except (yaml.YAMLError, ValueError) as error:  # a ValueError: no UTF-8, a date that is none
            self.add(path, f"not YAML ({' '.join(str(error).split())})")
            return {}
        if not isinstance(found, dict):
            self.add(path, f"holds no entries; expected {', '.join(required)}")
            return {}
        for name, kind in [*required.items(), *((name, kind) for name, kind in optional.items() if name in found)]:
            value = found.get(name)
            if name not in found:
                self.add(path, f"no entry '{name}'; expected {KINDS[kind]}")
            elif not isinstance(value, kind) or isinstance(value, str) and not value.strip():
                self.add(path, f"'{name}' is {value!r}; expected {KINDS[kind]}")
        for name in found:
            if name not in required and name not in optional:
                self.add(path, f"entry '{name}' is not expected; expected {', '.join([*required, *optional])}")
        return found


def _check_code(code, is_open, problems):
    """is_open: what metadata.yaml says, true or false; anything else says nothing about the code."""
    if is_open is True and code.is_dir() and not any(code.iterdir()):
        problems.add(code, "is empty, but metadata.yaml says open source: true")
    if is_open is False and code.is_dir() and any(code.iterdir()):
        problems.add(code, "is not empty, but metadata.yaml says open source: false")


def _check_track_metadata(path, used, problems):
    described = {name: f"auxiliary{name[-1]} description" for name in sorted(used)}
    required = {**TRACK_ENTRIES, **dict.fromkeys(described.values(), str)}
    metadata = problems.metadata(
        path, required, {name: kind for name, kind in OPTIONAL_ENTRIES.items() if name not in required}
    )
    distance = metadata.get("abx distance")
    if isinstance(distance, str) and distance.strip() and distance not in DISTANCES:
        problems.add(path, f"'abx distance' is {distance!r}; expected one of {', '.join(DISTANCES)}")
    if used == {AUXILIARY[1]}:
        problems.add(path.parent, f"{AUXILIARY[1]} without {AUXILIARY[0]}")
    return metadata


def _check_test(folder, utterances, pairs, distance, problems):
    """Check a language's folder test; utterances and pairs as in `check_submission`, None where not known."""
    if not folder.is_dir():
        return
    texts = _check_embeddings(folder, utterances, distance, problems)
    waves = sorted(path for path in folder.iterdir() if path.suffix == ".wav")
    names = {path.name for path in waves}
    if pairs is not None:
        wanted = set(synthesis_names(pairs).values())
        for name in sorted(wanted - names):
            problems.add(folder / name, "is missing; the corpus's synthesis.txt asks for it")
        for name in sorted(names - wanted):
            problems.add(folder / name, "is not expected; the corpus's synthesis.txt does not ask for it")
    else:
        known = texts | {text.partition("_")[2] for text in texts}
        for path in waves:
            if path.stem.partition("_")[2] not in known - {""}:
                problems.add(
                    path, "there is no test utterance that it could be made from; expected VOICE_ID.wav beside SPEAKER_ID.txt"
                )
    for path in waves:
        problem = wave_problem(path)
        if problem:
            problems.add(path, problem)


def _check_embeddings(folder, utterances, distance, problems):
    """Check the .txt files of a folder, and that there is nothing else but .wav in test; returns their names."""
    if not folder.is_dir():
        return set()
    endings = (".txt", ".wav") if folder.name == "test" else (".txt",)
    texts, columns = {}, {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in endings or not path.is_file():
            problems.add(path, f"is not expected here; expected files *{', *'.join(endings)}")
        elif path.suffix == ".txt":
            texts[path.stem] = path
    for name in sorted((utterances or set()) - set(texts)):
        problems.add(folder / f"{name}.txt", "is missing; the corpus has this test utterance")
    if utterances is None and not texts:
        problems.add(folder, "no embeddings; expected UTTERANCE.txt files")
    for name, path in texts.items():
        if utterances is not None and name not in utterances:
            problems.add(path, "is not expected; the corpus has no such test utterance")
        columns[path], problem = embedding_problem(path, distance)
        if problem:
            problems.add(path, problem)
    _check_columns(columns, problems)
    return set(texts)


def _check_columns(columns, problems):
    """Name the files whose number of columns is not that of most of the language's."""
    counts = defaultdict(list)
    for path, number in columns.items():
        if number is not None:
            counts[number].append(path)
    usual = max(counts, key=lambda number: len(counts[number]), default=None)
    for number, paths in counts.items():
        for path in paths if number != usual else ():
            problems.add(path, f"{number} numbers a line; expected {usual}, as in {len(counts[usual])} other files")


def embedding_problem(path: Path, distance: str | None = None) -> tuple[int | None, str | None]:
    """(numbers a line or None, first problem or None) of an embedding file; distance: one of DISTANCES or None."""
    try:
        lines = path.read_bytes().decode("ascii").split("\n")
    except UnicodeDecodeError:
        return None, "is not text in ASCII"
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    if lines[-1] == "":
        lines.pop()  # what follows the last line's end
    if not lines:
        return None, "is empty; expected one vector a line"
    columns = None
    for number, line in enumerate(lines, 1):
        problem, columns = _line_problem(line, columns, distance)
        if problem:
            return columns, f"line {number}: {problem}"
    return columns, None


def _line_problem(line, columns, distance):
    """(what is wrong with a line or None, its number of columns)."""
    fields = line.split(" ")
    try:
        values = [float(field) for field in fields]
    except ValueError:
        if not line.strip():
            return "is blank; expected a vector", columns
        bad = next(field for field in fields if not _is_number(field))
        return f"{bad!r} is not a number; expected numbers with single spaces between", columns
    if columns is not None and len(values) != columns:
        return f"{len(values)} numbers; expected {columns}, as above it", columns
    if len(values) < 2:
        return "1 number; expected at least 2 (one-hot or code vectors), as lines of one are passed over", None
    if not all(map(math.isfinite, values)):
        return "a number that is not finite", columns or len(values)
    if distance == "dtw_kl" and min(values) < 0:
        return "a negative number, for which dtw_kl is not defined", columns or len(values)
    return None, len(values)


def _is_number(text):
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", text, re.IGNORECASE) is not None


def wave_problem(path: Path) -> str | None:
    """The first problem of a resynthesised utterance, or None: expected is a WAV file, 16 kHz, mono, PCM, with samples."""
    import soundfile

    from pyspeech.audio.headers import promised_frames

    try:
        if path.stat().st_size == 0:
            return "is empty (0 bytes)"
        with soundfile.SoundFile(os.fsencode(path)) as stream:  # pyright: ignore[reportArgumentType]
            found = (stream.format, stream.samplerate, stream.channels, stream.subtype)
            if found[:3] not in (("WAV", RATE, 1), ("WAVEX", RATE, 1)) or not found[3].startswith("PCM"):
                return (
                    f"{found[0]}, {found[1]} Hz, {found[2]} channel(s), {found[3]}; expected WAV, {RATE} Hz, 1 channel, PCM_16"
                )
            if not stream.frames:
                return "holds no samples"
            promised = promised_frames(stream, str(path))
            if stream.frames < promised:
                return f"is truncated: its header says {promised / RATE:.3f} s, there is {stream.frames / RATE:.3f} s"
    except soundfile.LibsndfileError as error:
        return f"cannot be read as audio: {error.error_string}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None
