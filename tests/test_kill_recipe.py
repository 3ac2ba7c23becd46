"""kill_recipe.py on the toy recipe: it is disturbed until it ends, and a difference is seen."""

import random

import kill_recipe
import pytest
from kill_recipe import compare, describe, fail_writes, kill_until_it_ends, run_once
from recipe_harness import Recipe
from toy_harness import Toy


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The toy recipe, whose results are a results.json, and the folder of its undisturbed run."""
    toy = Toy(tmp_path / "toy")
    source = (toy.folder / "run.py").read_text(encoding="utf-8").replace("results.txt", "results.json")
    (toy.folder / "run.py").write_text(source, encoding="utf-8")
    recipe = Recipe(toy.folder)
    assert run_once(recipe, tmp_path / "undisturbed")[0] == 0
    return recipe, tmp_path / "undisturbed"


def test_killed_until_it_ends(toy, tmp_path, monkeypatch):
    recipe, undisturbed = toy
    monkeypatch.setenv("TOY_SLEEP", "0.3")  # 2.1 s in all
    said = []
    assert kill_until_it_ends(recipe, tmp_path / "killed", random.Random(1), 0.5, 4, said.append) == len(said) + 1 > 1
    assert compare(undisturbed, tmp_path / "killed") == []
    assert describe(tmp_path / "killed") == "4 stages done, begun: none"


def test_no_progress_is_seen(toy, tmp_path, monkeypatch):
    recipe, _ = toy
    monkeypatch.setenv("TOY_SLEEP", "20")
    monkeypatch.setattr(kill_recipe, "PATIENCE", 3)
    with pytest.raises(AssertionError, match="3 attempts have come no further: 0 stages done"):
        kill_until_it_ends(recipe, tmp_path / "killed", random.Random(1), 0.5, 0.7)


def test_write_errors(toy, tmp_path):
    recipe, undisturbed = toy
    said = []
    fail_writes(recipe, undisturbed, tmp_path / "full", random.Random(2), 6, said.append)
    errors = [line for line in said if line.startswith("error ")]
    assert len(errors) == 6 and any("status 1: " in line and "No space left on device" in line for line in errors)
    (tmp_path / "full" / "results.json").write_text("other\n")
    with pytest.raises(AssertionError, match="full/results.json is not that of"):
        compare(undisturbed, tmp_path / "full")
