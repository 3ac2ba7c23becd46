"""utils/anonymize.py as its user meets it: formats, channels, rates, folders, and what cannot be read or written."""

import numpy as np
import pytest
import soundfile
from tool_harness import run_tool

from pyspeech.audio.io import read_audio, read_channels
from pyspeech.commands import anonymize as tool
from pyspeech.errors import UserError
from pyspeech.kaldi.rules import check_data_dir
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


def level_of(samples):
    return 20 * np.log10(np.sqrt(np.mean(np.square(samples))))


def test_speech_near_full_scale_keeps_its_level(done):
    """Of 0.99 of full scale the peaks would be beyond it: they alone are limited."""
    folder, output, said, _ = done
    (given, _), (found, _) = read_audio(folder / "loud.wav"), read_audio(output / "loud.wav")
    expected = anonymize(given, 0.6)
    assert np.abs(expected).max() > 1.01 and "loud.wav: its peaks would be at" in said
    assert level_of(found) == pytest.approx(level_of(given), abs=0.1)
    assert 0.99 < np.abs(found).max() <= 1
    quiet = np.abs(expected) < 0.1  # and what is far from peaks is what it would be, but for what they lost
    assert np.corrcoef(found[quiet], expected[quiet])[0, 1] > 0.95


def test_what_would_clip_is_limited(tmp_path, caplog):
    """Of a constant the steps at both ends; a file of floats has them as they are."""
    levels = {}
    for subtype in ("FLOAT", "PCM_16"):
        soundfile.write(tmp_path / "a.wav", np.full(16000, 0.3), 16000, subtype)
        assert tool.main([str(tmp_path / "a.wav"), str(tmp_path / "b.wav")]) == 0
        levels[subtype] = np.sqrt(np.mean(np.square(read_audio(tmp_path / "b.wav")[0])))
    (message,) = caplog.messages
    assert message.endswith("a.wav: its peaks would be at 3.69 of full scale; they are limited")
    assert levels == pytest.approx({"FLOAT": 0.3, "PCM_16": 0.3}, rel=0.01)


@pytest.fixture
def data_dir(tmp_path):
    """A Kaldi data directory: three utterances of two speakers, one of them read by a command."""
    folder = tmp_path / "data"
    folder.mkdir()
    for index in range(3):
        soundfile.write(folder / f"{index}.wav", make_speech(0.3 + 0.1 * index), 16000)
    tables = {
        "wav.scp": ["a-1 0.wav", f"a-2 cat {folder}/1.wav |", f"b-1 {folder}/2.wav"],
        "utt2spk": ["a-1 a", "a-2 a", "b-1 b"],
        "spk2utt": ["a a-1 a-2", "b b-1"],
        "text": ["a-1 one", "a-2 two words", "b-1 three"],
        "spk2gender": ["a f", "b m"],
    }
    for name, lines in tables.items():
        (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


def coefficient_of(given, found):
    """The one of a grid with which the library makes of a recording what the tool has made of it."""
    grid = np.linspace(0.5, 0.9, 81)
    errors = [np.mean(np.square(anonymize(given, value) - found)) for value in grid]
    return grid[int(np.argmin(errors))]


def test_kaldi_data_directories(data_dir, tmp_path):
    """They become sound ones with the same utterances, speakers and texts, and coefficients by speaker."""
    out = tmp_path / "out"
    arguments = [str(data_dir), str(out), "--coefficient", "0.5-0.9", "--per", "speaker", "--seed", "7"]
    assert tool.main(arguments) == 0
    assert list(check_data_dir(out)) == []
    for name in ("utt2spk", "spk2utt", "text", "spk2gender"):
        assert (out / name).read_text() == (data_dir / name).read_text()
    places = dict(line.split() for line in (out / "wav.scp").read_text().splitlines())
    drawn = [
        coefficient_of(make_speech(0.3 + 0.1 * index), read_audio(places[name])[0])
        for index, name in enumerate(("a-1", "a-2", "b-1"))
    ]
    assert abs(drawn[0] - drawn[1]) < 0.011 and abs(drawn[0] - drawn[2]) > 0.02
    first = read_audio(places["a-1"])[0]
    tool.main(arguments)
    assert np.array_equal(first, read_audio(places["a-1"])[0])
    tool.main(arguments[:-2])  # another seed each time
    assert not np.array_equal(first, read_audio(places["a-1"])[0])
    with pytest.raises(UserError, match="is the folder of the input .*; expected another one"):
        tool.main([str(data_dir), str(data_dir)])
    (data_dir / "text").write_text("x\n")
    with pytest.raises(UserError, match="no sound Kaldi data directory"):
        tool.main([str(data_dir), str(out)])


def test_utterances_of_a_recording_become_files(data_dir, tmp_path):
    (data_dir / "wav.scp").write_text(f"rec {data_dir}/2.wav\n")
    (data_dir / "segments").write_text("a-1 rec 0 0.1\na-2 rec 0.1 0.25\nb-1 rec 0.3 0.5\n")
    out = tmp_path / "out"
    assert tool.main([str(data_dir), str(out), "--coefficient", "0.7"]) == 0
    assert list(check_data_dir(out)) == [] and not (out / "segments").exists()
    given = read_audio(data_dir / "2.wav")[0]
    found = read_audio(out / "wav" / "a-2.wav")[0]
    assert np.abs(found - anonymize(given[1600:4000], 0.7)).max() < 2**-14


def test_tables_of_recordings(data_dir, tmp_path):
    table, out = data_dir / "wav.scp", tmp_path / "out"
    assert tool.main([str(table), str(out), "--coefficient", "0.5-0.9", "--seed", "1"]) == 0
    names = [line.split()[0] for line in (out / "wav.scp").read_text().splitlines()]
    assert names == ["a-1", "a-2", "b-1"] and soundfile.info(str(out / "b-1.wav")).frames == 8000
    drawn = [
        coefficient_of(make_speech(0.3 + 0.1 * index), read_audio(out / f"{name}.wav")[0]) for index, name in enumerate(names)
    ]
    assert len({round(value, 2) for value in drawn}) == 3
    (data_dir / "utt2spk").unlink()
    assert tool.main([str(table), str(out), "--coefficient", "0.5-0.9", "--per", "speaker"]) == 1


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
    for value in ("0", "-1", "nan", "much", "0.9-0.5", "0.5-0.7-0.9", "-", "0-0.5"):
        with pytest.raises(SystemExit):
            tool.main([str(source), str(tmp_path / "x.wav"), "--coefficient", value])
    assert sorted(path.name for path in tmp_path.rglob("*.wav")) == ["a.wav"]
