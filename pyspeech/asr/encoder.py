"""The encoder of the paper: LSTM layers over stacked log-mel frames (Joshi et al. 2021, section 5); causal.

Sequences are not packed: frames behind an utterance's end cannot change those before it, and training on packed
sequences takes 2.5 (torch 1.13) to 6 times (torch 2.11) as long.

The output of each frame is brought to mean 0 and variance 1, without parameters, so that the paper's sizes stay as they
are. The predictor's output is layer-normalised; next to it an untrained encoder, with a tenth of its variance or less,
is not heard, and on a small corpus training ends where the transducer knows the texts and does not listen.
"""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING

import torch

from pyspeech.compat import full_precision, run_recurrent

if TYPE_CHECKING:
    from pyspeech.asr.config import TransducerConfig

# Rows x frames below which torch's own LSTM is faster than oneDNN's, which torch 2 takes: 3 times in a single step.
SMALL = 128


class LstmEncoder(torch.nn.Module):
    """An Encoder (pyspeech.asr.registry); its state: two tensors (layers, B, D)."""

    input_layer = ("lstm.weight_ih_l0", "lstm.bias_ih_l0")

    def __init__(self, config: TransducerConfig, inputs: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(
            inputs,
            config.encoder_size,
            config.encoder_layers,
            batch_first=True,
            dropout=config.dropout if config.encoder_layers > 1 else 0.0,
        )
        initialise_lstm(self.lstm)

    def start(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = self.lstm.num_layers, inputs.shape[0], self.lstm.hidden_size
        return inputs.new_zeros(shape), inputs.new_zeros(shape)

    def forward(
        self, inputs: torch.Tensor, lengths: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor], last: bool
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """See Encoder. A frame out for each frame in, which depends on frames up to it alone."""
        outputs, state = run_lstm(self.lstm, inputs, state)
        return torch.nn.functional.layer_norm(outputs, outputs.shape[-1:]), lengths, state


def run_lstm(
    lstm: torch.nn.LSTM, inputs: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Compute lstm(inputs (B, T, I), state) -> (outputs (B, T, H), state) by the fastest way, also for B or T of 0."""
    if inputs.shape[0] == 0 or inputs.shape[1] == 0:
        return inputs.new_zeros(inputs.shape[0], inputs.shape[1], lstm.hidden_size), state
    small = not lstm.training and inputs.shape[0] * inputs.shape[1] < SMALL and inputs.device.type == "cpu"
    with _without_onednn if small else contextlib.nullcontext():
        return run_recurrent(lstm, inputs, tuple(part.contiguous() for part in state))


class _WithoutOnednn:
    """Context manager: torch's own LSTM. The switch is the process's, so it goes back when the last thread leaves."""

    def __init__(self):
        self.lock, self.inside, self.before = threading.Lock(), 0, True

    def __enter__(self):
        with self.lock:
            if self.inside == 0:
                self.before = torch.backends.mkldnn.enabled
                torch.backends.mkldnn.enabled = False
            self.inside += 1

    def __exit__(self, *exception):
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                torch.backends.mkldnn.enabled = self.before


_without_onednn = _WithoutOnednn()


def initialise_lstm(lstm: torch.nn.LSTM) -> None:
    """Input weights of variance 1 / inputs, and a forget gate that starts open.

    torch's own weights have a third of that variance or less. For white noise the sixth layer of 1024 units then puts
    out a standard deviation of 0.014, with these 0.09.
    """
    with torch.no_grad():
        for name, parameter in lstm.named_parameters():
            if name.startswith("weight_ih"):
                bound = math.sqrt(3 / parameter.shape[1])
                parameter.uniform_(-bound, bound)
            elif name.startswith("bias"):
                parameter.zero_()
                if name.startswith("bias_ih"):
                    parameter[lstm.hidden_size : 2 * lstm.hidden_size] = 1.0


class LidHead(torch.nn.Module):
    """Linear layers with ReLU between them: config.lid_sizes hidden units, then the languages.

    The paper does not give its hidden layers; the default sizes lead to the number of parameters in its Table 6.
    """

    def __init__(self, config: TransducerConfig, languages: int) -> None:
        super().__init__()
        sizes = [config.encoder_size, *config.lid_sizes, languages]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in zip(sizes, sizes[1:], strict=False))

    def forward(self, encoded: torch.Tensor) -> torch.Tensor:
        """encoded (..., D) -> log posteriors (..., languages)."""
        for layer in self.layers[:-1]:
            encoded = torch.relu(layer(encoded))
        return torch.log_softmax(full_precision(self.layers[-1](encoded)), dim=-1)
