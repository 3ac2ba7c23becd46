"""Report page of unit discovery: ABX by pairs of phones and of speakers, the use of codebooks, and utterances
beside their resyntheses, with their units."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspeech.report.charts import line_chart
from pyspeech.report.examples import example, heard, lane, section
from pyspeech.report.media import excerpt
from pyspeech.report.sources import read_sources
from pyspeech.units.usage import count_codes

if TYPE_CHECKING:
    from pyspeech.report.experiment import Experiment
    from pyspeech.report.media import Media

SPOKEN = 16  # utterances that are shown
COUNTED = 2000  # utterances in which codes are counted
MOST_PHONES = 45  # of a heat map; the commonest
SYSTEMS = 8  # that are compared in the use of codes


def view(experiment: Experiment, media: Media) -> list[dict[str, Any]]:
    """The sections of an experiment; see pyspeech.report.page."""
    import yaml

    folder = experiment.folder
    options = yaml.safe_load(experiment.configuration) or {}
    scores = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "scores").glob("*.json"))}
    spoken = str(options.get("synthesis", ""))
    sections = []
    if examples := list(_spoken(folder, media, spoken)):
        sections.append(_listening(examples, experiment.called(spoken)))
    if heat := list(_heat(scores, spoken, experiment.called)):
        text = "ABX error in %, of the first seed; darker is worse, white is 0 and full colour 50, which is chance."
        sections.append(section("abx", "ABX by phones and speakers", [text], heat=heat))
    if codes := _codes(experiment, scores, spoken):
        sections.append(codes)
    return sections


def _units(folder, system):
    """The folder of the units of a system by its first seed, or None."""
    seeds = sorted((path for path in (folder / system).glob("*") if path.is_dir()), key=lambda path: path.name)
    return seeds[0] if system and seeds else None


def _listening(examples, spoken):
    speakers = sorted({entry["speaker"] for each in examples for entry in each["entries"]})
    text = [
        f"The original, and what {spoken} makes of its units in each voice. Units are numbered by how often they occur.",
        "A click in the picture plays the original.",
    ]
    return section("listen", "Listen", text, examples=examples, filters=[("speaker", "speaker", speakers, "")])


def _spoken(folder, media, system):
    """Examples of test utterances that were spoken, of all speakers in turn."""
    from pyspeech.units.submission import synthesis_names

    sources = {source.id: source for source in read_sources(folder / "corpus", "test")}
    voices = sorted({source.supervision.get("speaker") or "" for source in read_sources(folder / "corpus", "voice")} - {""})
    names = synthesis_names((id, voice) for id in sources for voice in voices)
    waves: dict[str, list[tuple[str, Path]]] = {}
    for (id, voice), name in sorted(names.items()):
        # Where two utterances would have the same name, those that are spoken decide: one alone has the short one.
        for each in {name, f"{voice}_{id.partition('_')[2] or id}.wav"}:
            if (folder / "wavs" / each).is_file():
                waves.setdefault(id, []).append((voice, folder / "wavs" / each))
    units = _units(folder / "units", system)
    numbers = _numbers(units) if units else {}
    for id in _in_turn({id: sources[id].supervision.get("speaker", "") for id in sorted(waves)})[:SPOKEN]:
        yield _example(media, sources[id], waves[id], units, numbers)


def _in_turn(speakers):
    """Ids, one of each speaker after the other. speakers: {id: speaker}."""
    seen: Counter = Counter()
    order = {}
    for id, speaker in speakers.items():
        order[id] = (seen[speaker], speaker)
        seen[speaker] += 1
    return sorted(order, key=lambda id: order[id])


def _example(media, source, waves, units, numbers):
    speaker = source.supervision.get("speaker", "")
    audio, picture, seconds = heard(media, source.path, source.start, source.seconds)
    sounds = [("original", audio)]
    for voice, path in waves:
        sounds.append((f"{voice}, the speaker's own voice" if voice == speaker else voice, media.audio(*excerpt(path, 0, 1e5))))
    lanes = []
    if units and (units / f"{source.id}.npy").is_file():
        rows = [numbers.get(row.tobytes(), "") for row in np.load(units / f"{source.id}.npy")]
        length = seconds / max(1, len(rows))
        spans = [(first * length, last * length, "unit", str(number)) for first, last, number in _runs(rows)]
        lanes.append(lane("units", spans, 0.0, seconds))
    text = source.supervision.get("text")
    entry = {"rank": 0, "speaker": speaker, "note": text or ""}
    return example(f"{source.id}, {speaker}", [entry], seconds, 0.0, picture, sounds, lanes)


def _runs(values):
    """(first, behind the last, value) of each run of equal values."""
    first = 0
    for index in range(1, len(values) + 1):
        if index == len(values) or values[index] != values[first]:
            yield first, index, values[first]
            first = index


def _numbers(folder):
    return {code: number for number, (code, _) in enumerate(count_codes(folder, COUNTED).most_common())}


def _heat(scores, spoken, called):
    """The tables of the system that speaks, and of the features themselves."""
    for system in [name for name in dict.fromkeys([spoken, "mfcc"]) if name in scores]:
        for mode, by in scores[system][0].get("abx_by", {}).items():
            for kind, pairs in by.items():
                counts = Counter(name for one, other, _ in pairs for name in {one, other})
                names = sorted(name for name, _ in counts.most_common(MOST_PHONES))
                rows = list(_rows(pairs, names, both_ways=kind == "phones"))
                yield {"title": f"{called(system)}, {mode} speakers: {kind}", "header": ["", *names], "rows": rows}


def _rows(pairs, names, both_ways):
    errors = {(one, other): error for one, other, error in pairs}
    if both_ways:
        errors.update({(other, one): error for one, other, error in pairs})
    for one in names:
        found = [errors.get((one, other)) for other in names]
        yield one, [("", None) if error is None else (f"{error:.0f}", min(1.0, error / 50)) for error in found]


def _codes(experiment, scores, spoken):
    """Shares of the codes, the commonest first, of the system that speaks and of the first others."""
    lines, rows = {}, []
    known = [name for name in dict.fromkeys([spoken, *scores]) if name in scores and scores[name][0].get("codes")]
    for system in known[:SYSTEMS]:
        folder, label = _units(experiment.folder / "units", system), experiment.called(system)
        counts = np.array(sorted(count_codes(folder, COUNTED).values(), reverse=True) if folder else [], float)
        if len(counts):
            shares = counts / counts.sum()
            perplexity = float(np.exp(-(shares * np.log(shares)).sum()))
            lines[label] = list(zip(range(1, len(shares) + 1), (100 * shares).tolist(), strict=True))
            rows.append([label, scores[system][0]["codes"], len(shares), f"{perplexity:.1f}", f"{100 * shares[0]:.1f}"])
    if not lines:
        return None
    chart = line_chart("Use of the codes", lines, "codes by how often they occur", "share / %")
    header = ["system, first seed", "codes", "in use", "perplexity", "commonest / %"]
    table = {"title": "", "header": header, "rows": rows}
    return section("codes", "Use of the codebook", charts=[chart], tables=[table])
