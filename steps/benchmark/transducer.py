"""A transducer with random weights that is searched like a trained one.

What the search has to do depends on the posteriors, and those of random weights are nearly uniform, with symbols in every
frame. So the logits are computed as always, and then the blank's is replaced: in frames drawn for each language, so many a
second, P(blank) is 0.05 for what was not extended in that frame yet; it is 0.98 everywhere else. The other symbols keep
their proportions, made more peaked by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from pyspeech.asr.networks import Transducer

PEAKEDNESS = 40.0  # factor on the random output weights
GOLDEN = (math.sqrt(5) - 1) / 2


def sharpen(model: Transducer) -> Transducer:
    """Make the posteriors of a Transducer with random weights more peaked."""
    import torch

    with torch.no_grad():
        for layer in model.joint.outputs:
            layer.weight.mul_(PEAKEDNESS)  # pyright: ignore[reportCallIssue]
    return model


class ScheduledBlank:
    """`logits` of a model with P(blank) replaced, as the top of this file says; it takes the place of model.logits.

    probability: of a symbol in a frame. begin() is to be called before each utterance, so that each has the same draws every
    time. seconds: process time that replacing took.
    """

    def __init__(self, logits: Callable[..., torch.Tensor], probability: float) -> None:
        self.logits, self.probability, self.seconds = logits, probability, 0.0
        self.begin()

    def begin(self) -> None:
        self.last, self.frames = None, 0

    def __call__(self, encoded: torch.Tensor, predicted: torch.Tensor, heads: Any = None) -> torch.Tensor:
        import time

        values = self.logits(encoded, predicted, heads)
        begun = time.process_time()
        frame = float(encoded[0, 0, 0])  # tells frames apart
        first, self.last = frame != self.last, frame
        self.frames += first
        for row, head in enumerate(heads):
            speaks = first and (self.frames * GOLDEN * (head + 1)) % 1 < self.probability
            ratio = 0.05 / 0.95 if speaks else 0.98 / 0.02
            values[row, :, 0] = values[row, :, 1:].logsumexp(dim=-1) + math.log(ratio)
        self.seconds += time.process_time() - begun
        return values
