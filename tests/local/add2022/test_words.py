"""Single words of people, joined to utterances."""

import numpy as np
import pytest
import soundfile

from local.add2022 import words
from local.synthesis.recording_chain import RATE


def tone(seconds, rate=RATE, level=0.2):
    return level * np.sin(2 * np.pi * 200.0 * np.arange(int(seconds * rate)) / rate)


def write(folder, name, samples, rate=RATE):
    soundfile.write(folder / name, samples, rate)
    return folder / name


def test_a_word_is_trimmed_to_what_is_said_and_its_pause():
    quiet = 1e-4 * np.random.default_rng(0).standard_normal(RATE)
    found = words.trim(np.concatenate([quiet, tone(0.5), quiet]))
    assert abs(len(found) / RATE - (0.5 + 2 * words.PAUSE)) < 0.05
    assert len(words.trim(np.concatenate([quiet, tone(0.05), quiet])[RATE // 2 : -RATE // 2])) == 0  # a click
    assert len(words.trim(np.zeros(RATE))) == 0 and len(words.trim(np.zeros(0))) == 0


def test_each_word_is_said_once_and_no_seam_is_louder_or_quieter(tmp_path):
    noise = [np.random.default_rng(seed).standard_normal(RATE // 2) * 0.1 for seed in range(25)]
    joined = words.join([write(tmp_path, f"wörd {index}.wav", samples) for index, samples in enumerate(noise)])
    seconds = 0.5 * 10 - 9 * words.OVERLAP  # ten words reach LONGEST; the last five are not enough
    assert [len(samples) for samples in joined] == [round(seconds * RATE)] * 2
    for samples in joined:
        levels = np.std(samples[: len(samples) // 320 * 320].reshape(-1, 320), axis=1)
        assert levels.max() / levels.min() < 1.5
        assert np.abs(samples).max() == pytest.approx(words.PEAK)


def test_words_of_a_lower_rate_and_silence_are_left_out(tmp_path):
    clips = [write(tmp_path, f"{index}.wav", tone(1.0, 8000), 8000) for index in range(9)]
    clips += [write(tmp_path, f"s{index}.wav", np.zeros(RATE)) for index in range(9)]
    assert words.join(clips) == []
    clips += [write(tmp_path, f"w{index}.wav", tone(1.0, 44100), 44100) for index in range(5)]
    (samples,) = words.join(clips)
    assert len(samples) == pytest.approx(5 * RATE - 4 * words.OVERLAP * RATE, abs=2000)


@pytest.mark.network
def test_words_are_joined_once():
    (found,) = words.fetch_words(["klettres-cs"]).values()
    (clips,) = found.values()
    assert 4 <= len(clips) <= 10
    before = clips[0].stat().st_mtime_ns
    assert all(words.LONGEST - 1.0 < soundfile.info(str(path)).duration < words.LONGEST + 2.0 for path in clips)
    assert words.fetch_words(["klettres-cs"])["klettres-cs"]["klettres-cs"][0].stat().st_mtime_ns == before
