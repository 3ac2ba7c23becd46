"""Batches from any position of an epoch, with lhotse's samplers and any number of workers; random streams."""

import itertools
import logging
import random
import warnings
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyspeech.compat import prepare_lhotse
from pyspeech.engine import process
from pyspeech.errors import UserError
from pyspeech.training import data
from pyspeech.training.data import BatchLoader, item_names, to_device
from pyspeech.training.randomness import RandomStream, get_random_state, seed_everything, set_random_state

NUM_CUTS = 60


def make_cuts():
    from lhotse import CutSet, MonoCut, Recording

    def make_cut(index, duration):
        recording = Recording(f"recording-{index:02d}", [], 8000, round(duration * 8000), duration)
        return MonoCut(f"cut-{index:02d}", start=0, duration=duration, channel=0, recording=recording)

    durations = np.random.RandomState(0).uniform(1, 9, NUM_CUTS).round(2).tolist()
    return CutSet.from_cuts(itertools.starmap(make_cut, enumerate(durations)))


class RandomCrops:
    """Stands for a data set: the ids of its cuts and random numbers; `read` counts the batches made in this process."""

    def __init__(self):
        self.read = 0

    def __getitem__(self, cuts):
        self.read += 1
        return {"ids": [cut.id for cut in cuts], "crop": random.random(), "noise": torch.randn(2), "gain": np.random.rand(3)}


def simple_sampler():
    from lhotse.dataset import SimpleCutSampler

    return SimpleCutSampler(make_cuts(), max_duration=20, shuffle=True, seed=3)


def bucketing_sampler():
    from lhotse.dataset import DynamicBucketingSampler

    sampler = DynamicBucketingSampler(make_cuts(), max_duration=25, num_buckets=3, shuffle=True, seed=3, buffer_size=40)
    # A transform that draws from the global generator, in the main process, ahead of training.
    return sampler.map(lambda cuts: cuts.modify_ids(lambda id: f"{id}-{random.random():.4f}"))


def plain(batches):
    return [
        (list(names), batch["ids"], batch["crop"], batch["noise"].tolist(), batch["gain"].tolist()) for names, batch in batches
    ]


@pytest.fixture(autouse=True)
def lhotse_on_torch_1():
    prepare_lhotse()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*worker processes in total.*")
        warnings.filterwarnings("ignore", ".*eagerly read CutSet.*")
        yield


@pytest.mark.parametrize("make_sampler", [simple_sampler, bucketing_sampler])
@pytest.mark.parametrize("num_workers", [0, 1, 2, 4])
def test_resumed_equals_the_rest_of_the_epoch(make_sampler, num_workers):
    whole = BatchLoader(RandomCrops(), make_sampler(), seed=5)
    epochs = [plain(whole(epoch)) for epoch in (0, 1)]
    assert all(
        sorted(id.split("-0.")[0] for batch in epoch for id in batch[0]) == [f"cut-{index:02d}" for index in range(NUM_CUTS)]
        for epoch in epochs
    )
    assert epochs[0] != epochs[1]
    assert len({batch[2] for epoch in epochs for batch in epoch}) == sum(map(len, epochs))

    loader = BatchLoader(RandomCrops(), make_sampler(), seed=5, num_workers=num_workers)
    for epoch, consumed in ((0, 3), (0, 0), (1, 7), (1, len(epochs[1]) - 1), (1, len(epochs[1]))):
        assert plain(loader(epoch, consumed)) == epochs[epoch][consumed:]
    other = BatchLoader(RandomCrops(), make_sampler(), seed=6, num_workers=num_workers)
    assert [batch[2] for batch in plain(other(0))] != [batch[2] for batch in epochs[0]]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_epoch_given_up_leaves_no_trace(num_workers):
    loader = BatchLoader(RandomCrops(), simple_sampler(), seed=5, num_workers=num_workers)
    expected = plain(loader(1))
    iterator = loader(0)
    next(iterator)
    assert plain(loader(1)) == expected


def test_skipped_batches_are_not_read():
    dataset = RandomCrops()
    batches = list(BatchLoader(dataset, simple_sampler(), seed=5)(0))
    assert dataset.read == len(batches) > 10
    dataset.read = 0
    assert len(list(BatchLoader(dataset, simple_sampler(), seed=5)(0, len(batches) - 2))) == 2
    assert dataset.read == 2


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_loop_keeps_its_random_numbers(num_workers):
    def draw():
        return random.random(), np.random.randn(), torch.rand(1).item()

    seed_everything(1)
    alone = [draw() for _ in range(6)]
    seed_everything(1)
    loader = BatchLoader(RandomCrops(), simple_sampler(), seed=5, num_workers=num_workers)
    assert [draw() for _, _ in zip(loader(0), range(3), strict=False)] + [
        draw() for _, _ in zip(loader(0, 4), range(3), strict=False)
    ] == alone


class Broken:
    def __getitem__(self, item):
        raise UserError(f"{item}.wav: truncated")


@pytest.mark.parametrize("num_workers", [0, 1])
def test_error_of_the_data_set_stays_one_line(num_workers):
    with pytest.raises(UserError, match=r"^a\.wav: truncated$"):
        next(BatchLoader(Broken(), ["a"], seed=0, num_workers=num_workers)(0))


def test_a_sampler_that_splits_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="SimpleCutSampler: made with world_size=2; expected 1"):
        BatchLoader(RandomCrops(), simple_sampler(), seed=5)


def test_empty_sampler():
    assert list(BatchLoader(RandomCrops(), [], seed=0)(0)) == []


def test_item_names():
    cuts = make_cuts().subset(first=2)
    assert item_names(cuts) == item_names(list(cuts)) == ["cut-00", "cut-01"]
    assert item_names((cuts, cuts)) == ["cut-00", "cut-01"] * 2
    assert item_names([3, 1]) == ["3", "1"]
    assert item_names("a.wav") == ["a.wav"]


def test_to_device():
    Pair = namedtuple("Pair", "x y")
    batch = {"a": [torch.ones(2), "text"], "b": (torch.ones(1), None), "c": Pair(torch.ones(1), 3)}
    moved = to_device(batch, torch.device("meta"))
    assert [moved["a"][0].device.type, moved["b"][0].device.type, moved["c"].x.device.type] == ["meta"] * 3
    assert moved["a"][1] == "text" and moved["b"][1] is None and moved["c"].y == 3 and isinstance(moved["c"], Pair)


def draws():
    return random.random(), random.gauss(0, 1), *np.random.randn(3), *torch.randn(3).tolist()


def test_random_state_comes_back():
    seed_everything(0)
    draws()  # leaves a second normal number cached in python's and numpy's generator
    state = get_random_state()
    expected = [draws(), draws()]
    set_random_state(state)
    assert [draws(), draws()] == expected


def test_random_stream():
    seed_everything(0)
    outside = [draws() for _ in range(3)]
    seed_everything(0)
    stream, first, inside = RandomStream(1, 2, 3), [], []
    for _ in range(3):
        first.append(draws())
        with stream:
            inside.append(draws())
    assert first == outside
    with RandomStream(1, 2, 3):
        assert [draws() for _ in range(3)] == inside
    others = set()
    for key in ((1, 2), (1, 2, 3), (2, 2, 3), (1, 2, 4), (1, 3, 3)):
        with RandomStream(*key):
            others.add(draws())
    assert len(others) == 5 and not others & set(outside)
    before = random.getstate()
    with pytest.raises(KeyError), RandomStream(1):
        raise KeyError(draws())
    assert random.getstate() == before


@pytest.mark.parametrize(
    "asked, device, cores, shared, expected",
    [
        (3, "cpu", 16, 9, 3),
        (0, "cuda", 16, 9, 0),
        (None, "cpu", 16, 9, 0),
        (None, "cuda", 16, 9, 8),
        (None, "cuda", 4, 9, 3),
        (None, "cuda", 1, 9, 0),
        (None, "cuda", 16, 0.06, 0),
    ],
)
def test_workers_by_the_cores_of_the_stage(asked, device, cores, shared, expected, monkeypatch, caplog):
    monkeypatch.setattr(data, "default_device", lambda: torch.device(device))
    monkeypatch.setattr(process, "num_cores", lambda: 64)
    monkeypatch.setenv(process.CORES, str(cores))
    monkeypatch.setattr(data.shutil, "disk_usage", lambda path: SimpleNamespace(free=int(shared * 2**30)))
    assert data.choose_workers(asked, logging.getLogger()) == expected
    assert ("/dev/shm has 61 MB" in caplog.text) == (shared < 1)
