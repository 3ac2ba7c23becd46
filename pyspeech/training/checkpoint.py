"""Checkpoint files of a training run: each is whole or not there, damage is noticed, and the n best can be averaged.

checkpoint-<step>.pt            everything that training needs to go on
checkpoint-<step>.pt.corrupt    one that did not load, set aside
best-<step>.pt                  weights and metrics after a validation that was among the n best
best.pt                         the result
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from pyspeech.compat import DamagedFile, load_checkpoint

if TYPE_CHECKING:
    import logging
    from pathlib import Path


def numbered_files(folder: Path, prefix: str) -> dict[int, Path]:
    """{step: path} of the files `<prefix>-<step>.pt` in `folder`, by rising step."""
    found = {}
    for path in folder.glob(f"{prefix}-*.pt"):
        match = re.fullmatch(rf"{prefix}-(\d+)\.pt", path.name)
        if match:
            found[int(match.group(1))] = path
    return dict(sorted(found.items()))


def load_newest(folder: Path, log: logging.Logger) -> tuple[Path, dict[str, Any]] | None:
    """(path, content) of the newest checkpoint that loads, or None; one that does not is renamed to `.corrupt`."""
    for path in reversed(numbered_files(folder, "checkpoint").values()):
        try:
            return path, load_checkpoint(path)
        except DamagedFile as error:
            aside = path.with_name(path.name + ".corrupt")
            path.replace(aside)
            log.warning("%s is damaged (%s): renamed to %s, the checkpoint before it is used", path, error.reason, aside.name)
    return None


def remove_older(folder: Path, keep: int) -> None:
    """Remove all but the `keep` newest checkpoints."""
    for path in list(numbered_files(folder, "checkpoint").values())[:-keep]:
        path.unlink()


def remove_best_except(folder: Path, steps: Collection[int]) -> None:
    """Remove the best-<step>.pt of all other steps."""
    for step, path in numbered_files(folder, "best").items():
        if step not in steps:
            path.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that were killed. Nothing else may be writing checkpoints in `folder`."""
    for pattern in ("checkpoint-*.pt", "best-*.pt", "best.pt"):
        for path in folder.glob(f".*.tmp.{pattern}"):
            path.unlink()


def average(paths: Sequence[str | Path]) -> dict[str, torch.Tensor]:
    """`mean` of the "model" state dicts in the files `paths`."""
    return mean(load_checkpoint(path)["model"] for path in paths)


def mean(states: Iterable[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The mean of one state dict or more, of which one is held at a time; the first becomes it.

    Floating-point tensors are averaged in float64 and keep their type. Anything else (such as the number of batches
    that batch normalisation has seen) is taken from the first.
    """
    states, count = iter(states), 1
    result = next(states)
    names = [name for name, value in result.items() if torch.is_tensor(value) and value.is_floating_point()]
    sums = {name: result[name].to(torch.float64, copy=True) for name in names}
    for state in states:
        count += 1
        for name in names:
            sums[name] += state[name]
    for name in names:
        result[name] = (sums[name] / count).to(result[name].dtype)
    return result
