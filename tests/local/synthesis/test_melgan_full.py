"""MelGAN: what goes into the network, its layers, how its weights are read, and that it says what it hears."""

import numpy as np
import pytest
import torch

from local.synthesis import flite, melgan_full


@pytest.mark.parametrize("length", [1, 300, 512, 513, 22050])
def test_mel_is_that_of_torchaudio(length):
    from torchaudio.transforms import MelSpectrogram

    samples = np.random.default_rng(0).standard_normal(length)
    found = melgan_full.log_mel(samples)
    assert found.shape == (80, 1 + length // 256)
    mode = "reflect" if length > 512 else "constant"
    transform = MelSpectrogram(
        22050, 1024, 1024, 256, 0.0, 8000.0, n_mels=80, power=1.0, pad_mode=mode, norm="slaney", mel_scale="slaney"
    )
    expected = transform(torch.from_numpy(samples).float()).clamp(min=1e-5).log().numpy()
    assert np.abs(found - expected)[expected > -9].max() < 1e-3


def convolution(*sizes, dilation=1):
    """With the weight norm that the file keeps its weights in."""
    return torch.nn.utils.weight_norm(torch.nn.Conv1d(*sizes, dilation=dilation))


class Stack(torch.nn.Module):
    """Residual convolutions that reach 1, 3 and 9 samples to either side, named as in the weights' file."""

    def __init__(self, channels):
        super().__init__()
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.LeakyReLU(0.2),
                torch.nn.ReflectionPad1d(reach),
                convolution(channels, channels, 3, dilation=reach),
                torch.nn.LeakyReLU(0.2),
                convolution(channels, channels, 1),
            )
            for reach in (1, 3, 9)
        )
        self.shortcuts = torch.nn.ModuleList(convolution(channels, channels, 1) for _ in range(3))

    def forward(self, hidden):
        for block, shortcut in zip(self.blocks, self.shortcuts, strict=True):
            hidden = shortcut(hidden) + block(hidden)
        return hidden


class Generator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.ReflectionPad1d(3), convolution(80, 512, 7)]
        for channels, factor in ((512, 8), (256, 8), (128, 2), (64, 2)):
            upsampling = torch.nn.ConvTranspose1d(channels, channels // 2, 2 * factor, factor, padding=factor // 2)
            layers += [torch.nn.LeakyReLU(0.2), torch.nn.utils.weight_norm(upsampling), Stack(channels // 2)]
        layers += [torch.nn.LeakyReLU(0.2), torch.nn.ReflectionPad1d(3), convolution(32, 1, 7), torch.nn.Tanh()]
        self.generator = torch.nn.Sequential(*layers)


def test_melgan_is_that_of_the_paper(tmp_path):
    """512 channels, halved at each upsampling by 8, 8, 2 and 2, with random weights; 10 silent frames follow the speech."""
    torch.manual_seed(0)
    network = Generator()
    torch.save(network, tmp_path / "generator.pt")
    stored = melgan_full.read_tensors(tmp_path / "generator.pt")
    expected = network.state_dict()
    assert stored.keys() == expected.keys() and all(torch.equal(stored[name], expected[name]) for name in stored)
    mel = 3 * torch.randn(1, 80, 12) - 5
    with torch.no_grad():
        silence = torch.full((1, 80, 10), float(np.log(1e-5)))
        speech = network.generator((torch.cat([mel, silence], dim=2) + 5) / 5)[0, 0, : 12 * 256]
    found = melgan_full.generate(mel[0].numpy(), str(tmp_path / "generator.pt"))
    assert found.shape == (12 * 256,) and np.allclose(found, speech.numpy(), atol=2e-6) and found.std() > 1e-3


def test_no_code_that_a_file_names_is_run(tmp_path):
    class Command:
        def __reduce__(self):
            return exec, (f"open({str(tmp_path / 'it ran')!r}, 'w')",)

    network = torch.nn.Conv1d(2, 3, 1)
    network.__dict__["extra"] = Command()
    torch.save(network, tmp_path / "generator.pt")
    assert set(melgan_full.read_tensors(tmp_path / "generator.pt")) == {"weight", "bias"}
    assert not (tmp_path / "it ran").exists()


def test_level_length_and_silence(monkeypatch):
    """What goes into the network is normalised; what comes out has the level and length of the recording."""
    seen = []

    def generate(mel, path):
        seen.append(mel)
        return np.random.default_rng(1).standard_normal(mel.shape[1] * melgan_full.HOP)

    monkeypatch.setattr(melgan_full, "generate", generate)
    for length in (1, 333, 16001):
        samples = 0.01 * np.random.default_rng(0).standard_normal(length)
        made = melgan_full.copy_melgan_full(samples, "")
        assert made.shape == (length,) and made.std() == pytest.approx(samples.std(), rel=0.5 if length < 10 else 0.05)
    louder = melgan_full.copy_melgan_full(100 * samples, "")
    assert np.allclose(seen[-1], seen[-2], atol=1e-4) and np.allclose(louder, 100 * made)
    assert not melgan_full.copy_melgan_full(np.zeros(500), "").any()
    assert melgan_full.copy_melgan_full(np.zeros(0), "").shape == (0,)


@pytest.mark.network
def test_network_says_what_it_hears():
    """Mel bands of what it makes are those of the recording, frame by frame and at the same time; phases are not."""
    path = melgan_full.generator()
    ((samples, _),) = flite.synthesize([("slt", "A large duck, on the lake of the town.")])
    recording = samples[:24000] / 32768.0
    made = melgan_full.copy_melgan_full(recording, path)
    assert made.shape == recording.shape and np.array_equal(made, melgan_full.copy_melgan_full(recording, path))
    assert np.sqrt(np.mean((made - recording) ** 2)) > 0.5 * recording.std()
    one, other = (np.maximum(mel, mel.max() - 6) for mel in map(melgan_full.log_mel, (made, recording)))
    alike = [np.corrcoef(np.roll(one, shift, axis=1).ravel(), other.ravel())[0, 1] for shift in range(-3, 4)]
    assert np.argmax(alike) == 3 and alike[3] > 0.85
