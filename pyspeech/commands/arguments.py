"""Options that several commands share, and types of argparse whose errors say what is expected."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pyspeech.audio.raw import ENCODINGS, RawFormat
from pyspeech.commands import COMMANDS
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.audio.recordings import Recording


class ToolParser(argparse.ArgumentParser):
    """Parser whose help shows the tool's docstring verbatim and names commands as they were called: utils/*.py or pyspeech."""

    def format_help(self) -> str:
        text = super().format_help()
        if self.prog.startswith("pyspeech "):
            for name, (_, door, _) in COMMANDS.items():
                text = text.replace(f"utils/{door}.py", f"pyspeech {name}")
        return text

    def error(self, message: str) -> NoReturn:
        """Exit with the message; of a misspelt option with the one that was meant."""
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            word = unknown.split()[0].partition("=")[0]
            near = difflib.get_close_matches(word, self._option_string_actions, n=1)
            message += f". Did you mean {near[0]}?" if near else ""
        super().error(message)


def tool_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a tool with this docstring."""
    program = os.path.basename(sys.argv[0])
    return ToolParser(program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_inputs(parser: argparse.ArgumentParser, every_channel: bool = False) -> None:
    """Add INPUT and --channel; every_channel: allow --channel all, each channel by itself."""
    parser.add_argument("inputs", metavar="INPUT", nargs="+", help="audio file, -, folder, *.scp, *.jsonl, *.jsonl.gz")
    more = "; all: each separately" if every_channel else ""
    kind = _channel_or_all if every_channel else int
    parser.add_argument("--channel", metavar="N", type=kind, help=f"use channel N, counted from 0 (default: mean of all){more}")


def _channel_or_all(text):
    return text if text == "all" else int(text)


def channel_of(recording: Recording, options: argparse.Namespace) -> int | None:
    """The channel of a recording to use, by --channel or as the recording says; None: the mean of all."""
    return options.channel if isinstance(options.channel, int) else recording.channel


def add_transducer(parser: argparse.ArgumentParser) -> None:
    """Add --model, the transducer to use."""
    parser.add_argument(
        "--model", metavar="DIR", required=True, help="folder of a model.pt, made by the recipe indic (exp/NAME/models/SYSTEM)"
    )


def add_raw(parser: argparse.ArgumentParser) -> None:
    """Add the options of headerless input, which `raw_format` reads."""
    parser.add_argument("--raw", action="store_true", help="read inputs as headerless samples of one channel")
    parser.add_argument("--encoding", choices=tuple(ENCODINGS), help="encoding of raw samples, little-endian (default: s16)")
    parser.add_argument("--rate", metavar="HZ", type=whole_number, help="sampling rate of raw samples (default: 16000)")


def raw_format(options: argparse.Namespace) -> RawFormat | None:
    """Return the RawFormat that the options of `add_raw` give, None without --raw; UserError if --raw is missing."""
    given = {"encoding": options.encoding, "rate": options.rate}
    for name, value in given.items():
        if value is not None and not options.raw:
            raise UserError(f"--{name} {value}: is for raw samples; add --raw, or leave it out: audio files know their own")
    return RawFormat(options.rate or 16000, options.encoding or "s16") if options.raw else None


def add_device(parser: argparse.ArgumentParser) -> None:
    text = "auto (default): the GPU if there is one"
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", type=new_file, help="also write all figures, with all digits, to FILE")


def new_file(text: str) -> str:
    """Check the path of a file to write: its folder must exist, as a typing error should not create folders."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        reason = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise argparse.ArgumentTypeError(f"{text}: {reason}; expected a file to write")
    return text


def whole_number(text: str, least: int = 1) -> int:
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of {least} or more")
    return value


def add_bootstrap(parser: argparse.ArgumentParser, units: bool = True, draws: bool = True) -> None:
    """Add the options of a bootstrap: --resample (units), --draws (draws) and --seed."""
    if units:
        parser.add_argument(
            "--resample",
            choices=("utterance", "speaker"),
            default="utterance",
            help="unit that the bootstrap of the intervals draws (default: utterance)",
        )
    if draws:
        parser.add_argument(
            "--draws", metavar="N", type=whole_number, default=1000, help="number of bootstrap draws (default: 1000)"
        )
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="random seed of the bootstrap (default: 0)")


def seed(text: str) -> int:
    return whole_number(text, least=0)


def number(text: str, least: float = 0.0, infinite: bool = False) -> float:
    """A number of at least `least`; infinite: inf is one too."""
    value = float(text)
    if not least <= value or (value == float("inf") and not infinite):
        finite = "" if infinite or value < float("inf") else "finite "
        raise argparse.ArgumentTypeError(f"{text} is not a {finite}number of {least:g} or more")
    return value


def number_or_inf(text: str) -> float:
    return number(text, infinite=True)


def length(text: str, least: float = 0.001) -> float:
    return number(text, least)
