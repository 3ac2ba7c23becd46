"""Bidirectional GRU over all frames (Heitkaemper et al. 2020, Table 1, second row)."""

import torch

from pyspeech.compat import is_autocast, run_recurrent
from pyspeech.sad import gru
from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.networks.output import highest_score


class RnnLayer(torch.nn.Module):
    """Table 1, second row: a bidirectional GRU over all frames and a linear classifier."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        self.merge = config.rnn_merge
        size = config.rnn_size // 2 if self.merge == "concat" else config.rnn_size
        self.gru = torch.nn.GRU(inputs, size, batch_first=True, bidirectional=True)
        self.classifier = torch.nn.Linear(config.rnn_size, config.outputs)

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        if valid is None and torch.is_grad_enabled() and features.device.type == "cpu" and not is_autocast(features.device):
            return self.classify(*gru.outputs(self.gru, features))
        if valid is None:
            outputs, _ = run_recurrent(self.gru, features)
        else:
            # The backward direction has to start at each recording's own end.
            lengths = valid.sum(1).cpu().clamp(min=1)
            packed = torch.nn.utils.rnn.pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
            # The GRU's own initial state would be one of a fixed number of recordings once traced.
            state = features.new_zeros(2, features.shape[0], self.gru.hidden_size)
            outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(
                run_recurrent(self.gru, packed, state)[0], batch_first=True, total_length=features.shape[1]
            )
        return self.classify(*outputs.chunk(2, dim=2))

    def in_windows(self) -> "RnnInWindows":
        """The layer for recordings of which it is to hear a part at a time."""
        return RnnInWindows(self)

    def classify(self, forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
        """Scores (B, T) from the outputs of the two directions, (B, T, H) each."""
        merged = torch.cat([forward, backward], dim=2) if self.merge == "concat" else forward + backward
        return highest_score(self.classifier(merged))


class RnnInWindows(torch.nn.Module):
    """`score_windows` (piece_network.py) of an `RnnLayer`, without the half of the context that a direction does not need.

    The forward one is not computed behind a hop, the backward one not before it.
    """

    def __init__(self, layer: RnnLayer) -> None:
        super().__init__()
        self.classify = layer.classify
        self.before, self.behind = (_direction(layer.gru, name) for name in ("l0", "l0_reverse"))

    def forward(self, hidden: torch.Tensor, first: torch.Tensor, count: torch.Tensor, context: int, hop: int) -> torch.Tensor:
        """As `score_windows`: hidden (1, T, D) -> scores (count,) of the frames from `first` on."""
        num_hops = (count + hop - 1).div(hop, rounding_mode="floor")
        hops = first + torch.arange(num_hops) * hop  # pyright: ignore[reportCallIssue, reportArgumentType]
        begin, end = (hops - context).clamp(min=0), (hops + hop + context).clamp(max=hidden.shape[1])
        steps, wanted = torch.arange(context + hop), torch.arange(hop)
        # What a window has too much lies behind the wanted frames, in the order of either direction.
        frames = (begin[:, None] + steps).clamp(max=hidden.shape[1] - 1)
        forward = _outputs(self.before, hidden[0], frames, (hops - begin)[:, None] + wanted)
        frames = (end[:, None] - 1 - steps).clamp(min=0)
        backward = _outputs(self.behind, hidden[0], frames, ((end - 1 - hops)[:, None] - wanted).clamp(min=0))
        return self.classify(forward, backward).flatten()[:count]


def _direction(gru, name):
    """One direction of a bidirectional GRU by itself."""
    alone = torch.nn.GRU(gru.input_size, gru.hidden_size, batch_first=True)
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(alone, f"{kind}_l0", getattr(gru, f"{kind}_{name}"))
    alone.flatten_parameters()  # cuDNN warns of weights that lie apart
    return alone


def _outputs(gru, features, frames, wanted):
    """Outputs (n, hop, H) of the steps `wanted` (n, hop) of a GRU over windows of features (T, D): frames (n, steps)."""
    windows = features[frames.to(features.device)]
    # The GRU's own initial state would be one of a fixed number of windows once traced.
    outputs, _ = run_recurrent(gru, windows, features.new_zeros(1, windows.shape[0], gru.hidden_size))
    return outputs.gather(1, wanted.to(features.device)[:, :, None].expand(-1, -1, gru.hidden_size))
