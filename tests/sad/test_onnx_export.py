"""SAD networks as ONNX files: the scores of torch, the options that they carry, what is wrong with a file, no torch."""

import io
import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
import soundfile
import torch
from tool_harness import UTILS, run_tool

from pyspeech.commands import export_onnx as export_tool
from pyspeech.errors import UserError
from pyspeech.model_file import FORMAT, METADATA, write_onnx
from pyspeech.sad.checkpoint import save_model
from pyspeech.sad.config import KIND, OperatingPoint
from pyspeech.sad.decoding import score_blocks, score_samples
from pyspeech.sad.detector import load_detector
from pyspeech.sad.onnx_export import export_onnx
from pyspeech.sad.onnx_network import OnnxNetwork
from tests.sad.test_networks import make_model, radio, score_whole

POINTS = {"turns": OperatingPoint(0.4, "hmm", min_silence=0.5), "words": OperatingPoint(0.6, "median", pad=0.1)}
MODELS = {
    "cnn": {"compress": "none"},
    "rnn": {"rnn_merge": "sum"},
    "seg_rnn": {"segment_length": 8, "segment_shift": 3},  # which do not divide one another
    "causal_rnn": {"lookahead": 4},
    "rnn, lowered": {"lowered": 0.7},
}


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tmp_path_factory):
    """(a network in torch, its ONNX file)"""
    model = make_model(request.param.split(",")[0], **MODELS[request.param])
    path = tmp_path_factory.mktemp("onnx") / f"{request.param}.onnx"
    export_onnx(model, path, POINTS, card="made up")
    return model, path


@pytest.mark.parametrize("seconds", [0.0, 1 / 8000, 0.01, 0.13, 1.99, 23.456])
def test_scores_are_those_of_torch(exported, seconds):
    model, path = exported
    samples = radio(seconds)
    scores = score_samples(OnnxNetwork(path), samples)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, score_samples(model, samples), atol=1e-5)
    if 0 < seconds < 3 and not model.config.lowered:  # longer ones, the RNN cuts into windows
        np.testing.assert_allclose(scores, score_whole(model, samples), atol=1e-5)


@pytest.mark.parametrize("gain", [0.0, 1e-4, 1.0, 1e4])
def test_scores_of_silence_tones_and_any_level(exported, gain):
    """The matrix of the transform rounds otherwise than the fast one: a tone leaves the most to round beside it."""
    model, path = exported
    times = np.arange(5 * 8000) / 8000
    tone = gain * (np.sin(2 * np.pi * 1000.3 * times) + 0.1 * radio(5)).astype(np.float32)
    np.testing.assert_allclose(score_samples(OnnxNetwork(path), tone), score_samples(model, tone), atol=1e-4)


def test_scores_do_not_depend_on_pieces_blocks_and_threads(exported):
    network = OnnxNetwork(exported[1])
    samples = radio(40.0)
    whole = score_samples(network, samples)
    for piece, workers, block in ((100, 1, 4000), (1000, 3, 10**6), (900, 2, 12345)):
        blocks = (samples[start : start + block] for start in range(0, len(samples), block))
        np.testing.assert_allclose(np.concatenate(list(score_blocks(network, blocks, piece, workers))), whole, atol=1e-5)


def test_a_causal_network_in_a_stream_has_each_frame_once(tmp_path, monkeypatch):
    model, frames = make_model("causal_rnn"), []
    export_onnx(model, tmp_path / "x.onnx", POINTS)
    network, samples = OnnxNetwork(tmp_path / "x.onnx"), radio(20.01)
    score_piece = network.score_piece
    monkeypatch.setattr(network, "score_piece", lambda *job, **state: frames.append(len(job[0])) or score_piece(*job, **state))
    scores = np.concatenate(list(score_blocks(network, np.array_split(samples, 999), 3)))
    assert sum(frames) == len(scores) == 2001
    np.testing.assert_allclose(scores, score_whole(model, samples), atol=1e-5)


class PieceByPiece(torch.nn.Module):
    """A causal network in the form of before there were chunks: its score is how many pieces there have been."""

    def forward(self, samples, span, state):
        after = state + 1
        return samples[0, : span[2]] * 0 + after[0, 0, 0], after


def test_a_causal_network_of_pieces_is_still_read(tmp_path):
    model, buffer = make_model("causal_rnn"), io.BytesIO()
    inputs = torch.zeros(1, 9999), torch.tensor([9, 2, 3]), torch.zeros(1, 1, model.config.rnn_size)
    options = {} if torch.__version__.startswith("1.") else {"dynamo": False}
    names = {"input_names": ["samples", "span", "state"], "output_names": ["scores", "after"]}
    torch.onnx.export(
        PieceByPiece(), inputs, buffer, dynamic_axes={"samples": {1: "N"}, "scores": {0: "count"}}, **names, **options
    )
    content = {"network": model.config, "stft": model.stft.config, "points": POINTS, "card": ""}
    write_onnx(tmp_path / "x.onnx", buffer.getvalue(), KIND, **content)
    scores = np.concatenate(list(score_blocks(OnnxNetwork(tmp_path / "x.onnx"), [radio(1.0)], 30)))
    np.testing.assert_array_equal(scores, np.repeat([1, 2, 3, 4], [30, 30, 30, 10]))


def test_a_file_carries_its_options(exported):
    model, path = exported
    network = OnnxNetwork(path)
    assert (network.network, network.stft_config) == (model.config, model.stft.config)
    assert network.points == POINTS and list(network.points) == list(POINTS) and network.card == "made up"


@pytest.fixture(scope="module")
def speech_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("audio") / "radio.wav"
    soundfile.write(path, radio(20.0), 8000)
    return path


def test_operating_points_decide(exported, speech_file):
    from pyspeech.sad.segments import frames_to_segments, tidy
    from pyspeech.sad.smoothing import decide

    model, path = exported
    found = {name: load_detector(None, path, point=name)(speech_file) for name in (None, *POINTS)}
    assert np.array_equal(found[None].segments, found["turns"].segments)
    for name, point in POINTS.items():
        decisions = decide(found[name].scores, point.threshold, point.smoothing)
        speech = frames_to_segments(decisions, 0.01, 20.0, model.stft.config.frame_offset)
        assert np.array_equal(found[name].segments, tidy(speech, 20.0, 0.0, point.min_silence, point.pad))
    assert len(load_detector(None, path, threshold=1.0, point="words")(speech_file).segments) == 0
    with pytest.raises(UserError, match="operating point 'calls': expected one of turns, words"):
        load_detector(None, path, point="calls")


def test_the_tool_exports_and_the_file_is_used_without_torch(speech_file, tmp_path):
    model = make_model("rnn")
    save_model(tmp_path, model, float(np.median(score_samples(model, radio(20.0)))), "median")
    with_torch = load_detector("rnn", tmp_path)(speech_file)
    done = run_tool("export_onnx", tmp_path)
    assert done.returncode == 0 and f"{tmp_path}/model.onnx: " in done.stdout
    found = load_detector("rnn", tmp_path)(speech_file)
    assert np.array_equal(found.segments, with_torch.segments) and len(found.segments) > 1
    command = [sys.executable, "-X", "importtime", UTILS / "detect_speech.py", speech_file, "--model", tmp_path]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "onnxruntime" in imported and not imported & {"torch", "lhotse", "scipy", "sklearn", "matplotlib"}
    np.testing.assert_allclose(json.loads(done.stdout)["speech"], found.segments, atol=1e-3)
    save_model(tmp_path, model, 0.9, "none")  # another model: the file of the one before is gone
    assert not (tmp_path / "model.onnx").exists()


def test_a_file_with_other_scores_is_not_left_behind(tmp_path, monkeypatch):
    save_model(tmp_path, make_model("cnn"), 0.5, "none")
    monkeypatch.setattr(export_tool, "compare", lambda *forms: float("nan"))
    with pytest.raises(UserError, match="model.onnx: its scores would differ from those of .* by nan; .* not written"):
        export_tool.main([str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_files_that_are_none(exported, tmp_path):
    with pytest.raises(UserError, match="absent.onnx: no such model; .* utils/export_onnx.py"):
        load_detector(None, tmp_path / "absent.onnx")
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(exported[1].read_bytes()[:1000])
    with pytest.raises(UserError, match="bad.onnx: not an ONNX model, or damaged"):
        load_detector(None, bad)
    graph = onnx.load(exported[1])
    content = json.loads(graph.metadata_props[0].value)
    assert graph.metadata_props[0].key == METADATA and content["format"] == FORMAT
    for changed, expected in (
        (None, "not a SAD network of this repository"),
        ({**content, "kind": "transducer"}, "not a SAD network of this repository"),
        ({**content, "format": 99}, f"has format 99, .* which reads format {FORMAT}: export it again"),
        ({**content, "points": {}}, "its metadata is not that of a SAD network"),
        ({**content, "points": {"a": {"threshold": 2.0}}}, "threshold=2.0: expected 0 to 1"),
        ({**content, "network": {"layers": 3}}, "its metadata is not that of a SAD network"),
    ):
        del graph.metadata_props[:]
        if changed:
            onnx.helper.set_model_props(graph, {METADATA: json.dumps(changed)})
        onnx.save(graph, bad)
        with pytest.raises(UserError, match=expected):
            load_detector(None, bad)
    with pytest.raises(UserError, match=f"holds a {exported[0].config.temporal} network, not"):
        load_detector("rnn" if exported[0].config.temporal != "rnn" else "cnn", exported[1])
