"""Word error rate (WER) by language with confidence intervals, language identification (LID) accuracy, error files.

    WER = (substitutions + deletions + insertions) / reference words,   WERR = (WER_baseline - WER) / WER_baseline

An average is word-weighted as in Joshi et al. 2021, section 6: errors and words are pooled, then divided. Rates are
fractions (0.25 is 25 %) and may exceed 1; a rate without reference words is None, but the insertions there still count
in every pool. Alignments come from kaldialign, at cost 1 for each error. Other tools agree on the number of errors, not
always on its split into substitutions, deletions and insertions, for several alignments may be the best.

Confidence intervals are percentiles of a bootstrap, after Bisani and Ney 2004, "Bootstrap estimates for confidence
intervals in ASR performance evaluation": utterances are drawn with replacement, each language its own number of them.
Speakers may be drawn instead, which allows for utterances of one speaker being alike; it takes a dozen speakers or more
for that interval to mean something, hence utterances are the default.

An utterance is a tuple (id, language, speaker, ref, hyp, predicted_language): ref and hyp are text, words separated by
white space, "" where there are none; language, speaker and predicted_language are None where unknown. A hypothesis
that fits several languages alike has them all as predicted_language, as `several` joins them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import kaldialign
import numpy as np

from pyspeech.errors import UserError
from pyspeech.files import atomic_write

# (id, language, speaker, ref, hyp, predicted_language)
Utterance = tuple[str, str | None, str | None, str, str, str | None]
EPSILON = " "  # stands for no word in an alignment; no word can equal it, for words hold no white space
UNDETERMINED = "und"  # the language of utterances without one (the code that BCP 47 has for it)
NO_LANGUAGE = "none"  # the predicted language where the recogniser gave none
OR = " or "  # between several predicted languages
DRAWS_AT_ONCE = 1_000_000


def align(ref: list[str], hyp: list[str]) -> list[tuple[str, str]]:
    """Best alignment of two lists of words: list of (ref word, hyp word), EPSILON where one side has none."""
    return kaldialign.align(ref, hyp, EPSILON)


def count_errors(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Counts of an alignment: {"errors", "words", "sub", "del", "ins"}, where words are those of the reference."""
    insertions = sum(ref == EPSILON for ref, _ in pairs)
    deletions = sum(hyp == EPSILON for _, hyp in pairs)
    errors = sum(ref != hyp for ref, hyp in pairs)
    return {
        "errors": errors,
        "words": len(pairs) - insertions,
        "sub": errors - insertions - deletions,
        "del": deletions,
        "ins": insertions,
    }


def count_character_errors(ref: str, hyp: str) -> tuple[int, int]:
    """(errors, characters) of two texts: code points, with one space between words that counts as a character."""
    ref, hyp = " ".join(ref.split()), " ".join(hyp.split())
    return int(kaldialign.edit_distance(ref, hyp)["total"]), len(ref)


def rate(errors: int, words: int) -> float | None:
    """Error rate: errors / words, or None without words."""
    return errors / words if words else None


def relative_reduction(baseline: float | None, value: float | None) -> float | None:
    """WERR as a fraction: positive where `value` is the lower error rate. None where it is not defined."""
    return None if value is None or not baseline else (baseline - value) / baseline


def score_utterances(
    utterances: Iterable[Utterance], resample: str = "utterance", resamples: int = 1000, seed: int = 0, characters: bool = False
) -> dict:
    """Score one model on one test set.

    utterances: list of tuples as described on top, each (language, id) once; resample: "utterance" or "speaker", what
    the bootstrap draws. The order of the utterances does not matter. Returns plain data:
    {"languages": {code: {"errors", "words", "sub", "del", "ins", "utterances", "ci": [low, high] or None}},
     "average": the same over all languages,
     "lid": {"accuracy": {code: fraction or None}, "undecided": {code: fraction}, "confusion": {code: {predicted: utterances}}}}
    "ci" is the 95 % interval of the WER. "lid" is of the utterances whose language is known, and there where any of these
    has a predicted one; an utterance without one then counts as wrong, as "none". One with several predicted languages,
    its own among them, is undecided: neither right nor wrong, and left out of the accuracy. With characters=True each
    entry also has "character_errors", "characters" and "cer_ci". UserError where there are no utterances, one is there
    twice, or a speaker is missing but needed.
    """
    utterances = _checked(utterances)
    counts = [_utterance_counts(utterance, characters) for utterance in utterances]
    codes = [_code(utterance) for utterance in utterances]
    groups = _groups(utterances, resample)

    def interval(chosen, *names):
        errors, units = ([counts[index][name] for index in chosen] for name in names)
        strata = [codes[index] for index in chosen], [groups[index] for index in chosen]
        return bootstrap_interval(errors, units, *strata, resamples, seed)

    def entry(chosen):
        total = {name: sum(counts[index][name] for index in chosen) for name in counts[0]}
        found = {**total, "utterances": len(chosen), "ci": interval(chosen, "errors", "words")}
        return {**found, "cer_ci": interval(chosen, "character_errors", "characters")} if characters else found

    by_language = {code: [index for index, other in enumerate(codes) if other == code] for code in sorted(set(codes))}
    result = {
        "languages": {code: entry(chosen) for code, chosen in by_language.items()},
        "average": entry(range(len(utterances))),
    }
    spoken = [utterance for utterance in utterances if utterance[1]]
    if any(utterance[5] is not None for utterance in spoken):
        result["lid"] = _score_lid(spoken)
    return result


def bootstrap_interval(
    errors: Sequence[int] | np.ndarray,
    words: Sequence[int] | np.ndarray,
    strata: Sequence[str] | Sequence[int],
    groups: Sequence[str] | Sequence[int],
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> list[float] | None:
    """Percentile interval [low, high] of sum(errors) / sum(words), or None where there are no words.

    errors, words: (n,) counts; strata, groups: (n,) labels. In each stratum its groups are drawn with replacement, as
    many as it has. A draw without words has no rate and is left out.
    """
    if not sum(words):
        return None
    sums = _resampled_sums(np.stack([errors, words], axis=1).astype(np.int64), strata, groups, resamples, seed)
    return _interval(sums[:, 0], sums[:, 1], level)


def compare(
    baseline: Iterable[Utterance],
    utterances: Iterable[Utterance],
    resample: str = "utterance",
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict:
    """Paired comparison of two models on the same utterances: both lists as for `score_utterances`.

    Returns {"werr": fraction or None, "ci": [low, high] or None, "p_fewer_errors": fraction of the draws in which
    `utterances` has fewer errors than `baseline`}; the draws are the same for both models, which is far sharper than to
    compare two intervals. UserError where ids or references differ.
    """
    baseline, utterances = _checked(baseline), _checked(utterances)
    for ours, theirs in zip(utterances, baseline, strict=False):
        if (_code(ours), ours[0], ours[3].split()) != (_code(theirs), theirs[0], theirs[3].split()):
            raise UserError(
                f"utterance {ours[0]} ({_code(ours)}) against {theirs[0]} ({_code(theirs)}) of the "
                "baseline; expected the same utterances with the same references"
            )
    if len(baseline) != len(utterances):
        raise UserError(f"{len(utterances)} utterances against {len(baseline)} of the baseline; expected the same ones")
    before, after = (
        [count_errors(align(item[3].split(), item[4].split()))["errors"] for item in items] for items in (baseline, utterances)
    )
    sums = _resampled_sums(
        np.stack([before, after], axis=1), [_code(item) for item in utterances], _groups(utterances, resample), resamples, seed
    )
    return {
        "werr": relative_reduction(sum(before), sum(after)),
        "ci": _interval(sums[:, 0] - sums[:, 1], sums[:, 0], level),
        "p_fewer_errors": float(np.mean(sums[:, 1] < sums[:, 0])),
    }


def _resampled_sums(counts, strata, groups, resamples, seed):
    """Sums over each draw: counts (n, k) int64, labels (n,) -> (resamples, k)."""
    units = {}
    for row, stratum, group in zip(counts, strata, groups, strict=True):
        members = units.setdefault(stratum, {})
        members[group] = members.get(group, 0) + row
    rng = np.random.default_rng(seed)
    sums = np.zeros((resamples, counts.shape[1]), dtype=np.int64)
    for stratum in sorted(units):
        values = np.stack([units[stratum][group] for group in sorted(units[stratum])])
        step = max(1, DRAWS_AT_ONCE // len(values))
        for start in range(0, resamples, step):
            drawn = rng.integers(len(values), size=(min(step, resamples - start), len(values)))
            sums[start : start + step] += values[drawn].sum(axis=1)
    return sums


def _interval(numerators, denominators, level):
    defined = denominators > 0
    if not defined.any():
        return None
    tail = 50 * (1 - level)
    low, high = np.percentile(numerators[defined] / denominators[defined], [tail, 100 - tail])
    return [float(low), float(high)]


def _checked(utterances):
    """The utterances sorted by language and id. UserError where there are none or one is there twice."""
    utterances = sorted(utterances, key=lambda item: (_code(item), item[0]))
    if not utterances:
        raise UserError("no utterances to score; expected at least one")
    for first, second in zip(utterances, utterances[1:], strict=False):
        if (_code(first), first[0]) == (_code(second), second[0]):
            raise UserError(f"utterance {first[0]} ({_code(first)}) is there twice; expected each once")
    return utterances


def _code(utterance):
    return utterance[1] or UNDETERMINED


def _groups(utterances, resample):
    """What the bootstrap draws: a label for each utterance."""
    if resample == "utterance":
        return [utterance[0] for utterance in utterances]
    if resample != "speaker":
        raise UserError(f"resample {resample!r}; expected 'utterance' or 'speaker'")
    for utterance in utterances:
        if utterance[2] is None:
            raise UserError(f"utterance {utterance[0]} has no speaker; name every speaker or resample utterances")
    return [utterance[2] for utterance in utterances]


def _utterance_counts(utterance, characters):
    _, _, _, ref, hyp, _ = utterance
    counts = count_errors(align(ref.split(), hyp.split()))
    if characters:
        counts["character_errors"], counts["characters"] = count_character_errors(ref, hyp)
    return counts


def several(languages: Iterable[str]) -> str:
    """The predicted language of an utterance that fits so many alike; "none" for none of them."""
    return OR.join(sorted(languages)) or NO_LANGUAGE


def _score_lid(utterances):
    confusion = {}
    for utterance in utterances:
        confusion.setdefault(_code(utterance), Counter())[utterance[5] or NO_LANGUAGE] += 1
    totals = {code: sum(row.values()) for code, row in confusion.items()}
    undecided = {
        code: sum(count for predicted, count in row.items() if predicted != code and code in predicted.split(OR))
        for code, row in confusion.items()
    }
    return {
        "accuracy": {code: rate(row[code], totals[code] - undecided[code]) for code, row in confusion.items()},
        "undecided": {code: undecided[code] / totals[code] for code in confusion},
        "confusion": {code: dict(sorted(row.items())) for code, row in confusion.items()},
    }


def write_recogs(path: Path | str, utterances: Iterable[Utterance]) -> None:
    """Write icefall's `recogs-` file: the words of reference and hypothesis, two lines per utterance, sorted by id."""
    with atomic_write(path) as stream:
        for name, _, _, ref, hyp, _ in sorted(utterances, key=lambda item: item[0]):
            stream.write(f"{name}:\tref={ref.split()}\n{name}:\thyp={hyp.split()}\n")


def write_errs(path: Path | str, utterances: Iterable[Utterance]) -> None:
    """Write icefall's `errs-` file: totals, each utterance's alignment, substitutions, deletions, insertions, words.

    Two sections are added at its end, of the same counts by speaker and by language, where those are known.
    """
    utterances = sorted(utterances, key=lambda item: item[0])
    alignments = [align(item[3].split(), item[4].split()) for item in utterances]
    with atomic_write(path) as stream:
        stream.writelines(line + "\n" for line in _errs_lines(utterances, alignments))


def _errs_lines(utterances, alignments):
    pairs = Counter(pair for alignment in alignments for pair in alignment)
    total = count_errors(list(pairs.elements()))
    correct = total["words"] - total["sub"] - total["del"]
    yield f"%WER = {_percent(total)}"
    yield (
        f"Errors: {total['ins']} insertions, {total['del']} deletions, {total['sub']} substitutions, "
        f"over {total['words']} reference words ({correct} correct)"
    )
    yield (
        "Search below for sections starting with PER-UTT DETAILS:, SUBSTITUTIONS:, DELETIONS:, INSERTIONS:, "
        "PER-WORD STATS:, PER-SPEAKER STATS:, PER-LANGUAGE STATS:"
    )
    yield from ["", "PER-UTT DETAILS: corr or (ref->hyp)  "]
    for utterance, alignment in zip(utterances, alignments, strict=True):
        yield f"{utterance[0]}:\t{_marked(alignment)}"
    yield from ["", "SUBSTITUTIONS: count ref -> hyp"]
    yield from _by_count({f"{ref} -> {hyp}": n for (ref, hyp), n in pairs.items() if EPSILON not in (ref, hyp) and ref != hyp})
    yield from ["", "DELETIONS: count ref"]
    yield from _by_count({ref: n for (ref, hyp), n in pairs.items() if hyp == EPSILON})
    yield from ["", "INSERTIONS: count hyp"]
    yield from _by_count({hyp: n for (ref, hyp), n in pairs.items() if ref == EPSILON})
    yield from ["", "PER-WORD STATS: word  corr tot_errs count_in_ref count_in_hyp"]
    yield from _word_lines(pairs)
    for column, name in ((2, "SPEAKER"), (1, "LANGUAGE")):
        yield from ["", f"PER-{name} STATS: {name.lower()}  utterances words errors ins del sub %WER"]
        yield from _group_lines([utterance[column] for utterance in utterances], alignments)


def _marked(alignment):
    """An alignment as text: a correct word as it is, each run of errors as (ref words->hyp words), * for none."""
    parts, run = [], []
    for ref, hyp in [*alignment, (None, None)]:  # the last one is correct and ends a run
        if ref != hyp:
            run.append((ref, hyp))
            continue
        if run:
            sides = (" ".join(word for word in side if word != EPSILON) or "*" for side in zip(*run, strict=True))
            parts.append("({}->{})".format(*sides))
            run = []
        if ref is not None:
            parts.append(ref)
    return " ".join(parts)


def _by_count(counts):
    return (f"{count}   {text}" for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _word_lines(pairs):
    """A line for each word, most errors first; a substitution is an error of both its words."""
    correct, in_ref, in_hyp = Counter(), Counter(), Counter()
    for (ref, hyp), count in pairs.items():
        in_ref[ref] += count
        in_hyp[hyp] += count
        if ref == hyp:
            correct[ref] += count
    errors = {word: in_ref[word] + in_hyp[word] - 2 * correct[word] for word in set(in_ref) | set(in_hyp)}
    errors.pop(EPSILON, None)
    for word, count in sorted(errors.items(), key=lambda item: (-item[1], item[0])):
        yield f"{word}   {correct[word]} {count} {in_ref[word]} {in_hyp[word]}"


def _group_lines(labels, alignments):
    groups = {}
    for label, alignment in zip(labels, alignments, strict=True):
        if label is not None:
            groups.setdefault(label, []).append(alignment)
    for label, members in sorted(groups.items()):
        counts = count_errors([pair for alignment in members for pair in alignment])
        yield (
            f"{label}   {len(members)} {counts['words']} {counts['errors']} {counts['ins']} {counts['del']} "
            f"{counts['sub']} {_percent(counts)}"
        )


def _percent(counts):
    value = rate(counts["errors"], counts["words"])
    return "-" if value is None else f"{100 * value:.2f}"
