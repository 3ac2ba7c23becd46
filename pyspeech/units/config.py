"""Options of unit discovery and of speech from units; it imports nothing heavy.

The defaults are the paper's (Tjandra et al. 2020, sections 3 to 5) where it says them. Where it is silent they are choices:
the sizes of layers, dropout, the decay and revival of the codebook, the power of the magnitudes.
"""

import math
from dataclasses import dataclass

from pyspeech.errors import requirement
from pyspeech.model_file import Kind
from pyspeech.training.config import TrainConfig

VQVAE = Kind("vqvae", "zerospeech", "exp/NAME/models/SYSTEM/SEED")
INVERTER = Kind("inverter", "zerospeech", "exp/NAME/models/synthesis")
KINDS = ("transformer", "conv")


@dataclass
class VqVaeConfig:
    """VQ-VAE whose codes are the units (sections 3.1 and 3.2, Figures 2 and 3)."""

    kind: str = "transformer"  # transformer, or conv: convolutions only, the baseline (Tjandra et al. 2019)
    features: int = 39  # values per input frame; set by the recipe
    dim: int = 256  # size of the hidden layers
    heads: int = 4  # attention heads, a divisor of dim
    feedforward: int = 1024  # size of the Transformer's feed-forward layers
    blocks: int = 2  # number of blocks, each of which halves the frame rate
    layers: int = 2  # Transformer layers or residual convolutions per block
    dropout: float = 0.1  # dropout probability, 0 to less than 1
    codes: int = 128  # number of codes (the paper's K)
    code_dim: int = 64  # size of a code vector
    speaker_dim: int = 64  # size of a speaker embedding
    commitment: float = 0.25  # weight of the commitment loss (the paper's gamma)
    smoothing: float = 0.0  # weight of the temporal smoothing loss (the paper's lambda: 1e-2, 5e-3 or 1e-3); 0: off
    jitter: float = 0.0  # probability of replacing a code by each neighbour, 0 to 0.5 (the paper's p: 0.05 or 0.075)
    ema_decay: float = 0.99  # decay of the codebook's moving averages, more than 0 and less than 1
    quantise_after: int = 200  # batches without quantisation before the codebook is initialised
    revive_below: float = 1.0  # replace codes used by fewer vectors per batch than this, on average; 0: never

    @property
    def stride(self) -> int:
        """Feature frames per code."""
        return 2**self.blocks

    def num_codes(self, num_frames: int) -> int:
        """Count the codes of an utterance of `num_frames` frames, at least 1."""
        return max(1, -(-num_frames // self.stride))

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("vqvae", self)
        require("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}")
        for name in ("features", "dim", "heads", "feedforward", "blocks", "code_dim", "speaker_dim"):
            require(name, getattr(self, name) >= 1, "at least 1")
        require("layers", self.layers >= 0, "at least 0")
        require("codes", self.codes >= 2, "at least 2")
        _check_attention(require, self)
        for name in ("commitment", "smoothing", "quantise_after", "revive_below"):
            require(name, 0 <= getattr(self, name) < math.inf, "at least 0")
        require("jitter", 0 <= self.jitter <= 0.5, "0 to 0.5, as it is the probability on each side")
        require("ema_decay", 0 < self.ema_decay < 1, "more than 0 and less than 1")


@dataclass
class InverterConfig:
    """Codebook inverter: codes to linear magnitudes (section 4, Figure 4)."""

    bins: int = 513  # magnitude bins, n_fft // 2 + 1; set by the recipe
    repeat: int = 4  # magnitude frames per code (the paper's r); set by the recipe
    dim: int = 256  # size of the hidden layers
    conv_layers: int = 2  # multi-scale convolution layers
    widest_kernel: int = 9  # widest of the parallel kernels 1, 3, 5, ... in frames; odd
    layers: int = 3  # Transformer layers
    heads: int = 4  # attention heads, a divisor of dim
    feedforward: int = 1024  # size of the Transformer's feed-forward layers
    dropout: float = 0.1  # dropout probability, 0 to less than 1
    speaker_dim: int = 64  # size of a speaker embedding, with several voices
    power: float = 0.3  # exponent of the target magnitudes, more than 0 to 1; 1: as in the paper

    def num_frames(self, num_codes: int) -> int:
        """Count the magnitude frames of a sequence of codes."""
        return self.repeat * num_codes

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("inverter", self)
        for name in ("bins", "repeat", "dim", "conv_layers", "heads", "feedforward", "speaker_dim"):
            require(name, getattr(self, name) >= 1, "at least 1")
        require("layers", self.layers >= 0, "at least 0")
        require("widest_kernel", self.widest_kernel % 2 == 1 and self.widest_kernel >= 1, "an odd number")
        _check_attention(require, self)
        require("power", 0 < self.power <= 1, "more than 0 and at most 1")


@dataclass
class UnitDataConfig:
    """Minibatches of VQ-VAE and inverter training."""

    batch_seconds: float = 60.0  # seconds of audio per batch, padding included
    max_utterances: int = 64  # utterances per batch at most
    crop_seconds: float = 0.0  # crop utterances at random to this many seconds; 0: whole utterances
    shortest_crop: float = 0.0  # draw each batch's crop length from this to crop_seconds; 0: always crop_seconds
    warp: float = 1.0  # scale all frequencies of the VQ-VAE's input by up to this factor, up or down, 1 to 3; 1: off
    cache_gigabytes: float = 2.0  # gigabytes of features kept in memory; the rest is computed each time

    without_effect = ("cache_gigabytes",)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("batch_seconds", self.batch_seconds > 0, "more than 0")
        require("max_utterances", self.max_utterances >= 1, "at least 1")
        require("cache_gigabytes", 0 <= self.cache_gigabytes < math.inf, "at least 0")
        require("warp", 1 <= self.warp <= 3, "1 to 3")
        require("crop_seconds", 0 <= self.crop_seconds < math.inf, "at least 0")
        require("shortest_crop", 0 <= self.shortest_crop <= self.crop_seconds, f"0 to crop_seconds={self.crop_seconds}")


@dataclass
class UnitTrainConfig(TrainConfig):
    """Training options of VQ-VAE and inverter, which have no validation."""

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        super().check()
        require = requirement("training", self)
        require("minimize", self.minimize == "loss", "loss, as there is no validation")
        require("patience", self.patience is None, "null, as there is no validation")
        require("average_best", self.average_best == 1, "1, as there is no validation")


@dataclass
class SubmissionConfig:
    """Metadata of a submission to the challenge (pyspeech/units/submission.py)."""

    author: str = "anonymous"  # author in the submission's metadata
    affiliation: str = "none"  # affiliation in the submission's metadata
    # where the source code is; empty: closed source, which the challenge's validator refuses
    code: str = "pyspeech (Apache-2.0)"

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("submission", self)
        for name in ("author", "affiliation"):
            require(name, getattr(self, name).strip() != "", "text")


def _check_attention(require, config):
    require("heads", config.dim % config.heads == 0, f"a divisor of dim={config.dim}")
    require("dim", config.dim % 2 == 0, "an even number, as positions are pairs of sine and cosine")
    require("dropout", 0 <= config.dropout < 1, "0 to less than 1")
