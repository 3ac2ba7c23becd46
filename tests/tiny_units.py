"""An untrained VQ-VAE with its inverter, small and the same each time, for tests of what is done with a trained pair."""

import torch

from pyspeech.features.config import MfccConfig
from pyspeech.units.checkpoint import Bundle
from pyspeech.units.config import InverterConfig, VqVaeConfig
from pyspeech.units.inverter import Inverter
from pyspeech.units.vqvae import VqVae

VOICES = ["V001", "Žluťoučký 2"]


def make_pair(seed=0, voices=VOICES, **features):
    """(Bundle of a VQ-VAE of 16 codes, all of which occur, Bundle of an inverter with `voices`)."""
    config = MfccConfig(**features)
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(seed)
        vqvae = VqVae(
            VqVaeConfig(features=config.dim, dim=16, heads=2, feedforward=16, layers=1, codes=16, code_dim=8), 3
        ).eval()
        frames = torch.randn(1, 400, config.dim)
        latents, _ = vqvae.latents(frames, torch.tensor([400]))
        vqvae.quantizer.codebook.copy_(latents[0, torch.randperm(100)[:16]])
        sizes = dict(dim=16, heads=2, feedforward=16, layers=1, speaker_dim=8, power=1.0)
        inverter = Inverter(InverterConfig(bins=config.magnitudes.num_bins, **sizes), vqvae.codebook, len(voices)).eval()
        inverter.output.bias.add_(1.0)  # so that there is something to hear
    return Bundle(vqvae, ["S1", "S2", "S3"], config, None), Bundle(inverter, list(voices), config, None)
