"""The residual network of the detector of fake audio: what its parts compute, its ONNX form, and the registry of networks."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional

from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, save_model
from pyspeech.spoof.config import CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.detector import Detector, score_samples
from pyspeech.spoof.networks import LcnnBlstm, log_odds, make_network
from pyspeech.spoof.onnx_export import export_onnx, traced
from pyspeech.spoof.onnx_network import load_onnx
from pyspeech.spoof.registry import NETWORKS
from pyspeech.spoof.resnet import AttentiveStatistics, Block, ResNet

FEATURES = LogMelConfig(window=160, shift=80, scale="linear", remove_mean=True)
CROP = CropConfig(samples=8000, hop=8000, whole=32000, level=-26.0, silence=800)


@pytest.fixture(scope="module")
def network():
    """One whose normalisation has seen something."""
    torch.manual_seed(0)
    model = make_network(DetectorConfig(kind="resnet", dropout=0.2), FEATURES)
    for _ in range(3):
        model(0.1 * torch.randn(4, 8000))
    return model.eval()


def test_size(network):
    assert isinstance(network, ResNet) and sum(value.numel() for value in network.parameters()) == 1_143_396


def test_pooling_is_the_formula():
    torch.manual_seed(0)
    pooling, frames = AttentiveStatistics(6), torch.randn(2, 6, 9)
    with torch.no_grad():
        found = pooling(frames).numpy()
        first, _, second = pooling.weigh
        for one, pooled in zip(frames.numpy().astype(np.float64), found, strict=True):
            hidden = np.tanh(first.weight[:, :, 0].numpy() @ one + first.bias.numpy()[:, None])
            logits = second.weight[:, :, 0].numpy() @ hidden + second.bias.numpy()[:, None]
            weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            mean = (weights * one).sum(axis=1)
            deviation = np.sqrt((weights * (one - mean[:, None]) ** 2).sum(axis=1))
            assert np.allclose(pooled, np.concatenate([mean, deviation]), atol=1e-4)


@pytest.mark.parametrize(("inputs", "stride"), [(8, 1), (8, 2), (4, 1)])
def test_block_is_the_formula(inputs, stride):
    torch.manual_seed(0)
    block, maps = Block(inputs, stride, 8).eval(), torch.randn(2, inputs, 7, 6)
    with torch.no_grad():
        first, norm, _, second, other = block.layers
        hidden = norm(functional.conv2d(maps, first.weight, stride=stride, padding=1)).clamp(min=0)
        new = other(functional.conv2d(hidden, second.weight, padding=1))
        gate = torch.sigmoid(block.gate[2](block.gate[0](new.flatten(2).mean(2)).clamp(min=0)))
        same = maps if inputs == 8 and stride == 1 else block.shortcut(maps)
        expected = (same + new * gate.reshape(2, 8, 1, 1)).clamp(min=0)
        assert torch.allclose(block(maps), expected, atol=1e-5)


@pytest.mark.parametrize("samples", [1300, 8000, 40001])
def test_any_length_alone_and_in_a_batch(network, samples):
    batch = 0.1 * torch.randn(3, samples)
    with torch.inference_mode():
        assert torch.allclose(network(batch)[1:2], network(batch[1:2]), atol=1e-4)


def test_the_model_file_and_onnx_score_alike(network, tmp_path, rng):
    detector = Detector(network, CROP, Calibration(2.0, 0.5), 0.25)
    save_model(tmp_path, detector)
    export_onnx(detector, tmp_path / "model.onnx")
    loaded, exported = load_model(tmp_path), load_onnx(tmp_path / "model.onnx")
    assert isinstance(loaded.model, ResNet) and exported.threshold == loaded.threshold == 0.25
    for seconds in (0.3, 1.7, 5.1):
        samples = 0.1 * rng.standard_normal(round(16000 * seconds))
        scores = [score_samples(one, samples, 16000) for one in (detector, loaded, exported)]
        assert scores == pytest.approx([scores[0]] * 3, abs=1e-4)


@pytest.mark.parametrize("num_bins", [80, 96])
def test_residual_lcnn_of_any_size_in_onnx(num_bins):
    torch.manual_seed(0)
    model = LcnnBlstm(DetectorConfig(residual=True), LogMelConfig(num_bins=num_bins)).eval()
    session, samples = onnxruntime.InferenceSession(traced(model)), 0.1 * torch.randn(1, 16000)
    with torch.inference_mode():
        expected = log_odds(model(samples)).numpy()
    assert np.allclose(session.run(["score"], {"samples": samples.numpy()})[0], expected, atol=1e-4)


def test_a_network_is_a_class_and_an_entry(monkeypatch):
    monkeypatch.setitem(NETWORKS, "another", f"{__name__}:Another")
    assert isinstance(make_network(DetectorConfig(kind="another")), Another)
    with pytest.raises(UserError, match="network option kind=aasist: expected one of lcnn_blstm, resnet"):
        make_network(DetectorConfig(kind="aasist"))
    with pytest.raises(UserError, match="network option residual=true: expected false with kind=resnet"):
        make_network(DetectorConfig(kind="resnet", residual=True))


class Another(ResNet):
    pass
