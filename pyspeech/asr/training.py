"""Training step of a transducer: the RNN-T loss plus the LID loss (Joshi et al. 2021, section 4.2).

A batch is one of pyspeech.asr.dataset: a minibatch of one language, as in the paper, so that only shared parameters
and those of that language get a gradient, several of them that make one step, or one of mixed languages. The cross
entropy of language identification is applied at every frame and added, times `lid_scale`; it reaches the encoder and
the LID layers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from pyspeech.asr.loss import transducer_loss

if TYPE_CHECKING:
    from pyspeech.asr.config import LossConfig
    from pyspeech.asr.networks import Transducer


class TransducerTraining(torch.nn.Module):
    """A Transducer with what its training has to remember: how many batches it has seen, for the warm-up of the loss; of a step
    of several, the first alone counts (pyspeech.training.step).

    transducer: Transducer. loss: LossConfig. warmup_batches: over which the scales of the losses go to their final values.
    """

    batches: torch.Tensor

    def __init__(self, transducer: Transducer, loss: LossConfig, warmup_batches: int) -> None:
        super().__init__()
        loss.check()
        self.transducer, self.loss, self.warmup_batches = transducer, loss, warmup_batches
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
        """batch: dict of tensors as UtteranceDataset makes them -> (loss, a scalar: mean over the frames, values to log).

        Utterances of several languages are encoded together; then each goes to its own output layer.
        """
        model, languages = self.transducer, batch["languages"]
        encoded, lengths, _ = model.encode(batch["features"], batch["lengths"], languages=languages)
        warm = self._warm()
        loss, values = 0.0, {}
        for language in languages.unique().tolist():
            rows = (languages == language).nonzero()[:, 0]
            share = (lengths[rows].sum() / lengths.sum()).item()
            part, logged = self._recognition(encoded, lengths, batch, rows, language, warm)
            loss = loss + share * part
            values = {name: values.get(name, 0.0) + share * value for name, value in logged.items()}
        if model.lid is not None:
            identification, accuracy = self._identify(encoded, lengths, languages)
            loss = loss + self.loss.lid_scale * identification
            values = {**values, "lid": identification.item(), "lid_accuracy": accuracy}
        return loss, values  # pyright: ignore[reportReturnType]

    def _recognition(self, encoded, lengths, batch, rows, language, warm):
        """The RNN-T loss of the utterances `rows`, all of one language: what `transducer_loss` gives."""
        lengths, token_lengths = lengths[rows], batch["token_lengths"][rows]
        encoded, tokens = encoded[rows, : lengths.max()], batch["tokens"][rows, : token_lengths.max()]
        head = language if self.transducer.num_heads > 1 else 0
        return transducer_loss(self.transducer, encoded, lengths, tokens, token_lengths, head, self.loss, warm)

    def _warm(self):
        if not self.training:
            return 1.0
        self.batches += 1
        return min(1.0, self.batches.item() / max(1, self.warmup_batches))

    def _identify(self, encoded, lengths, languages):
        """Cross entropy, and accuracy, of the language at every frame."""
        log_posteriors = self.transducer.lid_log_posteriors(encoded)
        inside = torch.arange(encoded.shape[1], device=lengths.device) < lengths[:, None]
        targets = languages[:, None].expand(inside.shape)[inside]
        chosen = log_posteriors[inside]
        return functional.nll_loss(chosen, targets), (chosen.argmax(-1) == targets).float().mean().item()


def compute_loss(training: TransducerTraining, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
    """Compute the loss of a batch for pyspeech.training.Trainer."""
    return training(batch)
