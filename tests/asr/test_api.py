"""Recognizer and Transcript: paths, arrays and tensors, one and many, long and short; files; the same as the command's."""

import json
import re

import numpy as np
import pytest
import soundfile
import torch
from tiny_asr import babble, save_random_model
from tool_harness import one_line_error

from pyspeech.asr import api
from pyspeech.asr.api import Recognizer
from pyspeech.asr.config import Endpointing, language_among
from pyspeech.asr.transcripts import FORMATS
from pyspeech.audio.io import read_audio
from pyspeech.commands import transcribe
from pyspeech.errors import UserError

RATE = 16000
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_random_model(tmp_path_factory.mktemp("models") / "lid", "multi_softmax", lid=True)


@pytest.fixture(scope="module")
def recognizer(model):
    return Recognizer.load(model, device="cpu", min_silence=0.3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Short ones, of another rate and with two channels, and a long one."""
    folder = tmp_path_factory.mktemp("audio ñ 1")
    soundfile.write(folder / "a.wav", babble(1.5), RATE)
    soundfile.write(folder / "b.wav", babble(6, 8000), 8000)
    soundfile.write(folder / "c.flac", np.stack([babble(1.5, 44100), 0 * babble(1.5, 44100)], axis=1), 44100)
    return sorted(folder.iterdir())


@pytest.fixture(autouse=True)
def whole(monkeypatch):
    for module in (api, transcribe):
        monkeypatch.setattr(module, "WHOLE", 4.0)


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_command_writes(model, recognizer, files, tmp_path, format):
    options = ["--model", model, "--format", format, "--min-silence", "0.3", "-o", tmp_path / "tool"]
    assert transcribe.main([str(argument) for argument in [*files, *options]]) == 0
    transcripts = recognizer.transcribe(files)
    assert [transcript.name for transcript in transcripts] == ["a", "b", "c"] and len(transcripts[1].segments) > 1
    for transcript in transcripts:
        name = transcript.name + FORMATS[format]
        transcript.save(tmp_path / "library" / name)
        transcript.save(tmp_path / "named", format)
        of_tool, own, named = (
            path.read_text("utf-8") for path in (tmp_path / "tool" / name, tmp_path / "library" / name, tmp_path / "named")
        )
        assert own and own == named and NUMBER.sub("#", own) == NUMBER.sub("#", of_tool)
        # Batches of other sizes: sums round otherwise.
        assert [*map(float, NUMBER.findall(own))] == pytest.approx([*map(float, NUMBER.findall(of_tool))], abs=2e-4)


def test_one_and_many_paths_arrays_and_tensors(recognizer, files):
    for path in files:
        samples, rate = read_audio(path)
        expected = recognizer.transcribe(path)
        assert expected.text and expected == recognizer.transcribe(str(path))
        for audio in (samples, torch.from_numpy(samples)):
            found = recognizer.transcribe(audio, rate)
            assert (found.segments, found.duration) == (expected.segments, expected.duration)
        many = recognizer.transcribe([path, torch.from_numpy(samples)], rate)  # in a batch, where sums round otherwise
        assert [found.text for found in many] == 2 * [expected.text] and many[0].name == expected.name
    assert recognizer.transcribe([]) == []


def test_what_a_transcript_holds(recognizer, files):
    transcript = recognizer.transcribe(files[1])
    assert transcript.language in recognizer.languages and transcript.duration == 6.0 and 0 < transcript.confidence < 1
    assert " ".join(word.text for word in transcript.words) == transcript.text
    assert all(0 <= word.start < word.end <= 6.0 for word in transcript.words)
    assert [alternatives[0].text for alternatives in transcript.nbest] == [segment.text for segment in transcript.segments]
    assert recognizer.computing > 0


def test_audio_that_comes_in(recognizer, files):
    """In blocks that are pulled, and in blocks that are pushed."""
    samples = read_audio(files[1], RATE)[0]
    blocks = np.split(samples, [1000, 50000, *range(55000, 95000, 5000)])
    whole = Recognizer(recognizer.bundle, endpointing=Endpointing(silence_after=0.3), vad=False)
    expected = [segment.text for segment in whole.transcribe(files[1]).segments]
    results = list(whole.segments(blocks))
    assert [result.text for result, _ in results if result.final and result.text] == expected
    assert results[-1][1] == 6.0 and any(result.text for result, _ in results if not result.final)
    stream = whole.stream()
    results = [result for block in blocks for result in stream.add(block)] + [stream.finish()]
    assert [result.text for result in results if result.final and result.text] == expected


def test_options(model, files, tmp_path):
    recognizer = Recognizer.load(model / "model.pt", "hi-IN", beam=np.int64(3), int8=True, vad=False)
    transcript = recognizer.transcribe(files[0])
    assert transcript.language == "hi-IN" and transcript.segments[0].lid == {}
    transcript.save(tmp_path / "x.JSON", nbest=3)
    assert 1 < len(json.loads((tmp_path / "x.JSON").read_text(encoding="utf-8"))["segments"][0]["nbest"]) <= 3
    with one_line_error("nbest=0: expected 1 or more"):
        transcript.save(tmp_path / "x.txt", nbest=0)
    assert Recognizer.load(model, tau=10, vad=False).transcribe(files[0]).segments[0].t_avg < 3


@pytest.mark.parametrize(
    "options, message",
    [
        ({"model": None}, "^model: none given, and no transducer is bundled; train one with the recipe indic"),
        ({"model": "/nowhere"}, "^model /nowhere: no such file or folder"),
        ({"language": "fr-FR"}, "language fr-FR: the model knows en-IN, hi-IN, ta-IN"),
        ({"tau": 3, "language": "hi-IN"}, "early stopping is for language=None"),
        ({"beam": 0}, "beam=0: expected a whole number, 1 to 1000"),
        ({"beam": 2.5}, "beam=2.5: expected a whole number"),
        ({"max_symbols": 2.5}, "max_symbols=2.5: expected a whole number"),
        ({"lm_weight": 0.5}, "^lm_weight=0.5: has no effect without lm"),
        ({"min_silence": 0}, "^min_silence=0: expected seconds above 0"),
        ({"rule": "mean_p"}, "^rule=mean_p: nothing is stopped early without tau or threshold"),
        ({"device": "tpu"}, "^device tpu: no such device; use auto, cpu or cuda"),
    ],
)
def test_options_that_do_not_fit(model, options, message):
    with one_line_error(message):
        Recognizer.load(**{"model": model, **options})


def test_files_that_do_not_fit(recognizer, files, tmp_path):
    transcript = recognizer.transcribe(files[0])
    with one_line_error(r"a.doc: its ending names no format; expected one of text \(.txt\), json"):
        transcript.save(tmp_path / "a.doc")
    with one_line_error("a.txt: unknown format 'word'; expected one of"):
        transcript.save(tmp_path / "a.txt", "word")
    with one_line_error("absent.wav: cannot be read: No such file"):
        recognizer.transcribe([files[0], tmp_path / "absent.wav"])
    with one_line_error("samples"):
        recognizer.transcribe(np.zeros(0))
    with one_line_error("align: a text of type NoneType; expected a str"):
        recognizer.align(files[0], None)
    with one_line_error("load a file with Recognizer.load"):
        Recognizer(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given, expected", [("hi-IN", "hi-IN"), ("hi", "hi-IN"), ("HI_in", "hi-IN"), ("en-GB", "en-GB")])
def test_a_language_is_meant_by_its_first_part(given, expected):
    assert language_among(given, ["en-GB", "en-IN", "hi-IN"]) == expected


@pytest.mark.parametrize(
    "given, message", [("en", "which of en-GB, en-IN?"), ("ta", "the model knows en-GB"), ("hin", "knows"), (3, "knows")]
)
def test_a_language_that_is_none_or_several(given, message):
    with pytest.raises(UserError, match=f"^language {given}: .*{message}"):
        language_among(given, ["en-GB", "en-IN", "hi-IN"])
