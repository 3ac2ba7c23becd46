"""Sections that each task adds to the page of an experiment: a module of the task with `view(experiment, media)`.

A view is a list of sections, {"id", "title", "template", ...}: the template of that name shows the rest.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

# {a file or folder of an experiment, as a pattern: the module that shows it}
VIEWS = {
    "corpus/reference": "pyspeech.sad.page",
    "decoded": "pyspeech.asr.page",
    "scores/*/*/*.txt": "pyspeech.spoof.page",
    "units/*/*/*": "pyspeech.units.page",
}


def view(experiment: Any, media: Any) -> list[dict[str, Any]]:
    """The sections of the task that an Experiment belongs to, by what is in its folder; none for a task without a view."""
    for pattern, module in VIEWS.items():
        if next(Path(experiment.folder).glob(pattern), None):
            return importlib.import_module(module).view(experiment, media)
    return []
