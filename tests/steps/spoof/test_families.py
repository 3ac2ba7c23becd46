"""Detectors that have not met a family of engines: what they are trained on and what is measured."""

import json
import logging
from types import SimpleNamespace

import pytest
from lhotse import CutSet
from tiny_spoof import write_corpus

from pyspeech.errors import UserError
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.spoof import scored_cuts
from pyspeech.spoof.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.formats import family_of, label_of
from pyspeech.spoof.scoring import equal_error_rate
from pyspeech.training.config import TrainConfig
from steps.spoof import corpus as corpora, families, tables, train
from steps.spoof.score import score_system

log = logging.getLogger("test")


def named(cut):
    """A02 is one of the family "B", which the manifest says; A01 is alone."""
    if label_of(cut).attack == "A02":
        cut.supervisions[0].custom.update(family="Bé 2/x", kind="neural")
    return cut


@pytest.fixture(scope="module")
def exp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exp")
    (folder / "corpus").mkdir()
    for seed, name in enumerate(("train", "dev", "eval")):
        cuts = CutSet.from_cuts([named(cut) for cut in write_corpus(folder / name, 12, seed, longest=0.6)])
        cuts.to_file(folder / "corpus" / f"{name}.jsonl.gz")
    return SimpleNamespace(dir=folder, log=log, parts=None)


def configured(leave_out, share=1.0):
    return SimpleNamespace(
        corpus="mini",
        test={},
        systems=["none"],
        seeds=[3],
        repeated=[],
        leave_out=leave_out,
        left_out_steps=share,
        start_from="random",
        features=LogMelConfig(),
        network=DetectorConfig(),
        data=CropConfig(samples=4096, hop=4096, batch_size=4),
        augment=AugmentConfig(),
        specaugment=SpecAugmentConfig(),
        train=TrainConfig(max_steps=2, log_every=1, minimize="eer"),
    )


def test_fakes_of_a_family_are_left_out(exp):
    everything = corpora.training_cuts(exp.dir / "corpus", ["train", "dev"])
    assert {family_of(cut) for cut in everything} == {"-", "A01", "Bé 2/x"}
    some = corpora.training_cuts(exp.dir / "corpus", ["train", "dev"], "A01")
    assert len(everything) == 24 and len(some) == 16 and {label_of(cut).attack for cut in some} == {"-", "A02"}
    assert len(scored_cuts.choosing_cuts(exp.dir / "corpus", "dev", "Bé 2/x")) == 8


def test_each_family_is_measured_by_a_detector_that_has_not_met_it(exp, monkeypatch):
    conf = configured(["all"], 0.5)
    met = []
    usual = train.train_detector
    train.train_detector(exp, conf, "none", 3, {}, "none/3")
    score_system(exp, conf, "none")

    def noted(exp, conf, *given, without):
        met.append((without, conf.train.max_steps))
        usual(exp, conf, *given, without=without)

    monkeypatch.setattr(train, "train_detector", noted)
    families.leave_out(exp, conf)
    families.leave_out(exp, conf)  # they are there now
    assert met == [("A01", 1), ("Bé 2/x", 1)]
    found = json.loads((exp.dir / "families.json").read_text())
    assert [(name, entry["genuine"], entry["fake"], entry["engines"]) for name, entry in found.items()] == [
        ("A01", 4, 4, {"A01": 4}),
        ("Bé 2/x", 4, 4, {"A02": 4}),
    ]
    cuts = list(CutSet.from_file(exp.dir / "corpus" / "eval.jsonl.gz"))
    from pyspeech.spoof.checkpoint import load_model

    detector = load_model(exp.dir / "models" / families.folder_name("none", "Bé 2/x"))
    scores = [
        scored_cuts.score_cuts(detector.model, conf.data, [cut for cut in cuts if label_of(cut).attack == attack])
        for attack in ("-", "A02")
    ]
    entry = found["Bé 2/x"]["left_out"]
    assert (found["Bé 2/x"]["group"], found["Bé 2/x"]["kind"], found["Bé 2/x"]["steps"]) == (["Bé 2/x"], "neural", 0.5)
    assert set(entry["conditions"]) == {label_of(cut).condition for cut in cuts}
    assert "in 50 % of the steps" in tables.families_note("none", found)
    assert entry["eer"] == equal_error_rate(*scores)[0] and 0 <= entry["interval"][0] <= entry["interval"][1] <= 1
    table = tables.families_table(found).splitlines()
    assert len(table) == 5 and "A02 4" in table[3] and f"{100 * entry['eer']:.2f} [" in table[3]


def test_several_families_are_left_out_of_one_training(exp, monkeypatch):
    assert {family_of(cut) for cut in corpora.training_cuts(exp.dir / "corpus", ["train"], "A01+Bé 2/x")} == {"-"}
    with pytest.raises(UserError, match=r"train has fakes of A01\+Bé 2/x alone"):
        families.families_left_out(configured(["A01+Bé 2/x"]), exp.dir / "corpus", log)
    assert families.folder_name("none", "A01+Bé 2/x") == "families/none/A01+B%C3%A9 2%2Fx"
    asked = []
    monkeypatch.setattr(families, "train_without", lambda exp, conf, system, group: asked.append(group))
    monkeypatch.setattr(families, "families_left_out", lambda *given: ["A01+Bé 2/x"])
    monkeypatch.setattr(families, "read_seeds", lambda *given: [{}])
    monkeypatch.setattr(families, "measured", lambda exp, crop, system, family, group, cuts, met: {"of": family, "in": group})
    families.leave_out(exp, configured(["A01+Bé 2/x"]))
    assert asked == ["A01+Bé 2/x"]
    found = json.loads((exp.dir / "families.json").read_text())
    assert found == {name: {"of": name, "in": "A01+Bé 2/x", "steps": 1.0} for name in ("A01", "Bé 2/x")}


def test_a_shorter_training_is_shorter_throughout():
    conf = configured([])
    conf.train = TrainConfig(max_steps=1000, valid_every=100, schedule="cosine")
    conf.data = CropConfig(balanced=True, clean_batches=101)
    found = families.shortened(conf, 0.27)
    assert (found.train.max_steps, found.train.valid_every, found.train.max_epochs) == (270, 27, None)
    assert found.data.clean_batches == 27 and conf.data.clean_batches == 101 and conf.train.max_steps == 1000


def rate(eer, **conditions):
    return {"eer": eer, "interval": [eer - 0.1, eer + 0.1], "conditions": conditions}


def test_means_of_kinds_and_clean_utterances():
    known = {"genuine": 4, "fake": 4, "engines": {"one": 4}, "group": ["A"]}
    found = {
        "A": {**known, "kind": "neural", "trained": rate(0.1), "left_out": rate(0.3, clean=0.2, noise=0.4)},
        "B": {**known, "kind": "neural", "trained": rate(0.2), "left_out": rate(0.4, clean=0.3)},
        "C": {**known, "kind": "other", "trained": rate(0.3), "left_out": rate(0.5, noise=0.6)},
        "D": {**known, "kind": "-", "trained": None, "left_out": None},
    }
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.families_table(found).splitlines()]
    assert rows[0][-1] == "left out, clean" and [row[-1] for row in rows[2:6]] == ["20.00", "30.00", "–", "–"]
    assert rows[6] == ["mean: neural", "–", "15.00", "35.00", "25.00"]
    assert rows[7] == ["mean: other", "–", "30.00", "50.00", "–"]


def test_what_cannot_be_left_out_is_said(exp, tmp_path, caplog):
    with pytest.raises(UserError, match="leave_out: C; expected families of the fakes in train: A01, Bé 2/x"):
        families.families_left_out(configured(["A01", "C"]), exp.dir / "corpus", log)
    cuts = list(CutSet.from_file(exp.dir / "corpus" / "train.jsonl.gz"))
    CutSet.from_cuts(cut for cut in cuts if label_of(cut).attack != "A02").to_file(tmp_path / "train.jsonl.gz")
    with pytest.raises(UserError, match="train has fakes of A01 alone"):
        families.families_left_out(configured(["all"]), tmp_path, log)
    for cut in cuts:
        cut.supervisions[0].custom = {}
    CutSet.from_cuts(cuts).to_file(tmp_path / "train.jsonl.gz")
    assert families.families_left_out(configured(["all"]), tmp_path, log) == []
    assert "do not say what made the fakes" in caplog.text


def test_a_family_left_out_in_company_says_so():
    entry = {"genuine": 4, "fake": 4, "engines": {}, "kind": "-", "trained": rate(0.1), "left_out": rate(0.3)}
    table = tables.families_table({name: {**entry, "group": ["A", "B"]} for name in "AB"}).splitlines()
    assert [line.split("|")[-2].strip() for line in table[:1] + table[2:]] == ["left out with", "B", "A"]


def test_names_of_families_are_names_of_folders():
    """Each its own."""
    assert families.folder_name("none", "phase vocoder") == "families/none/phase vocoder"
    names = {families.folder_name("none", name) for name in ("B/x", "B:x", "B x", "é", "e")}
    assert len(names) == 5 and all(name.count("/") == 2 for name in names)


def test_which_fakes_are_drawn_more_often_is_said(tmp_path, caplog):
    """With a warning of a name that no fake has, but where its fakes were left out."""
    cuts = list(write_corpus(tmp_path, 6))
    with caplog.at_level(logging.INFO, logger="test"):
        train.say_drawn(cuts, {"A01": 3.0}, log)
        assert caplog.messages == ["fakes drawn so many times as often as others: A01 3 (2 fakes)"]
        train.say_drawn(cuts, {"A99": 2.5}, log, some_left_out=True)
        assert len(caplog.messages) == 2 and caplog.messages[1].endswith("A99 2.5 (0 fakes)")
        train.say_drawn(cuts, {"A01": 3.0, "A99": 2.5}, log)
        assert caplog.messages[3:] == ["data.often: no fake is by A99; the engines are A01, A02"]
