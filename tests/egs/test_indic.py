"""egs/indic on a tiny made-up corpus in the MUCS layout: from raw audio to the tables, killed and resumed."""

import json
import shlex
import shutil

import pytest
import torch
from browser_harness import check_page
from recipe_harness import ROOT, Recipe, fixtures, mistakes
from tiny_corpora import make_mucs

from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import SearchConfig
from pyspeech.data.manifests import load_cuts

pytestmark = pytest.mark.slow  # the recipe runs, is killed and resumed

# Networks of a few parameters, a few steps, a checkpoint in the middle; every kind of training and of decoding.
OPTIONS = """
    --profile quick skip_bad=true systems=[multi_softmax,multi_softmax_lid,multi_softmax_finetuned]
    model.encoder_layers=1 model.encoder_size=16 model.predictor_size=8 model.embedding=8 model.joint=16
    model.lid_sizes=[8] data.max_utterances=4 train.max_steps=12 train.valid_every=6 train.save_every=2
    train.log_every=2 finetune_steps=0.34 data.pauses=0.5 data.join=0.5
    data.level_db=6 data.noise=0.5 search.beam=3 search.max_symbols=5 search.prune=7
"""
INDIC = Recipe("indic", *OPTIONS.split())
SYSTEMS = ["multi_softmax", "multi_softmax_lid", "multi_softmax_finetuned"]


corpus, undisturbed = fixtures(INDIC, make_mucs, "MUCS")


def test_report_page(undisturbed, browser, tmp_path):
    check_page(browser, undisturbed[0] / "report" / "index.html", tmp_path, sliders=False)


def test_tables_and_figures(corpus, undisturbed):
    folder, output = undisturbed
    assert shlex.quote(f"corpus={corpus}") in (folder / "RESULTS.md").read_text(encoding="utf-8")  # to be copied
    results = json.loads((folder / "results.json").read_text())
    assert set(results["models"]) == {*SYSTEMS, "multi_softmax_lid_oracle"}
    for scores in results["models"].values():
        assert set(scores["languages"]) == {"hi-IN", "ta-IN"}
        for entry in scores["languages"].values():
            assert entry["utterances"] == 4 and entry["words"] >= 4
            assert entry["errors"] == entry["sub"] + entry["del"] + entry["ins"]
    for entry in results["early_stopping"]:
        assert 1 <= entry["t_avg"] <= 2 and 1 <= entry["dev"]["t_avg"] <= 2
        assert entry["dev"]["words"] != entry["words"]
    assert results["early_stopping"][0]["t_avg"] == 2  # no early stopping: both decoders run
    assert results["corpus"]["hi-IN"]["train"]["utterances"] + results["corpus"]["hi-IN"]["dev"]["utterances"] == 12
    assert "70.08" in output  # the paper's Table 6 beside ours
    for name in ("Hindi_test_empty", "Tamil_train_none", "Tamil_test_extra"):
        assert name in (folder / "corpus" / "problems.txt").read_text()
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "wer.png",
        "trade_off.png",
        "confusion_multi_softmax_lid.png",
    }
    for model in (*SYSTEMS[:2], f"{SYSTEMS[2]}/hi-IN"):
        search = load_model(folder / "models" / model).search
        assert search == SearchConfig(3, 5, 7.0, search.symbol_bonus) and search.symbol_bonus in (0, 0.3, 0.6, 0.9)
    assert INDIC.would_run(folder, f"corpus={corpus}") == []


def test_another_system_trains_that_alone(corpus, undisturbed):
    options = [f"corpus={corpus}", "systems=[vanilla,multi_softmax,multi_softmax_lid]"]
    assert INDIC.would_run(undisturbed[0], *options) == ["train_vanilla", "decode_vanilla", "results", "report"]


def test_other_settings_of_early_stopping_decode_nothing(corpus, undisturbed):
    for option in ("stop_after=[7]", "stop_below=[0.3]"):
        assert INDIC.would_run(undisturbed[0], f"corpus={corpus}", option) == ["early_stopping", "results", "report"]


def test_other_hotwords_decode_anew(corpus, undisturbed, tmp_path):
    folder, hotwords = shutil.copytree(undisturbed[0], tmp_path / "exp"), tmp_path / "words.txt"
    word = next(cut for cut in load_cuts(folder / "corpus", "train")).supervisions[0].text.split()[0]
    hotwords.write_text(f"{word}\n", encoding="utf-8")
    options = [f"corpus={corpus}", f"context.hotwords={hotwords}", "--stop-stage", "decode_multi_softmax"]
    assert INDIC.would_run(folder, *options) == ["decode_multi_softmax"]
    INDIC.run(*options, "--exp", folder)
    assert INDIC.would_run(folder, *options) == []
    hotwords.write_text(f"{word}\t3\n", encoding="utf-8")
    output = INDIC.run("--dry-run", *options, "--exp", folder)
    assert [line for line in output.splitlines() if "decode_multi_softmax" in line and "words.txt has changed" in line]


def test_other_features_are_trained_on_anew(corpus, undisturbed, tmp_path):
    """Although neither frames nor statistics show how many are stacked."""
    folder = shutil.copytree(undisturbed[0], tmp_path / "exp")
    options = [f"corpus={corpus}", "features.stack_shift=4"]
    INDIC.run("--stop-stage", "features", *options, "--exp", folder)
    stale = [f"{work}_{system}" for system in SYSTEMS for work in ("train", "decode")]
    assert INDIC.would_run(folder, *options) == [*stale, "early_stopping", "results", "report"]


def test_frames_that_are_not_stored_change_no_training(corpus, undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed[0], tmp_path / "exp")
    frames = folder / "features" / "frames" / "train"
    before = sum(path.stat().st_size for path in frames.glob("*.f16"))
    options = [f"corpus={corpus}", f"data.stored_gb={before / 2e9}"]
    INDIC.run("--stop-stage", "features", *options, "--exp", folder)
    assert 0.2 * before < sum(path.stat().st_size for path in frames.glob("*.f16")) <= before / 2
    assert INDIC.would_run(folder, *options) == []


def test_one_language(corpus, tmp_path):
    """Named twice, and not as the manifests name it."""
    INDIC.run(
        f"corpus={corpus}", "languages=[Hindi,hi_in]", "systems=[multi_softmax_lid]", "train.max_steps=4", "--exp", tmp_path
    )
    results = json.loads((tmp_path / "results.json").read_text())
    for scores in results["models"].values():
        assert list(scores["languages"]) == ["hi-IN"] and scores["languages"]["hi-IN"]["utterances"] == 4
    assert results["models"]["multi_softmax_lid"]["lid"]["accuracy"] == {"hi-IN": 1}
    for name in ("languages", "average"):
        assert results["models"]["multi_softmax_lid"][name] == results["models"]["multi_softmax_lid_oracle"][name]
    assert {entry["t_avg"] for entry in results["early_stopping"]} == {1}
    assert list(results["corpus"]) == ["hi-IN"]


def test_begun_with_another_model(corpus, undisturbed, tmp_path):
    """Next to nothing is learnt at this rate. Another file in that place makes the training stale, an equal one does not."""
    first = shutil.copytree(undisturbed[0] / "models" / "multi_softmax_lid", tmp_path / "a model")
    folder = shutil.copytree(undisturbed[0], tmp_path / "exp")
    options = [f"corpus={corpus}", "systems=[multi_softmax]", f"start_from={first}", "train.lr=1e-9", "freeze=[encoder]"]
    assert INDIC.would_run(folder, *options)[:2] == ["train_multi_softmax", "decode_multi_softmax"]
    output = INDIC.run("--stop-stage", "train_multi_softmax", *options, "--exp", folder)
    assert "100.0 % of" in output and "symbols of hi-IN: " in output
    before, after = (load_model(path).model.state_dict() for path in (first, folder / "models" / "multi_softmax"))
    assert not [name for name, tensor in after.items() if not torch.allclose(tensor, before[name], rtol=0, atol=1e-6)]
    assert "train_multi_softmax" not in INDIC.would_run(folder, *options)
    shutil.copy(undisturbed[0] / "models" / "multi_softmax_lid" / "model.pt", first)
    assert "train_multi_softmax" not in INDIC.would_run(folder, *options)
    shutil.copy(undisturbed[0] / "models" / "multi_softmax" / "model.pt", first)
    output = INDIC.run("--dry-run", *options, "--exp", folder)
    assert [line for line in output.splitlines() if "train_multi_softmax" in line and "a model/model.pt has changed" in line]
    experiment = [option if "start_from" not in option else f"start_from={undisturbed[0]}" for option in options]
    output = INDIC.run("--stop-stage", "train_multi_softmax", *experiment, "--exp", folder)
    assert f"multi_softmax begins with the weights of {undisturbed[0]}/models/multi_softmax" in output


def test_killed_and_resumed(corpus, undisturbed, tmp_path):
    INDIC.check_killed_and_resumed(undisturbed[0], tmp_path / "exp", f"corpus={corpus}")


test_one_line_for_a_mistake = mistakes(
    Recipe("indic"),
    (["--stage", "trian"], "Did you mean 'train_"),
    (["systems=[multi_softmx]"], "multi_softmx"),
    (["systems=[multi_softmax_finetuned]"], "expected multi_softmax too, which multi_softmax_finetuned is trained from"),
    (["corpus=/nowhere"], "/nowhere"),
    (["start_from=/nowhere"], "start_from=/nowhere: no such folder or file"),
    ([f"start_from={ROOT / 'docs'}"], "no model.pt in it; expected a folder that the recipe indic made"),
    (["freeze=[encoder]"], "freeze: random weights are to be trained"),
    (["freeze=[lstm]", f"start_from={ROOT / 'docs'}"], "there is no lstm"),
    (["cut_longer=true"], "cut_longer=true: expected false, or longest=SECONDS too"),
)
