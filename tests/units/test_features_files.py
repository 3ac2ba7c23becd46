"""Features files: folders and Kaldi tables that kaldiio wrote give the same; what is wrong with them is one line."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import kaldiio
import numpy as np
import pytest
from tool_harness import one_line_error

from pyspeech.commands import score_abx, score_bitrate
from pyspeech.errors import UserError
from pyspeech.units.api import Units
from pyspeech.units.features_files import kaldi_table, open_features, read_features

ROOT = Path(__file__).resolve().parents[2]


def matrices(dtype=np.float32, names=("s1", "s2", "Žluťoučký_3")):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal((5 + 3 * place, 4)).astype(dtype) for place, name in enumerate(names)}


def write_table(folder, content, specifier="ark,scp", **options):
    folder.mkdir(parents=True, exist_ok=True)
    with kaldiio.WriteHelper(f"{specifier}:{folder}/x.ark,{folder}/x.scp", **options) as write:
        for name, matrix in content.items():
            write(name, matrix)
    return folder / "x.scp", folder / "x.ark"


def fails(message, where, name="s1"):
    with one_line_error(message):
        open_features(where)(name)


def test_files_of_a_folder(tmp_path):
    rows = np.eye(3)[[0, 1, 1, 0]]
    np.save(tmp_path / "a.npy", rows.astype(np.float32))
    np.savez(tmp_path / "b.npz", features=rows, times=np.arange(4))
    (tmp_path / "f.txt").write_text("1 0\n\n0  1 \n")
    read = open_features(tmp_path)
    for name, expected in (("a", rows), ("b", rows), ("f", np.eye(2))):
        np.testing.assert_array_equal(read(name).values, expected)
    assert read("b").times.tolist() == [0, 1, 2, 3] and read("a").times is None
    np.savez(tmp_path / "c.npz", other=rows)
    (tmp_path / "d.npy").write_bytes(b"no array")
    np.save(tmp_path / "e.npy", np.array([["a"]]))
    np.save(tmp_path / "v.npy", np.arange(3.0))
    np.savez(tmp_path / "t.npz", features=rows, times=[3, 1, 2, 4])
    np.savez_compressed(tmp_path / "z.npz", features=np.arange(6000.0).reshape(-1, 2))
    whole = (tmp_path / "z.npz").read_bytes()
    (tmp_path / "z.npz").write_bytes(whole[:500] + b"\xff" * 500 + whole[1000:])
    for name, message in (
        ("c", "c.npz: cannot be read .*features"),
        ("d", "d.npy: cannot be read"),
        ("e", "expected numbers"),
        ("v", r"v.npy: shape \(3,\); expected \(frames, dim\) with at least one frame, or whole numbers"),
        ("t", "in increasing order"),
        ("z", "z.npz: cannot be read"),
        ("h", "no features of h; expected one of h.npy, h.npz, h.pt, h.txt, h.jsonl"),
    ):
        fails(message, tmp_path, name)
    for text, message in (
        ("", r"shape \(0, 0\)"),
        ("1 2\n1\n", "line 2: 1 numbers; expected 2"),
        ("1 x\n", "line 1: could not"),
        ("1 nan\n", "no finite"),
    ):
        (tmp_path / "g.txt").write_text(text)
        with pytest.raises(UserError, match=message):
            read_features(tmp_path / "g.txt")
    fails("nowhere: no such folder or file; expected a folder", tmp_path / "nowhere")
    fails("a.npy: neither .scp, .ark, .txt nor .jsonl; expected a folder", tmp_path / "a.npy")


def test_codes_of_all_forms(tmp_path):
    """Of one utterance and of several, with a name with spaces and one in a folder; a one-hot vector is no line of codes."""
    import torch

    codes = [12, 12, 0, 7]
    np.save(tmp_path / "a.npy", np.array(codes, np.int16))
    torch.save(torch.tensor(codes), tmp_path / "b.pt")
    (tmp_path / "c.txt").write_text("12 12 0 7\n")
    (tmp_path / "d.txt").write_text("12\n12\n0\n7\n")
    units = Units("e", np.array(codes), np.arange(4) / 25, np.arange(1, 5) / 25, 0.04, np.eye(13, dtype=np.float32))
    units.save(tmp_path / "e.jsonl")
    (tmp_path / "all.txt").write_text("f 12 12 0 7\nmy g\t12 12 0 7\n")
    (tmp_path / "all.jsonl").write_text("".join([*units.lines("json"), *replace(units, name="h").lines("json")]))
    for where, names in ((tmp_path, "abcde"), (tmp_path / "all.txt", ["f", "my g"]), (tmp_path / "all.jsonl", "eh")):
        for name in names:
            assert open_features(where)(name).values.tolist() == [[code] for code in codes], name
    assert open_features(tmp_path / "all.txt").names == ["f", "my g"]
    torch.save(torch.ones(2, 3), tmp_path / "m.pt")
    assert read_features(tmp_path / "m.pt").values.tolist() == [[1, 1, 1]] * 2
    (tmp_path / "o.txt").write_text("0 0 1 0\n")
    assert read_features(tmp_path / "o.txt").values.tolist() == [[0, 0, 1, 0]]


def test_what_is_wrong_with_units(tmp_path):
    for name, text, message in (
        ("x.txt", "f 1 2\nf 3 4\n", "x.txt, line 2: f is there twice"),
        ("x.txt", "f 1 2\ng 3 x\n", "x.txt, line 2: 'g 3 x'; expected `NAME 12 12 7 3`"),
        ("x.txt", "f 1 2\n", "x.txt: no features of z; it has 1 utterances, such as f"),
        ("x.jsonl", '{"code": 1}\n', "x.jsonl, line 1: .*expected a record of a unit"),
    ):
        (tmp_path / name).write_text(text)
        fails(message, tmp_path / name, "z")
    (tmp_path / "two.jsonl").write_text('{"recording": "a", "code": 1}\n{"recording": "b", "code": 1}\n')
    (tmp_path / "none.pt").write_text("no tensor")
    fails("units of 2 recordings; expected those of one", tmp_path, "two")
    fails("none.pt: cannot be read .*expected a tensor", tmp_path, "none")


def test_names_with_folders(tmp_path):
    for name in ("a/x", "a/y", "b/x", "c_z"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.full((2, 2), len(name) + ord(name[0])))
    read = open_features(tmp_path)
    assert read.names == ["a/x", "a/y", "b/x", "c_z"]
    for name, other in (("a/x", "a/x"), ("b_x", "b/x"), ("y", "a/y"), ("c/z", "c_z"), ("data/b/x", "b/x")):
        np.testing.assert_array_equal(read(name).values, np.load(tmp_path / f"{other}.npy"))
    fails("no features of x; expected one of x.npy", tmp_path, "x")
    scp, _ = write_table(tmp_path / "table", matrices(names=("s1", "b/s2")))
    np.testing.assert_array_equal(open_features(scp)("s2").values, open_features(scp)("b/s2").values)


@pytest.mark.parametrize(
    "specifier, options, tolerance",
    [
        ("ark,scp", {}, 0),
        ("ark,t,scp", {}, 1e-6),
        ("ark,scp", {"compression_method": 2}, 0.05),
        ("ark,scp", {"compression_method": 3}, 1e-3),
        ("ark,scp", {"write_function": "numpy"}, 0),
    ],
)
def test_tables_that_kaldiio_wrote(tmp_path, specifier, options, tolerance):
    content = matrices(np.float64)
    for table in write_table(tmp_path / "with a space ä", content, specifier, **options):
        read = open_features(table)
        for name in reversed(content):
            found = read(name)
            assert found.values.dtype == np.float64 and found.times is None
            np.testing.assert_allclose(found.values, content[name], rtol=0, atol=tolerance)


def test_only_what_is_wanted_is_read(tmp_path):
    scp, ark = write_table(tmp_path, matrices())
    begin, end = (int(line.rpartition(":")[2]) for line in scp.read_text(encoding="utf-8").splitlines()[1:])
    whole = ark.read_bytes()
    ark.write_bytes(b"\xff" * begin + whole[begin:end] + b"\xff" * (len(whole) - end))
    np.testing.assert_array_equal(open_features(scp)("s2").values, matrices()["s2"])
    fails("x.scp, s1: ", scp, "s1")


def test_rows_of_a_matrix_and_blank_lines(tmp_path):
    scp, _ = write_table(tmp_path, matrices())
    lines = scp.read_text(encoding="utf-8").splitlines()
    scp.write_text(f"\ufeff{lines[0]}[1:3]\r\n\r\n{lines[1]} \r\n", encoding="utf-8")
    read, content = open_features(scp), matrices()
    np.testing.assert_array_equal(read("s1").values, content["s1"][1:4])
    np.testing.assert_array_equal(read("s2").values, content["s2"])


def test_relative_and_moved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scp, _ = write_table(Path("data"), matrices())
    assert " data/x.ark:" in scp.read_text(encoding="utf-8")
    for folder in (".", "data", "/"):  # from elsewhere the archive is found beside the list
        monkeypatch.chdir(tmp_path / folder)
        np.testing.assert_array_equal(open_features(tmp_path / "data" / "x.scp")("s1").values, matrices()["s1"])


def test_tables_that_are_wrong(tmp_path):
    scp, ark = write_table(tmp_path, matrices())
    fails("x.scp: no features of s4; it has 3 utterances, such as s1", scp, "s4")
    fails("x.ark: no features of s4", ark, "s4")
    whole = ark.read_bytes()
    ark.write_bytes(whole[:-7])
    np.testing.assert_array_equal(open_features(scp)("s1").values, matrices()["s1"])
    for cut in (-7, -170, -185):  # in the numbers, in the dimensions, behind the name
        ark.write_bytes(whole[:cut])
        fails("x.scp, Žluťoučký_3: kaldiio cannot read this .*expected a matrix of .*x.ark, whole", scp, "Žluťoučký_3")
        fails("x.ark, Žluťoučký_3: kaldiio cannot read this", ark)
    ark.write_bytes(bytes(range(256)))
    fails("x.ark: no name at byte 0", ark)
    fails("x.scp, s1: kaldiio cannot read this", scp)
    ark.unlink()
    fails("x.scp, s1: .*x.ark: no such file; expected the archive there", scp)
    for text, message in (
        ("s1\n", "line 1: 's1'; expected `name path.ark:offset`"),
        ("s1 cat x.ark |\n", "line 1: 's1 cat"),
        ("s1 a:1\ns1 b:1\n", "line 2: s1 is there twice"),
        ("", "it has 0 utterances$"),
    ):
        scp.write_text(text)
        fails(message, scp)
    scp.write_bytes(b"s\xe9 x.ark:3\n")
    fails("not UTF-8", scp)


def test_what_is_no_matrix(tmp_path):
    for content, options, message in (
        ({"s1": np.zeros(3, np.float32)}, {}, "x.scp, s1: a vector of 3 numbers; expected a matrix"),
        ({"s1": np.arange(3, dtype=np.int32)}, {}, "a vector of 3 numbers"),
        ({"s1": np.zeros((0, 3), np.float32)}, {}, r"shape \(0, 3\)"),
        ({"s1": np.full((2, 2), np.nan)}, {}, "no finite numbers"),
        ({"s1": (8000, np.zeros(80, np.int16))}, {}, "s1: audio; expected a matrix"),
        ({"s1": np.zeros((2, 2))}, {"write_function": "pickle"}, "a Python object .pickle."),
    ):
        fails(message, write_table(tmp_path, content, **options)[0])


def test_a_table_is_whole_or_as_it_was(tmp_path):
    content = matrices(np.float64)
    with kaldi_table(tmp_path / "a b" / "ü.1") as write:
        for name, matrix in content.items():
            write(name, matrix)
    found = kaldiio.load_scp(str(tmp_path / "a b" / "ü.1.scp"))
    assert list(found) == list(content)
    for name, matrix in kaldiio.load_ark(str(tmp_path / "a b" / "ü.1.ark")):
        assert matrix.dtype == np.float32
        np.testing.assert_array_equal(matrix, content[name].astype(np.float32))
        np.testing.assert_array_equal(found[name], matrix)
    before = {path: path.read_bytes() for path in (tmp_path / "a b").iterdir()}
    assert len(before) == 2
    for name, message in (
        ("s1", "two utterances are named s1"),
        ("a b", "'a b' cannot be the name"),
        ("", "'' cannot be"),
        ("a\u00a0b", "cannot be the name"),
    ):
        with pytest.raises(UserError, match=message), kaldi_table(tmp_path / "a b" / "ü.1") as write:
            write("s1", content["s2"])
            write(name, content["s1"])
    assert {path: path.read_bytes() for path in (tmp_path / "a b").iterdir()} == before
    with pytest.raises(UserError, match="a line break in the path"), kaldi_table(tmp_path / "a\nb"):
        pass


def test_killed_while_it_is_written(tmp_path):
    code = (
        "import os, signal, sys, numpy as np\nfrom pyspeech.units.features_files import kaldi_table\n"
        "with kaldi_table(sys.argv[1]) as write:\n    write('a', np.ones((20000, 8)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "t")], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert run.returncode == -signal.SIGKILL
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 1 and left[0].startswith(".")


def test_scores_are_those_of_a_folder(tmp_path, capsys):
    """utils/score_abx.py and utils/score_bitrate.py, with .npy, a list and an archive."""
    rng = np.random.default_rng(1)
    content = {name: np.eye(4)[rng.integers(0, 4, 40)].astype(np.float32) for name in ("s1", "s2", "s3")}
    (tmp_path / "npy").mkdir()
    for name, matrix in content.items():
        np.save(tmp_path / "npy" / f"{name}.npy", matrix)
    places = [tmp_path / "npy", *write_table(tmp_path / "kaldi", content)]
    lines = [
        f"{name} {0.16 * place:.2f} {0.16 * place + 0.16:.2f} {'ab'[place % 2]} p t {name}"
        for name in content
        for place in range(10)
    ]
    (tmp_path / "x.item").write_text("\n".join(["#file ...", *lines]) + "\n")
    (tmp_path / "list").write_text("".join(f"{name} 1.6\n" for name in content))
    said = {"abx": [], "bitrate": []}
    for place in places:
        score_abx.main(["--items", str(tmp_path / "x.item"), "--features", str(place), "--frame-rate", "25"])
        said["abx"].append(capsys.readouterr().out)
        score_bitrate.main(["--features", str(place), "--filelist", str(tmp_path / "list")])
        said["bitrate"].append(capsys.readouterr().out)
    for texts in said.values():
        assert len(set(texts)) == 1, texts
    assert "0.00 %" not in said["abx"][0] and "120 in 3 files" in said["bitrate"][0]
