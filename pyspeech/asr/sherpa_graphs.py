"""A transducer as three networks of sherpa-onnx's streaming interface for NeMo models, whose predictor is an LSTM.

    encoder   log-mel frames, length, caches -> frames, lengths, caches     B streams, N bins, C frames of 10 ms a chunk
    decoder   symbol, length, states -> prediction, length, states          a step of the prediction network
    joiner    frame, prediction -> logits

as sherpa-onnx/csrc/online-transducer-nemo-model.cc takes them. The blank is the last symbol there; symbol k is ours less
one. Both projections of the joint network are in encoder and decoder, so the joiner is small.

sherpa-onnx computes the log-mel frames: for features.kind=nemo they are ours. For kind=kaldi the encoder takes as many bins
as its filters can have (`BINS`) and makes ours from them, a sum of energies for each of our filters. What stays different is
the window (Hann's for povey), the mean of each window, which is not removed, and quiet bins: sherpa-onnx's lie at the floor
earlier.

Caches: cache_last_channel (B, 2, layers, size) is the state of the LSTM; cache_last_time (B, 1, rows, N) the log-mel frames
that are still needed; cache_last_channel_len (B,) how many frames there were, 0 at the start.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from pyspeech.asr.encoder import LstmEncoder
from pyspeech.asr.joint import OutputLayer
from pyspeech.asr.networks import Transducer
from pyspeech.asr.predictor import PredictorNetwork
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import FLOOR, GlobalStats, window_function
from pyspeech.features.mel import mel_filters

RATE, N_FFT = 16000, 512  # of sherpa-onnx's features
BINS = 192  # the most of Slaney's filters at 16 kHz that all have a point of the spectrum
LENGTH = 0.3  # seconds of a chunk, about


def input_config(config: FbankConfig) -> FbankConfig:
    """Return the FbankConfig of what sherpa-onnx computes for a model with features `config`: not stacked, no mean removed."""
    bins = config.num_bins if config.kind == "nemo" else BINS
    return FbankConfig(sampling_rate=RATE, num_bins=bins, stack=1, stack_shift=1, kind="nemo")


def chunk_frames(config: FbankConfig) -> int:
    """Log-mel frames of a chunk: whole encoder frames of about LENGTH seconds."""
    return config.stack_shift * max(1, round(LENGTH / config.frame_seconds))


class FrontEnd(torch.nn.Module):
    """sherpa-onnx's log-mel frames -> normalised encoder frames."""

    weight: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, config: FbankConfig, stats: GlobalStats | None) -> None:
        super().__init__()
        self.config = config
        self.kept = config.stack - config.stack_shift  # frames of the next encoder frame
        self.summed = max(0, config.mean_frames - 1)  # frames of the next mean
        self.rows = max(1, self.kept + self.summed)
        if config.kind == "kaldi":
            self.register_buffer("weight", band_weights(config.sampling_rate, config.num_bins).float())
        stats = stats or GlobalStats([0.0] * config.num_bins, [1.0] * config.num_bins)
        self.register_buffer("mean", torch.tensor(stats.mean))
        self.register_buffer("std", torch.tensor(stats.std))

    def forward(self, frames: torch.Tensor, before: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute a chunk.

        frames (B, C, N) of sherpa-onnx, before (B, rows, num_bins), count (B,) frames before these
        Returns encoder frames (B, C / stack_shift, dim) and the next `before`.
        """
        if self.config.kind == "kaldi":
            frames = (frames.exp() @ self.weight).clamp(min=FLOOR).log()
        kept, summed = before[:, : self.kept], before[:, self.kept : self.kept + self.summed]
        if self.summed:
            joined = torch.cat([summed, frames], dim=1)
            frames = frames - self._running_mean(joined, frames, count)
            summed = joined[:, -self.summed :]
        if self.kept:
            kept = torch.where((count == 0)[:, None, None], frames[:, :1].expand(-1, self.kept, -1), kept)
            frames = torch.cat([kept, frames], dim=1)
            kept = frames[:, -self.kept :]
        parts = [part for part, size in ((kept, self.kept), (summed, self.summed)) if size]
        return self._stack((frames - self.mean) / self.std), torch.cat(parts, dim=1) if parts else before

    def _running_mean(self, joined, frames, count):
        """Means (B, C, num_bins) of the last mean_frames frames, or all there are; those that were not are zero in `joined`."""
        size, chunk = self.config.mean_frames, frames.shape[1]
        sums = torch.nn.functional.pad(joined.double().cumsum(dim=1), (0, 0, 1, 0))
        numbers = (count[:, None] + torch.arange(1, chunk + 1, device=count.device)).clamp(max=size)
        return ((sums[:, size:] - sums[:, :chunk]) / numbers[:, :, None]).float()

    def _stack(self, frames):
        config = self.config
        count = (frames.shape[1] - self.kept) // config.stack_shift
        places = [range(t * config.stack_shift, t * config.stack_shift + config.stack) for t in range(count)]
        index = torch.tensor(places, device=frames.device).flatten()
        return frames.index_select(1, index).reshape(-1, count, config.dim)


@functools.lru_cache(maxsize=2)
def band_weights(sampling_rate: int, num_bins: int) -> torch.Tensor:
    """Weights (BINS, num_bins) float64, none negative, that make the energies of Kaldi's filters of those of Slaney's.

    Each of our filters is a sum of theirs, by least squares over the points of the spectrum. At another sampling rate the
    points have the same distance; a spectrum of fewer samples has less energy and another pre-emphasis.
    """
    from scipy.optimize import nnls

    n_fft = N_FFT * sampling_rate // RATE
    bands = mel_filters("nemo", RATE, N_FFT, BINS).numpy()
    filters = np.zeros((N_FFT // 2 + 1, num_bins))
    filters[: n_fft // 2 + 1] = mel_filters("kaldi", sampling_rate, n_fft, num_bins).numpy()
    ours, theirs = (window_function(kind, rate // 40) for kind, rate in (("kaldi", sampling_rate), ("nemo", RATE)))
    gain = float(ours.square().sum() / theirs.square().sum()) * sampling_rate / RATE
    frequencies = np.arange(N_FFT // 2 + 1) * RATE / N_FFT
    emphasis = [abs(1 - 0.97 * np.exp(-2j * np.pi * frequencies / rate)) ** 2 for rate in (sampling_rate, RATE)]
    filters = gain * filters * (emphasis[0] / emphasis[1])[:, None]
    return torch.from_numpy(np.stack([nnls(bands, row)[0] for row in filters.T], axis=1))


class Encoder(torch.nn.Module):
    """The encoder with its features, its caches and its projection into the joint network."""

    def __init__(self, model: Transducer, front_end: FrontEnd, language: int) -> None:
        super().__init__()
        encoder: LstmEncoder = model.encoder
        self.lstm, self.project, self.front_end = encoder.lstm, model.joint.encoder, front_end
        self.norm = torch.nn.LayerNorm(model.config.encoder_size)  # ONNX has none without parameters
        self.languages = model.num_heads if model.config.structure == "onehot" else 0
        self.language = language

    def caches(self, batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make those before the first frame."""
        channel = torch.zeros(batch, 2, self.lstm.num_layers, self.lstm.hidden_size)
        time = torch.zeros(batch, 1, self.front_end.rows, self.front_end.config.num_bins)
        return channel, time, torch.zeros(batch, dtype=torch.int64)

    def forward(
        self, signal: torch.Tensor, length: torch.Tensor, channel: torch.Tensor, time: torch.Tensor, count: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """signal (B, N, C), length (B,), caches -> frames (B, J, T), T of each (B,), caches."""
        features, kept = self.front_end(signal.transpose(1, 2), time[:, 0], count)
        if self.languages:
            onehot = torch.nn.functional.one_hot(torch.tensor([[self.language]]), self.languages).to(features.dtype)
            features = torch.cat([features, onehot.expand(features.shape[0], features.shape[1], -1)], dim=2)
        state = channel[:, 0].transpose(0, 1).contiguous(), channel[:, 1].transpose(0, 1).contiguous()
        outputs, state = self.lstm(features, state)
        encoded = self.project(self.norm(outputs)).transpose(1, 2)
        channel = torch.stack([part.transpose(0, 1) for part in state], dim=1)
        lengths = torch.div(length, self.front_end.config.stack_shift, rounding_mode="floor")
        return encoded, lengths, channel, kept[:, None], count + signal.shape[2]


class Decoder(torch.nn.Module):
    """A step of the prediction network of one head, and its projection into the joint network."""

    def __init__(self, model: Transducer, head: int) -> None:
        super().__init__()
        predictor = model.predictor
        network: PredictorNetwork = predictor.networks[head if len(predictor.networks) > 1 else 0]  # pyright: ignore[reportAssignmentType]
        self.lstms, self.norms, self.project = network.lstms, network.norms, model.joint.predictor
        embedding: torch.nn.Embedding = predictor.embeddings[head if len(predictor.embeddings) > 1 else 0]  # pyright: ignore[reportAssignmentType]
        table = embedding.weight.detach()
        if predictor.onehot:
            onehot = torch.nn.functional.one_hot(torch.tensor(head), predictor.num_heads).to(table.dtype)
            table = torch.cat([table, onehot.expand(len(table), -1)], dim=1)
        self.embedding = torch.nn.Embedding.from_pretrained(blank_last(table))

    def forward(self, symbols: torch.Tensor, length: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """symbols (B, 1) and length (B,) int32, states two (layers, B, P) -> prediction (B, J, 1), length, states."""
        inputs, parts = self.embedding(symbols), []
        for layer, (lstm, norm) in enumerate(zip(self.lstms, self.norms, strict=True)):
            inputs, new = lstm(inputs, tuple(part[layer : layer + 1].contiguous() for part in states))
            inputs = norm(inputs)
            parts.append(new)
        states = tuple(torch.cat(part) for part in zip(*parts, strict=True))
        return self.project(inputs).transpose(1, 2), length + 0, *states


class Joiner(torch.nn.Module):
    """The output layer of one head, the blank last."""

    def __init__(self, model: Transducer, head: int) -> None:
        super().__init__()
        layer: OutputLayer = model.joint.outputs[head if len(model.joint.outputs) > 1 else 0]  # pyright: ignore[reportAssignmentType]
        self.output = torch.nn.Linear(layer.in_features, layer.out_features)
        with torch.no_grad():
            self.output.weight.copy_(blank_last(layer.weight))
            self.output.bias.copy_(blank_last(layer.bias))

    def forward(self, encoded: torch.Tensor, predicted: torch.Tensor) -> torch.Tensor:
        """encoded and predicted (B, J, 1) -> logits (B, 1, 1, V)."""
        return self.output(torch.tanh(encoded + predicted).transpose(1, 2))[:, None]


def blank_last(rows: torch.Tensor) -> torch.Tensor:
    """Rows of symbols (V, ...) with that of the blank, 0 with us, behind the others."""
    return torch.cat([rows[1:], rows[:1]])
