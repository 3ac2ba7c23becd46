"""Launcher of this repository's scripts in the environment of path.sh, whichever Python started them.

This file and pyspeech/__init__.py must be valid for every Python since 3.6: they run before the right one does.
"""

import atexit
import gc
import os
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_MARK = "PYSPEECH_LAUNCHED"  # set while path.sh starts the right Python: twice in a row would be a loop


def environment_name() -> "str | None":
    """The environment of path.sh that this Python is: "k2", "torch2", "system" (the user's own, asked for), or None."""
    name = os.environ.get("PYSPEECH_ENV", "")
    if name == "system":
        return name
    if not name or os.path.realpath(os.environ.get("PYSPEECH_ROOT", "")) != ROOT:
        return None
    ours = os.path.realpath(os.path.join(ROOT, ".venv", name))
    return name if os.path.realpath(sys.prefix) == ours else None


def ensure_environment() -> None:
    """Replace this process by the same script in the environment of path.sh, which makes it where it is missing.

    Returns at once where the script already runs there, where PYSPEECH_ENV=system asks for the Python at hand, and in
    an interactive session. Arguments, working directory and environment variables stay as they are.
    From here on Ctrl-C ends a script without a traceback, until its main() calls `take_interrupts`.
    """
    main = sys.modules["__main__"]
    caller = sys._getframe(1).f_globals
    if hasattr(main, "__file__") and (caller is vars(main) or caller is globals()):
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not os.environ.get("PYSPEECH_ENV"):  # zsh drops it after `PYSPEECH_ENV=torch2 source path.sh`
        for name in ("k2", "torch2"):
            if os.path.realpath(sys.prefix) == os.path.realpath(os.path.join(ROOT, ".venv", name)):
                os.environ["PYSPEECH_ENV"] = name
    if environment_name() or not hasattr(main, "__file__"):
        os.environ.pop(_MARK, None)
        if hasattr(gc, "freeze"):  # so that Python, at its end, does not look through all that torch has made: half a second
            atexit.register(gc.freeze)
        return
    path_sh = os.path.join(ROOT, "path.sh")
    if os.environ.get(_MARK) == ROOT:
        sys.exit(
            "%s started %s, which is not the Python of its environment; remove %s and run the same command again"
            % (path_sh, sys.executable, os.path.join(ROOT, ".venv"))
        )
    os.environ[_MARK] = ROOT
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    try:
        os.execvp("bash", ["bash", path_sh, "python"] + sys.argv)
    except OSError as error:
        sys.exit("cannot start bash to run %s: %s" % (path_sh, error.strerror))


def run_command(name: str) -> None:
    """Run a module of pyspeech/commands in the environment of path.sh and exit with its status: a script of utils/."""
    ensure_environment()
    from importlib import import_module

    commands = "pyspeech.commands."
    import_module(commands + "terminal").exit_after(import_module(commands + name).main)


interrupts = []  # the signals of Ctrl-C that came


def take_interrupts() -> None:
    """Make Ctrl-C a KeyboardInterrupt again: `ensure_environment` let it end the process while modules were loaded."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(signum, _):
    interrupts.append(signum)
    raise KeyboardInterrupt


def open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller has closed (>&-): the next file must not get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
