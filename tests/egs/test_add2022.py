"""egs/add2022 on tiny made-up corpora in the official layouts: audio to tables, figures and scores, killed and resumed."""

import json
import shlex
import shutil

import numpy as np
import pytest
import soundfile
from browser_harness import check_page
from recipe_harness import Recipe, fixtures, mistakes
from tiny_spoof import sound

pytestmark = pytest.mark.slow  # the recipe runs, is killed and resumed

# A few steps on short pieces, a checkpoint in the middle.
OPTIONS = """
    --profile quick --jobs 1 skip_bad=true systems=[none,rnm_sm_mc0.8,traindev_rnm,pooled_rnm_sm] repeated=[none] seeds=[1,2]
    data.samples=8192 data.hop=8192 data.batch_size=4 train.max_steps=4 train.valid_every=2 train.save_every=2
    train.log_every=2 train.warmup_steps=0
"""
ADD = Recipe("add2022", *OPTIONS.split())
SIZES = {"train": 9, "dev": 6, "adapt": 6, "eval": 6}


def make_add2022(folder):
    """The layout of ADD 2022: two thirds fake; an evaluation set without labels; names with a space and an umlaut; one
    empty file, a stereo one, one at 8 kHz."""
    rng = np.random.default_rng(5)
    places = {"train": "ADD_train_dev/train", "dev": "ADD_train_dev/dev", "adapt": "track1adp_out", "eval": "track1test"}
    labels = {
        "train": "ADD_train_dev/label/train_label.txt",
        "dev": "ADD_train_dev/label/dev_label.txt",
        "adapt": "track1adp_out/label.txt",
    }
    for part, count in SIZES.items():
        (folder / places[part]).mkdir(parents=True)
        lines = []
        for index in range(count):
            kind, name = ("fake", "fake", "genuine")[index % 3], f"ADD {part} ü_{index:08d}.wav"
            rate = 8000 if index == 1 else 16000
            samples = sound(kind, rng.uniform(0.3, 1.0), rng, rate)
            soundfile.write(folder / places[part] / name, np.stack([samples] * 2, axis=1) if index == 2 else samples, rate)
            lines.append(f"{name} {kind}\n")
        if part in labels:
            (folder / labels[part]).parent.mkdir(parents=True, exist_ok=True)
            (folder / labels[part]).write_text("".join(lines), encoding="utf-8")
    soundfile.write(folder / places["train"] / "empty.wav", np.zeros(0), 16000)
    return folder


corpus, undisturbed = fixtures(ADD, make_add2022, "ADD2022")


def test_report_page(undisturbed, browser, tmp_path):
    check_page(browser, undisturbed[0] / "report" / "index.html", tmp_path, sliders=True)


def test_tables_scores_and_figures(corpus, undisturbed):
    folder, output = undisturbed
    assert shlex.quote(f"corpus={corpus}") in (folder / "RESULTS.md").read_text(encoding="utf-8")  # to be copied
    scores = json.loads((folder / "results.json").read_text())["scores"]
    assert {name: entry["seeds"] for name, entry in scores.items()} == {
        "none": [1, 2],
        "rnm_sm_mc0.8": [1],
        "traindev_rnm": [1],
        "pooled_rnm_sm": [1],
    }
    assert set(scores["none"]["sets"]) == {"dev", "adapt"} and scores["pooled_rnm_sm"]["sets"] == {}  # eval has no labels
    assert set(scores["traindev_rnm"]["sets"]) == {"adapt"}
    for entry in [*scores["none"]["sets"].values(), *scores["rnm_sm_mc0.8"]["sets"].values()]:
        low, high = entry["interval"]
        assert all(0 <= value <= 1 for value in entry["eer"]) and 0 <= low <= high <= 1
        assert entry["genuine"] == 2 and entry["fake"] == 4
    assert "30.32" in output and "31.88" in output  # the paper's Table 3 beside ours
    lines = (folder / "scores" / "pooled_rnm_sm" / "1" / "eval.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SIZES["eval"] and lines[0].startswith("ADD eval ü_00000000 ")
    assert "empty.wav" in (folder / "corpus" / "problems.txt").read_text()
    assert {path.name for path in (folder / "figures").rglob("*.png")} == {"envelopes.png", "histograms.png", "det.png"}
    assert ADD.would_run(folder, f"corpus={corpus}") == []
    again = ADD.would_run(folder, f"corpus={corpus}", "augment.noise_dir=simulated")
    assert {"backgrounds", "train_rnm_sm_mc0.8", "results"} < set(again) and "train_none" not in again


def test_killed_and_resumed(corpus, undisturbed, tmp_path):
    ADD.check_killed_and_resumed(undisturbed[0], tmp_path / "exp", f"corpus={corpus}")


def test_the_layout_of_asvspoof_is_recognised(corpus, tmp_path):
    """Train alone, without a development set to choose by or to calibrate on."""
    folder = tmp_path / "LA"
    (folder / "ASVspoof2019_LA_train" / "flac").mkdir(parents=True)
    (folder / "ASVspoof2019_LA_cm_protocols").mkdir()
    lines = []
    for index, kind in enumerate(["bonafide", "spoof"] * 3):
        name = f"LA_T_{index:07d}"
        samples = sound("genuine" if kind == "bonafide" else "fake", 0.6, np.random.default_rng(index))
        soundfile.write(folder / "ASVspoof2019_LA_train" / "flac" / f"{name}.flac", samples, 16000)
        lines.append(f"LA_00{index} {name} - {'-' if kind == 'bonafide' else 'A01'} {kind}\n")
    (folder / "ASVspoof2019_LA_cm_protocols" / "ASVspoof2019.LA.cm.train.trn.txt").write_text("".join(lines))
    output = ADD.run(f"corpus={folder}", "systems=[none]", "seeds=[1]", "--exp", tmp_path / "exp")
    assert "the layout of asvspoof2019" in output and "no labelled dev set" in output
    assert "the corpus has no dev set to calibrate them on" in output
    assert (tmp_path / "exp" / "models" / "none" / "1" / "model.pt").exists()
    assert not (tmp_path / "exp" / "backgrounds").exists()  # of noise and rooms, which no system is trained with


def make_labelled(folder, pages):
    """A list of pages with a genuine file and a fake of each of two families, in two languages."""
    rng, rows = np.random.default_rng(1), ["path\tlabel\tfamily\tlanguage\tpage"]
    for page in range(pages):
        for number, family in enumerate(("", "", "GAN", "codec")):
            kind, path = "fake" if family else "genuine", folder / f"{page}-{number}.wav"
            folder.mkdir(exist_ok=True)
            soundfile.write(path, sound(kind, 0.6, rng), 16000)
            rows.append(f"{path.name}\t{kind}\t{family}\t{('de', 'en')[number % 2]}\tp{page}")
    (folder / "files.tsv").write_text("\n".join(rows) + "\n")
    return folder


def test_any_list_is_a_corpus_and_others_are_tested_on(tmp_path):
    """Trained on one list, tested on another and on folders; tables by family, language, page; a test more trains nothing."""
    own = make_labelled(tmp_path / "own", 14)
    make_labelled(tmp_path / "other", 3)
    for kind in ("real", "fake"):
        (tmp_path / "folders" / kind).mkdir(parents=True)
        for index in range(3):
            samples = sound("genuine" if kind == "real" else "fake", 0.6, np.random.default_rng(index))
            soundfile.write(tmp_path / "folders" / kind / f"{index}.wav", samples, 16000)
    options = [f"corpus={own}", "systems=[none,rnm_sm]", "repeated=[]", "seeds=[1]", "augment.noise_dir=simulated"]
    options += ["augment.music=0", "augment.reverberation=0"]
    options += [f"test.other={tmp_path / 'other/files.tsv'}", "--exp", tmp_path / "exp"]
    output = ADD.run(*options)
    assert "drawn by page" in output and "Is it the files" in output
    results = json.loads((tmp_path / "exp/results.json").read_text())
    figures = results["scores"]["none"]["sets"]
    assert set(figures) == {"dev", "eval", "other"} and figures["other"]["genuine"] == figures["other"]["fake"] == 6
    assert set(figures["other"]["pages"]) == {"p0", "p1", "p2"} and set(figures["other"]["families"]) == {"GAN", "codec"}
    assert set(figures["other"]["languages"]) == {"de", "en"} and "## other EER in % by page" in output
    assert {one["set"] for one in results["differences"]} == {"eval", "other"}
    lines = (tmp_path / "exp/scores/none/1/other.txt").read_text().splitlines()
    assert len(lines) == 12 and lines[0].startswith("0-0 ")
    more = [*options[:-2], f"test.folders={tmp_path / 'folders'}"]
    assert set(ADD.would_run(tmp_path / "exp", *more)) == {
        "prepare_tests",
        "score_none",
        "score_rnm_sm",
        "compare",
        "results",
        "report",
    }
    assert "folders EER in %" not in output and "| folders " in ADD.run(*more, "--exp", tmp_path / "exp")


test_one_line_for_a_mistake = mistakes(
    Recipe("add2022"),
    (["systems=[rnm_mc]"], "rnm_mc"),
    (["kind=asvspoof"], "kind=asvspoof: expected one of"),
    (["corpus=/nowhere"], "/nowhere"),
    (["split_by=people"], "split_by=people: expected one of auto, page, speaker, family, utterance"),
    (["test.wild=/nowhere"], "test.wild=/nowhere: no such folder or file; expected the folder of a corpus"),
    (["test.dev=/tmp"], "expected other names than train, dev, adapt, eval"),
    (["seeds=[]"], "seeds=[]"),
    (["augment.mcadams=5"], "augment.mcadams=5.0: expected a probability, 0 to 1"),
    (["augment.coefficients=[0.7]"], "expected its default, [0.8]: it follows from each system"),
    (["specaugment.time_masks=-1"], "specaugment.time_masks=-1: expected"),
    (["data.hop=0"], "data.hop=0: expected"),
)


def test_audio_without_labels_to_train_with(corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder)
    (folder / "ADD_train_dev" / "label" / "train_label.txt").unlink()
    ADD.check_mistake([f"corpus={folder}", "--stop-stage", "prepare"], "label", tmp_path / "exp")
