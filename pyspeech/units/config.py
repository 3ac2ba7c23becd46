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
    """The autoencoder whose bottleneck are the units (sections 3.1 and 3.2, Figures 2 and 3)."""

    kind: str = "transformer"  # or "conv": convolutions alone, the baseline of the year before (Tjandra et al. 2019)
    features: int = 39  # values of an input frame
    dim: int = 256  # of the hidden layers
    heads: int = 4  # of the attention
    feedforward: int = 1024
    blocks: int = 2  # each halves the number of frames
    layers: int = 2  # in a block: Transformer layers, or residual convolutions
    dropout: float = 0.1
    codes: int = 128  # the paper's K
    code_dim: int = 64
    speaker_dim: int = 64
    commitment: float = 0.25  # the paper's gamma
    smoothing: float = 0.0  # the paper's lambda; it reports 1e-2, 5e-3 and 1e-3
    jitter: float = 0.0  # the paper's p, on each side; it reports 0.05 and 0.075
    ema_decay: float = 0.99  # of the codebook's moving averages
    quantise_after: int = 200  # batches of a plain autoencoder, before the codebook is made from the next one
    revive_below: float = 1.0  # vectors a batch, on average, below which a code is replaced; 0: never

    @property
    def stride(self) -> int:
        """Feature frames a code."""
        return 2**self.blocks

    def num_codes(self, num_frames: int) -> int:
        """Codes of an utterance of `num_frames` frames, at least 1."""
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
    """The codebook inverter: codes to linear magnitudes (section 4, Figure 4)."""

    bins: int = 513  # of a magnitude frame: n_fft // 2 + 1
    repeat: int = 4  # magnitude frames a code, the paper's r
    dim: int = 256
    conv_layers: int = 2  # of parallel kernels ...
    widest_kernel: int = 9  # ... of 1, 3, 5, ... up to this many frames
    layers: int = 3  # Transformer
    heads: int = 4
    feedforward: int = 1024
    dropout: float = 0.1
    speaker_dim: int = 64  # where one inverter has several voices
    power: float = 0.3  # magnitudes are learnt to this power; 1: as they are, as in the paper

    def num_frames(self, num_codes: int) -> int:
        """Magnitude frames of a sequence of codes."""
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
    """Minibatches for both trainings."""

    batch_seconds: float = 60.0  # of audio in a batch, padding included
    max_utterances: int = 64
    crop_seconds: float = 0.0  # at most so long a piece of each utterance, a random one; 0: whole utterances
    shortest_crop: float = 0.0  # the length of a batch's pieces is drawn from this to crop_seconds; 0: always crop_seconds
    warp: float = 1.0  # the VQ-VAE hears voices with all frequencies up to this many times as high, or low; 1: as they are
    cache_gigabytes: float = 2.0  # of features kept in memory; those beyond are computed each time

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
    """Of both trainings, which measure nothing on held-out speech."""

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        super().check()
        require = requirement("training", self)
        require("minimize", self.minimize == "loss", "loss, as there is no validation")
        require("patience", self.patience is None, "null, as there is no validation")
        require("average_best", self.average_best == 1, "1, as there is no validation")


@dataclass
class SubmissionConfig:
    """What a submission to the challenge says of itself (pyspeech/units/submission.py)."""

    author: str = "anonymous"
    affiliation: str = "none"
    # where the source is, as text; empty: the source is not open, which the challenge's validator refuses
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
