"""One run at a time in an experiment folder: a lock file that names its holder.

flock decides between processes of one machine, also when two of them take over the same dead lock at once. The text
in the file (host, process id, start time, command) serves the message, and file systems where flock does not reach.
"""

import contextlib
import fcntl
import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspeech.errors import UserError

_held = set()  # descriptors of this process


def _close_in_child():
    """A forked worker must not keep the lock of a killed run alive."""
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def folder_lock(folder: str | Path, command: str, say: Callable[[str], object]) -> Iterator[bool]:
    """Hold FOLDER/.lock; raises UserError that names the holder.

    Yields whether the lock was taken over from a process that died with it, which say(line) reports.
    """
    path = Path(folder) / ".lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    _held.add(descriptor)
    try:
        taken_over = _acquire(descriptor, path, say)
        _write(
            descriptor,
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "born": birth_of(os.getpid()),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
                "command": command,
            },
        )
        try:
            yield taken_over
        finally:
            if descriptor in _held:  # not in a forked child
                with contextlib.suppress(OSError):  # a full disk: the text is left, and its process will be dead
                    _write(descriptor, None)
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


def birth_of(pid: int | None) -> str | None:
    """When a process began, as "boot id:ticks since boot", or None where it is not running.

    With the process id this names one process for ever: ids are used again, also after a restart of the machine.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    state, *others = text.rpartition(")")[2].split()  # the name before it may hold spaces and parentheses
    return None if state in "ZX" else f"{boot}:{others[18]}"


def _acquire(descriptor, path, say):
    _flock(descriptor, path)
    holder = _read(descriptor)
    if not holder:
        return False
    if holder.get("host") != socket.gethostname():
        raise UserError(f"{_refusal(path, holder)} (if that run is no more: rm {shlex.quote(str(path))})")
    if _alive(holder):
        raise UserError(_refusal(path, holder))
    say(f"taking over the lock of process {holder.get('pid')}, which ended without releasing it")
    return True


def _flock(descriptor, path):
    """flock, or UserError. Where the holder is dead, its worker being forked may have the lock for a moment."""
    for _ in range(20):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read(descriptor)
            if not holder or holder.get("host") != socket.gethostname() or _alive(holder):
                break
            time.sleep(0.1)
        except OSError:  # no flock on this file system: the text has to do
            return None
    raise UserError(_refusal(path, _read(descriptor)))


def _alive(holder):
    return bool(holder.get("born")) and birth_of(holder.get("pid")) == holder["born"]


def _refusal(path, holder):
    holder = holder or {}
    who = "another run"
    if "pid" in holder:
        who = f"process {holder['pid']} on {holder.get('host')} since {holder.get('since')}: {holder.get('command')}"
    return f"experiment folder {path.parent} is in use by {who}; wait for it, or give another folder with --exp DIR"


def _read(descriptor):
    try:
        holder = json.loads(os.pread(descriptor, 1 << 16, 0))
    except ValueError:  # empty: released; cut short: its writer died in the middle
        return None
    return holder if isinstance(holder, dict) else None


def _write(descriptor, holder):
    data = (json.dumps(holder, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape") if holder else b""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
