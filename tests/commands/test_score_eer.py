"""The command-line tool that scores detectors of fake audio, and the DET curve."""

import json

import numpy as np
import pytest
from tool_harness import assert_usage_error, run_tool

from pyspeech.commands import score_eer
from pyspeech.errors import UserError
from pyspeech.report.det_plot import det_line

GENUINE, FAKE = [2.1, 1.5, 0.3, -0.2, 1.1], [-1.5, -0.8, 0.5, -2.2, 0.1, -0.3, 1.2]


def write_set(folder, sign=1, endings=""):
    """The scores above, and a protocol with two attacks; the fakes of A02 are the last three."""
    lines, scores = [], []
    for index, score in enumerate(GENUINE + FAKE):
        attack, key = ("-", "bonafide") if index < 5 else (f"A0{1 + (index > 8)}", "spoof")
        lines.append(f"s{index % 3} LA_{index} - {attack} {key}\n")
        scores.append(f"LA_{index}{endings} {sign * score}\n")
    (folder / "labels").write_text("".join(lines))
    (folder / "scores").write_text("".join(scores))
    # Of 100 target and other speakers and of fakes: 3 refused, 2 accepted, 40 refused, about the EER's threshold of 0.
    (folder / "asv").write_text(
        "".join(
            f"x {key} {1 if index < count else -1}\n"
            for key, count in (("target", 97), ("nontarget", 2), ("spoof", 60))
            for index in range(100)
        )
    )
    return ["--scores", str(folder / "scores"), "--labels", str(folder / "labels"), "--draws", "100"]


def test_as_a_program_from_another_folder(tmp_path):
    write_set(tmp_path, endings=".wav")
    command = ["score_eer", "--scores", "scores", "--labels"]
    run = run_tool(*command, "labels", "--asv-scores", "asv", "--json", "out.json", "--det", "det.png", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    rows = [line.split() for line in run.stdout.splitlines()]
    assert rows[2][:4] == ["all", "5", "7", "24.29"] and rows[4][:5] == ["attack", "A02", "5", "3", "36.67"]
    assert "Cllr 0.7371 bit, min DCF 0.4286, actual DCF 0.5714, min t-DCF 0.4286 (2019), 0.4807 (2021)" in run.stdout
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["eer"] == pytest.approx(0.242857, abs=5e-7) and found["min_tdcf"] == pytest.approx(0.428571, abs=5e-7)
    assert found["attacks"]["A02"]["eer"] == pytest.approx((2 / 5 + 1 / 3) / 2)  # at 1.1
    assert (tmp_path / "det.png").read_bytes().startswith(b"\x89PNG")
    broken = run_tool(*command, "nowhere", cwd=tmp_path)
    assert broken.returncode == 1 and broken.stderr == (
        "error: nowhere: cannot read the label file: No such file or directory\n"
    )


def test_inverted_scores_are_called_so(tmp_path, capsys):
    score_eer.main(write_set(tmp_path))
    assert capsys.readouterr().err == ""
    score_eer.main(write_set(tmp_path, sign=-1))
    assert "look inverted, and higher has to mean genuine" in capsys.readouterr().err


def test_missing_and_extra_utterances_are_named(tmp_path, capsys):
    arguments = write_set(tmp_path)
    lines = (tmp_path / "scores").read_text().splitlines()
    (tmp_path / "scores").write_text("\n".join([*lines[2:], "LA_99 1.0", "other file.wav 2"]))
    with pytest.raises(UserError, match="no score for 2 of 12 utterances: LA_0, LA_1; score them too, or"):
        score_eer.main(arguments)
    score_eer.main([*arguments, "--partial", "--resample", "speaker"])
    output = capsys.readouterr()
    assert "2 without label, not scored: LA_99, other file" in output.err and "2 of 12 utterances" in output.err
    assert output.out.splitlines()[2].split()[:3] == ["all", "3", "7"] and "bootstrap over speakers" in output.out
    (tmp_path / "scores").write_text("x 1\n")
    with pytest.raises(UserError, match=r"none of its 1 utterances \(x\) is in .*labels \(LA_0, LA_1 and 10 more\)"):
        score_eer.main(arguments)


def test_labels_with_folders_and_names_with_endings(tmp_path, capsys):
    arguments = write_set(tmp_path)
    score_eer.main(arguments)
    expected = capsys.readouterr().out.splitlines()[2].split()
    files = [f"LA_{index}{'.mp3' * (index == 3)}.wav" for index in range(12)]  # the recipe's name is LA_3.mp3
    kinds = ["genuine" if index < 5 else "fake" for index in range(12)]
    (tmp_path / "labels").write_text("".join(f"train/{file} {kind}\n" for file, kind in zip(files, kinds, strict=True)))
    (tmp_path / "scores").write_text((tmp_path / "scores").read_text().replace("LA_3 ", "LA_3.mp3 "))
    score_eer.main(arguments)
    output = capsys.readouterr()
    assert output.out.splitlines()[2].split() == expected and output.err == ""


@pytest.mark.parametrize(
    "line, message",
    [
        ("LA_3 nan", "scores:13: the score of 'LA_3' is nan"),
        ("LA_3 1", "scores:13: utterance 'LA_3' is there twice"),
        ("LA_3.wav 1", "scores: 'LA_3' and 'LA_3.wav' both name utterance 'LA_3'"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    arguments = write_set(tmp_path)
    with open(tmp_path / "scores", "a") as stream:
        stream.write(line + "\n")
    with pytest.raises(UserError, match=message):
        score_eer.main(arguments)


def test_one_kind_alone(tmp_path):
    arguments = write_set(tmp_path)
    (tmp_path / "labels").write_text("".join(f"LA_{index} genuine\n" for index in range(12)))
    with pytest.raises(UserError, match="no scores of fake utterances"):
        score_eer.main(arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--seed", "-1"], "--seed: -1 is not a whole number of 0 or more"),
        (["--draws", "0"], "--draws: 0 is not a whole number of 1 or more"),
        (["--det", "det"], "--det: det is not the name of a PNG file, such as det.png"),
        (["--det", "det.xyz"], "--det: det.xyz is not the name of a PNG"),
    ],
)
def test_bad_options(tmp_path, capsys, arguments, message):
    assert_usage_error(capsys, score_eer.main, [*write_set(tmp_path), *arguments], message)


@pytest.mark.parametrize("name", [".", "/"])
def test_a_folder_is_no_file_to_write(tmp_path, capsys, name):
    arguments = [*write_set(tmp_path), "--json", name]
    assert_usage_error(capsys, score_eer.main, arguments, f"--json: {name}: is a folder; expected a file to write")


def test_a_folder_in_the_place_of_the_curve_and_the_figures_are_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(IsADirectoryError) as error:  # one line, as exit_after says it
        score_eer.main([*write_set(tmp_path), "--det", "folder.png"])
    assert error.value.filename == "folder.png" and "Cllr 0.7371 bit" in capsys.readouterr().out


def test_one_draw_of_two_speakers(tmp_path):
    """A seed that draws one of them twice."""
    (tmp_path / "labels").write_text("s0 a - - bonafide\ns1 b - A01 spoof\n")
    (tmp_path / "scores").write_text("a 1\nb 0\n")
    arguments = ["--scores", str(tmp_path / "scores"), "--labels", str(tmp_path / "labels"), "--resample", "speaker"]
    kept = []
    for seed in range(8):
        try:
            score_eer.main([*arguments, "--draws", "1", "--seed", str(seed)])
            kept.append(seed)
        except UserError as error:
            assert str(error) == "1 draw of speakers: none has both kinds of utterances; an interval needs more draws"
    assert 0 < len(kept) < 8
    score_eer.main(arguments)


def test_det_line_stays_off_the_ends():
    false_alarms, misses = det_line(GENUINE, FAKE)
    assert (false_alarms.max(), false_alarms.min()) == pytest.approx((1 - 1 / 14, 1 / 14))
    assert (misses.min(), misses.max()) == pytest.approx((0.1, 0.9))
    inside = (np.array(false_alarms) == 2 / 7) & (np.array(misses) == 1 / 5)
    assert inside.any()


def write_2021(folder):
    """A key of three subsets, of which the detector is good on eval alone, with speech verified as in `write_set`."""
    lines, scores = [], []
    for subset, fake in (("eval", -1), ("progress", 3), ("hidden", 3)):
        for number in range(20):
            key = "spoof" if number % 2 else "bonafide"
            lines.append(f"LA_1 {subset}_{number} alaw ita_tx {'A07' if number % 2 else '-'} {key} notrim {subset}\n")
            scores.append(f"{subset}_{number} {fake if number % 2 else 1}\n")
    (folder / "key").write_text("".join(lines))
    (folder / "scores").write_text("".join(scores))
    kinds = [("target", 1), ("target", -1), ("nontarget", -1), ("nontarget", 1), ("spoof", 1), ("spoof", -1)]
    (folder / "asv_key").write_text("".join(f"LA_1 u{n} - - - {kind} notrim eval\n" for n, (kind, _) in enumerate(kinds * 9)))
    (folder / "asv").write_text("".join(f"LA_1 u{n} {score + n / 99}\n" for n, (_, score) in enumerate(kinds * 9)))
    return ["--scores", str(folder / "scores"), "--labels", str(folder / "key"), "--draws", "10"]


def test_subsets_of_a_key_are_not_pooled_in_silence(tmp_path, capsys):
    arguments = write_2021(tmp_path)
    score_eer.main([*arguments, "--json", str(tmp_path / "out.json")])
    output = capsys.readouterr()
    assert output.out.splitlines()[2].split()[:5] == ["subset", "eval", "10", "10", "0.00"]
    assert json.loads((tmp_path / "out.json").read_text())["subset"] == "eval"
    score_eer.main([*arguments, "--subset", "hidden"])
    assert capsys.readouterr().out.splitlines()[2].split()[:5] == ["subset", "hidden", "10", "10", "100.00"]
    score_eer.main([*arguments, "--subset", "all"])
    output = capsys.readouterr()
    rows = [line.split()[:4] for line in output.out.splitlines()[2:6]]
    assert rows == [["all", "30", "30", "83.33"], *(["subset", name, "10", "10"] for name in ("eval", "hidden", "progress"))]
    with pytest.raises(UserError, match="--subset dev: .*key has eval, hidden, progress; expected one, or all"):
        score_eer.main([*arguments, "--subset", "dev"])
    (tmp_path / "key").write_text((tmp_path / "key").read_text().replace("notrim eval", "notrim test"))
    score_eer.main(arguments)
    assert "key: subsets hidden, progress, test are pooled; --subset takes one" in capsys.readouterr().err


def test_speaker_verification_of_2021(tmp_path, capsys):
    arguments = [*write_2021(tmp_path), "--asv-scores", str(tmp_path / "asv"), "--asv-key", str(tmp_path / "asv_key")]
    score_eer.main(arguments)
    assert "min t-DCF 0.0000 (2019), 0." in capsys.readouterr().out
    with pytest.raises(UserError, match="no score of kind target in subset hidden"):
        score_eer.main([*arguments, "--subset", "hidden"])
    with pytest.raises(UserError, match="--asv-key x: expected --asv-scores too"):
        score_eer.main([*arguments[:4], "--asv-key", "x"])


def test_columns_and_the_word_for_genuine(tmp_path, capsys):
    (tmp_path / "scores").write_text("a 0 1\nb 2 0\n")
    (tmp_path / "labels").write_text("file,class\na.wav,natural\nb.wav,tts\n")
    arguments = ["--scores", tmp_path / "scores", "--labels", tmp_path / "labels", "--draws", "5", "--genuine", "natural"]
    arguments = list(map(str, arguments))
    with pytest.raises(UserError, match="two numbers behind each name"):
        score_eer.main(arguments)
    score_eer.main([*arguments, "--columns", "name,fake,genuine"])
    assert capsys.readouterr().out.splitlines()[2].split()[:4] == ["all", "1", "1", "0.00"]
    with pytest.raises(UserError, match="--genuine natrual: .*labels has no such label"):
        score_eer.main([*arguments[:-1], "natrual", "--columns", "name,fake,genuine"])
    assert_usage_error(capsys, score_eer.main, [*arguments, "--columns", "name,x"], "--columns: 'x' is not one of name, score")
