"""Unidirectional GRU with a short look-ahead, for streams.

    features -> convolution over a frame and the `lookahead` frames behind it -> GRU -> classifier

The convolution is the look-ahead of Wang et al. 2016 ("Lookahead convolution layer for unidirectional recurrent neural
networks"), here in front of the GRU and over all features, so that the GRU's state is that of the frame decided.
"""

import torch
from torch.nn import functional

from pyspeech.compat import is_autocast, run_recurrent
from pyspeech.sad import gru
from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.networks.output import highest_score


class CausalRnnLayer(torch.nn.Module):
    """A GRU over the frames so far, its inputs with a look-ahead, and a linear classifier."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        self.lookahead = config.lookahead
        self.ahead = torch.nn.Conv1d(inputs, inputs, config.lookahead + 1)
        self.gru = torch.nn.GRU(inputs, config.rnn_size, batch_first=True)
        self.classifier = torch.nn.Linear(config.rnn_size, config.outputs)

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        """Score frames that do not exist too, as they change no others': zeros stand in for them."""
        hidden = self.look_ahead(features)
        if torch.is_grad_enabled() and features.device.type == "cpu" and not is_autocast(features.device):
            (outputs,) = gru.outputs(self.gru, hidden)
        else:
            outputs, _ = run_recurrent(self.gru, hidden)
        return highest_score(self.classifier(outputs))

    def look_ahead(self, features: torch.Tensor) -> torch.Tensor:
        """Features (B, T, D) -> (B, T, D), each with the frames behind it; behind the last one are zeros."""
        padded = functional.pad(features.transpose(1, 2), (0, self.lookahead))
        return functional.relu(self.ahead(padded)).transpose(1, 2)

    def advance(
        self, features: torch.Tensor, before: torch.Tensor, state: torch.Tensor, last: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Score more frames of a recording: (1, T'), those with all that they hear, and what follows from before and state.

        features (1, T, D). before (1, up to `lookahead`, D): the features before them that have not been scored.
        state (1, 1, H): of the GRU, zeros at first. last: 1 at the end of the recording, else 0.
        """
        end = features.new_zeros(1, self.lookahead, self.ahead.in_channels)[:, : self.lookahead * last]
        features = torch.cat([before, features, end], 1)
        hidden = functional.relu(self.ahead(features.transpose(1, 2))).transpose(1, 2)
        outputs, state = run_recurrent(self.gru, hidden, state)
        return highest_score(self.classifier(outputs)), features[:, -self.lookahead or features.shape[1] :], state
