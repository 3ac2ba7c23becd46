"""Figures 2 and 3 of the fake audio detection recipe: the data that they show, and that there are pictures."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from steps.spoof import results
from steps.spoof.figures import COEFFICIENTS, envelopes, histograms, plot_envelopes, plot_histograms
from steps.spoof.vowels import SIZE, find_vowel

RATE = 16000
FORMANTS = (700, 1800, 3600)  # Hz


def vowel(seconds=0.2, formants=FORMANTS, pitch=100):
    length = round(seconds * RATE)
    sound = (np.arange(length) % (RATE // pitch) == 0) + 1e-3 * np.random.default_rng(0).standard_normal(length)
    for place in formants:
        pole = 0.98 * np.exp(2j * np.pi * place / RATE)
        sound = scipy.signal.lfilter([1.0], np.poly([pole, pole.conjugate()]).real, sound)
    return sound


def peaks(frequencies, level):
    return frequencies[scipy.signal.find_peaks(level, prominence=2)[0]]


def test_formants_move_as_the_coefficient_says():
    frequencies, levels = envelopes(vowel())
    assert tuple(levels) == COEFFICIENTS and frequencies[0] == 0 and frequencies[-1] == RATE / 2
    for coefficient, level in levels.items():
        assert level.shape == frequencies.shape and np.isfinite(level).all()
        for formant in FORMANTS:
            wanted = (2 * np.pi * formant / RATE) ** coefficient * RATE / (2 * np.pi)
            found = peaks(frequencies, level)
            assert np.abs(found - wanted).min() < 40, (coefficient, formant, found)


def test_envelope_is_that_of_the_spectrum():
    """Of coefficient 1, against the spectrum of the frame smoothed over a pitch period's harmonics."""
    samples = vowel(0.02)
    frequencies, levels = envelopes(samples, [1.0])
    spectrum = 20 * np.log10(np.abs(np.fft.rfft(samples * np.sqrt(np.hanning(320)), 1024)))
    smooth = scipy.ndimage.maximum_filter1d(spectrum, 15)
    difference = (levels[1.0] - smooth)[(frequencies > 300) & (frequencies < 4500)]
    assert np.std(difference) < 4 and len(spectrum) == len(frequencies)


def test_an_a_is_found_among_other_sounds(rng):
    """Of pulses through formants: neither another vowel, nor one that is not voiced, nor the louder noise."""
    others = [vowel(0.3, places) for places in ((300, 2300, 3000), (350, 800, 2300), (500, 1800, 2500))]
    whispered = rng.standard_normal(4800)
    for place in (750, 1250, 2600):
        pole = 0.98 * np.exp(2j * np.pi * place / RATE)
        whispered = scipy.signal.lfilter([1.0], np.poly([pole, pole.conjugate()]).real, whispered)
    parts = [*others, whispered, vowel(0.3, (750, 1250, 2600)), 2 * rng.standard_normal(3200)]
    parts = [part / np.abs(part).max() + 1e-3 * rng.standard_normal(len(part)) for part in parts]
    found = find_vowel(np.concatenate(parts))
    begin = sum(map(len, parts[:4]))
    assert begin <= found.start <= begin + 4800 - SIZE
    assert found.formants == pytest.approx((750, 1250, 2600), rel=0.05)
    assert found.pitch == pytest.approx(100, rel=0.02) and 0.9 < found.strength <= 1
    assert find_vowel(np.concatenate([*parts[:4], parts[5]])) is None
    high = vowel(0.3, (750, 1250, 2600), pitch=320)
    assert find_vowel(high) is None  # its harmonics would be taken for formants


def test_no_a_in_silence_and_in_scraps(rng):
    for samples in (np.zeros(0), np.zeros(RATE), np.ones(5), rng.standard_normal(RATE)):
        assert find_vowel(samples) is None


def test_no_vowel_is_said():
    for samples in (np.ones(319), np.zeros(1000), np.zeros(0)):
        with pytest.raises(UserError, match="at least 320, not all 0"):
            envelopes(samples)


def test_histograms_count_everything():
    genuine, fake = [0.0, 0.04, 0.5, 1.0, 1.0 + 1e-9], [0.0, 0.0, -1e-9]
    edges, of_genuine, of_fake = histograms(genuine, fake)
    assert np.allclose(edges, np.arange(21) / 20)
    assert np.flatnonzero(of_genuine).tolist() == [0, 10, 19] and of_genuine[[0, 10, 19]].tolist() == [2, 1, 2]
    assert of_fake.tolist() == [3] + 19 * [0]
    assert histograms([], fake)[1].sum() == 0


def test_figure_3_is_of_what_the_networks_say(tmp_path, monkeypatch):
    """Not of calibrated probabilities; of the systems trained on Train+Dev. where both are there."""
    shown = []
    monkeypatch.setattr(results, "plot_histograms", lambda systems, path: shown.append(systems))
    monkeypatch.setattr(results, "plot_det", lambda systems, path: None)
    logits = (np.array([3.0, -0.5]), np.array([-2.0]))
    names = ["rnm_sm", "rnm_sm_mc0.8", "traindev_rnm_sm", "traindev_rnm_sm_mc0.8"]
    calibrations = {name: {"slope": 0.1 + index, "offset": 5.0 - index} for index, name in enumerate(names)}
    divided = {
        name: tuple(Calibration(**calibrations[name]).log_likelihood_ratio(scores) for scores in logits) for name in names
    }
    for count, expected in ((4, names[2:]), (3, names[:2]), (1, names[:1])):
        some = {name: divided[name] for name in names[:count]}
        results.plot_scores(some, calibrations, "adapt", tmp_path)
        assert list(shown[-1]) == [f"{name}, adapt" for name in expected]
        for panel in shown[-1].values():
            for found, scores in zip(panel, logits, strict=True):
                np.testing.assert_allclose(found, 1 / (1 + np.exp(-scores)))


def test_pictures_are_written_alike_each_time(tmp_path, rng):
    systems = {"common": (rng.random(30), rng.random(50)), "with McAdams": (rng.random(30), np.zeros(0))}
    for name in ("a", "b"):
        plot_envelopes(*envelopes(vowel()), tmp_path / f"{name}2.png")
        plot_histograms(systems, tmp_path / f"{name}3.png")
    plot_histograms({"alone": systems["common"]}, tmp_path / "one.png")
    for number in "23":
        picture = (tmp_path / f"a{number}.png").read_bytes()
        assert picture[:4] == b"\x89PNG" and len(picture) > 5000
        assert picture == (tmp_path / f"b{number}.png").read_bytes()
