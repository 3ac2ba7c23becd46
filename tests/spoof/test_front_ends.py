"""Front ends of the detector of fake audio: what they compute, and a training and model files with each."""

import json
import logging
import types
import urllib.error
from dataclasses import replace

import numpy as np
import pytest
import torch
import torchaudio
from tiny_spoof import write_corpus

from pyspeech.compat import autocast, load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, read_features, save_model
from pyspeech.spoof.config import BUNDLES, AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.detector import Detector, score_samples
from pyspeech.spoof.front_ends import FrontEnd, make_front_end
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.spoof.onnx_export import export_onnx
from pyspeech.spoof.registry import FRONT_ENDS, Entry
from pyspeech.spoof.training import compute_loss
from pyspeech.training.config import TrainConfig
from pyspeech.training.optimization import make_optimizer
from steps.spoof.start import check_start, first_model
from steps.spoof.train import train_detector

DATA = CropConfig(samples=8000, hop=8000, batch_size=4)
SMALL = {  # an encoder with a frame every 320 samples
    "extractor_mode": "group_norm",
    "extractor_conv_layer_config": [[16, 10, 5], [16, 8, 8], [16, 8, 8]],
    "extractor_conv_bias": False,
    "encoder_embed_dim": 24,
    "encoder_projection_dropout": 0.1,
    "encoder_pos_conv_kernel": 8,
    "encoder_pos_conv_groups": 4,
    "encoder_num_layers": 3,
    "encoder_num_heads": 4,
    "encoder_attention_dropout": 0.1,
    "encoder_ff_interm_features": 32,
    "encoder_ff_interm_dropout": 0.0,
    "encoder_dropout": 0.1,
    "encoder_layer_norm_first": False,
    "encoder_layer_drop": 0.05,
    "aux_num_out": None,
}


def small_encoder(seed=0):
    torch.manual_seed(seed)
    return torchaudio.models.wav2vec2_model(**SMALL).eval()


def write_encoder(folder, seed=0, **options):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**SMALL, **options}), encoding="utf-8")
    save_checkpoint(folder / "weights.pt", small_encoder(seed).state_dict())
    return folder


@pytest.fixture
def encoder(tmp_path):
    return write_encoder(tmp_path / "an encoder ü")


def with_encoder(folder, **options):
    return LogMelConfig(front_end="self_supervised", pretrained=str(folder), **options)


def batch_of(count=4, samples=8000):
    targets = torch.arange(count) % 2
    return {"samples": 0.1 * torch.randn(count, samples), "targets": targets, "seconds": 1.0, "clean": False}


def step(model, **options):
    """One step of a training; the loss before it."""
    torch.manual_seed(1)
    optimizer = make_optimizer(model, TrainConfig(max_steps=1, lr=1e-2))
    loss, _ = compute_loss(model.train(), batch_of(), **options)
    loss.backward()
    optimizer.step()
    return loss.item()


def test_files_of_before_there_was_a_choice(tmp_path, rng):
    """A file that knows neither of front ends and networks nor of levels and silence scores by the defaults."""
    save_model(tmp_path / "new", Detector(LcnnBlstm().eval(), DATA, Calibration()))
    content = load_checkpoint(tmp_path / "new" / "model.pt")
    later = {
        "features": ("front_end", "pretrained", "layer", "fine_tuned"),
        "network": ("kind",),
        "crop": ("level", "silence", "even_pages"),
    }
    for section, names in later.items():
        for name in names:
            del content[section][name]
    del content["front_end"]
    (tmp_path / "old").mkdir()
    save_checkpoint(tmp_path / "old" / "model.pt", content)
    old, new = load_model(tmp_path / "old"), load_model(tmp_path / "new")
    for size in (5000, 64000):
        samples = 0.1 * rng.standard_normal(size)
        assert score_samples(old, samples, 16000) == score_samples(new, samples, 16000)
    assert read_features(tmp_path / "old").front_end == "logmel"


@pytest.mark.parametrize("remove_mean", [False, True])
def test_log_mel_is_bit_for_bit_that_of_torchaudio(remove_mean):
    samples = 0.1 * torch.randn(2, 9000)
    mel = torchaudio.transforms.MelSpectrogram(16000, n_fft=1024, win_length=512, hop_length=256, n_mels=80)
    expected = (mel(samples) + 1e-6).log().transpose(1, 2)
    expected = expected - expected.mean(dim=1, keepdim=True) if remove_mean else expected
    assert torch.equal(make_front_end(LogMelConfig(remove_mean=remove_mean))(samples), expected)


def test_log_spectrum_is_the_formula(rng):
    config = LogMelConfig(front_end="linear")
    samples, window = rng.standard_normal(5000), np.zeros(1024)
    window[256:768] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
    padded = np.pad(samples, 512, mode="reflect")
    power = np.stack([np.abs(np.fft.rfft(window * padded[start : start + 1024])) ** 2 for start in range(0, 5001, 256)])
    front_end = make_front_end(config)
    found = front_end(torch.from_numpy(samples)[None])
    assert found.dtype == torch.float32 and found.shape == (1, front_end.num_frames(5000), front_end.num_features)
    assert np.allclose(found[0], np.log(power + 1e-6), atol=5e-3)
    model = LcnnBlstm(features=config)
    assert not [name for name in model.state_dict() if "front_end" in name or "shortcut" in name]


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("normalize", [False, True])
def test_self_supervised_is_the_encoders_layers(tmp_path, layer, normalize):
    folder = write_encoder(tmp_path / "encoder", normalize_waveform=normalize)
    front_end = make_front_end(with_encoder(folder, layer=layer))
    samples = 0.1 * torch.randn(2, 8000) + 0.05
    with torch.no_grad():
        front_end.mix.copy_(torch.randn(len(front_end.mix)))
        heard = torch.stack([(one - one.mean()) / one.std(unbiased=False) for one in samples]) if normalize else samples
        layers = small_encoder().extract_features(heard)[0]
        layers = [(one - one.mean(2, keepdim=True)) / one.std(2, unbiased=False, keepdim=True) for one in layers]
        shares = front_end.mix.exp() / front_end.mix.exp().sum()
        mixed = layers[1] if layer else sum(share * one for share, one in zip(shares, layers, strict=True))
        expected = mixed @ front_end.project.weight.T + front_end.project.bias
        for found in (front_end(samples), front_end.train()(samples)):
            assert torch.allclose(found, expected, atol=2e-3)
    assert found.shape == (2, front_end.num_frames(8000), front_end.num_features) == (2, 24, 80)
    assert (front_end.shift, front_end.sampling_rate, front_end.frozen) == (320, 16000, True)


@pytest.mark.parametrize("size", [8000, 8079, 8080, 64600])
def test_frames_of_pieces(encoder, size):
    for config in (LogMelConfig(), LogMelConfig(front_end="linear"), with_encoder(encoder)):
        front_end = make_front_end(config)
        assert front_end(torch.zeros(1, size)).shape[1] == front_end.num_frames(size)


@pytest.mark.parametrize("fine_tuned", [False, True])
def test_a_step_of_training_and_the_model_file(encoder, tmp_path, fine_tuned):
    torch.manual_seed(0)
    model = LcnnBlstm(DetectorConfig(), with_encoder(encoder, fine_tuned=fine_tuned))
    assert model.front_end.frozen != fine_tuned
    part = model.front_end.encoder if fine_tuned else model.front_end._frozen[0]
    before = {name: value.clone() for name, value in part.state_dict().items()}
    project = model.front_end.project.weight.clone()
    step(model, specaugment=SpecAugmentConfig())
    changed = [name for name, value in part.state_dict().items() if not torch.equal(value, before[name])]
    assert bool(changed) == fine_tuned and not torch.equal(model.front_end.project.weight, project)
    stored = [name for name in model.state_dict() if "encoder" in name]
    assert bool(stored) == fine_tuned and not [name for name in stored if "parametrizations" in name]

    saved = Detector(model.eval(), DATA, Calibration())
    save_model(tmp_path / "model", saved)
    if fine_tuned:  # all that it needs is in its file
        for path in encoder.iterdir():
            path.unlink()
    loaded = load_model(tmp_path / "model")
    samples = 0.1 * np.random.default_rng(0).standard_normal(20000)
    assert score_samples(loaded, samples, 16000) == score_samples(saved, samples, 16000)
    assert loaded.model.front_end.config == model.front_end.config


def test_gradients_of_a_fine_tuned_encoder_are_exact(encoder):
    """Those of 64-bit floats, whatever was in the memory that torch's GELU is given."""
    model, samples = make_front_end(with_encoder(encoder, fine_tuned=True)), 0.1 * torch.randn(2, 8000)
    gradients = []
    for values in (model.double(), model.float()):
        for _ in range(20 if values.project.weight.dtype == torch.float32 else 1):
            values.zero_grad()
            values.eval()(samples.to(values.project.weight.dtype)).square().sum().backward()
            gradients.append({name: value.grad.double().clone() for name, value in values.encoder.named_parameters()})
            assert torch.full((2, 16, 4000), 1e30).isfinite().all()  # what freed memory holds afterwards
    for found in gradients[1:]:
        for name, expected in gradients[0].items():
            assert (found[name] - expected).norm() <= 1e-3 * expected.norm() + 1e-6, name


@pytest.mark.parametrize("fine_tuned", [False, True])
def test_a_step_in_bf16(encoder, fine_tuned):
    model = LcnnBlstm(features=with_encoder(encoder, fine_tuned=fine_tuned))
    with autocast("cpu"):
        frames = model.front_end(torch.randn(2, 8000))
        frames.square().mean().backward()
    assert frames.dtype == torch.float32 and torch.isfinite(model.front_end.project.weight.grad).all()


def test_a_frozen_encoder_is_found_again_or_refused(encoder, tmp_path):
    save_model(tmp_path / "model", Detector(LcnnBlstm(features=with_encoder(encoder)), DATA, Calibration()))
    write_encoder(encoder, seed=1)
    with pytest.raises(UserError, match=r"^\S+/model.pt: features.pretrained=.*trained with \w{12}; restore those$"):
        load_model(tmp_path / "model")
    (encoder / "weights.pt").unlink()
    with pytest.raises(UserError, match=r"^\S+/model.pt: features.pretrained=.*weights.pt: no such.*or a folder with config"):
        load_model(tmp_path / "model")
    assert read_features(tmp_path / "model") == with_encoder(encoder)  # without its weights


def test_a_frozen_encoder_goes_where_the_detector_goes(encoder):
    model = LcnnBlstm(features=with_encoder(encoder)).double()
    assert {value.dtype for value in model.front_end._frozen[0].parameters()} == {torch.float64}
    assert not [parameter for parameter in model.front_end._frozen[0].parameters() if parameter.requires_grad]


@pytest.mark.parametrize("name", ["WAV2VEC2_BASE", "HUBERT_LARGE"])
def test_a_bundle_of_torchaudio(tmp_path, monkeypatch, name):
    """With small weights where torchaudio keeps what it has downloaded."""
    bundle = getattr(torchaudio.pipelines, name)
    monkeypatch.setattr(bundle, "_params", SMALL)
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    torch.save(small_encoder(3).state_dict(), tmp_path / "checkpoints" / bundle._path)
    of_bundle = make_front_end(LogMelConfig(front_end="self_supervised", pretrained=name))
    of_folder = make_front_end(with_encoder(write_encoder(tmp_path / "same", seed=3, normalize_waveform=BUNDLES[name])))
    assert of_bundle.saved() == of_folder.saved() and of_bundle.normalize == (name == "HUBERT_LARGE")
    of_bundle.load_state_dict(of_folder.state_dict())
    samples = torch.randn(1, 8000)
    assert torch.equal(of_bundle(samples), of_folder(samples))


def test_every_bundle_is_torchaudios():
    for name in BUNDLES:
        bundle = getattr(torchaudio.pipelines, name)
        assert bundle.sample_rate == FRONT_ENDS["self_supervised"].sampling_rate
        assert getattr(bundle, "_normalize_waveform", BUNDLES[name]) == BUNDLES[name]  # torchaudio 0.13 does not know


def test_without_a_network(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", refuse)
    with pytest.raises(
        UserError, match=rf"WAV2VEC2_BASE: cannot be .*copy wav2vec2\S+ to {tmp_path}/checkpoints from .*folder"
    ):
        make_front_end(LogMelConfig(front_end="self_supervised"))


def test_errors_name_the_option(encoder, tmp_path):
    for config, message in (
        (LogMelConfig(front_end="cqt"), "option front_end=cqt: expected one of logmel, linear, self_supervised"),
        (with_encoder(encoder, sampling_rate=8000), "sampling_rate=8000: expected 16000 with front_end=self_supervised"),
        (with_encoder(encoder, layer=-1), "layer=-1: expected 0 for all"),
        (with_encoder(encoder, layer=4), "layer=4: expected 0 to 3, the encoder's layers"),
        (
            with_encoder(tmp_path / "none"),
            "features.pretrained=.*none: .*expected WAV2VEC2_BASE, .* or a folder with config.json",
        ),
        (with_encoder(write_encoder(tmp_path / "other", encoder_embed_dim=32)), "other: weights.pt and config.json do not fit"),
        (with_encoder(write_encoder(tmp_path / "word", depth=3)), "word: weights.pt and config.json do not fit.*depth"),
    ):
        with pytest.raises(UserError, match=message):
            make_front_end(config)
    conf = types.SimpleNamespace(start_from="random", network=DetectorConfig(), features=with_encoder(encoder))
    conf.data = CropConfig(samples=4096, hop=4096)
    with pytest.raises(UserError, match="^data.samples=4096: 12 frames, one every 320 samples; expected at least 16"):
        first_model(conf)
    model = LcnnBlstm(features=LogMelConfig(front_end="linear")).eval()
    with pytest.raises(UserError, match="features.front_end=linear: expected a detector with logmel"):
        export_onnx(Detector(model, DATA, Calibration()), tmp_path / "model.onnx")


ENERGY = """
import torch
from pyspeech.spoof.front_ends import FrontEnd

class BandLevels(FrontEnd):
    num_features = 16

    def forward(self, samples):
        frames = torch.nn.functional.pad(samples, (0, self.shift)).unfold(1, self.shift, self.shift)
        power = torch.fft.rfft(frames[:, : self.num_frames(samples.shape[1])]).abs().square()
        return torch.stack([band.mean(2) for band in power[:, :, 1:].chunk(16, dim=2)], dim=2).add(1e-6).log()
"""


@pytest.mark.parametrize("front_end", ["linear", "self_supervised", "fine_tuned", "levels"])
def test_training_end_to_end(tmp_path, monkeypatch, encoder, front_end):
    """With each front end, and one that is a module and an entry: trained, calibrated, saved, scored, begun from."""
    (tmp_path / "band_levels.py").write_text(ENERGY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FRONT_ENDS, "levels", Entry("band_levels:BandLevels"))
    (tmp_path / "corpus").mkdir()
    for seed, name in enumerate(("train", "dev")):
        write_corpus(tmp_path / name, 12, seed, longest=0.8).to_file(tmp_path / "corpus" / f"{name}.jsonl.gz")
    features = {"fine_tuned": with_encoder(encoder, fine_tuned=True), "self_supervised": with_encoder(encoder)}
    conf = types.SimpleNamespace(
        features=features.get(front_end) or LogMelConfig(front_end=front_end),
        network=DetectorConfig(dropout=0.1, residual=True),
        data=DATA,
        augment=AugmentConfig(noise=0.0, music=0.0, reverberation=0.0),
        specaugment=SpecAugmentConfig(),
        train=TrainConfig(max_steps=4, log_every=1, lr=2e-3, minimize="loss"),
        start_from="random",
        leave_out=[],
    )
    exp = types.SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    train_detector(exp, conf, "rnm_sm_mc0.8", 3, {}, "first/3")
    detector, samples = load_model(tmp_path / "models/first/3"), 0.1 * np.random.default_rng(0).standard_normal(9000)
    assert isinstance(detector.model.front_end, FrontEnd) and detector.model.front_end.config == conf.features
    assert np.isfinite(score_samples(detector, samples, 16000))
    conf.start_from, conf.train = str(tmp_path / "models/first/3"), replace(conf.train, max_steps=1, lr=1e-9)
    check_start(conf)
    train_detector(exp, conf, "rnm_sm_mc0.8", 4, {}, "second/4")
    begun = dict(load_model(tmp_path / "models/second/4").model.named_parameters())
    for name, values in detector.model.named_parameters():
        torch.testing.assert_close(begun[name], values, rtol=0, atol=1e-6)
    conf.features = LogMelConfig()
    with pytest.raises(UserError, match=f"expected features.*front_end={detector.model.front_end.config.front_end}"):
        check_start(conf)
