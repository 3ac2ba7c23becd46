"""Training step of the detector (Li et al. 2022, equation 1), for pyspeech.training.Trainer.

The binary cross entropy is that of a softmax over two outputs, fake and genuine; the mean over the batch stands for the
sum of the equation, so that the learning rate means the same for any size of batch. The paper's Adam is AdamW without
weight decay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from pyspeech.data.reader import UtteranceReader
from pyspeech.features.specaugment import spec_augment
from pyspeech.spoof.detector import score_utterances
from pyspeech.spoof.formats import label_of
from pyspeech.spoof.networks import GENUINE, log_odds
from pyspeech.spoof.scoring import equal_error_rate

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.features.config import SpecAugmentConfig
    from pyspeech.spoof.config import CropConfig
    from pyspeech.spoof.networks import DetectorNetwork


def compute_loss(
    model: DetectorNetwork, batch: dict[str, Any], specaugment: SpecAugmentConfig | None = None
) -> tuple[torch.Tensor, dict[str, float]]:
    """(loss, values to log) of a batch of CropDataset. model: DetectorNetwork; specaugment: SpecAugmentConfig, for
    batches that are not clean, or None.

    Values: "accuracy", the mean of that of both classes (of one where the batch has one), and "audio_seconds".
    """
    targets, features = batch["targets"], model.front_end(batch["samples"])
    if specaugment is not None and not batch["clean"]:
        features = mask(features, specaugment)
    outputs = model.classify(features).float()
    loss = functional.cross_entropy(outputs, targets)
    correct = (log_odds(outputs) > 0) == (targets == GENUINE)
    accuracy = torch.stack([correct[targets == kind].float().mean() for kind in targets.unique()]).mean()
    return loss, {"accuracy": accuracy.item(), "audio_seconds": batch["seconds"]}


def mask(features: torch.Tensor, config: SpecAugmentConfig) -> torch.Tensor:
    """SpecAugment of frames of a front end (B, T, num_features); what is masked has the utterance's mean."""
    means = features.mean(dim=(1, 2), keepdim=True)
    return torch.stack([spec_augment(frames, config) for frames in features - means]) + means


def validation(cuts: Iterable[Cut], crop: CropConfig, sampling_rate: int) -> Callable[[DetectorNetwork], dict[str, float]]:
    """validate(model) for Trainer, on utterances as they are in detection: {"eer": 0 to 1, "loss": equation 1, a mean}.

    cuts: both genuine and fake; crop: CropConfig, of whose cache the audio stays in memory.
    """
    cuts, read = list(cuts), UtteranceReader(sampling_rate, crop.cache_gigabytes)
    genuine = np.array([label_of(cut).genuine for cut in cuts], dtype=bool)

    def validate(model):
        scores = score_utterances(model, crop, map(read, cuts))
        losses = np.logaddexp(0, np.where(genuine, -scores, scores))
        return {"eer": equal_error_rate(scores[genuine], scores[~genuine])[0], "loss": losses.mean()}

    return validate
