"""The detection cost function against the official scorer's figures for made-up cases and against a plain version."""

import json
import os

import numpy as np
import pytest
from tool_harness import run_tool

from pyspeech.errors import UserError
from pyspeech.sad.formats import FORMATS, render, write_hypothesis, write_reference
from pyspeech.sad.scoring import overall, score_files, score_pair

COLLARS = (0, 0.25, 0.5, 1, 2)


def line_up(*parts):
    """("NS", 3), ("S", 3) -> [(0, 3, "NS"), (3, 6, "S")], borders rounded to 2 decimals as in a label file."""
    segments, start = [], 0.0
    for label, seconds in parts:
        end = round(start + seconds, 2)
        segments.append((start, end, label))
        start = end
    return segments


# Reference, hypothesis speech, the official scorer's DCF at the five collars.
OFFICIAL = {
    "non-speech alone": (line_up(("NS", 10)), [(0, 2)], (0.05, 0.05128, 0.05263, 0.05556, 0.0625)),
    "speech alone": (line_up(("S", 10)), [(2, 10)], (0.15,) * 5),
    "longer hypothesis": (line_up(("NS", 3), ("S", 3)), [(2, 9)], (0.08333, 0.06818, 0.05, 0, 0)),
    "pause of 0.6 s": (line_up(("S", 2), ("NS", 0.6), ("S", 2.4)), [(0, 5)], (0.25, 0.25, 0, 0, 0)),
    "pause of 0.59 s": (line_up(("S", 2), ("NS", 0.59), ("S", 2.4)), [(0, 5)], (0.25, 0, 0, 0, 0)),
    "nothing found": (line_up(("NS", 3), ("S", 3)), [], (0.75,) * 5),
}


@pytest.mark.parametrize("case", OFFICIAL)
def test_official_figures(case):
    reference, hypothesis, expected = OFFICIAL[case]
    for collar, dcf in zip(COLLARS, expected, strict=True):
        assert f"{score_pair(reference, hypothesis, collar)['dcf']:.5f}" == f"{dcf:.5f}", collar


def plain_score(reference, hypothesis, collar):
    """The same by looking at every millisecond: integers, no segment arithmetic. Returns (dcf, precision, recall)."""
    end = round(reference[-1][1] * 1000)
    kind = ["unscored"] * end
    for start, stop, label in reference:
        name = "speech" if label in ("S", "RI") else "non" if label in ("NS", "NT", "RX", "RS") else "unscored"
        for t in range(round(start * 1000), round(stop * 1000)):
            kind[t] = name
    called = [False] * end
    for start, stop in hypothesis:
        for t in range(round(start * 1000), min(end, round(stop * 1000))):
            called[t] = True
    c = round(collar * 1000)
    start = 0
    while start < end:  # cut the collars out of each run of non-speech
        stop = start
        while stop < end and kind[stop] == kind[start]:
            stop += 1
        if kind[start] == "non" and c > 0:
            left, right = (0, c) if start == 0 else (c, 0) if stop == end else (c, c)
            drop = stop - start < left + right + 100
            for t in range(start, stop):
                if drop or t < start + left or t >= stop - right:
                    kind[t] = "unscored"
        start = stop
    hit = sum(k == "speech" and h for k, h in zip(kind, called, strict=True))
    miss = sum(k == "speech" and not h for k, h in zip(kind, called, strict=True))
    false = sum(k == "non" and h for k, h in zip(kind, called, strict=True))
    silence = sum(k == "non" for k in kind)
    dcf = 0.75 * (miss / (hit + miss) if hit + miss else 0) + 0.25 * (false / silence if silence else 0)
    return dcf, hit / (hit + false) if hit + false else None, hit / (hit + miss) if hit + miss else None


@pytest.mark.parametrize("seed", range(20))
def test_equals_plain_version(seed):
    random = np.random.default_rng(seed)
    labels = ["S", "NS", "S", "NS", "RI", "NT", "RX", "RS", "Mixed"][: 2 if seed % 2 else 9]
    # Lengths are multiples of 0.09 s: no sum of them is at the border between scored and dropped (c + 0.1, 2c + 0.1),
    # where the last bit of a float decides.
    reference = line_up(*[(random.choice(labels), 0.09 * random.integers(1, 60)) for _ in range(random.integers(1, 30))])
    if seed % 5 == 0 and len(reference) > 1:
        reference = reference[1:]  # starts late
    borders = random.choice(int(reference[-1][1] * 100) + 300, size=2 * int(random.integers(0, 12)), replace=False)
    hypothesis = (np.sort(borders) / 100).reshape(-1, 2)
    for collar in (*COLLARS, 0.3):
        score = score_pair(reference, hypothesis, collar)
        dcf, precision, recall = plain_score(reference, hypothesis, collar)
        assert score["dcf"] == pytest.approx(dcf, abs=1e-9), collar
        assert score["precision"] == pytest.approx(precision, abs=1e-9), collar
        assert score["recall"] == pytest.approx(recall, abs=1e-9), collar


def test_labels_and_merging():
    hypothesis = [(1, 4)]
    plain = score_pair(line_up(("NS", 2), ("S", 3), ("NS", 5)), hypothesis, 0.5)
    other = score_pair(line_up(("NT", 1.5), ("RX", 0.5), ("RI", 1), ("S", 2), ("RS", 2), ("NS", 3)), hypothesis, 0.5)
    assert plain == other
    assert plain["miss_s"] == pytest.approx(1) and plain["fa_s"] == pytest.approx(0.5)  # 1.5 to 2 is collar


def test_what_is_not_scored():
    # From 2 to 5 nothing counts; non-speech beside it has its collars as beside speech.
    score = score_pair(line_up(("S", 2), ("Uncertain", 3), ("NS", 5)), [(0, 10)], 0.5)
    assert (score["speech_s"], score["nonspeech_s"], score["unscored_s"]) == (2, 4.5, 3.5)
    # The reference starts late: 0 to 4 does not count, though the hypothesis has speech there.
    score = score_pair([(4.0, 6.0, "S"), (6.0, 10.0, "NS")], [(0, 5)], 0)
    assert (score["miss_s"], score["fa_s"], score["speech_s"], score["nonspeech_s"]) == (1, 0, 2, 4)


def test_undefined_rates_are_none():
    silent = score_pair(line_up(("NS", 5)), [], 0)
    assert (silent["dcf"], silent["precision"], silent["recall"], silent["f1"]) == (0, None, None, None)
    false = score_pair(line_up(("NS", 5)), [(1, 2)], 0)
    assert (false["dcf"], false["precision"], false["recall"], false["f1"]) == (pytest.approx(0.05), 0, None, 0)
    nothing_scored = score_pair(line_up(("Mixed", 5)), [(1, 2)], 0)
    assert (nothing_scored["dcf"], nothing_scored["f1"]) == (0, None)


def test_overall_is_mean_of_rounded_dcf_and_pooled_rates():
    long = score_pair(line_up(("S", 90), ("NS", 9)), [(0, 60)], 0)
    short = score_pair(line_up(("S", 7), ("NS", 1)), [(0, 8)], 0)
    total = overall([long, short])
    assert total["dcf"] == pytest.approx((0.25 + 0.25) / 2, abs=1e-12)
    assert total["recall"] == pytest.approx(67 / 97) and total["precision"] == pytest.approx(67 / 68)
    assert total["f1"] == pytest.approx(2 * 67 / (97 + 68))
    assert total["dcf_pooled"] == pytest.approx(0.75 * 30 / 97 + 0.25 * 1 / 10)
    third = score_pair(line_up(("S", 3), ("NS", 3)), [(0, 2)], 0)  # 0.25 * 1 would hide rounding: DCF 0.25
    sixth = score_pair(line_up(("S", 9), ("NS", 3)), [(0, 8)], 0)  # 0.0833333...
    assert overall([third, sixth])["dcf"] == pytest.approx((0.25 + 0.08333) / 2, abs=1e-12)


@pytest.mark.parametrize("collar", [-0.5, float("nan"), float("inf")])
def test_bad_collar(collar):
    with pytest.raises(UserError, match="collar"):
        score_pair(line_up(("S", 1)), [], collar)


@pytest.fixture
def folders(tmp_path):
    """Two recordings, names with spaces and beyond ASCII, and a hypothesis too many."""
    for name, speech in {"reel 1 día": [(2, 5)], "trñ00": [(0, 1), (8, 9)]}.items():
        write_reference(tmp_path / "ref" / f"{name}.txt", name, speech, 10)
        write_hypothesis(tmp_path / "hyp" / f"{name}.txt", [(2, 6)], 10)
    write_hypothesis(tmp_path / "hyp" / "extra.txt", [], 10)
    return tmp_path


def test_tool(folders):
    done = run_tool(
        "score_sad",
        "--reference",
        folders / "ref",
        "--hypothesis",
        folders / "hyp",
        "--json",
        folders / "out.json",
        "--collar",
        "0",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].split()[3:6] == ["0.03571", "0.00000", "0.14286"]  # reel 1 día: 1 s of 7 s called speech
    assert lines[3].split()[:4] == ["trñ00", "0.87500", "1.00000", "0.50000"]  # both missed, 4 s of 8 s false
    assert lines[5].split()[:2] == ["overall", f"{(0.03571 + 0.875) / 2:.5f}"]
    assert "extra" in done.stderr and "Traceback" not in done.stderr
    stored = json.loads((folders / "out.json").read_text(encoding="utf-8"))
    assert stored["files"] == score_files(folders / "ref", folders / "hyp", 0)["files"]


def test_tool_errors_are_one_line(folders):
    (folders / "hyp" / "trñ00.txt").unlink()
    done = run_tool("score_sad", "--reference", folders / "ref", "--hypothesis", folders / "hyp")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "trñ00" in done.stderr
    gap = [f"X\tX\tX\tSAD\tX\t{times}\tspeech\t0.5\n" for times in ("0.00\t1.00", "1.50\t9.00")]
    (folders / "hyp" / "trñ00.txt").write_text("".join(gap))
    done = run_tool("score_sad", "--reference", folders / "ref", "--hypothesis", folders / "hyp")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "trñ00.txt, line 2: gap from 1.0 to 1.5 s" in done.stderr


def test_folder_problems(folders, tmp_path):
    with pytest.raises(UserError, match="nowhere"):
        score_files(tmp_path / "nowhere", folders / "hyp")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no label files"):
        score_files(tmp_path / "empty", folders / "hyp")
    (folders / "hyp" / "trñ00.txt").write_text("")
    (folders / "ref" / "trñ00.txt").write_text("a\t0\t0.0\t1.0\tS\tmanual\na\t0\t1.0\t2.0\tmusic\tmanual\n")
    result = score_files(folders / "ref", folders / "hyp")
    assert result["files"]["trñ00"]["dcf"] == 0.75 and result["files"]["trñ00"]["unscored_s"] == 1
    assert [word in line for line, word in zip(result["warnings"], ("labelled music", "empty", "extra"), strict=True)] == [
        True
    ] * 3


def test_names_in_any_form(tmp_path):
    """.TXT as well, accents as one character or two, and bytes that are not UTF-8."""
    for folder, composed in (("ref", False), ("hyp", True)):
        write = write_hypothesis if composed else lambda path, *rest: write_reference(path, "x", *rest)
        write(tmp_path / folder / ("caf\u00e9.TXT" if composed else "cafe\u0301.txt"), [(2, 5)], 10)
        write(tmp_path / folder / os.fsdecode(b"reel\xe9.TXT"), [(2, 5)], 10)
    next((tmp_path / "hyp").glob("reel*")).write_text("")
    done = run_tool(
        "score_sad", "--reference", tmp_path / "ref", "--hypothesis", tmp_path / "hyp", "--json", tmp_path / "out.json"
    )
    assert done.returncode == 0 and "reel\ufffd.TXT: empty" in done.stderr, done.stderr
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {name: score["dcf"] for name, score in result["files"].items()} == {"caf\u00e9": 0, "reel\ufffd": 0.75}
    write_hypothesis(tmp_path / "hyp" / "cafe\u0301.txt", [], 10)
    with pytest.raises(UserError, match="same recording as"):
        score_files(tmp_path / "ref", tmp_path / "hyp")


def test_a_reference_without_a_scored_label_is_left_out(folders):
    path = folders / "ref" / "trñ00.txt"
    path.write_text("a\t0\t0.0\t10.0\tmusic\tmanual\n")
    result = score_files(folders / "ref", folders / "hyp", 0)
    assert result["files"]["trñ00"]["dcf"] is None and f"{path}: none of its labels is scored" in result["warnings"][1]
    assert result["overall"]["dcf"] == round(result["files"]["reel 1 día"]["dcf"], 5) > 0
    done = run_tool("score_sad", "--reference", folders / "ref", "--hypothesis", folders / "hyp")
    assert "mean of 1 recording;" in done.stdout
    (folders / "ref" / "reel 1 día.txt").unlink()
    with pytest.raises(UserError, match="none of the labels of its files is scored"):
        score_files(folders / "ref", folders / "hyp")


def texts(folder, ending, **recordings):
    """Write {name: text}; the folder."""
    for name, text in recordings.items():
        path = folder / (name.replace("__", "/") + ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


TRUTH = {"one": [(2, 5), (6.5, 8.25)], "two": [], "three": [(0, 1), (8, 10)]}
FOUND = {"one": [(2.5, 8)], "two": [(3, 4)], "three": []}


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """The scores of TRUTH and FOUND in the official formats, recordings of 10 s."""
    folder = tmp_path_factory.mktemp("official")
    for name in TRUTH:
        write_reference(folder / "ref" / f"{name}.txt", name, TRUTH[name], 10)
        write_hypothesis(folder / "hyp" / f"{name}.txt", FOUND[name], 10)
    return folder, score_files(folder / "ref", folder / "hyp", 0.25)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_scores_the_same(official, tmp_path, format):
    folder, expected = official
    ending = FORMATS[format][1]
    references = texts(tmp_path / "ref", ending, **{name: render(format, name, TRUTH[name], 10) for name in TRUTH})
    hypotheses = texts(tmp_path / "hyp", ending, **{name: render(format, name, FOUND[name], 10) for name in TRUTH})
    uem = texts(tmp_path, ".uem", all="".join(f"{name} 1 0 10\n" for name in TRUTH)) / "all.uem"
    for found in (
        score_files(folder / "ref", hypotheses, 0.25),
        score_files(references, folder / "hyp", 0.25),
        score_files(references, hypotheses, 0.25, uem=uem),
    ):
        assert found["files"] == expected["files"] and found["overall"] == expected["overall"]
        assert found["warnings"] == []


def test_single_files(official, tmp_path):
    """Of several recordings: what a file does not name has no speech. Of one recording: whatever their names."""
    _, expected = official
    for name, side in (("ref", TRUTH), ("hyp", FOUND)):
        texts(tmp_path, ".rttm", **{name: "".join(render("rttm", *item, 10) for item in side.items())})
    uem = texts(tmp_path, ".uem", all="".join(f"{name} NA 0 10\n" for name in TRUTH)) / "all.uem"
    found = score_files(tmp_path / "ref.rttm", tmp_path / "hyp.rttm", 0.25, uem=uem)
    assert found["files"] == expected["files"]
    assert found["warnings"] == [
        f"{tmp_path}/ref.rttm: has nothing of two of {uem}; scored as without speech",
        f"{tmp_path}/hyp.rttm: has no speech of three",
    ]
    texts(tmp_path, ".rttm", quiet="")
    assert score_files(tmp_path / "ref.rttm", tmp_path / "quiet.rttm", 0, uem=uem)["overall"]["p_miss"] == 1
    texts(tmp_path, ".labels.txt", by_ear="2\t5\n6.5\t8.25\n9\t10\tnoise\n")
    texts(tmp_path, ".json", found=render("json", "one", FOUND["one"], 10))
    found = score_files(tmp_path / "by_ear.labels.txt", tmp_path / "found.json", 0.25)
    assert found["files"]["by_ear"]["dcf"] == expected["files"]["one"]["dcf"]
    texts(tmp_path, ".rttm", wrong=render("rttm", "four", [(1, 2)], 10))
    with pytest.raises(
        UserError,
        match="hyp.rttm: no hypothesis for four; expected one for each reference, found one, two. Where nothing was found",
    ):
        score_files(tmp_path / "wrong.rttm", tmp_path / "hyp.rttm")


def test_what_only_a_uem_file_names(tmp_path):
    """Without speech where one file has all references; not scored where each recording has a file. Both are said."""
    texts(tmp_path / "ref", ".rttm", one=render("rttm", "one", [(2, 5)], 10))
    texts(tmp_path, ".rttm", hyp=render("rttm", "one", [(2, 4)], 10))
    uem = texts(tmp_path, ".uem", all="one NA 0 10\ntwo NA 0 10\n") / "all.uem"
    found = score_files(tmp_path / "ref", tmp_path / "hyp.rttm", 0, uem=uem)
    assert list(found["files"]) == ["one"] and found["warnings"] == [f"{uem}: not scored, because there is no reference: two"]
    found = score_files(tmp_path / "ref/one.rttm", tmp_path / "hyp.rttm", 0, uem=uem)
    assert list(found["files"]) == ["one", "two"] and found["overall"]["dcf"] == pytest.approx(0.125)
    assert found["warnings"][0] == f"{tmp_path}/ref/one.rttm: has nothing of two of {uem}; scored as without speech"


def test_recordings_of_other_names_are_compared_with_a_warning(tmp_path):
    texts(tmp_path, ".rttm", a=render("rttm", "a", [(2, 5)], 10), b=render("rttm", "b", [(2, 5)], 10))
    found = score_files(tmp_path / "a.rttm", tmp_path / "b.rttm", 0)
    assert found["warnings"][0] == f"{tmp_path}/b.rttm: recording b is scored against a of {tmp_path}/a.rttm"


def test_a_collar_that_leaves_no_non_speech_is_said(tmp_path):
    texts(tmp_path, ".csv", call=render("csv", "call", [(1, 3)], 4))
    path = tmp_path / "call.csv"
    assert score_files(path, path, 1000)["warnings"][0] == (
        "collar 1000 s: leaves no non-speech of call, where no false alarm counts"
    )
    assert not any("collar" in line for line in score_files(path, path, 0.5)["warnings"])


def test_folders_below_and_names_as_detection_gives_them(tmp_path):
    import soundfile

    from pyspeech.audio.recordings import file_stem, find_recordings

    names = ["tape__a__1", "tape__b__1", "tape__2", "my call"]
    references = texts(tmp_path / "ref", ".labels.txt", **{name: "1\t2\tspeech\n" for name in names})
    for name in names:
        path = tmp_path / "audio" / (name.replace("__", "/") + ".wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.zeros(4 * 8000), 8000)
    recordings = find_recordings([tmp_path / "audio"])
    hypotheses = texts(tmp_path / "hyp", ".rttm", **{file_stem(r): render("rttm", r.name, [(1, 2)], 4) for r in recordings})
    result = score_files(references, hypotheses, 0, audio=tmp_path / "audio")
    assert sorted(result["files"]) == ["2", "a_1", "b_1", "my call"] and result["overall"]["dcf"] == 0
    assert [score["nonspeech_s"] for score in result["files"].values()] == [3] * 4 and result["warnings"] == []
    (tmp_path / "ref/tape/b/1.labels.txt").unlink()
    result = score_files(references, hypotheses, 0, audio=tmp_path / "audio")
    assert sorted(result["files"]) == ["1", "2", "my call"] and "no reference: b_1" in result["warnings"][0]
    texts(tmp_path / "ref", ".labels.txt", tape__c="")
    with pytest.raises(UserError, match="hyp: no hypothesis for c"):
        score_files(references, hypotheses)


def test_a_sample_behind_the_last_label_is_no_non_speech(tmp_path):
    """Clips that are cut at a label are often a sample longer: a false alarm in that alone would count as much as any."""
    import soundfile

    soundfile.write(tmp_path / "call.wav", np.zeros(2 * 16000 + 1), 16000)
    texts(tmp_path, ".rttm", call=render("rttm", "call", [(0, 2)], 2))
    texts(tmp_path, ".csv", found=render("csv", "call", [(0, 2 + 1 / 16000)], 3))
    score = score_files(tmp_path / "call.rttm", tmp_path / "found.csv", 0, audio=tmp_path / "call.wav")["overall"]
    assert (score["dcf"], score["p_fa"], score["nonspeech_s"], score["speech_s"]) == (0, 0, 0, 2)


def test_where_a_recording_ends(tmp_path):
    """By UEM, by audio, by the hypothesis; else at the last segment, with a warning."""
    import soundfile

    soundfile.write(tmp_path / "call.wav", np.zeros(20 * 8000), 8000)
    texts(tmp_path, ".rttm", call=render("rttm", "call", [(2, 4)], 5))
    texts(tmp_path, ".csv", found=render("csv", "call", [(2, 5)], 20))
    texts(tmp_path, ".json", found=render("json", "call", [(2, 5)], 10))
    texts(tmp_path, ".uem", call="call 1 1 3\n;; pause\ncall 1 3.5 30\nother 1 0 5\n")
    nonspeech = [
        score_files(tmp_path / "call.rttm", tmp_path / name, 0, **more)["overall"]["nonspeech_s"]
        for name, more in [
            ("found.csv", {}),
            ("found.csv", {"audio": tmp_path / "call.wav"}),
            ("found.json", {}),
            ("found.json", {"uem": tmp_path / "call.uem"}),
        ]
    ]
    assert nonspeech == [3, 18, 8, 1 + 26 + 5]
    done = run_tool("score_sad", "--reference", tmp_path / "call.rttm", "--hypothesis", tmp_path / "found.csv")
    assert done.returncode == 0 and "nothing tells how long call is: scored to the last segment" in done.stderr
    score = score_files(tmp_path / "call.rttm", tmp_path / "found.json", 0, uem=tmp_path / "call.uem")["files"]["call"]
    assert (score["speech_s"], score["fa_s"], score["unscored_s"]) == (1.5, 1, 1.5)
    texts(tmp_path, ".uem", bad="call 1 3\n")
    done = run_tool(
        *("score_sad", "--reference", tmp_path / "call.rttm", "--hypothesis", tmp_path / "found.csv"),
        *("--uem", tmp_path / "bad.uem"),
    )
    assert done.returncode == 1 and "bad.uem, line 1: 3 columns; expected those of UEM" in done.stderr
    texts(tmp_path, ".rttm", call=render("rttm", "call", [(2, 40)], 50))
    warnings = score_files(tmp_path / "call.rttm", tmp_path / "found.csv", 0, audio=tmp_path / "call.wav")["warnings"]
    assert warnings == [f"{tmp_path}/call.rttm: has labels up to 40 s, but call ends at 20 s"]


def test_regions_of_official_references(tmp_path):
    write_reference(tmp_path / "ref" / "call.txt", "call", [(2, 4)], 10)
    write_hypothesis(tmp_path / "hyp" / "call.txt", [(3, 6)], 10)
    texts(tmp_path, ".uem", call="call 1 3 5\n")
    score = score_files(tmp_path / "ref", tmp_path / "hyp", 0, uem=tmp_path / "call.uem")["files"]["call"]
    assert (score["hit_s"], score["miss_s"], score["fa_s"], score["unscored_s"]) == (1, 0, 1, 8)
    texts(tmp_path, ".uem", call="other 1 3 5\n")
    with pytest.raises(UserError, match="none of the labels"):
        score_files(tmp_path / "ref", tmp_path / "hyp", 0, uem=tmp_path / "call.uem")
