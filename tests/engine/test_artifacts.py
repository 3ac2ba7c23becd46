"""Path patterns and fingerprints of what stages read and write."""

import os

import pytest

from pyspeech.engine import artifacts
from pyspeech.engine.artifacts import Artifacts, expand, expand_braces, overlap


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("a.txt", ["a.txt"]),
        ("m/{train,dev}.gz", ["m/train.gz", "m/dev.gz"]),
        ("{a,b}/{c,d}", ["a/c", "a/d", "b/c", "b/d"]),
        ("x{a,b{1,2}}", ["xa", "xb1", "xb2"]),
        ("{a,a}", ["a"]),
        ("a{,.bak}", ["a", "a.bak"]),
    ],
)
def test_braces(pattern, expected):
    assert sorted(expand_braces(pattern)) == sorted(expected)


def test_expand_normalises():
    assert expand(["./a//b/", "c/../d"]) == ["a/b", "d"]


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ("a/b.txt", "a/b.txt", True),
        ("a/b.txt", "a", True),
        ("a", "a/b.txt", True),
        ("a/*.txt", "a/b.txt", True),
        ("a/b.txt", "*/b.txt", True),
        ("a/b.txt", "a/c.txt", False),
        ("ab", "a", False),
        ("a/**", "a/b/c", True),
        ("a/*.txt", "a/b.wav", False),
    ],
)
def test_overlap(one, other, expected):
    assert overlap(one, other) is overlap(other, one) is expected


@pytest.fixture
def folder(tmp_path):
    """An experiment folder whose own name is full of characters that patterns use."""
    base = tmp_path / "é [x] {y} *"
    (base / "out" / "inner").mkdir(parents=True)
    (base / "out" / "a.txt").write_text("a")
    (base / "out" / "inner" / "b.txt").write_text("b")
    (base / "one.txt").write_text("one")
    return base


def touch_later(path):
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10_000_000))


def test_nothing_changed(folder):
    recorded = Artifacts(folder).fingerprints(["one.txt", "out", "out/*.txt"])
    assert set(recorded) == {"one.txt", "out", "out/a.txt"}
    assert Artifacts(folder).changes(recorded, ["one.txt", "out", "out/*.txt"]) == []


def test_same_content_at_another_time_is_no_change(folder):
    recorded = Artifacts(folder).fingerprints(["one.txt", "out"])
    touch_later(folder / "one.txt")
    touch_later(folder / "out" / "inner" / "b.txt")
    assert Artifacts(folder).changes(recorded, ["one.txt", "out"]) == []


def test_changed_content_of_the_same_size_is_a_change(folder):
    recorded = Artifacts(folder).fingerprints(["one.txt", "out"])
    (folder / "one.txt").write_text("two")
    (folder / "out" / "inner" / "b.txt").write_text("B")
    for path in ("one.txt", "out/inner/b.txt"):
        touch_later(folder / path)
    assert Artifacts(folder).changes(recorded, ["one.txt", "out"]) == [("one.txt", "has changed"), ("out", "has changed")]


def test_a_renamed_file_changes_its_folder(folder):
    recorded = Artifacts(folder).fingerprints(["out"])
    (folder / "out" / "a.txt").rename(folder / "out" / "c.txt")
    assert Artifacts(folder).changes(recorded, ["out"]) == [("out", "has changed")]


def test_missing_and_new_files(folder):
    recorded = Artifacts(folder).fingerprints(["out/*.txt", "one.txt"])
    (folder / "out" / "z.txt").write_text("z")
    (folder / "one.txt").unlink()
    (folder / "out" / "a.txt").unlink()
    assert sorted(Artifacts(folder).changes(recorded, ["out/*.txt", "one.txt"])) == [
        ("one.txt", "is missing"),
        ("out/a.txt", "is missing"),
        ("out/z.txt", "is new"),
    ]


def test_missing_lists_what_is_not_there(folder):
    assert Artifacts(folder).missing(["one.txt", "{one,two}.txt", "out/*.wav"]) == ["two.txt", "out/*.wav"]
    with pytest.raises(FileNotFoundError):
        Artifacts(folder).fingerprints(["two.txt"])


def test_what_is_no_longer_declared_does_not_count(folder):
    recorded = Artifacts(folder).fingerprints(["one.txt", "out/a.txt"])
    (folder / "one.txt").unlink()
    assert Artifacts(folder).changes(recorded, ["out/a.txt"]) == []


def test_large_files_are_judged_by_size_and_time(folder, monkeypatch):
    monkeypatch.setattr(artifacts, "HASH_LIMIT", 2)
    recorded = Artifacts(folder).fingerprints(["one.txt"])
    assert recorded["one.txt"]["hash"] is None
    assert Artifacts(folder).changes(recorded, ["one.txt"]) == []
    touch_later(folder / "one.txt")
    assert Artifacts(folder).changes(recorded, ["one.txt"]) == [("one.txt", "has changed")]


def test_known_hashes_are_not_computed_again(folder, monkeypatch):
    recorded = Artifacts(folder).fingerprints(["one.txt", "out"])
    files = Artifacts(folder)
    files.learn(recorded)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda path, *_: pytest.fail(f"{path}: read again"))
        again = files.fingerprints(["one.txt", "out"])
    assert again == recorded


def test_links_in_a_folder(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "out" / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "out" / "broken").symlink_to("nowhere")
    recorded = Artifacts(folder).fingerprints(["out"])
    (folder / "out" / "link").unlink()
    assert Artifacts(folder).changes(recorded, ["out"]) == [("out", "has changed")]


def test_remove_stays_inside_and_does_not_follow_links(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("keep")
    (folder / "link").symlink_to(outside)
    Artifacts(folder).remove(["out", "one.txt", "link", "nothing", str(outside), "../outside", "."])
    assert (outside / "precious.txt").exists() and folder.exists()
    assert list(folder.iterdir()) == []


def test_half_written_files_are_no_content_and_are_removed(folder):
    recorded = Artifacts(folder).fingerprints(["out"])
    (folder / "out" / "inner" / ".123.tmp.b.txt").write_text("half")
    (folder / "out" / ".hidden.tmp.mine").write_text("not ours")
    assert Artifacts(folder).changes(recorded, ["out"]) == [("out", "has changed")]  # by the second one
    (folder / "out" / ".hidden.tmp.mine").unlink()
    assert Artifacts(folder).changes(recorded, ["out"]) == []
    (folder / "out" / ".hidden.tmp.mine").write_text("not ours")
    Artifacts(folder).remove_temporary()
    assert sorted(path.name for path in (folder / "out").rglob("*") if path.is_file()) == [".hidden.tmp.mine", "a.txt", "b.txt"]


def test_absolute_paths(folder, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.wav").write_text("x")
    recorded = Artifacts(folder).fingerprints([str(corpus), f"{corpus}/*.wav"])
    assert set(recorded) == {str(corpus), str(corpus / "a.wav")}
    (corpus / "a.wav").write_text("xx")
    assert len(Artifacts(folder).changes(recorded, [str(corpus), f"{corpus}/*.wav"])) == 2
