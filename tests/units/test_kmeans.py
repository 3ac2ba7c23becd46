"""k-means against scikit-learn and a plain loop; seeds, empty clusters, equal frames, averages of frames."""

import numpy as np
import pytest
import sklearn.cluster
import torch

from pyspeech.errors import UserError
from pyspeech.units import kmeans
from pyspeech.units.kmeans import assign, average_frames, draw_frames, fit


def blobs(count, centres=8, dim=5, seed=0, spread=0.1):
    generator = torch.Generator().manual_seed(seed)
    places = torch.randn(centres, dim, generator=generator)
    return places[torch.arange(count) % centres] + spread * torch.randn(count, dim, generator=generator), places


def inertia(frames, centres):
    return float((frames.double() - centres.double()[assign(frames, centres)]).square().sum())


def test_finds_separate_clusters():
    frames, places = blobs(2000)
    centres = fit(frames, 8, seed=1)
    assert centres.dtype == torch.float32
    distances = torch.cdist(places, centres).min(dim=1)
    assert distances.values.max() < 0.05 and len(set(distances.indices.tolist())) == 8
    assert len(set(map(tuple, [assign(frames, centres)[place::8].unique().tolist() for place in range(8)]))) == 8


@pytest.mark.parametrize("k", [1, 5, 30])
def test_as_good_as_scikit_learn(k):
    frames = torch.randn(1500, 6, generator=torch.Generator().manual_seed(3))
    peer = sklearn.cluster.KMeans(k, n_init=1, random_state=0).fit(frames.double().numpy())
    assert inertia(frames, fit(frames, k, seed=0)) < 1.03 * peer.inertia_


def test_steps_equal_a_plain_loop(monkeypatch):
    monkeypatch.setattr(kmeans, "SLAB", 64)  # several slabs
    frames, _ = blobs(300, spread=1.0)
    start = fit(frames, 4, seed=2, steps=0)
    centres = start.double().numpy()
    for steps in (1, 2):
        codes = [int(np.argmin([((frame - centre) ** 2).sum() for centre in centres])) for frame in frames.double().numpy()]
        centres = np.array([frames.double().numpy()[np.array(codes) == code].mean(axis=0) for code in range(4)])
        np.testing.assert_allclose(fit(frames, 4, seed=2, steps=steps), centres, rtol=1e-5, atol=1e-6)


def test_same_seed_same_centres():
    frames, _ = blobs(500, spread=1.0)
    state = torch.get_rng_state()
    assert torch.equal(fit(frames, 20, seed=5), fit(frames, 20, seed=5))
    assert not torch.equal(fit(frames, 20, seed=5), fit(frames, 20, seed=6))
    assert torch.equal(torch.get_rng_state(), state)


def test_few_or_equal_frames():
    frames = torch.arange(6.0).view(3, 2)
    assert sorted(map(tuple, fit(frames, 3, seed=0).tolist())) == [(0, 1), (2, 3), (4, 5)]
    centres = fit(torch.ones(10, 2), 4, seed=0)  # nothing to tell apart
    assert torch.equal(centres, torch.ones(4, 2)) and assign(torch.ones(10, 2), centres).tolist() == [0] * 10
    for broken, k in ((frames, 4), (frames, 0), (frames.log(), 2)):
        with pytest.raises(UserError, match="^k-means: "):
            fit(broken, k, seed=0)


def test_assign():
    centres = torch.tensor([[0.0], [2.0], [2.0]])
    assert assign(torch.tensor([[-5.0], [1.5], [9.0]]), centres).tolist() == [0, 1, 1]
    assert assign(torch.zeros(0, 1), centres).shape == (0,)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_average_frames_equals_a_plain_loop(count):
    frames = torch.randn(count, 3)
    expected = [frames[start : start + 4].mean(dim=0) for start in range(0, count, 4)]
    averaged = average_frames(frames, 4)
    assert averaged.shape == (-(-count // 4), 3)
    for row, value in zip(averaged, expected, strict=True):
        torch.testing.assert_close(row, value)


def test_frames_are_drawn_evenly():
    parts = [torch.arange(first, first + 50).float()[:, None] for first in range(0, 1000, 50)]
    assert draw_frames(parts, 1000, 0).flatten().tolist() == list(range(1000))
    counts = torch.zeros(1000)
    for seed in range(200):
        drawn = draw_frames(parts, 100, seed).flatten().long()
        assert len(drawn) == len(set(drawn.tolist())) == 100 and drawn.tolist() == sorted(drawn.tolist())
        counts[drawn] += 1
    assert counts.view(20, 50).mean(dim=1).sub(20).abs().max() < 2  # a tenth of 200, in each part
    with pytest.raises(UserError, match="frames of 1 and of 2 numbers"):
        draw_frames([torch.zeros(3, 1), torch.zeros(3, 2)], 5, 0)
