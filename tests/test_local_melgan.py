"""The neural vocoder of the mini corpus of fakes: what goes into the network, and that it says what it hears."""

import numpy as np
import pytest
from scipy.signal import resample_poly

from local.synthesis import flite, melgan


@pytest.mark.parametrize("length", [1, 700, 1024, 1025, 24000])
def test_log_mel_is_that_of_torchaudio(length):
    import torch
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


def test_level_length_and_silence(monkeypatch):
    """What goes into the network is normalised; what comes out has the level and length of the recording."""
    seen = []

    def generate(mel, path):
        seen.append(mel)
        return np.random.default_rng(1).standard_normal(len(mel) * melgan.HOP).astype(np.float32)

    monkeypatch.setattr(melgan, "generate", generate)
    for length in (1, 333, 16001):
        samples = 0.01 * np.random.default_rng(0).standard_normal(length)
        made = melgan.copy_melgan(samples, "")
        assert made.shape == (length,) and made.std() == pytest.approx(samples.std(), rel=0.5 if length < 10 else 0.05)
    louder = melgan.copy_melgan(100 * samples, "")
    assert np.allclose(seen[-1], seen[-2], atol=1e-4) and np.allclose(louder, 100 * made)
    assert not melgan.copy_melgan(np.zeros(500), "").any() and melgan.copy_melgan(np.zeros(0), "").shape == (0,)


@pytest.mark.network
def test_network_says_what_it_hears():
    """What it makes of a recording is much nearer to that recording than to another text by the same voice."""
    path = melgan.generator()
    text = "A large duck, on the lake of the town."
    recordings = [samples / 32768.0 for samples, _ in flite.synthesize([("slt", text), ("slt", "It was a small house.")])]
    made = [melgan.copy_melgan(recording, path) for recording in recordings]
    for one, recording in zip(made, recordings):
        assert one.shape == recording.shape and np.array_equal(one, melgan.copy_melgan(recording, path))
        assert np.sqrt(np.mean((one - recording) ** 2)) > 0.5 * recording.std()  # phases are its own

    def distance(one, other):
        """Mean difference in dB of mel bands, those more than 40 dB below the loudest as if they were there."""
        size = min(len(one), len(other))
        found = [20 * melgan.log_mel(resample_poly(samples[:size], 3, 2)) for samples in (one, other)]
        return np.mean(np.abs(np.diff([np.maximum(mel, mel.max() - 40) for mel in found], axis=0)))

    for index in range(2):
        assert distance(made[index], recordings[index]) < 0.5 * distance(made[index], recordings[1 - index])
