"""The vector-quantised autoencoder that finds the units (Tjandra et al. 2020, section 3, Figures 2 and 3).

    features -> encoder -> z -> nearest code e -> jitter -> + speaker embedding -> decoder -> features

kind "transformer" (the paper's): linear to `dim`, positions, two blocks of [two Transformer layers, convolution of 4 frames
with stride 2], linear to `code_dim`. kind "conv" (the baseline of its Table 2, Tjandra et al. 2019): residual convolutions
in the place of the Transformer layers, no positions; the sizes are chosen here, so that both kinds have the same frame rate
and width. Decoder of both: [convolution of 3, every frame twice] two times, convolution to the features.

An utterance of T frames has ceil(T / 4) codes: behind its end stand zeros. B utterances, T frames, F features, N codes, D
values of a code.
"""

import math

import torch
from torch.nn import functional

from pyspeech.compat import autocast, full_precision
from pyspeech.errors import UserError
from pyspeech.units.config import VqVaeConfig  # noqa: F401 (belongs to this module; imports fast where it stands)
from pyspeech.units.layers import Convolution, ResidualConvolution, TransformerLayer, add_positions, length_mask
from pyspeech.units.quantizer import Quantizer, nearest_codes, usage


class VqVae(torch.nn.Module):
    """VQ-VAE.

    config: VqVaeConfig; num_speakers: of the training set, for the decoder alone. Any speaker can be encoded.
    """

    def __init__(self, config: VqVaeConfig, num_speakers: int) -> None:
        super().__init__()
        config.check()
        if num_speakers < 1:
            raise UserError(f"{num_speakers} speakers to train with; expected at least one")
        self.config, self.num_speakers = config, num_speakers
        self.encoder = Encoder(config)
        self.quantizer = Quantizer(config)
        self.decoder = Decoder(config)
        self.speakers = torch.nn.Embedding(num_speakers, config.speaker_dim)

    @property
    def codebook(self) -> torch.Tensor:
        """The codes' vectors (K, D)."""
        return self.quantizer.codebook

    def forward(
        self, features: torch.Tensor, lengths: torch.Tensor, speakers: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, dict]:
        """features (B, T, F), lengths (B,) int64 from 1 to T, speakers (B,) int64 -> reconstruction (B, T, F), parts.

        targets (B, T, F): what is to be reconstructed, where that is not the features.
        parts: scalar tensors "reconstruction", "commitment" and "smoothing", the squared distances of equations 7 and 9,
        each the mean over what there is in the batch, a frame, a code, or a pair of codes; numbers "perplexity" and
        "used_codes", of the batch, 0 before there is a codebook. Frames behind an utterance's end count nowhere. In
        training, the codebook learns.
        """
        latents, code_lengths = self.latents(features, lengths)
        mask = length_mask(code_lengths, latents.shape[1])
        codes, quantised = self.quantizer(latents, mask)
        straight = latents + (quantised - latents).detach()
        if self.training and self.config.jitter:
            straight = straight.gather(1, jitter_indices(mask, self.config.jitter)[:, :, None].expand_as(straight))
        reconstruction = self._decode(straight, mask, speakers, features.shape[1])
        perplexity, used = usage(codes[mask], self.config.codes) if self.quantizer.initialised else (0.0, 0)
        missed = reconstruction - (features if targets is None else targets)
        pairs = mask[:, 1:] & mask[:, :-1]
        return reconstruction, {
            "reconstruction": mean_square(missed, length_mask(lengths, features.shape[1])),
            "commitment": mean_square(latents - quantised, mask),
            "smoothing": mean_square(latents[:, 1:] - latents[:, :-1], pairs),
            "perplexity": perplexity,
            "used_codes": used,
        }

    def latents(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute z before quantisation: (B, T, F), (B,) -> (B, N, D) float32, (B,) codes of each; after the end any values."""
        if features.dim() != 3 or features.shape[2] != self.config.features:
            raise UserError(
                f"features of shape {tuple(features.shape)}: the model expects (utterances, frames, {self.config.features})"
            )
        if len(lengths) and not 1 <= int(lengths.min()) <= int(lengths.max()) <= features.shape[1]:
            raise UserError(
                f"lengths from {int(lengths.min())} to {int(lengths.max())} frames: expected 1 to "
                f"{features.shape[1]}, the frames of the batch; an utterance without any has no units"
            )
        return self.encoder(features, lengths)

    @torch.no_grad()
    def encode(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, F), (B,) -> codes (B, N) int64, 0 behind the end, and how many of each: (B,) int64, at least 1."""
        latents, code_lengths = self.latents(features, lengths)
        mask = length_mask(code_lengths, latents.shape[1])
        codes = latents.new_zeros(mask.shape, dtype=torch.int64)
        codes[mask] = nearest_codes(latents[mask], self.codebook)
        return codes, code_lengths

    @torch.no_grad()
    def decode(self, codes: torch.Tensor, code_lengths: torch.Tensor, speakers: torch.Tensor) -> torch.Tensor:
        """Decode codes (B, N), lengths (B,), speakers (B,) of the training set -> features (B, N * stride, F)."""
        mask = length_mask(code_lengths, codes.shape[1])
        return self._decode(self.codebook[codes], mask, speakers, codes.shape[1] * self.config.stride)

    def _decode(self, vectors, mask, speakers, num_frames):
        voice = self.speakers(speakers)[:, None].expand(-1, vectors.shape[1], -1)
        return self.decoder(torch.cat([vectors, voice.to(vectors.dtype)], dim=2), mask)[:, :num_frames].float()


class Encoder(torch.nn.Module):
    """(B, T, F), lengths (B,) -> z (B, ceil(T / stride), D) float32, lengths of these."""

    def __init__(self, config: VqVaeConfig) -> None:
        super().__init__()
        self.config = config
        self.input = torch.nn.Linear(config.features, config.dim)
        self.dropout = torch.nn.Dropout(config.dropout)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleList(make_layer(config) for _ in range(config.layers)) for _ in range(config.blocks)
        )
        self.halvings = torch.nn.ModuleList(Convolution(config.dim, config.dim, halve=True) for _ in range(config.blocks))
        self.norm = torch.nn.LayerNorm(config.dim)
        self.output = torch.nn.Linear(config.dim, config.code_dim)

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        size = self.config.num_codes(features.shape[1]) * self.config.stride
        features = functional.pad(features, (0, 0, 0, size - features.shape[1]))
        # What stands behind an utterance's end may be anything, and infinity times zero is not zero.
        hidden = self.input(features.masked_fill(~length_mask(lengths, size)[:, :, None], 0.0))
        # Under autocast layers compute in bf16; what they are added to, and the vectors that choose codes, are in fp32.
        hidden = full_precision(hidden)
        if self.config.kind == "transformer":
            # Scaled as in Vaswani et al. 2017, section 3.4: else positions are louder than what stands there.
            hidden = add_positions(hidden * math.sqrt(self.config.dim))
        hidden = self.dropout(hidden)
        for layers, halve in zip(self.layers, self.halvings, strict=True):
            mask = length_mask(lengths, hidden.shape[1])
            for layer in layers:  # pyright: ignore[reportGeneralTypeIssues]
                hidden = layer(hidden, mask)
            hidden = full_precision(halve(hidden, mask))
            if self.config.kind == "conv":
                hidden = functional.leaky_relu(hidden)
            lengths = (lengths + 1) // 2
        with autocast(hidden.device, enabled=False):
            return self.output(self.norm(hidden)).float(), lengths


class Decoder(torch.nn.Module):
    """Codes with their speaker (B, N, D + speaker_dim), mask (B, N) -> features (B, N * stride, F)."""

    def __init__(self, config: VqVaeConfig) -> None:
        super().__init__()
        sizes = [config.code_dim + config.speaker_dim] + [config.dim] * config.blocks
        self.convolutions = torch.nn.ModuleList(Convolution(size, config.dim) for size in sizes[:-1])
        self.output = Convolution(config.dim, config.features)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for convolution in self.convolutions:
            hidden = self.dropout(functional.leaky_relu(convolution(hidden, mask)))
            hidden, mask = hidden.repeat_interleave(2, dim=1), mask.repeat_interleave(2, dim=1)
        return self.output(hidden, mask)


def make_layer(config: VqVaeConfig) -> torch.nn.Module:
    """A layer of the encoder, called with (sequence, mask)."""
    if config.kind == "conv":
        return ResidualConvolution(config.dim, config.dropout)
    return TransformerLayer(config.dim, config.heads, config.feedforward, config.dropout)


def jitter_indices(mask: torch.Tensor, probability: float) -> torch.Tensor:
    """Temporal jitter (equations 11 and 12): for each code (B, N) int64 the one that takes its place.

    The one before and the one after with `probability` each, from torch's global generator on the CPU; an utterance's
    first and last code, where the other would be beyond the end, and what is behind the end keep their place.
    """
    draws = torch.rand(mask.shape).to(mask.device)
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    before = (draws < probability) & (places > 0)
    after = (draws >= 1 - probability) & (places + 1 < mask.sum(dim=1, keepdim=True))
    return places + torch.where(mask, after.long() - before.long(), 0)


def mean_square(difference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of |difference|^2 over the places (B, T) of the mask: (B, T, D) -> scalar, 0 where there is none."""
    return difference.float().masked_fill(~mask[:, :, None], 0.0).square().sum() / mask.sum().clamp(min=1)
