"""The GRU over short segments with the any-segment rule (Heitkaemper et al. 2020, section 3, Figure 5; see segment_rnn.py)."""

import torch

from pyspeech.compat import autocast, full_precision
from pyspeech.sad import segment_rnn
from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.networks.rnn import RnnLayer


class SegmentRnnLayer(RnnLayer):
    """The GRU and classifier over segments of L frames, S frames apart, and the any-segment rule."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__(inputs, config)
        self.length, self.shift = config.segment_length, config.segment_shift

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        with autocast(features.device, enabled=False):  # as run_recurrent
            outputs = segment_rnn.last_outputs(full_precision(features), self.gru, self.length, self.shift)
        scores = self.classify(*outputs)
        if valid is not None:
            counts = segment_rnn.num_segments(valid.sum(1, keepdim=True), self.length, self.shift)
            scores = scores * (torch.arange(scores.shape[1], device=scores.device) < counts)
        return segment_rnn.any_segment(scores, self.length, self.shift, features.shape[1])
