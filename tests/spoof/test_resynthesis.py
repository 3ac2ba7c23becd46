"""Made-up vocoders: what they keep of a recording and what they do not, and where training takes them."""

import numpy as np
import pytest
import torch
from tiny_spoof import write_corpus

from pyspeech.data.reader import UtteranceReader
from pyspeech.errors import UserError
from pyspeech.spoof import resynthesis
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.dataset import CropDataset, UtteranceSampler
from pyspeech.spoof.formats import label_of
from pyspeech.spoof.resynthesis import resynthesize

RATE = 16000


def speech(seconds=1.0, seed=0):
    """Harmonics of a moving pitch that come and go, and noise: (N,) float32."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(3 * time)) / RATE
    voice = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 50))
    return (0.05 * voice * np.sin(4 * time) ** 2 + 0.003 * rng.standard_normal(len(time))).astype(np.float32)


def levels(samples):
    spectrum = torch.stft(
        torch.from_numpy(np.asarray(samples, np.float32)), 512, 256, window=torch.hann_window(512), return_complex=True
    )
    return (spectrum.abs() + 1e-3).log().numpy()


@pytest.mark.parametrize("rate", [8000, 16000])
def test_it_says_the_same_in_another_way(rate):
    samples = speech()
    found = [resynthesize(samples, rate, np.random.default_rng(seed)) for seed in range(40)]
    for seed, made in enumerate(found):
        assert made.dtype == np.float32 and made.shape == samples.shape and np.isfinite(made).all()
        assert np.sqrt(np.mean(made**2)) == pytest.approx(np.sqrt(np.mean(samples**2)), rel=1e-3)
        assert np.corrcoef(levels(made).ravel(), levels(samples).ravel())[0, 1] > 0.5, seed
        assert np.abs(made - samples).max() > 0.01 * np.abs(samples).max(), seed
    assert np.array_equal(found[3], resynthesize(samples, rate, np.random.default_rng(3)))
    distances = [np.abs(one - two).mean() for one, two in zip(found, found[1:], strict=False)]
    assert min(distances) > 0  # no two alike


@pytest.mark.parametrize(
    "samples", [np.zeros(5000), np.zeros(3), speech(0.01), speech(0.3)], ids=["silence", "3", "10 ms", "short"]
)
def test_edges(samples):
    for seed in range(8):
        made = resynthesize(samples, RATE, np.random.default_rng(seed))
        assert made.shape == samples.shape and np.isfinite(made).all()
        assert made.any() == samples.any()


def test_bands_and_back_against_numpy():
    magnitudes = torch.rand(513, 7) + 0.1
    from torchaudio.functional import melscale_fbanks

    filters = melscale_fbanks(513, 0.0, 8000.0, 40, RATE, norm="slaney", mel_scale="slaney").T.double().numpy()
    expected = np.linalg.pinv(filters) @ (filters @ magnitudes.double().numpy())
    found = resynthesis._through_bands(magnitudes, 40, 1024, RATE).numpy()
    assert np.allclose(found, np.maximum(expected, resynthesis.LEAST), atol=2e-4)


def test_training_takes_copies_of_the_genuine_utterance(tmp_path):
    cuts = write_corpus(tmp_path, 8, 1, longest=0.6)
    data = CropConfig(samples=4096, hop=4096, batch_size=4, balanced=True, resynthesized=1.0)
    (batch, *_) = UtteranceSampler(cuts, data, 1)
    batch = list(batch)
    assert [label_of(cut).genuine for cut in batch] == [True, False, True, False]
    np.random.seed(5)
    made = CropDataset(data, RATE)[batch]
    np.random.seed(5)
    usual = CropDataset(CropConfig(samples=4096, hop=4096, batch_size=4, balanced=True), RATE)[batch]
    read = UtteranceReader(RATE)
    assert torch.equal(made["targets"], usual["targets"]) and torch.equal(made["samples"][0], usual["samples"][0])
    for genuine, fake, cut in zip(made["samples"][::2], made["samples"][1::2], batch[::2], strict=True):
        whole = read(cut)
        start = next(at for at in range(len(whole)) if np.array_equal(whole[at : at + 50], genuine[:50].numpy()))
        assert start + 4096 <= len(whole) and not torch.equal(genuine, fake)
        assert np.corrcoef(levels(genuine).ravel(), levels(fake).ravel())[0, 1] > 0.6


def test_a_share_of_the_fakes_and_their_room(tmp_path):
    """About half of them are copies; these are augmented as what they are copies of."""
    cuts = write_corpus(tmp_path, 40, 1, longest=0.6)
    heard = []

    def augment(samples, rng):
        heard.append((samples, rng.random()))
        return samples

    data = CropConfig(samples=4096, hop=4096, batch_size=40, balanced=True, resynthesized=0.5)
    (batch, *_) = UtteranceSampler(cuts, data, 1)
    read, whole = UtteranceReader(RATE), {cut.id: cut for cut in batch}
    np.random.seed(2)
    CropDataset(data, RATE, augment)[batch]
    copied = []
    for (_, room), (fake, other_room), cut in zip(heard[::2], heard[1::2], list(batch)[1::2], strict=True):
        own = read(whole[cut.id])
        mine = any(np.array_equal(own[at : at + 30], fake[:30]) for at in range(len(own) - 29))
        copied.append(not mine)
        assert mine or room == other_room
    assert 0.25 < np.mean(copied) < 0.75


def test_options_that_make_no_sense():
    with pytest.raises(UserError, match="resynthesized"):
        CropConfig(resynthesized=1.5, balanced=True).check()
    with pytest.raises(UserError, match="balanced"):
        CropConfig(resynthesized=0.1).check()
