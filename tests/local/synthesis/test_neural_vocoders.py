"""The neural vocoders of the mini corpus of fakes: what goes into the networks, and that they say what they hear."""

import numpy as np
import pytest
import torch
from scipy.signal import resample_poly

from local.synthesis import flite, hifigan, melgan


@pytest.mark.parametrize("length", [1, 700, 1024, 1025, 24000])
def test_mel_of_melgan_is_that_of_torchaudio(length):
    from torchaudio.transforms import MelSpectrogram

    samples = np.random.default_rng(0).standard_normal(length)
    found = melgan.log_mel(samples)
    assert found.shape == (1 + length // melgan.HOP, 80)
    mode = "reflect" if length > 1024 else "constant"
    transform = MelSpectrogram(
        melgan.RATE, 2048, 1200, 300, 80.0, 7600.0, n_mels=80, power=1.0, pad_mode=mode, norm="slaney", mel_scale="slaney"
    )
    expected = torch.log10(transform(torch.from_numpy(samples).float()).clamp(min=1e-10)).numpy().T
    assert np.abs(found - expected)[expected > -6].max() < 1e-3


@pytest.mark.parametrize("length", [1, 300, 1024, 1025, 22050])
def test_mel_of_hifigan_is_that_of_torchaudio(length):
    """Of the samples with 384 more on either side, frames that begin where a hop does."""
    from torchaudio.transforms import MelSpectrogram

    samples = np.random.default_rng(0).standard_normal(length)
    found = hifigan.log_mel(samples)
    frames = -(-length // hifigan.HOP)
    assert found.shape == (80, frames)
    padded = np.pad(samples, (0, frames * hifigan.HOP - length))
    padded = np.pad(padded, 384, mode="reflect" if len(padded) > 384 else "constant")
    transform = MelSpectrogram(
        22050, 1024, 1024, 256, 0.0, 8000.0, n_mels=80, power=1.0, center=False, norm="slaney", mel_scale="slaney"
    )
    expected = transform(torch.from_numpy(padded).float()).clamp(min=1e-5).log().numpy()
    assert np.abs(found - expected)[expected > -9].max() < 1e-3


def block(channels, kernel):
    """Residual convolutions as torch's own modules, named as in the weights' file."""

    def convolution(dilation):
        return normed(torch.nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2))

    module = torch.nn.Module()
    module.convs1 = torch.nn.ModuleList(convolution(dilation) for dilation in (1, 3, 5))
    module.convs2 = torch.nn.ModuleList(convolution(1) for _ in range(3))
    return module


def normed(module):
    """With the weight norm that the file keeps its weights in."""
    return torch.nn.utils.weight_norm(module)


def test_hifigan_is_that_of_the_paper(tmp_path):
    """V1 of Kong et al. 2020: 512 channels, halved at each upsampling by 8, 8, 2 and 2, with random weights."""
    torch.manual_seed(0)
    network = torch.nn.Module()
    network.conv_pre = normed(torch.nn.Conv1d(80, 512, 7, padding=3))
    sizes = [512, 256, 128, 64, 32]
    network.ups = torch.nn.ModuleList(
        normed(torch.nn.ConvTranspose1d(before, after, 2 * factor, factor, padding=factor // 2))
        for before, after, factor in zip(sizes, sizes[1:], (8, 8, 2, 2), strict=False)
    )
    network.resblocks = torch.nn.ModuleList(block(size, kernel) for size in sizes[1:] for kernel in (3, 7, 11))
    network.conv_post = normed(torch.nn.Conv1d(32, 1, 7, padding=3))
    torch.save({"generator": network.state_dict()}, tmp_path / "generator.pth.tar")
    mel = torch.randn(1, 80, 5)
    with torch.no_grad():
        hidden = network.conv_pre(mel)
        for stage, upsample in enumerate(network.ups):
            hidden = upsample(torch.nn.functional.leaky_relu(hidden, 0.1))
            total = torch.zeros_like(hidden)
            for one in network.resblocks[3 * stage : 3 * stage + 3]:
                outputs = hidden
                for first, second in zip(one.convs1, one.convs2, strict=True):
                    inner = first(torch.nn.functional.leaky_relu(outputs, 0.1))
                    outputs = outputs + second(torch.nn.functional.leaky_relu(inner, 0.1))
                total += outputs
            hidden = total / 3
        expected = torch.tanh(network.conv_post(torch.nn.functional.leaky_relu(hidden)))
    found = hifigan.generate(mel[0].numpy(), str(tmp_path / "generator.pth.tar"))
    assert found.shape == (5 * 256,) and np.allclose(found, expected[0, 0].numpy(), atol=2e-6)
    assert found.std() > 1e-3


COPIES = {"melgan": (melgan, melgan.copy_melgan, 0), "hifigan": (hifigan, hifigan.copy_hifigan, 1)}  # and the axis of frames


@pytest.mark.parametrize("name", COPIES)
def test_level_length_and_silence(name, monkeypatch):
    """What goes into the network is normalised; what comes out has the level and length of the recording."""
    module, copy, axis = COPIES[name]
    seen = []

    def generate(mel, path):
        seen.append(mel)
        return np.random.default_rng(1).standard_normal(mel.shape[axis] * module.HOP).astype(np.float32)

    monkeypatch.setattr(module, "generate", generate)
    for length in (1, 333, 16001):
        samples = 0.01 * np.random.default_rng(0).standard_normal(length)
        made = copy(samples, "")
        assert made.shape == (length,) and made.std() == pytest.approx(samples.std(), rel=0.5 if length < 10 else 0.05)
    louder = copy(100 * samples, "")
    assert np.allclose(seen[-1], seen[-2], atol=1e-4) and np.allclose(louder, 100 * made)
    assert not copy(np.zeros(500), "").any() and copy(np.zeros(0), "").shape == (0,)


@pytest.mark.network
@pytest.mark.parametrize("name", ["melgan", "universal", "LJSpeech"])
def test_network_says_what_it_hears(name):
    """What it makes of a recording is much nearer to that recording than to another text by the same voice."""
    path = melgan.generator() if name == "melgan" else hifigan.generators()[name]
    copy = melgan.copy_melgan if name == "melgan" else hifigan.copy_hifigan
    text = "A large duck."
    recordings = [samples / 32768.0 for samples, _ in flite.synthesize([("slt", text), ("slt", "It was small.")])]
    made = [copy(recording, path) for recording in recordings]
    for one, recording in zip(made, recordings, strict=True):
        assert one.shape == recording.shape and np.array_equal(one, copy(recording, path))
        assert np.sqrt(np.mean((one - recording) ** 2)) > 0.5 * recording.std()  # phases are its own

    def distance(one, other):
        """Mean difference in dB of mel bands, those more than 40 dB below the loudest as if they were there."""
        size = min(len(one), len(other))
        found = [20 * melgan.log_mel(resample_poly(samples[:size], 3, 2)) for samples in (one, other)]
        return np.mean(np.abs(np.diff([np.maximum(mel, mel.max() - 40) for mel in found], axis=0)))

    for index in range(2):
        assert distance(made[index], recordings[index]) < 0.5 * distance(made[index], recordings[1 - index])
