"""The codebook against a plain loop over vectors; first batch, revival, padding, undoing a step, usage."""

import copy
import math

import pytest
import torch

from pyspeech.units.config import VqVaeConfig
from pyspeech.units.quantizer import LAPLACE, Quantizer, nearest_codes, totals, usage


def make_quantizer(codes=6, dim=3, seed=0, **options):
    torch.manual_seed(seed)
    return Quantizer(VqVaeConfig(codes=codes, code_dim=dim, **{"quantise_after": 0, **options}))


def make_batch(lengths=(7, 4, 9), dim=3, seed=1, scale=1.0):
    """Vectors (B, N, dim) and the mask of these lengths; behind the end stand huge values."""
    generator = torch.Generator().manual_seed(seed)
    vectors = scale * torch.randn(len(lengths), max(lengths), dim, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return vectors.masked_fill(~mask[:, :, None], 1e6), mask


def plain_nearest(vector, codebook):
    distances = [sum((a - b) ** 2 for a, b in zip(vector, code, strict=True)) for code in codebook]
    return distances.index(min(distances))


def plain_step(vectors, codebook, counts, sums, decay):
    """The update of the codebook, vector by vector, without revival; lists in and out."""
    new_counts, new_sums = [decay * n for n in counts], [[decay * x for x in row] for row in sums]
    for vector in vectors:
        code = plain_nearest(vector, codebook)
        new_counts[code] += 1 - decay
        new_sums[code] = [m + (1 - decay) * x for m, x in zip(new_sums[code], vector, strict=True)]
    total = sum(new_counts)
    smoothed = [(n + LAPLACE) / (total + len(counts) * LAPLACE) * total for n in new_counts]
    return [[m / n for m in row] for row, n in zip(new_sums, smoothed, strict=True)], new_counts, new_sums


def test_nearest_codes_and_totals_equal_a_plain_loop():
    vectors, codebook = torch.randn(50, 3, generator=torch.Generator().manual_seed(2)), make_quantizer().codebook
    codes = nearest_codes(vectors, codebook)
    assert codes.tolist() == [plain_nearest(vector, codebook.tolist()) for vector in vectors.tolist()]
    counts, sums = totals(vectors, codes, 6)
    for code in range(6):
        assert counts[code] == (codes == code).sum()
        torch.testing.assert_close(sums[code], vectors[codes == code].double().sum(dim=0))


def test_of_equals_the_first():
    codebook = torch.tensor([[5.0], [1.0], [1.0], [-1.0]])
    assert nearest_codes(torch.tensor([[0.0], [1.0], [9.0]]), codebook).tolist() == [1, 1, 0]


def test_training_equals_a_plain_loop():
    quantizer = make_quantizer(revive_below=0.0, ema_decay=0.9).train()
    quantizer(*make_batch())  # the first batch initialises
    codebook, counts, sums = (getattr(quantizer, name).tolist() for name in ("codebook", "counts", "sums"))
    for step in range(4):
        vectors, mask = make_batch(seed=10 + step)
        chosen = vectors[mask].tolist()
        expected = [plain_nearest(vector, codebook) for vector in chosen]
        before = torch.tensor(codebook)
        codebook, counts, sums = plain_step(chosen, codebook, counts, sums, 0.9)
        codes, quantised = quantizer(vectors, mask)
        assert codes[mask].tolist() == expected and not codes[~mask].any()
        torch.testing.assert_close(quantised[mask], before[expected])  # of the codebook as it was
        for name, values in (("codebook", codebook), ("counts", counts), ("sums", sums)):
            torch.testing.assert_close(getattr(quantizer, name), torch.tensor(values), rtol=1e-5, atol=1e-6)


def test_the_first_batch_gives_the_codes():
    quantizer = make_quantizer(codes=20).train()
    vectors, mask = make_batch()
    codes, quantised = quantizer(vectors, mask)
    # as many codes as vectors: each has one of its own
    torch.testing.assert_close(quantised[mask], vectors[mask])
    assert quantizer.initialised and usage(codes[mask], 20)[1] == 20


def test_before_there_is_a_codebook():
    quantizer = make_quantizer(codes=20, quantise_after=2).train()
    vectors, mask = make_batch()
    for _ in range(2):
        codes, quantised = quantizer(vectors, mask)
        assert torch.equal(quantised[mask], vectors[mask]) and not quantised[~mask].any() and not codes.any()
        assert not quantizer.initialised
    codes, _ = quantizer(vectors, mask)
    assert quantizer.initialised and usage(codes[mask], 20)[1] == 20


def test_fewer_vectors_than_codes():
    quantizer = make_quantizer(codes=6).train()
    vectors, mask = make_batch(lengths=(1,))
    for _ in range(3):
        codes, quantised = quantizer(vectors, mask)
        torch.testing.assert_close(quantised, vectors, rtol=1e-4, atol=1e-4)  # as near as Laplace lets them be
    quantizer(*make_batch(seed=5))
    assert torch.isfinite(quantizer.codebook).all()


def test_rare_codes_go_where_vectors_are():
    quantizer = make_quantizer(codes=6).train()
    quantizer(*make_batch())
    quantizer.codebook[2:] = 1e3  # four codes far from everything
    quantizer.sums.copy_(quantizer.codebook * 1.005)
    quantizer.counts.fill_(1.005)
    vectors, mask = make_batch(lengths=(20, 30), seed=6)
    quantizer(vectors, mask)  # 0.99 * 1.005 < 1
    exact = "donot_use_mm_for_euclid_dist"  # products of matrices round differently on other processors
    distances = torch.cdist(quantizer.codebook[2:], vectors[mask], compute_mode=exact).min(dim=1)
    assert (distances.values < 1e-4).all() and len(set(distances.indices.tolist())) == 4
    assert usage(quantizer(vectors, mask)[0][mask], 6)[1] == 6


def test_without_revival_they_stay():
    quantizer = make_quantizer(codes=6, revive_below=0.0).train()
    quantizer(*make_batch())
    quantizer.codebook[5], quantizer.sums[5], quantizer.counts[5] = 1e3, 5.0, 0.005
    quantizer(*make_batch(seed=6))
    assert (quantizer.codebook[5] > 500).all()


def test_most_codes_come_into_use():
    """From vectors in one place to vectors in many: codes follow them."""
    quantizer = make_quantizer(codes=32).train()
    quantizer(*make_batch(lengths=(400,), scale=1e-3))
    for step in range(60):
        codes, _ = quantizer(*make_batch(lengths=(400,), seed=step))
    perplexity, used = usage(codes[0], 32)
    assert used >= 30 and perplexity > 20


def test_padding_counts_nowhere():
    """The same codebook from a padded batch, from another padding and from the vectors alone."""
    vectors, mask = make_batch()
    other = torch.nn.functional.pad(vectors.masked_fill(~mask[:, :, None], float("nan")), (0, 0, 0, 3), value=7.0)
    found = []
    for batch in (
        (vectors, mask),
        (other, torch.nn.functional.pad(mask, (0, 3))),
        (vectors[mask][None], torch.ones(1, int(mask.sum()), dtype=torch.bool)),
    ):
        quantizer = make_quantizer().train()
        torch.manual_seed(4)
        for _ in range(3):
            quantizer(*batch)
        found.append(quantizer.codebook)
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


def test_evaluation_changes_nothing():
    quantizer = make_quantizer().train()
    quantizer(*make_batch())
    before = copy.deepcopy(quantizer.state_dict())
    quantizer.eval()(*make_batch(seed=3))
    assert all(torch.equal(value, before[name]) for name, value in quantizer.state_dict().items())


@pytest.mark.parametrize("first", [False, True])
def test_a_step_is_undone_by_its_buffers(first):
    """As pyspeech.training.trainer does after a loss that is not finite."""
    quantizer = make_quantizer().train()
    if not first:
        quantizer(*make_batch())
    buffers, random_state = [buffer.clone() for buffer in quantizer.buffers()], torch.get_rng_state()
    expected = copy.deepcopy(quantizer)
    vectors, mask = make_batch(seed=2)
    vectors[0, 0] = math.nan
    quantizer(vectors, mask)
    for buffer, before in zip(quantizer.buffers(), buffers, strict=True):
        buffer.copy_(before)
    for one in (quantizer, expected):
        torch.set_rng_state(random_state)
        one(*make_batch(seed=8))
    assert all(torch.equal(*pair) for pair in zip(quantizer.buffers(), expected.buffers(), strict=True))


def test_usage():
    assert usage(torch.tensor([3, 3, 3]), 8) == (1.0, 1)
    assert usage(torch.zeros(0, dtype=torch.int64), 8) == (0.0, 0)
    perplexity, used = usage(torch.arange(8).repeat(5), 8)
    assert perplexity == pytest.approx(8) and used == 8
    assert usage(torch.tensor([0, 0, 1]), 2)[0] == pytest.approx(math.exp(math.log(3) - 2 / 3 * math.log(2)))
