"""The encoders of the transducers, by name, and what each of them has to offer.

An encoder is an entry here and a module with its network. Nothing here imports torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from pyspeech.asr.config import TransducerConfig


class Encoder(Protocol):
    """A torch.nn.Module, made as Encoder(config, inputs, **options): frames of `inputs` values to config.encoder_size values.

    Frames may come in chunks of any sizes: the state is the encoder's own affair, and others only carry it from call to call.

    input_layer: names of the weight (outputs, inputs) and the bias (outputs,) that the input frames are multiplied with, so
        that finetuning can make a constant input part of the bias.
    """

    input_layer: tuple[str, str]

    def start(self, inputs: torch.Tensor) -> Any:
        """Make the state before the first frame, for the rows, the device and the type of inputs (B, T, I)."""
        ...

    def __call__(
        self, inputs: torch.Tensor, lengths: torch.Tensor, state: Any, last: bool
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Encode the next frames.

        Args:
            inputs: (B, T, I); frames behind a row's end may hold anything.
            lengths: (B,) int64, how many of them count; fewer than T where a row ends, and 0 from then on.
            state: That after the frames before.
            last: No more frames follow in any row, so that none may be held back.

        Returns:
            Encoded (B, T', D), any number of frames; lengths (B,) int64, how many of these count; the state.
        """
        ...


@dataclass(frozen=True)
class EncoderEntry:
    """Entry of an encoder.

    network: "module:class" of an `Encoder`.
    options: its own, with their defaults, which are at least 1: keywords of the class, changed by `model.encoder_options`.
    subsampling: input frames from output frame to output frame.
    parameters: parameters(config, inputs) -> their number, where it is known without building the network.
    """

    network: str
    options: Mapping[str, int] = field(default_factory=dict)
    subsampling: int = 1
    parameters: Callable[[TransducerConfig, int], int] | None = None

    def all_options(self, config: TransducerConfig) -> dict[str, int]:
        """Return all options of the encoder, with defaults for those missing in `config`."""
        return {**self.options, **config.encoder_options}

    def build(self, config: TransducerConfig, inputs: int) -> Any:
        """Make the network, untrained, for frames of `inputs` values."""
        module, _, name = self.network.partition(":")
        return getattr(importlib.import_module(module), name)(config, inputs, **self.all_options(config))

    def count_parameters(self, config: TransducerConfig, inputs: int) -> int:
        """Count the parameters of the network for frames of `inputs` values."""
        if self.parameters is not None:
            return self.parameters(config, inputs)
        return sum(parameter.numel() for parameter in self.build(config, inputs).parameters())


def lstm_parameters(inputs: int, size: int, layers: int) -> int:
    """Count the parameters of LSTM layers: four gates with two biases each."""
    return 4 * size * (inputs + size + 2) + (layers - 1) * 4 * size * (2 * size + 2)


ENCODERS = {
    "lstm": EncoderEntry(
        "pyspeech.asr.encoder:LstmEncoder",
        parameters=lambda config, inputs: lstm_parameters(inputs, config.encoder_size, config.encoder_layers),
    ),
    "conformer": EncoderEntry(
        "pyspeech.asr.conformer:ConformerEncoder",
        # chunk: frames decoded together; left: frames before a chunk that it attends to; kernel: of the convolution in time.
        options={"heads": 4, "chunk": 8, "left": 64, "kernel": 15, "expansion": 4},
    ),
}
