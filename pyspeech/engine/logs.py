"""Logs of a run: the same timed lines on the screen and in one log file per stage.

The log file also gets what a stage prints, Python's warnings, exceptions of threads, the whole traceback of a failure
and the stack of a crash inside a native library.
"""

import contextlib
import faulthandler
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

FORMAT, TIME_FORMAT = "%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"
NAMES = ("pyspeech", "local", "steps")  # whose INFO lines are shown; of other libraries only warnings


def say(text: str, stream: TextIO | None = None) -> None:
    """Print on standard output, or `stream`. The terminal may have gone: the run goes on, with its log files.

    Text and line end are one write: with PYTHONUNBUFFERED the lines of several processes would run into each other else.
    """
    out = sys.stdout if stream is None else stream
    with contextlib.suppress(OSError):
        out.write(f"{text}\n")
        out.flush()


class ScreenHandler(logging.Handler):
    """Lines for people: errors on standard error, all else on standard output, above a tqdm bar where one is open."""

    def __init__(self):
        super().__init__()
        self.streams = sys.stdout, sys.stderr
        self.setFormatter(logging.Formatter(FORMAT, TIME_FORMAT))
        self.addFilter(lambda record: record.name != "py.warnings")  # those go to the log file alone

    def emit(self, record: logging.LogRecord) -> None:
        line, stream = self.format(record), self.streams[record.levelno >= logging.ERROR]
        bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
        if bars is not None and getattr(bars, "_instances", None):
            with contextlib.suppress(OSError):
                bars.write(line, file=stream)
        else:
            say(line, stream)


class _Tee:
    """A text stream that also writes to a second one; neither a full disk nor a lost terminal ends what prints."""

    def __init__(self, stream, copy):
        self._stream, self._copy = stream, copy

    def write(self, text):
        for stream in (self._copy, self._stream):
            with contextlib.suppress(OSError):
                stream.write(text)
        return len(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def screen_log() -> Iterator[None]:
    """Show the program's log lines on the screen."""
    handler = ScreenHandler()
    levels = {name: logging.getLogger(name).level for name in NAMES}
    for name in NAMES:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextlib.contextmanager
def stage_log(path: str | Path, title: str, facts: Mapping[str, object]) -> Iterator[TextIO]:
    """Append to the log file `path` while a stage runs. facts: {name: text} for the header of this attempt."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8", errors="backslashreplace", buffering=1) as stream:
        begun = time.strftime("%Y-%m-%d %H:%M:%S %z")
        stream.write(f"==== {title}, begun {begun} on {socket.gethostname()}, process {os.getpid()}\n")
        stream.writelines(f"{name}: {text}\n" for name, text in facts.items())
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter(FORMAT, TIME_FORMAT))
        handler.handleError = lambda record: None  # a full disk: the stage itself will say so
        root, stdout, thread_hook = logging.getLogger(), sys.stdout, threading.excepthook

        def log_thread(arguments):
            root.error(
                "uncaught exception in %s",
                arguments.thread,
                exc_info=(arguments.exc_type, arguments.exc_value, arguments.exc_traceback),
            )

        root.addHandler(handler)
        logging.captureWarnings(True)
        threading.excepthook, sys.stdout = log_thread, _Tee(stdout, stream)
        crashes_to_stderr = faulthandler.is_enabled()
        faulthandler.enable(stream)
        try:
            yield stream
        finally:
            faulthandler.disable()
            if crashes_to_stderr:
                faulthandler.enable(sys.__stderr__)  # pyright: ignore[reportArgumentType]
            threading.excepthook, sys.stdout = thread_hook, stdout
            logging.captureWarnings(False)
            root.removeHandler(handler)
