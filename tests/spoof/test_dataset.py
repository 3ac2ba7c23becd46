"""Pieces of utterances, the order and the batches of training."""

import dataclasses

import numpy as np
import pytest
import soundfile
import torch
from lhotse import CutSet
from lhotse.utils import fastcopy
from tiny_spoof import RATE, write_corpus

from pyspeech.errors import UserError
from pyspeech.spoof import dataset as dataset_module
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.dataset import CropDataset, UtteranceSampler
from pyspeech.spoof.formats import label_of, original_of
from pyspeech.spoof.pieces import fill, random_crop, windows
from pyspeech.training.data import BatchLoader

DATA = CropConfig(samples=8000, hop=4000, batch_size=5)


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("audio ñ"), 18)


def samples_of(cut):
    return soundfile.read(cut.recording.sources[0].source, dtype="float32")[0]


def test_fill():
    samples = np.array([1, 2, 3], np.float32)
    assert fill(samples, 7, "zeros").tolist() == [1, 2, 3, 0, 0, 0, 0]
    assert fill(samples, 7, "repeat").tolist() == [1, 2, 3, 1, 2, 3, 1]
    for short in ("zeros", "repeat"):
        assert fill(samples, 3, short).tolist() == [1, 2, 3] and fill(samples, 4, short).dtype == np.float32


def test_crops_are_drawn_evenly(rng):
    starts = [int(random_crop(np.arange(12), 10, rng)[0]) for _ in range(3000)]
    assert np.allclose(np.bincount(starts, minlength=3) / 3000, 1 / 3, atol=0.04) and max(starts) == 2
    for length in (1, 10):
        assert random_crop(np.arange(length), 10, rng).tolist() == list(range(length))


def test_crops_are_played_faster_and_slower(rng):
    """A tone has the frequencies of all speeds, and the crop its length, where there is enough to play."""
    tone, found = np.sin(2 * np.pi * 0.05 * np.arange(40_000)).astype(np.float32), []
    for _ in range(200):
        crop = random_crop(tone, 8000, rng, speed=20)
        assert crop.dtype == np.float32 and len(crop) == 8000
        found.append(np.argmax(np.abs(np.fft.rfft(crop[1000:7000] * np.hanning(6000)))) / 6000 / 0.05)
    assert 0.79 < min(found) < 0.84 and 1.16 < max(found) < 1.21 and abs(np.mean(found) - 1) < 0.03
    assert all(1 <= len(random_crop(tone[:length], 8000, rng, speed=50)) <= 8000 for length in (1, 2, 8000) for _ in range(20))


@pytest.mark.parametrize("hop", [1, 3, 7, 10])
def test_windows_are_the_same_in_any_blocks(hop, rng):
    config = dataclasses.replace(DATA, samples=10, hop=hop)
    for length in (1, 9, 10, 11, 20, 21, 137):
        samples = rng.standard_normal(length).astype(np.float32)
        starts = [*range(0, max(1, length - 10), hop), length - 10] if length > 10 else [0]
        expected = [
            (start, min(start + 10, length), fill(samples[start : start + 10], 10, "zeros").tolist()) for start in starts
        ]
        for blocks in ([samples], np.array_split(samples, 7), list(samples[:, None]), [samples[:0], samples]):
            assert [(start, end, piece.tolist()) for start, end, piece in windows(blocks, config)] == expected
    assert list(windows([], config)) == list(windows([np.zeros(0)], config)) == []


def test_utterances_are_whole_up_to_a_length(rng):
    """What is longer has windows of that length, half of it apart where those of training are."""
    config = dataclasses.replace(DATA, samples=10, hop=5, whole=40)
    for length in (1, 9, 10, 11, 40, 41, 137):
        samples = rng.standard_normal(length).astype(np.float32)
        starts = [*range(0, length - 40, 20), length - 40] if length > 40 else [0]
        pieces = [samples[start : start + 40] for start in starts]
        ends = [start + len(piece) for start, piece in zip(starts, pieces, strict=True)]
        pieces = [fill(pieces[0], 10, "zeros")] if length < 10 else pieces
        expected = [(start, end, piece.tolist()) for start, end, piece in zip(starts, ends, pieces, strict=True)]
        for blocks in ([samples], np.array_split(samples, 7), list(samples[:, None])):
            assert [(start, end, piece.tolist()) for start, end, piece in windows(blocks, config)] == expected
    with pytest.raises(UserError, match="whole=9: expected 0, or at least samples=64600"):
        CropConfig(whole=9).check()


def test_an_epoch_has_each_utterance_once(cuts):
    sampler, epochs = UtteranceSampler(cuts, DATA, seed=1), []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        epochs.append([list(batch.ids) for batch in sampler])
    assert epochs[0] == epochs[2] != epochs[1] and [len(batch) for batch in epochs[0]] == [5, 5, 4, 4]
    assert sorted(sum(epochs[1], [])) == sorted(cuts.ids)
    sampler = UtteranceSampler(cuts, DATA, seed=2)
    assert [list(batch.ids) for batch in sampler] != epochs[0]


def test_balanced_batches(cuts):
    sampler, seen = UtteranceSampler(cuts, dataclasses.replace(DATA, batch_size=6, balanced=True), seed=1), []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in sampler:
            kinds = [cut.supervisions[0].text for cut in batch]
            assert len(batch) == 6 and kinds.count("genuine") == kinds.count("fake") == 3
            seen += [cut.id.split("#")[0] for cut in batch]
    assert len(seen) == 36 and set(seen) == set(cuts.ids)  # 18 of the 12 fake ones' 24 turns, 18 of 6 genuine ones
    # More of a class than there are: the same utterance is in a batch twice.
    few = [cuts["u0_2"], *(cut for cut in cuts if cut.supervisions[0].text == "fake")]
    batch = next(iter(UtteranceSampler(few, dataclasses.replace(DATA, batch_size=64, balanced=True), seed=1)))
    assert sum(cut.id.startswith("u0_2") for cut in batch) == 7 and len(batch) == 13


def with_originals(cuts):
    """The fakes as made of the genuine ones, two of each in turn."""
    genuine = [cut for cut in cuts if cut.supervisions[0].text == "genuine"]
    fakes = [cut for cut in cuts if cut.supervisions[0].text == "fake"]
    originals = {cut.id: cut.id for cut in genuine}
    originals.update((cut.id, genuine[number // 2].id) for number, cut in enumerate(fakes))
    return CutSet.from_cuts(
        fastcopy(cut, supervisions=[fastcopy(cut.supervisions[0], custom={"original": originals[cut.id]})]) for cut in cuts
    )


def test_fakes_of_some_engines_are_drawn_more_often(cuts):
    """So many times as often as the other one of the two behind each genuine utterance; without any named, as before."""
    cuts, engines = with_originals(cuts), {}
    for number, fake in enumerate(cut for cut in cuts if cut.supervisions[0].text == "fake"):
        fake.supervisions[0].custom["attack"] = ("A01", "A02")[number % 2]
        engines.setdefault(original_of(fake), set()).add(label_of(fake).attack)
    assert len(engines) == 6 and all(made == {"A01", "A02"} for made in engines.values())

    def share_of_a01(often):
        data = dataclasses.replace(DATA, batch_size=6, balanced=True, often=often)
        sampler, drawn = UtteranceSampler(cuts, data, seed=1), []
        for epoch in range(60):
            sampler.set_epoch(epoch)
            drawn += [label_of(cut).attack for batch in sampler for cut in list(batch)[1::2]]
        assert len(drawn) == 540
        return drawn.count("A01") / len(drawn)

    assert share_of_a01({}) == pytest.approx(1 / 2, abs=0.07)  # three standard deviations
    assert share_of_a01({"A01": 4.0}) == pytest.approx(4 / 5, abs=0.06)
    assert share_of_a01({"A02": 4.0, "A09": 9.0}) == pytest.approx(1 / 5, abs=0.06)
    for cut in cuts:  # where it is not known what a fake was made of: of all fakes
        cut.supervisions[0].custom.pop("original")
    assert share_of_a01({}) == pytest.approx(1 / 2, abs=0.07)
    assert share_of_a01({"A01": 4.0}) == pytest.approx(4 / 5, abs=0.06)


def test_a_genuine_utterance_has_a_fake_made_of_it_behind_it(cuts):
    data = dataclasses.replace(DATA, batch_size=6, balanced=True)
    sampler, behind = UtteranceSampler(with_originals(cuts), data, seed=1), {}
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for batch in sampler:
            batch = list(batch)
            for genuine, fake in zip(batch[::2], batch[1::2], strict=True):
                assert original_of(fake) == original_of(genuine) == genuine.id.split("#")[0]
                behind.setdefault(original_of(genuine), set()).add(fake.id.split("#")[0])
    assert len(behind) == 6 and all(len(fakes) == 2 for fakes in behind.values())
    # One of which no fake is known has any.
    some = CutSet.from_cuts(cut for cut in with_originals(cuts) if original_of(cut) != "u0_2" or cut.id == "u0_2")
    assert next(iter(UtteranceSampler(some, data, seed=1)))


@pytest.mark.parametrize("speed", [0, 30])
def test_a_fake_is_cut_and_augmented_as_what_it_was_made_of(cuts, speed):
    """Of the same samples under two names the crops are the same, and those of the next pair are others."""

    def augment(samples, rng):
        return samples + rng.standard_normal(len(samples)).astype(np.float32)

    cut = max(cuts, key=lambda cut: cut.duration)
    pair = [cut.with_id("genuine"), cut.with_id("copy")]
    named = [
        fastcopy(one, supervisions=[fastcopy(cut.supervisions[0], custom={"original": original})])
        for original in ("genuine", "other")
        for one in pair
    ]
    dataset = CropDataset(dataclasses.replace(DATA, samples=cut.num_samples // 2, speed=speed), RATE, augment)
    np.random.seed(0)
    first, copy, other, other_copy = dataset[named]["samples"]
    assert np.array_equal(first, copy) and np.array_equal(other, other_copy) and not np.array_equal(first, other)
    np.random.seed(0)
    unknown = dataset[[one.with_id(str(number)) for number, one in enumerate(4 * [cut])]]["samples"]
    assert np.array_equal(unknown[0], first) and not np.array_equal(unknown[0], unknown[1])


def test_crops_as_short_as_recordings_can_be(cuts):
    """From half a second on, repeated as in detection; a fake is as long as what it was made of."""
    cut = max(cuts, key=lambda cut: cut.duration)
    data = dataclasses.replace(DATA, samples=RATE, hop=RATE, short="repeat", shortened=1.0)
    np.random.seed(0)
    lengths = []
    for _ in range(40):
        batch = CropDataset(data, RATE)[[cut.with_id("one")]]
        lengths.append(round(batch["seconds"] * RATE))
        crop = batch["samples"][0].numpy()
        assert np.array_equal(crop[lengths[-1] :], crop[: len(crop) - lengths[-1]])
    assert min(lengths) < 0.6 * RATE and max(lengths) > 0.9 * RATE and min(lengths) >= 0.5 * RATE
    pair = [fastcopy(cut, id=name, supervisions=[fastcopy(cut.supervisions[0], custom={"original": "o"})]) for name in "ab"]
    first, copy = CropDataset(data, RATE)[pair]["samples"]
    assert np.array_equal(first, copy)
    with pytest.raises(UserError, match="data option shortened=2: expected 0 to 1"):
        dataclasses.replace(DATA, shortened=2).check()


def test_training_needs_both_kinds(cuts):
    fakes = [cut for cut in cuts if cut.supervisions[0].text == "fake"]
    for chosen, message in (
        (fakes, "none of the 12 training utterances is genuine"),
        ([], "none of the 0 training"),
        ([fakes[0].drop_supervisions()], "u0_0: 0 supervisions"),
    ):
        with pytest.raises(UserError, match=message):
            UtteranceSampler(chosen, DATA, seed=1)


@pytest.mark.parametrize("short", ["zeros", "repeat"])
def test_batches_are_crops(cuts, short):
    dataset, starts = CropDataset(dataclasses.replace(DATA, short=short), RATE), set()
    np.random.seed(0)
    for _ in range(4):
        batch = dataset[cuts]
        assert batch["samples"].shape == (18, 8000) and batch["samples"].dtype == torch.float32
        assert batch["targets"].tolist() == [0, 0, 1] * 6
        for row, cut in zip(batch["samples"].numpy(), cuts, strict=True):
            samples = samples_of(cut)
            if len(samples) <= 8000:
                assert np.array_equal(row, fill(samples, 8000, short))
            else:
                found = np.flatnonzero(samples[: len(samples) - 7999] == row[0])
                assert any(np.array_equal(samples[start : start + 8000], row) for start in found)
                starts.update(found)
        assert batch["seconds"] == pytest.approx(sum(min(8000, len(samples_of(cut))) for cut in cuts) / RATE)
    assert len(starts) > 20 and any(len(samples_of(cut)) < 8000 for cut in cuts)


def test_crops_have_one_level_and_no_digital_silence(tmp_path, rng):
    """Where data.level and data.silence say so: whatever the recording's level, and although most of it is zeros."""
    from lhotse import CutSet, Recording, SupervisionSegment

    named = []
    for name, gain in (("loud", 0.3), ("quiet", 0.002)):
        speech = gain * rng.standard_normal(6000)
        soundfile.write(tmp_path / f"{name}.wav", np.concatenate([np.zeros(40000), speech, np.zeros(40000)]), RATE, "FLOAT")
        cut = Recording.from_file(tmp_path / f"{name}.wav").to_cut()
        cut.supervisions = [SupervisionSegment(name, name, 0, cut.duration, text="genuine")]
        named.append(cut)
    batch, as_they_are = CutSet.from_cuts(named), dataclasses.replace(DATA, samples=4096)
    for data in (as_they_are, dataclasses.replace(as_they_are, short="repeat", level=-26.0, silence=400)):
        samples = CropDataset(data, RATE)[batch]["samples"].numpy()
        found, silent = 20 * np.log10(samples.std(axis=1) + 1e-9), np.ptp(samples.reshape(2, -1, 64), axis=2) < 1e-4
        if data.level is None:
            assert abs(found[0] - found[1]) > 10 or silent.all(axis=1).any()
        else:
            assert found == pytest.approx([-26, -26], abs=0.01) and not silent.any()


def test_augmentation_follows_the_batch_alone(cuts):
    calls = []

    def augment(samples, rng):
        calls.append(len(samples))
        return samples * rng.uniform(0.5, 2)

    def epoch(number, consumed=0, workers=0):
        sampler = UtteranceSampler(cuts, DATA, seed=3)
        loader = BatchLoader(CropDataset(DATA, RATE, augment), sampler, seed=3, num_workers=workers)
        return [(names, batch["samples"]) for names, batch in loader(number, consumed)]

    first, again, later = epoch(0), epoch(0, consumed=2), epoch(1)
    assert max(calls) == 8000 and min(calls) < 8000  # what is short is augmented before it is filled up
    for (names, samples), (other_names, others) in zip(first[2:], again, strict=True):
        assert names == other_names and torch.equal(samples, others)
    assert len(again) == 2 and not any(torch.equal(one[1], two[1]) for one, two in zip(first, later, strict=True))
    assert all(torch.equal(one[1], two[1]) for one, two in zip(first, epoch(0, workers=1), strict=True))


def test_clean_batches_come_first(cuts):
    calls = []

    def augment(samples, rng):
        calls.append(len(samples))
        return -samples

    number = -(-len(cuts) // DATA.batch_size)
    data = dataclasses.replace(DATA, clean_batches=number + 1, balanced=True)
    plain = BatchLoader(CropDataset(data, RATE), UtteranceSampler(cuts, data, seed=3), seed=3)
    loader = BatchLoader(CropDataset(data, RATE, augment), UtteranceSampler(cuts, data, seed=3), seed=3)
    for epoch, clean in ((0, number), (1, 1), (2, 0), (1, 1)):  # how many of an epoch's batches
        calls.clear()
        batches = [batch for _, batch in loader(epoch)]
        assert [batch["clean"] for batch in batches] == [True] * clean + [False] * (number - clean)
        assert len(calls) == sum(len(batch["samples"]) for batch in batches[clean:])
        signs = [1] * clean + [-1] * (number - clean)
        assert all(
            torch.equal(batch["samples"], sign * other["samples"])
            for sign, batch, (_, other) in zip(signs, batches, plain(epoch), strict=True)
        )
    assert [batch["clean"] for _, batch in loader(1, consumed=1)] == [False] * (number - 1)  # after a resume
    assert not any((cut.custom or {}).get("as_it_is") for cut in cuts)


def test_clean_crops_are_played_as_they_are(cuts):
    marked = [cut.with_custom(dataset_module.CLEAN, True) for cut in cuts]
    found = []
    for speed, batch in ((0, marked), (30, marked), (30, list(cuts))):
        np.random.seed(4)
        found.append(CropDataset(dataclasses.replace(DATA, speed=speed), RATE)[batch]["samples"])
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_what_cannot_be_used_is_named(cuts, tmp_path):
    with pytest.raises(ValueError, match=r"\(8000,\) samples into \(7999,\)"):
        CropDataset(DATA, RATE, lambda samples, rng: samples[1:])[[cuts["u0_2"]]]
    cut = write_corpus(tmp_path, 1)[0]
    (tmp_path / "u0_0.wav").write_bytes(b"")
    with pytest.raises(UserError, match="u0_0.wav: is empty"):
        CropDataset(DATA, RATE)[[cut]]
