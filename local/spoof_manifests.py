"""Corpora of genuine and fake utterances: the checks and manifests that local/add2022.py and asvspoof2019.py share.

A module of one corpus finds the audio and the label file of its sets; written are <set>.jsonl.gz, Lhotse cuts of one
supervision as pyspeech/spoofing/formats.py has them: `text` "genuine" or "fake" (None where nobody has told),
`speaker` or "-", `custom = {"attack": ..., "condition": ...}`. Audio stays where it is, at its own sampling rate;
files with several channels, and formats that are not commonly read, are mixed to mono WAV files in mixed/<set>.
"""
import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from local.transcribed import Utterance, check_file, readable_copy, report_problems, write_manifest
from pyspeech.errors import UserError
from pyspeech.spoofing.formats import UNKNOWN, Label, read_labels, utterance_name

SETS = ("train", "dev", "adapt", "eval")
RATE = 16000                    # Hz, of both corpora as they are distributed


def pair(part, audio, label_file, language):
    """([Utterance, ...], [(file, what is wrong), ...]) of one set, by the names of files and of labels.

    audio: paths of the set's files. label_file: Path, or None where there is none: then no label is known.
    """
    labels = {Path(name).name: label for name, label in read_labels(label_file).items()} if label_file else None
    files, utterances, problems = {}, [], []
    for path in audio:
        other = files.setdefault(utterance_name(path.name), path)
        if other is not path:
            problems.append((path, f"same name as {other}; one of the two must go"))
    for name, path in files.items():
        label = Label(None) if labels is None else labels.get(name)
        if label is None:
            problems.append((path, f"audio without a label in {label_file}"))
            continue
        custom = {"attack": label.attack, "condition": label.condition}
        utterances.append(Utterance(name, str(path), label.kind, language, label.speaker, part, custom))
    problems += [(f"{label_file}, {name}", f"label without audio in {part}")
                 for name in labels or () if name not in files]
    return sorted(utterances, key=lambda one: one.id), problems


def write_sets(sets, out, log, name, skip_bad=False, problems=()):
    """Check the audio of {set: [Utterance, ...]} and write <set>.jsonl.gz of those that are good into `out`.

    name: what messages call the corpus. problems: found so far. Utterances with problems are left out and listed in
    out/problems.txt as long as they are isolated, else they stop unless skip_bad (`local.transcribed.report_problems`).
    Returns {set: {"genuine": n, "fake": n, "unlabelled": n}}, zeros left out. UserError where a class of the training
    set is empty.
    """
    out = Path(out).resolve()
    good, found = _check([one for utterances in sets.values() for one in utterances], log)
    report_problems(name, out, [*problems, *found], len(good) + len(found) + len(problems), skip_bad, log)
    shutil.rmtree(out / "mixed", ignore_errors=True)
    counts = {}
    for part in SETS:
        rows = [(one, *readable_copy(replace(one, language=part), properties, out, log))
                for one, properties in good if one.split == part]
        counts[part] = dict(Counter(one.text or "unlabelled" for one, _, _ in rows))
        _require_classes(part, counts[part], name, out)
        _remark(part, rows, log)
        write_manifest(out / f"{part}.jsonl.gz", rows)
    return {part: count for part, count in counts.items() if count}


def _check(utterances, log):
    """([(utterance, audio properties), ...], [(file, what is wrong), ...])."""
    from tqdm import tqdm

    log.info("checking the audio of %d utterances", len(utterances))
    good, problems = [], []
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        checks = pool.map(check_file, [one.audio for one in utterances])
        for one, (properties, problem) in tqdm(zip(utterances, checks), "check", len(utterances), disable=None):
            if problem:
                problems.append((one.audio, problem))
            else:
                good.append((one, properties))
    return good, problems


def _require_classes(part, counts, name, out):
    missing = [kind for kind in ("genuine", "fake") if not counts.get(kind)]
    if missing and (part == "train" or counts and "unlabelled" not in counts):
        raise UserError(f"{name}: no usable {' and no usable '.join(missing)} utterance in {part}; expected both kinds"
                        + (f"; see {out / 'problems.txt'}" if (out / "problems.txt").exists() else ""))


def _remark(part, rows, log):
    if not rows:
        return
    lengths = [properties["duration"] for _, _, properties in rows]
    kinds = Counter(one.text or "unlabelled" for one, _, _ in rows)
    log.info("%s: %s; %.2f to %.2f s, mean %.2f s; attacks: %s", part,
             ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())), min(lengths), max(lengths),
             sum(lengths) / len(lengths), ", ".join(sorted({one.custom["attack"] for one, _, _ in rows} - {UNKNOWN}))
             or "not told")
    rates = Counter((one.text or "unlabelled", properties["rate"]) for one, _, properties in rows)
    other = {rate for _, rate in rates if rate != RATE}
    if other:
        log.warning("%s: not all audio is of %d Hz, as the corpus is distributed: %s; a rate that goes with a class "
                    "gives the class away", part, RATE,
                    ", ".join(f"{count} {kind} at {rate} Hz" for (kind, rate), count in sorted(rates.items())))
