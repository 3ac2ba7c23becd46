"""Batches of utterances for transducers: the features and texts in them, exact resume, stored frames or computed ones."""

import numpy as np
import pytest
import soundfile
import torch
from asr_corpora import make_cut

from pyspeech.asr.batching import LanguageSampler
from pyspeech.asr.dataset import UtteranceDataset, compute_frames
from pyspeech.audio.io import read_audio
from pyspeech.data.cuts import read_samples
from pyspeech.data.utterances import Utterances
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig, SpecAugmentConfig
from pyspeech.features.fbank import GlobalStats, fbank, stack
from pyspeech.features.frame_store import FrameStore, Rows, write_stores
from pyspeech.features.warping import warp_log_mel
from pyspeech.text.normalize import normalize
from pyspeech.text.units import GraphemeUnits
from pyspeech.training.data import BatchLoader

CONFIG = FbankConfig()
TEXTS = {"en-IN": ["Hello, world!", "one TWO", ""], "hi-IN": ["नमस्ते।", "एक दो तीन"]}
UNITS = {language: GraphemeUnits.build([normalize(text, language) for text in texts]) for language, texts in TEXTS.items()}


def stats_of(cuts):
    return GlobalStats.compute(compute_frames(cut, CONFIG) for cut in cuts)


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    """Ten short files of two languages, at several sampling rates."""
    from lhotse import Recording

    folder, rng, cuts = tmp_path_factory.mktemp("audio"), np.random.RandomState(1), []
    for language, texts in TEXTS.items():
        for index in range(5):
            rate, name = (16000, 8000, 22050)[index % 3], f"{language}-{index}"
            samples = 0.1 * rng.randn(round(rate * (0.3 + 0.17 * index)))
            soundfile.write(folder / f"{name}.wav", samples, rate)
            recording = Recording.from_file(folder / f"{name}.wav")
            cuts.append(make_cut(name, recording, language, texts[index % len(texts)]))
    return cuts


def test_a_batch_equals_the_utterances_one_by_one(cuts):
    stats = stats_of(cuts)
    dataset = UtteranceDataset(Utterances.of(cuts), UNITS, CONFIG, stats)
    batch = dataset[range(len(cuts))]
    assert dataset.names([3, 0]) == [cuts[3].id, cuts[0].id]
    assert {name: (value.dtype, value.dim()) for name, value in batch.items()} == {
        "features": (torch.float32, 3),
        "lengths": (torch.int64, 1),
        "tokens": (torch.int64, 2),
        "token_lengths": (torch.int64, 1),
        "languages": (torch.int64, 1),
    }
    assert batch["languages"].tolist() == [0] * 5 + [1] * 5 and dataset.languages == ["en-IN", "hi-IN"]
    for row, cut in enumerate(cuts):
        samples, _ = read_audio(cut.recording.sources[0].source, 16000)
        features = stack(stats.apply(fbank(samples, CONFIG).half().float()), CONFIG)
        length = batch["lengths"][row]
        assert length == len(features) and torch.equal(batch["features"][row, :length], features)
        assert (batch["features"][row, length:] == 0).all()
        count = batch["token_lengths"][row]
        assert (batch["tokens"][row, count:] == 0).all()
        units = UNITS[cut.supervisions[0].language]
        assert (
            units.decode(batch["tokens"][row, :count].tolist())
            == {"Hello, world!": "hello world", "one TWO": "one two", "": "", "नमस्ते।": "नमस्ते", "एक दो तीन": "एक दो तीन"}[
                cut.supervisions[0].text
            ]
        )
    assert batch["token_lengths"].tolist()[2] == 0  # the utterance without words
    assert batch["features"].shape[1] == batch["lengths"].max() and batch["tokens"].shape[1] == len("helloworld")


def test_stats_normalise_the_training_set(cuts):
    stats = stats_of(cuts)
    frames = torch.cat([stats.apply(compute_frames(cut, CONFIG)) for cut in cuts])
    assert frames.mean(dim=0).abs().max() < 1e-4 and (frames.std(dim=0, unbiased=False) - 1).abs().max() < 1e-3


@pytest.fixture(scope="module")
def store(cuts, tmp_path_factory):
    """The frames of every other cut, stored."""
    folder, rows = tmp_path_factory.mktemp("frames"), np.arange(len(cuts))
    half = Rows(folder, lambda row: compute_frames(cuts[row], CONFIG), rows % 2 == 0, rows < 0)
    write_stores({"half": half}, CONFIG.num_bins, 2)
    return FrameStore(folder)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("stored", [True, False])
def test_resumed_equals_the_rest_of_the_epoch(cuts, num_workers, stored, store):
    """However many frames are stored."""
    stats, utterances = stats_of(cuts), Utterances.of(cuts)

    def loader(num_workers, stored):
        sampler = LanguageSampler(utterances, list(TEXTS), batch_seconds=1.5, max_utterances=2, seed=4)
        dataset = UtteranceDataset(utterances, UNITS, CONFIG, stats, SpecAugmentConfig(), store if stored else None)
        return BatchLoader(dataset, sampler, seed=3, num_workers=num_workers)

    whole = loader(0, True)
    epochs = [list(whole(epoch)) for epoch in (0, 1)]
    assert len(epochs[0]) > 5
    other = loader(num_workers, stored)
    for epoch, consumed in ((1, 2), (0, 0), (0, 4)):
        resumed = list(other(epoch, consumed))
        assert [names for names, _ in resumed] == [names for names, _ in epochs[epoch][consumed:]]
        for (_, ours), (_, expected) in zip(resumed, epochs[epoch][consumed:], strict=False):
            assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_stored_frames_are_not_computed_again(cuts, store, monkeypatch):
    asked = []
    read = "pyspeech.data.reader.read_samples"
    monkeypatch.setattr(read, lambda cut, rate: (asked.append(cut.id), read_samples(cut, rate))[1])
    UtteranceDataset(Utterances.of(cuts), UNITS, CONFIG, stats_of(cuts), stored=store)[range(len(cuts))]
    assert asked == [cut.id for cut in cuts[1::2]]


def test_frames_of_another_corpus(cuts, store):
    with pytest.raises(UserError, match="frames of 10 utterances, expected 9"):
        UtteranceDataset(Utterances.of(cuts[1:]), UNITS, CONFIG, stats_of(cuts), stored=store)


def test_specaugment_masks_anew_each_time(cuts):
    stats, utterances, rows = stats_of(cuts), Utterances.of(cuts), range(len(cuts))
    plain = UtteranceDataset(utterances, UNITS, CONFIG, stats)[rows]["features"]
    dataset = UtteranceDataset(utterances, UNITS, CONFIG, stats, SpecAugmentConfig())
    np.random.seed(1)
    first, second = dataset[rows]["features"], dataset[rows]["features"]
    assert not torch.equal(first, second)
    assert torch.equal(first[first != 0], plain[first != 0])
    with pytest.raises(UserError, match="specaugment"):
        UtteranceDataset(utterances, UNITS, CONFIG, stats, SpecAugmentConfig(time_width=-1))


def test_pieces_and_channels_of_files(tmp_path, rng):
    from lhotse import MonoCut, Recording

    audio = rng.uniform(-0.5, 0.5, (16000, 2)).astype(np.float32)
    soundfile.write(tmp_path / "two.wav", audio, 16000, subtype="FLOAT")
    recording = Recording.from_file(tmp_path / "two.wav")
    piece = MonoCut("piece", start=0.25, duration=0.5, channel=1, recording=recording)
    assert np.array_equal(read_samples(piece, 16000), audio[4000:12000, 1])
    assert np.abs(read_samples(piece.pad(1.0), 16000)[:8000] - audio[4000:12000, 1]).max() < 1e-6  # a mix: by lhotse


@pytest.mark.parametrize("seconds", [1 / 8000, 0.01, 0.03])
def test_very_short_files_give_one_frame(tmp_path, seconds):
    from lhotse import Recording

    soundfile.write(tmp_path / "short.wav", np.full(round(8000 * seconds), 0.1), 8000)
    cut = make_cut("short", Recording.from_file(tmp_path / "short.wav"), "en-IN", "one")
    batch = UtteranceDataset(Utterances.of([cut]), UNITS, CONFIG, GlobalStats([0.0] * 80, [1.0] * 80))[[0]]
    assert batch["lengths"].tolist() == [1] and batch["features"].isfinite().all()


def test_errors_name_the_file_or_cut(tmp_path, cuts):
    from lhotse import Recording

    path = tmp_path / "gone.wav"
    soundfile.write(path, np.zeros(800), 8000)
    cut = make_cut("gone", Recording.from_file(path), "en-IN", "one")
    utterances = Utterances.of([cut, make_cut("strange", cuts[0].recording, "xx", "one")], speeds=[0.9])
    dataset = UtteranceDataset(utterances, UNITS, CONFIG, GlobalStats([0.0] * 80, [1.0] * 80))
    for damage in (path.unlink, path.touch, lambda: path.write_bytes(b"not audio at all")):
        damage()
        for broken in (0, 2):
            with pytest.raises(UserError, match="gone.wav"):
                dataset[[broken]]
    loader = BatchLoader(dataset, [[0]], seed=1, num_workers=1)
    with pytest.raises(UserError, match="gone.wav"):
        next(loader(0))
    with pytest.raises(UserError, match="strange: language 'xx'; expected one of en-IN, hi-IN"):
        dataset[[1]]


def test_utterances_in_the_voices_of_other_vocal_tracts(cuts):
    """A factor of its own for each, from 1 / warp to warp, of its log-mel frames before all else; none for validation."""
    stats, utterances, rows = stats_of(cuts), Utterances.of(cuts), range(len(cuts))
    dataset = UtteranceDataset(utterances, UNITS, CONFIG, stats, warp=1.4)
    plain = UtteranceDataset(utterances, UNITS, CONFIG, stats)
    np.random.seed(3)
    batch, again = dataset[rows]["features"], dataset[rows]["features"]
    assert not torch.equal(batch, again)
    np.random.seed(3)
    for row, cut in zip(batch, cuts, strict=True):
        factor = 1.4 ** np.random.uniform(-1, 1)
        warped = warp_log_mel(compute_frames(cut, CONFIG).half().float(), factor, CONFIG)
        expected = stack(stats.apply(warped), CONFIG)
        assert torch.allclose(row[: len(expected)], expected, atol=1e-4)
    before = np.random.get_state()[1].tolist()
    assert torch.equal(plain[rows]["features"], plain[rows]["features"]) and np.random.get_state()[1].tolist() == before
