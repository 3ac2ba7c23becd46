"""The codebook: nearest code, straight-through gradients, exponential moving averages, revival (Tjandra 2020, section 3.1).

    c = argmin_k |z - e_k|                              equation 4
    N_k <- g N_k + (1 - g) n_k                          n_k: vectors of the batch nearest to code k
    m_k <- g m_k + (1 - g) sum of these vectors
    e_k  = m_k / N'_k                                   N': N smoothed after Laplace, for this quotient alone

as in van den Oord et al. 2017, appendix A.1, and Kaiser et al. 2018. No gradient reaches the codebook.

For the first `quantise_after` batches of training the vectors pass as they are; the next batch gives the initial codes:
vectors of its own. From the very first batch on, while the decoder has not yet learnt to use the codes, the commitment draws
all vectors together into one: on a hundred TIMIT sentences it took 75 steps to come out of that, and after 200 steps the
reconstruction was worse (0.70 of the variance, not 0.59) and fewer codes were in use (111 of 128, not 128).

A code with fewer than `revive_below` vectors a batch, on average, is put in the place of a random vector of the batch. With
a tenth of a vector instead of one, most codes stay unused for good.

All state is in buffers, so a checkpoint goes on exactly and a step can be undone by putting the buffers back. Of a step of
several batches, the codebook learns from the first (pyspeech.training.step). Random choices come from torch's global generator
on the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pyspeech.units.config import VqVaeConfig

LAPLACE = 1e-5  # added to each code's N, so that no quotient has a zero below


class Quantizer(torch.nn.Module):
    """Vector quantiser with exponential moving averages.

    config: VqVaeConfig. Attribute `codebook` (K, D) float32.
    """

    codebook: torch.Tensor
    counts: torch.Tensor
    sums: torch.Tensor
    batches: torch.Tensor
    initialised: torch.Tensor

    def __init__(self, config: VqVaeConfig) -> None:
        super().__init__()
        self.decay, self.revive_below, self.quantise_after = config.ema_decay, config.revive_below, config.quantise_after
        codebook = torch.randn(config.codes, config.code_dim)
        self.register_buffer("codebook", codebook)
        self.register_buffer("counts", torch.ones(config.codes))  # the moving average N
        self.register_buffer("sums", codebook.clone())  # the moving average m
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))  # of training, so far
        self.register_buffer("initialised", torch.zeros((), dtype=torch.bool))

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """vectors (B, N, D), mask (B, N) bool -> codes (B, N) int64, and their vectors (B, N, D) without gradients.

        Both are 0 where the mask is false. In training the codebook then learns from the batch. As long as it does not,
        the vectors are those that came, and the codes are all 0.
        """
        chosen = vectors[mask].detach().float()
        if self.training:
            self.batches += 1
            if self.batches <= self.quantise_after:
                return mask.new_zeros(mask.shape, dtype=torch.int64), vectors.detach() * mask[:, :, None]
        if self.training and len(chosen) and not self.initialised:
            self._initialise(chosen)
        nearest = nearest_codes(chosen, self.codebook)
        codes = mask.new_zeros(mask.shape, dtype=torch.int64)
        codes[mask] = nearest
        quantised = self.codebook[codes] * mask[:, :, None]
        if self.training and len(chosen):
            self._learn(chosen, nearest)
        return codes, quantised

    def _initialise(self, vectors):
        """Codes from vectors drawn without replacement, as far as there are enough.

        With a small N each: the first vectors come from an untrained encoder, and what does not follow is soon revived.
        """
        order = torch.randperm(len(vectors)).to(vectors.device)
        size = len(self.codebook)
        self.codebook.copy_(vectors[order.repeat(-(-size // len(order)))[:size]])
        self.counts.fill_(max(1.0, self.revive_below))
        self.sums.copy_(self.counts[:, None] * self.codebook)
        self.initialised.fill_(True)

    def _learn(self, vectors, codes):
        counts, sums = totals(vectors, codes, len(self.codebook))
        self.counts.mul_(self.decay).add_(counts, alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(sums, alpha=1 - self.decay)
        self._revive(vectors)
        total = self.counts.sum()
        smoothed = (self.counts + LAPLACE) / (total + len(self.counts) * LAPLACE) * total
        self.codebook.copy_(self.sums / smoothed[:, None])

    def _revive(self, vectors):
        """Give rare codes the place, and N, of something that is there."""
        rare = (self.counts < self.revive_below).nonzero()[:, 0]
        order = torch.randperm(len(vectors))[: len(rare)].to(vectors.device)
        rare = rare[: len(order)]  # a batch of fewer vectors than rare codes revives so many
        self.counts[rare] = self.revive_below
        self.sums[rare] = self.revive_below * vectors[order]


def nearest_codes(vectors: torch.Tensor, codebook: torch.Tensor) -> torch.Tensor:
    """Find the nearest codes of vectors (N, D) in a codebook (K, D) by L2: (N,) int64, the first of equals.

    A distance does not depend on which other vectors are there: it is summed in float64.
    """
    vectors, codebook = vectors.double(), codebook.double()
    distances = vectors @ codebook.T
    distances.mul_(-2).add_(codebook.square().sum(dim=1))  # the vector's own square is the same for all
    return distances.argmin(dim=1)


def totals(vectors: torch.Tensor, codes: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Count and sum the `vectors` (N, D) of each of `size` codes: (size,), (size, D), float64.

    On a GPU a product of matrices, as adding up by index is not the same there from run to run.
    """
    if vectors.device.type == "cpu":
        sums = vectors.new_zeros((size, vectors.shape[1]), dtype=torch.float64)
        return torch.bincount(codes, minlength=size).double(), sums.index_add_(0, codes, vectors.double())
    chosen = torch.nn.functional.one_hot(codes, size).double()
    return chosen.sum(dim=0), chosen.T @ vectors.double()


def usage(codes: torch.Tensor, size: int) -> tuple[float, int]:
    """(perplexity, codes in use) of a sequence of codes (N,) int64, both from 1 to `size`; (0, 0) where N is 0."""
    counts = torch.bincount(codes, minlength=size).double()
    if len(codes) == 0:
        return 0.0, 0
    shares = counts[counts > 0] / len(codes)
    return float((-shares * shares.log()).sum().exp()), len(shares)
