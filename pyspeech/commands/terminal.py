"""Terminal output of command line tools: an updating status line, errors, Ctrl-C, the exit status."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from pyspeech.errors import UserError, missing_package
from pyspeech.launch import environment_name, interrupts, open_closed_streams, take_interrupts
from pyspeech.text.width import display_width

if TYPE_CHECKING:
    from pyspeech.audio.recordings import Recording


BAR = 20  # columns of a progress bar


class StatusLine:
    """A line on standard error for what is going on; nothing where that is not a terminal."""

    def __init__(self) -> None:
        self.used = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self.used:
            sys.stderr.write("\r\x1b[K" + clipped(text, shutil.get_terminal_size().columns - 1))
            sys.stderr.flush()

    def leave(self, text: str) -> None:
        """A text that stays, above the line."""
        if self.used:
            sys.stderr.write(f"\r\x1b[K{text}\n")
            sys.stderr.flush()

    def clear(self) -> None:
        self.show("")


def clipped(text: str, width: int) -> str:
    """A text that fits in `width` columns: where it does not, its end, from the start of a word on, behind dots."""
    if display_width(text) <= width:
        return text
    words = text.split(" ")
    while words and display_width("... " + " ".join(words)) > width:
        words.pop(0)
    return "... " + " ".join(words) if words else ""


def shown_name(recording: Recording) -> str:
    """The recording's name as text, whatever bytes the file's name has."""
    return as_text(recording.name)


def as_text(name: str) -> str:
    """A file's name as text, whatever bytes it has."""
    return os.fsencode(name).decode("utf-8", "replace")


def clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def progress_bar(done: int, total: int, seconds: float) -> str:
    """A bar of `done` of `total` items, what number is being worked on, and how long the rest will take after `seconds`."""
    filled = BAR * done // total
    left = f", {clock(seconds * (total - done) / done)} left" if done else ""
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {done + 1}/{total}{left}"


def set_up_messages() -> StatusLine:
    """Warnings and errors as single lines on standard error, above the StatusLine that is returned; output in UTF-8."""
    status = StatusLine()
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]

    class OneLine(logging.Handler):
        def emit(self, record):
            status.clear()
            # One write: with PYTHONUNBUFFERED the lines of several processes would run into each other else.
            sys.stderr.write(f"{self.format(record)}\n")

    logging.basicConfig(format="%(levelname)s: %(message)s", handlers=[OneLine()])
    logging.addLevelName(logging.WARNING, "warning")
    logging.addLevelName(logging.ERROR, "error")
    return status


@contextlib.contextmanager
def say_errors(path: str, failed: list[str]) -> Iterator[None]:
    """Report an error in one recording and add its path to the list `failed`; the next recording goes on."""
    try:
        yield
        return
    except BrokenPipeError:
        raise
    except UserError as error:
        logging.error("%s", error)
        traceback.clear_frames(error.__traceback__)  # soxr complains of what they hold to the end of the program
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:  # what the results go to, whoever knows its name
            raise
        logging.error("%s: %s", error.filename or path, error.strerror or error)
        traceback.clear_frames(error.__traceback__)
    except Exception:  # a fault of this program: say where
        logging.exception("%s: stopped by a fault in this program:", path)
    failed.append(path)


def process_each(
    recordings: Sequence[Recording],
    process: Callable[[Recording, str], object],
    status: StatusLine,
    done: str,
    summary: Callable[[], str] | None = None,
) -> int:
    """Call process(recording, what to show of it) for each Recording; the rest is as of `process_all`."""

    begin = time.monotonic()

    def work(finished, failed):
        for place, recording in enumerate(recordings):
            shown = shown_name(recording)
            if len(recordings) > 1:
                shown = f"{progress_bar(place, len(recordings), time.monotonic() - begin)} {shown}"
            status.show(shown)
            with say_errors(str(recording.path), failed):
                process(recording, shown)
                finished.append(recording)

    return process_all(len(recordings), work, status, done, summary)


def process_all(
    total: int, work: Callable[[list, list], object], status: StatusLine, done: str, summary: Callable[[], str] | None = None
) -> int:
    """Call work(finished, failed), which puts each of its `total` recordings into one of these lists.

    Returns the exit status: 0, 1 where one failed, 130 at Ctrl-C. done: what happens to them ("encoded"), for the
    messages. summary(): the line at the end, where one is finished; None for none.
    """
    finished, failed = [], []
    try:
        work(finished, failed)
    except KeyboardInterrupt:
        status.clear()
        print(f"interrupted; {len(finished)} of {total} recordings are {done}", file=sys.stderr)
        return 130
    finally:
        status.clear()
        if finished and summary is not None:
            print(summary(), file=sys.stderr)
    if failed and total > 1:
        print(f"error: {len(failed)} of {total} recordings could not be {done}", file=sys.stderr)
    return 1 if failed else 0


def speed(audio: float, computing: float, digits: int = 4) -> str:
    """Describe the speed of `audio` seconds computed in `computing` seconds, for a summary."""
    return f"computed in {computing:.2f} s, real-time factor {computing / max(audio, 1e-9):.{digits}f}"


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first of many names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


@contextlib.contextmanager
def stop_at_interrupt(wanted: bool = True) -> Iterator[list[bool]]:
    """Yield a list that the first Ctrl-C fills, so that a recording can end there; it also ends `sys.stdin`.

    The second is a KeyboardInterrupt, as is the first where it leaves too little to be a recording. With wanted=False every
    Ctrl-C is what it was.
    """
    stopped = []
    if not wanted:
        yield stopped
        return

    def stop(*_):
        if stopped:
            raise KeyboardInterrupt
        stopped.append(True)

    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    stdin, wakeup_before = sys.stdin, signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_UntilInterrupt(stdin.fileno(), stopped, woken)))
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    except UserError:
        if stopped:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wakeup_before)
        sys.stdin = stdin
        os.close(woken)
        os.close(waking)


class _UntilInterrupt(io.RawIOBase):
    """What comes from a file descriptor until the list `stopped` is filled by the handler of a signal.

    woken: a file descriptor from which a byte can be read once a signal has come. A signal that comes just before a read
    begins to wait does not end the wait; hence the wait is for both.
    """

    def __init__(self, source: int, stopped: list[bool], woken: int) -> None:
        self._source, self._stopped, self._woken = source, stopped, woken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._stopped:
            ready, _, _ = select.select([self._source, self._woken], [], [])
            if self._woken not in ready:
                return os.readv(self._source, [buffer])
            os.read(self._woken, 1)
        return 0


def exit_after(main: Callable[[], int | str | None]) -> NoReturn:
    """Run a tool's main() and exit with the status that it returns; an error of the user's, and a file that cannot be
    read or written, is one line, and status 1."""
    open_closed_streams()
    take_interrupts()
    try:
        status = main()
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, KeyboardInterrupt) or interrupts:  # modules that Ctrl-C keeps from loading raise what they like
            status = 130
        elif isinstance(error, UserError):
            status = f"error: {error}"
        elif isinstance(error, ModuleNotFoundError) and environment_name() is None:  # installed without the extras
            status = f"error: {missing_package(error)}"
        elif isinstance(error, BrokenPipeError):  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = 1
        elif isinstance(error, OSError):
            name = error.filename or ("standard output" if error.errno == errno.ENOSPC else None)
            status = "error: " + ": ".join(str(part) for part in (name, error.strerror or error) if part)
        else:
            raise
    sys.exit(status)
