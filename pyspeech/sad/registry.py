"""The SAD networks of Heitkaemper et al. 2020, by name: what tables, tools, stages and votes need to know of each.

A network is an entry here and a module with its temporal layer. Nothing here imports torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspeech.sad.config import NetworkConfig

COMMON = ("compress", "context_seconds", "channels", "outputs")  # options of every network


@dataclass(frozen=True)
class Network:
    """Entry of a network.

    label: its row of the tables.
    layer: "module:class" of the temporal layer. The class takes (number of features, NetworkConfig); its forward takes features
        (B, T, D) and valid (B, T) bool or None, and gives scores (B, T), see networks/output.py.
    options: of NetworkConfig, those that it depends on beside COMMON.
    smoothings: of its decisions; the first is that of its row, the others are compared in Figure 6.
    reach: reach(config) -> frames to either side that its layer sees; None: all, so that recordings are scored in windows.
    grid: grid(config) -> the multiple of frames at which a piece of a recording has to begin.
    recurrent: it computes step by step, faster in one thread.
    causal: it hears what comes behind a frame no further than its reach, and its input is normalised over the past; its layer
        goes on from piece to piece, see networks/causal_rnn.py.
    hours: that its training needs on a GPU at the paper's sizes.
    paper: in %, dev F1, P, R and DCF, and eval DCF (Table 2); paper_speed: real-time factor (Table 3); None: not in the paper.
    """

    label: str
    layer: str
    options: tuple[str, ...] = ()
    smoothings: tuple[str, ...] = ("hmm", "median")
    reach: Callable[[NetworkConfig], int] | None = None
    grid: Callable[[NetworkConfig], int] = lambda config: 1
    recurrent: bool = True
    causal: bool = False
    hours: float = 12
    paper: tuple[float | None, ...] = (None,) * 5
    paper_speed: float | None = None

    def layer_class(self) -> Any:
        """Import the class of the temporal layer."""
        module, _, name = self.layer.partition(":")
        return getattr(importlib.import_module(module), name)


NETWORKS = {  # those of the paper, which the recipe trains unless its option `systems` says otherwise, and others
    "cnn": Network(
        "CNN + HMM",
        "pyspeech.sad.networks.cnn:CnnLayer",
        options=("cnn_channels", "lowered"),
        reach=lambda config: 2,  # two convolutions
        recurrent=False,
        paper=(97.91, 96.83, 99.02, 1.42, 2.45),
        paper_speed=0.0119,
    ),
    "rnn": Network(
        "RNN + HMM",
        "pyspeech.sad.networks.rnn:RnnLayer",
        options=("rnn_size", "rnn_merge", "lowered"),
        paper=(97.84, 96.85, 98.85, 1.54, 2.17),
    ),
    "seg_rnn": Network(
        "Seg. RNN",
        "pyspeech.sad.networks.seg_rnn:SegmentRnnLayer",
        options=("rnn_size", "rnn_merge", "segment_length", "segment_shift", "lowered"),
        smoothings=("none",),
        reach=lambda config: config.segment_length - 1,
        grid=lambda config: config.segment_shift,
        hours=16,
        paper=(98.62, 97.42, 99.85, 0.81, 1.19),
        paper_speed=0.0445,
    ),
    "causal_rnn": Network(
        "Causal RNN",
        "pyspeech.sad.networks.causal_rnn:CausalRnnLayer",
        options=("rnn_size", "lookahead"),
        smoothings=("none", "median"),
        reach=lambda config: config.lookahead,
        causal=True,
    ),
}
