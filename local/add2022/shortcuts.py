"""Shortcuts in a corpus: how well a linear model of a few statistics of each file tells the classes apart.

`file_statistics` have nothing to do with speech: a corpus whose classes they tell apart has another channel, trimming,
level or format for its fakes, and a detector would learn that instead of speech. `mel_statistics` are of the sound
itself, for information: what they reach any detector should surpass.

The model is logistic regression on standardised statistics, fitted on train with both classes weighing the same. Where cuts
say which page they are of (pyspeech.spoof.formats.page_of), pages differ in their files, and a detector can learn that too.
So it is also fitted on four fifths of all utterances, in turn, and scores the others: over pages, all scores together, which
pages of one class, or with another channel for fakes, lower; and within pages, the mean over those with both classes.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from local.add2022.manifests import SETS
from local.splits import share_of
from local.synthesis.recording_chain import FRAME, RATE, frame_levels
from local.synthesis.vocoders import mel_filters, stft
from pyspeech.data.audio_files import as_int16
from pyspeech.data.cuts import read_samples
from pyspeech.engine.parts import Parts, file_state, in_parts
from pyspeech.files import write_json
from pyspeech.spoof.formats import page_of
from pyspeech.spoof.scoring import equal_error_rate

STATISTICS = (
    "duration",
    "peak",
    "rms",
    "mean",
    "floor",
    "rolloff",
    "leading silence",
    "trailing silence",
    "repeated",
    "zeros",
    "highest bit",
    "samples mod 80",
    "samples mod 128",
    "samples mod 256",
)
# An error rate below it is worth a warning. How much the peaks exceed the RMS is the speech's own, in part: no channel
# takes it away altogether, and a linear model gets about 35 % from it.
SUSPICIOUS = 0.30
FOLDS = 5
LEAST = 2  # utterances of each class, for an error rate within a page
CHUNK = 100  # cuts that a process measures at a time


def file_statistics(samples: np.ndarray) -> np.ndarray:
    """(14,) of samples (N,) int16, N > 0; see STATISTICS. Levels in dB."""
    signal = samples / 32768.0
    levels = frame_levels(signal) if len(signal) >= FRAME else np.array([-120.0])
    loud = np.quantile(levels, 0.95)
    active = np.flatnonzero(levels > loud - 30.0)
    power = np.cumsum(np.square(np.abs(np.fft.rfft(signal))))
    return np.array(
        [
            np.log(len(samples)),
            20.0 * np.log10(np.abs(signal).max() + 1e-6),
            10.0 * np.log10(np.mean(signal**2) + 1e-12),
            signal.mean() * 1e4,
            np.quantile(levels, 0.05) - loud,
            np.searchsorted(power, 0.999 * power[-1]) / len(power),
            active[0],
            len(levels) - active[-1],
            np.sum(np.diff(samples) == 0) / len(samples),
            np.mean(samples == 0),
            np.mean(samples & 1),
            *(len(samples) % hop for hop in (80, 128, 256)),
        ],
        dtype=np.float64,
    )


def mel_statistics(samples: np.ndarray) -> np.ndarray:
    """(160,): mean and standard deviation of 80 log-mel bands of samples (N,) int16, the mean level left out."""
    power = np.log(np.square(np.abs(stft(samples / 32768.0))) @ mel_filters()[0] + 1e-8)
    return np.concatenate([power.mean(axis=0) - power.mean(), power.std(axis=0)])


def _measure(cuts):
    """[(file_statistics, mel_statistics) of each cut], at the rate of recording_chain.RATE."""
    whole = (as_int16(read_samples(cut, RATE)) for cut in cuts)
    return [(file_statistics(samples), mel_statistics(samples)) for samples in whole]


def _some(cuts, most):
    """The cuts of both classes, at most so many of each; [] where one is missing."""
    kinds = [[cut for cut in cuts if cut.supervisions[0].text == kind] for kind in ("genuine", "fake")]
    if most is not None:
        kinds = [sorted(some, key=lambda cut: share_of(cut.id))[:most] for some in kinds]
        cuts = sum(kinds, [])
    return cuts if all(kinds) else []


def _states(cuts):
    return [(cut.id, file_state(cut.recording.sources[0].source)) for cut in cuts]


def linear_model(features: np.ndarray, genuine: np.ndarray, penalty: float = 1e-2) -> Callable[[np.ndarray], np.ndarray]:
    """Fit on features (N, D), genuine (N,) bool: a function from features (M, D) to scores (M,). penalty: of the squared
    weights."""
    from scipy.optimize import minimize

    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 1e-9, spread, np.inf)  # a statistic that never changes tells nothing

    def standardise(some):
        return np.concatenate([np.clip((some - centre) / spread, -5.0, 5.0), np.ones((len(some), 1))], axis=1)

    inputs, signs = standardise(features), np.where(genuine, 1.0, -1.0)
    weights = np.where(genuine, 0.5 / max(genuine.sum(), 1), 0.5 / max((~genuine).sum(), 1))

    def loss(model):
        margins = signs * (inputs @ model)
        slope = -weights * signs / (1.0 + np.exp(np.clip(margins, -50.0, 50.0)))
        return (
            np.sum(weights * np.logaddexp(0.0, -margins)) + penalty * np.sum(model[:-1] ** 2),
            inputs.T @ slope + 2.0 * penalty * np.concatenate([model[:-1], [0.0]]),
        )

    model = minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda some: standardise(some) @ model


def linear_check(train: tuple[np.ndarray, np.ndarray], others: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Fit on train, score others: {name: equal error rate}. train: (features (N, D), genuine (N,) bool); others:
    {name: the same}."""
    score = linear_model(*train)
    return {name: _error(score(some), genuine) for name, (some, genuine) in others.items()}


def page_check(features: np.ndarray, genuine: np.ndarray, pages: np.ndarray) -> dict[str, float]:
    """{"over": equal error rate over all pages, which the model has met, "within": its mean over those with both classes,
    "pages": how many these are}; {} for none. features (N, D), genuine (N,) bool, pages (N,) str."""
    folds, scores = np.random.default_rng(0).permutation(len(pages)) % FOLDS, np.zeros(len(pages))
    for fold in range(FOLDS):
        scores[folds == fold] = linear_model(features[folds != fold], genuine[folds != fold])(features[folds == fold])
    names = sorted(set(pages))
    own = [pages == name for name in names]
    both = [some for some in own if min(genuine[some].sum(), (~genuine[some]).sum()) >= LEAST]
    if not both:
        return {}
    within = [_error(scores[some], genuine[some]) for some in both]
    return {"over": _error(scores, genuine), "within": float(np.mean(within)), "pages": len(both)}


def _error(scores, genuine):
    return float(equal_error_rate(scores[genuine], scores[~genuine])[0])


def check_corpus(
    folder: Path, log: logging.Logger, jobs: int | None = None, parts: Parts | None = None, most: int | None = None
) -> dict[str, Any]:
    """Measure the corpus in `folder` (<set>.jsonl.gz) and write check.json: {"files": {set: EER}, "mel": {set: EER},
    "single": {statistic: {set: EER}}, and with pages "pages": {"files", "mel": of `page_check`}}; a warning where the files do
    better than SUSPICIOUS on dev or eval. most: utterances of a class and set that are measured, drawn by their names; sets
    without labels of both classes are left out."""
    from lhotse import CutSet

    sets, pages = {}, []
    for part in SETS:
        if (folder / f"{part}.jsonl.gz").exists():
            cuts = _some(list(CutSet.from_file(folder / f"{part}.jsonl.gz")), most)
            if not cuts:
                continue
            some = {f"{part}-{start:06d}": cuts[start : start + CHUNK] for start in range(0, len(cuts), CHUNK)}
            rows = sum(in_parts(parts, "statistics", _measure, some, jobs, inputs=_states, log=log).values(), [])
            genuine = np.array([cut.supervisions[0].text == "genuine" for cut in cuts])
            sets[part] = (*(np.array(column) for column in zip(*rows, strict=True)), genuine)
            pages += map(page_of, cuts)

    def result(column, number):
        chosen = {part: (values[number][:, column], values[2]) for part, values in sets.items()}
        return linear_check(chosen["train"], {part: some for part, some in chosen.items() if part != "train"})

    found = {
        "files": result(slice(None), 0),
        "mel": result(slice(None), 1),
        "single": {name: result(slice(index, index + 1), 0) for index, name in enumerate(STATISTICS)},
    }
    if len(set(pages)) > 1:
        everything = [np.concatenate(columns) for columns in zip(*sets.values(), strict=True)]
        found["pages"] = {
            kind: page_check(everything[number], everything[2], np.array(pages)) for number, kind in enumerate(("files", "mel"))
        }
    write_json(folder / "check.json", found)
    for kind, what in (("files", "the files' lengths, levels, floors ..."), ("mel", "log-mel statistics")):
        log.info(
            "equal error rates of a linear model of %s: %s",
            what,
            ", ".join(f"{part} {100 * rate:.1f} %" for part, rate in found[kind].items()),
        )
    for kind, rates in found.get("pages", {}).items():
        if rates:
            log.info(
                "the same of %s, fitted on others of all pages: %.1f %% over pages, %.1f %% within %d of both classes",
                kind,
                100 * rates["over"],
                100 * rates["within"],
                rates["pages"],
            )
    low = {part: rate for part, rate in found["files"].items() if part in ("dev", "eval") and rate < SUSPICIOUS}
    if low:
        log.warning(
            "the files give their class away: error rates below %.0f %% on %s; see check.json", 100 * SUSPICIOUS, ", ".join(low)
        )
    return found
