"""Statistical SAD: each step against its definition, the same answer however the audio is cut, and audio without speech."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tiny_corpora import RATE, radio_stream, voiced

from pyspeech.errors import UserError
from pyspeech.sad import statistical
from pyspeech.sad.config import StatisticalConfig
from pyspeech.sad.segments import segments_to_frames
from pyspeech.sad.smoothing import keep_peaks
from pyspeech.sad.stat_energies import (
    band_filters,
    combine_bands,
    frame_energies,
    noise_power,
    power_spectra,
    running_minimum,
    wiener_filter,
)
from pyspeech.sad.statistical import detect, detect_stream

CONFIG = StatisticalConfig()


@pytest.fixture(scope="module")
def stream():
    samples, segments = radio_stream(60.0, np.random.default_rng(5))
    return samples.astype(np.float32), segments


def test_finds_transmissions(stream):
    samples, segments = stream
    found = detect(samples, RATE).decisions
    speech = segments_to_frames(segments, len(found))
    assert len(found) == 6000
    assert found[speech].mean() > 0.97 and found[~speech].mean() < 0.15


@pytest.mark.parametrize("decision", ["hmm", "threshold"])
def test_another_threshold_is_another_detection(stream, decision):
    """What is found once can be decided at any threshold; the higher, the less is speech."""
    config, samples = replace(CONFIG, decision=decision), stream[0]
    found = detect(samples, RATE, config)
    shares, thresholds = [], (-25.0, -3.0, 0.0, 3.0, 25.0)
    for threshold, again in zip(thresholds, found.decide_each(thresholds), strict=True):
        np.testing.assert_array_equal(again, found.decide(threshold))
        np.testing.assert_array_equal(again, detect(samples, RATE, config, threshold).decisions)
        shares.append(again.mean())
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1] == 0
    nothing = detect(np.zeros(8000), RATE, config)
    assert not nothing.decide(-1000.0).any()


def test_equation_1(rng):
    """|W X|^2 with W from the equation as it stands."""
    power = rng.exponential(size=(10, 7)).astype(np.float32)
    noise = 0.02 * rng.exponential(size=(3, 7)).astype(np.float32)
    for t in range(10):
        gain = np.maximum(1 - CONFIG.oversubtraction * noise[t // 4] / power[t], CONFIG.min_gain)
        np.testing.assert_allclose(wiener_filter(power, noise, CONFIG)[t], gain**2 * power[t], rtol=1e-5)


def test_noise_is_the_larger_of_the_minima_before_and_after(rng):
    power = rng.exponential(size=(403, 3)).astype(np.float32)
    muted = np.zeros(403, bool)
    muted[100:170] = True
    noise = noise_power(power, muted, CONFIG)
    means = [power[4 * b : 4 * b + 4][~muted[4 * b : 4 * b + 4]] for b in range(101)]
    means = [part.mean(0) if len(part) else np.full(3, np.inf) for part in means]
    for b in range(101):
        before, after = np.min(means[max(0, b - 16) : b + 1], axis=0), np.min(means[b : b + 17], axis=0)
        finite = np.isfinite(before) & np.isfinite(after)
        np.testing.assert_allclose(noise[b][finite], np.maximum(before, after)[finite], rtol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 16, 17, 31, 40])
def test_running_minimum(rng, length):
    rows = rng.standard_normal((40, 2))
    expected = [rows[t : t + length].min(0) for t in range(40 - length + 1)]
    assert np.array_equal(running_minimum(rows, length), expected)


def test_combined_energy_of_sub_bands(rng):
    """Against the sums of section 2 and of linear prediction, bin by bin."""
    power = rng.exponential(size=(5, 129)).astype(np.float32) * np.linspace(3, 0.1, 129, dtype=np.float32)
    ours = combine_bands(power, band_filters(CONFIG))
    for t in range(5):
        r0 = r1 = total = 0.0
        for k in range(129):
            frequency = k * 8000 / 256
            if frequency >= 250:
                r0 += power[t, k]
                r1 += power[t, k] * np.cos(2 * np.pi * k / 256)
                total += power[t, k] / (min(3, int(frequency // 1000)) + 1)
        assert ours[t] == pytest.approx(total * max(0, r1 / r0) ** 2, rel=1e-4)


def test_frame_is_centred_and_power_is_that_of_the_transform(rng):
    samples = rng.standard_normal(256).astype(np.float32)
    window = np.hanning(257)[:-1].astype(np.float32)
    power, muted = power_spectra(samples, window, CONFIG)
    np.testing.assert_allclose(power[0], np.abs(np.fft.rfft(samples.astype(float) * window)) ** 2, rtol=1e-4, atol=1e-4)
    assert power.shape == (1, 129) and not muted.any()


@pytest.mark.parametrize("size", [1001, 8000, 33333, 10**6])
def test_blocks_change_nothing(stream, size):
    samples, _ = stream
    whole = detect(samples, RATE)
    parts = detect_stream(samples[start : start + size] for start in range(0, len(samples), size))
    assert np.array_equal(whole.llr, parts.llr) and np.array_equal(whole.decisions, parts.decisions)


def test_chunks_change_nothing(stream, monkeypatch):
    """A chunk has all the context it needs: the same energies from short chunks as from one."""
    from pyspeech.sad import stat_energies

    samples, _ = stream
    whole = frame_energies([samples], CONFIG)
    monkeypatch.setattr(stat_energies, "CHUNK_FRAMES", 120)
    parts = frame_energies([samples], CONFIG)
    np.testing.assert_allclose(parts.csbe, whole.csbe, rtol=1e-3, atol=1e-9)
    assert len(parts.csbe) == len(whole.csbe) == 6000


@pytest.mark.parametrize("gain", [1e-4, 0.01, 0.37, 3.0, 10.0])
def test_gain_changes_nothing(stream, gain):
    samples, _ = stream
    assert np.array_equal(detect(samples * np.float32(gain), RATE).decisions, detect(samples, RATE).decisions)


def _time(seconds):
    return np.arange(int(seconds * RATE)) / RATE


@pytest.mark.parametrize(
    "name, make",
    [
        ("silence", lambda rng: np.zeros(20 * RATE)),
        ("nothing", lambda rng: np.zeros(0)),
        ("one sample", lambda rng: np.ones(1)),
        ("constant", lambda rng: np.full(20 * RATE, 0.3)),
        ("tone", lambda rng: 0.3 * np.sin(2 * np.pi * 700 * _time(20))),
        ("tone after silence", lambda rng: np.concatenate([np.zeros(RATE), 0.3 * np.sin(2 * np.pi * 700 * _time(20))])),
        ("white noise", lambda rng: 0.1 * rng.standard_normal(60 * RATE)),
        ("pink noise", lambda rng: np.cumsum(rng.standard_normal(60 * RATE)) * 1e-3),
        ("hum", lambda rng: 0.1 * np.sin(2 * np.pi * 60 * _time(20)) + 0.05 * np.sin(2 * np.pi * 180 * _time(20))),
        ("a tenth of a second of noise", lambda rng: 0.1 * rng.standard_normal(800)),
    ],
)
def test_no_speech_where_there_is_none(rng, name, make):
    samples = make(rng).astype(np.float32)
    found = detect(samples, RATE)
    assert len(found.decisions) == len(found.llr) == -(-len(samples) // 80)
    assert not found.decisions.any()


def test_muted_gaps_tell_nothing(stream):
    """Digital zeros between parts of a recording neither hold speech nor pull the floor down."""
    samples, _ = stream
    plain = detect(samples, RATE).decisions
    gap = np.zeros(20 * RATE, np.float32)
    found = detect(np.concatenate([samples, gap, samples]), RATE).decisions
    assert not found[6050:7950].any()
    assert (found[:5900] == plain[:5900]).mean() > 0.98 and (found[8100:] == plain[100:]).mean() > 0.98


def test_threshold_of_section_2_1_alone(stream):
    found = detect(stream[0], RATE, replace(CONFIG, decision="threshold", fill_seconds=0.0, peak_residual_db=-200.0))
    above = found.level > found.speech_threshold
    assert found.noise is None
    assert not (found.decisions & ~above).any() and found.decisions.sum() > 0.9 * above.sum()


def test_pauses_and_segments_without_evidence():
    decisions = np.array([0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0], bool)
    filled = statistical.fill_pauses(decisions, 3)
    assert filled.tolist() == [False, True, True, True, True, True, False, False, False, True, False]
    evidence = np.zeros(11, bool)
    evidence[4] = True
    assert np.flatnonzero(keep_peaks(filled, evidence)).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("threshold", [-1, -5, -19, -21, -1000])
@pytest.mark.parametrize("seconds", [3, 60])
def test_no_threshold_makes_speech_of_noise(rng, threshold, seconds):
    """Every score exceeds the lowest of these thresholds; white and pink noise."""
    white = rng.standard_normal(seconds * RATE).astype(np.float32)
    for samples in (0.1 * white, 1e-3 * np.cumsum(white), np.zeros_like(white)):
        assert not detect(samples, RATE, threshold=threshold).decisions.any()


def test_threshold(stream):
    """0 changes nothing, higher ones find less, and the scores are the same for all."""
    samples, _ = stream
    plain = detect(samples, RATE)
    previous = np.ones(6000, bool)
    for threshold in (-1000, -15, -5, 0, 5, 15, 1000):
        found = detect(samples, RATE, threshold=threshold)
        assert np.array_equal(found.llr, plain.llr)
        assert threshold != 0 or np.array_equal(found.decisions, plain.decisions)
        assert found.decisions.sum() <= previous.sum()
        previous = found.decisions
    assert not previous.any()
    low = detect(samples, RATE, threshold=-15).decisions
    assert low.sum() > plain.decisions.sum() > detect(samples, RATE, threshold=15).decisions.sum()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_samples_that_are_not_numbers(stream, value):
    samples = stream[0].copy()
    samples[12000] = value
    message = re.escape(f"the sample at 1.500 s is {value:g}; expected finite numbers")
    with pytest.raises(UserError, match=message):
        detect(samples, RATE)
    with pytest.raises(UserError, match=message):
        detect_stream(samples[start : start + 5000] for start in range(0, len(samples), 5000))


def test_errors(stream):
    with pytest.raises(UserError, match="16000 Hz, expected 8000"):
        detect(stream[0], 16000)
    with pytest.raises(UserError, match="decision=viterbi: expected hmm or threshold"):
        detect(stream[0], RATE, StatisticalConfig(decision="viterbi"))


@pytest.mark.parametrize(
    "option, value",
    [
        ("high_pass", 9000.0),
        ("high_pass", -1.0),
        ("band_hertz", 0.0),
        ("smoothing_seconds", -1.0),
        ("floor_seconds", 0.0),
        ("noise_seconds", 0.0),
        ("range_db", -5.0),
        ("fill_seconds", np.inf),
        ("floor_seconds", np.nan),
        ("hop", 0),
        ("sampling_rate", 0),
        ("most_margin_db", 10.0),
    ],
)
def test_impossible_options_are_named(option, value):
    with pytest.raises(UserError, match=f"statistical option {option}={value}: expected "):
        StatisticalConfig(**{option: value}).check()


def test_options_at_their_limits(stream):
    least = dict.fromkeys(("high_pass", "smoothing_seconds", "edge_seconds", "closing_seconds", "fill_seconds"), 0.0)
    config = StatisticalConfig(**least, n_fft=80, iterations=0)
    config.check()
    decisions = detect(stream[0], RATE, config).decisions
    assert decisions.shape == (6000,) and decisions.any() and not decisions.all()


def talk(seconds, level_db, seed=0):
    """A voice without a pause: made-up speech (N,), whose quiet parts are `level_db` below its loud ones."""
    rng = np.random.default_rng(seed)
    samples = np.concatenate([voiced(0.5, rng) for _ in range(int(2 * seconds))])
    envelope = 10 ** (level_db / 40 * (np.cos(2 * np.pi * 1.5 * np.arange(len(samples)) / RATE) - 1))
    return samples * envelope


@pytest.mark.parametrize("snr", [np.inf, 20.0])
@pytest.mark.parametrize("seconds", [1, 2, 20])
@pytest.mark.parametrize("depth", [6.0, 20.0])
def test_nothing_but_speech_is_found(seconds, depth, snr):
    """There is no noise to learn from, or none that is told from quiet speech by its level."""
    samples = talk(seconds, depth)
    samples += 10 ** (-snr / 20) * samples.std() * np.random.default_rng(1).standard_normal(len(samples))
    assert detect(samples, RATE).decisions.mean() > 0.9
