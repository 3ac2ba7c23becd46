"""The transducer losses: against a plain lattice, torchaudio and k2's own helpers; checked input; the training loss."""

import math

import pytest
import torch
from tool_harness import one_line_error

from pyspeech.asr.loss import (
    LossConfig,
    NotFiniteError,
    full_loss,
    loss_scales,
    pruned_loss,
    rnnt_loss,
    smoothed_loss,
    transducer_loss,
)
from pyspeech.asr.pruning import gather_encoded, gather_predicted
from pyspeech.compat import autocast
from pyspeech.errors import UserError

try:
    import k2
except ImportError:
    k2 = None

needs_k2 = pytest.mark.skipif(k2 is None, reason="k2 is not installed")
BACKENDS = ["torch", pytest.param("k2", marks=needs_k2)]


def random_batch(batch=4, frames=14, symbols=7, vocabulary=9, seed=0, dtype=torch.float64, scale=1.0):
    """am, lm, and (tokens, lengths, token_lengths); among them more symbols than frames, and an empty reference."""
    generator = torch.Generator().manual_seed(seed)
    am = scale * torch.randn(batch, frames, vocabulary, generator=generator, dtype=torch.float64)
    lm = scale * torch.randn(batch, symbols + 1, vocabulary, generator=generator, dtype=torch.float64)
    tokens = torch.randint(1, vocabulary, (batch, symbols), generator=generator)
    lengths = torch.randint(max(1, frames // 2), frames + 1, (batch,), generator=generator)
    token_lengths = torch.randint(0, symbols + 1, (batch,), generator=generator)
    lengths[0], token_lengths[0] = frames, symbols
    if batch > 2:
        lengths[1], token_lengths[1], token_lengths[2] = 3, symbols, 0
    return am.to(dtype), lm.to(dtype), (tokens, lengths, token_lengths)


def full_logits(am, lm):
    return am[:, :, None] + torch.tanh(lm[:, None] + am[:, :, None])


def pruned_logits(am, lm, ranges):
    encoded = gather_encoded(am, ranges)
    return encoded + torch.tanh(gather_predicted(lm, ranges) + encoded)


def plain_loss(log_probs, tokens, ranges=None):
    """One utterance by the definition: log_probs (T, S + 1, V) normalised, tokens a list, ranges T sets of rows."""
    log_probs = log_probs.tolist()
    num_frames = len(log_probs)

    def arc(t, row, symbol):
        allowed = ranges is None or row in ranges[t]
        return log_probs[t][row][symbol] if allowed else -math.inf

    alpha = {(0, 0): 0.0}
    for s in range(len(tokens) + 1):
        for t in range(num_frames):
            if (s, t) != (0, 0):
                came = alpha[s, t - 1] + arc(t - 1, s, 0) if t else -math.inf
                emitted = alpha[s - 1, t] + arc(t, s - 1, tokens[s - 1]) if s else -math.inf
                top = max(came, emitted)
                total = sum(math.exp(term - top) for term in (came, emitted)) if top > -math.inf else 1.0
                alpha[s, t] = top + math.log(total)
    return -(alpha[len(tokens), num_frames - 1] + arc(num_frames - 1, len(tokens), 0))


def plain_losses(logits, batch, ranges=None):
    log_probs = torch.log_softmax(logits.double(), dim=-1)
    losses = []
    for item, (tokens, frames, symbols) in enumerate(zip(*batch, strict=True)):
        rows = None if ranges is None else [set(kept.tolist()) for kept in ranges[item]]
        losses.append(plain_loss(log_probs[item, :frames], tokens[:symbols].tolist(), rows))
    return losses


def with_grads(function, *inputs):
    """Its value and the gradients of the sum of the squared values for the inputs: weights that differ by utterance."""
    leaves = [value.detach().clone().requires_grad_() for value in inputs]
    value = function(*leaves)
    return value.detach(), torch.autograd.grad(value.square().sum() / 100, leaves)


# Values


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(4, 14, 7), (1, 1, 0), (2, 5, 0), (1, 1, 4), (3, 30, 1)])
def test_full_against_the_definition(shape, backend):
    am, lm, batch = random_batch(*shape)
    logits = full_logits(am, lm)
    assert full_loss(logits, *batch, backend).tolist() == pytest.approx(plain_losses(logits, batch), abs=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("prune_range", [2, 3, 5])
def test_pruned_against_the_definition(prune_range, backend):
    am, lm, batch = random_batch()
    _, ranges = smoothed_loss(am, lm, *batch, prune_range, backend=backend)
    losses = pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch, backend)
    full = full_logits(am, lm)
    assert losses.tolist() == pytest.approx(plain_losses(full, batch, ranges), abs=1e-10)
    assert (losses >= full_loss(full, *batch, backend) - 1e-10).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("prune_range", [8, 9, 100])
def test_a_range_of_all_rows_is_the_full_lattice(prune_range, backend):
    am, lm, batch = random_batch()
    _, ranges = smoothed_loss(am, lm, *batch, prune_range, backend=backend)
    assert ranges.shape[2] == 8
    full, full_grads = with_grads(lambda am, lm: full_loss(full_logits(am, lm), *batch, backend), am, lm)
    pruned, grads = with_grads(lambda am, lm: pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch, backend), am, lm)
    torch.testing.assert_close(pruned, full, rtol=0, atol=1e-10)
    torch.testing.assert_close(grads, full_grads, rtol=0, atol=1e-10)


@needs_k2
@pytest.mark.parametrize("dtype, value_tolerance, grad_tolerance", [(torch.float64, 1e-10, 1e-10), (torch.float32, 1e-4, 1e-3)])
def test_backends_agree(dtype, value_tolerance, grad_tolerance):
    am, lm, batch = random_batch(5, 120, 40, 30, dtype=dtype)
    _, ranges = smoothed_loss(am, lm, *batch, 5, backend="torch")
    functions = [
        lambda am, lm, name: full_loss(full_logits(am, lm), *batch, name),
        lambda am, lm, name: pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch, name),
        lambda am, lm, name: smoothed_loss(am, lm, *batch, 5, 0.25, 0.1, name)[0],
    ]
    for function in functions:
        (ours, our_grads), (theirs, their_grads) = (
            with_grads(lambda am, lm, name=name: function(am, lm, name), am, lm) for name in ("torch", "k2")
        )
        torch.testing.assert_close(ours, theirs, rtol=0, atol=value_tolerance)
        torch.testing.assert_close(our_grads, their_grads, rtol=grad_tolerance, atol=grad_tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_full_against_torchaudio(backend):
    torchaudio = pytest.importorskip("torchaudio")
    am, lm, (tokens, lengths, token_lengths) = random_batch(4, 25, 9, 12, dtype=torch.float32)
    token_lengths[2] = 1  # torchaudio takes no empty reference
    logits = full_logits(am, lm)

    def theirs(logits):
        integers = (values.int() for values in (tokens, lengths, token_lengths))
        return torchaudio.functional.rnnt_loss(logits, *integers, blank=0, reduction="none")

    expected, expected_grad = with_grads(theirs, logits)
    found, grad = with_grads(lambda logits: full_loss(logits, tokens, lengths, token_lengths, backend), logits)
    torch.testing.assert_close(found.float(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("blank", [0, 5, 11, -1, None])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_rnnt_loss_is_torchaudios(backend, fused, blank, reduction):
    """Value, gradient and dtype, and with no blank given."""
    torchaudio = pytest.importorskip("torchaudio")
    am, lm, (tokens, lengths, token_lengths) = random_batch(4, 25, 9, 12, dtype=torch.float32)
    token_lengths[2] = 1  # torchaudio takes no empty reference
    options = {} if blank is None else {"blank": blank}
    tokens = (tokens - 1 + (tokens - 1 >= options.get("blank", -1) % 12)).int()  # any symbol but blank
    options["reduction"] = reduction
    batch = tokens, lengths.int(), token_lengths.int()

    def ours(logits):
        values = logits if fused else logits.log_softmax(-1)
        return rnnt_loss(values, *batch, **options, fused_log_softmax=fused, backend=backend)

    logits = full_logits(am, lm)
    expected, expected_grad = with_grads(lambda logits: torchaudio.functional.rnnt_loss(logits, *batch, **options), logits)
    found, grad = with_grads(ours, logits)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-4, atol=2e-3 if reduction == "sum" else 1e-4)


def test_rnnt_loss_by_the_definition():
    """Empty references and any float type, which torchaudio does not take."""
    am, lm, batch = random_batch()
    logits = full_logits(am, lm)
    moved = torch.roll(logits, -1, dims=-1)
    found = rnnt_loss(moved, batch[0] - 1, *batch[1:], reduction="none")
    assert found.dtype == torch.float64 and found.tolist() == pytest.approx(plain_losses(logits, batch))
    assert float(rnnt_loss(moved, batch[0] - 1, *batch[1:])) == pytest.approx(float(found.mean()))
    half = rnnt_loss(logits.bfloat16(), *batch, blank=0, reduction="none")
    assert half.dtype == torch.float32 and half.tolist() == pytest.approx(found.tolist(), rel=0.02)
    for options, message in (
        ({"blank": 9}, "blank=9; expected -9 to 8 for 9 symbols"),
        ({"reduction": "average"}, "reduction='average'; expected one of none, mean, sum"),
        ({"blank": int(batch[0][0, 1])}, r"utterance 0 .* at position \d .*expected 0 .. 8 \(\d is blank\)"),
    ):
        with pytest.raises(UserError, match=message):
            rnnt_loss(logits, *batch, **options)
    for place, value, message in (
        (0, 1.7, "utterance 0 of the batch has symbol 1.7; expected a whole number"),
        (1, 2.5, "utterance 0 of the batch has length 2.5; expected a whole number"),
        (2, math.nan, "utterance 0 of the batch has length nan; expected a whole number"),
    ):
        wrong = [part.float() for part in batch]
        assert torch.equal(rnnt_loss(logits, *wrong, blank=0), rnnt_loss(logits, *batch, blank=0))
        wrong[place].view(-1)[0] = value
        with one_line_error(message):
            rnnt_loss(logits, *wrong, blank=0)
    with pytest.raises(UserError, match="targets of type list; expected a torch.Tensor"):
        rnnt_loss(logits, batch[0].tolist(), *batch[1:])


@needs_k2
@pytest.mark.parametrize("backend", ["k2", "torch"])
@pytest.mark.parametrize("lm_scale, am_scale", [(0.0, 0.0), (0.25, 0.0), (0.1, 0.2)])
def test_pipeline_equals_k2s_own(lm_scale, am_scale, backend):
    """Equal token lengths: k2's mean over predictor outputs takes the padding in."""
    am, lm, (tokens, lengths, token_lengths) = random_batch(4, 40, 12, 9)
    token_lengths[:], lengths[:] = 12, torch.tensor([40, 33, 20, 12])
    zeros = torch.zeros_like(lengths)
    boundary = torch.stack([zeros, zeros, token_lengths, lengths], dim=1)

    def theirs(am, lm):
        losses, grads = k2.rnnt_loss_smoothed(
            lm, am, tokens, 0, lm_scale, am_scale, boundary, reduction="none", return_grad=True
        )
        ranges = k2.get_rnnt_prune_ranges(*grads, boundary, 4)
        encoded, predicted = k2.do_rnnt_pruning(am, lm, ranges)
        logits = encoded + torch.tanh(encoded + predicted)
        return losses + k2.rnnt_loss_pruned(logits, tokens, ranges, 0, boundary, reduction="none")

    def ours(am, lm):
        batch = tokens, lengths, token_lengths
        losses, ranges = smoothed_loss(am, lm, *batch, 4, lm_scale, am_scale, backend)
        return losses + pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch, backend)

    expected, expected_grads = with_grads(theirs, am, lm)
    found, grads = with_grads(ours, am, lm)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(grads, expected_grads, rtol=0, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_smoothed_against_the_definition(backend):
    am, lm, batch = random_batch()
    tokens, lengths, token_lengths = batch
    lm_scale, am_scale = 0.2, 0.15
    log_probs = torch.log_softmax(am[:, :, None] + lm[:, None], dim=-1)
    lm_only = torch.log_softmax(lm, dim=-1)
    unigram = torch.cat([lm_only[item, : length + 1] for item, length in enumerate(token_lengths)]).exp().mean(0).log()
    am_only = torch.log_softmax(am + unigram, dim=-1)
    mixed = 0.65 * log_probs + lm_scale * lm_only[:, None] + am_scale * am_only[:, :, None]
    losses, _ = smoothed_loss(am, lm, *batch, 3, lm_scale, am_scale, backend)
    expected = [
        plain_loss(mixed[item, : lengths[item]], tokens[item, : token_lengths[item]].tolist()) for item in range(len(tokens))
    ]
    assert losses.tolist() == pytest.approx(expected, abs=1e-10)


def test_gradients_are_numerically_right():
    am, lm, batch = random_batch(3, 4, 3, 4)
    _, ranges = smoothed_loss(am, lm, *batch, 2)
    am.requires_grad_(), lm.requires_grad_()
    assert torch.autograd.gradcheck(lambda am, lm: full_loss(full_logits(am, lm), *batch), (am, lm))
    assert torch.autograd.gradcheck(lambda am, lm: pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch), (am, lm))
    assert torch.autograd.gradcheck(lambda am, lm: smoothed_loss(am, lm, *batch, 2, 0.25, 0.1)[0], (am, lm))


def test_logits_far_apart_do_not_underflow():
    """Against the lattice of the sums themselves, where products underflow in float32 (40) and in float64 (1000)."""
    for scale in (40.0, 1000.0):
        am, lm, batch = random_batch(scale=scale, dtype=torch.float32)
        exact, exact_grads = with_grads(
            lambda am, lm: full_loss(am.double()[:, :, None] + lm.double()[:, None], *batch), am, lm
        )
        losses, grads = with_grads(lambda am, lm: smoothed_loss(am, lm, *batch, 5, 0.0, 0.0)[0], am, lm)
        torch.testing.assert_close(losses, exact, rtol=1e-9, atol=0)
        torch.testing.assert_close(grads, exact_grads, rtol=1e-5, atol=1e-5)


def test_gradients_hold_no_denormal_numbers():
    """Which would make the matrix products behind them several times slower on a CPU."""
    am, lm, batch = random_batch(2, 150, 40, 20, scale=2.0, dtype=torch.float32)
    for function in (lambda am, lm: full_loss(full_logits(am, lm), *batch), lambda am, lm: smoothed_loss(am, lm, *batch, 5)[0]):
        exact = with_grads(function, am.double(), lm.double())[1]
        for grad, expected in zip(with_grads(function, am, lm)[1], exact, strict=True):
            size = grad.abs()
            assert not ((size > 0) & (size < 1e-30)).any()
            torch.testing.assert_close(grad.double(), expected, rtol=1e-3, atol=1e-4)
    logits = full_logits(am, lm).requires_grad_()
    full_loss(logits, *batch).sum().backward()
    size = logits.grad.abs()
    assert ((size == 0) & (full_logits(am, lm) != 0)).any() and not ((size > 0) & (size < 1e-30)).any()


def test_half_precision_under_autocast():
    am, lm, batch = random_batch(dtype=torch.bfloat16)
    exact, _ = smoothed_loss(am.double(), lm.double(), *batch, 5)
    with autocast("cpu"):
        smoothed, ranges = smoothed_loss(am, lm, *batch, 5)
        logits = pruned_logits(am, lm, ranges).requires_grad_()
        pruned = pruned_loss(logits, ranges, *batch)
    assert smoothed.dtype == pruned.dtype == torch.float64
    torch.testing.assert_close(smoothed, exact)
    torch.testing.assert_close(pruned, pruned_loss(logits.double(), ranges, *batch), rtol=1e-5, atol=1e-5)
    pruned.sum().backward()
    assert logits.grad.dtype == torch.bfloat16 and logits.grad.isfinite().all()
    half = full_logits(am, lm).half()
    torch.testing.assert_close(full_loss(half, *batch), full_loss(half.double(), *batch), rtol=1e-5, atol=1e-5)


def test_an_utterance_does_not_depend_on_its_padding():
    am, lm, (tokens, lengths, token_lengths) = random_batch()
    _, ranges = smoothed_loss(am, lm, tokens, lengths, token_lengths, 3)
    logits = pruned_logits(am, lm, ranges)
    for item in range(len(tokens)):
        frames, symbols = lengths[item], token_lengths[item]
        one = slice(item, item + 1)
        alone = tokens[one, :symbols], lengths[one], token_lengths[one]
        together = smoothed_loss(am, lm, tokens, lengths, token_lengths, 3)[0][item]
        single = smoothed_loss(am[one, :frames], lm[one, : symbols + 1], *alone, 3)[0][0]
        torch.testing.assert_close(single, together)
        full = full_logits(am, lm)
        torch.testing.assert_close(
            full_loss(full[one, :frames, : symbols + 1], *alone)[0], full_loss(full, tokens, lengths, token_lengths)[item]
        )
    garbage = tokens.clone()
    for item, symbols in enumerate(token_lengths):
        garbage[item, symbols:] = -100
    torch.testing.assert_close(
        pruned_loss(logits, ranges, garbage, lengths, token_lengths),
        pruned_loss(logits, ranges, tokens, lengths, token_lengths),
    )


# Checked input


def losses_of(am, lm, batch):
    """Each of the three losses as a function of nothing."""
    tokens = batch[0]
    ranges = torch.arange(2).expand(am.shape[0], am.shape[1], 2)
    return {
        "full": lambda: full_loss(full_logits(am, lm), *batch),
        "pruned": lambda: pruned_loss(full_logits(am, lm)[:, :, :2], ranges, *batch),
        "smoothed": lambda: smoothed_loss(am, lm, tokens, *batch[1:], 3),
    }


@pytest.mark.parametrize("which", ["full", "pruned", "smoothed"])
@pytest.mark.parametrize(
    "part, item, value, message",
    [
        (0, (1, 2), 0, "utterance 1 of the batch has symbol 0 at position 2 .*expected 1 .. 8"),
        (0, (3, 0), 9, "utterance 3 .*symbol 9 at position 0"),
        (0, (0, 6), -1, "utterance 0 .*symbol -1 at position 6"),
        (1, (2,), 0, "utterance 2 of the batch has length 0; expected 1 .. 14 frames"),
        (1, (1,), 15, "utterance 1 of the batch has length 15; expected 1 .. 14 frames"),
        (2, (1,), 8, "utterance 1 of the batch has length 8; expected 0 .. 7 symbols"),
        (2, (0,), -1, "utterance 0 of the batch has length -1; expected 0 .. 7 symbols"),
    ],
)
def test_wrong_references_and_lengths_are_named(which, part, item, value, message):
    am, lm, batch = random_batch()
    batch[2][3] = 7
    batch[part][item] = value
    with pytest.raises(UserError, match=message):
        losses_of(am, lm, batch)[which]()


@pytest.mark.parametrize("which", ["full", "pruned", "smoothed"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite_are_refused(which, value):
    am, lm, batch = random_batch()
    am[2, 1] = value
    with pytest.raises(NotFiniteError, match="finite"):
        losses_of(am, lm, batch)[which]()


def test_a_symbol_of_no_probability_is_refused():
    am, lm, batch = random_batch()
    am[0, :, batch[0][0, 3]] = -math.inf
    for which in ("full", "smoothed"):
        with pytest.raises(NotFiniteError, match="utterance 0 of the batch has no alignment of finite probability"):
            losses_of(am, lm, batch)[which]()


def test_wrong_shapes_and_ranges_are_refused():
    am, lm, batch = random_batch()
    tokens, lengths, token_lengths = batch
    _, ranges = smoothed_loss(am, lm, *batch, 3)  # widened to 4 rows, for 7 symbols in 3 frames
    logits = pruned_logits(am, lm, ranges)
    with pytest.raises(UserError, match=r"lm of shape \(4, 7, 9\); expected \(4, 8, 9\)"):
        smoothed_loss(am, lm[:, :-1], *batch, 3)
    with pytest.raises(UserError, match=r"ranges of shape \(4, 14, 3\); expected \(4, 14, 4\)"):
        pruned_loss(logits, ranges[:, :, 1:], *batch)
    with pytest.raises(UserError, match="logits of shape.*expected"):
        full_loss(logits, *batch)
    with pytest.raises(UserError, match="expected 4 dimensions"):
        full_loss(am, *batch)
    with pytest.raises(UserError, match=r"expected rows 0 \.\. 7"):
        pruned_loss(logits, ranges + 7, *batch)
    with pytest.raises(NotFiniteError, match="ranges leave no path"):
        pruned_loss(logits, torch.arange(4).expand(4, 14, 4), *batch)
    with pytest.raises(UserError, match="prune_range=1"):
        smoothed_loss(am, lm, *batch, 1)
    with pytest.raises(UserError, match="am of type ndarray; expected a torch.Tensor"):
        smoothed_loss(am.detach().numpy(), lm, *batch, 3)
    with pytest.raises(UserError, match="ranges of type ndarray; expected a torch.Tensor"):
        pruned_loss(logits, ranges.numpy(), *batch)
    with pytest.raises(UserError, match="empty batch"):
        full_loss(full_logits(am, lm)[:0], tokens[:0], lengths[:0], token_lengths[:0])
    with pytest.raises(UserError, match=r"expected \(B, S\), \(B,\) and \(B,\)"):
        full_loss(full_logits(am, lm), tokens, lengths[:2], token_lengths)


@pytest.mark.parametrize("backend", BACKENDS)
def test_too_small_a_range_is_widened(backend):
    """12 symbols in 2 frames need steps of 6 rows."""
    am, lm, batch = random_batch(1, 2, 12)
    losses, ranges = smoothed_loss(am, lm, *batch, 2, backend=backend)
    assert ranges.shape == (1, 2, 7) and ranges[0, :, 0].tolist() == [0, 6]
    assert pruned_loss(pruned_logits(am, lm, ranges), ranges, *batch, backend).isfinite().all()


# The training loss


class TinyModel(torch.nn.Module):
    """What the loss asks of a model; two heads."""

    vocabulary_sizes = [6, 9]

    def __init__(self, size=8):
        super().__init__()
        self.embedding = torch.nn.Embedding(9, size)
        self.project_encoded, self.project_predicted = torch.nn.Linear(size, 7), torch.nn.Linear(size, 7)
        self.output, self.am, self.lm = (
            torch.nn.ModuleList(torch.nn.Linear(inputs, vocabulary) for vocabulary in self.vocabulary_sizes)
            for inputs in (7, size, size)
        )

    def predict_sequence(self, tokens, head):
        hidden = self.embedding(torch.nn.functional.pad(tokens, (1, 0))).cumsum(1)
        return self.project_predicted(hidden), hidden

    def head_logits(self, encoded, predicted, head):
        return self.output[head](torch.tanh(encoded + predicted))

    def simple_am(self, encoded, head):
        return self.am[head](encoded)

    def simple_lm(self, hidden, head):
        return self.lm[head](hidden)


@pytest.fixture
def training_batch():
    torch.manual_seed(0)
    _, _, (tokens, lengths, token_lengths) = random_batch(vocabulary=6)
    return TinyModel(), torch.randn(4, 14, 8), lengths, tokens, token_lengths


def test_training_loss_is_the_scaled_sum_per_frame(training_batch):
    model, encoded, *batch = training_batch
    config = LossConfig(prune_range=20)
    frames = batch[0].sum()
    full, values = transducer_loss(model, encoded, *batch, 0, LossConfig(full=True))
    assert full.dtype == torch.float32 and values == {"full": pytest.approx(full.item())}
    predicted, _ = model.predict_sequence(batch[1], 0)
    logits = model.head_logits(model.project_encoded(encoded)[:, :, None], predicted[:, None], 0)
    plain = plain_losses(logits, (batch[1], batch[0], batch[2]))
    assert full.item() == pytest.approx(sum(plain) / frames.item(), rel=1e-5)

    start, values = transducer_loss(model, encoded, *batch, 0, config, warm=0.0)
    end, same_values = transducer_loss(model, encoded, *batch, 0, config)
    assert values == same_values and values["pruned"] == pytest.approx(full.item(), rel=1e-5)
    assert start.item() == pytest.approx(values["smoothed"] + 0.1 * values["pruned"], rel=1e-5)
    assert end.item() == pytest.approx(0.5 * values["smoothed"] + values["pruned"], rel=1e-5)


def test_warm_up_of_the_scales():
    config = LossConfig(simple_scale=0.4)
    assert loss_scales(config, 0.0) == (1.0, pytest.approx(0.1))
    assert loss_scales(config, 0.5) == (pytest.approx(0.7), pytest.approx(0.55))
    assert loss_scales(config, 1.0) == loss_scales(config, 7.0) == (pytest.approx(0.4), pytest.approx(1.0))


@pytest.mark.parametrize("full", [False, True])
def test_a_model_learns_its_batch(training_batch, full):
    model, encoded, *batch = training_batch
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    config, losses = LossConfig(prune_range=3, full=full), []
    for step in range(60):
        loss, _ = transducer_loss(model, encoded, *batch, 0, config, warm=step / 20)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(transducer_loss(model, encoded, *batch, 0, LossConfig(full=True))[0].item())
    assert losses[-1] < 0.5 * losses[0]


def test_training_loss_checks_before_the_model_runs(training_batch):
    model, encoded, lengths, tokens, token_lengths = training_batch
    tokens[1, 0] = 8  # known to head 1, which has 9 symbols, and not to head 0
    assert transducer_loss(model, encoded, lengths, tokens, token_lengths, 1, LossConfig())[0].isfinite()
    with pytest.raises(UserError, match="symbol 8 at position 0 .*expected 1 .. 5"):
        transducer_loss(model, encoded, lengths, tokens, token_lengths, 0, LossConfig())


@pytest.mark.parametrize("full", [False, True])
def test_not_finite_is_nan_for_the_trainer(training_batch, full):
    model, encoded, *batch = training_batch
    encoded[1, 0, 0] = math.nan
    loss, values = transducer_loss(model, encoded, *batch, 0, LossConfig(full=full))
    assert loss.isnan() and values == {}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prune_range": 1}, "prune_range=1"),
        ({"simple_scale": -1.0}, "simple_scale=-1.0"),
        ({"lid_scale": -1.0}, "lid_scale=-1.0"),
        ({"lm_scale": 0.6, "am_scale": 0.4}, "am_scale=0.4: expected 0 to less than 0.4, for lm_scale=0.6"),
        ({"lm_scale": -0.1}, "lm_scale=-0.1"),
    ],
)
def test_config_is_checked(options, message):
    with pytest.raises(UserError, match=message):
        LossConfig(**options).check()
