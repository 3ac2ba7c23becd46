"""utils/transcribe.py as its user meets it: files, pipes, languages, formats, errors; and the modules behind it."""

import contextlib
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from lhotse import CutSet, Recording, SupervisionSegment
from tiny_asr import babble, save_random_model
from tool_harness import ENVIRONMENT, interrupted_at_standard_input, one_line_error, run_tool, tool_command

from pyspeech.asr.api import Recognizer
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import ContextConfig, EarlyStopping, Endpointing, SearchConfig
from pyspeech.asr.hypotheses import Word
from pyspeech.asr.quantization import quantize_bundle
from pyspeech.asr.recognizer import Alternative, Recognition, recognize
from pyspeech.asr.streaming import StreamingRecognizer
from pyspeech.asr.transcripts import LINE_WIDTH, LONGEST, Transcript, render
from pyspeech.audio.io import read_audio
from pyspeech.commands import transcribe
from pyspeech.commands.terminal import clipped
from pyspeech.errors import UserError
from pyspeech.model_file import write
from pyspeech.sad.config import KIND
from pyspeech.text.transcript_files import read_transcripts
from pyspeech.text.width import display_width
from steps.asr.score import recognizer as recipe_recognizer
from tests.audio.test_live import wav_stream

RATE = 16000
SHORT = 2.0  # seconds of the file that most tests recognise


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """{name: folder} of random models in an experiment folder."""
    folder = tmp_path_factory.mktemp("exp") / "mini" / "models"
    (folder.parent / "training" / "vanilla").mkdir(parents=True)
    (folder.parent / "training" / "vanilla" / "model.pt").touch()
    return {
        "lid": save_random_model(folder / "multi_softmax_lid", "multi_softmax", lid=True),
        "plain": save_random_model(folder / "multi_softmax", "multi_softmax"),
        "vanilla": save_random_model(folder / "vanilla", "vanilla"),
        "onehot": save_random_model(folder / "onehot", "onehot"),
        "one": save_random_model(folder.parents[1] / "one", "multi_softmax", lid=True, languages=["hi-IN"]),
        "monolingual": save_random_model(folder / "monolingual" / "hi-IN", "monolingual", languages=["hi-IN"]),
    }


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "short.wav"
    soundfile.write(path, babble(SHORT), RATE)
    return path


def call(capsys, *arguments):
    """The tool in this process, on all of the audio, which is no speech: (what it prints, exit status)."""
    status = transcribe.main(["--no-vad", *map(str, arguments)])
    return capsys.readouterr().out, status


def call_json(capsys, *arguments):
    output, status = call(capsys, "--format", "json", *arguments)
    assert status == 0
    return [json.loads(line) for line in output.splitlines()]


def test_every_kind_of_file_in_one_run(models, tmp_path):
    folder, output = tmp_path / "mañana हिन्दी 1", tmp_path / "new" / "text"
    (folder / "below").mkdir(parents=True)
    soundfile.write(folder / "día stereo 44.flac", np.stack([babble(3, 44100), 0 * babble(3, 44100)], axis=1), 44100)
    soundfile.write(folder / "96k.wav", babble(2, 96000), 96000, subtype="PCM_U8")
    soundfile.write(folder / "below" / "नमस्ते.wav", babble(2.5, 8000), 8000)
    soundfile.write(folder / "silence.wav", np.zeros(RATE), RATE)
    soundfile.write(folder / "one.wav", np.ones(1), RATE, subtype="FLOAT")
    soundfile.write(folder / "at 48k one.wav", np.ones(1), 48000, subtype="FLOAT")
    soundfile.write(folder / "no samples.wav", np.zeros(0), RATE)
    soundfile.write(folder / "whole.wav", babble(2), RATE)
    (folder / "truncated.wav").write_bytes((folder / "whole.wav").read_bytes()[: 44 + RATE])
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("This is a letter, not a recording.\n")
    done = run_tool("transcribe", "--no-vad", folder, "--model", models["lid"], "-o", output, "--format", "json")
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    bad = ["empty.wav: is empty", "no samples.wav: ", "text.wav: cannot be read as audio"]
    assert len(errors) == len(bad) + 1 and errors[-1] == "error: 3 of 11 recordings could not be transcribed"
    for name, line in zip(bad, errors, strict=False):
        assert str(folder / name) in line
    assert "truncated.wav: truncated" in done.stderr and "\n8 recordings: " in done.stderr
    bundle = load_model(models["lid"])
    names = {path.stem: path for path in folder.rglob("*.*") if path.stem not in ("empty", "no samples", "text")}
    assert {path.stem for path in output.iterdir()} == set(names)
    for name, path in names.items():
        found = json.loads((output / f"{name}.json").read_text(encoding="utf-8"))
        samples = read_audio(path, RATE)[0]
        (expected,) = recognize(bundle, [samples])
        assert found["recording"] == name and found["text"] == expected.text and found["language"] == expected.language
        assert found["duration"] == round(len(samples) / RATE, 3)
    assert found["text"]


def test_a_short_file_is_what_the_library_says(models, short, capsys):
    (found,) = call_json(capsys, short, "--model", models["lid"], "--nbest", "3")
    (expected,) = recognize(load_model(models["lid"]), [read_audio(short)[0]])
    (segment,) = found["segments"]
    assert expected.text and found["text"] == segment["text"] == expected.text and found["duration"] == SHORT
    assert found["language"] == segment["language"] == expected.language == max(expected.lid, key=expected.lid.get)
    assert [item["text"] for item in segment["nbest"]] == [item.text for item in expected.nbest[:3]]
    scores = [item["score"] for item in segment["nbest"]]
    np.testing.assert_allclose(scores, [item.score for item in expected.nbest[:3]], atol=1e-3)
    assert [word["word"] for word in segment["words"]] == expected.text.split()
    assert all(0 <= word["start"] < word["end"] <= SHORT and 0 < word["confidence"] <= 1 for word in segment["words"])
    assert found["lid"] == pytest.approx(expected.lid, abs=1e-3) and found["t_avg"] == 3.0
    assert call(capsys, short, "--model", models["lid"])[0] == f"short\t{expected.text}\n"


@pytest.mark.parametrize("option", [{"beam": 1}, {"max_symbols": 1}, {"prune": 0.3}, {"symbol_bonus": 0.7}])
def test_the_search_is_the_recipes(models, tmp_path, capsys, option):
    """The texts that the recipe decodes, and so its WER, with each option changed; also as options, of an older model."""
    search = SearchConfig(**option)
    save_random_model(tmp_path / "models" / "multi_softmax_lid", "multi_softmax", lid=True, search=search)
    cuts = [write_utterance(tmp_path / f"{number}.wav", babble(2, seed=number)) for number in range(4)]
    CutSet.from_cuts(cuts).to_file(tmp_path / "test.jsonl.gz")
    bonus = option.get("symbol_bonus", 0)  # that dev chose: the recipe's own options have none
    conf = SimpleNamespace(search=replace(search, symbol_bonus=0.0), symbol_bonuses=[0, bonus], context=ContextConfig())
    decode = recipe_recognizer(SimpleNamespace(dir=tmp_path), conf, "multi_softmax_lid")
    table = {line["id"]: line["hyp"] for line, *_ in decode("hi-IN", cuts)}

    def tool(model, *options):
        found = call_json(capsys, tmp_path / "test.jsonl.gz", "--model", model, *options)
        return {one["recording"]: one["text"] for one in found}

    assert tool(tmp_path / "models" / "multi_softmax_lid") == table
    assert tool(models["lid"]) != table
    ((name, value),) = option.items()
    assert tool(models["lid"], f"--{name.replace('_', '-')}", value) == table
    bundle = Recognizer.load(models["lid"], vad=False, **option)
    assert [bundle.transcribe(tmp_path / f"{number}.wav").text for number in range(4)] == list(table.values())


def write_utterance(path, samples):
    """A cut of a file of its own."""
    soundfile.write(path, samples, RATE)
    cut = Recording.from_file(path).to_cut()
    cut.supervisions = [SupervisionSegment(cut.id, cut.recording_id, 0.0, cut.duration, text="क", language="hi-IN")]
    return cut


def test_a_long_file_comes_in_segments(models, tmp_path, capsys, monkeypatch):
    """With and without --stream: those of the streaming recogniser that gets all samples at once."""
    monkeypatch.setattr(transcribe, "WHOLE", 3.0)
    soundfile.write(tmp_path / "long.wav", babble(7, 8000), 8000)
    samples = read_audio(tmp_path / "long.wav", RATE)[0]
    recognizer = StreamingRecognizer(
        load_model(models["lid"]), search=SearchConfig(beam=1), endpointing=Endpointing(silence_after=0.3)
    )
    expected = [result for result in recognizer.add(samples) if result.final] + [recognizer.finish()]
    expected = [result for result in expected if result.text]
    assert len(expected) > 2
    options = [tmp_path / "long.wav", "--model", models["lid"], "--min-silence", "0.3", "--beam", "1"]
    (whole,) = call_json(capsys, *options)
    assert [item["text"] for item in whole["segments"]] == [item.text for item in expected]
    assert [item["start"] for item in whole["segments"]] == [round(item.start, 3) for item in expected]
    assert whole["text"] == " ".join(item.text for item in expected) and whole["duration"] == 7.0
    parts = call_json(capsys, *options, "--stream")
    assert [part["segments"] for part in parts] == [[segment] for segment in whole["segments"]]
    (stored,) = read_transcripts_of(call(capsys, *options, "--stream", "--format", "json")[0], tmp_path).values()
    assert stored.text == whole["text"]
    subtitles = parse_srt(call(capsys, *options, "--format", "srt", "--stream")[0])
    assert [number for number, *_ in subtitles] == list(range(1, len(subtitles) + 1))
    assert " ".join(line for *_, lines in subtitles for line in lines) == whole["text"]
    assert call(capsys, *options, "--stream")[0] == "".join(f"long\t{item.text}\n" for item in expected)
    assert call(capsys, *options)[0] == f"long\t{whole['text']}\n"
    assert call(capsys, *options, "--stream", "-o", tmp_path)[0] == ""
    assert (tmp_path / "long.txt").read_text(encoding="utf-8") == "".join(item.text + "\n" for item in expected)


def read_transcripts_of(output, folder):
    """What score_wer reads of the screen."""
    (folder / "screen.json").write_text(output, encoding="utf-8")
    return read_transcripts(folder / "screen.json").texts


def test_long_and_short_files_keep_their_order(models, tmp_path, capsys):
    for name in "ac":
        soundfile.write(tmp_path / f"{name}.wav", babble(1, seed=3), RATE)
    soundfile.write(tmp_path / "b.wav", babble(transcribe.WHOLE + 1, 8000), 8000)
    found = call_json(capsys, tmp_path, "--model", models["plain"], "--language", "en-IN", "--beam", "1")
    assert [item["recording"] for item in found] == ["a", "b", "c"] and len(found[1]["segments"]) > 1


def test_tables_and_manifests(models, short, tmp_path, capsys):
    """Cuts: the part of the recording that they are, times from its start."""
    (tmp_path / "wav.scp").write_text(f"first {short}\nsecond {short}\n")
    cut = {
        "id": "cut-1",
        "start": 0.5,
        "duration": 1.0,
        "channel": 0,
        "type": "MonoCut",
        "recording": {
            "id": "r",
            "sources": [{"type": "file", "channels": [0], "source": str(short)}],
            "sampling_rate": RATE,
            "num_samples": int(SHORT * RATE),
            "duration": SHORT,
        },
    }
    (tmp_path / "cuts.jsonl").write_text(json.dumps(cut) + "\n")
    found = call_json(capsys, tmp_path / "wav.scp", tmp_path / "cuts.jsonl", "--model", models["lid"])
    assert [item["recording"] for item in found] == ["first", "second", "cut-1"]
    samples = read_audio(short)[0]
    expected = recognize(load_model(models["lid"]), [samples, samples[RATE // 2 : 3 * RATE // 2]])
    assert [item["text"] for item in found] == [expected[0].text, expected[0].text, expected[1].text]
    assert found[2]["duration"] == 1.0


def test_channel(models, short, tmp_path, capsys):
    samples = soundfile.read(short)[0]
    soundfile.write(tmp_path / "stereo.wav", np.stack([0 * samples, samples], axis=1), RATE)
    options = ["--model", models["lid"], "--format", "ctm"]
    mono = call(capsys, short, *options)[0]
    second = call(capsys, tmp_path / "stereo.wav", "--channel", 1, *options)[0]
    assert mono and mono.replace("short 1", "stereo 2") == second
    assert call(capsys, tmp_path / "stereo.wav", "--channel", 2, *options) == ("", 1)


def test_a_fault_in_a_batch_costs_one_recording(models, short, tmp_path, capsys, monkeypatch):
    for name, length in (("a", 1.0), ("b", 1.5), ("c", 2.0)):
        soundfile.write(tmp_path / f"{name}.wav", babble(length), RATE)

    def faulty(bundle, samples_list, *settings):
        if any(len(samples) == 1.5 * RATE for samples in samples_list):
            raise RuntimeError("out of order")
        return recognize(bundle, samples_list, *settings)

    monkeypatch.setattr("pyspeech.asr.recognizer.recognize", faulty)
    output, status = call(capsys, tmp_path, "--model", models["lid"])
    assert [line.split("\t")[0] for line in output.splitlines()] == ["a", "c"] and status == 1


@pytest.fixture
def give_stdin(monkeypatch, tmp_path):
    """A function that makes bytes the standard input."""
    with contextlib.ExitStack() as stack:

        def give(data):
            (tmp_path / "stdin").write_bytes(data)
            monkeypatch.setattr(sys, "stdin", stack.enter_context(open(tmp_path / "stdin")))

        yield give


@pytest.mark.parametrize("stream", [False, True])
def test_standard_input(models, short, capsys, give_stdin, stream):
    samples = soundfile.read(short)[0]
    raw = soundfile.read(short, dtype="int16")[0].tobytes()
    flac = io.BytesIO()
    soundfile.write(flac, samples, RATE, format="FLAC")
    law = io.BytesIO()
    soundfile.write(law, samples, RATE, format="WAV", subtype="ULAW")
    texts = {}
    for name, data in {
        "file": short.read_bytes(),
        "raw": raw,
        "wav": wav_stream(samples),
        "flac": flac.getvalue(),
        "at its rate": raw,
        "mu-law": law.getvalue(),
    }.items():
        give_stdin(data)
        rate = {"raw": ["--raw"], "at its rate": ["--raw", "--rate", "8000"]}.get(name, [])
        found = call_json(capsys, "-", "--model", models["lid"], *(["--stream"] if stream else []), *rate)
        texts[name] = " ".join(item["text"] for item in found)
        assert all(item["recording"] == "stdin" for item in found)
    assert texts["file"] == texts["raw"] == texts["flac"] == texts["wav"] != texts["at its rate"] and texts["file"]
    assert texts["mu-law"]
    (short.parent / "a.raw").write_bytes(raw)
    (found,) = call_json(capsys, short.parent / "a.raw", "--raw", "--model", models["lid"])
    assert found["text"] == call_json(capsys, short, "--model", models["lid"])[0]["text"]
    give_stdin(raw)
    assert call(capsys, "-", "--model", models["lid"], *(["--stream"] if stream else [])) == ("", 1)
    give_stdin(b"")
    assert call(capsys, "-", "--model", models["lid"], *(["--stream"] if stream else [])) == ("", 1)


@pytest.mark.parametrize("arguments", [["--stream", "--raw"], ["--raw"], ["--stream"], []])
def test_ctrl_c_ends_a_stream_that_stalls(models, short, capsys, arguments):
    """What came is printed; also of a file that is read to its end first."""
    raw = soundfile.read(short, dtype="int16")[0].tobytes()
    data = raw if "--raw" in arguments else wav_stream(soundfile.read(short)[0])
    command = tool_command("transcribe", "-", "--model", models["lid"], "--no-vad", *arguments)
    output, messages, status = interrupted_at_standard_input(command, data)
    expected = call(capsys, short, "--model", models["lid"], *[option for option in arguments if option != "--raw"])[0]
    assert status == 0 and output and output == expected.replace("short\t", "stdin\t")
    assert "\n1 recording: 2.00 s of audio" in f"\n{messages}"


def test_partial_results_show_on_a_terminal(models, short, capsys):
    """And Ctrl-C ends a recording that would go on: the text of what came is printed."""
    master, slave = os.openpty()
    environment = {**ENVIRONMENT, "COLUMNS": "60"}
    command = tool_command("transcribe", "-", "--model", models["lid"], "--stream", "--raw", "--no-vad")
    raw = soundfile.read(short, dtype="int16")[0].tobytes()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=slave, env=environment) as process:
        os.close(slave)
        watch = threading.Timer(120, process.kill)  # a tool that does not stop fails the test
        watch.start()
        process.stdin.write(raw)
        process.stdin.flush()
        seen = b""
        while b"0:00:02 " not in seen:  # all that was written is recognised, but for what fills no block
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        output = process.stdout.read().decode()  # the recorder goes on: standard input stays open
        assert process.wait() == 0
        watch.cancel()
    expected = call(capsys, short, "--model", models["lid"], "--stream")[0]
    assert output and output == expected.replace("short\t", "stdin\t")
    shown = seen.decode(errors="ignore").split("\r\x1b[K")
    assert len(set(shown)) > 5 and all(display_width(line) < 60 for line in shown)
    assert any(re.fullmatch(r"stdin 0:00:0\d .+", line) for line in shown)
    os.close(master)


def test_languages(models, short, capsys):
    samples = read_audio(short)[0]
    for name, language in (
        ("plain", "ta-IN"),
        ("onehot", "hi-IN"),
        ("lid", "en-IN"),
        ("vanilla", "auto"),
        ("monolingual", "auto"),
    ):
        (found,) = call_json(capsys, short, "--model", models[name], "--language", language)
        (expected,) = recognize(load_model(models[name]), [samples], None if language == "auto" else language)
        assert expected.text and (found["text"], found["language"]) == (expected.text, expected.language)
        assert language == "auto" or found["language"] == language
        if language != "auto":
            assert call_json(capsys, short, "--model", models[name], "--language", language[:2]) == [found]


@pytest.mark.parametrize("name", ["plain", "onehot"])
def test_a_model_that_cannot_tell_languages(models, short, name):
    with pytest.raises(UserError, match="cannot tell languages apart; give one of en-IN, hi-IN, ta-IN"):
        transcribe.main([str(short), "--model", str(models[name])])


def test_early_stopping_and_int8(models, short, capsys):
    samples = read_audio(short)[0]
    for options, stopping in (
        (["--tau", "10"], EarlyStopping("sum_logp", 10, 0)),
        (["--threshold", "0.05", "--rule", "mean_p"], EarlyStopping("mean_p", 0, 0.05)),
    ):
        (found,) = call_json(capsys, short, "--model", models["lid"], *options)
        (expected,) = recognize(load_model(models["lid"]), [samples], early_stopping=stopping)
        assert found["t_avg"] == round(expected.t_avg, 4) < 3 and found["text"] == expected.text
    (found,) = call_json(capsys, short, "--model", models["lid"], "--int8", "--language", "ta-IN", "--device", "cpu")
    with pytest.raises(UserError, match="--int8: computes on the CPU"):
        transcribe.main([str(short), "--model", str(models["lid"]), "--int8", "--device", "cuda"])
    (exact,) = call_json(capsys, short, "--model", models["lid"], "--language", "ta-IN")
    (expected,) = recognize(quantize_bundle(load_model(models["lid"])), [samples], "ta-IN")
    assert found["text"] == expected.text
    assert found["segments"][0]["nbest"][0]["score"] != exact["segments"][0]["nbest"][0]["score"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["absent.wav"], "absent.wav: no such file or folder"),
        (["--language", "fr-FR"], "language fr-FR: the model knows en-IN, hi-IN, ta-IN"),
        (["--nbest", "2", "--format", "ctm"], "--nbest 2: --format ctm has no place"),
        (["--stream", "--format", "trn"], "--stream: --format trn needs the whole recording"),
        (["--nbest", "5", "--beam", "4"], "--beam 4: .* expected at least 5"),
        (["--beam", "100000"], "search option beam=100000: expected a whole number, 1 to 1000"),
        (["--nbest", "100000"], "beam=100000"),
        (["--tau", "3", "--language", "hi-IN"], "early stopping is for --language auto"),
        (["--tau", "3", "--model", "ONE"], "identification of several languages.* has hi-IN$"),
        (["--rule", "mean_p"], "--rule mean_p: nothing is stopped early without --tau or --threshold"),
        (["-o", "SHORT"], "-o .*: cannot make this folder"),
        (["--model", "nowhere"], "--model nowhere: no such file or folder"),
        (
            ["--model", "EXP"],
            "no model.pt in it; choose one of .*models/monolingual/hi-IN, .*multi_softmax_lid, "
            "[^ ]*models/onehot, [^ ]*models/vanilla$",
        ),
        (["--model", "SHORT"], "is not a model.pt; expected a folder that the recipe indic made"),
        (["--model", "SAD"], "model.pt: holds a model of kind SAD network; expected transducer"),
    ],
)
def test_errors_are_one_line(models, short, tmp_path, arguments, message):
    write(tmp_path, KIND, torch.nn.Linear(1, 1))
    places = {"EXP": str(models["lid"].parents[1]), "ONE": str(models["one"]), "SHORT": str(short), "SAD": str(tmp_path)}
    arguments = [places.get(word, word) for word in arguments]
    with pytest.raises(UserError, match=message) as error:
        transcribe.main(["--model", str(models["lid"]), *arguments, str(short)])
    assert "\n" not in str(error.value)


def test_names_that_differ_by_a_space(models, short, tmp_path):
    for name in ("my call", "my_call"):
        (tmp_path / f"{name}.wav").write_bytes(short.read_bytes())
    with pytest.raises(UserError, match="my_call.wav: would have the name 'my_call' in --format ctm, and so would .*my call"):
        transcribe.main(["--model", str(models["lid"]), "--format", "ctm", str(tmp_path)])


# The formats, on results made by hand.


def recognition(words, start=0.0, seconds=None, language="hi-IN", lid=None, nbest=()):
    """words: [(text, start, end)]"""
    text = " ".join(word[0] for word in words)
    seconds = seconds or words[-1][2] - start + 0.5
    alternatives = [Alternative(text, -1.5, 0.5), *nbest]
    return Recognition(text, language, 0.5, [Word(*word, 0.25) for word in words], alternatives, start, seconds, 2.0, lid or {})


@pytest.fixture
def transcript():
    first = recognition(
        [("एक", 0.3, 0.6), ("दो", 0.63, 0.9)],
        seconds=2.1,
        lid={"hi-IN": 0.8, "ta-IN": 0.2},
        nbest=[Alternative("एक", -3.25, 0.4)],
    )
    second = recognition(
        [("ஒன்று", 3723.0, 3723.36)], start=3722.4, seconds=1.0, language="ta-IN", lid={"hi-IN": 0.1, "ta-IN": 0.9}
    )
    return Transcript("a call", [first, second], 3725.0, channel=2)


def test_text_and_nists_formats(transcript):
    assert render("text", transcript) == "एक दो\nஒன்று\n"
    assert render("text", transcript, nbest=2) == ("0.00\t-1.5000\tएक दो\n0.00\t-3.2500\tएक\n3722.40\t-1.5000\tஒன்று\n")
    assert render("ctm", transcript) == (
        "a_call 2 0.30 0.30 एक 0.2500\na_call 2 0.63 0.27 दो 0.2500\na_call 2 3723.00 0.36 ஒன்று 0.2500\n"
    )
    assert render("stm", transcript) == "a_call 2 unknown 0.00 2.10 एक दो\na_call 2 unknown 3722.40 3723.40 ஒன்று\n"
    assert render("trn", transcript) == "एक दो ஒன்று (a_call)\n"


def test_json(transcript):
    found = json.loads(render("json", transcript, nbest=2))
    assert found["recording"] == "a call" and found["text"] == "एक दो ஒன்று" and found["duration"] == 3725.0
    assert found["language"] == "hi-IN"  # of the longer segment
    assert found["lid"]["hi-IN"] == pytest.approx((0.8 * 2.1 + 0.1) / 3.1, abs=1e-4) and found["t_avg"] == 2.0
    first, second = found["segments"]
    assert first["nbest"][1] == {"text": "एक", "score": -3.25, "confidence": 0.4} and second["end"] == 3723.4
    assert first["words"][0] == {"word": "एक", "start": 0.3, "end": 0.6, "confidence": 0.25}


def test_subtitles(transcript):
    """Short ones stay a second, where there is time for it."""
    assert render("srt", transcript, first_subtitle=7) == (
        "7\n00:00:00,300 --> 00:00:01,300\nएक दो\n\n8\n01:02:03,000 --> 01:02:03,400\nஒன்று\n\n"
    )


def test_web_subtitles(transcript):
    """WebVTT: a header, a point before the milliseconds, and & and < escaped."""
    cues = "00:00:00.300 --> 00:00:01.300\nएक दो\n\n{}\n01:02:03.000 --> 01:02:03.400\nஒன்று\n\n"
    assert render("vtt", transcript) == "WEBVTT\n\n1\n" + cues.format(2)
    assert render("vtt", transcript, first_subtitle=7) == "7\n" + cues.format(8)  # a later part of a stream
    marked = Transcript("x", [recognition([("<b>&", 0.0, 1.0)], seconds=2.0)], 2.0)
    assert render("vtt", marked).endswith("\n&lt;b&gt;&amp;\n\n") and "<b>&\n" in render("srt", marked)


@pytest.mark.parametrize("options", [["vtt"], ["srt"], ["vtt", "--stream"]])
def test_subtitles_of_several_recordings_need_files(models, short, tmp_path, capsys, options):
    (tmp_path / "other.wav").write_bytes(short.read_bytes())
    options = (short, tmp_path / "other.wav", "--model", models["lid"], "--format", *options)
    with one_line_error("--format .*: 2 recordings do not fit into one file; add -o DIR, for one of each"):
        call(capsys, *options)
    assert call(capsys, *options, "-o", tmp_path / "out") == ("", 0) and len(list((tmp_path / "out").iterdir())) == 2


def test_web_subtitles_of_a_stream(models, tmp_path, capsys):
    """One header, and the same on the screen as in a file."""
    soundfile.write(tmp_path / "a.wav", np.concatenate([babble(4), np.zeros(3 * RATE), babble(4, seed=1)]), RATE)
    options = (tmp_path / "a.wav", "--model", models["plain"], "--language", "hi-IN", "--stream", "--format", "vtt")
    shown = call(capsys, *options)[0]
    call(capsys, *options, "-o", tmp_path / "out")
    assert shown.count("WEBVTT") == 1 and shown.count(" --> ") > 1 and (tmp_path / "out" / "a.vtt").read_text() == shown
    soundfile.write(tmp_path / "a.wav", np.zeros(RATE), RATE)
    assert transcribe.main([str(option) for option in options]) == 0 and capsys.readouterr().out == "WEBVTT\n\n"


def parse_srt(text):
    """[(number, start, end, lines)], by the format's own description."""
    entries = []
    for block in text.strip().split("\n\n"):
        number, times, *lines = block.split("\n")
        hours, minutes, seconds, thousandths = np.array(re.findall(r"\d+", times), dtype=float).reshape(2, 4).T
        start, end = hours * 3600 + minutes * 60 + seconds + thousandths / 1000
        entries.append((int(number), start, end, lines))
    return entries


def test_a_subtitle_ends_where_the_next_one_starts():
    words = [("x" * 60, 0.2 * number, 0.2 * number + 0.2) for number in range(3)]
    entries = parse_srt(render("srt", Transcript("x", [recognition(words, seconds=9.0)], 9.0)))
    assert [entry[1:3] for entry in entries] == [(0.0, 0.4), (0.4, 1.4)]


def test_long_subtitles_are_cut(rng):
    words, time = [], 0.0
    for number in range(400):
        length = rng.uniform(0.1, 0.6)
        words.append(("क" * int(rng.integers(1, 13)) if number != 50 else "x" * 60, time, time + length))
        time += length + (3.0 if number % 70 == 69 else rng.uniform(0, 0.3))
    entries = parse_srt(render("srt", Transcript("x", [recognition(words)], time)))
    assert [number for number, *_ in entries] == list(range(1, len(entries) + 1)) and len(entries) > 20
    assert " ".join(" ".join(lines) for *_, lines in entries).split() == [word[0] for word in words]
    assert all(1 <= len(lines) <= 2 for *_, lines in entries)
    assert all(len(line) <= LINE_WIDTH or line == "x" * 60 for *_, lines in entries for line in lines)
    assert all(0 < end - start <= LONGEST + 1e-3 for _, start, end, _ in entries)
    ends = [end for _, _, end, _ in entries]
    starts = [start for _, start, _, _ in entries]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    pauses = [word[2] for word in words[69::70]][:-1]
    assert all(any(abs(end - pause) <= 1.001 and end >= pause - 1e-3 for end in ends) for pause in pauses)


@pytest.mark.parametrize(
    "format, expected", [("text", ""), ("ctm", ""), ("stm", ""), ("trn", "(x)\n"), ("srt", ""), ("vtt", "WEBVTT\n\n")]
)
def test_nothing_said(format, expected):
    silent = recognition([], seconds=2.0)
    assert render(format, Transcript("x", [silent], 2.0)) == render(format, Transcript("x", [], 2.0)) == expected
    assert json.loads(render("json", Transcript("x", [], 0.0)))["language"] is None
    assert json.loads(render("json", Transcript("x", [silent], 2.0)))["text"] == ""


def test_lines_are_clipped_to_the_screen():
    assert clipped("one two three", 13) == "one two three" and clipped("one two three", 12) == "... three"
    assert clipped("supercalifragilistic", 10) == "" and display_width("कि") == 2 and display_width("漢") == 2
    assert math.isclose(display_width("नमस्ते"), 4)
