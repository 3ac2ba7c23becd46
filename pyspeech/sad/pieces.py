"""Pieces of a recording: what frames a network's scores depend on, and how a long recording is cut so that they are exact.

A piece is scored by itself. It is given the frames around it that its scores depend on: those of the normalisation window
(twice over for log magnitudes: the level of their floor, then their mean), of the convolutions (2 a block) and of what comes
after them, so that the scores are those of the whole recording.

A layer without a limited reach, such as the bidirectional GRU over all frames, would depend on every frame. It runs over
windows instead: the frames of each HOP_SECONDS of the recording, counted from its start, with CONTEXT_SECONDS to either side
(training shows it 4 s at a time; of a lowered spectrum, LOWERED_CONTEXT of piece_network.py). So its scores, too, depend on the
frames around them alone, wherever a recording is cut.

A causal network computes each frame once. It is given chunks of new frames, one after the other, and what it keeps of the
frames before: its state (`state_shapes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspeech.sad.config import NetworkConfig, StftConfig
from pyspeech.sad.registry import NETWORKS

CONTEXT_SECONDS = 4.0
HOP_SECONDS = 2.0
POOLING = 4  # of the CNN blocks, along frequency
LARGEST_MAP = 2**22  # values of the output of the first convolution: 16 MB


@dataclass(frozen=True)
class Geometry:
    """Numbers of frames. A piece of `hop` frames, or several times that, begins at a multiple of it."""

    context: int  # to either side of a hop, that the layer behind the CNN is given
    reach: int  # to either side, that a score depends on behind the normalisation
    margin: int  # before it, that it depends on altogether
    ahead: int  # after it; as many, but for a causal network
    hop: int
    largest: int  # of a piece: a multiple of `hop`, beyond which memory counts more than the margins do

    @classmethod
    def of(cls, network: NetworkConfig, stft: StftConfig) -> Geometry:
        """Geometry of a network."""
        kind = NETWORKS[network.temporal]
        grid, unbounded = kind.grid(network), kind.reach is None
        beyond_cnn = round(CONTEXT_SECONDS / stft.frame_shift) if kind.reach is None else kind.reach(network)
        # Pieces start where a segment does.
        reach = _multiple(cnn_reach(network) + beyond_cnn, grid)
        hop = _multiple(round(HOP_SECONDS / stft.frame_shift) if unbounded else 1, grid)
        windows = 2 if network.compress == "log" else 1  # that normalise applies one after the other
        margin = reach + windows * context_frames(network, stft)
        largest = LARGEST_MAP // (network.channels[0] * stft.num_bins)
        return cls(beyond_cnn, reach, margin, reach if kind.causal else margin, hop, max(1, largest // hop) * hop)


def cnn_reach(network: NetworkConfig) -> int:
    """Frames to either side that an output frame of the CNN blocks sees: two convolutions a block."""
    return 2 * len(network.channels)


def context_frames(config: NetworkConfig, stft: StftConfig) -> int:
    """Frames to either side that a frame is normalised over."""
    return round(config.context_seconds / stft.frame_shift)


def state_shapes(network: NetworkConfig, stft: StftConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of what a causal network keeps from chunk to chunk, as zeros at the start of a recording, by name.

    powers, values, sums: of the frames that the next ones are normalised over, see `normalise_on`. maps: of each convolution,
    see `CnnFrontEnd.advance`. features, gru: see `CausalRnnLayer.advance`. The frames of maps and features, the last dimension
    but one, grow with the first chunk.
    """
    bins, inputs, past = stft.num_bins, 1, context_frames(network, stft) + 1
    shapes: dict[str, tuple[int, ...]] = {"powers": (1, past, 2), "values": (1, past, bins)}
    if network.compress == "log":
        shapes["sums"] = 1, 1, bins
    for number, outputs in enumerate(network.channels):
        shapes[f"maps{2 * number}"], shapes[f"maps{2 * number + 1}"] = (1, inputs, 1, bins), (1, outputs, 1, bins)
        bins, inputs = bins // min(POOLING, bins), outputs
    shapes["features"], shapes["gru"] = (1, 0, inputs * bins), (1, 1, network.rnn_size)
    return shapes


def first_state(network: NetworkConfig, stft: StftConfig) -> list[np.ndarray]:
    """State of a causal network at the start of a recording, in the order of `state_shapes`."""
    shapes = state_shapes(network, stft)
    return [np.zeros(shape, np.float64 if name == "sums" else np.float32) for name, shape in shapes.items()]


def _multiple(count: int, grid: int) -> int:
    return max(1, -(-count // grid)) * grid
