"""Configuration of a recipe: dataclass defaults <- conf/<profile>.yaml <- key=value from the command line.

OmegaConf checks types; this module adds what a user meets: one-line errors that name the nearest option, and the
documentation of every option, taken from the field's metadata or from the comment beside it in the source.
"""

import ast
import contextlib
import dataclasses
import difflib
import enum
import functools
import inspect
import io
import json
import os
import pathlib
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException, UnsupportedInterpolationType
from yaml import YAMLError

from pyspeech.errors import OptionError, UserError

REFERENCE = r"${ begins the name of another option; write \${ for these two characters"


@dataclasses.dataclass(frozen=True)
class Option:
    """One leaf of the configuration: its dotted key, its declared type, and the dataclass that has it as a field."""

    key: str
    type: object
    owner: Any  # a dataclass

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The field's metadata; none for a key inside a dict-typed option."""
        field = self.owner.__dataclass_fields__.get(self.key.rpartition(".")[2])
        return field.metadata if field else {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names that an option declared by `folder_or` accepts besides a folder; else ()."""
        return self.metadata.get("names", ())

    def absolute(self, value: Any) -> Any:
        """Make the value absolute, without trailing slashes, for options that `folder_or` and its like declare."""
        if isinstance(value, dict):
            return {name: self.absolute(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.absolute(one) for one in value]
        if not (isinstance(value, str) and value not in self.names and _is_place(value, self.metadata)):
            return value
        return str(pathlib.Path(value)) if os.path.isabs(value) else os.path.abspath(value)

    @property
    def doc(self) -> str:
        """The field's metadata "help", or the comment beside it; "" where there is neither."""
        return self.metadata.get("help") or field_comments(self.owner).get(self.key.rpartition(".")[2], "")

    @property
    def changes_results(self) -> bool:
        """False for those that the dataclass names in its attribute `without_effect`: they make no stage stale."""
        return self.key.rpartition(".")[2] not in getattr(self.owner, "without_effect", ())


def list_options(config_class: type, prefix: str = "") -> list[Option]:
    """List all leaves of a dataclass (nested dataclasses included), in the order of the source, as a list of Option."""
    hints = typing.get_type_hints(config_class)
    options = []
    for field in dataclasses.fields(config_class):
        kind = hints[field.name]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            options += list_options(kind, f"{prefix}{field.name}.")
        else:
            options.append(Option(prefix + field.name, kind, config_class))
    return options


def unchecked(config_class: type) -> list[type]:
    """List the nested dataclasses (those of list_options) that have no method `check`."""
    found = []
    for kind in typing.get_type_hints(config_class).values():
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            found += [kind] * (not callable(getattr(kind, "check", None))) + unchecked(kind)
    return found


def check(conf: Any, prefix: str = "") -> None:
    """Raise UserError for the first option that makes no sense: what the `check` of each nested dataclass says, the inner
    ones first, and of the configuration itself where it has one. Messages name options by their dotted keys."""
    for field in dataclasses.fields(conf):
        value = getattr(conf, field.name)
        if dataclasses.is_dataclass(value):
            check(value, f"{prefix}{field.name}.")
        elif "what" in field.metadata:
            for name, place in _places(value):
                _check_place(f"{prefix}{field.name}{f'.{name}' * bool(name)}", place, field.metadata)
    if hasattr(conf, "check"):
        try:
            conf.check()
        except OptionError as error:
            raise UserError(prefix + error.setting) from None


def groups(keys: Iterable[str]) -> set[str]:
    """Name the inner nodes of the tree of dotted keys: {"train", "train.optimiser", ...}."""
    return {key.rsplit(".", depth)[0] for key in keys for depth in range(1, key.count(".") + 1)}


def _places(value):
    """[(its name or "", a folder or name)] of the value of an option that `folder_or` or its like declares."""
    if isinstance(value, dict):
        return list(value.items())
    return [("", one) for one in (value if isinstance(value, list) else [value])]


def _check_place(key, value, metadata):
    if value not in metadata["names"] and not _is_place(value, metadata):
        kinds = "folder or file" if metadata["file"] else "folder"
        expected = " or ".join([*[", ".join(metadata["names"])] * bool(metadata["names"]), f"the folder of {metadata['what']}"])
        raise UserError(f"{key}={value}: no such {kinds}; expected {expected}")


def _is_place(value, metadata):
    """Whether an option with the metadata of `folder_or` may be the path `value`."""
    return "what" in metadata and (os.path.isdir(value) or metadata["file"] and os.path.isfile(value))


@functools.cache
def field_comments(config_class: type) -> dict[str, str]:
    """{field name: comment} read from the source of a dataclass and of those it inherits from.

    A comment stands behind the field (and goes on in deeper comment lines below it), or alone in the lines above it.
    """
    comments = {}
    for cls in reversed(config_class.__mro__):
        if dataclasses.is_dataclass(cls):
            with contextlib.suppress(OSError, TypeError, SyntaxError):  # made at run time: it has no source
                comments.update(_comments_in(textwrap.dedent(inspect.getsource(cls))))
    return comments


def _comments_in(source):
    lines = source.splitlines()
    found = {}  # line number -> (column, text, stands alone)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            found[row] = (column, token.string.lstrip("#").strip(), not lines[row - 1][:column].strip())

    def alone(row, test):
        return row in found and found[row][2] and test(found[row][0])

    comments = {}
    for node in ast.parse(source).body[0].body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        parts = []
        if node.end_lineno in found:
            parts.append(found[node.end_lineno][1])
            row = node.end_lineno + 1  # pyright: ignore[reportOptionalOperand]
            while alone(row, lambda column: column > node.col_offset):
                parts.append(found[row][1])
                row += 1
        else:
            row = node.lineno - 1
            while alone(row, lambda column: column == node.col_offset):
                parts.insert(0, found[row][1])
                row -= 1
        comments[node.target.id] = " ".join(parts)
    return comments


def resolve(config_class: type, profile_file: str | pathlib.Path | None = None, overrides: Iterable[str] = ()) -> DictConfig:
    """Merge the OmegaConf configuration.

    profile_file: a YAML file or None; overrides: "key=value" strings, a later one wins.
    Raises UserError that names the file or the option, what was found and what was expected.
    """
    conf = OmegaConf.structured(config_class)
    if profile_file is not None:
        read_into(conf, config_class, profile_file)
    override(conf, config_class, overrides)
    return conf


def read_into(conf: DictConfig, config_class: type, file: str | pathlib.Path) -> None:
    """Set options of an OmegaConf configuration as a YAML file has them; UserError that names the file."""
    options = _options(config_class)
    for key, value in _leaves(_read_yaml(file), options):
        _assign(conf, options, key, value, f" (in {file})")


def override(conf: DictConfig, config_class: type, overrides: Iterable[str]) -> None:
    """Set options of an OmegaConf configuration by "key=value" strings. UserError for an unknown one, or another type."""
    options = _options(config_class)
    for text in overrides:
        key, value = split_override(text)
        _assign(conf, options, key, _parse(_find(options, key, "").type, value), "")


@functools.cache
def _options(config_class):
    return {option.key: option for option in list_options(config_class)}


def checked(conf: DictConfig, config_class: type) -> Any:
    """Make an instance of config_class, every option checked; UserError for the first that makes no sense."""
    plain = to_dataclass(conf, config_class)
    check(plain)
    check_recordable(flatten(conf))
    return plain


def to_dataclass(conf: DictConfig, config_class: type) -> Any:
    """Make an instance of config_class, whose values have the declared types but may make no sense: see `check`."""
    try:
        return _with_tuples(OmegaConf.to_object(conf))
    except OmegaConfBaseException as error:
        if error.full_key and OmegaConf.is_missing(conf, str(error.full_key)):
            raise UserError(f"option '{error.full_key}' has no default: give {error.full_key}=...") from None
        if isinstance(error, (InterpolationResolutionError, UnsupportedInterpolationType)):
            raise UserError(f"option '{error.full_key}': {_first_line(error)}; {REFERENCE}") from None
        raise UserError(f"bad configuration: {_first_line(error)}") from None


def flatten(conf: DictConfig) -> dict[str, Any]:
    """{dotted key: plain JSON value} of all leaves, interpolations resolved."""
    try:
        plain = OmegaConf.to_container(conf, resolve=True, enum_to_str=True)
    except OmegaConfBaseException as error:
        raise UserError(f"bad configuration: {_first_line(error)}") from None
    leaves = {}

    def walk(node, key):
        if isinstance(node, dict) and (node or not key):
            for name, value in node.items():
                walk(value, f"{key}.{name}" if key else str(name))
        else:
            leaves[key] = json.loads(json.dumps(node, default=str))  # paths become text

    walk(plain, "")
    return leaves


def check_recordable(leaves: Mapping[str, Any]) -> None:
    """Raise UserError for a value of {dotted key: value} that a record cannot hold: NaN, or text that is not UTF-8."""
    for key, value in leaves.items():
        if any(item != item for item in (value if isinstance(value, list) else [value])):
            raise UserError(f"option '{key}' takes a number, got nan")
        check_text(f"{key}={show(value)}")


def check_text(text: str) -> None:
    """Raise UserError for a path or an option, as typed, whose bytes are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{text}: not UTF-8; rename the file or folder") from None


def below(leaves: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Select the part of {dotted key: value} at or below any of `keys`."""
    return {leaf: value for leaf, value in leaves.items() if any(leaf == key or leaf.startswith(key + ".") for key in keys)}


def split_override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"'{text}' is not an option: write key=value (options: --help; a stage: --stage {text})")
    return key.strip(), value


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Guess the candidate that was meant, or None.

    A bare last name finds its dotted key (lr -> train.lr), and a misspelt beginning the longer name (trian -> train_cnn).
    """
    candidates = list(candidates)
    for candidate in candidates:
        if candidate.rpartition(".")[2].lower() == word.lower():
            return candidate
    close = difflib.get_close_matches(word, candidates, n=1)
    if not close:
        tails = {candidate.rpartition(".")[2]: candidate for candidate in reversed(candidates)}
        close = [tails[tail] for tail in difflib.get_close_matches(word.rpartition(".")[2], tails, n=1)]
    if not close and len(word) > 2:
        heads = {candidate[: len(word)]: candidate for candidate in reversed(candidates)}
        close = [heads[head] for head in difflib.get_close_matches(word, heads, n=1)]
    return close[0] if close else None


def unknown_option(key: str, options: Mapping[str, Option], where: str = "") -> UserError:
    """Make the UserError for a key that is no option; it names the nearest one."""
    if key in groups(options):
        inside = [name for name in options if name.startswith(key + ".")]
        return UserError(f"'{key}'{where} is a group of options: set one of {', '.join(inside)}")
    guess = nearest(key, options)
    hint = f"; did you mean '{guess}'?" if guess else ""
    return UserError(f"no option '{key}'{where}{hint} (options: --help)")


def describe_type(kind: Any) -> str:
    """Describe a value of this type in words for an error message."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if argument is type(None) else describe_type(argument) for argument in arguments)
    if origin in (list, tuple):
        return "a list in brackets, each " + describe_type(arguments[0]) if arguments else "a list in brackets"
    if origin is dict:
        return f"{{NAME: VALUE}} in braces, each value {describe_type(arguments[1])}"
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "one of " + ", ".join(kind.__members__)
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        pathlib.Path: "a path",
        list: "a list in brackets",
        tuple: "a list in brackets",
    }
    return words.get(kind, getattr(kind, "__name__", str(kind)))


def type_name(kind: object) -> str:
    """Write a type as --help shows it."""
    return (
        kind.__name__
        if isinstance(kind, type) and not typing.get_args(kind)
        else str(kind).replace("typing.", "").replace("NoneType", "None")
    )


def show(value: object) -> str:
    """Write a plain value as --help and messages do."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _find(options, key, where):
    """The Option of a key; inside a dict-typed option any key goes."""
    if key in options:
        return options[key]
    holder = _holder(options, key)
    if holder:
        return Option(key, typing.get_args(holder.type)[1], holder.owner)
    raise unknown_option(key, options, where)


def _holder(options, key):
    """The dict-typed Option that a key lies in, or None."""
    found = (option for option in options.values() if key.startswith(option.key + "."))
    return next((option for option in found if typing.get_origin(option.type) is dict), None)


def _parse(kind, text):
    """A command-line value: text stays as typed where text is expected ("007", "a: b"), anything else is YAML."""
    arguments = (
        [argument for argument in typing.get_args(kind) if argument is not type(None)]
        if typing.get_origin(kind) in (typing.Union, types.UnionType)
        else [kind]
    )
    if len(arguments) < len(typing.get_args(kind)) and text == "null":
        return None
    verbatim = arguments[0] in (str, pathlib.Path) or (isinstance(arguments[0], type) and issubclass(arguments[0], enum.Enum))
    if len(arguments) == 1 and verbatim:
        return text
    try:
        parsed: Any = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))
        return parsed["value"]  # pyright: ignore[reportCallIssue, reportArgumentType, reportOptionalSubscript]
    except (OmegaConfBaseException, YAMLError):
        return text  # of no use as YAML: the type check names it


def _assign(conf, options, key, value, where):
    option, holder = _find(options, key, where), _holder(options, key)
    value = (holder or option).absolute(value)
    try:
        if holder:  # what is left of the key is one name, which may have dots
            OmegaConf.select(conf, holder.key)[key[len(holder.key) + 1 :]] = value
        else:
            OmegaConf.update(conf, key, value, merge=False)
    except OmegaConfBaseException as error:
        shown = "nothing" if value is None else repr(value)
        reason = f" ({_first_line(error)}); {REFERENCE}" if "${" in str(value) else ""
        raise UserError(f"option '{key}'{where} takes {describe_type(option.type)}, got {shown}{reason}") from None
    if option.type in (bool, bool | None) and type(value) in (int, float) and value not in (0, 1):
        raise UserError(f"option '{key}'{where} takes {describe_type(option.type)}, got {value}")


def _read_yaml(path):
    try:
        loaded = OmegaConf.to_container(OmegaConf.load(path))
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError, OSError) as error:
        text = " ".join(str(error).split())
        raise UserError(f"{path} is not a readable YAML file: {text}") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{path} holds a {type(loaded).__name__}, expected options such as 'train: {{lr: 0.001}}'")
    return loaded


def _leaves(node, options, prefix=""):
    inner = groups(options)
    for name, value in node.items():
        key = f"{prefix}{name}"
        if key in inner and (isinstance(value, dict) or value is None):
            yield from _leaves(value or {}, options, key + ".")
        else:
            yield key, value


def _with_tuples(value):
    """OmegaConf returns lists for fields that are declared as tuples: give them their type back."""
    if dataclasses.is_dataclass(value):
        hints = typing.get_type_hints(type(value))
        for field in dataclasses.fields(value):
            item = _with_tuples(getattr(value, field.name))
            if isinstance(item, list) and typing.get_origin(hints[field.name]) is tuple:
                item = tuple(item)
            object.__setattr__(value, field.name, item)
    return value


def _first_line(error):
    return str(error).splitlines()[0] if str(error) else type(error).__name__
