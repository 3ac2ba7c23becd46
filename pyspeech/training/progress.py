"""Progress of a training: log lines every few steps, TensorBoard, and a bar on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging
    from pathlib import Path

    import torch


class StepClock:
    """Clock of the steps since the last log line, without validations and checkpoints.

    On a GPU a step ends with reading its loss, so what is counted as computing is computed.
    """

    def __init__(self) -> None:
        self.steps, self.seconds, self._since = 0, {"waiting": 0.0, "computing": 0.0}, time.monotonic()

    def begin(self) -> None:
        """Note that a step begins to wait for its data."""
        self._since = time.monotonic()

    def has_read(self) -> None:
        """Note that the data of a step has been read and that computing starts."""
        self._add("waiting")

    def end(self) -> None:
        """Note that the step is done."""
        self._add("computing")
        self.steps += 1

    def _add(self, part):
        now = time.monotonic()
        self.seconds[part] += now - self._since
        self._since = now

    def read(self, device: torch.device) -> dict[str, float]:
        """{"speed/steps_per_second", "speed/waiting": the share of the time spent waiting for data, and on a GPU
        "speed/gpu_gigabytes": the most that this process has held}; then counts anew."""
        total = max(sum(self.seconds.values()), 1e-9)
        values = {"speed/steps_per_second": self.steps / total, "speed/waiting": self.seconds["waiting"] / total}
        if device.type == "cuda":
            import torch

            values["speed/gpu_gigabytes"] = torch.cuda.max_memory_reserved(device) / 2**30
        self.steps, self.seconds = 0, dict.fromkeys(self.seconds, 0.0)
        return values


class Progress:
    """Reports of one run of the training loop; a context manager.

    folder       TensorBoard's files go to `folder`/tensorboard
    first_step   the step that this run goes on from, 0 for a new one
    last_step    the step at which it will end, as far as is known, or None
    history      the points so far, as for `record`. TensorBoard's files are written anew from them: those of a run that
                 was killed lack some points, and have others that will come again.
    """

    def __init__(
        self, folder: Path, log: logging.Logger, first_step: int, last_step: int | None, history: Iterable[Mapping[str, Any]]
    ) -> None:
        self.folder, self.log, self.first_step, self.last_step = folder, log, first_step, last_step
        self._history = list(history)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        from torch.utils.tensorboard import SummaryWriter

        for path in (self.folder / "tensorboard").glob("events.out.tfevents.*"):
            path.unlink()
        # The purge is for a TensorBoard that is running and has read the old files.
        self._writer = SummaryWriter(self.folder / "tensorboard", purge_step=0)
        self._open.callback(self._writer.close)
        for point in self._history:
            self.record(point)
        self._bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=self.last_step, initial=self.first_step, unit="step", dynamic_ncols=True)
            self._open.callback(self._bar.close)
        self._last_line = (time.monotonic(), self.first_step)
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def advance(self, last_step: int | None) -> None:
        """Count one more step; `last_step` as for the class."""
        self.last_step = last_step
        if self._bar is not None:
            self._bar.total = last_step
            self._bar.update()

    def record(self, point: Mapping[str, Any]) -> None:
        """A point for TensorBoard: {"step": step, "time": seconds since 1970, name: value, ...}."""
        for name, value in point.items():
            if name not in ("step", "time"):
                self._writer.add_scalar(name, value, point["step"], point["time"])

    def line(
        self,
        step: int,
        epoch: int,
        values: Mapping[str, float],
        audio_seconds: float | None,
        skipped: int,
        speed: Mapping[str, float],
    ) -> None:
        """A log line: {name: value}, the speed since the line before, what StepClock has read, steps skipped so far, time
        to go."""
        now, (then, last) = time.monotonic(), self._last_line
        self._last_line = (now, step)
        seconds = max(now - then, 1e-9)
        parts = [f"step {step}" + (f"/{self.last_step}" if self.last_step else ""), f"epoch {epoch}"]
        parts += [f"{name} {value:.4g}" for name, value in values.items()]
        parts += [f"{(step - last) / seconds:.3g} steps/s"]
        if audio_seconds:
            parts.append(f"{audio_seconds / seconds:.4g} audio-s/s")
        parts.append(f"{100 * speed['speed/waiting']:.0f} % waiting for data")
        if "speed/gpu_gigabytes" in speed:
            parts.append(f"{speed['speed/gpu_gigabytes']:.1f} GB")
        if skipped:
            parts.append(f"skipped {skipped}")
        if self.last_step and step > last:
            parts.append(f"ETA {timedelta(seconds=round((self.last_step - step) * seconds / (step - last)))}")
        self.log.info(", ".join(parts))


class NoProgress(contextlib.nullcontext):
    """Tells nothing: of the processes of a training that are not the first."""

    def __enter__(self) -> NoProgress:
        return self

    def advance(self, last_step: int | None) -> None:
        pass

    def record(self, point: Mapping[str, Any]) -> None:
        pass

    def line(self, *values: Any) -> None:
        pass
