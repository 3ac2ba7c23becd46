"""Figures of a labelled set of scores: overall, and by attack, family, condition and subset."""

from collections.abc import Mapping

import numpy as np

from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN, Label
from pyspeech.spoof.scoring import DRAWS, AsvRates, actual_cost, cllr, eer_interval, equal_error_rate, min_cost, min_tandem_cost

GROUPS = {"attacks": "attack", "families": "family", "conditions": "condition", "subsets": "subset"}
OF_FAKES = ("attacks", "families")  # genuine speech has none


def score_set(
    labels: Mapping[str, Label],
    scores: Mapping[str, float],
    by_speaker: bool = False,
    asv: AsvRates | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    progress: str | None = None,
) -> dict:
    """Return all figures of a set, as plain data.

    Args:
        labels: {utterance: formats.Label}.
        scores: {utterance: float}, one for each.
        by_speaker: The intervals are for other speakers.
        asv: Rates of speaker verification, for the t-DCF.
        draws: Of the bootstrap.
        seed: Of the bootstrap.
        progress: Title of a bar on a terminal, None for no bar.

    Returns:
        {"genuine", "fake": numbers of utterances, "eer": a fraction, "interval": [low, high] of 95 %, "threshold": that of
        the EER, "cllr", "min_dcf", "act_dcf", and with asv "min_tdcf" and "min_tdcf_2021",
        "attacks": {attack: {"genuine", "fake", "eer", "interval"}}, and "families" likewise, each against all genuine
        utterances,
        "conditions": {condition: the same}, and "subsets" likewise, of their utterances alone}
        In these groups, where there are any, eer and interval are None where one kind is missing.

    Raises:
        UserError: by speaker, where one is not known.
    """
    if by_speaker:
        for name, label in labels.items():
            if label.speaker == UNKNOWN:
                raise UserError(f"utterance '{name}': its speaker is not known; expected one for intervals by speaker")
    values = np.array([scores[name] for name in labels], dtype=np.float64)
    is_genuine = np.array([label.genuine for label in labels.values()], dtype=bool)
    speakers = np.array([label.speaker for label in labels.values()]) if by_speaker else None

    def entry(chosen):
        places = [np.flatnonzero(chosen & wanted) for wanted in (is_genuine, ~is_genuine)]
        genuine, fake = (values[place] for place in places)
        found = {"genuine": len(genuine), "fake": len(fake), "eer": None, "interval": None}
        if len(genuine) and len(fake):
            found["eer"] = float(equal_error_rate(genuine, fake)[0])
            of = None if speakers is None else [speakers[place].tolist() for place in places]
            found["interval"] = list(eer_interval(genuine, fake, of, draws, seed))
        return found

    result = {**entry(np.ones(len(values), bool)), **_overall(values[is_genuine], values[~is_genuine], asv)}
    result.update({group: {} for group in GROUPS})
    for group, name, chosen in _progress(list(_groups(list(labels.values()))), progress):
        result[group][name] = entry(chosen | is_genuine if group in OF_FAKES else chosen)
    return result


def _overall(genuine, fake, asv):
    """The figures that a set has as a whole."""
    found = {
        "threshold": equal_error_rate(genuine, fake)[1],
        "cllr": cllr(genuine, fake),
        "min_dcf": min_cost(genuine, fake),
        "act_dcf": actual_cost(genuine, fake),
    }
    if asv is not None:
        found["min_tdcf"] = min_tandem_cost(genuine, fake, asv)
        found["min_tdcf_2021"] = min_tandem_cost(genuine, fake, asv, whole=True)
    return found


def _groups(labels):
    """Yield (group of GROUPS, a value in it, which labels have it: bool (N,))."""
    for group, field in GROUPS.items():
        names, numbers = np.unique([getattr(label, field) for label in labels], return_inverse=True)
        for number, name in enumerate(names.tolist()):
            if name != UNKNOWN:
                yield group, name, numbers == number


def _progress(work, title):
    from tqdm import tqdm

    return tqdm(work, title, disable=True if title is None else None, leave=False)
