"""The transducer's lattice on both backends, against a plain recursion; prune ranges against k2's."""

import logging
import math

import pytest
import torch
from tool_harness import as_new

from pyspeech.asr import lattice
from pyspeech.asr.lattice import backend_name, log_likelihood
from pyspeech.asr.pruning import gather_encoded, gather_predicted, prune_ranges, range_size
from pyspeech.errors import UserError

try:
    import k2
except ImportError:
    k2 = None

BACKENDS = ["torch", pytest.param("k2", marks=pytest.mark.skipif(k2 is None, reason="k2 is not installed"))]
needs_k2 = pytest.mark.skipif(k2 is None, reason="k2 is not installed")
SHAPES = [(4, 6, 9), (2, 0, 5), (1, 1, 1), (3, 9, 2), (3, 5, 1), (5, 3, 12)]  # B, S, T


def random_lattice(batch, symbols, frames, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lengths = torch.randint(1, frames + 1, (batch,), generator=generator)
    token_lengths = torch.randint(0, symbols + 1, (batch,), generator=generator)
    lengths[0], token_lengths[0] = frames, symbols
    return draw(batch, symbols, frames), draw(batch, symbols + 1, frames), lengths, token_lengths


def plain_log_likelihood(px, py, num_frames, num_symbols):
    """The definition, one utterance: px, py nested lists."""
    alpha = {(0, 0): 0.0}
    for s in range(num_symbols + 1):
        for t in range(num_frames + 1):
            terms = []
            if s > 0 and t < num_frames:
                terms.append(alpha[s - 1, t] + px[s - 1][t])
            if t > 0:
                terms.append(alpha[s, t - 1] + py[s][t - 1])
            if terms:
                top = max(terms)
                alpha[s, t] = top + math.log(sum(math.exp(term - top) for term in terms)) if top > -math.inf else top
            else:
                alpha.setdefault((s, t), -math.inf)
    return alpha[num_symbols, num_frames]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_against_the_definition(shape, backend):
    px, py, lengths, token_lengths = random_lattice(*shape)
    totals = log_likelihood(px, py, lengths, token_lengths, backend)[0]
    expected = [
        plain_log_likelihood(px[b].tolist(), py[b].tolist(), int(lengths[b]), int(token_lengths[b])) for b in range(shape[0])
    ]
    assert totals.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_is_numerically_right_and_is_the_occupation(backend):
    px, py, lengths, token_lengths = random_lattice(3, 3, 4)
    px.requires_grad_(), py.requires_grad_()

    def total(px, py):
        return log_likelihood(px, py, lengths, token_lengths, backend)[0]

    assert torch.autograd.gradcheck(total, (px, py))
    totals, px_occupation, py_occupation = log_likelihood(px, py, lengths, token_lengths, backend)
    (totals * torch.tensor([1.0, 2.0, -3.0])).sum().backward()
    weight = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(px.grad, weight * px_occupation)
    torch.testing.assert_close(py.grad, weight * py_occupation)
    # Every path emits each symbol once and leaves each frame once.
    for item, (frames, symbols) in enumerate(zip(lengths.tolist(), token_lengths.tolist(), strict=True)):
        assert px_occupation[item].sum(dim=1).tolist() == pytest.approx([1.0] * symbols + [0.0] * (3 - symbols))
        assert py_occupation[item].sum(dim=0).tolist() == pytest.approx([1.0] * frames + [0.0] * (4 - frames))


@needs_k2
@pytest.mark.parametrize("shape", SHAPES + [(3, 40, 150)])
def test_backends_agree(shape):
    px, py, lengths, token_lengths = random_lattice(*shape, seed=1)
    ours = log_likelihood(px, py, lengths, token_lengths, "torch")
    theirs = log_likelihood(px, py, lengths, token_lengths, "k2")
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_padding_is_never_looked_at(backend):
    px, py, lengths, token_lengths = random_lattice(4, 6, 9)
    before = log_likelihood(px, py, lengths, token_lengths, backend)[0]
    for item, (frames, symbols) in enumerate(zip(lengths, token_lengths, strict=True)):
        px[item, symbols:], px[item, :, frames:] = 1e3, 1e3
        py[item, symbols + 1 :], py[item, :, frames:] = 1e3, 1e3
    totals, px_occupation, py_occupation = log_likelihood(px, py, lengths, token_lengths, backend)
    torch.testing.assert_close(totals, before)
    for item, (frames, symbols) in enumerate(zip(lengths, token_lengths, strict=True)):
        assert px_occupation[item, symbols:].abs().sum() == 0 and px_occupation[item, :, frames:].abs().sum() == 0
        assert py_occupation[item, symbols + 1 :].abs().sum() == 0 and py_occupation[item, :, frames:].abs().sum() == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_path_is_minus_infinity(backend):
    px, py, lengths, token_lengths = random_lattice(2, 3, 4)
    px[0, 1] = -math.inf
    totals = log_likelihood(px, py, lengths, token_lengths, backend)[0]
    assert totals[0] == -math.inf and totals[1].isfinite()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_long_utterance_keeps_its_digits(backend):
    """All arcs alike: the log of the number of paths, binomial(S + T - 1, S), and of the arcs' probabilities."""
    symbols, frames = 300, 2000
    px, py = torch.full((1, symbols, frames), -2.5), torch.full((1, symbols + 1, frames), -0.25)
    total = log_likelihood(px, py, torch.tensor([frames]), torch.tensor([symbols]), backend)[0].item()
    paths = math.lgamma(symbols + frames) - math.lgamma(symbols + 1) - math.lgamma(frames)
    assert total == pytest.approx(paths - 2.5 * symbols - 0.25 * frames, abs=1e-7)


def test_backend_names(caplog):
    with pytest.raises(UserError, match="unknown backend 'k3'.*auto, k2, torch"):
        backend_name("k3")
    assert backend_name("torch") == "torch"
    assert backend_name() == backend_name("auto", torch.device("cpu")) == ("torch" if k2 is None else "k2")
    if k2 is None:
        with pytest.raises(UserError, match="k2 is not installed"):
            backend_name("k2")
    else:
        with pytest.raises(UserError, match="does not compute on meta"):
            backend_name("k2", "meta")

    new = as_new(lattice)
    with caplog.at_level(logging.INFO, logger=new.__name__):
        for _ in range(3):
            new.log_likelihood(*random_lattice(1, 2, 3))
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        f"transducer loss computed by {backend_name()}"
    ]


# Prune ranges


def occupations(batch, symbols, frames, seed=0, least_frames=1):
    """Of random lattices whose arcs differ much, so that the occupation is nearly that of one path."""
    px, py, lengths, token_lengths = random_lattice(batch, symbols, frames, seed)
    lengths = lengths.clamp(min=least_frames)
    return (*log_likelihood(3 * px, 3 * py, lengths, token_lengths, "torch")[1:], lengths, token_lengths)


def plain_prune_ranges(px_occupation, py_occupation, num_frames, num_symbols, size):
    """First rows of one utterance, by loops: px_occupation (S, T), py_occupation (S + 1, T)."""
    rows, columns = py_occupation.shape
    begin = []
    for t in range(columns):
        kept = []
        for s in range(rows - size + 1):
            cut = px_occupation[s - 1, t] if s else 0.0
            kept.append(float(py_occupation[s : s + size, t].sum() - cut))
        begin.append(kept.index(max(kept)) if t < num_frames - 1 else max(0, num_symbols + 1 - size))
    for t in reversed(range(columns - 1)):
        begin[t] = min(begin[t], begin[t + 1])
    for t in reversed(range(columns - 1)):
        begin[t] = max(begin[t], begin[t + 1] - (size - 1))
    return [min(first, t * (size - 1)) for t, first in enumerate(begin)]


@pytest.mark.parametrize("prune_range", [2, 3, 5, 50])
@pytest.mark.parametrize("shape", [(5, 12, 30), (4, 20, 25), (3, 7, 4), (2, 0, 6), (1, 1, 1), (6, 30, 5)])
def test_ranges_against_loops_and_their_promises(shape, prune_range):
    px_occupation, py_occupation, lengths, token_lengths = occupations(*shape)
    ranges = prune_ranges(px_occupation, py_occupation, lengths, token_lengths, prune_range)
    size = ranges.shape[2]
    assert size == range_size(prune_range, lengths, token_lengths, shape[1] + 1)
    assert min(prune_range, shape[1] + 1) <= size <= shape[1] + 1
    assert ranges.min() >= 0 and ranges.max() <= shape[1]
    assert (ranges[:, :, 1:] - ranges[:, :, :-1] == 1).all()
    first = ranges[:, :, 0]
    moves = first[:, 1:] - first[:, :-1]
    assert (first[:, 0] == 0).all() and (moves >= 0).all() and (moves < max(size, 2)).all()
    for item, (frames, symbols) in enumerate(zip(lengths.tolist(), token_lengths.tolist(), strict=True)):
        assert symbols in ranges[item, frames - 1]
        expected = plain_prune_ranges(px_occupation[item], py_occupation[item], frames, symbols, size)
        assert first[item].tolist() == expected


@needs_k2
@pytest.mark.parametrize("prune_range", [2, 3, 5, 50])
@pytest.mark.parametrize("seed", range(4))
def test_ranges_equal_those_of_k2(seed, prune_range):
    px_occupation, py_occupation, lengths, token_lengths = occupations(6, 12, 30, seed, least_frames=12)
    zeros = torch.zeros_like(lengths)
    boundary = torch.stack([zeros, zeros, token_lengths, lengths], dim=1)
    column = px_occupation.new_zeros(6, 12, 1)
    ours = prune_ranges(px_occupation, py_occupation, lengths, token_lengths, prune_range)
    px_occupation, py_occupation = torch.cat([px_occupation, column], dim=2), py_occupation.contiguous()
    assert torch.equal(ours, k2.get_rnnt_prune_ranges(px_occupation, py_occupation, boundary, prune_range))


def test_range_size():
    lengths, token_lengths = torch.tensor([10, 3]), torch.tensor([8, 8])
    assert range_size(5, lengths, token_lengths, 9) == 5
    assert range_size(2, lengths, token_lengths, 9) == 4  # 8 symbols in 3 frames: steps of 3 rows
    assert range_size(5, lengths[:1], token_lengths[:1] * 0, 1) == 1
    with pytest.raises(UserError, match="prune_range=1.*at least 2"):
        range_size(1, lengths, token_lengths, 9)


def test_gathers():
    generator = torch.Generator().manual_seed(0)
    predicted = torch.randn(3, 7, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    ranges = torch.randint(0, 4, (3, 5, 1), generator=generator) + torch.arange(3)
    gathered = gather_predicted(predicted, ranges)
    for item in range(3):
        assert torch.equal(gathered[item], predicted[item][ranges[item]])
    assert torch.autograd.gradcheck(lambda rows: gather_predicted(rows, ranges), predicted)
    encoded = torch.randn(3, 5, 4)
    assert torch.equal(gather_encoded(encoded, ranges), encoded[:, :, None])
