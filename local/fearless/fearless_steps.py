"""The Fearless Steps corpus (Apollo 11): 100 hours of 8 kHz streams of 30 minutes with manual labels.

Made at the University of Texas at Dallas; to be had from https://fearless-steps.github.io (registration). The layouts
of the releases, below whatever folder they are in:

    phase 1   Data/Audio/Tracks/{Train,Dev,Eval}/FS_P01_dev_001.wav
              Data/Transcripts/SAD/Dev/FS_P01_dev_001.txt
    phase 2   FS02_Challenge_Data/Audio/Streams/{Train,Dev,Eval}/FS02_dev_001.wav
              FS02_Challenge_Data/Transcripts/SAD/{Train,Dev}/FS02_dev_001.txt
    phase 4   FSC_P4_Streams/Audio/Streams/{Train,Dev,Eval}/fsc_p4_dev_001.wav
              FSC_P4_Streams/Transcripts/SAD/{Train,Dev}/fsc_p4_dev_001.txt

Nothing depends on these names but: an audio file is in a split when a folder above it (or its own name) says train, dev
or eval, a label file is a .txt file below a folder SAD, and the two belong together when they have the same name.
FS01_dev_001, FS_P01_dev_001 and fs_p1_dev_001 are the same name. Labels: pyspeech/sad/formats.py.

Checked are audio (pyspeech/data/audio_checks.py) and labels, and that each file has its partner. Written are <split>.jsonl.gz
(pyspeech/data/manifests.py) and reference/<split>/<recording>.txt, the labels as they came.
"""

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.splits import SPLIT_WORDS
from pyspeech.audio.io import find_audio, find_files
from pyspeech.data.audio_checks import check_audio
from pyspeech.data.audio_files import copy_mono
from pyspeech.data.manifests import clear_split, write_split
from pyspeech.data.problems import list_problems
from pyspeech.engine.parts import Parts, file_state, in_parts
from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.sad.formats import NONSPEECH_LABELS, SPEECH_LABELS, UNSCORED_LABELS, read_reference
from pyspeech.sad.segments import union

RATE = 8000
Key = str | tuple[str, ...]  # of names that stand for the same stream, see `stream_key`
Row = tuple[float, float, str]  # of a label file: start and end in seconds, label
Checked = tuple[Path, dict[str, Any], list[Row] | None]  # an audio file, its properties, its labels
LOUDEST_STREAM = 2  # those of a stream are kept as 16 bit, so floats of another scale would be cut off
TOLERANCE = 0.05  # seconds by which labels may pass the end of the audio without a word ...
OVERRUN = 1.0  # ... and seconds from which on they are of something else
NO_LABELS = ("ref_gt", "sys_results")  # folders of the scoring toolkit's examples


@dataclass
class Findings:
    """Problems of a release, which stop the preparation or leave a file out; remarks are logged, and their cause is mended."""

    problems: list[tuple[Path, str]] = field(default_factory=list)
    remarks: list[tuple[Path, str]] = field(default_factory=list)


def prepare(
    corpus: str | Path, out: str | Path, log: logging.Logger, *, skip_bad: bool = False, parts: Parts | None = None
) -> dict[str, int]:
    """Check a release and write <split>.jsonl.gz and reference/<split>/<recording>.txt into `out` for the splits it
    has.

    corpus: folder of the release. skip_bad: leave out the files that have a problem and list them, instead of
    stopping. The audio stays where it is; what is not single-channel WAV or FLAC is copied to out/audio as 8 kHz WAV,
    channels mixed. An eval split without labels is taken, a train or dev split without a single label file is not.
    Returns {split: number of streams}. UserError that names every bad file (the first 20; all in out/problems.txt).
    """
    corpus, out = Path(corpus), Path(out).resolve()
    if not corpus.is_dir():
        raise UserError(
            f"corpus={corpus}: no such folder; expected the folder of a Fearless Steps release (Audio and "
            f"Transcripts below it), or corpus=mini for the built-in simulated one"
        )
    findings = Findings()
    audio, labels = find_streams(corpus, findings), find_labels(corpus, findings)
    checked = {split: check_split(pair(split, audio, labels, findings), findings) for split in ("train", "dev", "eval")}
    report(corpus, out, log, findings, skip_bad)
    if not any(checked.values()):
        raise UserError(
            f"corpus={corpus}: no usable streams; expected audio in folders Train, Dev or Eval (as "
            f"Audio/Streams/Dev/*.wav) and labels in Transcripts/SAD/Dev/*.txt"
        )
    for split, rows in checked.items():
        clear_split(out, split, keep=[copy_of(out, split, path) for path, properties, _ in rows if is_copied(properties)])
        if rows:
            write(out, log, split, rows, parts)
            log.info("%s: %d streams", split, len(rows))
    return {split: len(rows) for split, rows in checked.items() if rows}


# Finding files


def split_of(path: Path) -> str | None:
    """Split that the nearest folder, or else a word of the file's name, names: train, dev, eval, or None."""
    for part in reversed(path.parts[:-1]):
        if part.lower() in SPLIT_WORDS:
            return SPLIT_WORDS[part.lower()]
    for word in re.split(r"[^a-z]+", path.stem.lower()):
        if word in SPLIT_WORDS:
            return SPLIT_WORDS[word]
    return None


def stream_key(name: str) -> Key:
    """Names that stand for the same stream get the same key: ("1", "dev", "1") for FS01_dev_001 and FS_P01_dev_001."""
    name = unicodedata.normalize("NFC", name).strip().casefold()
    match = re.fullmatch(r"fsc?[ _-]?p?0*(\d+)[ _-]+([a-z]+)[ _-]+0*(\d+)", name)
    return match.groups() if match else name


def find_streams(corpus: Path, findings: Findings) -> dict[tuple[str, Key], Path]:
    """{(split, key): path} of the audio files below `corpus` that are streams; segments of other tasks are passed
    over."""
    found, outside = {}, []
    for path in find_audio([corpus]):
        relative = path.relative_to(corpus)
        if "segments" in (part.lower() for part in relative.parts[:-1]):
            continue
        split = split_of(relative)
        if split is None:
            outside.append(path)
            continue
        _add_once(found, split, path, findings)
    if outside:
        findings.remarks.append(
            (outside[0], f"{len(outside)} audio files like this one are in no folder Train, Dev or Eval and are not used")
        )
    return found


def find_labels(corpus: Path, findings: Findings) -> dict[tuple[str, Key], Path]:
    """{(split, key): path} of the label files: .txt files below a folder SAD, or any .txt file where there is no such
    folder; without notes (README.txt) and what the scoring toolkit brings."""
    texts = [path.relative_to(corpus) for path in find_files(corpus, (".txt",))]
    texts = [
        path
        for path in texts
        if not path.name.lower().startswith(("~", "readme")) and not any(part.lower() in NO_LABELS for part in path.parts[:-1])
    ]
    below = [path for path in texts if "sad" in (part.lower() for part in path.parts[:-1])]
    found = {}
    for relative in below or texts:
        split, path = split_of(relative), corpus / relative
        if split is None:
            continue
        _add_once(found, split, path, findings)
    return found


def _add_once(found, split, path, findings):
    other = found.setdefault((split, stream_key(path.stem)), path)
    if other is not path:
        findings.problems.append((path, f"same name as {other}; one of the two must go"))


def pair(
    split: str, audio: Mapping[tuple[str, Key], Path], labels: Mapping[tuple[str, Key], Path], findings: Findings
) -> list[tuple[Path, Path | None]]:
    """[(audio path, label path or None)] of a split, by name; what has no partner is a problem."""
    heard = {key: path for (name, key), path in audio.items() if name == split}
    labelled = {key: path for (name, key), path in labels.items() if name == split}
    if heard and not labelled:
        path = next(iter(heard.values()))
        if split == "eval":
            findings.remarks.append(
                (path.parent, f"{split}: no label files, so its {len(heard)} streams are detected, not scored")
            )
        else:
            findings.remarks.append((path.parent, f"{split}: no label files, so its {len(heard)} streams are not used"))
            return []
    for key, path in labelled.items():
        if key not in heard:
            findings.problems.append((path, f"label file without audio in {split}"))
    pairs = []
    for key, path in sorted(heard.items(), key=lambda item: str(item[1])):
        if key in labelled or not labelled:
            pairs.append((path, labelled.get(key)))
        else:
            findings.problems.append((path, f"audio without a label file in {split}"))
    return pairs


# Checking files


def check_split(pairs: Iterable[tuple[Path, Path | None]], findings: Findings) -> list[Checked]:
    """[(audio path, audio properties, label rows or None)] of the pairs without a problem."""
    good = []
    for path, label_path in pairs:
        try:
            properties = check_audio(path, LOUDEST_STREAM)
            rows = check_labels(label_path, properties["duration"], findings) if label_path else None
        except UserError as error:
            message = str(error)
            for name in (label_path, path):
                if name is not None and message.startswith(str(name)):
                    message = message[len(str(name)) :].lstrip(":, ")
                    break
            else:
                name = path
            findings.problems.append((name, message))
            continue
        good.append((path, properties, rows))
    return good


def check_labels(path: Path, duration: float, findings: Findings) -> list[Row]:
    """Label rows (start, end, label) cut to `duration` seconds; UserError for a gap, an overlap or an unknown label."""
    rows = read_reference(path)
    known = {*SPEECH_LABELS, *NONSPEECH_LABELS, *UNSCORED_LABELS}
    unknown = sorted({label for _, _, label in rows} - known)
    if unknown:
        raise UserError(f"{path}: mislabelled: unknown label {', '.join(unknown)}; expected {', '.join(sorted(known))}")
    start, end = rows[0][0], rows[-1][1]
    if start >= duration:
        raise UserError(f"{path}: mislabelled: its labels begin at {start:.2f} s, the audio ends at {duration:.2f} s")
    if end > duration + OVERRUN:
        raise UserError(
            f"{path}: mislabelled: its labels run to {end:.2f} s, the audio ends at {duration:.2f} s; expected "
            f"labels and audio of one recording"
        )
    _check_names(path)
    if end > duration + TOLERANCE:
        findings.remarks.append((path, f"labels run to {end:.2f} s, the audio ends at {duration:.2f} s: the rest is cut off"))
    if end < duration - 1.0:
        findings.remarks.append((path, f"labels end at {end:.2f} s, the audio at {duration:.2f} s: what follows is not used"))
    if start > 1.0:
        findings.remarks.append((path, f"labels begin at {start:.2f} s: what comes before counts as non-speech in training"))
    if any(label in UNSCORED_LABELS for _, _, label in rows):
        findings.remarks.append((path, "has stretches that are not scored: they count as non-speech in training"))
    return [(a, min(b, duration), label) for a, b, label in rows if a < duration]


def _check_names(path):
    """UserError where the first column of a label file names another stream than the file does."""
    own = stream_key(path.stem)
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        name = line.split("\t")[0]
        other = stream_key(name)
        # Releases name the phase in several ways, and files may have been renamed.
        if isinstance(own, tuple) and isinstance(other, tuple) and own[1:] != other[1:]:
            raise UserError(f"{path}: mislabelled: its first column names another recording, {name}; expected {path.stem}")


def report(corpus: Path, out: Path, log: logging.Logger, findings: Findings, skip_bad: bool) -> None:
    """Log what was found; UserError when there are problems and they are not to be skipped."""
    for path, remark in findings.remarks[:20]:
        log.warning("%s: %s", path, remark)
    if len(findings.remarks) > 20:
        log.warning("... and %d more remarks", len(findings.remarks) - 20)
    listing, shown = list_problems(out, findings.problems)
    if findings.problems and skip_bad:
        log.warning("%s: left out %d files with problems (list: %s)\n%s", corpus, len(findings.problems), listing, shown)
    elif findings.problems:
        raise UserError(
            f"corpus={corpus}: {len(findings.problems)} problems; mend them, or skip_bad=true leaves these files out "
            f"(list: {listing})\n{shown}"
        )


# Writing


def is_copied(properties: Mapping[str, Any]) -> bool:
    """True of an audio file that is not used where it lies. properties: of `check_audio`."""
    return properties["channels"] > 1 or properties["format"] not in ("WAV", "WAVEX", "FLAC")


def copy_of(out: Path, split: str, path: Path) -> Path:
    """Path of the copy of an audio file."""
    return out / "audio" / split / f"{stream_name(path)}.wav"


def stream_name(path: Path) -> str:
    """Name of the recording of an audio file."""
    return re.sub(r"\s+", " ", path.stem)


def write(out: Path, log: logging.Logger, split: str, rows: Sequence[Checked], parts: Parts | None) -> None:
    """Manifest, references and converted audio of one split."""
    from lhotse import Recording

    copies = {path: copy_of(out, split, path) for path, properties, _ in rows if is_copied(properties)}
    make_copies(f"copies of {split}", {copy.stem: (path, copy) for path, copy in copies.items()}, log, parts)
    streams, rates = [], set()
    for path, _, labels in rows:
        name = stream_name(path)
        recording = Recording.from_file(copies.get(path, path).resolve(), recording_id=name)
        if recording.sampling_rate != RATE:
            rates.add(recording.sampling_rate)
            recording = recording.resample(RATE)
        speech = None
        if labels is not None:
            speech = union([(start, end) for start, end, label in labels if label in SPEECH_LABELS])
            write_rows(out / "reference" / split / f"{name}.txt", name, labels)
        end = labels[-1][1] if labels is not None else None
        streams.append((recording, speech, end))
    if copies:
        log.info(
            "%s: %d streams with several channels or in a format other than WAV and FLAC were mixed and copied to %s",
            split,
            len(copies),
            out / "audio" / split,
        )
    if rates:
        log.info("%s: streams at %s Hz are resampled to %d Hz as they are read", split, sorted(rates), RATE)
    write_split(out, split, streams)


def make_copies(kind: str, copies: Mapping[str, tuple[Path, Path]], log: logging.Logger, parts: Parts | None) -> None:
    """Copy audio at 8 kHz, channels mixed. copies: {name: (audio file, its copy)}; kind: as for `in_parts`."""
    in_parts(
        parts,
        kind,
        lambda paths: str(copy_mono(*paths, RATE)),
        copies,
        inputs=lambda paths: (paths, file_state(paths[0])),
        files=lambda paths: paths[1:],
        log=log,
    )


def write_rows(path: Path, recording: str, rows: Iterable[Row]) -> None:
    """Reference label file with the rows of the release: times and labels as they are."""
    with atomic_write(path) as stream:
        for start, end, label in rows:
            stream.write("\t".join([recording, "0", repr(start), repr(end), label, "manual"] + ["X"] * 6) + "\n")
