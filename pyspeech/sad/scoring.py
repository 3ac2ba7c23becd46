"""Scores of speech activity detection: the detection cost function (DCF) as the official scorer computes it.

Implements the metric of NIST OpenSAD as the Fearless Steps phase 2 scoring toolkit runs it:

    DCF = 0.75 Pmiss + 0.25 Pfa,   Pmiss = missed speech / speech,   Pfa = false speech / scored non-speech   (seconds)

per recording; the overall DCF is the unweighted mean of the recordings' values, each rounded to 5 decimals. Rules of
the official scorer that a reader would not guess:

* The collar is cut from non-speech alone; speech is always scored. Neighbouring segments of one kind are merged first,
  then each non-speech segment loses `collar` seconds at both ends, but nothing at the start or the end of the
  recording. One exception, as there: a first non-speech segment loses its end even where no speech follows.
* A non-speech segment shorter than 2 collar + 0.1 s is not scored at all (the first and the last one: collar + 0.1 s).
  With collar 0 all are scored. Times are compared as they are, without a tolerance.
* A hypothesis that ends after the reference is trimmed, one that ends before is continued with non-speech. The time
  before a reference that starts late is not scored.
* Labels RI count as speech; NT, RX, RS as non-speech; time with any other label is not scored.
* No speech in the reference: DCF = 0.25 Pfa. No scored non-speech: DCF = 0.75 Pmiss. Neither: 0; but a recording
  without a single label that is scored has no DCF and no part in the mean (a choice of ours).

Precision, recall and F1 are over the same scored time: TP is speech called speech, FP false speech, FN missed speech,
in seconds. They are None where their denominator is 0.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.sad.formats import NONSPEECH_LABELS, SPEECH_LABELS, UNSCORED_LABELS
from pyspeech.sad.labels import label_stem, pair, plain, read_labels, word
from pyspeech.sad.segments import union
from pyspeech.sad.timelines import ScoredTime

MISS_WEIGHT, FALSE_ALARM_WEIGHT = 0.75, 0.25
SHORTEST_SCORED = 0.1  # seconds of a non-speech segment that must be left between its collars
NO_TIME = 1e-5  # seconds; less speech (or non-speech) than this counts as none


def score_pair(reference: Sequence[tuple[float, float, str]], hypothesis_speech: ArrayLike, collar: float = 0.5) -> dict:
    """Score one recording.

    reference: list of (start, end, label), contiguous, as `read_reference` returns it. hypothesis_speech: (n, 2)
    seconds; all other time is non-speech. collar: seconds, 0 or more.
    Returns a dict of floats: dcf, p_miss, p_fa (0 to 1); miss_s, fa_s, speech_s, nonspeech_s, hit_s (speech called
    speech), unscored_s, all in seconds; precision, recall, f1 (0 to 1 or None).
    """
    if not (np.isfinite(collar) and collar >= 0):
        raise UserError(f"collar {collar} s; expected 0 or more seconds")
    speech, nonspeech = scored_time(reference, collar)
    seconds = _overlaps(speech, nonspeech, union(hypothesis_speech))
    seconds["unscored_s"] = max(0.0, reference[-1][1] - seconds["speech_s"] - seconds["nonspeech_s"])
    return {**_rates(seconds), **seconds}


def scored_time(reference: Sequence[tuple[float, float, str]], collar: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what is scored as speech and as non-speech: float64 arrays (n, 2), seconds, each sorted and disjoint."""
    merged = _merge_same_kind(reference)
    speech = [(start, end) for start, end, kind in merged if kind == "speech"]
    nonspeech = []
    for index, (start, end, kind) in enumerate(merged):
        if kind == "non-speech":
            nonspeech += _without_collar(start, end, collar, first=index == 0, last=index == len(merged) - 1)
    return np.array(speech, dtype=np.float64).reshape(-1, 2), np.array(nonspeech, dtype=np.float64).reshape(-1, 2)


def _merge_same_kind(reference):
    """Reference lines to [start, end, kind], neighbours of one kind merged, kind "speech", "non-speech" or "unscored".

    Begins at 0: the time before a reference that starts late is a segment of its own that is not scored.
    """
    merged = [[0.0, reference[0][0], "unscored"]] if reference[0][0] > 0 else []
    for start, end, label in reference:
        kind = "speech" if label in SPEECH_LABELS else "non-speech" if label in NONSPEECH_LABELS else "unscored"
        if merged and merged[-1][2] == kind:
            merged[-1][1] = end
        else:
            merged.append([start, end, kind])
    return merged


def _without_collar(start, end, collar, first, last):
    """Return what is left of a non-speech segment, as a list of one (start, end) or of none."""
    if collar == 0:
        return [(start, end)]
    one_sided = first or last
    if end - start < (collar if one_sided else 2 * collar) + SHORTEST_SCORED:
        return []
    if first:
        return [(start, end - collar)]
    return [(start + collar, end if last else end - collar)]


def _overlaps(speech, nonspeech, hypothesis):
    """Return speech_s, nonspeech_s, hit_s, miss_s, fa_s: seconds of the five, for disjoint sorted segments (n, 2).

    The time line is cut at every border and the pieces are added up in order, as the official scorer does, so that the
    sums agree to the last digits.
    """
    borders = np.unique(np.concatenate([speech, nonspeech, hypothesis]).reshape(-1))
    pieces = np.diff(borders)
    in_speech, in_nonspeech, in_hypothesis = (covers(kind, borders[:-1]) for kind in (speech, nonspeech, hypothesis))
    masks = {
        "speech_s": in_speech,
        "nonspeech_s": in_nonspeech,
        "hit_s": in_speech & in_hypothesis,
        "miss_s": in_speech & ~in_hypothesis,
        "fa_s": in_nonspeech & in_hypothesis,
    }
    # A running sum adds one after the other (numpy's sum adds in pairs).
    return {name: float(np.cumsum(pieces[mask])[-1]) if mask.any() else 0.0 for name, mask in masks.items()}


def covers(segments: np.ndarray, times: np.ndarray) -> np.ndarray:
    """For each time: whether a segment [start, end) contains it. segments (n, 2) disjoint and sorted, times (m,)."""
    if len(segments) == 0:
        return np.zeros(len(times), dtype=bool)
    index = np.searchsorted(segments[:, 0], times, side="right") - 1
    return (index >= 0) & (times < segments[index, 1])


def _rates(seconds):
    """DCF and its parts, precision, recall and F1 from the seconds of `_overlaps`."""
    hit, miss, false = seconds["hit_s"], seconds["miss_s"], seconds["fa_s"]
    p_miss = miss / seconds["speech_s"] if seconds["speech_s"] >= NO_TIME else 0.0
    p_fa = false / seconds["nonspeech_s"] if seconds["nonspeech_s"] >= NO_TIME else 0.0
    return {
        "dcf": MISS_WEIGHT * p_miss + FALSE_ALARM_WEIGHT * p_fa,
        "p_miss": p_miss,
        "p_fa": p_fa,
        "precision": hit / (hit + false) if hit + false > 0 else None,
        "recall": hit / (hit + miss) if hit + miss > 0 else None,
        "f1": 2 * hit / (2 * hit + miss + false) if hit + miss + false > 0 else None,
    }


def overall(scores: Sequence[dict]) -> dict:
    """Combine recordings' scores (a list of dicts of `score_pair`, at least one).

    dcf: official, the unweighted mean of the recordings' DCF rounded to 5 decimals, those of None left out. All else is
    pooled: seconds are added up over the recordings; p_miss, p_fa, precision, recall and f1 come from those sums;
    dcf_pooled is the DCF of those sums.
    """
    seconds = {name: float(sum(score[name] for score in scores)) for name in scores[0] if name.endswith("_s")}
    pooled = _rates(seconds)
    pooled["dcf_pooled"] = pooled["dcf"]
    pooled["dcf"] = float(np.mean([round(score["dcf"], 5) for score in scores if score["dcf"] is not None]))
    return {**pooled, **seconds}


def score_files(
    reference: Path | str,
    hypothesis: Path | str,
    collar: float = 0.5,
    uem: Path | str | None = None,
    audio: Path | str | None = None,
) -> dict:
    """Score label files, or folders of them, in any format that `pyspeech.sad.labels.read_labels` reads.

    Recordings are the same by the rules of `pyspeech.sad.labels.pair`; two files of one recording each are compared
    whatever their names, if one of them is named by its file. A hypothesis of several recordings in one file may leave out
    those without speech.

    Args:
        reference: File or folder. The official formats label all time; in others, what is not speech is non-speech up
            to the end of the recording, which `uem`, `audio` or one of the two sides tells, or else the last segment.
        hypothesis: File or folder.
        collar: Seconds, 0 or more.
        uem: UEM file; time outside its regions is not scored.
        audio: Recordings as of `find_recordings`; how long they are.

    Returns:
        {"collar": s, "files": {recording: score_pair's dict}, "overall": overall's dict, "warnings": [line, ...]}. A
        recording of which no label is scored has None for dcf, p_miss and p_fa, and a warning.

    Raises:
        UserError: where a file or a recording's hypothesis is missing, a file is damaged, or nothing is scored.
    """
    warnings = []
    references, hypotheses = (read_labels(path, warnings.append) for path in (reference, hypothesis))
    time = ScoredTime(references, warnings.append, uem, audio)
    references.update(time.without_speech(Path(reference)))
    pairs = _pairs(reference, hypothesis, references, hypotheses, warnings.append)
    files, collared = {}, []
    for name, labels in references.items():
        _check_reference(labels, warnings.append)
        found = hypotheses.get(pairs.get(name, ""))
        if found and _empty_text(found):
            warnings.append(f"{found.path}: empty, scored as no speech")
        rows = time.timeline(name, labels, found)
        score = score_pair(rows, found.speech if found else [], collar)
        if not any(label in SPEECH_LABELS + NONSPEECH_LABELS for _, _, label in rows):
            warnings.append(f"{labels.path}: none of its labels is scored; left out of the mean DCF")
            score.update(dcf=None, p_miss=None, p_fa=None)
        elif score["nonspeech_s"] < NO_TIME <= sum(end - start for start, end, label in rows if label in NONSPEECH_LABELS):
            collared.append(name)
        files[name] = score
    if collared:
        warnings.append(f"collar {collar:g} s: leaves no non-speech of {some(collared)}, where no false alarm counts")
    if all(score["dcf"] is None for score in files.values()):
        raise UserError(f"{reference}: none of the labels of its files is scored; expected S, NS, ...")
    if extra := sorted(hypotheses.keys() - set(pairs.values())):
        warnings.append(f"{hypothesis}: not scored, because there is no reference: {some(extra)}")
    time.finish()
    printable = [plain(line) for line in warnings]
    return {"collar": float(collar), "files": files, "overall": overall(list(files.values())), "warnings": printable}


def _pairs(reference, hypothesis, references, hypotheses, warn):
    """{recording of the reference: of the hypothesis}; without those of which a file of several has no speech."""
    pairs = pair(*({name: labels.names for name, labels in side.items()} for side in (references, hypotheses)))
    if not pairs and _alone(reference, references) and _alone(hypothesis, hypotheses):
        if _named_by_file(references) or _named_by_file(hypotheses):
            ((wanted, found),) = zip(references, hypotheses, strict=True)
            if wanted != found:
                warn(f"{hypothesis}: recording {found} is scored against {wanted} of {reference}")
            return {wanted: found}
    missing = sorted(references.keys() - pairs.keys())
    if not missing:
        return pairs
    of_several = Path(hypothesis).is_file() and not (len(hypotheses) == 1 and _named_by_file(hypotheses))
    if not (pairs and of_several) and any(labels.rows for labels in hypotheses.values()):
        found = "" if pairs else f", found {some(sorted(hypotheses), 3)}"
        raise UserError(
            f"{hypothesis}: no hypothesis for {some(missing)}; expected one for each reference{found}. "
            "Where nothing was found, write an empty file; score a part with a folder of its references alone"
        )
    warn(f"{hypothesis}: has no speech of {some(missing)}")
    return pairs


def _alone(path, labels):
    return Path(path).is_file() and len(labels) == 1


def _named_by_file(labels):
    return any(word(name) == word(label_stem(one.path)) for name, one in labels.items())


def _check_reference(labels, warn):
    if _empty_text(labels):
        raise UserError(f"{labels.path}: the reference label file is empty; expected at least one line, such as one of NS")
    unknown = sorted({label for _, _, label in labels.rows} - set(SPEECH_LABELS + NONSPEECH_LABELS + UNSCORED_LABELS))
    if unknown:
        warn(f"{labels.path}: time labelled {some(unknown)} is not scored (S, NS, speech, non-speech, ... are)")


def _empty_text(labels):
    """Whether nothing is in a .txt, which the official formats do not mean; a label track of detect may be empty."""
    name = labels.path.name.lower()
    return not labels.rows and name.endswith(".txt") and not name.endswith(".labels.txt")
