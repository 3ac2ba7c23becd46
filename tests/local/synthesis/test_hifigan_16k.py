"""HiFi-GAN at 16 kHz: what goes into the network, and that it says what it hears."""

import numpy as np
import pytest
import torch

from local.synthesis import flite, hifigan_16k


@pytest.mark.parametrize("length", [1, 200, 640, 641, 16000])
def test_mel_is_that_of_torchaudio(length):
    """Of the samples with 240 more on either side, frames that begin where a hop does."""
    from torchaudio.transforms import MelSpectrogram

    samples = np.random.default_rng(0).standard_normal(length)
    found = hifigan_16k.log_mel(samples)
    frames = -(-length // hifigan_16k.HOP)
    assert found.shape == (80, frames)
    padded = np.pad(samples, (0, frames * hifigan_16k.HOP - length))
    padded = np.pad(padded, 240, mode="reflect" if len(padded) > 240 else "constant")
    transform = MelSpectrogram(
        16000, 640, 640, 160, 0.0, 8000.0, n_mels=80, power=1.0, center=False, norm="slaney", mel_scale="slaney"
    )
    expected = transform(torch.from_numpy(padded).float()).clamp(min=1e-5).log().numpy()
    assert np.abs(found - expected)[expected > -9].max() < 1e-3


def test_level_length_and_silence(monkeypatch):
    """What goes into the network is normalised; what comes out has the level and length of the recording."""
    seen = []

    def generate(mel, path):
        seen.append(mel)
        return np.random.default_rng(1).standard_normal(mel.shape[1] * hifigan_16k.HOP)

    monkeypatch.setattr(hifigan_16k, "generate", generate)
    for length in (1, 333, 16001):
        samples = 0.01 * np.random.default_rng(0).standard_normal(length)
        made = hifigan_16k.copy_hifigan_16k(samples, "")
        assert made.shape == (length,) and made.std() == pytest.approx(samples.std(), rel=0.5 if length < 10 else 0.05)
    louder = hifigan_16k.copy_hifigan_16k(100 * samples, "")
    assert np.allclose(seen[-1], seen[-2], atol=1e-4) and np.allclose(louder, 100 * made)
    hifigan_16k.copy_hifigan_16k(samples, "", pace=1.2)
    assert seen[-1].shape[1] == -(-16001 * 6 // 5 // 160)
    assert not hifigan_16k.copy_hifigan_16k(np.zeros(500), "").any()
    assert hifigan_16k.copy_hifigan_16k(np.zeros(0), "").shape == (0,)


@pytest.mark.network
def test_network_says_what_it_hears():
    """Mel bands of what it makes are those of the recording, frame by frame, at the same time and level; phases are not."""
    path = hifigan_16k.generator()
    ((samples, rate),) = flite.synthesize([("slt", "A large duck, on the lake of the town.")])
    recording = samples[:24000] / 32768.0
    assert rate == 16000
    made = hifigan_16k.copy_hifigan_16k(recording, path)
    assert made.shape == recording.shape and np.array_equal(made, hifigan_16k.copy_hifigan_16k(recording, path))
    assert np.sqrt(np.mean((made - recording) ** 2)) > 0.5 * recording.std()
    one, other = (np.maximum(mel, mel.max() - 6) for mel in map(hifigan_16k.log_mel, (made, recording)))
    alike = [np.corrcoef(np.roll(one, shift, axis=1).ravel(), other.ravel())[0, 1] for shift in range(-3, 4)]
    assert np.argmax(alike) == 3 and alike[3] > 0.93
    unscaled = hifigan_16k.generate(hifigan_16k.log_mel(recording * 0.1 / recording.std()), str(path))
    assert unscaled.std() == pytest.approx(0.1, rel=0.25)
