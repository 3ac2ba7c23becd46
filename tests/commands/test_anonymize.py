"""utils/anonymize.py as its user meets it: formats, channels, rates, folders, and what cannot be read or written."""

import re

import numpy as np
import pytest
import soundfile
from tool_harness import run_tool

from pyspeech.audio.io import read_audio, read_channels
from pyspeech.commands import anonymize as tool
from pyspeech.errors import UserError
from pyspeech.spoof.mcadams import anonymize
from utils.bench.mcadams import make_speech

SPEECH = make_speech(0.4)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """(folder, what the tool made of it, what it said, its status) of a folder with every kind of file."""
    folder = tmp_path_factory.mktemp("voices ñ")
    (folder / "deep er" / "down").mkdir(parents=True)
    soundfile.write(folder / "plain.wav", SPEECH, 16000)
    stereo = np.stack([make_speech(0.3, 44100), np.zeros(13230)], axis=1)
    soundfile.write(folder / "stereo 44.flac", stereo, 44100, "PCM_24")
    soundfile.write(folder / "deep er" / "día.ogg", make_speech(0.3, 22050), 22050)
    soundfile.write(folder / "deep er" / "down" / "float.wav", 3 * SPEECH, 16000, "FLOAT")
    soundfile.write(folder / "phone.au", make_speech(0.3, 8000), 8000, "ULAW")
    soundfile.write(folder / "loud.wav", 0.99 * SPEECH / np.abs(SPEECH).max(), 16000)
    soundfile.write(folder / "one.wav", np.full(1, 0.5), 16000)
    soundfile.write(folder / "slow.wav", np.full(50, 0.5), 1000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.flac").write_text("a letter\n")
    (folder / "notes.txt").write_text("not audio\n")
    output = tmp_path_factory.mktemp("made") / "new folder"
    process = run_tool("anonymize", folder, output, "--coefficient", "0.6")
    return folder, output, process.stderr, process.returncode


GOOD = ("plain.wav", "stereo 44.flac", "deep er/día.ogg", "deep er/down/float.wav", "phone.au", "loud.wav", "one.wav")


def test_bad_files_are_one_line_each_and_the_others_are_done(done):
    folder, output, said, status = done
    assert status == 1 and "Traceback" not in said
    for name, reason in (("empty.wav", "is empty"), ("text.flac", "cannot be read as audio")):
        assert sum(name in line and reason in line for line in said.splitlines()) == 1
    assert "slow.wav: a sampling rate of 1000 Hz: the anonymisation needs at least 2000 Hz" in said
    assert "3 of 10 " in said and "7 files, " in said
    assert sorted(str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()) == sorted(GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_format_rate_channels_and_length_stay(done, name):
    folder, output, said, _ = done
    before, after = soundfile.info(str(folder / name)), soundfile.info(str(output / name))
    for what in ("samplerate", "channels", "frames", "format", "subtype"):
        assert getattr(before, what) == getattr(after, what)


def test_samples_are_those_of_the_library(done):
    folder, output, said, _ = done
    for name, step in (("plain.wav", 2**-15), ("stereo 44.flac", 2**-23), ("deep er/down/float.wav", 1e-6)):
        (given, rate), (found, _) = read_channels(folder / name), read_channels(output / name)
        expected = anonymize(given, 0.6, rate)
        assert np.abs(expected - given).max() > 0.03 and np.abs(found - expected).max() <= 1.01 * step
    assert not read_channels(output / "stereo 44.flac")[0][1].any()


def test_what_is_too_loud_is_made_quieter_not_clipped(done):
    folder, output, said, _ = done
    expected, (found, _) = anonymize(read_audio(folder / "loud.wav")[0], 0.6), read_audio(output / "loud.wav")
    assert np.abs(expected).max() > 1.01 and "loud.wav: its peaks would be at" in said
    assert np.abs(found - expected * 0.999 / np.abs(expected).max()).max() < 1e-4


def test_what_would_clip_says_how_much_quieter_it_is(tmp_path, caplog):
    """Of a constant the steps at both ends; a file of floats keeps the level."""
    levels = {}
    for subtype in ("FLOAT", "PCM_16"):
        soundfile.write(tmp_path / "a.wav", np.full(16000, 0.3), 16000, subtype)
        assert tool.main([str(tmp_path / "a.wav"), str(tmp_path / "b.wav")]) == 0
        levels[subtype] = np.sqrt(np.mean(np.square(read_audio(tmp_path / "b.wav")[0])))
    (message,) = caplog.messages
    quieter = float(re.search(r"a.wav: its peaks would be at 3.69 .* made quieter by ([0-9.]*) dB", message).group(1))
    assert levels["FLOAT"] == pytest.approx(0.3, rel=1e-4)
    assert levels["PCM_16"] == pytest.approx(0.3 * 10 ** (-quieter / 20), rel=0.01)


def test_one_file_into_another_format_and_into_a_folder(tmp_path, caplog, capsys):
    source = tmp_path / "a b.wav"
    soundfile.write(source, SPEECH, 16000)
    assert tool.main([str(source), str(tmp_path / "x.flac"), "--level", "peak"]) == 0
    assert soundfile.info(str(tmp_path / "x.flac")).format == "FLAC"
    assert np.abs(read_audio(tmp_path / "x.flac")[0]).max() == pytest.approx(0.999, abs=1e-4)
    (tmp_path / "out").mkdir()
    assert tool.main([str(source), str(tmp_path / "out")]) == 0 and (tmp_path / "out" / "a b.wav").exists()
    assert tool.main([str(source), str(tmp_path / "new" / "er") + "/"]) == 0
    assert capsys.readouterr().err.endswith(f"s of audio: {tmp_path / 'new' / 'er' / 'a b.wav'}\n")
    assert soundfile.info(str(tmp_path / "new" / "er" / "a b.wav")).frames == len(SPEECH)
    assert tool.main([str(source), str(tmp_path / "y.m4a")]) == 0
    assert soundfile.info(str(tmp_path / "y.m4a.wav")).frames == len(SPEECH) and not (tmp_path / "y.m4a").exists()
    assert capsys.readouterr().err.endswith(f"s of audio: {tmp_path / 'y.m4a.wav'}\n")
    soundfile.write(tmp_path / "odd.wav", SPEECH[:3000], 11025)
    assert tool.main([str(tmp_path / "odd.wav"), str(tmp_path / "odd.opus")]) == 0
    assert soundfile.info(str(tmp_path / "odd.opus.wav")).samplerate == 11025
    assert tool.main([str(source), str(tmp_path / "hidden")]) == 0 and (tmp_path / "hidden.wav").exists()
    first, second, third = caplog.messages
    assert third == f"{source}: {tmp_path}/hidden has no ending that names a format; written as {tmp_path}/hidden.wav"
    assert "this format; written as" in first and "y.m4a.wav" in first and "odd.opus.wav" in second


def test_what_cannot_be_is_said(tmp_path):
    source = tmp_path / "in" / "a.wav"
    source.parent.mkdir()
    soundfile.write(source, SPEECH, 16000)
    (tmp_path / "file").write_text("")
    for arguments, message in (
        (("in/a.wav", "in/a.wav"), "not .* itself"),
        (("in", "in"), "another place"),
        (("in", "in/made"), "another place"),
        (("in", "file"), "expected a folder"),
        (("none.wav", "x.wav"), "no such file"),
        (("in/a.wav", "file/"), "file: is a file; expected a folder"),
    ):
        with pytest.raises(UserError, match=message):
            tool.main([f"{tmp_path}/{argument}" for argument in arguments])
    for arguments, message in (
        (("-", f"{tmp_path}/new/"), "new: is a folder; expected a file"),
        ((str(source), "-"), "OUT -: expected a file or folder to write"),
        ((str(source.parent), "-"), "OUT -: expected a file or folder to write"),
    ):
        with pytest.raises(UserError, match=message):
            tool.main(list(arguments))
    for value in ("0", "-1", "nan", "much"):
        with pytest.raises(SystemExit):
            tool.main([str(source), str(tmp_path / "x.wav"), "--coefficient", value])
    assert sorted(path.name for path in tmp_path.rglob("*.wav")) == ["a.wav"]
