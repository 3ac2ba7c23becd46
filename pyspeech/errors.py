"""Mistakes the user can mend, as exceptions; options that are folders, and the check of an option."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from operator import attrgetter
from typing import Any

# {package: the smallest extra of pyproject.toml that has it}; others are in "train"
EXTRAS = {**dict.fromkeys(("torch", "torchaudio", "lhotse", "kaldiio"), "torch"), "onnx": "export", "resemblyzer": "similarity"}


class UserError(Exception):
    """One line for the user: which file or option, what was found, what was expected, what to do.

    Command-line tools and the recipe engine print its message without a traceback and exit with status 1.
    """


class DownloadError(UserError):
    """Failed download: no network, no index, no mirror. Callers that can do without it go on."""


class OptionError(UserError):
    """An option of a configuration dataclass that makes no sense; `setting` is the message without the section.

    The recipe engine puts the option's place in front of the setting instead: "train.lr=-1.0: expected ...".
    """

    def __init__(self, section: str, setting: str):
        super().__init__(f"{section} option {setting}" if section else setting)
        self.setting = setting


def missing_package(error: ModuleNotFoundError) -> UserError:
    """The error that names the extra which installs a missing package."""
    package = (error.name or "a package").split(".")[0]
    extra = EXTRAS.get(package, "train")
    return UserError(f"{package} is required, but not installed: pip install '.[{extra}]' in the folder of pyspeech")


@contextmanager
def naming_extras() -> Iterator[None]:
    """Raise `missing_package` where a package is missing; a context, or a decorator of a function."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "pyspeech").split(".")[0] == "pyspeech":  # a fault of ours
            raise
        raise missing_package(error) from None


def requirement(section: str, config: object) -> Callable[[str, bool, str], None]:
    """require(name, good, expected) raises an OptionError for the option `name` of a configuration unless `good`.

    section: what messages call the group of options, such as "training", or "" for the whole configuration of a recipe;
    config: the dataclass that has it. The name of an option of a nested dataclass has dots.
    """

    def require(name, good, expected):
        if not good:
            raise OptionError(section, f"{name}={_as_typed(attrgetter(name)(config))}: expected {expected}")

    return require


def folder_or(*names: str, what: str, file: bool = False) -> Any:
    """Declare a dataclass field that is one of `names`, the first by default, or a folder, whose path is made absolute.

    The same relative path means another folder elsewhere, which records could not tell. what: what it is the folder of,
    for the message where there is none. file: whether a file will do as well.
    """
    return field(default=names[0], metadata={"names": names, "what": what, "file": file})


def named_folders(what: str, file: bool = False) -> Any:
    """Declare a dataclass field that is {name: folder}, none by default; what, file: as for `folder_or`."""
    return field(default_factory=dict, metadata={"names": (), "what": what, "file": file})


def list_of_folders(what: str) -> Any:
    """Declare a dataclass field that is a list of folders, none by default; what: as for `folder_or`."""
    return field(default_factory=list, metadata={"names": (), "what": what, "file": False})


def _as_typed(value):
    """A value as it is written on a command line."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_typed, value))}]"
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
