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

    def classify(self, forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
        """Scores (B, T) from the outputs of the two directions, (B, T, H) each."""
        merged = torch.cat([forward, backward], dim=2) if self.merge == "concat" else forward + backward
        return highest_score(self.classifier(merged))
