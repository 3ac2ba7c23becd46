"""Differences of systems in egs/add2022: over the same utterances, and over the engines alone that training has not."""

import logging
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from lhotse import CutSet, MonoCut, SupervisionSegment
from tiny_spoof import write_corpus

from pyspeech.spoof.formats import Label, label_of, write_scores
from pyspeech.spoof.scoring import equal_error_rate
from steps.spoof import score, tables

SEEDS = {"none": [1, 2], "rnm": [1, 2]}


@pytest.fixture(scope="module")
def exp(tmp_path_factory):
    """train and dev have the engine A01, eval A01 and A02; `none` mistakes A02 for genuine, `rnm` nothing."""
    folder = tmp_path_factory.mktemp("exp")
    corpus = folder / "corpus"
    corpus.mkdir()
    found = write_corpus(folder / "audio", 60)
    found.filter(lambda cut: label_of(cut).attack != "A02").to_file(corpus / "train.jsonl.gz")
    found.to_file(corpus / "eval.jsonl.gz")
    rng = np.random.default_rng(0)
    for system, seeds in SEEDS.items():
        for seed in seeds:
            scores = {}
            for cut in found:
                label = label_of(cut)
                high = label.genuine or system == "none" and label.attack == "A02"
                scores[cut.id] = float(high) + 0.1 * rng.random()
            (folder / "scores" / system / str(seed)).mkdir(parents=True)
            write_scores(folder / "scores" / system / str(seed) / "eval.txt", scores)
    return SimpleNamespace(dir=folder, parts=None)


def test_difference_of_all_and_of_unseen_engines(exp):
    whole, unseen = score.differences(exp, SEEDS, [("none", "rnm")], "eval")
    assert (whole["unseen"], unseen["unseen"]) == (False, True)
    assert whole["first"] + whole["mean"] == pytest.approx(0) == unseen["first"] + unseen["mean"]
    assert 0.2 < whole["first"] < 0.45  # half of the fakes cannot be told from genuine speech
    assert 0.3 < unseen["first"] < 0.7  # of these nothing can
    assert unseen["interval"][0] <= unseen["mean"] <= unseen["interval"][1] < 0
    note = tables.difference_note(unseen)
    assert "engines alone that train and dev do not have" in note and f"EER of none {100 * unseen['first']:.2f} %" in note


def test_the_papers_figures_stand_beside_its_training_data():
    """Those of Train+Dev. beside ours of Train only where ours of Train+Dev. are not there."""
    entry = {"seeds": [1], "sets": {"eval": {"eer": [0.25]}}}
    alone = tables.table_3({"rnm": entry}).splitlines()
    assert "| Train " in alone[-1] and "33.40" in alone[-1]
    train, both = tables.table_3({"rnm": entry, "traindev_rnm": entry}).splitlines()[-2:]
    assert "33.40" not in train and "| Train+Dev. " in both and "33.40" in both and "25.00" in both
    assert "no independent test" in tables.choice_note({"traindev_rnm": entry})
    assert "first rows are trained on Train+Dev." in tables.choice_note({"rnm": entry})


def test_min_tdcf_stands_beside_the_error_rates(tmp_path, caplog):
    """Where there are scores of speaker verification; where those make no sense, a warning and no figure."""
    log = logging.getLogger("pyspeech.test")
    assert score.asv_rates_of(tmp_path, "dev", log) is None

    def write(lower):
        lines = [
            f"A07 {kind} {score}"
            for n in range(50)
            for kind, score in (("target", n), ("nontarget", n - 40), ("spoof", n - lower))
        ]
        (tmp_path / "asv_scores_dev.txt").write_text("\n".join(lines))

    write(20)
    rates = score.asv_rates_of(tmp_path, "dev", log)
    labels = {f"{kind[0]}{n}": Label(kind) for kind in ("genuine", "fake") for n in range(5)}
    scores = {name: float(name[0] == "g") for name in labels}
    entry = score.set_figures([scores], labels, rates)
    assert entry["min_tdcf"] == [0.0]
    table = tables.interval_table({"none": {"seeds": [1], "sets": {"dev": entry}}})
    assert "Dev.: EER, Cllr, min t-DCF" in table and ", 0.000 |" in table
    write(99)  # every fake is refused
    assert score.asv_rates_of(tmp_path, "dev", log) is None and "min t-DCF is left out" in caplog.text


def test_only_the_seeds_that_both_have_are_compared(exp):
    pair, seeds = ("none", "rnm"), {"none": [2], "rnm": [2, 1]}
    (found,) = [entry for entry in score.differences(exp, seeds, [pair], "eval") if not entry["unseen"]]
    labels = score.labels_of_set(exp.dir / "corpus", "eval")
    scores = score.read_seeds(exp, "none", [2], "eval")[0]
    assert found["seeds"] == [2]
    assert found["first"] == equal_error_rate(*score.divide(scores, labels))[0]
    assert ", 1 seed: EER of none" in tables.difference_note(found)


def test_unseen_engines_are_those_of_neither_train_nor_dev(exp):
    labels = score.labels_of_set(exp.dir / "corpus", "eval")
    chosen = score.unseen_labels(exp.dir / "corpus", labels)
    assert {label.attack for label in chosen.values() if not label.genuine} == {"A02"}
    assert {name for name, label in labels.items() if label.genuine} < set(chosen)


def test_no_difference_where_all_engines_are_seen_or_none_is(exp, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    shutil.copytree(exp.dir / "scores", tmp_path / "scores")
    for train in (lambda attack: True, lambda attack: attack == "-"):
        eval_cuts = score.load_cuts(exp.dir / "corpus", "eval")
        chosen = [cut for cut in eval_cuts if train(label_of(cut).attack)]
        CutSet.from_cuts(chosen).to_file(corpus / "train.jsonl.gz")
        CutSet.from_cuts(eval_cuts).to_file(corpus / "eval.jsonl.gz")
        other = SimpleNamespace(dir=tmp_path, parts=None)
        found = score.differences(other, SEEDS, [("none", "rnm")], "eval")
        assert [one["unseen"] for one in found] == [False]


def test_names_that_look_like_endings_or_columns(exp, tmp_path):
    """Utterances of files such as x.mp3.wav and `my call spoof.wav` have the same names in manifest and scores."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    cuts = list(score.load_cuts(exp.dir / "corpus", "eval"))[:6]
    names = ["x.mp3", "x", "my call spoof", "my call bonafide", "other call spoof", "y.wav"]
    CutSet.from_cuts([cut.with_id(name) for cut, name in zip(cuts, names, strict=True)]).to_file(corpus / "eval.jsonl.gz")
    (tmp_path / "scores/none/1").mkdir(parents=True)
    write_scores(tmp_path / "scores/none/1/eval.txt", {name: float(index) for index, name in enumerate(names)})
    conf = SimpleNamespace(repeated=["none"], seeds=[1], test={}, corpus="mini")
    other = SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    found = score.system_figures(other, conf, "none")["sets"]["eval"]
    genuine = [index for index, cut in enumerate(cuts) if label_of(cut).genuine]
    expected = equal_error_rate(genuine, [index for index in range(6) if index not in genuine])[0]
    assert found["eer"] == [expected] and (found["genuine"], found["fake"]) == (2, 4)


def test_figures_by_family_language_and_page():
    """Of a hand-made set, against counted figures: families against all genuine, pages and languages by themselves."""
    rows = [  # id, kind, family, language, page, score
        ("a", "genuine", None, "en", "p", 2.0),
        ("b", "genuine", None, "de", "q", 0.0),
        ("c", "fake", "GAN", "en", "p", 1.0),
        ("d", "fake", "GAN", "en", "p", 3.0),
        ("e", "fake", "codec", "de", "r", -1.0),
    ]
    cuts = []
    for name, kind, family, language, page, _ in rows:
        custom = {"attack": "-", "page": page, **({"family": family} if family else {})}
        supervision = SupervisionSegment(name, name, 0, 1, text=kind, language=language, custom=custom)
        cuts.append(MonoCut(name, 0, 1, 0, supervisions=[supervision]))
    labels = {cut.id: label_of(cut) for cut in cuts}
    scores = {name: score for name, *_, score in rows}
    found = score.group_figures([scores, {name: -value for name, value in scores.items()}], labels, cuts)
    assert found == {
        "families": {"GAN": [0.5, 0.5], "codec": [0.0, 1.0]},
        "languages": {"en": [0.25, 0.25], "de": [0.0, 1.0]},
        "pages": {"p": [0.25, 0.25]},
    }
    table = tables.detail_table({"none": {"sets": {"wild": found}}}, "wild", "families")
    assert [line.replace(" ", "") for line in table.splitlines()[2:]] == ["|GAN|50.00|", "|codec|50.00|", "|mean|50.00|"]
    assert tables.detail_table({"none": {"sets": {"wild": found}}}, "wild", "pages") is None  # of one page
    for cut in cuts:
        cut.supervisions[0].custom = {"attack": "A01", "condition": "-"}
        cut.supervisions[0].language = "en"
    assert score.group_figures([scores], labels, cuts) == {}
