"""1-D CNN (Heitkaemper et al. 2020, Table 1, first row)."""

import torch
from torch.nn import functional

from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.networks.output import highest_score


class CnnLayer(torch.nn.Module):
    """Table 1, first row: two 1-D convolutions."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        self.hidden = torch.nn.Conv1d(inputs, config.cnn_channels, 3, padding=1)
        self.output = torch.nn.Conv1d(config.cnn_channels, config.outputs, 3, padding=1)

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        hidden = functional.relu(self.hidden(features.transpose(1, 2)), inplace=True)
        hidden = hidden if valid is None else hidden * valid[:, None]
        return highest_score(self.output(hidden).transpose(1, 2))
