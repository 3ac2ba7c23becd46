"""Features and units of utterances in files: a folder with a file for each, or one file that holds them all.

    folder   NAME.npy or NAME.pt (frames, dim), or codes (frames,); NAME.npz (`features`, and `times` (frames,) in seconds
             where they are known); NAME.txt (a vector a line, numbers separated by spaces, or codes in one line);
             NAME.jsonl (units of encode_units), looked for in this order, in the folder and below
    x.scp    Kaldi's list: lines `NAME path.ark:offset`, behind which there may be rows `[first:last]`; commands
             (`... |`) are not run. A path that is not there from the present folder is looked for beside the list
    x.ark    Kaldi's archive of matrices, binary (plain or compressed) or text; read through once for where they are
    x.txt, x.jsonl     units of all utterances (units_files.py)

Codes are features of one number a frame. A table is never in memory as a whole, only where its utterances are. Names of a
Kaldi table have no white space, for that ends a name there; paths may have some, and both may be of any script, in UTF-8.
Where there is nothing of a name as it is, one with other folders stands for it (pyspeech/data/names.py): `a/x` and `a_x` are
one, and x is a/x if no other folder has an x.
"""

import contextlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.data.names import KnownNames
from pyspeech.errors import UserError
from pyspeech.files import atomic_path, atomic_write
from pyspeech.units.units_files import is_codes, read_code_lines, read_code_records

SUFFIXES = (".npy", ".npz", ".pt", ".txt", ".jsonl")  # of features files, in the order in which they are looked for
_PLACE = re.compile(r"(?P<ark>.*?)(:(?P<offset>\d+))?(\[(?P<first>\d+):(?P<last>\d+)\])?", re.DOTALL)


class Features(NamedTuple):
    """values (N, D) float64, finite, N and D at least 1; times (N,) float64 in seconds, increasing, or None; source is
    what messages call them."""

    values: np.ndarray
    times: np.ndarray | None
    source: str


class FeatureSet:
    """Features of utterances by name: `features(name)` gives Features; UserError for what is not there, or no such matrix."""

    def __init__(
        self, where: object, names: Callable[[], Iterable[str]], read: Callable[[str], Features | None], expected: str
    ) -> None:
        """Read with read(name), which gives None for a name that is not there; where, expected: for the message of that."""
        self.where, self._names, self._read, self.expected = where, names, read, expected
        self._known = None

    @property
    def names(self) -> list[str]:
        """Names of all utterances, in order."""
        return list(self._names())

    def __call__(self, name: str) -> Features:
        """Return the Features of an utterance."""
        found = self._read(name)
        if found is None:
            self._known = self._known or KnownNames(self.names)
            other = self._known.find(name)
            found = self._read(other) if other is not None else None
        if found is None:
            raise UserError(f"{self.where}: no features of {name}; {self.expected.format(name=name)}")
        return found


def open_features(where: Path | str | dict) -> FeatureSet:
    """A function from the name of an utterance to its Features, which also has the names.

    where: a folder or a file, as described on top, or a dict {name: array or (array, times)}. UserError where there is
    none of these; that of the function names what is missing, empty, or not a matrix of finite numbers.
    """
    if isinstance(where, dict):
        return FeatureSet("features", where.keys, partial(_from_dict, where), "expected an array for each utterance")
    path = Path(where)
    if path.is_dir():
        expected = f"expected one of {', '.join('{name}' + suffix for suffix in SUFFIXES)}"
        return FeatureSet(path, partial(_stems, path), partial(_from_folder, path), expected)
    if path.is_file() and path.suffix in (".txt", ".jsonl"):
        units = (read_code_lines if path.suffix == ".txt" else read_code_records)(path, read_text(path))
        units = {name: (values, None) for name, values in units.items()}
        return FeatureSet(path, units.keys, partial(_from_dict, units), _it_has(units))
    if not path.is_file() or path.suffix not in (".scp", ".ark"):
        raise UserError(
            f"{path}: {'neither .scp, .ark, .txt nor .jsonl' if path.exists() else 'no such folder or file'}; expected a "
            "folder of features files, a Kaldi table (.scp, .ark), or units of all utterances (.txt, .jsonl)"
        )
    places = _listed(path) if path.suffix == ".scp" else _indexed(path)
    return FeatureSet(path, places.keys, partial(_from_table, path, places), _it_has(places))


def _it_has(names):
    first = next(iter(names), None)
    return f"it has {len(names)} utterances" + (f", such as {first}" if names else "").replace("{", "{{").replace("}", "}}")


def read_features(path: Path | str) -> Features:
    """The Features of one file that ends in one of SUFFIXES. UserError for what is not there or not that."""
    path = Path(path)
    readers = {".txt": _read_text, ".jsonl": _read_records, ".pt": _read_torch}
    values, times = (readers[path.suffix](path), None) if path.suffix in readers else _read_numpy(path)
    return _checked(values, times, path)


def _checked(values, times, source):
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise UserError(f"{source}: an array of {values.dtype}; expected numbers")
    if values.ndim == 1 and values.dtype.kind in "iu":
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        raise UserError(
            f"{source}: shape {values.shape}; expected (frames, dim) with at least one frame, or whole numbers (frames,)"
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise UserError(f"{source}: values that are no finite numbers; compute the features again")
    if times is not None:
        times = np.asarray(times, dtype=np.float64)
        if times.shape != (len(values),) or not np.all(np.diff(times) >= 0):
            raise UserError(
                f"{source}: times of shape {times.shape}; expected one for each of {len(values)} frames, in increasing order"
            )
    return Features(values, times, str(source))


# A folder


def _from_dict(features, name):
    if name not in features:
        return None
    found = features[name]
    return _checked(*(found if isinstance(found, tuple) else (found, None)), name)  # pyright: ignore[reportCallIssue]


def _from_folder(folder, name):
    for suffix in SUFFIXES:
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return read_features(path)
    return None


def _stems(folder):
    """Names of all features files in a folder and below, without their endings."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    return dict.fromkeys(path.with_suffix("").as_posix() for path in paths)


def _read_text(path):
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append([float(field) for field in line.split()])
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}; expected numbers separated by spaces") from None
        if len(rows[-1]) != len(rows[0]):
            raise UserError(f"{path}, line {number}: {len(rows[-1])} numbers; expected {len(rows[0])}, as above it")
    values = np.array(rows, dtype=np.float64) if rows else np.zeros((0, 0))
    return values.T if is_codes(rows) else values


def _read_records(path):
    found = read_code_records(path, read_text(path))
    if len(found) != 1:
        raise UserError(f"{path}: units of {len(found)} recordings; expected those of one")
    return next(iter(found.values()))


def _read_torch(path):
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        return loaded.numpy()
    except Exception as error:  # torch raises many kinds
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise UserError(f"{path}: cannot be read ({reason}); expected a tensor that torch.save wrote") from None


def _read_numpy(path):
    try:
        loaded = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return loaded, None
        with loaded:
            return loaded["features"], loaded.get("times", None)
    except (ValueError, EOFError, KeyError, TypeError, AttributeError, OSError, BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0].strip("'\"")
        raise UserError(f"{path}: cannot be read ({reason}); expected a NumPy array (.npz: named features)") from None


def read_text(path: Path | str) -> str:
    """The text of a UTF-8 file; UserError for what is not that."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; expected a text file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


# A Kaldi table


def _listed(table):
    """{name: (path of the archive, offset or None, slice of rows)} of a list."""
    places = {}
    for number, line in enumerate(read_text(table).split("\n"), 1):
        fields = line.split(maxsplit=1)
        if not fields:
            continue
        place = _PLACE.fullmatch(fields[1].rstrip()) if len(fields) == 2 else None
        if place is None or fields[1].rstrip().endswith("|"):
            raise UserError(f"{table}, line {number}: '{line.strip()}'; expected `name path.ark:offset`")
        if fields[0] in places:
            raise UserError(f"{table}, line {number}: {fields[0]} is there twice; expected each utterance once")
        offset, first, last = (place[part] and int(place[part]) for part in ("offset", "first", "last"))
        # Of Kaldi's ranges the last one belongs too.
        rows = slice(None) if first is None else slice(first, last + 1)  # pyright: ignore[reportOperatorIssue]
        places[fields[0]] = place["ark"], offset or 0, rows
    return places


def _indexed(archive):
    """What `_listed` gives of an archive without a list; every matrix is read and dropped."""
    from kaldiio.matio import read_token

    places = {}
    with open(archive, "rb") as stream:
        while True:
            begun = stream.tell()
            try:
                name = read_token(stream)
            except UnicodeDecodeError:
                name = "\0"
            if name is None:
                return places
            if not name.isprintable():
                raise UserError(f"{archive}: no name at byte {begun}; expected a Kaldi archive")
            places[name] = str(archive), stream.tell(), slice(None)
            _read_matrix(stream, f"{archive}, {name}")


def _from_table(table, places, name):
    if name not in places:
        return None
    archive, offset, rows = places[name]
    source, beside = f"{table}, {name}", table.parent / archive
    moved = table.parent / os.path.basename(archive)
    path = next((path for path in (archive, beside, moved) if os.path.isfile(path)), None)
    if path is None:
        raise UserError(f"{source}: {archive}: no such file; expected the archive there, or in the folder of the table")
    with open(path, "rb") as stream:
        stream.seek(offset)
        return _checked(_read_matrix(stream, source)[rows], None, source)


def _read_matrix(stream, source):
    """A matrix (N, D) that begins at the present place of an archive."""
    from kaldiio.matio import read_kaldi

    if stream.peek(3)[:3] == b"PKL":
        raise UserError(f"{source}: a Python object (pickle), which may run programs; expected a matrix")
    try:
        matrix = read_kaldi(stream)
    except Exception as error:  # kaldiio raises whatever its parts raise
        reason = str(error).partition("\n")[0] or "cut off or damaged"
        raise UserError(
            f"{source}: kaldiio cannot read this ({type(error).__name__}: {reason}); expected a matrix of {stream.name}, whole"
        ) from None
    if isinstance(matrix, tuple):
        raise UserError(f"{source}: audio; expected a matrix of features (frames, dim)")
    if matrix.ndim != 2:
        raise UserError(f"{source}: a vector of {matrix.size} numbers; expected a matrix (frames, dim)")
    return matrix


def check_name(name: str) -> None:
    """UserError for what cannot be the name of an utterance in a Kaldi table."""
    if name.split() != [name]:
        raise UserError(
            f"'{name}' cannot be the name of an utterance in a Kaldi table, where white space ends a name; "
            "rename it, or write a file for each utterance"
        )


@contextlib.contextmanager
def kaldi_table(path: Path | str, compressed: bool = False) -> Iterator[Callable[[str, ArrayLike], None]]:
    """Yield write(name, values), which puts the matrix values (N, D) into path.ark as float32; path.scp lists them.

    compressed: Kaldi's own way for features, a byte a value, which is off by up to some hundredths of a column's range.

    Both are there, and whole, when the block has ended, and as they were before where it ends with an exception. A list
    is never there with an archive that is not its own. The list has the archive's whole path: tools may read it from
    any folder, `open_features` also where the two were moved. UserError for a name twice or with white space.
    """
    import kaldiio

    ark, scp = (Path(f"{os.path.abspath(path)}{suffix}") for suffix in (".ark", ".scp"))
    if set(str(ark)) & set("\r\n"):
        raise UserError(f"{path}: a line break in the path, which a Kaldi table cannot name; choose another folder")
    offsets = {}
    with atomic_path(ark) as temporary:
        with open(temporary, "wb") as stream:

            def write(name, values):
                check_name(name)
                if name in offsets:
                    raise UserError(f"{ark}: two utterances are named {name}; give them in two runs")
                offsets[name] = stream.tell() + len(name.encode()) + 1
                kaldiio.save_ark(
                    stream, {name: np.asarray(values, dtype=np.float32)}, compression_method=2 if compressed else None
                )

            yield write
        with contextlib.suppress(FileNotFoundError):
            scp.unlink()
    with atomic_write(scp) as stream:
        stream.writelines(f"{name} {ark}:{offset}\n" for name, offset in offsets.items())
