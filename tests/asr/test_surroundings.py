"""Pauses around utterances in training: what each kind is, what stays as it was, and whose words are in a batch."""

import functools

import numpy as np
import pytest
import torch
from asr_corpora import make_cut
from tiny_audio import write_audio

from pyspeech.asr.config import PAUSE_KINDS, DataConfig
from pyspeech.asr.dataset import UtteranceDataset, compute_frames
from pyspeech.asr.surroundings import Surroundings, at_level, coloured, floor_noise
from pyspeech.data.cuts import read_samples
from pyspeech.data.utterances import Utterances
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats, fbank, stack
from pyspeech.text.units import GraphemeUnits
from pyspeech.training.config import TrainConfig
from pyspeech.training.data import BatchLoader
from steps.asr.train import position_at

RATE = 16000


@pytest.fixture
def speech(rng):
    """A second of noise with 0.4 s of its floor, 60 dB below, at -74 dB, in the middle."""
    samples = 0.2 * rng.standard_normal(RATE)
    samples[4800:11200] *= 0.001
    return samples.astype(np.float32)


def decibels(samples):
    return 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)))


def pauses(speech, kind, noises=(), other=None, **options):
    """(before, behind) of twenty draws in which the utterance is there as it was, or with what goes on under it."""
    config = DataConfig(pauses=1.0, pause_kinds=[kind], **options)
    np.random.seed(7)
    for _ in range(20):
        samples = Surroundings(config, RATE, noises).surround([lambda: speech], lambda: other)
        assert samples.dtype == np.float32
        correlation = np.correlate(samples, speech, "valid")
        start = int(np.argmax(correlation))
        yield samples[:start], samples[start + len(speech) :], samples[start : start + len(speech)]


def test_floor_is_that_of_the_utterance(speech):
    for before, behind, within in pauses(speech, "floor"):
        np.testing.assert_array_equal(within, speech)
        for pause in (before, behind):
            assert 0.05 * RATE - 1 <= len(pause) <= 2 * RATE + 1 and abs(decibels(pause) - decibels(speech[5000:11000])) < 2


def test_the_floor_has_the_spectrum_of_the_quietest_part(rng):
    hum = 0.001 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
    loud = np.concatenate([0.1 * rng.standard_normal(RATE), hum]).astype(np.float32)
    spectrum = np.square(np.abs(np.fft.rfft(floor_noise(loud, RATE, RATE))))
    assert spectrum[950:1050].sum() > 0.9 * spectrum.sum()
    assert not floor_noise(np.zeros(RATE, np.float32), 100, RATE).any() and len(floor_noise(loud, 0, RATE)) == 0


def test_silence(speech):
    for before, behind, within in pauses(speech, "silence"):
        np.testing.assert_array_equal(within, speech)
        assert not before.any() and not behind.any()


@pytest.mark.parametrize("kind", ["noise", "room"])
def test_noise_of_random_level_every_second_time_under_the_speech_too(speech, kind):
    levels, under = [], 0
    for before, _, within in pauses(speech, kind):
        levels.append(decibels(before) if before.any() else None)
        under += not np.array_equal(within, speech)
    heard = [level for level in levels if level is not None]
    assert 4 < under < 18 and all(-83 < level < -37 for level in heard) and max(heard) - min(heard) > 15


@pytest.mark.parametrize("slope", [0, 3, 9])
def test_a_room_falls_by_decibels_an_octave(slope):
    np.random.seed(1)
    spectrum = np.square(np.abs(np.fft.rfft(coloured(8 * RATE, RATE, slope))))
    one, two = (decibels(np.sqrt(spectrum[8 * low : 8 * 2 * low])) for low in (500, 2000))
    assert (one - two) / 2 == pytest.approx(slope, abs=0.3)


def test_a_folder_and_the_end_of_another(speech, tmp_path):
    other = (0.1 * np.arange(RATE) / RATE).astype(np.float32)
    for before, _, _ in pauses(speech, "end", other=other):
        np.testing.assert_array_equal(before[:4800], other[-4800:])
    path = write_audio(tmp_path / "x.wav", samples=np.full(RATE, 0.5, np.float32))
    for before, _, _ in pauses(speech, "folder", noises=[path]):
        assert np.ptp(before) < 1e-6 and -80.1 < decibels(before) < -33.9  # from its own, to what goes on under it as loud
    assert "folder" not in Surroundings(DataConfig(pauses=1.0), RATE).kinds


def test_levels_and_nothing_at_all(speech):
    np.random.seed(3)
    surroundings = Surroundings(DataConfig(level_db=20.0), RATE)
    gains = [decibels(surroundings.surround([lambda: speech], None)) - decibels(speech) for _ in range(50)]
    assert min(gains) < -10 and max(gains) > 10 and all(abs(gain) <= 20.001 for gain in gains)
    before = np.random.get_state()[1].tolist()
    nothing = Surroundings(DataConfig(), RATE)
    assert not nothing.used and not nothing.joins() and nothing.surround([lambda: speech], None) is None
    assert np.random.get_state()[1].tolist() == before
    assert decibels(at_level(speech, -30)) == pytest.approx(-30, abs=1e-3) and not at_level(np.zeros(3), -30).any()


def test_noise_under_an_utterance_and_its_pauses(speech):
    config = DataConfig(noise=1.0, snr_db=[10.0, 20.0], pauses=1.0, pause_kinds=["silence"])
    np.random.seed(3)
    distances = set()
    for _ in range(20):
        samples = Surroundings(config, RATE).surround([lambda: speech], None)
        start = int(np.argmax(np.correlate(samples, speech, "valid")))
        noise = samples.copy()
        noise[start : start + len(speech)] -= speech
        distances.add(round(float(decibels(speech) - decibels(noise))))
        before, under = noise[:start], noise[start : start + len(speech)]
        assert abs(decibels(before) - decibels(under)) < 4 or len(before) < 2000
    assert min(distances) >= 9 and max(distances) <= 21 and max(distances) - min(distances) > 5


def test_noise_follows_the_level_of_the_speech(speech):
    config = DataConfig(noise=1.0, snr_db=[10.0, 10.0], level_db=20.0)
    np.random.seed(4)
    levels = [decibels(Surroundings(config, RATE).surround([lambda: speech], None)[4800:11200]) for _ in range(30)]
    assert max(levels) - min(levels) > 20  # that of its quiet part, where there is little but noise


CONFIG = FbankConfig()
TEXTS = ["क ख", "ग", "घ"]
UNITS = {"hi-IN": GraphemeUnits.build(TEXTS)}


@pytest.fixture
def cuts(tmp_path):
    from lhotse import Recording

    paths = [write_audio(tmp_path / f"{number}.wav", 0.5 + 0.2 * number, seed=number) for number in range(3)]
    return [make_cut(path.stem, Recording.from_file(path), "hi-IN", text) for path, text in zip(paths, TEXTS, strict=True)]


def test_joined_utterances_have_both_texts_and_sounds(cuts):
    stats = GlobalStats([0.0] * 80, [1.0] * 80)
    surroundings = Surroundings(DataConfig(join=1.0, pause_kinds=["silence"], longest_pause=0.05), RATE)
    dataset = UtteranceDataset(Utterances.of(cuts), UNITS, CONFIG, stats, surroundings=surroundings)
    np.random.seed(2)
    batch = dataset[[0, 1, 2]]
    own = [read_samples(cut, RATE) for cut in cuts]
    seconds = set()
    for row in range(3):
        text = UNITS["hi-IN"].decode(batch["tokens"][row, : batch["token_lengths"][row]].tolist())
        follows = next(number for number in range(3) if text == f"{TEXTS[row]} {TEXTS[number]}")
        seconds.add(follows)
        samples = np.concatenate([own[row], np.zeros(800, np.float32), own[follows]])
        expected = stack(fbank(samples, CONFIG).half().float(), CONFIG)
        assert torch.equal(batch["features"][row, : batch["lengths"][row]], expected)
    assert len(seconds) > 1


def test_pauses_begin_at_a_position(cuts):
    """Batches before it are as without any."""
    stats = GlobalStats([0.0] * 80, [1.0] * 80)
    surroundings = Surroundings(DataConfig(pauses=1.0, pause_kinds=["silence"]), RATE)
    options = {"surroundings": surroundings, "surroundings_from": position_at(0.75, TrainConfig(max_steps=4), 2)}
    make = functools.partial(UtteranceDataset, Utterances.of(cuts), UNITS, CONFIG, stats)
    plain, later = (BatchLoader(dataset, [[0], [1]], seed=1) for dataset in (make(), make(**options)))
    longer = [
        bool(two["lengths"] > one["lengths"])
        for epoch in range(2)
        for (_, one), (_, two) in zip(plain(epoch), later(epoch), strict=True)
    ]
    assert longer == [False, False, False, True]


@pytest.mark.parametrize(
    "limits", [{"max_steps": 100}, {"max_epochs": 10}, {"max_steps": 50, "accumulate": 2, "max_epochs": 20}]
)
def test_a_share_of_a_training(limits):
    assert position_at(0.75, TrainConfig(**limits), 10) == (7, 5)


def test_without_options_a_batch_is_as_it_was(cuts):
    stats = GlobalStats.compute(compute_frames(cut, CONFIG) for cut in cuts)
    plain = UtteranceDataset(Utterances.of(cuts), UNITS, CONFIG, stats)[[0, 1, 2]]
    surroundings = Surroundings(DataConfig(), RATE)
    other = UtteranceDataset(Utterances.of(cuts), UNITS, CONFIG, stats, surroundings=surroundings)[[0, 1, 2]]
    assert all(torch.equal(plain[name], other[name]) for name in plain)


def test_audio_kept_in_memory_changes_no_batch(cuts, monkeypatch):
    counted = []
    monkeypatch.setattr("pyspeech.data.reader.read_samples", lambda *given: (counted.append(given), read_samples(*given))[1])
    surroundings = Surroundings(DataConfig(pauses=0.5, join=0.5, noise=0.5, level_db=6.0), RATE)
    speeds = Utterances.of(cuts, speeds=[0.9])

    def epochs(gigabytes):
        counted.clear()
        stats = GlobalStats([0.0] * 80, [1.0] * 80)
        dataset = UtteranceDataset(speeds, UNITS, CONFIG, stats, surroundings=surroundings, cache_gigabytes=gigabytes)
        np.random.seed(4)
        return [dataset[range(len(speeds))] for _ in range(3)], len(counted)

    (plain, often), (kept, once) = epochs(0.0), epochs(1.0)
    assert once <= len(speeds) < often
    assert all(torch.equal(one[name], other[name]) for one, other in zip(plain, kept, strict=True) for name in one)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"pauses": 1.5}, "pauses=1.5: expected 0 to 1"),
        ({"join": -0.1}, "join=-0.1"),
        ({"longest_pause": 0.0}, "longest_pause=0"),
        ({"pause_kinds": ["hum"]}, "pause_kinds=.hum.: expected any of floor"),
        ({"pause_kinds": []}, "pause_kinds=..: expected"),
        ({"pause_kinds": ["folder"]}, "folder alone needs noise_dir"),
        ({"level_db": 90}, "level_db=90"),
        ({"noise": 2}, "noise=2: expected 0 to 1"),
        ({"snr_db": [20, 10]}, "snr_db=.20, 10.: expected two numbers"),
        ({"snr_db": [5]}, "snr_db=.5.: expected two numbers"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(UserError, match=message):
        DataConfig(**options).check()
    DataConfig(pauses=1.0, pause_kinds=list(PAUSE_KINDS), join=1.0, level_db=20).check()
