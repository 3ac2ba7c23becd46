"""The command-line tool that scores transcripts: Kaldi files and lhotse manifests, and what is wrong with them."""

import gzip
import json

import pytest
from tool_harness import run_tool

from pyspeech.commands import score_wer
from pyspeech.errors import UserError
from pyspeech.text.transcript_files import read_columns

REF = {"a1": "the cat sat", "a2": "on the mat", "b1": "नमस्ते दुनिया", "b2": ""}
HYP = {"a1": "the cat sat", "a2": "on mat", "b1": "नमस्ते दुनिया का", "b2": "हाँ"}


def write_text(path, texts):
    path.write_text("".join(f"{name} {text}".strip() + "\n" for name, text in texts.items()), encoding="utf-8")
    return path


def write_supervisions(path, texts, languages, kind="supervisions"):
    from lhotse import CutSet, MonoCut, SupervisionSegment, SupervisionSet

    made = [
        SupervisionSegment(name, f"rec-{name}", 0, 1.0, text=text, language=languages[name], speaker=f"spk-{name[0]}")
        for name, text in texts.items()
    ]
    if kind == "cuts":
        cuts = [MonoCut(f"cut-{item.id}", 0, 1.0, 0, supervisions=[item]) for item in made]
        CutSet.from_cuts(cuts).to_file(str(path))
    else:
        SupervisionSet.from_segments(made).to_file(str(path))
    return path


def score(capsys, *arguments):
    score_wer.main([str(argument) for argument in arguments])
    return capsys.readouterr()


def fails(message, *arguments):
    with pytest.raises(UserError, match=message):
        score_wer.main([str(argument) for argument in arguments])


def test_kaldi_files_as_a_program(tmp_path):
    """Started as a user would, from another folder: 3 errors over 8 words."""
    ref, hyp = write_text(tmp_path / "text", REF), write_text(tmp_path / "hyp", HYP)
    outputs = ["--json", "out.json", "--errs", "errs-test.txt", "--recogs", "recogs-test.txt"]
    run = run_tool("score_wer", ref, hyp, *outputs, cwd=tmp_path)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    assert [line.split()[:7] for line in run.stdout.splitlines() if line.startswith("overall")] == [
        ["overall", "4", "8", "3", "0", "1", "2"]
    ]
    scores = json.loads((tmp_path / "out.json").read_text())
    assert scores["average"]["errors"] == 3 and scores["languages"].keys() == {"und"}
    assert "%WER = 37.50" in (tmp_path / "errs-test.txt").read_text()
    assert "b2:\tref=[]\nb2:\thyp=['हाँ']\n" in (tmp_path / "recogs-test.txt").read_text()
    broken = run_tool("score_wer", "text", "nowhere", cwd=tmp_path)
    assert broken.returncode == 1 and broken.stderr == "error: nowhere: No such file or directory\n"


def test_missing_and_extra_utterances_are_one_line_each(tmp_path, capsys):
    hyp = write_text(tmp_path / "hyp", {"a1": REF["a1"], "x1": "a", "x2": "b"})
    output = score(capsys, write_text(tmp_path / "ref", REF), hyp)
    assert output.err.splitlines() == [
        f"warning: {hyp}: no hypothesis for 3 of 4 utterances, scored as empty: a2, b1, b2",
        f"warning: {hyp}: 2 without reference, not scored: x1, x2",
    ]
    assert output.out.split("overall")[1].split()[:6] == ["4", "8", "5", "0", "5", "0"]


def test_all_figures_as_json(tmp_path, capsys):
    hyp = write_text(tmp_path / "hyp", {"a1": REF["a1"]})
    score(capsys, write_text(tmp_path / "ref", REF), hyp, "--cer", "--json", tmp_path / "all.json")
    entry = json.loads((tmp_path / "all.json").read_text())["average"]
    assert entry["wer"] == entry["errors"] / entry["words"] == 5 / 8
    assert entry["cer"] == entry["character_errors"] / entry["characters"] > 0


@pytest.mark.parametrize("kind", ["supervisions", "cuts"])
def test_manifests_give_languages_speakers_and_lid(tmp_path, capsys, kind):
    spoken = {name: {"a": "en-IN", "b": "hi-IN"}[name[0]] for name in REF}
    ref = write_supervisions(tmp_path / "ref.jsonl.gz", REF, spoken, kind)
    hyp = write_supervisions(tmp_path / "hyp.jsonl", HYP, {**spoken, "b2": "en-IN"}, kind)
    output = score(capsys, ref, hyp, "--json", tmp_path / "out.json", "--errs", tmp_path / "errs", "--cer")
    scores = json.loads((tmp_path / "out.json").read_text())
    assert scores["lid"] == {
        "accuracy": {"en-IN": 1, "hi-IN": 0.5},
        "undecided": {"en-IN": 0, "hi-IN": 0},
        "confusion": {"en-IN": {"en-IN": 2}, "hi-IN": {"en-IN": 1, "hi-IN": 1}},
    }
    assert {code: (entry["errors"], entry["words"]) for code, entry in scores["languages"].items()} == {
        "en-IN": (1, 6),
        "hi-IN": (2, 2),
    }
    assert "spk-b   2 2 2 2 0 0 100.00" in (tmp_path / "errs").read_text()
    rows = {line.split()[0]: line.split() for line in output.out.splitlines() if line}
    assert rows["en-IN"][-3:] == ["en-IN", "2", "0"] and rows["hi-IN"][-3:] == ["hi-IN", "1", "1"]
    assert rows["overall"][-1] == "75.00" and "CER %" in output.out


def test_manifest_against_kaldi_file_and_kaldi_tables(tmp_path, capsys):
    spoken = {name: "en-IN" for name in REF}
    ref = write_supervisions(tmp_path / "ref.jsonl.gz", REF, spoken)
    first = score(capsys, ref, write_text(tmp_path / "hyp", HYP)).out
    text, languages = write_text(tmp_path / "ref", REF), write_text(tmp_path / "utt2lang", spoken)
    assert score(capsys, text, tmp_path / "hyp", "--utt2lang", languages).out == first
    fails("utterance a1 has no speaker", text, tmp_path / "hyp", "--resample", "speaker")
    speakers = write_text(tmp_path / "utt2spk", {name: name[0] for name in REF})
    assert (
        "bootstrap over speakers" in score(capsys, text, tmp_path / "hyp", "--resample", "speaker", "--utt2spk", speakers).out
    )


def test_reduction_against_a_baseline(tmp_path, capsys):
    """5 errors before, 3 after."""
    ref, hyp = write_text(tmp_path / "ref", REF), write_text(tmp_path / "hyp", HYP)
    baseline = write_text(tmp_path / "hyp0", {**HYP, "a1": "a bat sat"})
    output = score(capsys, ref, hyp, "--baseline", baseline, "--json", tmp_path / "out.json")
    assert "WERR against the baseline: 40.00 % [" in output.out
    assert json.loads((tmp_path / "out.json").read_text())["against_baseline"]["werr"] == 0.4
    assert "not defined" in score(capsys, ref, hyp, "--baseline", ref).out


def test_normalisation_is_the_recipes_own(tmp_path, capsys):
    from pyspeech.text.normalize import normalize

    ref = write_text(tmp_path / "ref", {"a": "The cat, <noise> SAT.", "b": "क्‍ष है।"})
    hyp = write_text(tmp_path / "hyp", {"a": normalize("The cat, SAT.", None), "b": normalize("क्‍ष है।", None)})
    assert score(capsys, ref, hyp).out.split("overall")[1].split()[2] == "6"
    assert score(capsys, ref, hyp, "--normalize").out.split("overall")[1].split()[2] == "0"


def test_windows_lines_byte_order_mark_tabs_and_blank_lines(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\tthe  cat \r\nb\r\n\r\nc x\u2028y\n".encode())
    assert read_columns(path) == {"a": "the  cat", "b": "", "c": "x\u2028y"}


def test_names_with_blanks_end_at_a_tab(tmp_path, capsys):
    """As utils/transcribe.py prints them."""
    ref, hyp = tmp_path / "ref", tmp_path / "hyp"
    ref.write_text("call one\tthe cat sat\ncall two\ton the mat\n")
    hyp.write_text("call one\tthe cat sat\ncall two\t\n")
    assert read_columns(hyp) == {"call one": "the cat sat", "call two": ""}
    output = score(capsys, ref, hyp)
    assert output.err == "" and output.out.split("overall")[1].split()[:6] == ["2", "6", "3", "0", "3", "0"]


def test_languages_that_are_not_known_are_not_identified(tmp_path, capsys):
    hyp = write_supervisions(tmp_path / "hyp.jsonl", HYP, {"a1": "en-IN", "a2": "hi-IN", "b1": "hi-IN", "b2": "hi-IN"})
    output = score(capsys, write_text(tmp_path / "ref", REF), hyp, "--json", tmp_path / "out.json")
    assert "LID" not in output.out and "lid" not in json.loads((tmp_path / "out.json").read_text())
    some = write_text(tmp_path / "utt2lang", {"a1": "en-IN", "a2": "en-IN"})
    output = score(capsys, tmp_path / "ref", hyp, "--utt2lang", some, "--json", tmp_path / "out.json")
    assert output.err == f"warning: {some}: lacks 2 of 4 utterances: b1, b2\n"
    assert json.loads((tmp_path / "out.json").read_text())["lid"]["accuracy"] == {"en-IN": 0.5}
    rows = {line.split()[0]: line.split() for line in output.out.split("[ ]")[0].splitlines()}
    assert (rows["en-IN"][-1], rows["und"][-1], rows["overall"][-1]) == ("50.00", "-", "50.00")


def test_a_seed_below_zero(tmp_path, capsys):
    with pytest.raises(SystemExit):
        score_wer.main(["ref", "hyp", "--seed", "-1"])
    assert "-1 is not a whole number of 0 or more" in capsys.readouterr().err


def test_broken_files_are_named(tmp_path):
    ref = write_text(tmp_path / "ref", REF)
    twice = tmp_path / "twice"
    twice.write_text("a1 x\na1 y\n")
    fails(r"twice:2: a1 is there twice", ref, twice)
    latin = tmp_path / "latin"
    latin.write_bytes("a1 café\n".encode("latin-1"))
    fails("latin: not UTF-8", ref, latin)
    empty = tmp_path / "empty"
    empty.write_text("")
    fails("empty: no utterances", ref, empty)
    other = write_text(tmp_path / "other", {"z": "x"})
    fails("none of the 4 utterances of .*a1 and 3 more.*but z; expected the same", ref, other)
    fails(r"gone\.jsonl: no such file", ref, tmp_path / "gone.jsonl")


def test_broken_manifests_are_named(tmp_path):
    ref = write_text(tmp_path / "ref", REF)
    whole = write_supervisions(tmp_path / "whole.jsonl.gz", REF, {name: "en-IN" for name in REF})
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole.read_bytes()[:-20])
    fails(r"cut\.jsonl\.gz: not a whole lhotse manifest", ref, cut)
    without = write_supervisions(tmp_path / "without.jsonl", {"a1": None}, {"a1": None})
    fails("supervision a1 has no text", ref, without)
    with gzip.open(tmp_path / "recordings.jsonl.gz", "wt") as stream:
        recording = {"id": "r", "sources": [], "sampling_rate": 16000, "num_samples": 1, "duration": 1 / 16000}
        json.dump(recording, stream)
    fails("a manifest of Recording; expected supervisions or cuts", ref, tmp_path / "recordings.jsonl.gz")
