"""Crops of recordings: labels and samples where they belong, edges, short recordings, seeds; the loss."""

import numpy as np
import pytest
import soundfile
import torch
from tiny_training import descend

from pyspeech.audio.io import read_audio
from pyspeech.errors import UserError
from pyspeech.sad.augmentation import augment
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StftConfig
from pyspeech.sad.dataset import AudioReader, CropDataset, Noises, crop_sampler, frame_targets, frames_before
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.scoring import score_pair
from pyspeech.sad.segments import frames_to_segments
from pyspeech.sad.training import compute_loss

STFT = StftConfig()


def noise(seconds):
    return np.random.default_rng(0).integers(-20000, 20000, int(seconds * 8000)).astype(np.int16)


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    """Recordings of 20 s and of 1.5 s, of noise; speech from 3 to 5 s and from 0.5 to 1 s."""
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

    folder = tmp_path_factory.mktemp("streams")
    cuts = []
    for name, seconds, speech in (("long", 20.0, (3.0, 2.0)), ("short", 1.5, (0.5, 0.5))):
        soundfile.write(folder / f"{name}.wav", noise(seconds), 8000, subtype="PCM_16")
        recording = Recording.from_file(folder / f"{name}.wav", recording_id=name)
        segment = SupervisionSegment(f"{name}-0", name, *speech)
        cuts.append(MonoCut(name, 0.0, recording.duration, 0, recording=recording, supervisions=[segment]))
    return CutSet.from_cuts(cuts)


def batch_of(streams, seed=0, context=50, **options):
    config = DatasetConfig(**{"augment": 0.0, "crop_seconds": 2.0, "batch_size": 11, **options})
    dataset = CropDataset(streams, config, STFT, context)
    np.random.seed(seed)
    return dataset[next(iter(crop_sampler(streams, config, seed=0, shuffle=False)))]


def test_targets_are_speech_where_the_middle_of_the_window_is():
    speech = np.array([[0.1, 0.2], [0.5, 0.5005], [0.7, 0.8]])
    found = frame_targets(speech, 0, 100, STFT)
    is_speech = np.zeros(9000, dtype=bool)
    for start, end in np.rint(speech * 8000).astype(int):
        is_speech[start:end] = True
    assert found.tolist() == [is_speech[t * 80 + 200] for t in range(100)]
    assert frame_targets(speech, 15, 10, STFT).tolist() == found[15:25].tolist()
    assert not frame_targets(np.zeros((0, 2)), 0, 5, STFT).any()


@pytest.mark.parametrize("speech_seconds, gap_seconds", [(4.0, 8.0), (2.0, 4.0), (1.0, 2.0)])
@pytest.mark.parametrize("stft", [STFT, StftConfig(n_fft=256, window=256, shift=160)])
def test_the_labels_of_frames_are_the_reference_up_to_half_a_shift(rng, stft, speech_seconds, gap_seconds):
    """Scores that are the labels make segments whose borders are the reference's, and so no error but that of the grid."""
    seconds = 600.0
    lengths = rng.uniform(0.5, 1.5, 200) * np.tile([gap_seconds, speech_seconds], 100)
    borders = np.round(np.cumsum(lengths), 3)
    speech = borders[borders < seconds - 1][: (borders < seconds - 1).sum() // 2 * 2].reshape(-1, 2)
    targets = frame_targets(speech, 0, stft.num_frames(round(seconds * 8000)), stft)
    found = frames_to_segments(targets, stft.frame_shift, seconds, stft.frame_offset)
    assert found.shape == speech.shape and len(speech) > 40
    assert np.abs(found - speech).max() <= stft.frame_shift / 2 + 1e-4  # a sample
    assert abs((found - speech).mean()) < stft.frame_shift / 10  # neither early nor late
    reference, position = [], 0.0
    for start, end in speech:
        reference += [(position, start, "NS"), (start, end, "S")]
        position = end
    dcf = score_pair([*reference, (position, seconds, "NS")], found, collar=0.0)["dcf"]
    assert 0 < dcf < 0.5 * stft.frame_shift / speech_seconds  # each border is off by a quarter of a shift on average
    assert score_pair([*reference, (position, seconds, "NS")], found, collar=0.5)["p_fa"] == 0


@pytest.mark.parametrize("cache_hours", [0.0, 1.0])
def test_samples_and_targets_belong_together(streams, cache_hours):
    batch = batch_of(streams, cache_hours=cache_hours)
    assert batch["samples"].shape == (11, 299 * 80 + 400) and batch["targets"].shape == (11, 200)
    recording = noise(20.0)
    for row in range(10):
        samples = np.rint(batch["samples"][row].numpy() * 32768).astype(int)
        inside = int(np.flatnonzero(batch["valid"][row])[0]) * 80
        places = np.flatnonzero(recording == samples[inside])
        (place,) = [p for p in places if p % 80 == 0 and recording[p + 1] == samples[inside + 1]]
        known = min(len(recording) - place, len(samples) - inside)
        assert np.array_equal(recording[place : place + known], samples[inside : inside + known])
        core = (place - inside) // 80 + 50
        expected = frame_targets(np.array([[3.0, 5.0]]), core, 200, STFT)
        assert batch["targets"][row].tolist() == expected.tolist()


def test_a_recording_shorter_than_a_crop_is_padded(streams):
    batch = batch_of(streams)
    assert batch["valid"][10].tolist() == [False] * 50 + [True] * 150 + [False] * 100
    assert batch["targets"][10].nonzero()[:, 0].tolist() == list(range(48, 98))
    assert batch["labelled"][10].tolist() == [True] * 148 + [False] * 52
    assert batch["labelled"][:10].all()
    assert batch["samples"][10, : 50 * 80].abs().max() == 0


def test_some_crops_begin_as_recordings_do(streams):
    """Nothing before them counts; the crops are the same."""
    from itertools import product

    np.random.seed(0)
    cold = batch_of(streams, cold_start=1.0)
    assert not cold["valid"][:, :50].any() and cold["valid"][:, 50:200].all()
    starts = [batch_of(streams, cold_start=0.5)["valid"][row, 49].item() for _, row in product(range(10), range(10))]
    assert 25 < sum(starts) < 75


def test_no_crop_reaches_beyond_the_labels(streams):
    """Audio goes on behind the end of the labels; no frame whose middle lies there is a training example."""
    from lhotse import CutSet

    long = streams["long"].truncate(duration=7.3)
    short = streams["long"].truncate(duration=1.1)
    frames = [frames_before(seconds, STFT) for seconds in (7.3, 1.1)]
    assert frames == [sum(t * 80 + 200 < round(seconds * 8000) for t in range(2000)) for seconds in (7.3, 1.1)]
    assert frames_before(0.0, STFT) == 0
    dataset = CropDataset(CutSet.from_cuts([long]), DatasetConfig(augment=0.0, crop_seconds=2.0), STFT, 10)
    recording = np.append(noise(20.0), 0)
    for seed in range(10):
        np.random.seed(seed)
        for batch in (dataset[windows] for windows in crop_sampler(CutSet.from_cuts([long]), dataset.config, seed)):
            assert batch["labelled"].all()
            for samples in np.rint(batch["samples"].numpy() * 32768).astype(int):
                inside = np.flatnonzero(samples)[0]
                (place,) = [p for p in np.flatnonzero(recording == samples[inside]) if recording[p + 1] == samples[inside + 1]]
                first = (place - inside) // 80 + 10
                assert first + 200 <= frames[0]
    dataset = CropDataset(CutSet.from_cuts([short]), DatasetConfig(augment=0.0, crop_seconds=2.0), STFT, 10)
    batch = dataset[next(iter(crop_sampler(CutSet.from_cuts([short]), dataset.config, 0)))]
    assert batch["labelled"][0].tolist() == [True] * frames[1] + [False] * (200 - frames[1])
    assert batch["valid"].sum() == 210  # the audio is there, and normalises what is labelled


@pytest.mark.parametrize("percent", [80, 125])
def test_a_crop_at_another_speed_has_its_labels_there(tmp_path, percent):
    """A tone that is the speech sounds where the targets say, at a frequency that the speed has moved."""
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

    time = np.arange(20 * 8000) / 8000
    speech = [(2.0, 4.0), (5.0, 9.5), (11.0, 12.0), (13.0, 18.0)]
    sounding = sum((time >= start) & (time < end) for start, end in speech)
    soundfile.write(tmp_path / "tone.wav", 0.5 * sounding * np.sin(2 * np.pi * 800 * time), 8000, subtype="PCM_16")
    recording = Recording.from_file(tmp_path / "tone.wav", recording_id="tone")
    parts = [SupervisionSegment(f"{start}", "tone", start, end - start) for start, end in speech]
    streams = CutSet.from_cuts([MonoCut("tone", 0.0, 20.0, 0, recording=recording, supervisions=parts)])
    dataset = CropDataset(streams, DatasetConfig(augment=0.0, crop_seconds=4.0, speed=30), STFT, 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "randint", lambda low, high: percent - 100)
        batch = dataset[crop_sampler(streams, dataset.config, 0, shuffle=False).__iter__().__next__()]
    frames = batch["samples"].unfold(1, STFT.window, STFT.shift)[:, 50:450]
    loud = frames[:, :, 160:240].square().mean(2) > 0.01  # the middle of the window
    assert 0.3 < batch["targets"].mean() < 0.9
    assert (loud == (batch["targets"] > 0.5))[batch["labelled"]].float().mean() > 0.98
    spectrum = torch.fft.rfft(frames[(batch["targets"] > 0.5) & loud] * torch.hann_window(STFT.window), n=8000).abs()
    assert np.median(spectrum.argmax(1).numpy()) == pytest.approx(800 * percent / 100, abs=10)


def test_speed_of_crops_changes_nothing_where_it_is_none(streams):
    for name, value in batch_of(streams, speed=0).items():
        assert torch.equal(value, batch_of(streams)[name])


def test_same_seed_same_batch(streams):
    for augmented in (0.0, 0.7):
        one, two, other = (batch_of(streams, seed, augment=augmented) for seed in (1, 1, 2))
        assert all(torch.equal(one[name], two[name]) for name in one)
        assert not torch.equal(one["samples"], other["samples"])


def test_the_sampler_splits_nothing(streams, monkeypatch):
    """What lhotse takes from the environment, BatchLoader does."""
    config = DatasetConfig(crop_seconds=2.0, batch_size=1)
    alone = [[cut.id for cut in batch] for batch in crop_sampler(streams, config, seed=3)]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert [[cut.id for cut in batch] for batch in crop_sampler(streams, config, seed=3)] == alone and len(alone) == 11


def test_sampler_covers_all_audio(streams):
    batches = list(crop_sampler(streams, DatasetConfig(crop_seconds=2.0, batch_size=4), seed=3))
    assert [len(batch) for batch in batches] == [4, 4, 3]
    assert sum(cut.duration for batch in batches for cut in batch) == pytest.approx(21.5)


def test_augmentation_keeps_length_and_is_finite():
    np.random.seed(4)
    samples = np.random.standard_normal(8000).astype(np.float32)
    for gain in (1e-4, 1.0, 10.0):
        for _ in range(20):
            changed = augment(gain * samples, 8000, 1.0)
            assert changed.shape == samples.shape and changed.dtype == np.float32 and np.isfinite(changed).all()
    assert np.array_equal(augment(samples, 8000, 0.0), samples)
    assert np.array_equal(augment(np.zeros(100, np.float32), 8000, 1.0), np.zeros(100))


def test_noise_of_a_folder_is_added(tmp_path):
    rng = np.random.default_rng(1)
    time = np.arange(16000) / 16000
    (tmp_path / "below").mkdir()
    soundfile.write(tmp_path / "a.wav", 0.1 * np.sin(2 * np.pi * 1000 * time), 16000)
    soundfile.write(tmp_path / "below" / "b.flac", 0.1 * np.sin(2 * np.pi * 1000 * time[:512]), 16000)
    noises = Noises(str(tmp_path), 8000)
    np.random.seed(0)
    speech = rng.standard_normal(6000).astype(np.float32)
    for _ in range(4):
        with pytest.MonkeyPatch.context() as patch:  # the other ways are tested above
            for way in ("_limit_band", "_step_gain", "_add_noise", "_add_tone", "_overdrive"):
                patch.setattr(f"pyspeech.sad.augmentation.{way}", lambda samples, level, rate: samples)
            added = augment(speech, 8000, 1.0, noises.take) - speech
        snr = 10 * np.log10(np.mean(speech**2) / np.mean(added**2))
        assert -0.5 < snr < 30.5 and added.shape == (6000,)
        spectrum = np.abs(np.fft.rfft(added * np.hanning(6000)))
        assert spectrum.argmax() == 750 and spectrum[740:761].sum() > 0.7 * spectrum.sum()  # 1000 Hz
    (tmp_path / "bad.wav").write_text("no audio")
    with pytest.raises(UserError, match="bad.wav: cannot be read as audio"):
        Noises(str(tmp_path), 8000)
    with pytest.raises(UserError, match="more than 0 with noise_dir"):
        DatasetConfig(augment=0.0, noise_dir=str(tmp_path)).check()


def test_loss_ignores_frames_without_a_label(streams):
    torch.manual_seed(0)
    model = SadNetwork(NetworkConfig(channels=[4, 8], rnn_size=8, context_seconds=0.5), STFT).eval()
    batch = batch_of(streams)
    with torch.no_grad():
        loss, values = compute_loss(model, batch)
        changed = {**batch, "targets": torch.where(batch["labelled"], batch["targets"], torch.tensor(1.0))}
        assert compute_loss(model, changed)[0] == loss
        rows = [compute_loss(model, {name: value[row : row + 1] for name, value in batch.items()}) for row in range(11)]
    frames = batch["labelled"].sum(1)
    expected = sum(row[0] * count for row, count in zip(rows, frames, strict=True)) / frames.sum()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert values["audio_seconds"] == pytest.approx(frames.sum().item() * 0.01)


def test_training_lowers_the_loss(streams):
    torch.manual_seed(0)
    model = SadNetwork(NetworkConfig(channels=[4, 8], rnn_size=8, context_seconds=0.5), STFT).train()
    losses, _ = descend(model, compute_loss, batch_of(streams), steps=8, lr=1e-2)
    assert losses[-1] < losses[0]


def test_audio_that_went_missing_is_named(tmp_path):
    from lhotse import CutSet, Recording

    soundfile.write(tmp_path / "gone.wav", noise(3.0), 8000)
    cut = Recording.from_file(tmp_path / "gone.wav", recording_id="gone").to_cut()
    (tmp_path / "gone.wav").unlink()
    with pytest.raises(UserError, match="gone: no such audio file: .*gone.wav; where the corpus was moved, prepare it again"):
        batch_of(CutSet.from_cuts([cut]))


@pytest.mark.parametrize("rate", [8000, 16000, 11025])
def test_pieces_are_those_of_the_whole_at_any_rate_and_of_all_channels(tmp_path, rate):
    from lhotse import Recording

    samples = np.random.default_rng(1).standard_normal((5 * rate + 7, 2)) * 0.1
    soundfile.write(tmp_path / "two.wav", samples, rate, subtype="PCM_16")
    recording = Recording.from_file(tmp_path / "two.wav")
    expected = read_audio(tmp_path / "two.wav", 8000)[0]  # as detection reads it
    for each in (recording, recording.resample(8000)):
        for keep, tolerance in ((True, 0.6 / 32768), (False, 1e-5)):
            reader = AudioReader(8000, [recording] if keep else ())
            assert abs(reader.num_samples(each) - len(expected)) <= 1
            for start, length in ((0, 8000), (12345, 4001), (30000, 9000), (-50, 100), (39900, 400)):
                padded = np.pad(expected, (50, 1000))[start + 50 :][:length]
                inside = np.arange(start, start + length) < reader.num_samples(each) - 1
                np.testing.assert_allclose(reader.read(each, start, length)[inside], padded[inside], atol=tolerance)
