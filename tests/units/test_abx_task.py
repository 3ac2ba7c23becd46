"""Compiled ABX tasks: the same items and errors as of the .item file, in both layouts; what is no such task, or not whole."""

import json
import logging
import math
import pickle

import h5py
import numpy as np
import pytest
from abx_task_file import write_task
from tiny_audio import read_cuts
from tiny_zerospeech import make_zerospeech

from local.zerospeech import zerospeech2019
from pyspeech.commands import score_abx
from pyspeech.errors import UserError
from pyspeech.units import abx, abx_task
from pyspeech.units.items import Item, read_items

log = logging.getLogger("test")


def tokens(seed=0, count=90):
    """Items of 4 phones, 3 speakers, 3 contexts, each a piece of its speaker's file, and features at 25 Hz."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(count):
        onset = number * 0.2 + 0.01
        offset = round(onset + rng.uniform(0.05, 0.15), 4)
        context = (str(rng.choice(["p", "é"])), str(rng.choice(["t", "ŋ"])))
        speaker = str(rng.choice(["s1", "s2", "s3"]))
        items.append(Item(f"{speaker}_file", round(onset, 4), offset, str(rng.choice(list("aeiu"))), context, speaker))
    items.append(Item("s3_file", 0.0, 0.1, "a", ("k", "k"), "s3"))  # in no triplet, as the next
    items.append(Item("s4_file", 0.0, 0.1, "y", items[0].context, "s4"))
    return items, {f"{name}_file": rng.standard_normal((5 * count + 10, 3)) for name in ("s1", "s2", "s3", "s4")}


def write_items(path, items):
    rows = [f"{one.file} {one.onset} {one.offset} {one.phone} {' '.join(one.context)} {one.speaker}\n" for one in items]
    path.write_text("#file onset offset #phone prev-phone next-phone speaker\n" + "".join(rows), encoding="utf-8")
    return path


def in_triplets(items):
    """Items that are in a triplet, by the definition: as A, B or X."""
    found = set()
    for a in items:
        others = [b for b in items if b.context == a.context and b.speaker == a.speaker and b.phone != a.phone]
        same = [x for x in items if x.context == a.context and x.phone == a.phone and x.speaker != a.speaker]
        if others and same:
            found |= {a, *others, *same}
    return found


@pytest.mark.parametrize("old", [False, True])
def test_items_and_errors_are_those_of_the_item_file(tmp_path, old, monkeypatch):
    items, features = tokens()
    monkeypatch.setattr(abx_task, "ROWS", 7)  # far fewer than a block has
    task = write_task(tmp_path / "task.abx", items, old)
    found = abx_task.read_task(task)
    assert set(found) == in_triplets(items) and len(found) == len(set(found)) < len(items)
    assert abx_task.read_item_file(task) == found
    assert abx_task.read_item_file(write_items(tmp_path / "all.item", items)) == items
    for distance in ("cosine", "levenshtein"):
        errors = []
        for one in (items, found):
            cells = abx.score_cells(one, abx.load_frames(one, features, 25), distance, "across")
            errors.append(abx.error_rate(cells))
        assert errors[0] == pytest.approx(errors[1], abs=1e-6) and 20 < errors[0] < 80


def test_the_tool_takes_both(tmp_path, capsys):
    items, features = tokens(1)
    for name, values in features.items():
        np.save(tmp_path / f"{name}.npy", values)
    files = [write_items(tmp_path / "x.item", items), write_task(tmp_path / "x.abx", items)]
    found = []
    for file in files:
        arguments = ["--items", str(file), "--features", str(tmp_path), "--frame-rate", "25", "--mode", "across"]
        score_abx.main([*arguments, "--json", str(tmp_path / "out.json")])
        found.append(json.loads((tmp_path / "out.json").read_text())["across"])
    assert found[0]["cells"] == found[1]["cells"] > 100
    assert found[0]["error"] == pytest.approx(found[1]["error"], abs=1e-6)


def test_columns_of_another_pickle_and_type(tmp_path):
    items, _ = tokens()
    task = write_task(tmp_path / "task.abx", items)
    expected = abx_task.read_task(task)
    with h5py.File(task, "a") as stream:
        for group in stream["feat_dbs"].values():
            table = group["table"]
            table.attrs["values_block_1_kind"] = np.void(pickle.dumps(["file"], protocol=2))
    assert abx_task.read_task(task) == expected
    whole = [item._replace(onset=0.0, offset=1.0) for item in items]
    found = abx_task.read_task(write_task(tmp_path / "whole.abx", whole))
    assert {item.offset for item in found} == {math.inf}  # from 0 to 1 are shares: whole files
    features = {name: np.eye(3)[np.arange(70) % 3] for name in ("s1_file", "s2_file", "s3_file")}
    frames = abx.load_frames(found, features, 25)
    assert set(frames.lengths) == {70}


def test_what_cannot_be_scored_is_named(tmp_path):
    items, _ = tokens()
    for name, write, message in (
        ("sampled", lambda path: write_task(path, items, keep=lambda triplet: hash(triplet[0].onset) % 3), "its items make"),
        ("columns", lambda path: write_task(path, items, columns=("phone", "talker")), "no speaker_1, speaker_2; expected an"),
        ("text", lambda path: path.write_text("#file onset\n"), "cannot be read as HDF5"),
        ("empty", lambda path: h5py.File(path, "w").close(), "not a task that can be read .*triplets"),
        ("nothing", lambda path: None, "cannot be read as HDF5"),
    ):
        write(tmp_path / f"{name}.abx")
        with pytest.raises(UserError, match=message) as caught:
            abx_task.read_task(tmp_path / f"{name}.abx")
        assert "\n" not in str(caught.value) and f"{name}.abx" in str(caught.value)
    path = write_task(tmp_path / "two.abx", items)
    with h5py.File(path, "a") as stream:
        name = next(iter(stream["regressors"]))
        stream[f"regressors/{name}/indexed_data"][0, 1] ^= 1
    with pytest.raises(UserError, match="an item of block .* has two labels"):
        abx_task.read_task(path)
    assert abx_task.read_task(path, wanted=lambda name: False) == []


@pytest.mark.parametrize("shares", [False, True])
def test_a_corpus_with_the_official_task_alone(tmp_path, shares, caplog):
    """The official place, beside a language that the task knows nothing of: items as of the corpus's .item file."""
    corpus = make_zerospeech(tmp_path / "2019", ("english", "surprise"), utterances=2)
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log)["items"] == 18
    expected = read_items(tmp_path / "out/abx.item")
    listed = read_items(corpus / "english/triphone.item")
    for path in corpus.rglob("*.item"):
        path.unlink()
    (corpus / "ABXTasks").mkdir()
    write_task(corpus / "ABXTasks/byCtxt_acSpkr.abx", [item._replace(offset=1.0) for item in listed] if shares else listed)
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log)["items"] == 18
    found = read_items(tmp_path / "out/abx.item")
    key = {item.file: item for item in expected}
    assert len(found) == 18 and {item.file for item in found} == set(key)
    durations = {cut.id: cut.duration for cut in read_cuts(tmp_path / "out", "test")}
    for item in found:
        assert item[3:] == key[item.file][3:] and item.onset == 0
        assert item.offset == pytest.approx(durations[item.file] if shares else key[item.file].offset, abs=1e-4)
    for path in list((corpus / "surprise").iterdir()):
        if path.suffix == ".txt":
            path.unlink()
    for path in list((corpus / "surprise/test").iterdir()):
        path.rename(path.with_name(f"T{path.name}"))
    assert zerospeech2019.prepare(corpus, tmp_path / "other", log, language="surprise")["items"] == 0
    assert "byCtxt_acSpkr.abx names none); there will be no ABX" in caplog.text
