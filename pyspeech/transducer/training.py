"""What a training step of a transducer computes (Joshi et al. 2021, section 4.2): the RNN-T loss plus the LID loss.

A batch is one of pyspeech.transducer.dataset, all of one language, so only shared parameters and those of that language
get a gradient. The cross entropy of language identification is applied at every frame and added; it reaches the encoder
and the LID layers alone.
"""
import torch
from torch.nn import functional

from pyspeech.errors import UserError
from pyspeech.transducer.loss import transducer_loss


class TransducerTraining(torch.nn.Module):
    """A Transducer with what its training has to remember: how many batches it has seen, for the warm-up of the loss.

    transducer: Transducer. loss: LossConfig. warmup_batches: over which the scales of the losses go to their final values.
    """

    def __init__(self, transducer, loss, warmup_batches):
        super().__init__()
        self.transducer, self.loss, self.warmup_batches = transducer, loss, warmup_batches
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, batch):
        """batch: dict of tensors as UtteranceDataset makes them -> (loss, a scalar: mean over the frames, values to log)."""
        model, lengths, languages = self.transducer, batch["lengths"], batch["languages"]
        encoded, _, _ = model.encode(batch["features"], lengths, languages=languages)
        loss, values = transducer_loss(model, encoded, lengths, batch["tokens"], batch["token_lengths"],
                                       self._head(languages), self.loss, self._warm())
        if model.lid is not None:
            identification, accuracy = self._identify(encoded, lengths, languages)
            loss = loss + identification
            values = {**values, "lid": identification.item(), "lid_accuracy": accuracy}
        return loss, values

    def _head(self, languages):
        present = languages.unique().tolist()
        if len(present) != 1:
            raise UserError(f"a batch of languages {present}: training takes one language a batch (language_sampler)")
        return present[0] if self.transducer.num_heads > 1 else 0

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


def compute_loss(training, batch):
    """For pyspeech.training.Trainer."""
    return training(batch)
