"""Files of trained models: the weights with all that is needed to use them, in one file that says what it is.

    <folder>/model.pt   {"kind": name of a Kind, "format": FORMAT, "version": of pyspeech, "model": weights, ...}

Each task names its kinds in pyspeech/<task>/config.py, and what else is in a file in checkpoint.py, which writes and reads it
through `write` and `read`. Tools find the model that their user means with `find_model`. Networks go to ONNX by `trace` and
`write_onnx`, or `write_graph` with metadata of another form.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyspeech
from pyspeech.errors import DownloadError, UserError
from pyspeech.files import atomic_write

if TYPE_CHECKING:
    import torch

MODEL_FILE = "model.pt"
ONNX_FILE = "model.onnx"  # beside it, where it was exported
METADATA = "pyspeech"  # of an ONNX file: the name of the JSON that holds all but the graph
OPSET = 17  # of ONNX
FORMAT = 1  # of the content as a whole; another number for what this code could not read, or would misread
Built = TypeVar("Built")
SHOWN = 5  # models that an error message names


@dataclass(frozen=True)
class Kind:
    """A kind of model: its name in the file, the recipe that trains it, and where that leaves it in its folder."""

    name: str
    recipe: str
    place: str


def write(folder: str | Path, kind: Kind, model: torch.nn.Module, **content: Any) -> None:
    """Write `folder`/model.pt, whole or not at all: the weights of a torch module and what else `read` is to give back.

    content: dataclasses (which become dicts), dicts, lists, tuples (which become lists), tensors and plain values.
    """
    from pyspeech.compat import save_checkpoint

    content = {**content, "model": model.state_dict()}
    header = {"kind": kind.name, "format": FORMAT, "version": pyspeech.__version__}
    save_checkpoint(Path(folder) / MODEL_FILE, {**header, **_plain(content)})


def read(place: str | Path, kind: Kind, build: Callable[[dict[str, Any]], Built]) -> Built:
    """build(content) of what `write` wrote, tensors on the CPU. place: the folder of the model, or its model.pt.

    UserError in one line that names the file where there is none, it is damaged (its checksums are verified), of another
    kind or format, or where `build` finds that its content does not fit together.
    """
    from pyspeech.compat import load_checkpoint  # here, as tools import this module for --help, too

    path = Path(place)
    path = path / MODEL_FILE if path.is_dir() or path.name != MODEL_FILE else path
    if not path.is_file():
        path, what = (path.parent, f"is no {MODEL_FILE}") if path.parent.is_file() else (path, "no such model")
        raise UserError(f"{path}: {what}; expected a {kind.name} that the recipe {kind.recipe} trained: {kind.place}")
    content = load_checkpoint(path)
    _check_header(path, kind, content)
    try:
        return build(content)
    except DownloadError as error:  # of weights that the file refers to
        raise DownloadError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, UserError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: no {kind.name} of this version ({type(error).__name__}: {reason}); train it again with the recipe "
            f"{kind.recipe}, or use the version of the code that made it, pyspeech {content['version']}"
        ) from error


def kind_of(folder: str | Path) -> str:
    """The name of the kind of the model in a folder that has a model.pt."""
    from pyspeech.compat import load_checkpoint

    content = load_checkpoint(Path(folder) / MODEL_FILE)
    return content.get("kind", "") if isinstance(content, dict) else ""


def _check_header(path, kind, content):
    if not isinstance(content, dict) or not {"kind", "format", "version"} <= set(content):
        raise UserError(
            f"{path}: holds no model, or one without a format number; expected a {kind.name}: train it "
            f"again with the recipe {kind.recipe}"
        )
    if content["format"] != FORMAT:
        raise UserError(
            f"{path}: has format {content['format']}, written by pyspeech {content['version']}; this is pyspeech "
            f"{pyspeech.__version__}, which reads format {FORMAT}: use that version, or train it again with the recipe "
            f"{kind.recipe}"
        )
    if content["kind"] != kind.name:
        raise UserError(f"{path}: holds a model of kind {content['kind']}; expected {kind.name}")


def write_onnx(path: str | Path, graph: bytes, kind: Kind, **content: Any) -> None:
    """Write an ONNX graph with what is needed to use it, whole or not at all; content: as of `write`, and JSON can hold it."""
    header = {"kind": kind.name, "format": FORMAT, "version": pyspeech.__version__}
    write_graph(path, graph, {METADATA: json.dumps({**header, **_plain(content)})})


def check_in_memory(model: object, name: str) -> None:
    """UserError for a path where the constructor of the class `name` expects a model in memory."""
    if isinstance(model, (str, Path)):
        raise UserError(f"{model}: {name}(...) takes a model in memory; load a file with {name}.load({str(model)!r})")


def open_onnx(path: str | Path, kind: Kind, build: Callable[[dict[str, Any]], Built]) -> tuple[Any, Built]:
    """Open a file of `write_onnx` without torch: its ONNX Runtime session, of one thread, and build(content).

    UserError in one line that names the file where there is none, it is damaged, or of another kind or format.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such model; expected a file that utils/export_onnx.py wrote")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors, not the warnings of shapes that are unknown beforehand
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each status, without one for all
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{path}: not an ONNX model, or damaged ({reason}); export it again") from None
    content = _onnx_content(path, session, kind)
    try:
        return session, build(content)
    except (KeyError, TypeError, AttributeError, StopIteration, UserError) as error:
        raise UserError(
            f"{path}: its metadata is not that of a {kind.name} ({type(error).__name__}: {error}); export it again with "
            "utils/export_onnx.py"
        ) from None


def _onnx_content(path, session, kind):
    """The metadata of a file, checked as far as it says what the file is."""
    found = session.get_modelmeta().custom_metadata_map.get(METADATA)
    try:
        content = json.loads(found) if found else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("kind") != kind.name:
        raise UserError(f"{path}: not a {kind.name} of this repository; expected a file that utils/export_onnx.py wrote")
    if content.get("format") != FORMAT:
        raise UserError(
            f"{path}: has format {content.get('format')}, written by pyspeech {content.get('version')}; this is pyspeech "
            f"{pyspeech.__version__}, which reads format {FORMAT}: export it again"
        )
    return content


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists, tensors on the CPU."""
    if is_dataclass(value):
        value = asdict(value)  # pyright: ignore[reportArgumentType]
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.cpu() if hasattr(value, "cpu") else value


def find_model(
    given: str | Path | None, kind: Kind, layouts: Iterable[Sequence[str]] = ((MODEL_FILE,),), option: str = "--model"
) -> Path:
    """The folder of the model that a tool's --model names: the folder itself, or its model.pt.

    layouts: a folder holds a model where all files of one of these are in it; option: what messages call `given`.
    UserError for anything else; it lists the models that lie below a folder, such as that of an experiment.
    """
    if given is None:
        raise UserError(
            f"{option}: none given, and no {kind.name} is bundled; train one with the recipe {kind.recipe}: {kind.place}"
        )
    path = Path(given)
    if path.name == MODEL_FILE and path.is_file():
        path = path.parent
    if _holds(path, layouts):
        return path
    wanted = " or ".join(" with ".join(layout) for layout in layouts)
    what = f"no {wanted} in it" if path.is_dir() else f"is not a {wanted}" if path.exists() else "no such file or folder"
    found = _models_below(path, layouts)
    more = f" ({len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    raise UserError(
        f"{option} {given}: {what}; "
        + (
            f"choose one of {', '.join(map(str, found[:SHOWN]))}{more}"
            if found
            else f"expected a folder that the recipe {kind.recipe} made: {kind.place}"
        )
    )


def newest_model(experiments: str | Path, name: str, kind: Kind) -> Path:
    """The folder of the newest model `name` of all experiments, `experiments`/*/models/<name>; UserError without any."""
    found = sorted(Path(experiments).glob(f"*/models/{name}/{MODEL_FILE}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UserError(
            f"no trained {name} in {experiments}/*/models/{name}; train one with the recipe {kind.recipe}, or name a "
            "folder with --model"
        )
    return found[-1].parent


def _holds(folder, layouts):
    return any(all((folder / name).is_file() for name in layout) for layout in layouts)


def _models_below(folder, layouts):
    """Folders below `folder`, of a model.pt up to four levels below it, or right above that hold a model, sorted.

    Parts of another one are left out, and what lies in `training`, of checkpoints.
    """
    files = (path for depth in range(5) for path in folder.glob("*/" * depth + MODEL_FILE))
    candidates = {place for path in files for place in (path.parent, path.parent.parent)}
    found = {place for place in candidates if _holds(place, layouts)}
    apart = (place for place in found if place.parent not in found)
    return sorted(place for place in apart if "training" not in place.relative_to(folder.parent).parts)


def trace(
    network: torch.nn.Module, inputs: Mapping[str, torch.Tensor], outputs: Sequence[str], axes: Mapping[str, Mapping[int, str]]
) -> bytes:
    """Trace a network to an ONNX graph, without metadata.

    Args:
        network: In evaluation mode, on the CPU.
        inputs: {name: example} of its arguments, in order.
        outputs: Names of what it returns.
        axes: {name of an input or output: {axis whose size may change: its name}}.
    """
    import torch

    buffer = io.BytesIO()
    # In torch 2 the tracing exporter has to be asked for; the other one needs a package more.
    options = {} if torch.__version__.startswith("1.") else {"dynamo": False}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # of constants, as sizes of a configuration are, and of LSTMs whose states are given
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            buffer,  # pyright: ignore[reportArgumentType]
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            **options,  # pyright: ignore[reportArgumentType]
        )
    return buffer.getvalue()


def write_graph(path: str | Path, graph: bytes, metadata: Mapping[str, str]) -> None:
    """Write an ONNX graph with metadata, {name: text}, whole or not at all."""
    import onnx

    model = onnx.load_from_string(graph)
    onnx.helper.set_model_props(model, dict(metadata))
    model.producer_name, model.producer_version = "pyspeech", pyspeech.__version__
    onnx.checker.check_model(model)
    with atomic_write(path, "wb") as stream:
        stream.write(model.SerializeToString())
