"""The frame of the recipe tests finds what it is for: stages that meddle, and kills that miss."""

import pytest
import recipe_harness
from recipe_harness import Recipe

TOY = """
import time
from dataclasses import dataclass

from pyspeech.engine.recipe import Recipe


@dataclass
class Config:
    also: str = ""  # what the second stage does beside its work
    seconds: float = 0.0  # that it takes

    def check(self):
        pass


recipe = Recipe("Toy", Config)


@recipe.stage(outputs=["first"])
def first(exp, conf):
    (exp.dir / "first").mkdir()
    (exp.dir / "first" / "a").write_text("a")


@recipe.stage(config=["also", "seconds"], inputs=["first"], outputs=["second"])
def second(exp, conf):
    time.sleep(conf.seconds)
    (exp.dir / "second").write_text("b")
    if conf.also == "change":
        (exp.dir / "first" / "a").write_text("c")
    if conf.also == "remove":
        (exp.dir / "first" / "a").unlink()
    if conf.also == "add":
        (exp.dir / "first" / "b").write_text("c")


if __name__ == "__main__":
    recipe.main()
"""


@pytest.fixture
def toy(tmp_path):
    recipe = Recipe("toy")
    recipe.script = tmp_path / "run.py"
    recipe.script.write_text(TOY)
    return recipe


@pytest.mark.parametrize("also, found", [("change", "['first/a']"), ("remove", "['first/a']"), ("add", "wrote ['first/b']")])
def test_a_stage_that_meddles_is_found(toy, tmp_path, also, found):
    with pytest.raises(AssertionError) as error:
        toy.run_stage_by_stage(tmp_path / "exp", f"also={also}")
    assert "second changed or removed" in str(error.value) and found in str(error.value)


def test_stages_that_keep_to_their_own(toy, tmp_path):
    output = toy.run_stage_by_stage(tmp_path / "exp")
    assert "first: done" in output and "second: done" in output and toy.would_run(tmp_path / "exp") == []


def test_a_kill_is_in_the_stage_meant_or_fails(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe_harness, "ATTEMPTS", 2)
    toy.kill_in_stage("second", 0.1, tmp_path / "slow", "seconds=60")
    assert (tmp_path / "slow" / "stages" / "second.attempt.json").exists()
    with pytest.raises(AssertionError, match="second finished before each of 2 kills"):
        toy.kill_in_stage("second", 1.0, tmp_path / "fast")
    with pytest.raises(AssertionError, match="second has not begun"):
        toy.kill_in_stage("second", 0.1, tmp_path / "fast")
