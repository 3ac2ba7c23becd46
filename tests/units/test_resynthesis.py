"""Speech from codes: lengths, levels, voices, repeatability, windows; models that belong together, saved and found."""

from functools import partial

import numpy as np
import pytest
import torch
from tiny_units import VOICES, make_pair
from tiny_zerospeech import sentence

from pyspeech.audio.level import Measured, rms
from pyspeech.errors import UserError
from pyspeech.model_file import find_model
from pyspeech.units import resynthesis
from pyspeech.units.checkpoint import PAIR_FILES, load_pair, load_vqvae, save_model, save_pair
from pyspeech.units.config import INVERTER, VQVAE
from pyspeech.units.encoding import encode
from pyspeech.units.griffin_lim import griffin_lim
from pyspeech.units.resynthesis import match_level, resynthesize, resynthesize_blocks, speak


@pytest.fixture(scope="module")
def pair():
    return make_pair()


def speech(seconds, seed=0):
    rng = np.random.default_rng(seed)
    samples = np.concatenate([sentence((120, 1.0), rng) for _ in range(int(seconds) + 2)])
    return samples[: round(seconds * 16000)].astype(np.float32)


@pytest.mark.parametrize("length", [1, 399, 1520, 16000, 16001, 16159])
def test_as_long_as_the_input(pair, length):
    made = resynthesize(*pair, speech(2)[:length], VOICES[0])
    assert made.shape == (length,) and made.dtype == np.float32 and np.isfinite(made).all()


def test_is_griffin_lim_of_the_magnitudes(pair):
    """A single window against the parts put together by hand."""
    samples = speech(1.3)
    vqvae, inverter = pair
    codes = torch.from_numpy(encode(vqvae, samples)[0])
    magnitudes = inverter.model.magnitudes(codes[None], torch.tensor([len(codes)]), torch.tensor([1]))[0]
    made = griffin_lim(torch.cat([magnitudes, magnitudes[-1:]]), inverter.features.magnitudes).numpy()[: len(samples)]
    spoken = resynthesize(*pair, samples, VOICES[1])
    np.testing.assert_allclose(spoken, made * (rms(samples) / rms(made)), rtol=1e-4, atol=1e-6)


def test_same_samples_each_time_and_other_voices_and_seeds(pair):
    samples = speech(1)
    first = resynthesize(*pair, samples, VOICES[0], seed=5)
    torch.rand(3)
    np.testing.assert_array_equal(resynthesize(*pair, samples, VOICES[0], seed=5), first)
    for voice, seed in ((VOICES[0], 6), (VOICES[1], 5)):
        assert np.abs(resynthesize(*pair, samples, voice, seed) - first).max() > 0.01


def test_blocks_and_progress(pair):
    samples, shares = speech(2), []
    made = resynthesize_blocks(*pair, np.array_split(samples, 7), VOICES[0], progress=shares.append)
    np.testing.assert_allclose(made, resynthesize(*pair, samples, VOICES[0]), rtol=1e-4, atol=1e-6)
    assert shares == [1.0]


def test_unknown_voice_and_no_samples(pair):
    with pytest.raises(UserError, match="speaker 'V9': the model knows V001, Žluťoučký 2"):
        resynthesize(*pair, speech(1), "V9")
    with pytest.raises(UserError, match="^here: no samples at 16000 Hz"):
        resynthesize(*pair, np.zeros(0), VOICES[0], name="here")


# Levels


@pytest.mark.parametrize("gain", [1e-3, 0.1, 1.0])
def test_as_loud_as_the_input(pair, gain):
    samples = gain * speech(1) + 0.05  # an offset is no sound
    made = resynthesize(*pair, samples, VOICES[0])
    assert rms(made) == pytest.approx(rms(samples), rel=1e-3) and np.abs(made).max() < 1


def test_nothing_clips_and_silence_stays():
    loud = np.sign(speech(0.5))  # as loud as can be
    clicks = np.zeros(8000, np.float32)
    clicks[::1000] = 0.01
    made = match_level(clicks, rms(loud))
    assert np.abs(made).max() == pytest.approx(resynthesis.PEAK)
    np.testing.assert_allclose(made, clicks * (resynthesis.PEAK / 0.01), rtol=1e-6)  # quieter, not cut
    np.testing.assert_array_equal(match_level(clicks, 0.0), np.zeros(8000))
    np.testing.assert_array_equal(match_level(np.zeros(10), 0.3), np.zeros(10))
    assert match_level(np.zeros(0, np.float32), 0.1).shape == (0,)


def test_silent_input_is_silent(pair):
    for samples in (np.zeros(16000), np.full(16000, 0.3), np.ones(1)):
        assert not resynthesize(*pair, samples, VOICES[0]).any()


@pytest.mark.parametrize("size", [1, 100, 16000])
def test_level_of_blocks(size):
    samples = speech(1) + np.float32(0.2)
    measured = Measured(samples[start : start + size] for start in range(0, 16000, size))
    assert sum(map(len, measured)) == measured.count == 16000
    assert measured.rms == pytest.approx(rms(samples), rel=1e-5)
    assert rms(samples) == pytest.approx(np.sqrt(((samples - samples.mean()) ** 2).mean()), rel=1e-4)
    assert rms(np.zeros(0)) == 0 and Measured([]).rms == 0
    constant = Measured([np.full(1000, 0.3, np.float32)] * 50)
    assert len(list(constant)) == 50 and constant.rms == 0


# Windows


def short_windows(monkeypatch):
    monkeypatch.setattr(resynthesis, "WINDOW", 2.0)
    monkeypatch.setattr(resynthesis, "OVERLAP", 0.4)


def test_windows_go_over_into_each_other(pair, monkeypatch):
    """Far from the joins each window is what it is alone; at the joins the level stays, and there are no clicks."""
    codes, inverter = np.tile([1, 4, 7, 7, 2, 9, 15, 3, 3, 0], 15), pair[1]  # 6 s
    short_windows(monkeypatch)
    shares = []
    made = speak(inverter, codes, VOICES[0], progress=shares.append)
    assert len(made) == len(codes) * 640 and shares[-1] == 1 and len(shares) == 4 and shares == sorted(shares)
    pieces = [speak(inverter, codes[start : start + 50], VOICES[0]) for start in (0, 40, 80, 120)]
    for number, piece in enumerate(pieces):
        start = number * 40 * 640
        inside = slice(start + 8 * 640 if number else 0, start + 42 * 640)
        np.testing.assert_array_equal(made[inside], piece[inside.start - start : inside.stop - start][: len(made[inside])])
    jumps = np.abs(np.diff(made))
    joins = np.concatenate([jumps[number * 40 * 640 : (number * 40 + 10) * 640] for number in (1, 2, 3)])
    assert joins.max() <= 1.3 * jumps.max()
    parts = made[40 * 640 : 50 * 640].reshape(20, -1).std(axis=1)
    elsewhere = made[20 * 640 : 30 * 640].reshape(20, -1).std(axis=1)
    assert parts.min() > 0.5 * elsewhere.min() and parts.max() < 1.5 * elsewhere.max()


def test_the_change_is_where_it_is_quietest(pair, monkeypatch):
    """Windows of 32000 samples that overlap by 6400, from 25600 on; its middle half is from 27200 to 30400."""
    short_windows(monkeypatch)
    before, after = np.random.default_rng(0).standard_normal((2, 32400)).astype(np.float32)
    before[28600:28920] *= 0.01
    after[3000:3320] *= 0.01
    pieces = [torch.from_numpy(before), torch.from_numpy(after)]
    monkeypatch.setattr(resynthesis, "griffin_lim", lambda *_, **__: pieces.pop(0))
    speech = speak(pair[1], np.zeros(90, np.int64), VOICES[0])
    assert not pieces
    np.testing.assert_array_equal(speech[:28600], before[:28600])
    np.testing.assert_array_equal(speech[28920:], after[3320:32000])
    angle = (np.arange(320) + 0.5) / 320 * np.pi / 2
    faded = np.cos(angle) * before[28600:28920] + np.sin(angle) * after[3000:3320]
    np.testing.assert_allclose(speech[28600:28920], faded, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 49, 50, 51, 59, 60, 89, 90, 91])
def test_any_number_of_codes(pair, monkeypatch, count):
    short_windows(monkeypatch)
    monkeypatch.setattr(
        resynthesis, "griffin_lim", lambda magnitudes, config, seed: torch.ones((len(magnitudes) - 1) * 160 + 400)
    )
    made = speak(pair[1], np.zeros(count, np.int64), VOICES[0])
    assert made.shape == (640 * count,) and (made > 0.99).all()  # a part that no window made would be 0
    assert speak(pair[1], np.zeros(count, np.int64), VOICES[0], 100).shape == (100,)
    longer = speak(pair[1], np.zeros(count, np.int64), VOICES[0], 640 * count + 1000)
    assert len(longer) == 640 * count + 1000 and not longer[-600:].any()


# Pairs


def test_pair_saved_and_loaded(pair, tmp_path):
    save_pair(tmp_path / "a pair ñ", *pair)
    vqvae, inverter = load_pair(tmp_path / "a pair ñ")
    assert inverter.speakers == VOICES and not vqvae.model.training and not inverter.model.training
    samples = speech(0.7)
    np.testing.assert_array_equal(resynthesize(vqvae, inverter, samples, VOICES[1]), resynthesize(*pair, samples, VOICES[1]))
    np.testing.assert_array_equal(encode(load_vqvae(tmp_path / "a pair ñ"), samples)[0], encode(pair[0], samples)[0])


@pytest.mark.parametrize("change", [{"seed": 1}, {"shift_ms": 20}])
def test_no_pair(pair, tmp_path, change):
    other = make_pair(**change)[1]
    with pytest.raises(UserError, match="^the inverter was trained with another VQ-VAE$"):
        save_pair(tmp_path, pair[0], other)
    assert not list(tmp_path.iterdir())
    save_pair(tmp_path, *pair)
    save_model(tmp_path / "inverter", other.model, other.speakers, other.features)
    with pytest.raises(UserError, match=f"^{tmp_path}: the inverter was trained with another VQ-VAE; make the two again"):
        load_pair(tmp_path)


def test_models_are_found(pair, tmp_path):
    save_pair(tmp_path / "exp" / "models" / "synthesis", *pair)
    save_model(tmp_path / "exp" / "models" / "trf" / "1", pair[0].model, pair[0].speakers, pair[0].features)
    models = tmp_path / "exp" / "models"
    find_pair = partial(find_model, kind=INVERTER, layouts=(PAIR_FILES,))
    find_vqvae = partial(find_model, kind=VQVAE, layouts=(("model.pt",), PAIR_FILES))
    assert find_pair(str(models / "synthesis")) == find_vqvae(models / "synthesis") == models / "synthesis"
    assert find_vqvae(models / "trf" / "1") == models / "trf" / "1"
    assert find_vqvae(models / "synthesis" / "vqvae") == models / "synthesis" / "vqvae"
    for folder in (tmp_path, models, models / "synthesis" / "inverter"):
        expected = f"^--model {folder}: no vqvae/model.pt with inverter/model.pt in it; choose one of {models}/synthesis$"
        with pytest.raises(UserError, match=expected):
            find_pair(folder)
    with pytest.raises(UserError, match=f"; choose one of {models}/synthesis, {models}/trf/1$"):
        find_vqvae(models)
    with pytest.raises(UserError, match="nowhere: no such file or folder"):
        find_pair(tmp_path / "nowhere")
    with pytest.raises(UserError, match="expected a folder that the recipe zerospeech made"):
        find_pair(models / "trf" / "1")


def test_a_voice_of_one_speaker(tmp_path):
    vqvae, inverter = make_pair(voices=["only"])
    assert len(resynthesize(vqvae, inverter, speech(0.3), "only")) == 4800
