"""The noise of an open receiver: it switches, transmissions quiet it, and it leaves the labels alone."""

import hashlib

import numpy as np
import pytest

from local.synthesis import radio, receiver, stream_scene

RATE = radio.RATE
GATE_DIGEST = "1dfc8f067681100ff6d56f54315f0813036637d99a28329796f417af8fcc6702"
KEYED = [(20 * RATE, 24 * RATE, -40.0), (50 * RATE, 52 * RATE, -35.0)]


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def levels(track, seconds=0.1):
    """Level of consecutive pieces, dB."""
    size = int(seconds * RATE)
    pieces = track[: len(track) // size * size].reshape(-1, size)
    return 10 * np.log10(np.mean(np.square(pieces), axis=1) + 1e-12)


@pytest.fixture(scope="module")
def tracks():
    return [receiver.open_receiver(generator(seed), 60 * RATE, -20.0, KEYED) for seed in range(6)]


def test_the_same_seed_gives_the_same_samples(tracks):
    again = receiver.open_receiver(generator(3), 60 * RATE, -20.0, KEYED)
    np.testing.assert_array_equal(again, tracks[3])
    assert not np.array_equal(tracks[3], tracks[4])


def test_gates_are_drawn_once_and_for_all():
    gate = receiver.squelch_gate(generator(2020), 300 * RATE)
    assert hashlib.sha256(np.packbits(gate).tobytes()).hexdigest() == GATE_DIGEST


def test_noise_switches_in_tenths_of_a_second_and_stays_for_minutes():
    """The lengths of noise and of silence over an hour of gates reach from bursts to minutes."""
    gate = np.concatenate([receiver.squelch_gate(generator(seed), 300 * RATE) for seed in range(12)])
    borders = np.flatnonzero(np.diff(gate.astype(np.int8)))
    lengths = np.diff(borders) / RATE
    noise = lengths[::2] if gate[borders[0] + 1] else lengths[1::2]
    assert 0.25 < gate.mean() < 0.75
    assert np.mean(noise < 0.6) > 0.5 and noise.max() > 60.0
    assert len(borders) > 500


@pytest.mark.parametrize("length", [0, 1, 50])
def test_short_streams(length):
    assert receiver.open_receiver(generator(), length, -20.0, [(0, length, -30.0)]).shape == (length,)


def test_open_and_closed_differ_by_more_than_20_db(tracks):
    """Of the tenths of a second away from transmissions most are as loud as asked, or next to nothing."""
    for track in tracks:
        found = levels(track)
        open_ones = found[found > -40.0]
        assert len(open_ones) > 20 and np.median(open_ones) == pytest.approx(-20.0, abs=8.0)
    found = np.concatenate([levels(track) for track in tracks])
    assert np.mean((found < -28.0) & (found > -48.0)) < 0.15
    assert 0.2 < np.mean(found > -28.0) < 0.8 and np.mean(found < -48.0) > 0.15


def test_transmissions_quiet_the_noise(tracks):
    """Within a transmission no more is left than asked, or a little more where whistles come on top."""
    for track in tracks:
        for first, last, ceiling in KEYED:
            assert np.quantile(levels(track[first + RATE // 10 : last]), 0.9) < ceiling + 6.0
    assert max(levels(track[KEYED[0][0] : KEYED[0][1]]).mean() for track in tracks) > KEYED[0][2] - 6.0


def test_quieting_ends_with_its_recovery():
    gain = receiver.quieting(4 * RATE, -20.0, [(RATE, 2 * RATE, -50.0)], recovery=0.5)
    assert (gain[:RATE] == 0).all() and (gain[RATE : 2 * RATE] == -30.0).all() and (gain[int(2.5 * RATE) :] == 0).all()
    assert gain[int(2.25 * RATE)] == pytest.approx(-15.0, abs=0.1)
    assert (receiver.quieting(RATE, -20.0, [(0, RATE, -10.0)], 0.1) == 0).all()


def test_squelch_opens_around_transmissions():
    gate = receiver.open_around(generator(1), np.zeros(60 * RATE, bool), KEYED)
    for first, last, _ in KEYED:
        assert gate[last] and not gate[first:last].any()
    assert gate.sum() < 4 * RATE


def test_a_whistle_is_one_line_that_drifts():
    """Nearly all of the power of any 32 ms is in a band of 250 Hz."""
    frames = receiver.whistle(generator(4), 5 * RATE)[: 150 * 256].reshape(-1, 256) * np.hanning(256)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    power = power[power.sum(axis=1) > 0.1 * np.median(power.sum(axis=1))]
    for row in power:
        peak = row.argmax()
        assert row[max(0, peak - 4) : peak + 5].sum() > 0.9 * row.sum()
    assert len(set(power.argmax(axis=1).tolist())) > 1


def test_labels_are_those_of_the_voices(monkeypatch):
    """A stream has the same speech with the receiver's noise and without it."""

    def take_clip(voice, seconds):
        time = np.arange(int(seconds * RATE) + RATE // 2) / RATE
        return 0.3 * np.sign(np.sin(2 * np.pi * 120 * time)) * (time > 0.2) * (time < time[-1] - 0.2)

    talk = [stream_scene.Transmission(2.0 + 6.0 * index, ("CC", "CDR")[index % 2], 2.0) for index in range(8)]
    seeds = range(4)  # of which most have an open receiver

    def rendered():
        return [stream_scene.render(generator(seed), talk, 60.0, {"a": "m", "b": "f"}, take_clip, []) for seed in seeds]

    noisy = rendered()
    monkeypatch.setattr(receiver, "open_receiver", lambda rng, length, *_: np.zeros(length))
    for with_noise, without in zip(noisy, plain := rendered(), strict=True):
        assert with_noise[1] == without[1] and len(without[1]) >= 6
    assert any(not np.allclose(one[0], other[0]) for one, other in zip(noisy, plain, strict=True))
