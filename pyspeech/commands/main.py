"""The console script: `pyspeech COMMAND ...` runs a command of this package. Nothing heavy is imported before one is chosen."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

import pyspeech
from pyspeech.commands import COMMANDS
from pyspeech.commands.terminal import exit_after
from pyspeech.errors import UserError


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command that the arguments name (default: those of the process), and exit with its status."""
    exit_after(lambda: run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int | str | None:
    """Run a command; its exit status. UserError for one that does not exist."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    if arguments[0] == "--version":
        print(pyspeech.__version__)
        return 0
    if len(arguments) == 2 and arguments[1] in ("-h", "--help") and (group := group_of(arguments[0])):
        print(help_text(group))
        return 0
    name, rest = choose(arguments)
    sys.argv = [f"pyspeech {name}", *rest]  # what usage lines show
    return importlib.import_module(f"{__package__}.{COMMANDS[name][0]}").main()


def choose(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """(command, its arguments) of a command line."""
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in COMMANDS:
            return name, list(arguments[words:])
    group = group_of(arguments[0])
    name = " ".join(arguments[: 2 if group else 1])
    near = difflib.get_close_matches(name, group or COMMANDS, 1)
    guess = f". Did you mean '{near[0]}'?" if near else ""
    raise UserError(f"no command '{name}'; commands: {', '.join(group or COMMANDS)}{guess}")


def group_of(word: str) -> list[str]:
    """The commands of two words of which it is the first, such as "score"."""
    return [name for name in COMMANDS if name.startswith(word + " ")]


def help_text(names: Iterable[str] = tuple(COMMANDS)) -> str:
    """The commands of these names, a line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {COMMANDS[name][2]}" for name in names]
    return "\n".join(["usage: pyspeech COMMAND ...", "", *lines, "", "pyspeech COMMAND --help: its options"])
