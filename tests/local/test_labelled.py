"""Corpora that are a list of labelled files, or folders named after labels: columns, names, sets, and what stops."""

import json
import logging
import shutil
from collections import Counter

import numpy as np
import pytest
from tiny_audio import read_cuts, write_audio
from tool_harness import one_line_error

from local.add2022 import draw_sets, labelled, shortcuts
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError
from pyspeech.spoof.formats import family_of, label_of, original_of
from steps.spoof import tables
from steps.spoof.corpus import WAYS, kind_of

log = logging.getLogger("test")
HEADER = ["path", "label", "system", "family", "speaker", "language", "original", "split", "page"]
ROWS = [  # of one page; label, system, family, speaker, language, original
    ("real/a.wav", "Bona-Fide", "-", "", "s1", "en", ""),
    ("real/b.wav", "real", "genuine", "genuine", "s2", "de", ""),
    ("real/c.wav", "GENUINE", "", "", "-", "", ""),
    ("fake/a.wav", "spoof", "BigVGAN base", "BigVGAN", "s1", "en", "real/a.wav"),
    ("fake/x.wav", "Fake", "VITS", "", "", "", "b"),
    ("fake/y.wav", "fake", "", "", "", "", "nowhere"),
]


def write_list(path, rows, header=HEADER, delimiter="\t"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(delimiter.join(map(str, row)) for row in [header, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Six pages of the files of ROWS, in one list."""
    root = tmp_path_factory.mktemp("any é")
    rows = []
    for page in "abcdef":
        for number, (path, *columns) in enumerate(ROWS):
            write_audio(root / page / path, 0.2, seed=number)
            original = f"{page}/{columns[-1]}" if "/" in columns[-1] else columns[-1]
            rows.append((f"{page}/{path}", *columns[:-1], original, "", page))
    write_list(root / "list.tsv", rows)
    return root


def cuts_of(folder):
    return {
        cut.id: (part, cut)
        for part in ("train", "dev", "adapt", "eval")
        if (folder / f"{part}.jsonl.gz").exists()
        for cut in read_cuts(folder, part)
    }


@pytest.mark.parametrize("given", [".", "list.tsv"])
def test_a_list(made, tmp_path, given, caplog):
    with caplog.at_level(logging.INFO):
        counts = labelled.prepare(made / given, tmp_path, log)
    assert sum((Counter(count) for count in counts.values()), Counter()) == {"genuine": 18, "fake": 18}
    cuts = cuts_of(tmp_path)
    assert len(cuts) == 36 and all(set(counts[part]) == {"genuine", "fake"} for part in ("train", "dev", "eval"))
    pages = Counter((part, cut.supervisions[0].custom["page"]) for part, cut in cuts.values())
    assert set(pages.values()) == {6} and "drawn by page" in caplog.text  # a page lies in one set
    _, cut = cuts["b/fake/a"]
    assert (label_of(cut).kind, label_of(cut).attack, family_of(cut)) == ("fake", "BigVGAN base", "BigVGAN")
    assert (cut.supervisions[0].speaker, cut.supervisions[0].language) == ("s1", "en")
    assert original_of(cut) == "b/real/a" == original_of(cuts["b/real/a"][1])
    assert original_of(cuts["c/fake/y"][1]) == "nowhere"
    assert family_of(cuts["c/fake/x"][1]) == "VITS" and label_of(cuts["c/real/b"][1]).attack == "-"


def test_a_list_in_each_folder_and_its_own_names(made, tmp_path):
    root = shutil.copytree(made, tmp_path / "corpus")
    (root / "list.tsv").unlink()
    for page in "abcdef":
        rows = [(f"{place}", label, "some, text") for place, label, *_ in ROWS]
        write_list(root / page / "meta.tsv", rows, ["file", "label", "remark"])
    write_list(root / "sources.tsv", [("a", "MIT")], ["page", "licence"])
    labelled.prepare(root, tmp_path / "out", log)
    cuts = cuts_of(tmp_path / "out")
    assert len(cuts) == 36 and {cut.supervisions[0].custom["page"] for _, cut in cuts.values()} == set("abcdef")


def test_in_the_wild(tmp_path):
    """meta.csv beside the audio: file, speaker, label; people are in one set."""
    rows = [(f"{number}.wav", f"Speaker {number % 7}", ("spoof", "bona-fide")[number // 7 % 2]) for number in range(56)]
    for name, *_ in rows:
        write_audio(tmp_path / "release_in_the_wild" / name, 0.2)
    write_list(tmp_path / "release_in_the_wild/meta.csv", rows, ["file", "speaker", "label"], ",")
    labelled.prepare(tmp_path / "release_in_the_wild", tmp_path / "out", log)
    cuts = cuts_of(tmp_path / "out")
    assert len(cuts) == 56 and label_of(cuts["8"][1]).genuine and not label_of(cuts["0"][1]).genuine
    assert len({(part, cut.supervisions[0].speaker) for part, cut in cuts.values()}) == 7
    labelled.prepare(tmp_path / "release_in_the_wild", tmp_path / "test", log, test=True)
    assert len(read_cuts(tmp_path / "test", "eval")) == 56 and not (tmp_path / "test/train.jsonl.gz").exists()


def test_sets_that_are_told(made, tmp_path):
    rows = [
        (f"{page}/{place}", label, split)
        for page, split in zip("abcd", ("train", "validation", "TEST", "adapt"), strict=True)
        for place, label, *_ in ROWS
    ]
    rows[-7] = (*rows[-7][:1], "", rows[-7][2])  # a test file whose label is not known
    write_list(made / "told.csv", rows, ["path", "label", "split"], ";")
    counts = labelled.prepare(made / "told.csv", tmp_path, log)
    assert counts == {
        **{part: {"genuine": 3, "fake": 3} for part in ("train", "dev", "adapt")},
        "eval": {"genuine": 3, "fake": 2, "unlabelled": 1},
    }
    (made / "told.csv").unlink()


def test_folders(tmp_path, caplog):
    """Nested as one likes: a system is a folder below fake, a page one above both; a copy is named like its original."""
    for page in ("en", "de"):
        for part in ("training", "validation", "testing"):
            for name in ("LJ1", "LJ2"):
                write_audio(tmp_path / "own" / page / part / f"Real/{page}_{part}_{name}.wav", 0.2)
                write_audio(tmp_path / "own" / page / part / f"fake/melgan/x/{page}_{part}_{name}_gen.wav", 0.2)
    write_audio(tmp_path / "own/noise.wav", 0.2)
    counts = labelled.prepare(tmp_path / "own", tmp_path / "out", log)
    assert counts == {part: {"genuine": 4, "fake": 4} for part in ("train", "dev", "eval")}
    cuts = cuts_of(tmp_path / "out")
    _, cut = cuts["de_validation_LJ1_gen"]
    assert label_of(cut).attack == family_of(cut) == "melgan" and cut.supervisions[0].custom["page"] == "de"
    assert original_of(cut) == "de_validation_LJ1" == original_of(cuts["de_validation_LJ1"][1])
    assert "1 audio files in no folder named after a label" in caplog.text


def test_wavefake(tmp_path):
    for name in range(20):
        write_audio(tmp_path / "LJSpeech-1.1/wavs" / f"LJ{name}.wav", 0.2)
        for system in ("ljspeech_melgan", "ljspeech_hifiGAN"):
            write_audio(tmp_path / "generated_audio" / system / f"LJ{name}_gen.wav", 0.2)
    labelled.prepare(tmp_path, tmp_path / "out", log)
    cuts = cuts_of(tmp_path / "out")
    assert len(cuts) == 60 and Counter(label_of(cut).attack for _, cut in cuts.values()) == {
        "-": 20,
        "ljspeech_melgan": 20,
        "ljspeech_hifiGAN": 20,
    }
    assert original_of(cuts["generated_audio/ljspeech_melgan/LJ3_gen"][1]) == "LJ3"


def test_problems_are_named(made, tmp_path):
    root = shutil.copytree(made, tmp_path / "corpus")
    (root / "a/real/a.wav").unlink()
    (root / "b/real/a.wav").write_bytes(b"")
    rows = (root / "list.tsv").read_text(encoding="utf-8")
    (root / "list.tsv").write_text(rows + rows.splitlines()[4] + "\n", encoding="utf-8")
    labelled.prepare(root, tmp_path / "out", log)
    problems = (tmp_path / "out/problems.txt").read_text().splitlines()
    assert len(problems) == 3
    for words in (
        "list.tsv:38: ",
        "a/fake/a.wav is there twice, first in",
        "a/real/a.wav: no such audio file",
        "b/real/a.wav: the audio file is empty",
    ):
        assert words in "\n".join(problems)


def replace_in_list(old, new):
    def change(root):
        text = (root / "list.tsv").read_text(encoding="utf-8")
        (root / "list.tsv").write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (replace_in_list("Bona-Fide", "0"), "list.tsv:2: label '0'; expected genuine"),
        (replace_in_list("Bona-Fide", ""), "list.tsv:2: label ''; expected genuine"),
        (replace_in_list("a/real/b.wav", ""), "list.tsv:3: no path"),
        (replace_in_list("\ten\t\t\ta", "\ten\t\t"), "list.tsv:2: 8 columns; the header has 9"),
        (replace_in_list("\ten\t\t\ta", "\ten\t\tlast\ta"), "list.tsv:2: split 'last'; expected train"),
        (replace_in_list("\ten\t\t\ta", "\ten\t\ttrain\ta"), "list.tsv:3: no split, while others"),
        (replace_in_list("original\tsplit", "split\tsplit"), "two columns split"),
        (lambda root: shutil.copy(root / "list.tsv", root / "other.tsv"), "2 lists, list.tsv and other.tsv; name one"),
        (lambda root: (root / "list.tsv").write_text("a\tb\n"), "no audio in a folder of fake or genuine|genuine"),
        (lambda root: shutil.rmtree(root), "no such"),
    ],
)
def test_a_corpus_that_cannot_be_used(made, tmp_path, change, message):
    root = shutil.copytree(made, tmp_path / "corpus")
    change(root)
    if message.startswith("no audio"):
        for page in "abcdef":
            shutil.rmtree(root / page / "fake")
    with one_line_error(message):
        labelled.prepare(root, tmp_path / "out", log)


def test_what_is_labelled_is_told_from_other_layouts(made, tmp_path):
    assert kind_of(made) == kind_of(made / "list.tsv") == kind_of(made / "a") == "labelled"
    (tmp_path / "ADD_train_dev/label").mkdir(parents=True)
    (tmp_path / "ADD_train_dev/label/train_label.txt").write_text("a.wav genuine\n")
    assert kind_of(tmp_path) == "add2022"
    (tmp_path / "real").mkdir()
    assert kind_of(tmp_path) == "add2022"


# Sets


def utterances(pages=8, each=10):
    return [
        Utterance(f"{page}/{number}", "", ("genuine", "fake")[number % 2], "en", f"s{number % 3}", custom={"page": f"p{page}"})
        for page in range(pages)
        for number in range(each)
    ]


@pytest.mark.parametrize("way", ["page", "utterance"])
def test_sets_are_drawn_in_whole_groups(way):
    some = utterances()
    drawn = draw_sets.draw_sets(some, way, "corpus", log)
    found = {}
    for one in drawn:
        found.setdefault(draw_sets.GROUPS[way](one), set()).add(one.split)
    assert all(len(splits) == 1 for splits in found.values())
    kinds = Counter((one.split, one.text) for one in drawn)
    assert len(kinds) == 6 and all(5 <= kinds[split, kind] <= 10 for split in ("dev", "eval") for kind in ("genuine", "fake"))
    again = {one.id: one.split for one in draw_sets.draw_sets(some[::-1], way, "corpus", log)}
    assert again == {one.id: one.split for one in drawn}  # whatever the order


def test_families_are_in_one_set():
    some = [Utterance(f"{number}", "", "fake", "en", custom={"attack": f"A{number % 9}"}) for number in range(90)] + [
        Utterance(f"g{number}", "", "genuine", "en", f"s{number % 12}", custom={"attack": "-"}) for number in range(60)
    ]
    drawn = draw_sets.draw_sets(some, "family", "corpus", log)
    assert len({(one.split, one.custom["attack"]) for one in drawn if one.text == "fake"}) == 9
    assert len({(one.split, one.speaker) for one in drawn if one.text == "genuine"}) == 12
    assert len({(one.split, one.text) for one in drawn}) == 6


def test_too_few_groups(caplog):
    with pytest.raises(UserError, match="split_by=speaker: too few groups"):
        draw_sets.draw_sets(utterances(2, 2), "speaker", "corpus", log)
    assert {one.split for one in draw_sets.draw_sets(utterances(1, 4), "auto", "corpus", log)} == {"train"}
    assert "all are for training" in caplog.text
    assert WAYS == draw_sets.WAYS


# What the files say


def test_shortcuts_over_and_within_pages():
    """Pages with few fakes are loud: the level tells the classes apart over pages, and within them nothing does."""
    rng = np.random.default_rng(3)
    pages = np.repeat(np.array([f"p{number}" for number in range(20)]), 40)
    share = np.where(np.arange(800) // 40 % 2, 0.1, 0.9)
    genuine = rng.random(800) < share
    level = rng.standard_normal(800) + 4.0 * share
    found = shortcuts.page_check(level[:, None], genuine, pages)
    assert found["pages"] >= 18 and found["over"] < 0.2 and 0.35 < found["within"] < 0.65
    assert shortcuts.page_check(level[:, None], genuine, np.array(["p", "q"])[genuine.astype(int)]) == {}


def test_check_of_a_labelled_corpus(made, tmp_path):
    labelled.prepare(made, tmp_path, log)
    check = json.loads((tmp_path / "check.json").read_text())
    assert set(check["files"]) == {"dev", "eval"} and set(check["pages"]) == {"files", "mel"}
    assert check["pages"]["files"]["pages"] == 6
    assert "% over pages" in tables.shortcut_note(check) and "within the 6 of both classes" in tables.shortcut_note(check)
