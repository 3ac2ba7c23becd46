"""All figures of a set, against those of its parts."""

import pytest

from pyspeech.errors import UserError
from pyspeech.spoof.formats import Label
from pyspeech.spoof.scored_set import score_set
from pyspeech.spoof.scoring import AsvRates, actual_cost, cllr, eer_interval, equal_error_rate, min_cost, min_tandem_cost


def test_figures_by_attack_and_condition(rng):
    labels = {f"g{index}": Label("genuine", f"s{index % 3}", "-", "clean") for index in range(6)}
    labels["g6"] = Label("genuine", "s0", "-", "noise")
    labels.update({f"a{index}": Label("fake", "s1", "A01", "clean") for index in range(5)})
    labels.update({f"b{index}": Label("fake", "s2", "A02", "noise") for index in range(4)})
    scores = {name: float(rng.integers(6)) + label.genuine for name, label in labels.items()}

    def of(start):
        return [score for name, score in scores.items() if name[0] in start]

    found = score_set(labels, scores, asv=AsvRates(0.02, 0.03, 0.40), draws=200)
    assert (found["genuine"], found["fake"]) == (7, 9)
    assert found["eer"] == equal_error_rate(of("g"), of("ab"))[0]
    assert found["min_tdcf"] == min_tandem_cost(of("g"), of("ab"), AsvRates(0.02, 0.03, 0.40))
    assert found["min_tdcf_2021"] == min_tandem_cost(of("g"), of("ab"), AsvRates(0.02, 0.03, 0.40), whole=True)
    assert found["cllr"] == cllr(of("g"), of("ab"))
    assert (found["min_dcf"], found["act_dcf"]) == (min_cost(of("g"), of("ab")), actual_cost(of("g"), of("ab")))
    assert found["interval"] == list(eer_interval(of("g"), of("ab"), draws=200))
    assert found["attacks"]["A02"]["eer"] == equal_error_rate(of("g"), of("b"))[0]
    assert found["conditions"]["noise"]["eer"] == equal_error_rate([scores["g6"]], of("b"))[0]
    assert {
        name: (entry["genuine"], entry["fake"]) for group in ("attacks", "conditions") for name, entry in found[group].items()
    } == {"A01": (7, 5), "A02": (7, 4), "clean": (6, 5), "noise": (1, 4)}
    assert score_set(labels, scores, by_speaker=True, draws=200)["interval"] != found["interval"]

    del labels["g6"]
    assert score_set(labels, scores, draws=20)["conditions"]["noise"] == {
        "genuine": 0,
        "fake": 4,
        "eer": None,
        "interval": None,
    }
    labels["a0"] = Label("fake")
    assert "A01" in score_set(labels, scores, draws=20)["attacks"]
    with pytest.raises(UserError, match="'a0': its speaker is not known"):
        score_set(labels, scores, by_speaker=True)


def test_figures_by_family_and_subset():
    kinds = {"g": Label("genuine", subset="eval"), "h": Label("genuine", subset="hidden")}
    kinds.update(f=Label("fake", family="vits", subset="eval"), k=Label("fake", family="flow", subset="hidden"))
    labels = {f"{letter}{number}": label for letter, label in kinds.items() for number in range(3)}
    scores = {name: {"g": 1.0, "h": 0.0, "f": 0.0, "k": -1.0}[name[0]] for name in labels}
    found = score_set(labels, scores, draws=10)
    assert {name: (entry["genuine"], entry["fake"], entry["eer"]) for name, entry in found["families"].items()} == {
        "flow": (6, 3, 0),
        "vits": (6, 3, 0.25),
    }
    assert {name: (entry["genuine"], entry["fake"], entry["eer"]) for name, entry in found["subsets"].items()} == {
        "eval": (3, 3, 0),
        "hidden": (3, 3, 0),
    }
    assert found["attacks"] == found["conditions"] == {}
