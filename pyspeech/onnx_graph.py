"""ONNX graphs: traced from networks of torch, and written with what is to be known of them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyspeech
from pyspeech.files import atomic_write

if TYPE_CHECKING:
    import torch

OPSET = 17


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
