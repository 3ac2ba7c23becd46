"""McAdams anonymisation against a plain loop over the frames, against what known poles become; edges."""

import numpy as np
import pytest
import scipy.signal
from tool_harness import assert_usage_error

from pyspeech.errors import UserError
from pyspeech.spoof import mcadams
from pyspeech.spoof.mcadams import anonymize, anonymize_many
from pyspeech.spoof.roots import find_roots, multiply_out
from utils.bench.mcadams import main as bench_main, make_speech, plain, plain_burg

COEFFICIENTS = (0.6, 0.8, 0.9)


def rms(samples):
    return np.sqrt(np.mean(np.square(samples, dtype=np.float64)))


def baseline(signal, coefficient):
    """VoicePrivacy's B2 as published: whole frames only, the first one passed over, poles in the order they come."""
    size, shift = 320, 160
    window = np.sqrt(np.hanning(size) / (np.sum(np.hanning(size)) / shift))
    total = np.zeros(len(signal))
    for index in range(1, 1 + (len(signal) - size) // shift):
        place = np.arange(index * shift, index * shift + size)
        frame = signal[place] * window
        errors, lpc = [frame[1:], frame[:-1]], np.ones(1)
        for _ in range(20):
            gain = -2 * np.dot(*errors) / (np.dot(errors[0], errors[0]) + np.dot(errors[1], errors[1]))
            lpc = np.append(lpc, 0) + gain * np.append(lpc, 0)[::-1]
            errors = [(errors[0] + gain * errors[1])[1:], (errors[1] + gain * errors[0])[:-1]]
        poles = scipy.signal.tf2zpk([1.0], lpc)[1]
        complex_ones = np.where(~np.isreal(poles))[0][::2]
        for one in complex_ones:
            angle = np.clip(np.angle(poles[one]) ** coefficient, 0, np.pi)
            poles[one], poles[one + 1] = np.abs(poles[one]) * np.exp([1j * angle, -1j * angle])
        excitation = scipy.signal.lfilter(lpc, 1, frame)
        total[place] += scipy.signal.lfilter([1], np.real(np.poly(poles)), excitation) * window
    return total


@pytest.fixture(scope="module")
def speech():
    return make_speech(2.0)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_equals_the_published_baseline(speech, coefficient):
    expected = baseline(speech, coefficient)
    found = anonymize(speech, coefficient, level="none")
    inside = slice(320, (len(speech) // 160 - 2) * 160)  # before and behind, the baseline has one frame or none
    assert np.abs(found - expected)[inside].max() < 1e-8
    assert rms(found - speech) > 0.3 * rms(speech)
    peak = np.abs(anonymize(speech, coefficient, level="peak"))
    assert peak.max() == pytest.approx(1.0, abs=1e-12)
    assert rms(found) / np.abs(found).max() == pytest.approx(rms(peak), rel=1e-9)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100])
def test_equals_the_plain_loop_at_every_rate_and_length(rate):
    for length in (rate // 50, rate // 3, rate // 3 + 1, rate // 3 + 37):
        samples = make_speech(0.5, rate)[:length]
        for coefficient, found in zip(COEFFICIENTS, anonymize_many(samples, COEFFICIENTS, rate, level="none"), strict=True):
            expected = plain(samples, coefficient, rate)
            assert found.shape == expected.shape
            assert np.abs(found - expected).max() < 1e-8 * max(1, np.abs(expected).max())


def test_blocks_leave_no_trace(speech, monkeypatch):
    whole = anonymize_many(speech[:8000], [0.7, 1.2], rate=11025)
    for size in (5, 50):
        monkeypatch.setattr(mcadams, "BLOCK", size)
        np.testing.assert_allclose(anonymize_many(speech[:8000], [0.7, 1.2], rate=11025), whole, atol=1e-10)


def test_burg_is_as_exact_as_its_plain_form_and_gives_the_residual_of_its_predictor(speech):
    window, shift = mcadams.analysis_window(16000)
    pure = np.sin(0.1 * np.arange(len(speech))) + 1e-5 * speech  # of which 100 dB are predicted
    for samples in (speech, pure):
        frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::shift].T * window[:, None]
        predictor, residual = mcadams.burg(frames)
        for index in range(0, frames.shape[1], 7):
            expected = plain_burg(frames[:, index], 20)
            # The plain form, too, has no more digits than are left of the frame's power.
            np.testing.assert_allclose(predictor[:, index], expected, rtol=0, atol=1e-11 if samples is speech else 1e-4)
            filtered = scipy.signal.lfilter(predictor[:, index], 1, frames[:, index])
            np.testing.assert_allclose(residual[:, index], filtered, rtol=0, atol=1e-12)
        inside = np.abs(find_roots(predictor)).max()
        assert inside < 1


def test_coefficient_1_changes_nothing(speech):
    found = anonymize(speech, 1.0, level="none")
    # Symmetric windows add up to 1 within half a percent.
    assert np.abs(found - speech).max() < 0.006 * np.abs(speech).max()


@pytest.mark.parametrize("coefficient", [0.6, 0.8, 1.2])
def test_a_resonance_moves_to_its_new_angle(coefficient, rng):
    """Of a filter that is known: angles of 0.35, 1 and 2 rad, the middle one the fixed point."""
    angles, radius = np.array([0.35, 1.0, 2.0]), 0.97
    filters = np.poly(np.concatenate([radius * np.exp(1j * angles), radius * np.exp(-1j * angles)])).real
    frame = scipy.signal.lfilter([1.0], filters, rng.standard_normal(20000))[-16000:, None]
    poles = find_roots(mcadams.burg(frame, order=6)[0])
    assert np.allclose(np.sort(np.angle(poles[poles.imag > 0])), angles, atol=0.01)
    moved = mcadams.move_poles(poles, coefficient)
    assert np.allclose(np.sort(np.angle(moved[moved.imag > 0])), angles**coefficient, atol=0.02)
    assert np.allclose(np.abs(moved), np.abs(poles)) and np.allclose(np.abs(moved), radius, atol=0.01)
    predictor = multiply_out(moved)
    assert np.allclose(np.sort_complex(np.roots(predictor[:, 0])), np.sort_complex(moved[:, 0]))


def test_real_poles_stay_and_angles_end_at_pi():
    poles = np.array([[0.9], [-0.8], [0.5j], [-0.5j], [0.7 * np.exp(3j)], [0.7 * np.exp(-3j)]])
    moved = mcadams.move_poles(poles, 1.2)
    assert np.array_equal(moved[:2], poles[:2]) and np.allclose(moved[4:], -0.7)
    assert np.allclose(moved[2:4, 0], 0.5 * np.exp([1j * (np.pi / 2) ** 1.2, -1j * (np.pi / 2) ** 1.2]))
    np.testing.assert_allclose(
        multiply_out(find_roots(np.poly(poles[:, 0]).real[:, None]))[:, 0], np.poly(poles[:, 0]).real, atol=1e-12
    )


EDGES = {
    "silence": np.zeros(1600),
    "constant": np.full(1600, 0.3),
    "sine": np.sin(0.1 * np.arange(1600)),
    "impulse": np.eye(1, 1600, 700)[0],
    "half silent": np.r_[np.zeros(1600), make_speech(0.1)],
    "tiny": 1e-100 * make_speech(0.1),
    "alternating": np.tile([1.0, -1.0], 800),
    "huge": 1e30 * make_speech(0.1),
}


@pytest.mark.parametrize("coefficient", [0.3, 1.2, 50.0])
@pytest.mark.parametrize("name", EDGES)
def test_finite_and_as_loud_as_before_at_the_edges(name, coefficient):
    for length in (0, 1, 160, 320, 321, 480, 1600):  # 0, 10, 20, 30 and 100 ms among them
        samples = EDGES[name][:length]
        found = anonymize(samples, coefficient)
        assert found.shape == samples.shape and np.isfinite(found).all()
        scale = 10.0 ** -np.floor(np.log10(np.abs(samples).max())) if samples.any() else 1.0
        if length:
            assert rms(found * scale) == pytest.approx(rms(samples * scale), rel=1e-6)
        for level in ("peak", "none"):
            assert np.isfinite(anonymize(samples, coefficient, level=level)).all()
    assert not anonymize(np.zeros(500), coefficient, level="peak").any()


def test_no_frame_drowns_the_others_above_1(speech):
    """Without the guard a frame at a time becomes 1000 times louder, and the RMS leaves nothing of the rest."""

    def loudness(samples):
        return np.sqrt(np.mean(np.square(samples[: len(samples) // 160 * 160].reshape(-1, 160)), axis=1))

    before, after = loudness(speech), loudness(anonymize(speech, 2.0, level="none"))
    heard = before > 0.01 * before.max()
    assert (after[heard] < 4 * 2 * np.maximum(before, np.maximum(np.roll(before, 1), np.roll(before, -1)))[heard]).all()


def test_rows_types_and_level_are_kept(speech):
    two = np.stack([speech, 0.01 * speech[::-1]])
    both = anonymize_many(two, [0.7, 0.9])
    assert both.shape == (2, 2, len(speech)) and both.dtype == np.float64
    np.testing.assert_allclose(both[1, 1], anonymize(two[1], 0.9), rtol=0, atol=1e-12)
    assert [rms(row) for row in both[0]] == pytest.approx([rms(row) for row in two])
    single = anonymize(speech.astype(np.float32), 0.8)
    assert single.dtype == np.float32 and np.abs(single - anonymize(speech, 0.8)).max() < 1e-5
    integers = np.round(32767 * speech).astype(np.int16)
    assert np.abs(anonymize(integers, 0.8) / 32767 - anonymize(integers / 32767, 0.8)).max() < 1e-9
    assert anonymize(np.zeros((3, 0)), 0.8).shape == (3, 0)
    assert np.array_equal(anonymize(speech, 0.8, 16000.0), anonymize(speech, 0.8, 16000))
    before = speech.copy()
    anonymize(speech, 0.8)
    assert np.array_equal(speech, before)


def test_scale_carries_through(speech):
    np.testing.assert_allclose(anonymize(1e-3 * speech, 0.8), 1e-3 * anonymize(speech, 0.8), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(coefficient=0.0), "above 0"),
        (dict(coefficient=-1), "above 0"),
        (dict(coefficient=np.nan), "above 0"),
        (dict(coefficient="x"), "above 0"),
        (dict(coefficient=0.8, level="loud"), "rms, peak, none"),
        (dict(coefficient=0.8, rate=1000), "at least 2000 Hz"),
        (dict(coefficient=0.8, rate=11025.5), "11025.5 Hz: .* whole Hz"),
        (dict(coefficient=0.8, rate=np.nan), "nan Hz"),
        (dict(samples=np.array([0.0, np.nan]), coefficient=0.8), "not finite"),
        (dict(samples=np.array(["a"]), coefficient=0.8), "array of numbers"),
        (dict(samples=1.0, coefficient=0.8), "0-dimensional"),
    ],
)
def test_what_cannot_be_is_said(arguments, message):
    with pytest.raises(UserError, match=message):
        anonymize(**{"samples": np.zeros(100), **arguments})


def test_memory_does_not_grow_with_the_length(rng):
    import tracemalloc

    samples = rng.standard_normal(16000 * 15).astype(np.float32)
    tracemalloc.start()
    anonymize(samples, 0.8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    frames_at_once = mcadams.BLOCK * 320 * 8
    assert peak < samples.nbytes + 12 * frames_at_once  # its frames, all at once, would be 4 MB an array


def test_bench_runs(capsys):
    bench_main(["--seconds", "0.3", "--repetitions", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert "ratio" in lines[1] and "0.30 s takes" in lines[2] and "ratio" in lines[3] and len(lines) == 8
    assert all(float(line.split("difference ")[1].split()[0]) < 1e-8 for line in lines[4:])


def test_bench_of_nothing_is_one_line(capsys):
    for option, value, expected in (
        ("--seconds", "0", "number of 0.02"),
        ("--seconds", "nan", "finite number of 0.02"),
        ("--seconds", "inf", "finite number of 0.02"),
        ("--repetitions", "0", "whole number of 1"),
    ):
        assert_usage_error(capsys, bench_main, [option, value], f"{value} is not a {expected} or more")
