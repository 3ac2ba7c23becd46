"""The names that report pages have for systems: those of the tables, for every system that a recipe can train."""

import importlib
import json
from types import SimpleNamespace

import pytest
from tiny_experiments import make_sad

from steps.asr.tables import MODELS
from steps.page import make_page
from steps.sad.systems import FIXED, PAPER, TUNED, VOTES
from steps.spoof.train import SYSTEMS as SPOOF_SYSTEMS
from steps.units.train import SYSTEMS as UNIT_SYSTEMS

TASKS = {"sad": [*PAPER, *VOTES, *TUNED, *FIXED], "asr": MODELS, "spoof": SPOOF_SYSTEMS, "units": UNIT_SYSTEMS}


@pytest.mark.parametrize("task", TASKS)
def test_each_system_has_a_name_of_its_own(task):
    names = importlib.import_module(f"steps.{task}.tables").names()
    assert set(TASKS[task]) <= set(names)
    own = [names[system] for system in TASKS[task]]
    assert len(set(own)) == len(own)


def test_page_of_the_stage_has_the_names(tmp_path):
    folder = make_sad(tmp_path / "exp")
    for part in ("hypotheses", "frame_scores"):
        (folder / part / "good").rename(folder / part / "cnn")
    make_page(SimpleNamespace(dir=folder), None, tables="steps.sad.tables")
    assert json.loads((folder / "report" / "names.json").read_text())["cnn"] == "CNN + HMM"
    assert '<option value="CNN + HMM"' in (folder / "report" / "index.html").read_text(encoding="utf-8")
