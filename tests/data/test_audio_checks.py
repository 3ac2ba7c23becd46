"""Many audio files checked by several processes: all of them, in order, and what a file's first frames do not tell."""

import logging
import os
import struct

import numpy as np
import pytest
import soundfile
from tiny_audio import noise, write_audio

from pyspeech.audio.io import read_audio, stream_audio
from pyspeech.data import audio_checks
from pyspeech.data.audio_checks import check_audio, check_file, check_utterances, utterance_check
from pyspeech.data.manifests import Segment, Utterance
from pyspeech.data.problems import list_problems
from pyspeech.errors import UserError


@pytest.mark.parametrize("jobs", [1, 3])
def test_all_in_their_order(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(audio_checks, "CHUNK", 4)
    utterances = []
    for number in range(11):
        path = write_audio(tmp_path / f"{number}.wav", seconds=0.2 + number / 100)
        utterances.append(Utterance(str(number), str(path), "", "en"))
    (tmp_path / "5.wav").write_bytes(b"")
    (tmp_path / "9.wav").unlink()
    good, problems = check_utterances(utterances, lambda one: check_file(one.audio), logging.getLogger(), jobs)
    expected = [number for number in range(11) if number not in (5, 9)]
    assert [utterance.id for utterance, _ in good] == list(map(str, expected))
    durations = [properties["duration"] for _, properties in good]
    assert durations == pytest.approx([0.2 + number / 100 for number in expected], abs=1e-4)
    assert problems == [(utterances[5].audio, "the audio file is empty (0 bytes)"), (utterances[9].audio, "no such audio file")]
    assert check_utterances([], check_file, logging.getLogger(), jobs) == ([], [])


def test_what_fails_is_raised(tmp_path):
    def check(utterance):
        raise UserError(f"{utterance.id}: no")

    with pytest.raises(UserError, match="a: no"):
        check_utterances([Utterance("a", "a.wav", "", "en")], check, logging.getLogger())


def test_sound_and_faults_behind_the_first_frames(tmp_path):
    """Silence is read until something is heard, floats to the end."""
    samples = np.zeros(5 * audio_checks.BLOCK)
    with pytest.raises(UserError, match="silent: all its samples are 0"):
        check_audio(write_audio(tmp_path / "silent.wav", samples=samples))
    samples[-1] = 0.5
    assert check_audio(write_audio(tmp_path / "late.wav", samples=samples))["duration"] == len(samples) / 16000
    samples[0], samples[-1] = 0.5, np.nan
    with pytest.raises(UserError, match="not finite"):
        check_audio(write_audio(tmp_path / "nan.wav", samples=samples, subtype="FLOAT"))


def test_mp3_whose_length_is_an_estimate(tmp_path):
    """Without the header frame that counts samples, libsndfile estimates a few more than there are; half a file is damaged."""
    path = tmp_path / "whole.mp3"
    noise = 0.1 * np.random.default_rng(0).standard_normal(48000)
    soundfile.write(path, noise, 44100, bitrate_mode="CONSTANT", compression_level=0.5)
    data = path.read_bytes()
    path.write_bytes(data[data.index(data[:2], 1) :])
    read = len(soundfile.read(path)[0])
    assert read < soundfile.info(path).frames
    assert check_audio(path)["duration"] == read / 44100
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="truncated"):
        check_audio(path)


def test_a_header_without_room_for_its_size_is_said(tmp_path):
    path = write_audio(tmp_path / "long.wav", samples=np.tile([0.5, -0.5], 8000))
    data = bytearray(path.read_bytes())
    data[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert check_audio(path)["duration"] == 1.0  # as it was piped
    os.truncate(path, (1 << 32) + 100_000)
    with pytest.raises(UserError, match="long.wav: a WAV above 4 GiB whose header says 134217.73 s, there is more"):
        check_audio(path)


@pytest.mark.parametrize("start, end", [(5.9, 6.0), (5.0, 5.1), (2.3, 2.4), (0.0, 0.1)])
def test_a_segment_of_just_the_shortest_length_is_long_enough(tmp_path, start, end):
    path = write_audio(tmp_path / "a.wav", 6.0)
    check = utterance_check()
    assert check(Utterance("a", str(path), "", "en", segment=Segment("a", start, end)))[1] is None
    shorter = Utterance("a", str(path), "", "en", segment=Segment("a", start, end - 1e-4))
    assert check(shorter)[1] == "a segment of 0.100 s of audio"


def test_limits_that_lengths_just_keep(tmp_path):
    """A corpus says half a second more than there is, a segment ends half a second late: rounding makes these no problem."""
    check = utterance_check()
    assert 4.4 - 3.9 > 0.5 and 0.68 > 0.18 + 0.5
    audio = str(write_audio(tmp_path / "a.wav", samples=noise(3.9)))
    assert check(Utterance("a", audio, "", "en", stated=4.4))[1] is None
    assert check(Utterance("a", audio, "", "en", stated=4.401))[1] == "3.90 s of audio; its corpus says 4.401 s"
    audio = str(write_audio(tmp_path / "b.wav", samples=noise(0.18)))
    for end, problem in ((0.68, None), (0.681, "a segment to 0.681 s; its recording ends at 0.18 s")):
        assert check(Utterance("b", audio, "", "en", segment=Segment("b", 0.0, end)))[1] == problem


def test_samples_that_a_header_does_not_claim(tmp_path, caplog):
    """A corpus leaves such a file out; a tool takes what the header says, with a warning."""
    whole = write_audio(tmp_path / "a.wav", samples=np.tile([0.5, -0.5], 8000)).read_bytes()
    (tmp_path / "b.wav").write_bytes(whole[:40] + struct.pack("<I", 8000) + whole[44:])
    says = "0.25 s, but 0.75 s"
    with pytest.raises(UserError, match=rf"b.wav: its header says {says} more follow; write it again"):
        check_audio(tmp_path / "b.wav")
    assert len(read_audio(tmp_path / "b.wav")[0]) == 4000
    assert f"its header says {says} more follow, which are not used" in caplog.text
    odd = write_audio(tmp_path / "odd.wav", samples=np.tile([0.5, -0.5, 0.25], 5335), subtype="PCM_U8").read_bytes()
    odd = odd[: odd.index(b"data") + 8 + 16005]  # without the byte that makes the number even
    kinds = (b"LIST", b"_PMX")
    behind = [whole + b"\0" * 20000, whole + b"ID3\x04" + bytes(range(256)) * 80]
    behind += [data + name + struct.pack("<I", 20001) + b"\x01" * 20000 for data in (whole, odd) for name in kinds]
    for content in behind:  # padding, tags, other chunks
        (tmp_path / "b.wav").write_bytes(content)
        assert check_audio(tmp_path / "b.wav")["duration"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("size", [2**63 - 1, 2**64 - 1])
def test_w64_that_was_piped(tmp_path, caplog, size):
    path = tmp_path / "a.w64"
    soundfile.write(path, noise(1.0, 16000), 16000, format="W64")
    data = bytearray(path.read_bytes())
    place = data.index(b"data\xf3\xac") + 16
    data[place : place + 8] = struct.pack("<Q", size)
    path.write_bytes(data)
    assert check_audio(path)["duration"] == 1.0
    assert len(read_audio(path)[0]) == 16000 and not caplog.records


def test_a_part_of_a_file_whose_codec_cannot_seek(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, noise(2.0, 8000), 8000, subtype="GSM610")
    whole, _ = read_audio(path)
    (part,) = stream_audio(path, 8000, start=1.0, duration=0.5)
    np.testing.assert_array_equal(part, whole[8000:12000])


def test_half_a_character_can_be_listed(tmp_path):
    path, shown = list_problems(tmp_path, [("a\udce9.wav", "text is \ud800")])
    assert path.read_text(encoding="utf-8") == "a\\udce9.wav: text is \\ud800\n" == shown[2:] + "\n"
