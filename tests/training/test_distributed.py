"""Training on several processes: the batches, random numbers and weights of one process, whatever their number; exact
resuming with another number; what all of them do together where one is asked to stop, fails, hangs or is gone."""

import math
import os
import signal
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import torch
from process_harness import all_done, in_processes, received

from pyspeech.compat import load_checkpoint
from pyspeech.engine.place import Place, from_environment
from pyspeech.errors import UserError
from pyspeech.training import checkpoint, distributed, trainer
from pyspeech.training.data import BatchLoader
from pyspeech.training.run import train
from pyspeech.training.step import Stepper
from tests.training.test_resume import CONFIG, all_results, assert_same, build_trainer, compute_loss, run_undisturbed, validate


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_undisturbed(tmp_path_factory.mktemp("undisturbed"))


def calling(action, rank, call):
    """compute_loss that calls `action` in process `rank` when it is called for the time `call` there, from 1."""
    calls = []

    def loss(model, batch):
        calls.append(None)
        if distributed.rank() == rank and len(calls) == call:
            action()
        return compute_loss(model, batch)

    return loss


def run_in(size, folder, loss=compute_loss, patience=30):
    return in_processes(size, lambda: str(build_trainer(folder, CONFIG, loss).run()), patience=patience)


def test_two_processes_with_a_batch_each_are_one_with_two(tmp_path, undisturbed):
    """Bit for bit, dropout, batch normalisation, an uneven end of each epoch, averaging and all; validated by one."""
    calls = []

    def counted(model):
        calls.append(None)
        return validate(model)

    def work():
        build_trainer(tmp_path, validate=counted).run()
        return len(calls)

    assert all_done(2, work) == [5 + 1, 0]
    assert_same(all_results(tmp_path), undisturbed)


class Heads(torch.nn.Module):
    """A head for each kind of batch, as of a language: what no batch of a step uses has no gradient."""

    def __init__(self):
        super().__init__()
        # No bias: its gradient would be rounding alone, which Adam makes steps of.
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2))
        self.heads = torch.nn.ModuleList(torch.nn.Linear(8, 1) for _ in range(4))

    def forward(self, x, kind):
        return self.heads[kind](self.body(x))


class Kinds:
    def __getitem__(self, index):
        return {"x": torch.randn(6, 4), "kind": index % 7 % 4, "seconds": 2.0}


def heads_loss(model, batch):
    loss = (model(batch["x"], batch["kind"]) - batch["kind"]).square().mean()
    return loss, {"noise": float(np.random.rand()), "audio_seconds": batch["seconds"]}


@pytest.mark.parametrize("bf16", [False, True])
def test_one_two_and_three_processes(tmp_path, bf16, monkeypatch):
    monkeypatch.setattr("pyspeech.training.trainer.computes_in_bf16", lambda device: True)
    config = replace(CONFIG, accumulate=4, bf16=bf16, average_best=1, log_every=1, valid_every=None, save_every=100)
    found = {}
    for size in (1, 2, 3):
        folder = tmp_path / str(size)
        models = all_done(
            size, lambda folder=folder: train(Heads, Kinds(), list(range(11)), heads_loss, config, folder) is not None
        )
        assert models == [True] + [False] * (size - 1)  # the model is the first one's
        found[size] = load_checkpoint(folder / "best.pt")
    assert len(found[1]["history"]) == 4 * 3  # of 4, 4 and 3 batches
    for size in (2, 3):
        for one, other in zip(found[1]["history"], found[size]["history"], strict=False):
            assert one["train/noise"] == other["train/noise"]
            assert one == pytest.approx(other, rel=1e-5)
        for name, value in found[1]["model"].items():
            torch.testing.assert_close(found[size]["model"][name], value, rtol=2e-3 if bf16 else 1e-4, atol=1e-5)
    assert all(math.isfinite(point["train/loss"]) for point in found[3]["history"])


class Twice(torch.nn.Module):
    """A line, and the mean of the batches that it has seen, with a momentum of a half."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x):
        self.mean.mul_(0.5).add_(x.mean(), alpha=0.5)
        return self.line(x)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_buffers_are_those_after_the_first_batch_of_each_step(size):
    """Of batches 1, 2, 3 and 4, 5, 6: 1, then 4."""

    def work():
        model = Twice()
        stepper = Stepper(
            model, torch.optim.SGD(model.parameters(), 0.0), lambda model, x: (model(x).mean(), {}), None, 1, False
        )
        for first in (0, 3):
            own = [index for index in range(first, first + 3) if index % size == distributed.rank()]
            batches = [(index, [str(index)], torch.full((2, 1), index + 1.0)) for index in own]
            assert stepper.step(0, first, lambda batches=batches: batches, lambda: 0).count == 3
        return model.mean.item()

    assert all_done(size, work) == [0.25 * 1 + 0.5 * 4] * size


def end(number):
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("rank", [0, 1])
def test_killed_and_resumed_with_another_number(tmp_path, undisturbed, rank):
    """Where one is killed in the middle of an epoch, the other ends at once, though it may wait for a quarter of an hour."""
    found = run_in(2, tmp_path, calling(end(signal.SIGKILL), rank, 8))
    assert found[rank] == ("lost", "")
    assert found[1 - rank][0] == "Elsewhere" and "another process of this training has ended" in found[1 - rank][1]
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint"))[-1] == 6
    loss = calling(lambda: exec("raise UserError('stop')"), 0, 9)
    with pytest.raises(UserError, match="stop"):
        build_trainer(tmp_path, loss=loss).run()
    assert run_in(2, tmp_path) == [("done", str(tmp_path / "best.pt"))] * 2
    assert_same(all_results(tmp_path), undisturbed)
    assert run_in(2, tmp_path, calling(end(signal.SIGKILL), 0, 1))[1][0] == "done"  # it is finished: no step is made


@pytest.mark.parametrize("rank", [0, 1])
def test_all_stop_where_one_is_asked_to(tmp_path, undisturbed, rank):
    step = 8 + rank  # process 1 has no batch in the last step of an epoch
    found = run_in(2, tmp_path, calling(end(signal.SIGUSR2), rank, 8))
    assert [name for name, _ in found] == ["TrainingInterrupted"] * 2
    assert all(f"stopped by SIGUSR2 at step {step}, saved in" in text for _, text in found)
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint"))[-1] == step
    build_trainer(tmp_path).run()
    assert_same(all_results(tmp_path), undisturbed)


def test_a_process_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "TIMEOUT", timedelta(seconds=3))
    found = run_in(2, tmp_path, calling(lambda: time.sleep(30), 1, 8), patience=0)
    assert found[0][0] == "Elsewhere" and "has not answered for 0.05 minutes" in found[0][1]


def test_a_bad_batch_of_one_is_skipped_by_all(tmp_path, caplog):
    """Batch 3 of the epoch, and a gradient that is not finite, in batch 6: as one process does it."""

    def bad(model, batch):
        loss, values = compute_loss(model, batch)
        if batch["index"] == 3:
            loss = loss * math.nan
        if batch["index"] == 6:
            loss = loss + (model[0].weight.sum() * 0).abs().sqrt()
        return loss, values

    class Indexed:
        def __getitem__(self, index):
            return {"x": torch.randn(4, 1, 12), "y": torch.arange(4) % 3, "index": index}

    def work(folder):
        made = build_trainer(folder, loss=bad)
        made.batches = BatchLoader(Indexed(), list(range(11)), CONFIG.seed)
        made.run()
        return made.position.skipped

    assert work(tmp_path / "one") == 8
    assert caplog.text.count("batch of 3\n") == 4 and caplog.text.count("batch of 6, 7\n") == 4
    assert all_done(2, lambda: work(tmp_path / "two")) == [8, 8]
    assert_same(all_results(tmp_path / "two"), all_results(tmp_path / "one"))


def test_errors_reach_all(tmp_path, monkeypatch):
    """A file that one process cannot read ends both with its line; a disk that is full too, which the first one says."""

    def truncated():
        raise UserError("a.wav: truncated")

    assert run_in(2, tmp_path / "file", calling(truncated, 1, 3)) == [("UserError", "a.wav: truncated")] * 2

    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(trainer, "save_checkpoint", full)
    first, second = run_in(2, tmp_path / "disk")
    assert first[0] == "OSError" and "No space left on device" in first[1]
    assert second[0] == "Elsewhere" and "No space left on device" in second[1]


def test_no_fewer_batches_than_processes(tmp_path):
    found = run_in(3, tmp_path)
    said = [text for _, text in found]  # where one ends first, another may hear of that alone
    assert any("accumulate=2: expected at least 3: each of the 3 processes needs a batch" in text for text in said), said
    assert len(said) == 3 and all(said)


def test_processes_of_different_trainings(tmp_path):
    def work():
        train(Heads, Kinds(), [1, 2], heads_loss, CONFIG, tmp_path / str(distributed.rank()))

    assert all("other processes train in another folder" in text for _, text in in_processes(2, work))


def test_what_processes_agree_on():
    def work():
        rank = distributed.rank()
        total, copied = torch.full((2, 3), 1.0 + rank), [torch.tensor(rank == 1), torch.arange(3) * rank, torch.ones(()) * rank]
        distributed.add_up([total, total[0] * 0])
        distributed.copy_from(copied, 1)
        return (distributed.world_size(), distributed.gather({"rank": rank}), distributed.from_first(lambda: f"of {rank}"),
                total.tolist(), [value.tolist() for value in copied])  # fmt: skip

    expected = (2, [{"rank": 0}, {"rank": 1}], "of 0", [[3.0] * 3] * 2, [True, [0, 1, 2], 1.0])
    assert all_done(2, work) == [expected] * 2
    assert (distributed.rank(), distributed.world_size(), distributed.gather("a")) == (0, 1, ["a"])


def test_each_batch_is_read_by_one_process(monkeypatch):
    whole = list(BatchLoader(Kinds(), list(range(11)), seed=5)(2, 3))
    shares = {}
    for rank in range(3):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        monkeypatch.setattr(distributed, "world_size", lambda: 3)
        shares[rank] = list(BatchLoader(Kinds(), list(range(11)), seed=5, num_workers=rank)(2, 3))
    assert [names for names, _ in shares[0]] == [["3"], ["6"], ["9"]]  # by the index in the epoch, wherever one goes on
    for number, (names, batch) in enumerate(whole, start=3):
        found = shares[number % 3].pop(0)
        assert found[0] == names and torch.equal(found[1]["x"], batch["x"])


MASTER = {"MASTER_ADDR": "n1", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({}, Place()),
        ({"WORLD_SIZE": "1", "RANK": "0"}, Place()),
        ({"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}, Place(3, 4, 1)),
        (
            {"WORLD_SIZE": "4", "SLURM_PROCID": "2", "SLURM_LOCALID": "0", "MASTER_ADDR": "n1", "MASTER_PORT": "1"},
            Place(2, 4, 0),
        ),
        ({"WORLD_SIZE": "2", "RANK": "1"}, "WORLD_SIZE=2 in the environment without MASTER_ADDR, MASTER_PORT, LOCAL_RANK"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE=two in the environment: expected a number"),
        ({"WORLD_SIZE": "2", "RANK": "2", "LOCAL_RANK": "0", **MASTER}, "less than WORLD_SIZE=2"),
    ],
)
def test_the_place_that_the_environment_names(monkeypatch, variables, expected):
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if isinstance(expected, Place):
        assert from_environment() == expected
    else:
        with pytest.raises(UserError, match=expected):
            from_environment()


@pytest.mark.parametrize("written", [b"", b"\0\0", b"\0\0\0\x64half"])
def test_the_answer_of_one_killed_while_it_wrote_is_lost(written):
    reader, writer = torch.multiprocessing.Pipe(duplex=False)
    os.write(writer.fileno(), written)
    writer.close()
    assert received(reader) == ("lost", "")
