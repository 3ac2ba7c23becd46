"""Training step on any number of processes, with the same update whatever their number.

Each process computes the gradients of its batches, with the random numbers of these, then all of them agree on what there
was: how many batches, what is not finite, who was asked to stop. The gradients are added up and divided by the number
of batches in all. Two numbers of processes differ by the order of additions alone, and not at all where a step has two batches.

What a forward pass changes in the buffers (running statistics of batch normalisation, a codebook, a count of batches) is that
of the first batch of the step: every batch finds the buffers as the step found them, and the others leave no trace. So it
does not depend on the number of processes either. Batch normalisation normalises each batch by its own statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pyspeech.compat import autocast
from pyspeech.errors import UserError
from pyspeech.training import distributed
from pyspeech.training.data import to_device
from pyspeech.training.randomness import loss_stream

Named = tuple[int, list[str]]  # index of a batch in its epoch, and what messages call it


@dataclass
class Share:
    """Contribution of one process to a step, as plain data."""

    names: list[Named] = field(default_factory=list)  # of its batches
    values: list[tuple[int, dict[str, float]]] = field(default_factory=list)  # of each: index, loss and what is logged
    bad: list[Named] = field(default_factory=list)  # batches whose loss is not finite
    used: bytes = b""  # 1 for each parameter that has a gradient
    error: str = ""  # a line for the user that ended it
    signal: int = 0  # that asks to stop
    unread: bool = False  # its batches could not be read, as its workers got that signal too


@dataclass
class Outcome:
    """Outcome of a step, known to all processes."""

    count: int = 0  # batches in all; 0: none is left of this epoch
    values: dict[str, float] = field(default_factory=dict)  # the mean over the batches; of "audio_seconds" the sum
    bad: list[str] = field(default_factory=list)  # names of what made it a step without update
    signal: int = 0
    unread: bool = False  # no step was made


class Stepper:
    """Makes the steps of a training; the arguments are those of Trainer, bf16 whether to compute in bfloat16."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        compute_loss: Callable[[Any, Any], tuple[torch.Tensor, dict[str, float]]],
        clip_norm: float | None,
        seed: int,
        bf16: bool,
    ) -> None:
        self.model, self.optimizer, self.compute_loss = model, optimizer, compute_loss
        self.clip_norm, self.seed, self.bf16 = clip_norm, seed, bf16
        self.device = next(model.parameters()).device

    def step(
        self, epoch: int, first: int, read: Callable[[], Iterable[tuple[int, list[str], Any]]], signal: Callable[[], int]
    ) -> Outcome:
        """Update the weights by the mean gradient over the batches of a step, unless something in it is not finite.

        first: the index of its first batch in the epoch. read() gives (index, names, batch) of those of this process, and
        raises InterruptedError where a signal keeps it from that. signal(): the one that asks this process to stop, or 0.
        What UserError read() or compute_loss raises in one process, all of them raise.
        """
        self.model.train()
        buffers = list(self.model.buffers())
        before, share, failure = _copies(buffers), Share(), None
        try:
            after = self._compute(epoch, first, read, share, buffers, before)
        except InterruptedError:
            share.unread, after = True, None
        except UserError as error:
            failure, share.error, after = error, str(error), None
        share.used = bytes(parameter.grad is not None for parameter in self.model.parameters())
        share.signal = signal()
        shares = distributed.gather(share)
        _raise_first(failure, shares)
        outcome = _agree(shares)
        if outcome.count and not outcome.unread and not outcome.bad:
            self._add_up_gradients(shares, outcome.count)
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm or math.inf).item()
            outcome.values["grad_norm"] = norm
            if not math.isfinite(norm):
                outcome.bad = _in_order(name for share in shares for name in share.names)
        if outcome.count and not outcome.unread and not outcome.bad:
            self.optimizer.step()
            _put(buffers, after)
            distributed.copy_from(buffers, first % distributed.world_size())
        else:
            _put(buffers, before)
        self.optimizer.zero_grad(set_to_none=True)
        return outcome

    def _compute(self, epoch, first, read, share, buffers, before):
        """Add gradients, of sums over batches, and what there is to tell of them in `share`. Returns the buffers after the
        first batch, None where that is how they are now."""
        after = None
        for number, (index, names, batch) in enumerate(read()):
            if number == 1:
                after = _copies(buffers)
            if number:
                _put(buffers, before)
            share.names.append((index, names))
            stream = loss_stream(self.device, self.seed, epoch, index)
            with stream, autocast(self.device, enabled=self.bf16, dtype=torch.bfloat16):
                loss, values = self.compute_loss(self.model, to_device(batch, self.device))
            if not math.isfinite(loss.item()):
                share.bad.append((index, names))
                continue
            loss.backward()
            share.values.append((index, {"loss": loss.item(), **{name: float(value) for name, value in values.items()}}))
        return after

    def _add_up_gradients(self, shares, count):
        """Of all processes, over `count`. A parameter that no batch has used keeps none, so that the optimiser leaves it."""
        parameters = [
            parameter for number, parameter in enumerate(self.model.parameters()) if any(share.used[number] for share in shares)
        ]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        distributed.add_up(gradients)
        for gradient in gradients:
            gradient.div_(count)


def _raise_first(failure, shares):
    """Raise the UserError of this process, `failure`, or what another one has said."""
    if failure is not None:
        raise failure
    for share in shares:
        if share.error:
            raise UserError(share.error)


def _agree(shares):
    values = sorted((entry for share in shares for entry in share.values), key=lambda entry: entry[0])
    outcome = Outcome(
        count=sum(len(share.names) for share in shares),
        bad=_in_order(entry for share in shares for entry in share.bad),
        signal=max(share.signal for share in shares),
        unread=any(share.unread for share in shares),
    )
    for _, batch in values:
        for name, value in batch.items():
            part = value if name == "audio_seconds" else value / outcome.count
            outcome.values[name] = outcome.values.get(name, 0.0) + part
    return outcome


def _in_order(named: Iterable[Named]) -> list[str]:
    """The names of batches, these in the order of their indices."""
    return [name for _, names in sorted(named, key=lambda entry: entry[0]) for name in names]


def _copies(tensors):
    return [tensor.clone() for tensor in tensors]


def _put(tensors: Sequence[torch.Tensor], values: Sequence[torch.Tensor] | None) -> None:
    """Copy `values`, unless there are none, into the tensors."""
    for tensor, value in zip(tensors, values or (), strict=False):
        tensor.copy_(value)
