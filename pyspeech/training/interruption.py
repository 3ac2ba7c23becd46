"""A request to stop, noted and acted on where training can be resumed."""

from __future__ import annotations

import signal
import threading


class TrainingInterrupted(KeyboardInterrupt):
    """The signal `signum` asked training to stop; a checkpoint was saved, and the same command goes on from it."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.signum = signum


class Signals:
    """A context manager that notes SIGTERM and SIGUSR2 (Slurm's, before the time is up) instead of dying of them.

    `caught` is the last one (signal.Signals), or None. The handlers before are put back at the end.
    """

    def __init__(self):
        self.caught = None

    def __enter__(self) -> Signals:
        self._previous = {}
        if threading.current_thread() is threading.main_thread():  # python allows it nowhere else
            for number in (signal.SIGTERM, signal.SIGUSR2):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number, frame):
        self.caught = signal.Signals(number)
