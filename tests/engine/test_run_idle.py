"""Stages that the configuration leaves nothing to make: they neither run nor lose what they made for another one."""

from dataclasses import dataclass, field

import pytest

from pyspeech import compat
from pyspeech.engine.recipe import Recipe


@dataclass
class Config:
    systems: list[str] = field(default_factory=lambda: ["one", "two"])


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(arguments) -> the names of the stages that ran."""
    monkeypatch.setattr(compat, "describe_environment", lambda: "Python of the tests")
    ran, recipe = [], Recipe("Systems", Config)

    def declare(system):
        @recipe.stage(name=system, outputs=lambda conf: [f"{system}.txt"] * (system in conf.systems))
        def make(exp, conf):
            ran.append(system)
            (exp.dir / f"{system}.txt").write_text(system)

    for system in ("one", "two"):
        declare(system)

    @recipe.stage(config=["systems"], inputs=lambda conf: [f"{name}.txt" for name in conf.systems], outputs=["all.txt"])
    def results(exp, conf):
        ran.append("results")
        (exp.dir / "all.txt").write_text(" ".join(conf.systems))

    def run(*arguments):
        ran.clear()
        recipe.main(["--exp", str(tmp_path / "exp"), *arguments])
        return list(ran)

    return run


def test_idle_stages_do_not_run_and_keep_what_they_made(run, capsys, caplog):
    assert run("systems=[one]") == ["one", "results"]
    assert "two" not in caplog.text
    assert run("systems=[one]", "--stage", "two", "--stop-stage", "two") == []
    assert "stage 1 two: nothing to make with these options" in caplog.text
    assert run() == ["two", "results"]
    assert run("systems=[two]") == ["results"]
    assert run("systems=[two]", "--force") == ["two", "results"]
    capsys.readouterr()
    assert run("systems=[two]", "--dry-run", "--force") == []
    assert [line.split(maxsplit=3)[2:] for line in capsys.readouterr().out.splitlines()] == [
        ["one", "nothing to make with these options"],
        ["two", "would run: forced"],
        ["results", "would run: forced"],
    ]
    assert run() == ["results"]
