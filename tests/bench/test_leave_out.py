"""utils/bench/leave_out.py: tables of kept scores against a plain computation, settings, and one row by the recipe."""

import json
import re
import runpy

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT
from tiny_spoof import RATE, sound
from tool_harness import run_tool

from pyspeech.errors import UserError
from pyspeech.spoof.scoring import equal_error_rate

SYSTEMS = ("rnm_sm", "rnm_sm_mc0.8")
FAMILIES = ("A", "B, with a comma", "C")


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(ROOT / "utils/bench/leave_out.py"), run_name="tool")


def write_corpus(folder, pages, of_each, seconds=0.3):
    """A list of `of_each` genuine and as many fake files of each page, the fakes of families in turn."""
    rng, lines = np.random.default_rng(0), ["path\tlabel\tfamily\tspeaker\tpage"]
    folder.mkdir(parents=True)
    for page in range(pages):
        for number in range(2 * of_each):
            kind = ("genuine", "fake")[number % 2]
            family = FAMILIES[(page + number // 2) % len(FAMILIES)] if kind == "fake" else ""
            soundfile.write(folder / f"{page}_{number}.wav", sound(kind, seconds, rng), RATE)
            lines.append(f"{page}_{number}.wav\t{kind}\t{family}\ts{page}_{number // 4}\tpage {page}")
    (folder / "list.tsv").write_text("\n".join(lines) + "\n")
    return folder / "list.tsv"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("pages") / "a é", 9, 4)


def cells(text, title):
    """{first cell: the others} of the table below a title."""
    lines = text.split(f"\n{title}: ")[1].split("\n\n")[1].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in [rows[0], *rows[2:]]}


def keep_rows(bench, folder, options, skill):
    """Made-up scores of every row: {(split, system, seed): {utterance: score}}; skill: {system: genuine less fake}."""
    utterances, kept = bench["read_corpus"](options.corpus), {}
    (folder / "rows").mkdir(parents=True)
    for split in bench["make_splits"](utterances, options):
        for system in options.systems:
            for seed in options.seeds:
                rng = np.random.default_rng([seed, len(split.name), split.fold])  # the same noise for all systems
                scores = {
                    one.id: skill[system] * (one.text == "genuine") + rng.standard_normal()
                    for one in utterances
                    if split.sets.get(one.id) == "eval"
                }
                kept[split.name, system, seed] = scores
                place = folder / "rows" / f"{split.name} {system} {seed}.json"
                place.write_text(json.dumps({"seconds": 1.0, "scores": scores}))
    return utterances, kept


def eer(utterances, scores, family=None, page=None):
    """In %, of those of a family (and all genuine ones), or of a page."""
    wanted = [one for one in utterances if one.id in scores and page in (None, one.custom["page"])]
    wanted = [one for one in wanted if one.text == "genuine" or family in (None, one.custom["family"])]
    pair = ([scores[one.id] for one in wanted if one.text == kind] for kind in ("genuine", "fake"))
    return 100 * equal_error_rate(*pair)[0]


def test_tables(bench, corpus, tmp_path, capsys):
    arguments = ["--corpus", str(corpus), "--folder", str(tmp_path / "x y"), "--folds", "3", "--sizes", "2", "4"]
    arguments += ["--sized-folds", "2", "--seeds", "1", "2", "--most", "0"]
    options = bench["parser"]().parse_args(arguments)
    bench["main"](arguments)
    assert capsys.readouterr().out.endswith("no row is finished\n")
    utterances, kept = keep_rows(bench, tmp_path / "x y", options, {"rnm_sm": 0.5, "rnm_sm_mc0.8": 1.5})
    bench["main"](arguments)
    text = capsys.readouterr().out

    pages = cells(text, "pages")
    assert pages["left out"][:7] == ["pages", "genuine", "fake", "rnm_sm", "interval", "rnm_sm_mc0.8", "interval"]
    assert pages["left out"][7:] == ["rnm_sm_mc0.8 - rnm_sm", "interval"]
    means = {
        (fold, system): np.mean([eer(utterances, kept[f"pages-{fold}", system, seed]) for seed in (1, 2)])
        for fold in (1, 2, 3)
        for system in SYSTEMS
    }
    for fold in (1, 2, 3):
        first, second = (means[fold, system] for system in SYSTEMS)
        row = pages[f"fold {fold}"]
        assert [row[0], row[1], row[2]] == ["3", "12", "12"]
        assert [float(row[place]) for place in (3, 5, 7)] == pytest.approx([first, second, second - first], abs=0.051)
    row = pages["mean over folds"]
    first, second = (np.mean([means[fold, system] for fold in (1, 2, 3)]) for system in SYSTEMS)
    assert [float(row[place]) for place in (3, 5, 7)] == pytest.approx([first, second, second - first], abs=0.051)
    low, high = map(float, re.findall(r"-?[\d.]+", row[8]))
    assert low < second - first < high < 0  # the systems differ
    by_page = [
        np.mean([eer(utterances, kept[f"pages-{split.fold}", "rnm_sm", seed], page=page) for seed in (1, 2)])
        for split in bench["make_splits"](utterances, options)
        if split.kind == "pages" and split.size is None
        for page in split.held
    ]
    assert float(pages["mean over 9 pages with both classes"][3]) == pytest.approx(np.mean(by_page), abs=0.051)

    families, found = cells(text, "families"), []
    for split in bench["make_splits"](utterances, options):
        for family in split.held if split.kind == "families" else ():
            rates = [eer(utterances, kept[split.name, "rnm_sm_mc0.8", seed], family) for seed in (1, 2)]
            found.append(np.mean(rates))
            assert float(families[family][5]) == pytest.approx(found[-1], abs=0.051)
            assert families[family][:3] == [str(split.fold), "9", "12"]
    assert len(found) == 3 and float(families["mean over families"][5]) == pytest.approx(np.mean(found), abs=0.051)

    sizes = cells(text, "sizes")
    assert list(sizes) == ["pages for training", "2", "4", "all others"]
    assert {row[0] for name, row in sizes.items() if name != "pages for training"} == {"2"}
    smallest = [eer(utterances, kept[f"pages-{fold}-from-2", "rnm_sm", seed]) for fold in (1, 2) for seed in (1, 2)]
    assert float(sizes["2"][1]) == pytest.approx(np.mean(smallest), abs=0.051)
    assert float(sizes["all others"][1]) == pytest.approx(np.mean([means[fold, "rnm_sm"] for fold in (1, 2)]), abs=0.051)

    (tmp_path / "x y" / "rows" / "pages-2 rnm_sm 2.json").unlink()
    bench["main"](arguments)
    text = capsys.readouterr().out
    assert "fold 2" not in cells(text, "pages") and cells(text, "sizes")["2"][0] == "1"


def test_other_settings_need_another_folder(bench, corpus, tmp_path):
    arguments = ["--corpus", str(corpus), "--folder", str(tmp_path), "--most", "0", "--folds", "3", "--sizes", "2"]
    bench["main"](arguments)
    with pytest.raises(UserError, match="its rows are of other set; expected another folder"):
        bench["main"]([*arguments, "--set", "train.lr=0.1"])
    soundfile.write(tmp_path / "a.wav", [0.1], RATE)
    (tmp_path / "list.csv").write_text("path,label\na.wav,real\n")
    with pytest.raises(UserError, match="a.wav has no page; expected a column page"):
        bench["main"](["--corpus", str(tmp_path / "list.csv"), *arguments[2:]])


@pytest.mark.slow
def test_a_row_by_the_recipe(corpus, tmp_path):
    options = ["--corpus", corpus, "--folder", tmp_path, "--folds", "3", "--tables", "pages", "--systems", "none"]
    options += ["--profile", "quick", "--most", "1", "--set", "data.samples=8192", "data.hop=8192", "data.batch_size=8"]
    options += ["data.clean_batches=0", "train.max_steps=4", "augment.noise=0", "augment.music=0", "augment.reverberation=0"]
    done = run_tool("bench/leave_out", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"pages-1 none 42: \d+ s\n", done.stdout) and "fold 1" in cells(done.stdout, "pages")
    row = json.loads((tmp_path / "rows" / "pages-1 none 42.json").read_text())
    lists = (tmp_path / "lists" / "pages-1.csv").read_text().splitlines()
    assert len(row["scores"]) == sum(",eval," in line for line in lists) == 24
    again = run_tool("bench/leave_out", *options, "--most", "0")
    assert again.returncode == 0 and cells(again.stdout, "pages") == cells(done.stdout, "pages")
