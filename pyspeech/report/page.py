"""The report page of an experiment: index.html, with styles and script within, and the audio of its examples beside it.

`write_page` makes it from what the stages have left. All text of the experiment (names, transcripts, options) is data for
Jinja2 templates, which escape it.
"""

from __future__ import annotations

import importlib
import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspeech.files import atomic_write
from pyspeech.report import blocks, charts
from pyspeech.report.experiment import Experiment, read_experiment
from pyspeech.report.media import AUDIO, LIMIT, Media

PAGE = "index.html"
FIRST_CURVES = ("loss", "accuracy")  # what is minimised on dev stands after these
HIDDEN_CURVES = ("lr", "grad_norm")
# {a file or folder of an experiment, as a pattern: the module of its task, whose `view(experiment, media)` gives sections,
# {"id", "title", "template", ...}: the template of that name shows the rest}
VIEWS = {
    "corpus/reference": "pyspeech.sad.page",
    "decoded": "pyspeech.asr.page",
    "scores/*/*/*.txt": "pyspeech.spoof.page",
    "units/*/*/*": "pyspeech.units.page",
}
log = logging.getLogger(__name__)


def write_page(folders: Sequence[Path | str], out: Path | str, limit: int = LIMIT) -> Path:
    """Write the page of one experiment, or of several side by side.

    Args:
        folders: Experiment folders.
        out: Folder of the page; its audio files of before are removed.
        limit: Bytes of all audio and pictures.

    Returns:
        The path of index.html.

    Raises:
        UserError: for a folder that is no experiment.
    """
    begun, out = time.monotonic(), Path(out)
    experiments = [read_experiment(folder) for folder in folders]
    _number_equal_names(experiments)
    shutil.rmtree(out / AUDIO, ignore_errors=True)
    shown = []
    for experiment in experiments:
        media = Media(out, limit // len(experiments))
        sections = view(experiment, media)
        results = blocks.sections(experiment.text)
        shown.append({"it": experiment, "views": sections, "results": results, "left_out": media.left_out})
    with atomic_write(out / PAGE) as stream:
        stream.write(_render({"experiments": shown, "sections": _side_by_side(shown), "curves": training_charts(experiments)}))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    log.info("%s: %.1f MB, made in %.1f s", out / PAGE, size / 1e6, time.monotonic() - begun)
    return out / PAGE


def view(experiment: Experiment, media: Media) -> list[dict[str, Any]]:
    """The sections of the task that an Experiment belongs to, by what is in its folder; none for a task without a view."""
    for pattern, module in VIEWS.items():
        if next(experiment.folder.glob(pattern), None):
            return importlib.import_module(module).view(experiment, media)
    return []


def _number_equal_names(experiments):
    """Two experiments of one name are told apart by the folder that each is in."""
    names = [experiment.name for experiment in experiments]
    for experiment in experiments:
        if names.count(experiment.name) > 1:
            experiment.name = "/".join(experiment.folder.resolve().parts[-3:])


def _side_by_side(shown):
    """[{"id", "title", "columns": [(name of an experiment, its section of this title, or None)]}]; each id is there once."""
    titles: dict[str, str] = {section["title"]: section["id"] for each in shown for section in each["views"]}
    groups = []
    for title, id in titles.items():
        of_title = [(each["it"].name, next((s for s in each["views"] if s["title"] == title), None)) for each in shown]
        earlier = sum(group["id"].partition("-")[0] == id for group in groups)
        groups.append({"id": f"{id}-{earlier + 1}" if earlier else id, "title": title, "columns": of_title})
    return groups


def training_charts(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """One chart for each quantity that trainings log, with a line for each training of each experiment."""
    lines: dict[str, dict[str, charts.Points]] = {}
    for experiment in experiments:
        for training, curves in experiment.curves.items():
            label = f"{experiment.name}: {training}" if len(experiments) > 1 else training
            for quantity, points in curves.items():
                if quantity not in HIDDEN_CURVES:
                    lines.setdefault(quantity, {})[label] = points
    order = sorted(lines, key=lambda name: (name not in FIRST_CURVES, not name.startswith("validation"), name))
    return [charts.line_chart(quantity, lines[quantity], "step", quantity) for quantity in order]


def _render(content):
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pyspeech.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["seconds"] = _clock
    environment.filters["code"] = _code
    return environment.get_template("page.html").render(content)


def _code(text):
    """Text with what stands between backticks as code, all of it escaped."""
    import markupsafe

    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a backtick without its partner
        return text
    marked = (
        markupsafe.Markup("<code>{}</code>").format(piece) if odd % 2 else markupsafe.escape(piece)
        for odd, piece in enumerate(pieces)
    )
    return markupsafe.Markup("").join(marked)


def _clock(seconds):
    """ "1:02:03" of seconds, "12.3 s" of few."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02} min"
