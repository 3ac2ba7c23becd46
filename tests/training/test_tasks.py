"""The trainings of all four tasks on two processes: the weights of one process, bit for bit."""

from functools import partial

import numpy as np
import pytest
import torch
from process_harness import all_done
from tiny_spoof import RATE, write_corpus

from pyspeech.asr import training as transducer_training
from pyspeech.asr.config import LossConfig, TransducerConfig
from pyspeech.asr.networks import Transducer
from pyspeech.compat import load_checkpoint
from pyspeech.features.config import MfccConfig, SpecAugmentConfig
from pyspeech.sad import dataset as sad_data, training as sad_training
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StftConfig
from pyspeech.sad.networks import SadNetwork, context_frames
from pyspeech.spoof import dataset as spoofing_data, training as spoofing_training
from pyspeech.spoof.config import CropConfig, DetectorConfig
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.training.config import TrainConfig
from pyspeech.training.run import train
from pyspeech.units import dataset as units_data, training as units_training
from pyspeech.units.config import UnitDataConfig, VqVaeConfig
from pyspeech.units.vqvae import VqVae
from tests.asr.test_training import SIZES, SMALL, make_batch
from tests.training.test_resume import assert_same

CONFIG = TrainConfig(max_steps=4, accumulate=2, log_every=1, lr=1e-3)


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("audio"), 12, longest=0.6)


def sad(cuts):
    """With batch normalisation; lhotse's sampler."""
    stft, data = StftConfig(sampling_rate=RATE), DatasetConfig(augment=0.5, crop_seconds=0.3, batch_size=4)
    network = NetworkConfig(channels=[2, 4], rnn_size=8, context_seconds=0.2)
    dataset = sad_data.CropDataset(cuts, data, stft, context_frames(network, stft))
    sampler = sad_data.crop_sampler(cuts, data, seed=1)
    return lambda: SadNetwork(network, stft), dataset, sampler, sad_training.compute_loss


def spoof(cuts):
    """With batch normalisation, dropout, and masks that the loss draws."""
    data = CropConfig(samples=4096, hop=4096, batch_size=4)
    loss = partial(spoofing_training.compute_loss, specaugment=SpecAugmentConfig(frequency_masks=1, time_masks=1))
    sampler = spoofing_data.UtteranceSampler(cuts, data, 1)
    return lambda: LcnnBlstm(DetectorConfig(dropout=0.2)), spoofing_data.CropDataset(data, RATE), sampler, loss


def unit(cuts):
    """With a codebook that is made of the first batch's vectors, and learns from then on."""
    features, data = MfccConfig(), UnitDataConfig(batch_seconds=2.0, crop_seconds=0.5)
    config = VqVaeConfig(dim=16, heads=2, feedforward=16, layers=1, codes=8, code_dim=8, speaker_dim=4, quantise_after=1)
    speakers = units_data.speakers_of(cuts)
    dataset, sampler = units_data.UnitDataset(speakers, features, data), units_data.DurationSampler(cuts, data, 1)
    return lambda: units_training.VqVaeTraining(VqVae(config, len(speakers))), dataset, sampler, units_training.compute_loss


def transducer(cuts):
    """With heads of languages that only some batches have."""

    class Batches:
        def __getitem__(self, languages):
            batch = make_batch(list(languages), seed=sum(languages))
            return {**batch, "features": batch["features"].float() + torch.randn(1)}

    config = TransducerConfig(**{**SMALL, "lid": True, "encoder_layers": 1, "predictor_layers": 1})
    sampler = [(0, 0), (1, 1, 1), (0,), (0, 2), (0, 0, 0)]
    return (
        lambda: transducer_training.TransducerTraining(Transducer(config, SIZES), LossConfig(), warmup_batches=3),
        Batches(),
        sampler,
        transducer_training.compute_loss,
    )


@pytest.mark.parametrize("task", [sad, spoof, unit, transducer])
def test_two_processes_are_one(task, cuts, tmp_path):
    torch.set_num_threads(1)

    def work(folder):
        return train(*task(cuts), CONFIG, folder) is not None

    assert work(tmp_path / "one")
    assert all_done(2, lambda: work(tmp_path / "two")) == [True, False]
    one, two = (load_checkpoint(tmp_path / name / "best.pt") for name in ("one", "two"))
    assert_same(two, one)
    assert len(one["history"]) == 4 and all(np.isfinite(point["train/loss"]) for point in one["history"])
