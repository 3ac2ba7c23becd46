"""Corpora of genuine and fake utterances: the checks and manifests that the modules of local/add2022/ share.

A module of one corpus finds the audio and the label file of its sets; checked are that each file has one label and each
label a file, and the audio (pyspeech/data/audio_checks.py); written are <set>.jsonl.gz, Lhotse cuts of one supervision as
pyspeech/spoof/formats.py has them: `text` "genuine" or "fake" (None where nobody has told), `speaker` or "-", `custom =
{"attack": ..., "condition": ...}`, and "family" where it is known. Audio stays where it is, at its own sampling rate; files
with several channels, and formats that are not commonly read, are mixed to mono WAV files in mixed/<set>.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pyspeech.data.audio_checks import NOT_UTF8, check_file, check_utterances
from pyspeech.data.audio_files import readable_copies
from pyspeech.data.manifests import Utterance, clear, write_manifest
from pyspeech.data.problems import printable, report_problems
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN, Label, utterance_name
from pyspeech.spoof.label_files import read_labels

SETS = ("train", "dev", "adapt", "eval")
RATE = 16000  # Hz, of the corpora of the challenges as they are distributed


def pair(
    part: str, audio: Iterable[Path], label_file: Path | None, language: str, labels: Mapping[str, Label] | None = None
) -> tuple[list[Utterance], list[tuple[Path | str, str]]]:
    """([Utterance, ...], [(file, what is wrong), ...]) of one set, by the names of files and of labels.

    audio: paths of the set's files. label_file: Path, or None where there is none: then no label is known. labels: those of
    its labels that are of the set, by default all. An utterance's id is its file's name without folders; where several files
    have the same, that of the label that tells them apart.
    """
    if labels is None:
        labels = read_labels(label_file) if label_file else {}
    problems, files, names = [], defaultdict(list), defaultdict(list)
    for path in audio:
        shown = printable(path)
        if shown == str(path):
            files[utterance_name(path.name)].append(path)
        else:
            problems.append((shown, NOT_UTF8))
    for name in labels:
        names[PurePosixPath(name).name].append(name)
    utterances, used = [], set()
    for key, paths in files.items():
        found = _told_apart(paths, names[key]) if label_file else dict.fromkeys(paths if len(paths) == 1 else ())
        used.update(found.values())
        for path in paths:
            if path not in found:
                problems.append((path, _why_not(path, paths, names[key], label_file)))
                continue
            label = labels.get(found[path], Label(None))  # pyright: ignore[reportArgumentType, reportCallIssue]
            custom = {"attack": label.attack, "condition": label.condition}
            if label.family != UNKNOWN:
                custom["family"] = label.family
            utterances.append(
                Utterance(key if len(paths) == 1 else found[path], str(path), label.kind, language, label.speaker, part, custom)  # pyright: ignore[reportArgumentType]
            )
    problems += [
        (f"{label_file}, {name}", f"label without {'a file of its own' if key in files else 'audio'} in {part}")
        for key, same in names.items()
        for name in same
        if name not in used
    ]
    return sorted(utterances, key=lambda one: one.id), problems


def _told_apart(paths, names):
    """{path: label's name} of files and labels whose names are the same but for folders.

    One of each belong together. Else a label belongs to the one file whose path ends with it; those with more folders
    choose first.
    """
    if len(paths) == len(names) == 1:
        return {paths[0]: names[0]}
    found, free = {}, set(paths)
    tails = {name: str(PurePosixPath("/", name)) for name in names}
    for depth in sorted({tail.count("/") for tail in tails.values()}, reverse=True):
        pairs = [
            (path, name)
            for name, tail in tails.items()
            if tail.count("/") == depth
            for path in paths
            if path in free and f"/{utterance_name(str(path))}".endswith(tail)
        ]
        of_path, of_name = (Counter(column) for column in zip(*pairs, strict=True)) if pairs else ({}, {})
        found.update((path, name) for path, name in pairs if of_path[path] == of_name[name] == 1)
        free -= set(of_path)
    return found


def _why_not(path, paths, names, label_file):
    """What is wrong with a file that `_told_apart` has no label for."""
    if label_file and not names:
        return f"audio without a label in {label_file}"
    if len(paths) == 1:
        return f"{len(names)} labels of its name in {label_file}, {names[0]} and {names[1]}; leave one"
    other = next(one for one in paths if one != path)
    return f"same name as {other}" + (
        f", and no label in {label_file} is of its folder alone" if label_file else "; one of the two must go"
    )


def write_sets(
    sets: Mapping[str, Sequence[Utterance]],
    out: Path | str,
    log: logging.Logger,
    name: str,
    skip_bad: bool = False,
    problems: Sequence[tuple[Path | str, str]] = (),
    parts: Parts | None = None,
    rate: int | None = RATE,
    needed: str = "train",
) -> dict[str, dict[str, int]]:
    """Check the audio of {set: [Utterance, ...]} and write <set>.jsonl.gz of those that are good into `out`.

    name: what messages call the corpus. problems: found so far. Utterances with problems are left out and listed in
    out/problems.txt as long as they are isolated, else they stop unless skip_bad (`pyspeech.data.problems.report_problems`).
    rate: Hz, of the corpus as it is distributed; None where that is not known. needed: the set without which it is of no use.
    Returns {set: {"genuine": n, "fake": n, "unlabelled": n}}, zeros left out. UserError where a class of that set is empty.
    """
    out = Path(out).resolve()
    everything = [one for utterances in sets.values() for one in utterances]
    good, found = check_utterances(everything, lambda one: check_file(one.audio), log, parts=parts)
    report_problems(name, out, [*problems, *found], len(good) + len(found) + len(problems), skip_bad, log)
    counts, used = {}, []
    for part in SETS:
        rows = readable_copies([row for row in good if row[0].split == part], out / "mixed" / part, log, parts)
        used += [Path(path) for _, path, _ in rows]
        counts[part] = dict(Counter(one.text or "unlabelled" for one, _, _ in rows))
        _require_classes(part, counts[part], name, out, needed)
        _remark(part, rows, log, rate)
        write_manifest(out / f"{part}.jsonl.gz", rows)
    clear(out, (), "mixed", keep=used)
    return {part: count for part, count in counts.items() if count}


def _require_classes(part, counts, name, out, needed):
    missing = [kind for kind in ("genuine", "fake") if not counts.get(kind)]
    if missing and (part == needed == "train" or counts and "unlabelled" not in counts):
        raise UserError(
            f"{name}: no usable {' and no usable '.join(missing)} utterance in {part}; expected both kinds"
            + (f"; see {out / 'problems.txt'}" if (out / "problems.txt").exists() else "")
        )


def _remark(part, rows, log, rate):
    if not rows:
        return
    lengths = [properties["duration"] for _, _, properties in rows]
    kinds = Counter(one.text or "unlabelled" for one, _, _ in rows)
    log.info(
        "%s: %s; %.2f to %.2f s, mean %.2f s; attacks: %s",
        part,
        ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        min(lengths),
        max(lengths),
        sum(lengths) / len(lengths),
        ", ".join(sorted({one.custom["attack"] for one, _, _ in rows} - {UNKNOWN})) or "not told",
    )
    rates = Counter((one.text or "unlabelled", properties["rate"]) for one, _, properties in rows)
    different = {found for _, found in rates}
    if different - {rate} if rate else len(different) > 1:
        log.warning(
            "%s: %s: %s; a rate that goes with a class gives the class away",
            part,
            f"not all audio is of {rate} Hz, as the corpus is distributed" if rate else "audio of several sampling rates",
            ", ".join(f"{count} {kind} at {found} Hz" for (kind, found), count in sorted(rates.items())),
        )
