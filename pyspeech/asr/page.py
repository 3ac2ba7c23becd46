"""Report page of recognition: confusion of languages, and the utterances with most errors, aligned
word by word, with what the language identification said over time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspeech.asr.stopping import cheapest_setting, setting
from pyspeech.report.examples import curve, example, heard, lane, section
from pyspeech.report.sources import read_sources

if TYPE_CHECKING:
    from pyspeech.report.experiment import Experiment
    from pyspeech.report.media import Media

OF_LANGUAGE, OF_SPEAKER, MOST = 8, 1, 80  # utterances that are shown: the worst of each language and speaker, and of all
COLOURS = [("wrong", "another word"), ("lost", "left out"), ("more", "put in"), ("mark", "a decoder stops")]


def view(experiment: Experiment, media: Media) -> list[dict[str, Any]]:
    """The sections of an experiment; see pyspeech.report.page."""
    folder = experiment.folder
    sections = []
    if confusions := list(_confusions(experiment)):
        text = "Rows: the language spoken; columns: the language recognised; utterances of the test set."
        sections.append(section("languages", "Confusion of languages", [text], heat=confusions))
    decoded = {path.name: _read(path) for path in sorted((folder / "decoded").glob("*")) if path.is_dir()}
    if utterances := _utterances(decoded):
        sections.append(_errors(experiment, media, utterances))
    return sections


def _confusions(experiment):
    """A table of each system that says which language it heard."""
    for path in sorted((experiment.folder / "scores").glob("*.json")):
        for system, found in json.loads(path.read_text(encoding="utf-8")).items():
            confusion = found.get("lid", {}).get("confusion", {})
            heard_as = list(dict.fromkeys([*confusion, *sorted({code for row in confusion.values() for code in row})]))
            rows = []
            for code, counts in confusion.items():
                total = sum(counts.values()) or 1
                rows.append((code, [(counts.get(other, 0), counts.get(other, 0) / total) for other in heard_as]))
            if rows:
                yield {"title": experiment.called(system), "header": ["spoken", *heard_as], "rows": rows}


def _read(folder):
    """[(language, a line of decoded/<system>/<language>.jsonl)]"""
    return [
        (path.stem, json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]


def _utterances(decoded):
    """{id: {"language", "speaker", "errors": {system: number}, "lines": {system: line}}}"""
    import kaldialign

    found = {}
    for system, lines in decoded.items():
        for language, line in lines:
            about = {"language": language, "speaker": line["speaker"] or "", "errors": {}, "lines": {}}
            utterance = found.setdefault(line["id"], about)
            errors = kaldialign.edit_distance(line["ref"].split(), line["hyp"].split())["total"]
            utterance["errors"][system], utterance["lines"][system] = int(errors), line
    return found


def _worst(utterances: dict[str, dict]) -> Iterable[str]:
    """Ids: of each system the worst of each language, then the worst of each speaker, up to MOST."""
    chosen: dict[str, None] = {}
    systems = list(dict.fromkeys(system for each in utterances.values() for system in each["errors"]))
    for key, most in (("language", OF_LANGUAGE), ("speaker", OF_SPEAKER)):
        for system in systems:
            seen: dict[str, int] = {}
            ranked = sorted(utterances, key=lambda id: -utterances[id]["errors"].get(system, -1))
            for id in ranked:
                value = utterances[id][key]
                seen[value] = seen.get(value, 0) + 1
                if seen[value] <= max(1, most // len(systems)) and len(chosen) < MOST:
                    chosen[id] = None
    return chosen


def _errors(experiment, media, utterances):
    sources = {source.id: source for source in read_sources(experiment.folder / "corpus", "test")}
    stops, called = _Stops(experiment.folder), experiment.called
    examples = [_example(media, id, utterances[id], sources.get(id), stops, called) for id in _worst(utterances)]
    entries = [entry for each in examples for entry in each["entries"]]
    systems, languages, speakers = (sorted({entry[key] for entry in entries}) for key in ("system", "language", "speaker"))
    filters = [("system", "system", systems, ""), ("language", "language", languages, ""), ("speaker", "speaker", speakers, "")]
    text = [f"The utterances with most errors of each language and of each speaker: {len(examples)} of {len(utterances)}."]
    if stops.rule:
        text.append(f"Decoders stop by the rule that dev chooses for the lowest cost within a point of WER: {stops.rule}.")
    return section("errors", "Utterances by errors", text, COLOURS, examples=examples, filters=filters)


def _example(media, id, utterance, source, stops, called):
    entries, words = [], []
    for system, line in utterance["lines"].items():
        errors, total = utterance["errors"][system], len(line["ref"].split())
        said = f", recognised as {line['predicted']}" if line.get("predicted") else ""
        note = f"{called(system)}: {errors} errors, {total} words{said}"
        about = {"system": called(system), "language": utterance["language"], "speaker": utterance["speaker"]}
        entries.append({**about, "rank": errors, "note": note})
        words.append(_aligned(line["ref"], line["hyp"], called(system)))
    audio = picture = None
    seconds = source.seconds if source else 0.0
    if source:
        audio, picture, seconds = heard(media, source.path, source.start, source.seconds)
    lanes = [row for system in utterance["lines"] for row in stops.lanes(system, utterance["language"], id, seconds)]
    title = f"{id}, {utterance['language']}" + (f", {utterance['speaker']}" if utterance["speaker"] else "")
    return example(title, entries, seconds, 0.0, picture, [("", audio)], lanes, words)


def _aligned(reference, hypothesis, system):
    """Two rows, of the words of the reference and of the system; an empty cell where one has none."""
    from pyspeech.text.wer import EPSILON, align

    rows = [[], []]
    for ref, hyp in align(reference.split(), hypothesis.split()):
        kind = "" if ref == hyp else "lost" if hyp == EPSILON else "more" if ref == EPSILON else "wrong"
        rows[0].append({"text": ref, "kind": kind if kind == "lost" else ""})
        rows[1].append({"text": hyp, "kind": "" if kind == "lost" else kind})
    return [{"label": "reference", "words": rows[0]}, {"label": system, "words": rows[1]}]


class _Stops:
    """The posteriors of languages over time that a system has left, and when the decoders of languages stop by the rule that
    dev has chosen."""

    def __init__(self, folder):
        from pyspeech.asr.config import EarlyStopping

        self.folder, self.config, self.rule, self._stored = folder / "decoded", None, "", {}
        path = folder / "early_stopping.json"
        chosen = cheapest_setting(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
        if chosen:
            tau, threshold = setting(chosen[0])
            self.config = EarlyStopping(chosen[0]["rule"], tau, threshold)
            self.rule = f"{chosen[0]['rule']}, tau {tau:g} frames, threshold {threshold:g}"

    def lanes(self, system, language, id, seconds):
        """The rows of an utterance; none of a system that does not identify languages."""
        import numpy as np

        path = self.folder / system / f"{language}.npz"
        if not path.is_file() or not seconds:
            return []
        if path not in self._stored:
            self._stored[path] = np.load(path)
        stored = self._stored[path]
        if f"utterance {id}" not in stored:
            return []
        log_posteriors, codes = stored[f"utterance {id}"], stored["languages"].tolist()
        shift = seconds / max(1, len(log_posteriors))
        times = (np.arange(len(log_posteriors)) + 0.5) * shift
        curves = {
            code: list(zip(times.tolist(), np.exp(values).tolist(), strict=True))
            for code, values in zip(codes, log_posteriors.T, strict=True)
        }
        marks = [(time, time, "mark", code) for code, time in self._times(log_posteriors, codes, shift)]
        return [curve(curves, 0.0, seconds), *([lane("stops", marks, 0.0, seconds)] if marks else [])]

    def _times(self, log_posteriors, codes, shift):
        """(language, seconds) of the decoders that stop before the end."""
        if not self.config:
            return []
        from pyspeech.asr.early_stopping import EarlyStopper

        running = EarlyStopper(1, len(codes), self.config).add(log_posteriors[None])[0]
        frames = running.sum(axis=0).tolist()
        return [(code, frame * shift) for code, frame in zip(codes, frames, strict=True) if frame < len(running)]
