"""egs/zerospeech on a tiny made-up corpus in the official layout: audio to tables and speech, killed and resumed."""

import json
import logging
import runpy
import shlex
import shutil
from types import SimpleNamespace

import pytest
from browser_harness import check_page
from recipe_harness import ROOT, Recipe, fixtures, mistakes
from tiny_zerospeech import make_zerospeech

from local.zerospeech.zerospeech2019 import prepare
from pyspeech.commands import score_bitrate
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.units.challenge import expected_files
from pyspeech.units.submission import check_submission, wave_problem
from steps.systems import read_scores
from steps.units import score, synthesis

pytestmark = pytest.mark.slow  # the recipe runs, is killed and resumed

# Networks of a few parameters, a few steps, a checkpoint in the middle.
OPTIONS = """
    --profile quick --jobs 1 skip_bad=true systems=[trf128,trf128_smooth_1e-3_jitter_0.05] repeated=[trf128]
    seeds=[1,2] kmeans=[8] vqvae.codes=8 vqvae.dim=16 vqvae.feedforward=16 vqvae.code_dim=8 vqvae.quantise_after=2
    data.batch_seconds=4 train.max_steps=8 train.save_every=2 train.log_every=2 inverter.dim=16 inverter.heads=2
    inverter.feedforward=16 inverter_data.batch_seconds=4 inverter_train.max_steps=8 inverter_train.save_every=2
    inverter_train.log_every=2
"""
ZEROSPEECH = Recipe("zerospeech", *OPTIONS.split())


@pytest.fixture(scope="module", autouse=True)
def nothing_to_fetch(tmp_path_factory):
    """A corpus in a folder needs neither the network nor what the mini corpus is made with: here no address can be reached,
    nothing was fetched before, and nothing is in the end."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPEECH_CACHE", str(cache))
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        yield
    assert list(cache.iterdir()) == []


corpus, undisturbed = fixtures(ZEROSPEECH, make_zerospeech, "2019")


def test_report_page(undisturbed, browser, tmp_path):
    check_page(browser, undisturbed[0] / "report" / "index.html", tmp_path, sliders=False)


def test_tables(corpus, undisturbed):
    folder, output = undisturbed
    assert shlex.quote(f"corpus={corpus}") in (folder / "RESULTS.md").read_text(encoding="utf-8")  # to be copied
    scores = json.loads((folder / "results.json").read_text())["scores"]
    assert {name: len(entries) for name, entries in scores.items()} == {
        "mfcc": 1,
        "kmeans8": 2,
        "trf128": 2,
        "trf128_smooth_1e-3_jitter_0.05": 1,
    }
    for entries in scores.values():
        for entry in entries:
            assert all(0 <= entry["abx"][mode] <= 100 for mode in ("within", "across"))
            assert entry["bitrate"] is None or 0 <= entry["bitrate"] <= 26 * 3
    assert "20.14" in output and "k-means (K=8)" in output  # the paper's best beside ours
    assert "Speech from units" in output and f"figures: {folder / 'figures'}" in output
    assert ZEROSPEECH.would_run(folder, f"corpus={corpus}") == []


def test_more_seeds_for_a_system_train_that_alone(corpus, undisturbed):
    options = [f"corpus={corpus}", "repeated=[trf128,trf128_smooth_1e-3_jitter_0.05]"]
    trained = [stage for stage in ZEROSPEECH.would_run(undisturbed[0], *options) if "train_" in stage]
    assert trained == ["train_trf128_smooth_1e-3_jitter_0.05"]


def test_speech(corpus, undisturbed):
    """What the corpus's synthesis.txt asks for is there, each as long as the recording, and the submission is right."""
    import soundfile

    folder, _ = undisturbed
    waves = sorted((folder / "wavs").iterdir())
    assert len(waves) == 6 and not any(map(wave_problem, waves))
    for path in waves:
        (original,) = (corpus / "english" / "test").glob(f"*_{path.stem.partition('_')[2]}.wav")
        assert soundfile.info(str(path)).frames == soundfile.info(str(original)).frames
    assert check_submission(folder / "submission", expected_files(corpus)) == []
    measured = json.loads((folder / "synthesis.json").read_text())
    assert measured["conversions"]["utterances"] == 6 and measured["originals"] == {"utterances": 0, "nearer": None}
    assert 0 <= measured["conversions"]["nearer"] <= 1 and measured["griffin_lim"]["snr_db"] > 15
    figures = {path.name for path in (folder / "figures").rglob("*.*")}
    assert figures == {"abx_bitrate.png", "code_usage.png", "sentence.png"}


def test_killed_and_resumed(corpus, undisturbed, tmp_path):
    ZEROSPEECH.check_killed_and_resumed(undisturbed[0], tmp_path / "exp", f"corpus={corpus}")


test_one_line_for_a_mistake = mistakes(
    Recipe("zerospeech"),
    (["systems=[trf]"], "; there is no trf"),
    (["corpus=/nowhere"], "/nowhere"),
    (["seeds=[]"], "at least one"),
    (["systems=[conv128]"], "synthesis=trf128_smooth_5e-3_jitter_0.05: expected one of systems=[conv128]"),
    (["spoken=0"], "at least 1"),
    (["recogniser=/nowhere/listen --fast"], "recogniser=/nowhere/listen --fast: no program /nowhere/listen"),
)


@pytest.fixture
def exp(corpus, tmp_path):
    """An experiment of which the corpus is prepared; its bitrate_filelist says that everything lasts twice as long."""
    shutil.copytree(corpus, tmp_path / "2019")
    listed = tmp_path / "2019" / "english" / "bitrate_filelist.txt"
    rows = [line.split() for line in listed.read_text().splitlines()]
    listed.write_text("".join(f"{name} {2 * float(seconds)}\n" for name, seconds in rows))
    prepare(tmp_path / "2019", tmp_path / "corpus", logging.getLogger("test"))
    return SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)


def test_anchors_with_more_codes_than_frames(exp, caplog):
    conf = SimpleNamespace(
        features=MfccConfig(), vqvae=SimpleNamespace(stride=4, codes=4), repeated=[], seeds=[1], kmeans=[4, 10**6]
    )
    items = (exp.dir / "corpus" / "abx.item").read_text(encoding="utf-8").splitlines()
    one_speaker = [line for line in items if line.startswith("#") or line.endswith("S003")]
    (exp.dir / "corpus" / "abx.item").write_text("\n".join(one_speaker) + "\n")
    score.score_anchors(exp, conf)
    scores = read_scores(exp.dir / "scores")
    assert set(scores) == {"mfcc", "kmeans4"} and "kmeans: 1000000 left out, the unit set has" in caplog.text
    (entry,) = scores["kmeans4"]
    assert entry["abx"]["across"] is None and 0 <= entry["abx"]["within"] <= 100
    assert "no ABX across: 6 items without a single across-speaker triplet" in caplog.text
    figures = exp.dir / "figures.json"
    score_bitrate.main(
        [
            "--features",
            str(exp.dir / "units" / "kmeans4" / "1"),
            "--json",
            str(figures),
            "--filelist",
            str(exp.dir / "2019" / "english" / "bitrate_filelist.txt"),
        ]
    )
    assert entry["bitrate"] == json.loads(figures.read_text())["bitrate"]
    with pytest.raises(UserError, match=r"^kmeans=\[1000000\]: the unit set has .* frames .*; expected"):
        score.score_anchors(exp, SimpleNamespace(**{**vars(conf), "kmeans": [10**6]}))
    score.score_anchors(exp, SimpleNamespace(**{**vars(conf), "kmeans": []}))


def test_a_submission_is_to_hold_what_was_left_out_as_well(exp, corpus):
    """The corpus's own lists, not the manifests, say what is missing; a language of another name is in english."""
    (exp.dir / "2019" / "english").rename(exp.dir / "2019" / "French")
    cuts, pairs = [], [("S002_0000000033", "V001")]
    everything = expected_files(corpus)["english"]
    assert synthesis.expected_of(str(exp.dir / "2019"), "french", cuts, pairs) == everything
    assert len(everything[0]) == 24 and len(everything[1]) == 6
    (exp.dir / "2019" / "French" / "synthesis.txt").unlink()
    assert synthesis.expected_of(str(exp.dir / "2019"), "french", cuts, pairs)[1] == set(pairs)


@pytest.fixture(scope="module")
def script():
    """Names in run.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPEECH_ENV", "system")
        return runpy.run_path(str(ROOT / "egs" / "zerospeech" / "run.py"), run_name="run")


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"kmeans": [0]}, r"kmeans=\[0\]: expected numbers of codes, each at least 1"),
        ({"kmeans": [8, 8]}, r"kmeans=\[8, 8\]: expected each once"),
        ({"seeds": [1, 1]}, r"seeds=\[1, 1\]: expected each once"),
        ({"systems": ["trf128", "trf128"]}, r"systems=\[trf128, trf128\]: expected each once"),
        ({"languages": []}, r"languages=\[\]: expected at least one"),
        ({"languages": ["cs", "cs"]}, r"languages=\[cs, cs\]: expected each once"),
        ({"scale": 0.0}, "scale=0.0: expected more than 0, at most 1"),
        ({"scale": -1.0}, "scale=-1.0: expected more"),
        ({"scale": float("nan")}, "scale=nan: expected more"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(script, options, expected):
    with pytest.raises(UserError, match=f"^{expected}"):
        script["Config"](**options).check()


def test_an_experiment_of_its_own_for_each_language(script, corpus):
    def name(*overrides):
        recipe = script["recipe"]
        return recipe.experiment_name(recipe.configure("full", overrides)[1], "full")

    assert name() == "full" and name(f"corpus={corpus}") == "2019-full"
    assert name(f"corpus={corpus}", "language=surprise") == "2019-surprise-full"
    assert name(f"corpus={corpus}", "language=English") == "2019-english-full"
