"""Voices of all pitches from one: the pitch that was asked for, the pace, the formants, whispers, what cannot be changed."""

import logging

import numpy as np
import pytest

from local.pitches import pitch_statistics, write_pitches
from local.synthesis import revoice
from local.synthesis.radio import RATE
from pyspeech.audio.pitch import median_pitch, pitch_track
from steps.sad.pitches import pitch_section, read_pitches


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def vowel(pitch=130.0, formant=900.0, seconds=1.0):
    """Harmonics of a pitch through one formant: (N,)."""
    time = np.arange(int(seconds * RATE)) / RATE
    frequencies = pitch * np.arange(1, int(3900 / pitch))
    strength = 1 / (1 + ((frequencies - formant) / 150) ** 2)
    return 0.1 * (strength[:, None] * np.cos(2 * np.pi * frequencies[:, None] * time + frequencies[:, None])).sum(axis=0)


def manner(**changes):
    return revoice.Manner(**{"pitch": 130.0, "typical": 130.0, **changes})


@pytest.mark.parametrize("pitch", [65.0, 90.0, 130.0, 250.0, 450.0])
def test_pitch_alone_changes(pitch):
    clip = vowel()
    said = revoice.revoice(generator(), clip, manner(pitch=pitch))
    assert median_pitch(said[800:-800], RATE) == pytest.approx(pitch, rel=0.04)
    assert len(said) == pytest.approx(len(clip), abs=2 * RATE * revoice.SHIFT_MS / 1000)


def test_pace_and_formants_change_without_the_pitch():
    clip = vowel()
    quick = revoice.revoice(generator(), clip, manner(pace=1.25))
    assert len(quick) == pytest.approx(len(clip) / 1.25, rel=0.02)
    assert median_pitch(quick, RATE) == pytest.approx(130, rel=0.03)

    def peak(samples):
        """Mean frequency, Hz, weighted with the power."""
        power, frequency = np.abs(np.fft.rfft(samples)) ** 2, np.fft.rfftfreq(len(samples), 1 / RATE)
        return (power * frequency).sum() / power.sum()

    wide = revoice.revoice(generator(), clip, manner(tract=1.3))
    assert peak(wide) / peak(revoice.revoice(generator(), clip, manner())) == pytest.approx(1.3, rel=0.07)
    assert median_pitch(wide, RATE) == pytest.approx(130, rel=0.03)


def test_a_whisper_has_no_pitch_but_its_energy_where_the_voice_was():
    silence = np.zeros(RATE // 2)
    said = revoice.revoice(generator(), np.concatenate([silence, vowel(), silence]), manner(pitch=0.0))
    assert np.mean(pitch_track(said, RATE) > 0) < 0.3
    power = np.square(said)
    assert power[RATE // 2 : -RATE // 2].mean() > 100 * power[: RATE // 2 - 400].mean()


def test_resampled_as_a_tape():
    said = revoice.revoice(generator(), vowel(200.0), revoice.Manner(speed=80))
    assert len(said) == RATE * 100 // 80 and median_pitch(said, RATE) == pytest.approx(160, rel=0.03)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(10), np.zeros(4000), np.ones(4000)])
def test_nothing_to_say(samples):
    for speed in (None, 70):
        assert np.isfinite(revoice.revoice(generator(), samples, manner(speed=speed))).all()


def test_talkers_cover_the_voices_that_there_are():
    """Drawn medians, as if all clips had the typical pitch: a quarter below 105 Hz, a twentieth above 350, 65 to 500 Hz."""
    rng, sexes, drawn, whispers = generator(), "fmfm", [], 0
    for _ in range(1000):
        pitches = []
        for sex, found in zip(sexes, revoice.draw_manners(rng, sexes), strict=True):
            whispers += found.speed is None and found.pitch == 0
            pitches.append(revoice.TYPICAL[sex] * found.speed / 100 if found.speed else found.pitch or np.nan)
        if all(found > 0 for found in pitches):
            assert max(pitches) > 1.2 * min(pitches)
        drawn += pitches
    found = pitch_statistics(drawn)
    assert found["low"] > 0.3 and found["high"] > 0.05 and 0.01 < whispers / 4000 < 0.05
    assert found["percentiles"][0] < 70 and found["percentiles"][-1] > 450


def test_close_speech_has_more_high_voices_some_with_the_formants_of_adults():
    rng, found = generator(), []
    for _ in range(500):
        found += revoice.draw_manners(rng, "fmfm", revoice.YOUNG_PITCHES, apart=0.4)
    drawn = np.array([one.pitch for one in found if one.speed is None and one.pitch])
    tract = np.array([one.tract for one in found if one.speed is None and one.pitch])
    assert np.mean(drawn > 350) > 0.15 and np.percentile(drawn, 99) > 550 and np.mean(drawn < 105) > 0.3
    assert np.mean(tract[drawn > 400] < 1.1) > 0.2
    usual = [one for _ in range(500) for one in revoice.draw_manners(rng, "fmfm") if one.pitch > 400]
    assert np.mean([one.tract < 1.1 for one in usual]) < 0.1


def test_statistics_are_written_and_shown(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    write_pitches(tmp_path, logging.getLogger("test"), {"train": [70, 80, 200, 400, float("nan")], "dev": []})
    found = read_pitches(tmp_path)
    assert found == {
        "train": {"clips": 4, "percentiles": [70.3, 71.5, 77.5, 140.0, 250.0, 370.0, 394.0], "low": 0.5, "high": 0.25}
    }
    assert "50 % below 105 Hz, 25 % above 350 Hz" in caplog.text
    assert "| train | 4 | 70 | 72 | 78 | 140 | 250 | 370 | 394 | 50.0 | 25.0 |" in " ".join(pitch_section(found)[1].split())
    assert read_pitches(tmp_path / "other") == {} and pitch_section({}) == []
