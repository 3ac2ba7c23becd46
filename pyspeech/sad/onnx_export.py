"""A SAD network as an ONNX file: from samples to scores in one graph, with all that its user needs to know as metadata.

    samples float32 (1, N), span int64 (3,) -> scores float32 (span[2],)        as PieceNetwork.forward
    of a causal network: frames float32 (1, T, window), last int64 (1,), and    as ChunkNetwork.forward
      its state, as pieces.state_shapes names it -> scores float32 (n,), and the state of the next chunk, named with "next_"
    metadata "pyspeech": JSON, see onnx_network.py

The graph is traced from the network in torch, so there is one form of the arithmetic. ONNX Runtime transforms slowly: the
short-time Fourier transform is a product with its matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch.nn import functional

from pyspeech.features.stft import MatrixStft
from pyspeech.model_file import trace, write_onnx
from pyspeech.sad.config import KIND, OperatingPoint
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.piece_network import scoring_network
from pyspeech.sad.pieces import first_state, state_shapes


def export_onnx(model: SadNetwork, path: str | Path, points: Mapping[str, OperatingPoint], card: str = "") -> None:
    """Write `model` to `path`, which should end in .onnx, whole or not at all.

    points: how its scores become decisions, by name; the first is the default. card: what it was trained on, for people.
    """
    points = {name: asdict(point) for name, point in points.items()}  # pyright: ignore[reportAssignmentType]
    write_onnx(path, traced(model), KIND, network=model.config, stft=model.stft.config, points=points, card=card)


def traced(model: SadNetwork) -> bytes:
    """The graph of a network as ONNX, without metadata."""
    network = scoring_network(model).cpu()
    network.stft = MatrixStft(network.stft_config)
    network.eval()
    inputs, outputs, axes = (_chunk if network.in_chunks else _piece)(network)
    return trace(network, inputs, outputs, axes)


def _piece(network):
    """Examples of inputs by name, the other outputs, and which axes vary."""
    frames = 2 * network.geometry.hop + 3 * network.geometry.reach + 40
    samples = torch.randn(1, (frames - 1) * network.stft_config.shift + network.stft_config.window)
    span = torch.tensor([frames, network.geometry.reach, frames - 2 * network.geometry.reach - 5])
    return {"samples": samples, "span": span}, ["scores"], {"samples": {1: "N"}, "scores": {0: "count"}}


def _chunk(network):
    """The same of a causal network."""
    inputs, outputs = {"frames": torch.randn(1, 40, network.stft_config.window), "last": torch.tensor([1])}, ["scores"]
    axes = {"frames": {1: "T"}, "scores": {0: "count"}}
    first = first_state(network.network, network.stft_config)
    for name, state in zip(state_shapes(network.network, network.stft_config), map(torch.from_numpy, first), strict=True):
        grows = name.startswith(("maps", "features"))
        inputs[name] = functional.pad(state, (0, 0, 0, 1)) if grows else state  # as behind the first chunk
        outputs.append(f"next_{name}")
        axes[name] = axes[outputs[-1]] = {state.dim() - 2: name} if grows else {}
    return inputs, outputs, axes
