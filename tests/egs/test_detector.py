"""egs/detector on made-up voices: from the corpus to an ONNX file with two operating points, and to the table."""

import json
import runpy
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT
from tiny_scenes import made_up_transcript, make_sources

from local.detector import scenes as speech_scenes
from local.fearless import ami_clips, mini as fearless_mini
from pyspeech.sad.detector import load_detector
from pyspeech.sad.streaming import load_stream

pytestmark = pytest.mark.slow  # the recipe runs

OPTIONS = """
    --profile quick train_minutes=[1,1,1] dev_minutes=[1,1,1] eval_minutes=[1,1,1] network.channels=[2,4,8] network.rnn_size=8
    train.max_steps=4 train.valid_every=2 train.save_every=2 train.log_every=2 data.batch_size=4
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detector")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPEECH_ENV", "system")
    patch.setattr(speech_scenes, "default_sources", lambda: make_sources(folder / "voices"))
    patch.setattr(fearless_mini, "apollo_transcript", lambda: None)
    patch.setattr(fearless_mini, "read_transcript", lambda path: made_up_transcript())
    patch.setattr(ami_clips, "prepare", lambda out, log: None)
    recipe = runpy.run_path(str(ROOT / "egs/detector/run.py"), run_name="run")["recipe"]
    recipe.main([*OPTIONS.split(), "--exp", str(folder / "exp")])
    shutil.copytree(folder / "exp", folder / "causal")
    recipe.main([*OPTIONS.split(), "network.temporal=causal_rnn", "--exp", str(folder / "causal"), "--stop-stage", "export"])
    yield folder / "exp"
    patch.undo()


def test_points_and_table(experiment):
    results = json.loads((experiment / "results.json").read_text())
    assert set(results["points"]) == {"turns", "words"}
    assert results["points"]["turns"]["min_silence"] == 0.5
    for point in ("turns", "words"):
        assert set(results["results"][point]) == {
            f"{name} {kind}" for name in ("dev", "eval") for kind in ("close", "quiet", "radio")
        }
        for name, found in results["results"][point].items():
            for scores in found.values():
                assert scores["dcf"] == pytest.approx(0.75 * scores["p_miss"] + 0.25 * scores["p_fa"], abs=0.02)
                assert scores["p_miss"] == 0 or "quiet" not in name  # nobody speaks there
    assert "## Scored as words" in (experiment / "RESULTS.md").read_text(encoding="utf-8")


def test_points_call_next_to_nothing_speech_where_nobody_speaks():
    """Of two thresholds the one with the lower DCF is not taken where it calls too much of the quiet recording speech."""
    from pyspeech.sad.config import OperatingPoint, StftConfig
    from steps.sad import points

    stft, rows = StftConfig(n_fft=256, window=256, shift=160), [(0.0, 2.0, "S"), (2.0, 4.0, "NS")]
    spoken, quiet = np.full(200, 0.01), np.full(200, 0.01)
    spoken[:100], quiet[:20] = 0.3, 0.3  # a threshold below 0.3 finds all speech, and calls a tenth of the quiet one speech
    loud = np.where(np.arange(200) < 60, 0.9, spoken)  # the same where most of the speech scores high: hysteresis finds it all

    def choose(scores, limit):
        material = [(SimpleNamespace(id="close_1", duration=4.0), rows, scores)] * 3
        material += [(SimpleNamespace(id="quiet_1", duration=4.0), [(0.0, 4.0, "NS")], quiet)]
        return points._search(OperatingPoint(), {}, lambda point: points._cost(point, material, stft, limit))

    point, (excess, dcf) = choose(spoken, 0.2)
    assert excess == 0 and point.threshold < 0.3 and point.peak == 0 and dcf < 0.02
    point, (excess, dcf) = choose(spoken, 0.05)
    assert excess == 0 and point.threshold >= 0.3 and dcf == pytest.approx(0.75 * 3 / 4)
    point, (excess, dcf) = choose(loud, 0.05)
    assert excess == 0 and point.threshold < 0.3 <= point.peak < 0.9 and dcf < 0.01


def test_the_exported_file_has_both_points(experiment):
    model = experiment / "models/detector"
    points = json.loads((experiment / "points.json").read_text())
    audio = next((experiment / "corpus/audio/dev").glob("close*.wav"))
    found = {point: load_detector(None, model, point=point)(audio) for point in points}
    assert (found["turns"].scores == found["words"].scores).all()
    default = load_detector(None, model)(audio)
    assert default.segments.tolist() == found["turns"].segments.tolist()
    pauses = found["turns"].segments[1:, 0] - found["turns"].segments[:-1, 1]
    assert (pauses + 2 * points["turns"]["pad"] >= 0.5 - 1e-6).all()


def test_the_causal_network_decides_soon(experiment):
    """The same recipe makes it of the same corpus; it finds the same in a stream."""
    model = experiment.with_name("causal") / "models/detector"
    (audio,) = list((experiment / "corpus/audio/dev").glob("close*.wav"))[:1]
    offline = load_detector("causal_rnn", model, threshold=0.5)(audio)
    stream, samples = load_stream("causal_rnn", model, threshold=0.5), soundfile.read(audio, dtype="float32")[0]
    assert stream.latency <= 0.3
    points = json.loads((experiment.with_name("causal") / "points.json").read_text())
    assert {(point["smoothing"], point["min_speech"]) for point in points.values()} == {("none", 0.0)}  # others wait
    scores, found = [], []
    for start in range(0, len(samples), 800):
        found.append(stream.add(samples[start : start + 800]))
        scores.append(stream.scores)
    found.append(stream.finish())
    np.testing.assert_allclose(np.concatenate([*scores, stream.scores]), offline.scores, atol=1e-5)
    np.testing.assert_allclose(np.concatenate(found), offline.segments, atol=0.021)  # a score within rounding of the threshold
