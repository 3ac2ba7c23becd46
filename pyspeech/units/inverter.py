"""The codebook inverter: from codes to linear magnitudes of a voice (Tjandra et al. 2020, section 4, Figure 4).

    vectors of the codes, each r times -> two multi-scale convolutions -> + positions -> three Transformer layers -> linear

The paper trains one for the target voice. Here one inverter may have several voices: an embedding of the voice stands beside
the vectors of the codes; with a single voice there is none.

The L2 distance of equation 14 is taken between magnitudes to the power of `InverterConfig.power`, 0.3 by default, about how
loudness grows. Between magnitudes as they are, the loudest harmonics decide alone: what is 40 dB below them, as most
consonants are, counts for a ten-thousandth.

B utterances, N codes, S = r N frames, K codes of D values.
"""

import torch

from pyspeech.errors import UserError
from pyspeech.units.config import InverterConfig  # noqa: F401 (belongs to this module; imports fast where it stands)
from pyspeech.units.layers import MultiscaleConvolution, TransformerLayer, add_positions, length_mask


class Inverter(torch.nn.Module):
    """Codebook inverter.

    config: InverterConfig; codebook: (K, D) of the VQ-VAE, kept with the model, not trained; num_speakers: voices.
    """

    codebook: torch.Tensor

    def __init__(self, config: InverterConfig, codebook: torch.Tensor, num_speakers: int) -> None:
        super().__init__()
        config.check()
        if num_speakers < 1:
            raise UserError(f"{num_speakers} voices to train with; expected at least one")
        self.config, self.num_speakers = config, num_speakers
        self.register_buffer("codebook", codebook.detach().clone().float())
        self.speakers = torch.nn.Embedding(num_speakers, config.speaker_dim) if num_speakers > 1 else None
        inputs = codebook.shape[1] + (config.speaker_dim if num_speakers > 1 else 0)
        sizes = [inputs] + [config.dim] * config.conv_layers
        self.convolutions = torch.nn.ModuleList(
            MultiscaleConvolution(size, config.dim, config.widest_kernel) for size in sizes[:-1]
        )
        self.dropout = torch.nn.Dropout(config.dropout)
        self.layers = torch.nn.ModuleList(
            TransformerLayer(config.dim, config.heads, config.feedforward, config.dropout) for _ in range(config.layers)
        )
        self.norm = torch.nn.LayerNorm(config.dim)
        self.output = torch.nn.Linear(config.dim, config.bins)

    def forward(self, codes: torch.Tensor, code_lengths: torch.Tensor, speakers: torch.Tensor) -> torch.Tensor:
        """codes (B, N) int64, lengths (B,), voices (B,) int64 -> (B, r N, bins): magnitudes to the power `power`.

        Not held above 0, so that gradients are there everywhere; behind an utterance's end any values.
        """
        if codes.numel() and int(codes.max()) >= len(self.codebook):
            raise UserError(
                f"code {int(codes.max())}: the inverter knows 0 to {len(self.codebook) - 1}; it was trained with another VQ-VAE"
            )
        vectors = self.codebook[codes]
        if self.speakers is not None:
            voices = self.speakers(speakers)[:, None].expand(-1, codes.shape[1], -1)
            vectors = torch.cat([vectors, voices.to(vectors.dtype)], dim=2)
        hidden = vectors.repeat_interleave(self.config.repeat, dim=1)
        mask = length_mask(self.config.repeat * code_lengths, hidden.shape[1])
        for convolution in self.convolutions:
            hidden = self.dropout(convolution(hidden, mask))
        hidden = add_positions(hidden)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.output(self.norm(hidden)).float()

    @torch.no_grad()
    def magnitudes(self, codes: torch.Tensor, code_lengths: torch.Tensor, speakers: torch.Tensor) -> torch.Tensor:
        """Compute linear magnitudes (B, r N, bins), for Griffin-Lim, like `forward`; 0 after an utterance's end."""
        compressed = self(codes, code_lengths, speakers).clamp(min=0)
        mask = length_mask(self.config.repeat * code_lengths, compressed.shape[1])
        return compressed.pow(1 / self.config.power) * mask[:, :, None]


def compress(magnitudes: torch.Tensor, config: InverterConfig) -> torch.Tensor:
    """Linear magnitudes, not negative -> what the inverter learns."""
    return magnitudes if config.power == 1 else magnitudes.pow(config.power)
