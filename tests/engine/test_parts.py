"""Work in parts: what was killed goes on at the parts that are missing, whatever changed is made again."""

import json
import os
import random

import numpy as np
import pytest
from kill_harness import killed_until_it_ends

from pyspeech.engine.parts import Parts, Share, ShareDone, file_state, in_parts
from pyspeech.errors import UserError
from pyspeech.files import atomic_write

PARTS = {f"part {number}": number for number in range(12)}


def squares(folder, jobs=1, parts=PARTS, kept=None):
    """{name: [square, name of its file]}; folder gets a file a part, and a line in `made` for each that is made."""

    def work(number):
        with open(folder / "made", "a", encoding="utf-8") as stream:
            stream.write(f"{number}\n")
        with atomic_write(folder / f"{number}.txt") as stream:
            stream.write(str(number**2))
        return number**2, f"{number}.txt"

    return in_parts(kept, "squares", work, parts, jobs, files=lambda number: [folder / f"{number}.txt"])


def made(folder):
    """The numbers that were made since the last look, sorted."""
    path = folder / "made"
    numbers = sorted(map(int, path.read_text().split())) if path.exists() else []
    path.unlink(missing_ok=True)
    return numbers


EXPECTED = {name: [number**2, f"{number}.txt"] for name, number in PARTS.items()}


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_in_order_and_nothing_kept_without_a_folder(tmp_path, jobs):
    for _ in range(2):
        found = squares(tmp_path, jobs)
        assert found == EXPECTED and list(found) == list(PARTS)
        assert made(tmp_path) == list(range(12))
    assert in_parts(None, "nothing", abs, {}, jobs) == {}


@pytest.mark.parametrize("jobs", [1, 2])
def test_kept_parts_are_not_made_again(tmp_path, jobs):
    kept = Parts(tmp_path / "parts")
    assert squares(tmp_path, jobs, kept=kept) == squares(tmp_path, jobs, kept=kept) == EXPECTED
    assert made(tmp_path) == list(range(12))
    (tmp_path / "3.txt").unlink()  # somebody tidied up
    record = tmp_path / "parts/squares/part 5.json"
    record.write_text(record.read_text()[:-9])  # not one of ours: ours are whole
    changed = {**PARTS, "part 7": 70, "part 12": 12}
    assert squares(tmp_path, jobs, changed, kept) == {**EXPECTED, "part 7": [4900, "70.txt"], "part 12": [144, "12.txt"]}
    assert made(tmp_path) == [3, 5, 12, 70]


def test_a_changed_file_is_an_input(tmp_path):
    paths = {name: tmp_path / name for name in ("a", "b")}
    for path in paths.values():
        path.write_text("one")

    def texts():
        kept, inputs = Parts(tmp_path / "parts"), lambda path: (path, file_state(path))
        return in_parts(kept, "texts", lambda path: path.read_text(), paths, inputs=inputs)

    assert texts() == {"a": "one", "b": "one"}
    paths["b"].write_text("two")
    os.utime(paths["b"], ns=(1, 1))
    assert texts() == {"a": "one", "b": "two"}
    assert file_state(tmp_path / "nothing") is None


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 2), np.float32), "c": np.array([1, -2], "<i2")}
    for _ in range(2):
        found = in_parts(Parts(tmp_path), "arrays", lambda one: [one, one.shape, one.sum()], arrays)
        for name, array in arrays.items():
            back, shape, total = found[name]
            assert np.array_equal(back, array) and back.dtype == array.dtype and back.shape == array.shape
            assert (shape, total) == (list(array.shape), array.sum())
            back[:] = 1  # may be written to


def test_shares_make_all_together_and_each_stops_there(tmp_path):
    for index in range(3):
        with pytest.raises(ShareDone):
            squares(tmp_path, kept=Parts(tmp_path / "parts", Share(index, 3)))
        assert made(tmp_path) == list(range(index, 12, 3))
    assert squares(tmp_path, kept=Parts(tmp_path / "parts")) == EXPECTED
    assert made(tmp_path) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_fails_leaves_the_others(tmp_path, jobs):
    def work(number):
        if number == 9:
            raise UserError("part 9 cannot be made")
        return number

    with pytest.raises(UserError, match="part 9 cannot be made"):
        in_parts(Parts(tmp_path / "parts"), "some", work, PARTS, jobs)
    kept = {path.stem for path in (tmp_path / "parts/some").iterdir()}
    assert "part 0" in kept and "part 9" not in kept


def test_killed_at_random_moments(tmp_path):
    """SIGKILL again and again: the results of an undisturbed run, and no more than one part is lost at a time."""

    def run():
        found = squares(tmp_path, kept=Parts(tmp_path / "parts"))
        with atomic_write(tmp_path / "result") as stream:
            json.dump(found, stream)

    kills = killed_until_it_ends(run, tmp_path, random.Random(5), 20)
    assert kills > 3
    assert json.loads((tmp_path / "result").read_text()) == EXPECTED
    assert len(made(tmp_path)) <= len(PARTS) + kills
