"""Transcripts in every format: one result for all, what sclite makes of the same files, and what is wrong with them."""

import json

import pytest

from pyspeech.asr.hypotheses import Word
from pyspeech.asr.recognizer import Alternative, Recognition
from pyspeech.asr.transcripts import FORMATS, Transcript, render
from pyspeech.commands.score_wer import parser, read_names, read_utterances
from pyspeech.errors import UserError
from pyspeech.text.reference_marks import best_reading, parse_marks
from pyspeech.text.transcript_files import read_transcripts
from pyspeech.text.wer import score_utterances

SAID = {"call one": "the cat sat", "b": "नमस्ते (दुनिया)", "c": ""}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def ctm(name, text):
    return "".join(f"{name} 1 {0.5 * place:.2f} 0.40 {word} 0.9900\n" for place, word in enumerate(text.split()))


def ours(name, text, language="hi-IN"):
    words = [{"word": word, "start": 0.5 * n, "end": 0.5 * n + 0.4} for n, word in enumerate(text.split())]
    entry = {"recording": name, "text": text, "language": language, "segments": [{"words": words}] if words else []}
    return json.dumps(entry) + "\n"


def nemo(name, text):
    return json.dumps({"audio_filepath": f"clips/{name}.wav", "duration": 1.5, "text": text, "lang": "hi"}) + "\n"


def transcript(name, text):
    words = [Word(word, 0.5 * place, 0.5 * place + 0.4, 0.9) for place, word in enumerate(text.split())]
    segment = Recognition(text, "hi-IN", 0.5, words, [Alternative(text, -1.5, 0.5)], 0.0, 3.0, 2.0, {})
    return Transcript(name, [segment], 3.0)


def utterances_of(options):
    return read_utterances(options, options.hypothesis, read_names(options))


def counts(reference, hypothesis, *options):
    """(words, errors, substitutions, deletions, insertions)"""
    options = parser().parse_args([str(reference), str(hypothesis), *options])
    average = score_utterances(utterances_of(options))["average"]
    return tuple(average[key] for key in ("words", "errors", "sub", "del", "ins"))


FILES = {
    "text": "".join(f"{name}\t{text}\n" for name, text in SAID.items()),
    "hyp.trn": "".join(f"{text} ({name.replace(' ', '_')})\n" for name, text in SAID.items()),
    "hyp": "".join(f"{text} ({name.replace(' ', '_')})\n" for name, text in SAID.items()),
    "hyp.ctm": ";; comment\n" + "".join(ctm(name.replace(" ", "_"), text) for name, text in SAID.items()),
    "words": "".join(ctm(name.replace(" ", "_"), text) for name, text in reversed(SAID.items())),
    "hyp.json": "".join(ours(name, text) for name, text in SAID.items()),
    "lines": "".join(ours(name, text) for name, text in SAID.items()),
    "nemo.json": "".join(nemo(name, text) for name, text in SAID.items()),
    "nemo.txt": "".join(nemo(name, text) for name, text in SAID.items()),
    "hyp.stm": "".join(f"{name.replace(' ', '_')} 1 spk 0.00 9.00 <o,f0> {text}\n" for name, text in SAID.items()),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format(tmp_path, name):
    reference = write(tmp_path / "ref", FILES["text"])
    assert counts(reference, write(tmp_path / "new" / name, FILES[name])) == (5, 0, 0, 0, 0)


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"srt", "vtt"}))
def test_what_transcribe_writes(tmp_path, format):
    """In a folder, and one after the other as on the screen."""
    texts = {name: render(format, transcript(name, text)) for name, text in SAID.items()}
    for name, text in texts.items():
        write(tmp_path / "hyp" / (name + FORMATS[format]), text)
    reference = write(tmp_path / "ref", FILES["text"])
    assert counts(reference, tmp_path / "hyp") == (5, 0, 0, 0, 0)
    if format != "text":  # the screen has the names before it
        assert counts(reference, write(tmp_path / "shown", "".join(texts.values()))) == (5, 0, 0, 0, 0)
    write(tmp_path / "hyp" / f"x.{'ctm' if format == 'trn' else 'trn'}", "")
    with pytest.raises(UserError, match="hyp: .* and .* files; expected one kind of"):
        read_transcripts(tmp_path / "hyp")


def test_languages_of_our_json_are_predictions(tmp_path):
    hyp = write(tmp_path / "hyp.json", ours("a", "x", "en-IN") + ours("b", "y", "hi-IN"))
    languages = write(tmp_path / "utt2lang", "a en-IN\nb en-IN\n")
    options = parser().parse_args([str(write(tmp_path / "ref", "a x\nb y\n")), str(hyp), "--utt2lang", str(languages)])
    assert score_utterances(utterances_of(options))["lid"]["accuracy"] == {"en-IN": 0.5}


# What sclite 2.10 counts: correct words, substitutions, deletions, insertions; without and with -D.
SCLITE = [
    ("the (uh) cat sat", "the cat sat", (3, 0, 1, 0), (4, 0, 0, 0)),
    ("the (uh) cat sat", "the uh cat sat", (3, 1, 0, 0), (4, 0, 0, 0)),
    ("the (uh) cat sat", "the er cat sat", (3, 1, 0, 0), (3, 1, 0, 0)),
    ("i've { um / uh / @ } far", "i've far", (2, 0, 0, 0), (2, 0, 0, 0)),
    ("i've { um / uh / @ } far", "i've uh far", (3, 0, 0, 0), (3, 0, 0, 0)),
    ("{ can not / cannot } go", "cannot go", (2, 0, 0, 0), (2, 0, 0, 0)),
    ("{ can not / cannot } go", "can not go", (3, 0, 0, 0), (3, 0, 0, 0)),
    ("(uh) (um)", "um yes", (0, 2, 0, 0), (2, 0, 0, 1)),
]


@pytest.mark.parametrize("ref, hyp, plain, forgiving", SCLITE)
def test_alternatives_and_optional_words_as_sclite_counts_them(tmp_path, ref, hyp, plain, forgiving):
    files = write(tmp_path / "ref.trn", f"{ref} (a-1)\n"), write(tmp_path / "hyp.trn", f"{hyp} (a-1)\n")
    for options, (correct, sub, deleted, inserted) in (((), plain), (("--optional",), forgiving)):
        expected = (correct + sub + deleted, sub + deleted + inserted, sub, deleted, inserted)
        assert counts(*files, *options) == expected


def test_marks():
    assert parse_marks("a { b { c / d e } / @ } (f)", True) == [
        ([["a"]], False),
        ([["b", "c"], ["b", "d", "e"], []], False),
        ([["f"]], True),
    ]
    assert parse_marks("a / b") == [([["a"]], False), ([["/"]], False), ([["b"]], False)]  # special within braces alone
    for broken in ("a { b", "a } b"):
        with pytest.raises(ValueError):
            parse_marks(broken)
    assert best_reading(parse_marks("(uh-huh) a", True), ["a", "b"]) == (["(uh-huh)", "a"], ["(uh-huh)", "a", "b"])
    assert best_reading([], ["a"]) == ([], ["a"])


def test_readings_are_normalised(tmp_path):
    files = write(tmp_path / "ref.trn", "{ IT'S / It is } (Uh-huh) so. (a)\n"), write(tmp_path / "hyp.trn", "it is SO (a)\n")
    assert counts(*files, "--normalize", "--optional") == (5, 0, 0, 0, 0)


STM = """;; LABEL "o" "Overall" "all"
rec A spk1 0.0 2.0 <o,f0> the cat sat
rec A spk2 2.5 4.0 IGNORE_TIME_SEGMENT_IN_SCORING
rec A spk1 5.0 7.0 on the mat
rec B spk3 0.0 2.0 hello
"""
CTM = """rec A 0.1 0.2 the 0.9
rec A 0.4 0.2 cat
rec A 2.1 0.2 gap
rec A 3.0 0.2 ignored
rec A 4.1 0.2 gap2
rec A 5.1 0.2 on
rec A 6 0.2 the
rec A 6.5 0.2 mat
rec A 8 0.2 tail
rec B 0.5 0.2 hullo
"""


def test_words_with_times_against_segments_as_sclite_counts_them(tmp_path):
    """sclite 2.10: 5 correct, 1 substituted, 1 deleted, 2 inserted."""
    files = write(tmp_path / "ref.stm", STM), write(tmp_path / "hyp.ctm", CTM)
    assert counts(*files) == (7, 4, 1, 1, 2)
    options = parser().parse_args([str(file) for file in files])
    assert [utterance[2] for utterance in utterances_of(options)] == ["spk1", "spk1", "spk3"]
    assert counts(write(tmp_path / "one.stm", STM.replace("rec A", "rec 1").replace("rec B", "rec 2")), files[1])[0] == 7


def test_segments_against_recordings(tmp_path, capsys):
    reference = write(tmp_path / "ref.stm", STM.replace("IGNORE_TIME_SEGMENT_IN_SCORING", "ah"))
    assert counts(reference, write(tmp_path / "hyp", "rec the cat sat hello on the mat\n"))[:2] == (8, 1)
    hyp = write(tmp_path / "hyp.json", ours("rec", "the cat sat ah") + ours("other", "x"))
    assert counts(reference, hyp)[0] == 8
    assert "1 without reference, not scored: other" in capsys.readouterr().err
    write(tmp_path / "hyp.ctm", CTM.replace("rec B", "rec C").replace("rec A", "rec B"))
    counts(write(tmp_path / "ref.stm", STM), tmp_path / "hyp.ctm")
    assert "not scored: rec, channel C" in capsys.readouterr().err
    with pytest.raises(UserError, match="segments that are not scored; expected words with times"):
        counts(reference.with_name("ref.stm"), tmp_path / "hyp")


@pytest.mark.parametrize("options, message", [(["--optional"], "--optional: .*ref has no place for optional words")])
def test_options(tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        counts(write(tmp_path / "ref", "a b\n"), tmp_path / "ref", *options)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("x.trn", "a b\n", "x.trn:1: does not end with [(]utterance-id[)]; expected trn"),
        ("x.trn", "a (1)\nb (1)\n", "x.trn:2: 1 is there twice"),
        ("x.trn", "{ a (1)\n", "x.trn: 1: '{' without its partner"),
        ("x.ctm", "a 1 0.5 0.5\n", "x.ctm:1: 4 columns; expected ctm"),
        ("x.ctm", "a 1 0.5 x b\n", "x.ctm:1: 'x' is not a time"),
        ("x.stm", "a 1 s 0.5\n", "x.stm:1: 4 columns; expected stm"),
        ("x.json", ours("a", "b") + '{"recording": "b"}\n', "x.json:2: not a line of transcribe --format json"),
        ("x.json", ours("a", "b") * 2, "x.json:2: a is there twice"),
        ("x.json", nemo("a", "b") + '{"audio_filepath": "c.wav"}\n', "x.json:2: expected JSON with audio_filepath and text"),
        ("x.jsonl", '{"audio_filepath": "c.wav", "text": null}\n', "x.jsonl:1: expected JSON with audio_filepath and text"),
    ],
)
def test_damaged_files(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message):
        counts(write(tmp_path / name, text), write(tmp_path / "hyp", "1 a\na b\n"))


def test_texts_that_look_alike_stay_kaldis(tmp_path):
    """Digits are words, and so is what stands in parentheses in several lines."""
    for text in ("a1 1 2 3 4\nb1 5 6 7 8 9\n", "a1 hm (noise)\nb1 so (noise)\n"):
        assert list(read_transcripts(write(tmp_path / "text", text)).texts) == ["a1", "b1"]
