"""Recognition of the test sets by the systems of egs/indic, their scores, and early stopping (Table 7)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.engine.parts import in_parts
from pyspeech.engine.process import model_processes
from pyspeech.files import atomic_path, atomic_write, write_json
from steps.asr.bonus import search_of
from steps.asr.context import add_context
from steps.asr.corpus import languages_of, load_cuts
from steps.asr.tables import chance_notes, one_row
from steps.asr.train import STRUCTURES
from steps.chance import warn

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut import Cut

    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.config import EarlyStopping
    from pyspeech.asr.recognizer import Recognition
    from pyspeech.engine.run import Experiment

AT_ONCE = 64  # utterances that are recognised at a time: what a kill can lose


def decode_system(exp: Experiment, conf: Any, system: str) -> None:
    """Recognise the test sets with a system, and score them.

    Makes decoded/<system>/<language>.jsonl, an utterance a line; errs- and recogs- files; scores/<system>.json.
    With language identification also decoded/<system>/dev, for early stopping to be chosen on. A stage that was killed goes
    on with the utterances that are missing.
    """
    corpus, folder = exp.dir / "corpus", exp.dir / "decoded" / system
    parts = {}
    for language in languages_of(corpus):
        for name in ("test", *["dev"] * bool(STRUCTURES[system].get("lid"))):
            cuts = load_cuts(corpus, name, language)
            if not cuts:
                exp.log.warning("%s: no %s utterances", language, name)
            parts.update(
                {
                    f"{name} {language} {first:07d}": (name, language, cuts[first : first + AT_ONCE])
                    for first in range(0, len(cuts), AT_ONCE)
                }
            )
    decode = recognizer(exp, conf, system)
    found = in_parts(exp.parts, "utterances", lambda part: decode(*part[1:]), parts, model_processes(), log=exp.log)
    warn_of_search(exp, conf, system)
    decoded = {}
    for (name, language, _), utterances in zip(parts.values(), found.values(), strict=True):
        decoded.setdefault((folder if name == "test" else folder / name, language), []).extend(utterances)
    for (place, language), utterances in decoded.items():
        write_decoded(place, language, utterances)
    scored = score_system(folder, system)
    write_json(exp.dir / "scores" / f"{system}.json", scored)
    for model, scores in scored.items():
        exp.log.info("%s", one_row(model, scores))
        warn(exp.log, chance_notes(model, scores))


def warn_of_search(exp: Experiment, conf: Any, system: str) -> None:
    """Warn where a model keeps other options of the search than these, as it was trained before they were changed."""
    from dataclasses import asdict

    from pyspeech.asr.checkpoint import load_model

    folder = next((exp.dir / "models" / system).rglob("model.pt"))
    bundle = load_model(folder)
    kept, own = asdict(bundle.search), asdict(search_of(conf, bundle))
    other = [f"--{name.replace('_', '-')} {own[name]}" for name in own if own[name] != kept[name]]
    if other:
        exp.log.warning("%s: was trained with other options of the search; transcribe it with %s", folder, " ".join(other))


def recognizer(
    exp: Experiment, conf: Any, system: str
) -> Callable[[str, Sequence[Cut]], list[tuple[dict[str, Any], np.ndarray | None, list[str]]]]:
    """A function: (language, its cuts) -> [(what decoded/<system>/<language>.jsonl has of each, log posteriors of the
    languages (T, languages) float32 or None, the codes of these languages)]. Only systems that need the language's code are
    told it."""
    from functools import lru_cache

    import numpy as np
    import torch

    from pyspeech.asr.checkpoint import load_model
    from pyspeech.asr.recognizer import recognize
    from pyspeech.compat import default_device
    from pyspeech.data.cuts import read_samples
    from pyspeech.text.normalize import normalize

    structure, place = STRUCTURES[system], exp.dir / "models" / system
    told = structure["structure"] != "vanilla" and not structure.get("lid")
    contexts = add_context(exp, conf, system)

    @lru_cache(maxsize=1)
    def load(folder):
        bundle = load_model(folder, default_device())
        return bundle, contexts(bundle)

    def decode(language, cuts):
        bundle, context = load(place / language if structure["structure"] == "monolingual" else place)
        samples = [read_samples(cut, bundle.fbank.sampling_rate) for cut in cuts]
        with torch.inference_mode():
            results = recognize(bundle, samples, language if told else None, search_of(conf, bundle), context=context)
        found = []
        for cut, result in zip(cuts, results, strict=True):
            supervision = cut.supervisions[0]
            log_posteriors, by_language = identified(result, bundle) if structure.get("lid") else (None, {})
            line = {
                "id": cut.id,
                "speaker": supervision.speaker,
                "ref": normalize(supervision.text or "", language),
                "hyp": result.text,
                "predicted": None if told else predicted_language(result, bundle),
                "by_language": by_language,
            }
            posteriors = None if log_posteriors is None else log_posteriors.astype(np.float32)
            found.append((line, posteriors, bundle.model.languages))
        return found

    return decode


def write_decoded(
    folder: Path, language: str, utterances: Iterable[tuple[dict[str, Any], np.ndarray | None, list[str]]]
) -> None:
    """folder/<language>.jsonl and, with language identification, <language>.npz, of what a `recognizer` gives."""
    import numpy as np

    lines, posteriors, languages = zip(*utterances, strict=True)
    if posteriors[0] is not None:
        with atomic_path(folder / f"{language}.npz") as temporary, open(temporary, "wb") as stream:
            named = {f"utterance {line['id']}": value for line, value in zip(lines, posteriors, strict=True)}
            np.savez(stream, languages=languages[0], **named)
    with atomic_write(folder / f"{language}.jsonl") as stream:
        stream.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def predicted_language(result: Recognition, bundle: Bundle) -> str:
    """The language of a Recognition whose language nobody told; where the text of a vanilla model fits several alike, all."""
    from pyspeech.text.scripts import languages_of as fitting
    from pyspeech.text.wer import several

    return result.language or several(fitting(result.text, bundle.units[bundle.model.languages[0]].languages))


def identified(result: Recognition, bundle: Bundle) -> tuple[np.ndarray, dict[str, str]]:
    """(log posteriors (T, languages), {language: text of its decoder}) of a Recognition by a model with language
    identification; a model of one language has nothing to identify."""
    import numpy as np

    if len(bundle.model.languages) > 1:
        return result.lid_log_posteriors, result.by_language  # pyright: ignore[reportReturnType]
    return np.zeros((round(result.seconds / bundle.frame_seconds), 1)), {result.language: result.text}


def score_system(folder: Path, system: str) -> dict[str, dict[str, Any]]:
    """{system: scores} from its decoded files, for multi_softmax_lid also those of its oracle; writes errs-, recogs-."""
    from pyspeech.text.wer import score_utterances, write_errs, write_recogs

    variants = {system: lambda line, language: line["hyp"]}
    if STRUCTURES[system].get("lid"):
        variants[f"{system}_oracle"] = lambda line, language: line["by_language"][language]
    decoded = read_decoded(folder)
    scored = {}
    for model, text_of in variants.items():
        utterances = [
            (
                line["id"],
                language,
                line["speaker"],
                line["ref"],
                text_of(line, language),
                line["predicted"] if model == system else None,
            )
            for language, lines in decoded.items()
            for line in lines
        ]
        scored[model] = score_utterances(utterances, characters=True)
        write_errs(folder / f"errs-{model}.txt", utterances)
        write_recogs(folder / f"recogs-{model}.txt", utterances)
    return scored


def read_decoded(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """{language: its lines as dicts} of a folder that `decode_system` wrote."""
    return {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        for path in sorted(folder.glob("*.jsonl"))
    }


def stop_early(exp: Experiment, conf: Any, system: str) -> None:
    """Write early_stopping.json, Table 7: an entry for every rule and setting, of the test set.

    "dev" in it is the same of dev, None without dev. No entries where nothing of the test set was decoded.
    system: one with language identification.
    """
    from pyspeech.asr.config import STOPPING_RULES, EarlyStopping

    settings = [EarlyStopping()] + [
        EarlyStopping(rule, tau, threshold)
        for rule in STOPPING_RULES
        for tau in conf.stop_after
        for threshold in conf.stop_below
    ]
    folder = exp.dir / "decoded" / system
    figures = zip(settings, stopped_early(folder, settings), stopped_early(folder / "dev", settings), strict=True)
    write_json(
        exp.dir / "early_stopping.json",
        [
            {
                "rule": setting.rule,
                "tau_frames": None if math.isinf(setting.tau) else setting.tau,
                "threshold": None if math.isinf(setting.threshold) else setting.threshold,
                **test,
                "dev": dev,
            }
            for setting, test, dev in figures
            if test is not None
        ],
    )


def stopped_early(folder: Path, settings: Sequence[EarlyStopping]) -> Sequence[Any]:
    """Errors, words, T_avg and LID accuracy with each setting, of all languages and of each ("languages"), from the
    posteriors that were decoded with; None for each where nothing was decoded.

    The search of a language does not depend on the others', so one decoding with all of them serves all settings.
    """
    import numpy as np

    from pyspeech.asr.early_stopping import run
    from pyspeech.text.wer import align, count_errors

    lines, log_posteriors, codes = [], [], []
    for language, decoded in read_decoded(folder).items():
        with np.load(folder / f"{language}.npz") as stored:
            codes = stored["languages"].tolist()
            log_posteriors += [stored[f"utterance {line['id']}"] for line in decoded]
        lines += [(line, language) for line in decoded]
    entries = []
    for setting in settings if lines else []:
        rows = {language: [] for _, language in lines}
        for (line, language), (chosen, t_avg) in zip(lines, run(log_posteriors, setting), strict=True):
            counts = count_errors(align(line["ref"].split(), line["by_language"][codes[chosen]].split()))
            rows[language].append({**counts, "t_avg": t_avg, "correct": codes[chosen] == language})
        entries.append({**pooled(sum(rows.values(), [])), "languages": {code: pooled(own) for code, own in rows.items()}})
    return entries or [None] * len(settings)


def pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Pool the figures of the utterances of an early stopping."""
    from pyspeech.asr.early_stopping import overall_t_avg

    return {
        "errors": sum(row["errors"] for row in rows),
        "words": sum(row["words"] for row in rows),
        "t_avg": overall_t_avg([row["t_avg"] for row in rows]),
        "lid_accuracy": sum(row["correct"] for row in rows) / len(rows),
    }
