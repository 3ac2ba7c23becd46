"""Minibatches of utterances: one language each and drawn by hours, exact resume, the features and texts in them."""

import itertools
from collections import Counter

import numpy as np
import pytest
import soundfile
import torch

from pyspeech.audio.io import read_audio
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig, SpecAugmentConfig
from pyspeech.features.fbank import GlobalStats, fbank, stack
from pyspeech.features.frame_store import FrameStore, write_store
from pyspeech.features.warping import warp_log_mel
from pyspeech.text.normalize import normalize
from pyspeech.text.units import GraphemeUnits
from pyspeech.training.data import BatchLoader
from pyspeech.transducer import dataset as module
from pyspeech.transducer.dataset import (
    FrameReader,
    UtteranceDataset,
    compute_frames,
    draw_languages,
    language_sampler,
    perturb_speed,
    read_samples,
    split_batches,
)

CONFIG = FbankConfig()
TEXTS = {"en-IN": ["Hello, world!", "one TWO", ""], "hi-IN": ["नमस्ते।", "एक दो तीन"]}
UNITS = {language: GraphemeUnits.build([normalize(text, language) for text in texts]) for language, texts in TEXTS.items()}


def make_cut(name, recording, language, text, start=0.0, duration=None):
    from lhotse import MonoCut, SupervisionSegment

    duration = recording.duration if duration is None else duration
    supervision = SupervisionSegment(name, recording.id, 0, duration, text=text, language=language, speaker="s")
    return MonoCut(name, start, duration, 0, supervisions=[supervision], recording=recording)


def stats_of(cuts):
    return GlobalStats.compute(frames for _, frames in compute_frames(cuts, CONFIG))


def fake_cuts(language, count, seed, shortest=1.0, longest=9.0):
    """Cuts without audio: what a sampler sees."""
    from lhotse import Recording

    cuts = []
    for index, duration in enumerate(np.random.RandomState(seed).uniform(shortest, longest, count).round(2)):
        name = f"{language}-{index:03d}"
        recording = Recording(name, [], 16000, round(duration * 16000), float(duration))
        cuts.append(make_cut(name, recording, language, "a"))
    return cuts


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


LANGUAGES = {"en-IN": 60, "hi-IN": 30, "ta-IN": 10}


def unequal_cuts():
    return [cut for seed, (language, count) in enumerate(LANGUAGES.items()) for cut in fake_cuts(language, count, seed)]


def language_of(batch):
    (language,) = {cut.supervisions[0].language for cut in batch}
    return language


def ids(batches):
    return [[cut.id for cut in batch] for batch in batches]


def test_an_epoch_has_every_utterance_once_in_batches_of_one_language():
    cuts = unequal_cuts()
    sampler = language_sampler(cuts, list(LANGUAGES), batch_seconds=40, max_utterances=8, seed=1)
    batches = list(sampler)
    assert sorted(sum(ids(batches), [])) == sorted(cut.id for cut in cuts)
    for batch in batches:
        language_of(batch)
        assert len(batch) <= 8 and max(cut.duration for cut in batch) * len(batch) <= 40
    # languages are mixed over the epoch, not one after the other
    assert sum(language_of(a) != language_of(b) for a, b in zip(batches, batches[1:])) > 3


def test_pooled_minibatches_mix_languages_by_duration():
    cuts = unequal_cuts()
    batches = list(language_sampler([*cuts, *fake_cuts("mr-IN", 9, 7)], list(LANGUAGES), 40, 8, seed=1, pooled=True))
    assert sorted(sum(ids(batches), [])) == sorted(cut.id for cut in cuts)
    mixed = 0
    for batch in batches:
        durations = [cut.duration for cut in batch]
        assert len(batch) <= 8 and max(durations) * len(batch) <= 40
        assert max(durations) - min(durations) < 3  # of 1 to 9 s
        mixed += len({language_of([cut]) for cut in batch}) > 1
    assert mixed > len(batches) / 2


def test_minibatches_together():
    cuts = unequal_cuts()
    sampler = language_sampler(cuts, list(LANGUAGES), 40, 4, seed=1, together=6)
    steps = list(sampler)
    assert sorted(sum(ids(steps), [])) == sorted(cut.id for cut in cuts)
    hours = {language: sum(cut.duration for cut in cuts) for language, cuts in sampler.cuts.items()}
    for step in steps[: len(steps) // 2]:  # as long as no language runs out
        minibatches = Counter(language for language, _ in itertools.groupby(language_of([cut]) for cut in step))
        assert set(minibatches) >= {"en-IN", "hi-IN"}
        utterances = Counter(language_of([cut]) for cut in step)
        for language, seconds in hours.items():
            share = 6 * seconds / sum(hours.values())
            assert (np.floor(share) - 1) * 4 < utterances[language] <= np.ceil(share) * 4


def test_minibatches_together_are_of_similar_durations():
    cuts = [cut for seed, language in enumerate(LANGUAGES) for cut in fake_cuts(language, 200, seed)]
    alone = language_sampler(cuts, list(LANGUAGES), 40, 8, seed=1)
    together = language_sampler(cuts, list(LANGUAGES), 40, 8, seed=1, together=3)

    def padded(batches):
        return sum(max(cut.duration for cut in batch) * len(batch) for batch in batches)

    at_random = ids(alone)
    by_id = {cut.id: cut for cut in cuts}
    at_random = [[by_id[name] for name in sum(at_random[first : first + 3], [])] for first in range(0, len(at_random), 3)]
    assert padded(together) < 1.25 * padded(alone) and padded(at_random) > 1.4 * padded(alone)


def test_draw_languages():
    seconds = {"a": 10.0, "b": 20.0, "c": 70.0}
    counts = Counter()
    for seed in range(300):
        drawn = draw_languages(seconds, 5, np.random.default_rng(seed))
        assert len(drawn) == 5 and drawn == sorted(drawn)
        assert drawn.count("b") == 1 and drawn.count("c") in (3, 4) and drawn.count("a") in (0, 1)
        counts.update(drawn)
    assert abs(counts["a"] / 1500 - 0.1) < 0.03 and abs(counts["c"] / 1500 - 0.7) < 0.03
    assert draw_languages({"a": 1.0}, 3, np.random.default_rng(1)) == ["a"] * 3


def test_epochs_differ_and_come_again():
    sampler = language_sampler(unequal_cuts(), list(LANGUAGES), 40, 8, seed=1)
    first = ids(sampler)
    assert ids(sampler) == first
    np.random.seed(7)  # the global generators decide nothing
    sampler.set_epoch(3)
    other = ids(sampler)
    sampler.set_epoch(0)
    assert ids(sampler) == first and sorted(map(sorted, other)) != sorted(map(sorted, first))
    assert ids(language_sampler(unequal_cuts(), list(LANGUAGES), 40, 8, seed=2)) != first


def test_languages_are_drawn_by_hours():
    sampler = language_sampler(unequal_cuts(), list(LANGUAGES), 40, 8, seed=5)
    hours = {language: sum(cut.duration for cut in cuts) for language, cuts in sampler.cuts.items()}
    counts = Counter()
    for epoch in range(500):
        sampler.set_epoch(epoch)
        counts[language_of(next(iter(sampler)))] += 1
    for language, seconds in hours.items():
        share = seconds / sum(hours.values())
        assert abs(counts[language] - 500 * share) < 4 * np.sqrt(500 * share * (1 - share))


def test_batches_are_of_similar_durations():
    cuts = fake_cuts("en-IN", 300, seed=3)
    sampler = language_sampler(cuts, ["en-IN"], batch_seconds=60, max_utterances=100, seed=1)
    padded = sum(max(cut.duration for cut in batch) * len(batch) for batch in sampler)
    assert padded < 1.15 * sum(cut.duration for cut in cuts)
    in_order = split_batches(cuts, 60, 100)
    assert sum(max(cut.duration for cut in batch) * len(batch) for batch in in_order) > 1.4 * sum(cut.duration for cut in cuts)
    assert len({tuple(batch) for epoch in range(3) for batch in (sampler.set_epoch(epoch) or ids(sampler))}) > 60


def test_languages_left_out_and_missing():
    cuts = unequal_cuts()
    assert {language_of(batch) for batch in language_sampler(cuts, ["ta-IN"], 40, 8, seed=1)} == {"ta-IN"}
    with pytest.raises(UserError, match="gu-IN"):
        language_sampler(cuts, ["ta-IN", "gu-IN"], 40, 8, seed=1)
    with pytest.raises(UserError, match="batch_seconds=0"):
        language_sampler(cuts, ["ta-IN"], 0, 8, seed=1)


def test_split_batches():
    cuts = fake_cuts("en-IN", 50, seed=1) + fake_cuts("en-IN", 1, seed=2, shortest=90, longest=91)
    batches = split_batches(cuts, 30, 4)
    assert sum(batches, []) == cuts and len(batches[-1]) == 1  # longer than the limit: by itself
    for batch in batches[:-1]:
        assert len(batch) <= 4 and max(cut.duration for cut in batch) * len(batch) <= 30
    for batch, following in zip(batches, batches[1:]):  # each as large as it may be
        more = [*batch, following[0]]
        assert len(more) > 4 or max(cut.duration for cut in more) * len(more) > 30
    assert split_batches([], 30, 4) == []


def test_processes_have_the_same_language_at_a_time(monkeypatch):
    batches = []
    for rank in range(2):
        monkeypatch.setattr(module.distributed, "rank", lambda: rank)
        monkeypatch.setattr(module.distributed, "world_size", lambda: 2)
        batches.append(list(language_sampler(unequal_cuts(), list(LANGUAGES), 40, 8, seed=1)))
    assert len(batches[0]) == len(batches[1])
    assert list(map(language_of, batches[0])) == list(map(language_of, batches[1]))
    assert {id for part in batches for batch in ids(part) for id in batch} == {cut.id for cut in unequal_cuts()}
    assert sum(a != b for a, b in zip(ids(batches[0]), ids(batches[1]))) >= len(batches[0]) - len(LANGUAGES)


def test_a_batch_equals_the_utterances_one_by_one(cuts):
    stats = stats_of(cuts)
    dataset = UtteranceDataset(UNITS, CONFIG, stats)
    batch = dataset[cuts]
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
        features = stack(stats.apply(fbank(samples, CONFIG)), CONFIG)
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
    frames = torch.cat([stats.apply(FrameReader(CONFIG)(cut)) for cut in cuts])
    assert frames.mean(dim=0).abs().max() < 1e-4 and (frames.std(dim=0, unbiased=False) - 1).abs().max() < 1e-3


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("cache", [True, False])
def test_resumed_equals_the_rest_of_the_epoch(cuts, num_workers, cache):
    stats = stats_of(cuts)

    def loader(num_workers, cache):
        sampler = language_sampler(cuts, list(TEXTS), batch_seconds=1.5, max_utterances=2, seed=4)
        dataset = UtteranceDataset(UNITS, CONFIG, stats, SpecAugmentConfig(), cache=cache)
        return BatchLoader(dataset, sampler, seed=3, num_workers=num_workers)

    whole = loader(0, True)
    epochs = [list(whole(epoch)) for epoch in (0, 1)]
    assert len(epochs[0]) > 5
    other = loader(num_workers, cache)
    for epoch, consumed in ((1, 2), (0, 0), (0, 4)):
        resumed = list(other(epoch, consumed))
        assert [names for names, _ in resumed] == [names for names, _ in epochs[epoch][consumed:]]
        for (_, ours), (_, expected) in zip(resumed, epochs[epoch][consumed:]):
            assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_specaugment_masks_anew_each_time(cuts):
    stats = stats_of(cuts)
    plain = UtteranceDataset(UNITS, CONFIG, stats)[cuts]["features"]
    dataset = UtteranceDataset(UNITS, CONFIG, stats, SpecAugmentConfig())
    np.random.seed(1)
    first, second = dataset[cuts]["features"], dataset[cuts]["features"]
    assert not torch.equal(first, second)
    assert torch.equal(first[first != 0], plain[first != 0])  # the cached frames are untouched
    with pytest.raises(UserError, match="specaugment"):
        UtteranceDataset(UNITS, CONFIG, stats, SpecAugmentConfig(time_width=-1))


def test_cache_within_its_limit(cuts, monkeypatch):
    sizes = [4 * FrameReader(CONFIG)(cut).numel() for cut in cuts]
    read = Counter()
    monkeypatch.setattr(module, "read_samples", lambda cut, rate: (read.update([cut.id]), read_samples(cut, rate))[1])
    for limit, kept in ((0, 0), (sizes[0] - 1, 0), (sum(sizes[:4]), 4), (10 * sum(sizes), 10)):
        read.clear()
        reader = FrameReader(CONFIG, limit)
        first = [reader(cut) for cut in cuts]
        assert all(torch.equal(reader(cut), frames) for cut, frames in zip(cuts, first))
        assert sum(count == 1 for count in read.values()) == kept and len(read) == 10


def test_stored_frames(cuts, tmp_path, monkeypatch):
    expected = {cut.id: FrameReader(CONFIG)(cut) for cut in cuts}
    sizes = [4 * expected[cut.id].numel() for cut in cuts]
    for jobs, limit, count in ((1, sum(sizes), len(cuts)), (3, sum(sizes[:4]) + 1, 4), (2, 0, 0)):
        folder = tmp_path / str(limit)
        assert write_store(folder, compute_frames(cuts, CONFIG, jobs), 80, limit) == count
        stored = FrameStore(folder)
        read = Counter()
        monkeypatch.setattr(module, "read_samples", lambda cut, rate: (read.update([cut.id]), read_samples(cut, rate))[1])
        reader = FrameReader(CONFIG, stored=stored)
        assert all(torch.equal(reader(cut), expected[cut.id]) for cut in cuts)
        assert set(read) == {cut.id for cut in cuts[count:]}
        assert [cut.id in stored for cut in cuts] == [True] * count + [False] * (len(cuts) - count)
        assert stored.get("nobody") is None


def test_stored_frames_that_are_not_there(cuts, tmp_path):
    with pytest.raises(UserError, match="has to run"):
        FrameStore(tmp_path / "nowhere")
    write_store(tmp_path, compute_frames(cuts, CONFIG), 80, 1 << 30)
    with open(tmp_path / "frames.f32", "ab") as stream:
        stream.truncate(1000)
    with pytest.raises(UserError, match="1000 bytes, expected"):
        FrameStore(tmp_path)


def test_perturbed_speed(tmp_path):
    from lhotse import Recording

    rate = 8000
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(rate) / rate)
    soundfile.write(tmp_path / "tone.wav", tone, rate)
    cut = make_cut("tone", Recording.from_file(tmp_path / "tone.wav"), "en-IN", "one two")
    perturbed = list(perturb_speed([cut]))
    assert [other.id for other in perturbed] == ["tone", "tone_sp0.9", "tone_sp1.1"]
    for other, factor in zip(perturbed, (1, 0.9, 1.1)):
        assert other.duration == pytest.approx(1 / factor, abs=2 / rate)
        assert module.supervision_of(other).text == "one two"
        samples = read_samples(other, 16000)
        assert samples.dtype == np.float32 and len(samples) == pytest.approx(16000 / factor, abs=4)
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
        assert spectrum.argmax() * 16000 / len(samples) == pytest.approx(1000 * factor, abs=2)
        assert np.abs(samples[2000:-2000]).max() == pytest.approx(0.5, abs=0.02)


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
    batch = UtteranceDataset(UNITS, CONFIG, GlobalStats([0.0] * 80, [1.0] * 80))[[cut]]
    assert batch["lengths"].tolist() == [1] and batch["features"].isfinite().all()


def test_errors_name_the_file_or_cut(tmp_path, cuts):
    from lhotse import Recording

    path = tmp_path / "gone.wav"
    soundfile.write(path, np.zeros(800), 8000)
    cut = make_cut("gone", Recording.from_file(path), "en-IN", "one")
    dataset = UtteranceDataset(UNITS, CONFIG, GlobalStats([0.0] * 80, [1.0] * 80), cache=False)
    for damage in (path.unlink, path.touch, lambda: path.write_bytes(b"not audio at all")):
        damage()
        for broken in (cut, cut.perturb_speed(0.9)):
            with pytest.raises(UserError, match="gone.wav"):
                dataset[[broken]]
    loader = BatchLoader(dataset, [[cut]], seed=1, num_workers=1)
    with pytest.raises(UserError, match="gone.wav"):
        next(loader(0))
    with pytest.raises(UserError, match="0 supervisions"):
        dataset[[cuts[0].drop_supervisions()]]
    strange = make_cut("strange", cuts[0].recording, "xx", "one")
    with pytest.raises(UserError, match="strange: language 'xx'; expected one of en-IN, hi-IN"):
        dataset[[strange]]


def test_utterances_in_the_voices_of_other_vocal_tracts(cuts):
    """A factor of its own for each, from 1 / warp to warp, of its log-mel frames before all else; none for validation."""
    stats = stats_of(cuts)
    dataset, plain = UtteranceDataset(UNITS, CONFIG, stats, warp=1.4), UtteranceDataset(UNITS, CONFIG, stats)
    np.random.seed(3)
    batch, again = dataset[cuts]["features"], dataset[cuts]["features"]
    assert not torch.equal(batch, again)
    np.random.seed(3)
    for row, cut in zip(batch, cuts):
        factor = 1.4 ** np.random.uniform(-1, 1)
        warped = warp_log_mel(fbank(read_samples(cut, CONFIG.sampling_rate), CONFIG), factor, CONFIG)
        expected = stack(stats.apply(warped), CONFIG)
        assert torch.allclose(row[: len(expected)], expected, atol=1e-4)
    before = np.random.get_state()[1].tolist()
    assert torch.equal(plain[cuts]["features"], plain[cuts]["features"]) and np.random.get_state()[1].tolist() == before
