"""utils/align.py as its user meets it: one recording and many, texts of every format, errors."""

import json

import pytest
import soundfile
from tiny_asr import babble, save_random_model
from tool_harness import one_line_error, run_tool

from pyspeech import Recognizer
from pyspeech.asr.aligned import render
from pyspeech.asr.checkpoint import load_model
from pyspeech.commands import align
from pyspeech.errors import UserError

RATE = 16000


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_random_model(tmp_path_factory.mktemp("exp") / "mini" / "models" / "multi_softmax", "multi_softmax")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for number, name in enumerate(("one", "two three")):
        soundfile.write(folder / f"{name}.wav", babble(2 + number, seed=number), RATE)
    return folder


def call(capsys, *arguments):
    """The tool in this process: (what it prints, exit status)."""
    status = align.main([str(argument) for argument in arguments])
    return capsys.readouterr().out, status


def test_one_recording(model, recordings):
    done = run_tool("align", recordings / "one.wav", "--say", "कख ग", "--model", model)
    expected = Recognizer(load_model(model), "hi").align(recordings / "one.wav", "कख ग")
    assert done.returncode == 0 and done.stdout == render("ctm", expected)
    assert [line.split()[4] for line in done.stdout.splitlines()] == ["कख", "ग"]
    assert "2 words in 2.00 s of audio; computed in " in done.stderr


TEXTS = {
    "text": "one\tab c\ntwo three\tகख\n",
    "text.trn": "ab c (one)\nd (two_three)\n",
    "text.stm": "one 1 s 0.00 1.00 ab\none 1 s 1.00 2.00 c\ntwo_three 1 s 0.00 2.00 d\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_by_name(model, recordings, tmp_path, capsys, name):
    (tmp_path / name).write_text(TEXTS[name].replace("கख", "d"), encoding="utf-8")
    output = tmp_path / "out"
    assert call(capsys, recordings, "--text", tmp_path / name, "--model", model, "--format", "json", "-o", output)[1] == 0
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in output.iterdir()}
    assert {name: one["text"] for name, one in found.items()} == {"one": "ab c", "two three": "d"}
    assert found["one"]["language"] == "en-IN"


def test_symbols_and_text_grids(model, recordings, capsys):
    arguments = (recordings / "one.wav", "--say", "ab", "--model", model, "--language", "en")
    assert [line.split()[4] for line in call(capsys, *arguments, "--symbols")[0].splitlines()] == ["B-a", "b"]
    assert 'name = "symbols"' in call(capsys, *arguments, "--format", "textgrid")[0]
    assert call(capsys, *arguments, "--format", "vtt")[0].startswith("WEBVTT\n\n1\n00:00:")


def test_alternatives_are_refused(model, recordings, tmp_path, capsys, caplog):
    """Of trn, where braces have a meaning, and stm; other recordings are aligned."""
    for name, text in (
        ("a.trn", "a { b / c } (one)\nd (two_three)\n"),
        ("a.stm", "one 1 s 0 1 { b / @ }\ntwo_three 1 s 0 1 d\n"),
    ):
        (tmp_path / name).write_text(text)
        output, status = call(capsys, recordings, "--text", tmp_path / name, "--model", model)
        assert status == 1 and [line.split()[0] for line in output.splitlines()] == ["two_three"]
        assert f"{tmp_path / name}: one: has alternatives in braces; expected what is said: " in caplog.text
    (tmp_path / "text").write_text("one {breath} ab\n")
    assert call(capsys, recordings / "one.wav", "--text", tmp_path / "text", "--model", model)[1] == 0


def test_segments_that_are_not_scored_are_left_out(model, recordings, tmp_path, capsys):
    lines = ["one 1 s 0.00 1.00 ab", "one 1 s 1.00 1.50 IGNORE_TIME_SEGMENT_IN_SCORING", "one 1 s 1.50 2.00 c"]
    lines.append("one 1 inter_segment_gap 2.00 2.00 <O> inter_segment_gap")
    (tmp_path / "a.stm").write_text("\n".join(lines))
    output, status = call(capsys, recordings / "one.wav", "--text", tmp_path / "a.stm", "--model", model)
    assert status == 0 and [line.split()[4] for line in output.splitlines()] == ["ab", "c"]


@pytest.mark.parametrize("format", ["vtt", "srt", "textgrid"])
def test_files_of_one_recording_are_not_joined(model, recordings, tmp_path, capsys, format):
    (tmp_path / "text").write_text("one\tab c\ntwo three\td\n")
    options = (recordings, "--text", tmp_path / "text", "--model", model, "--format", format)
    with one_line_error(f"--format {format}: 2 recordings do not fit into one file; add -o DIR"):
        call(capsys, *options)
    assert call(capsys, *options, "-o", tmp_path / "out") == ("", 0) and len(list((tmp_path / "out").iterdir())) == 2


def test_errors(model, recordings, tmp_path, capsys, caplog):
    (tmp_path / "text").write_text("one\tabq\nfour\ta\n")
    one = recordings / "one.wav"
    assert call(capsys, recordings, "--text", tmp_path / "text", "--model", model) == ("", 1)
    messages = [record.getMessage() for record in caplog.records]
    assert any("text 'abq': the model has no symbols for q (1) in en-IN" in message for message in messages)
    assert any("two three: no text in " in message for message in messages)
    assert any("texts of no recording given: 1" in message for message in messages)
    (tmp_path / "text").write_text("four\ta\n")
    with pytest.raises(UserError, match="text: no text of one, two three; has four"):
        call(capsys, recordings, "--text", tmp_path / "text", "--model", model)
    with pytest.raises(UserError, match="--say: is the text of one recording, not of 2"):
        call(capsys, recordings, "--say", "a", "--model", model)
    with pytest.raises(UserError, match="--say: no text; expected what is said in the recording"):
        call(capsys, one, "--say", " ", "--model", model)
    assert call(capsys, one, "--say", "ab " * 31, "--model", model)[1] == 0
    assert caplog.records[-1].getMessage() == "one: 62 symbols in 2.00 s of audio: is the text that of this recording?"
    with pytest.raises(UserError, match="--symbols: is for --format ctm"):
        call(capsys, one, "--say", "a", "--model", model, "--symbols", "--format", "json")
    with pytest.raises(UserError, match="language fr: the model knows"):
        call(capsys, one, "--say", "a", "--model", model, "--language", "fr")
    done = run_tool("align", one, "--say", "abq", "--model", model)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1 and "error: " in done.stderr
