"""Lock files that name their holder: one run at a time in an experiment folder, one job at a time in a stage.

flock decides between processes of one machine, also when two of them take over the same dead lock at once. The text
in the file (host, process id, start time, job, command) serves the message, and file systems where flock does not reach.
There a heartbeat, a number that the holder raises every half minute, tells whether it is alive: whoever wants the lock
watches the number by a clock of its own, so it does not matter how the clocks of two machines differ, or jump.
"""

import contextlib
import fcntl
import json
import os
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspeech.engine.process import batch_job
from pyspeech.errors import UserError

BEAT = 30.0  # seconds between heartbeats
LOST = 180.0  # seconds without one after which a holder on another machine counts as dead: file systems show writes late
PATIENCE = 2.0  # seconds between looks at a lock that is held

_held = set()  # descriptors of this process


def _close_in_child():
    """A forked worker must not keep the lock of a killed run alive."""
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)


def folder_lock(folder: str | Path, command: str, say: Callable[[str], object]) -> contextlib.AbstractContextManager[bool]:
    """Hold FOLDER/.lock; raises UserError that names the holder.

    Yields whether the lock was taken over from a process that died with it, which say(line) reports.
    """
    return _hold(Path(folder) / ".lock", command, say, wait=False)


def stage_lock(
    folder: str | Path, stage: str, command: str, say: Callable[[str], object]
) -> contextlib.AbstractContextManager[bool]:
    """Hold the lock of one stage of an experiment folder, which jobs of a cluster share. Waits for a holder that lives: a
    requeued job may meet the process that it replaces, on a node that was thought lost."""
    return _hold(Path(folder) / f".lock.{stage}", command, say, wait=True)


@contextlib.contextmanager
def _hold(path: Path, command: str, say: Callable[[str], object], wait: bool) -> Iterator[bool]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    _held.add(descriptor)
    try:
        taken_over = _acquire(descriptor, path, say, wait)
        holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "born": birth_of(os.getpid()),
            "job": batch_job(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "command": command,
        }
        beats = _Heartbeat(descriptor, holder)
        try:
            with beats:
                yield taken_over
        finally:
            if descriptor in _held and not beats.lost:  # not in a forked child
                with contextlib.suppress(OSError):  # a full disk: the text is left, and its process will be dead
                    _write(descriptor, None)
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


class _Heartbeat:
    """Writes the holder into its lock file, and again with a higher number every BEAT seconds while it is entered.

    A process that was stopped for so long that another has taken its lock over ends itself, by SIGTERM; `lost` says so.
    """

    def __init__(self, descriptor, holder):
        self._descriptor, self._holder = descriptor, holder
        self._owner, self._end, self.lost = os.getpid(), threading.Event(), False

    def __enter__(self):
        _write(self._descriptor, self._text(0))
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def __exit__(self, *exception: object):
        if os.getpid() == self._owner:
            self._end.set()
            self._thread.join()

    def _text(self, count):
        return {**self._holder, "beat": f"{count:012d}"}  # of one length: the text is never seen empty

    def _beat(self):
        count = 0
        while not self._end.wait(BEAT):
            count += 1
            with contextlib.suppress(OSError):
                found = _read(self._descriptor)
                if found and any(found.get(key) != self._holder[key] for key in ("host", "pid", "born")):
                    self.lost = True
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                _write(self._descriptor, self._text(count))


def birth_of(pid: int | None) -> str | None:
    """Start of a process as "boot id:ticks since boot", or None if it is not running.

    With the process id this names one process for ever: ids are used again, also after a restart of the machine.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    state, *others = text.rpartition(")")[2].split()  # the name before it may hold spaces and parentheses
    return None if state in "ZX" else f"{boot}:{others[18]}"


def _acquire(descriptor, path, say, wait):
    """Whether the lock was taken over from a dead process, once it is ours; UserError where a live one keeps it."""
    seen: dict[str, Any] = {}  # what has been read of the holder, and since when
    begun, told = time.monotonic(), False
    while True:
        held = _flock(descriptor)
        holder = _read(descriptor)
        if held and not holder:
            return False
        state = _state(holder, seen)
        if held and state == "dead":
            say(f"taking over the lock of {_who(holder)}, which ended without releasing it")
            return True
        # Where the holder is dead, its worker being forked may have the flock for a moment.
        moment = not wait and state == "dead" and time.monotonic() - begun < PATIENCE
        if not wait and not moment and state != "unknown":
            raise UserError(_refusal(path, holder))
        if not moment and not told:
            until = "waiting" if wait else f"up to {LOST:.0f} s, to see whether it lives (or: rm {shlex.quote(str(path))})"
            say(f"{path} is held by {_who(holder)}: {until}")
            told = True
        if held:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(0.1 if moment else PATIENCE)


def _state(holder, seen):
    """Whether the process of a lock's text is "alive" or "dead"; "unknown": on another machine, and not yet watched long
    enough. seen: what earlier calls have noted."""
    if not holder:
        return "alive"  # flock alone: the text is gone, or not yet written
    if holder.get("host") == socket.gethostname():
        return "alive" if holder.get("born") and birth_of(holder.get("pid")) == holder["born"] else "dead"
    now = time.monotonic()
    if seen.get("holder") != holder:
        again = "holder" in seen
        seen.update(holder=holder, since=now)
        return "alive" if again else "unknown"
    return "dead" if now - seen["since"] > LOST else "unknown"


def _flock(descriptor):
    """Whether no other process has the flock of the file; true too where the file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the text has to do
        return True
    return True


def _who(holder):
    if not holder or "pid" not in holder:
        return "another run"
    job = f", job {holder['job']}" if holder.get("job") else ""
    return f"process {holder['pid']} on {holder.get('host')}{job} since {holder.get('since')}: {holder.get('command')}"


def _refusal(path, holder):
    return f"experiment folder {path.parent} is in use by {_who(holder)}; wait for it, or give another folder with --exp DIR"


def _read(descriptor):
    try:
        holder = json.loads(os.pread(descriptor, 1 << 16, 0))
    except ValueError:  # empty: released; cut short: its writer died in the middle
        return None
    return holder if isinstance(holder, dict) else None


def _write(descriptor, holder):
    data = (json.dumps(holder, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape") if holder else b""
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))
