"""Losses of the RNN transducer: the full lattice (Graves 2012) and the pruned one (Kuang et al. 2022, Pruned RNN-T).

The full loss needs logits of every frame with every symbol of the reference, (B, T, S + 1, V). The pruned one first
adds a simple encoder output `am` (B, T, V) and a simple predictor output `lm` (B, S + 1, V) in place of the joint
network, so that the normaliser of all pairs is a matrix product (section 3.1), smooths that by the losses of either
alone (section 3.3), takes from its gradient the R rows that each frame keeps, and has the joint network compute logits
(B, T, R, V) of those alone.

Blank is symbol 0, except in `rnnt_loss` where asked for; tokens (B, S) may hold anything past their length. Losses are in
nats and, except in `rnnt_loss`, in float64, under autocast too. What cannot have a loss is a UserError that names the
utterance of the batch: lengths out of range, a blank or an unknown symbol in the reference, logits that are not finite.
Empty references and more symbols than frames are fine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pyspeech.asr.config import LossConfig
from pyspeech.asr.lattice import log_likelihood
from pyspeech.asr.pruning import gather_encoded, gather_predicted, prune_ranges
from pyspeech.compat import autocast
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.asr.networks import Transducer

__all__ = [
    "LossConfig",
    "NotFiniteError",
    "full_loss",
    "loss_scales",
    "pruned_loss",
    "rnnt_loss",
    "smoothed_loss",
    "transducer_loss",
]
REDUCTIONS = ("none", "mean", "sum")
PRUNED_SCALE_AT_START = 0.1  # of the warm-up: the first ranges are next to random
SMALLEST_PRODUCT = 1e-250
NEGLIGIBLE = 1e-25  # of a gradient


class NotFiniteError(UserError):
    """Logits that hold NaN or infinity, or leave a reference without probability."""


def rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    *,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
    backend: str = "auto",
) -> torch.Tensor:
    """Compute the RNN transducer loss (Graves 2012) of a joint network's output for a batch of B utterances.

    A replacement for `torchaudio.functional.rnnt_loss`: the same arguments, values and gradients, on CPU and GPU, with k2's
    recursion where k2 is installed and in PyTorch alone otherwise. It also takes empty targets and integers of any size,
    and sums in float64; it has no `clamp`. Where the full tensor does not fit in memory, use `smoothed_loss` and
    `pruned_loss`, which need V logits of a few rows a frame.

    Args:
        logits: (B, T, U + 1, V), any float type: joint output for each of T frames after each of 0 to U target symbols.
        targets: (B, U) integers, symbols 0 to V - 1 without the blank; what lies past an utterance's length is ignored.
        logit_lengths: (B,) integers, frames of each utterance, 1 to T.
        target_lengths: (B,) integers, symbols of each target, 0 to U; more symbols than frames are fine.
        blank: Index of the blank symbol, -V to V - 1. As in torchaudio the last symbol is the default; models of
            `pyspeech.asr` have blank 0.
        reduction: "mean" or "sum" over the batch, or "none".
        fused_log_softmax: False for logits that are log probabilities already.
        backend: "auto", "k2" or "torch", see `lattice.backend_name`.

    Returns:
        Loss in nats, float32 or, of float64 logits, float64: a scalar, or (B,) for reduction "none".

    Raises:
        UserError: for shapes, lengths, symbols or options that do not fit; the message names the utterance.
        NotFiniteError: for logits with NaN or infinity, or that leave a target without probability.
    """
    if reduction not in REDUCTIONS:
        raise UserError(f"transducer loss: reduction='{reduction}'; expected one of {', '.join(REDUCTIONS)}")
    _expect_tensors(logits=logits, targets=targets, logit_lengths=logit_lengths, target_lengths=target_lengths)
    vocabulary = _shape(logits, 4)[3]
    if not -vocabulary <= blank < vocabulary:
        raise UserError(f"transducer loss: blank={blank}; expected {-vocabulary} to {vocabulary - 1} for {vocabulary} symbols")
    losses = full_loss(
        logits, targets, logit_lengths, target_lengths, backend, blank % vocabulary, normalised=not fused_log_softmax
    )
    losses = losses.to(torch.float64 if logits.dtype == torch.float64 else torch.float32)
    return losses if reduction == "none" else getattr(losses, reduction)()


def full_loss(
    logits: torch.Tensor,
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    token_lengths: torch.Tensor,
    backend: str = "auto",
    blank: int = 0,
    normalised: bool = False,
) -> torch.Tensor:
    """-log P(tokens) over all alignments: logits (B, T, S + 1, V) -> float64 (B,).

    tokens (B, S) int64, lengths (B,) frames 1..T, token_lengths (B,) symbols 0..S; backend: see `lattice.backend_name`;
    normalised: whether the logits are log probabilities.
    """
    batch, num_frames, rows, vocabulary = _shape(logits, 4)
    tokens, lengths, token_lengths = check_batch(tokens, lengths, token_lengths, num_frames, vocabulary, blank)
    _expect(logits, "logits", (batch, num_frames, tokens.shape[1] + 1, vocabulary), len(tokens) == batch)
    tokens = tokens.to(logits.device)
    labels = functional.pad(tokens, (0, 1))[:, None].expand(-1, num_frames, -1)
    if normalised:
        emitted, waited = logits.gather(-1, labels[..., None])[..., 0], logits[..., blank]
    else:
        emitted, waited = _label_and_blank(logits, labels, blank)
    return _losses(emitted[:, :, :-1].transpose(1, 2), waited.transpose(1, 2), lengths, token_lengths, backend)[0]


def pruned_loss(
    logits: torch.Tensor,
    ranges: torch.Tensor,
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    token_lengths: torch.Tensor,
    backend: str = "auto",
) -> torch.Tensor:
    """-log P(tokens) over the alignments in `ranges` (B, T, R): logits (B, T, R, V), not normalised -> float64 (B,).

    The other arguments are those of `full_loss`.
    """
    _expect_tensors(logits=logits, ranges=ranges, tokens=tokens, lengths=lengths, token_lengths=token_lengths)
    batch, num_frames, size, vocabulary = _shape(logits, 4)
    tokens, lengths, token_lengths = check_batch(tokens, lengths, token_lengths, num_frames, vocabulary)
    _expect(ranges, "ranges", (batch, num_frames, size), len(tokens) == batch)
    rows = tokens.shape[1] + 1
    if int(ranges.min()) < 0 or int(ranges.max()) >= rows:
        raise UserError(
            f"transducer loss: ranges go from {int(ranges.min())} to {int(ranges.max())}; expected rows "
            f"0 .. {rows - 1} of the lattice; take them from smoothed_loss on the same batch"
        )
    labels = functional.pad(tokens, (0, 1)).gather(1, ranges.flatten(1)).view(ranges.shape)
    emitted, blank = (_spread(values, ranges, rows) for values in _label_and_blank(logits, labels))
    return _losses(emitted[:, :-1], blank, lengths, token_lengths, backend)[0]


def smoothed_loss(
    am: torch.Tensor,
    lm: torch.Tensor,
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    token_lengths: torch.Tensor,
    prune_range: int,
    lm_scale: float = 0.25,
    am_scale: float = 0.0,
    backend: str = "auto",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of the lattice of am (B, T, V) + lm (B, S + 1, V), smoothed -> float64 (B,), and ranges (B, T, R) int64.

    Each log probability is (1 - lm_scale - am_scale) times that of softmax(am + lm), plus lm_scale times that of
    softmax(lm), plus am_scale times that of am with the batch's mean predictor output in place of lm. R is prune_range,
    or what `pruning.range_size` makes of it. The other arguments are those of `full_loss`.
    """
    _expect_tensors(am=am, lm=lm, tokens=tokens, lengths=lengths, token_lengths=token_lengths)
    batch, num_frames, vocabulary = _shape(am, 3)
    tokens, lengths, token_lengths = check_batch(tokens, lengths, token_lengths, num_frames, vocabulary)
    _expect(lm, "lm", (batch, tokens.shape[1] + 1, vocabulary), len(tokens) == batch)
    with autocast(am.device, enabled=False):
        px, py = _smoothed_arcs(_Double.apply(am), _Double.apply(lm), tokens, token_lengths, lm_scale, am_scale)
    losses, px_occupation, py_occupation = _losses(px, py, lengths, token_lengths, backend)
    return losses, prune_ranges(px_occupation, py_occupation, lengths, token_lengths, prune_range)


def transducer_loss(
    model: Transducer,
    encoded: torch.Tensor,
    lengths: torch.Tensor,
    tokens: torch.Tensor,
    token_lengths: torch.Tensor,
    head: int,
    config: LossConfig,
    warm: float = 1.0,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Training loss of a batch of one language: encoded (B, T, D) -> (scalar, {name: number to log}).

    Each loss is the sum over the batch divided by its number of frames. With config.full the scalar is that of the
    whole lattice; else the smoothed and the pruned loss add up, scaled as `loss_scales` says at `warm`, the part 0..1
    of the warm-up that is over. Logits that are not finite give NaN and no values: the trainer skips such a batch.
    """
    tokens, lengths, token_lengths = check_batch(tokens, lengths, token_lengths, encoded.shape[1], model.vocabulary_sizes[head])
    try:
        if config.full:
            return _full(model, encoded, lengths, tokens, token_lengths, head, config)
        return _smoothed_and_pruned(model, encoded, lengths, tokens, token_lengths, head, config, warm)
    except NotFiniteError:
        return encoded.new_full((), torch.nan, dtype=torch.float32), {}


def loss_scales(config: LossConfig, warm: float) -> tuple[float, float]:
    """Scales (smoothed, pruned) where the part `warm` of the warm-up is over: (1, 0.1) to (simple_scale, 1), linear."""
    warm = min(max(warm, 0.0), 1.0)
    return 1 + warm * (config.simple_scale - 1), PRUNED_SCALE_AT_START + warm * (1 - PRUNED_SCALE_AT_START)


def check_batch(
    tokens: torch.Tensor, lengths: torch.Tensor, token_lengths: torch.Tensor, num_frames: int, vocabulary: int, blank: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three as int64 on the device of `tokens`, padding of the tokens 0; UserError where one of them is wrong."""
    if tokens.dim() != 2 or lengths.shape != tokens.shape[:1] or token_lengths.shape != tokens.shape[:1]:
        raise UserError(
            f"transducer loss: tokens {tuple(tokens.shape)}, lengths {tuple(lengths.shape)} and "
            f"token_lengths {tuple(token_lengths.shape)}; expected (B, S), (B,) and (B,)"
        )
    if len(tokens) == 0:
        raise UserError("transducer loss: an empty batch; expected at least one utterance")
    lengths, token_lengths = (_whole(n, "length").to(tokens.device) for n in (lengths, token_lengths))
    limit = tokens.shape[1]
    _check_range(lengths, 1, num_frames, "frames; leave out what is empty, and pad the rest to the longest")
    _check_range(token_lengths, 0, limit, "symbols; pad tokens to the longest reference")
    inside = torch.arange(limit, device=tokens.device) < token_lengths[:, None]
    tokens = _whole(tokens.masked_fill(~inside, 0), "symbol")
    wrong = inside & ((tokens < 0) | (tokens >= vocabulary) | (tokens == blank))
    if wrong.any():
        item, place = wrong.nonzero()[0].tolist()
        raise UserError(
            f"transducer loss: utterance {item} of the batch has symbol {int(tokens[item, place])} at "
            f"position {place} of its reference; expected {0 if blank else 1} .. {vocabulary - 1} ({blank} is blank): encode "
            "the text with the units of this head"
        )
    return tokens, lengths, token_lengths


def _whole(values, what):
    """Numbers as int64; UserError for floats that this would change."""
    whole = values.to(torch.int64)
    if values.is_floating_point() and not torch.equal(whole.to(values.dtype), values):
        place = tuple((whole != values).nonzero()[0].tolist())
        raise UserError(
            f"transducer loss: utterance {place[0]} of the batch has {what} {float(values[place]):g}; expected a whole number: "
            "give a tensor of integers"
        )
    return whole


def _check_range(values, low, high, advice):
    wrong = (values < low) | (values > high)
    if wrong.any():
        item = int(wrong.nonzero()[0])
        raise UserError(
            f"transducer loss: utterance {item} of the batch has length {int(values[item])}; expected {low} .. {high} {advice}"
        )


def _expect_tensors(**given):
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            raise UserError(f"transducer loss: {name} of type {type(value).__name__}; expected a torch.Tensor")


def _shape(logits, dimensions):
    if logits.dim() != dimensions:
        raise UserError(f"transducer loss: logits of shape {tuple(logits.shape)}; expected {dimensions} dimensions")
    return logits.shape


def _expect(tensor, name, shape, batch_agrees):
    if tuple(tensor.shape) != shape or not batch_agrees:
        raise UserError(f"transducer loss: {name} of shape {tuple(tensor.shape)}; expected {shape} for these tokens")


def _losses(px, py, lengths, token_lengths, backend):
    """What `lattice.log_likelihood` returns, negated and checked."""
    totals, *occupations = log_likelihood(px, py, lengths, token_lengths, backend)
    losses = -totals
    finite = torch.isfinite(losses.detach())
    if not finite.all():
        item = int((~finite).nonzero()[0])
        raise NotFiniteError(
            f"transducer loss: utterance {item} of the batch has no alignment of finite probability; "
            "the logits of its symbols are too low, or the ranges leave no path"
        )
    return losses, *occupations


def _label_and_blank(logits, labels, blank=0):
    """Log probabilities, after a softmax, of labels (B, T, R) and of blank: logits (B, T, R, V) -> two of (B, T, R)."""
    with autocast(logits.device, enabled=False):
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return _LabelAndBlank.apply(logits, labels[..., None], blank)


class _LabelAndBlank(torch.autograd.Function):
    """log_softmax and gather, whose gradient takes a single tensor of the logits' size."""

    @staticmethod
    def forward(ctx, logits, labels, blank):
        normaliser = torch.logsumexp(logits, dim=-1, keepdim=True)
        if not torch.isfinite(normaliser).all():
            item = int((~torch.isfinite(normaliser)).nonzero()[0, 0])
            raise NotFiniteError(
                f"transducer loss: the logits of utterance {item} of the batch are not finite; look "
                "for a learning rate that is too high, or for bad features"
            )
        ctx.save_for_backward(logits, labels, normaliser)
        ctx.blank = blank
        return (logits.gather(-1, labels) - normaliser)[..., 0], logits[..., blank] - normaliser[..., 0]

    @staticmethod
    @once_differentiable
    def backward(ctx, label_grad, blank_grad):
        logits, labels, normaliser = ctx.saved_tensors
        grad = (logits - normaliser).exp_().mul_(-(label_grad + blank_grad)[..., None])
        grad.scatter_add_(-1, labels, label_grad[..., None].contiguous())
        grad[..., ctx.blank] += blank_grad
        return _without_denormals(grad), None, None


class _Double(torch.autograd.Function):
    """Tensor.double(), with a gradient without denormal numbers."""

    @staticmethod
    def forward(ctx, values):
        ctx.dtype = values.dtype
        return values.double()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return _without_denormals(grad).to(ctx.dtype)


def _without_denormals(grad):
    """Most arcs have next to no probability: 1e-40 is not 0 to a CPU, and multiplies a matrix several times slower."""
    return functional.hardshrink(grad, NEGLIGIBLE)


def _spread(values, ranges, rows):
    """Values (B, T, R) at their rows of the lattice, -inf elsewhere: (B, rows, T)."""
    empty = values.new_full((*values.shape[:2], rows), -torch.inf)
    return empty.scatter(2, ranges, values).transpose(1, 2)


def _smoothed_arcs(am, lm, tokens, token_lengths, lm_scale, am_scale):
    """px (B, S, T) and py (B, S + 1, T) of `smoothed_loss`, float64."""
    num_frames = am.shape[1]
    labels = functional.pad(tokens, (0, 1))  # (B, S + 1): the last row's label is never used
    am_label = am.gather(2, labels[:, None].expand(-1, num_frames, -1)).transpose(1, 2)  # (B, S + 1, T)
    lm_label = lm.gather(2, labels[:, :, None])  # (B, S + 1, 1)
    am_blank, lm_blank = am[:, None, :, 0], lm[:, :, :1]  # (B, 1, T), (B, S + 1, 1)
    scale = 1 - lm_scale - am_scale
    normaliser = _pair_normaliser(am, lm)
    px = scale * (am_label + lm_label - normaliser)
    py = scale * (am_blank + lm_blank - normaliser)
    if lm_scale:
        lm_normaliser = torch.logsumexp(lm, dim=2, keepdim=True)
        px = px + lm_scale * (lm_label - lm_normaliser)
        py = py + lm_scale * (lm_blank - lm_normaliser)
    if am_scale:
        unigram = _mean_predictor(lm, token_lengths)  # (V,)
        am_normaliser = torch.logsumexp(am + unigram, dim=2)[:, None]  # (B, 1, T)
        px = px + am_scale * (am_label + unigram[labels][:, :, None] - am_normaliser)
        py = py + am_scale * (am_blank + unigram[0] - am_normaliser)
    return px[:, :-1], py


def _pair_normaliser(am, lm):
    """logsumexp of am[b, t] + lm[b, s] over the symbols: (B, S + 1, T), for logits that may be hundreds apart."""
    am_max, lm_max = am.detach().amax(dim=2, keepdim=True), lm.detach().amax(dim=2, keepdim=True)
    if not (torch.isfinite(am_max).all() and torch.isfinite(lm_max).all()):
        raise NotFiniteError(
            "transducer loss: the simple logits of the encoder or of the predictor are not finite; "
            "look for a learning rate that is too high, or for bad features"
        )
    shift = lm_max + am_max.transpose(1, 2)
    product = torch.bmm((lm - lm_max).exp(), (am - am_max).exp().transpose(1, 2))
    normaliser = product.clamp(min=SMALLEST_PRODUCT).log() + shift
    # Where encoder and predictor contradict each other, the product underflows even in float64: the few such pairs.
    low = (product.detach() < SMALLEST_PRODUCT).nonzero(as_tuple=True)
    if len(low[0]):
        item, row, frame = low
        normaliser = normaliser.index_put(low, torch.logsumexp(lm[item, row] + am[item, frame], dim=1))
    return normaliser


def _mean_predictor(lm, token_lengths):
    """Log of the mean over the batch's rows of softmax(lm) (B, S + 1, V), padding left out: (V,)."""
    inside = torch.arange(lm.shape[1], device=lm.device) <= token_lengths[:, None]
    return torch.logsumexp(functional.log_softmax(lm[inside], dim=1), dim=0) - inside.sum().log()


def _full(model, encoded, lengths, tokens, token_lengths, head, config):
    predicted, _ = model.predict_sequence(tokens, head)
    logits = model.head_logits(model.project_encoded(encoded)[:, :, None], predicted[:, None], head)
    loss = full_loss(logits, tokens, lengths, token_lengths, config.backend).sum() / lengths.sum()
    return loss.float(), {"full": loss.item()}


def _smoothed_and_pruned(model, encoded, lengths, tokens, token_lengths, head, config, warm):
    predicted, hidden = model.predict_sequence(tokens, head)
    smoothed, ranges = smoothed_loss(
        model.simple_am(encoded, head),
        model.simple_lm(hidden, head),
        tokens,
        lengths,
        token_lengths,
        config.prune_range,
        config.lm_scale,
        config.am_scale,
        config.backend,
    )
    logits = model.head_logits(
        gather_encoded(model.project_encoded(encoded), ranges), gather_predicted(predicted, ranges), head
    )
    pruned = pruned_loss(logits, ranges, tokens, lengths, token_lengths, config.backend)
    smoothed, pruned = (losses.sum() / lengths.sum() for losses in (smoothed, pruned))
    smoothed_scale, pruned_scale = loss_scales(config, warm)
    loss = smoothed_scale * smoothed + pruned_scale * pruned
    return loss.float(), {"smoothed": smoothed.item(), "pruned": pruned.item()}
