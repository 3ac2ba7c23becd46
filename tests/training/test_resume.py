"""Exact resume: training that is killed and started again ends with the weights, bit for bit, of an undisturbed run.

Run as a program, this file is the training process that gets killed: FOLDER NUM_WORKERS [KILL_AT [SIGNAL]].
"""

import io
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pyspeech.compat import load_checkpoint
from pyspeech.errors import UserError
from pyspeech.training import checkpoint
from pyspeech.training.config import TrainConfig
from pyspeech.training.data import BatchLoader
from pyspeech.training.interruption import TrainingInterrupted
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer, without_times

# 11 batches an epoch, two a step: the last step of an epoch has one. 4 epochs are 44 batches, 24 steps.
CONFIG = TrainConfig(
    max_epochs=4,
    accumulate=2,
    save_every=3,
    valid_every=5,
    average_best=2,
    log_every=2,
    lr=0.01,
    weight_decay=0.1,
    warmup_steps=4,
    seed=7,
)


class NoisyCrops:
    """Batches that draw from all three global generators."""

    def __getitem__(self, indexes):
        x = torch.randn(len(indexes), 1, 12) + torch.tensor(indexes)[:, None, None] / 10
        x = x + torch.from_numpy(np.random.randn(12)).float() + random.random()
        return {"x": x, "y": torch.tensor([index % 3 for index in indexes])}


def build_model():
    seed_everything(CONFIG.seed)
    return torch.nn.Sequential(
        torch.nn.Conv1d(1, 8, 5),
        torch.nn.BatchNorm1d(8),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 3),
    )


def compute_loss(model, batch):
    noise = random.random() + float(np.random.rand())  # the loop's own generators
    loss = torch.nn.functional.cross_entropy(model(batch["x"] + noise), batch["y"])
    return loss, {"noise": noise}


def validate(model):
    x = torch.randn(30, 1, 12)
    return {"loss": torch.nn.functional.cross_entropy(model(x), torch.arange(30) % 3).item()}


def build_trainer(folder, config=CONFIG, loss=compute_loss, **options):
    model = build_model()
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(43)), 4, drop_last=False)
    batches = BatchLoader(NoisyCrops(), sampler, config.seed, config.num_workers or 0)
    return Trainer(
        model,
        make_optimizer(model, config),
        batches,
        loss,
        config,
        folder,
        **{"validate": validate, "extra": {"channels": 8}, **options},
    )


def ending_at(call, action):
    """compute_loss that calls `action` when it is called for the time `call`, from 1."""
    calls = []

    def loss(model, batch):
        calls.append(None)
        if len(calls) == call:
            action()
        return compute_loss(model, batch)

    return loss


def all_results(folder):
    """Everything that must be equal in the end: the result, and what further training would start from."""
    result = load_checkpoint(folder / "best.pt")
    last = load_checkpoint(list(checkpoint.numbered_files(folder, "checkpoint").values())[-1])
    for content in (result, last):
        del content["config"]["num_workers"]
    last["position"]["history"] = [without_times(point) for point in last["position"]["history"]]
    return [result, last, sorted(path.name for path in folder.glob("best*.pt"))]


def assert_same(one, other, where=""):
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}/{index}")
    elif torch.is_tensor(one):
        assert one.dtype == other.dtype and torch.equal(one, other), where
    else:
        assert one == other, where


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run_undisturbed(folder):
    torch.set_num_threads(1)
    build_trainer(folder).run()
    return all_results(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_undisturbed(tmp_path_factory.mktemp("undisturbed"))


def start(folder, num_workers, *arguments):
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, str(folder), str(num_workers), *map(str, arguments)]
    with open(folder / "output.txt", "w+") as output:  # not a pipe: the workers of a killed process hold it for seconds
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
            timeout=120,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        output.seek(0)
        return done.returncode, output.read()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_killed_twice_equals_undisturbed(tmp_path, undisturbed, num_workers):
    calls = random.Random(num_workers)
    for number in (signal.SIGKILL, signal.SIGKILL):
        code, output = start(tmp_path, num_workers, calls.randint(8, 17), int(number))
        assert code == -number, output
    assert not (tmp_path / "best.pt").exists()
    build_trainer(tmp_path, replace(CONFIG, num_workers=num_workers)).run()
    assert_same(all_results(tmp_path), undisturbed)
    assert_tensorboard(tmp_path, undisturbed[0]["history"])


def test_workers_change_nothing(tmp_path, undisturbed):
    build_trainer(tmp_path, replace(CONFIG, num_workers=1)).run()
    assert_same(all_results(tmp_path), undisturbed)


def test_signal_to_the_process_group(tmp_path, undisturbed):
    """As a batch system or a terminal sends it: the data workers get it too."""
    _, output = start(tmp_path, 2, 15, int(signal.SIGTERM))
    assert "TrainingInterrupted: training stopped by SIGTERM at step 8" in output
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint"))[-1] == 8
    build_trainer(tmp_path).run()
    assert_same(all_results(tmp_path), undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_signal_saves_at_the_next_step(tmp_path, undisturbed, number):
    def handler(number, frame):
        raise AssertionError("the handler from before was called while training")

    before = signal.signal(number, handler)
    try:
        with pytest.raises(TrainingInterrupted, match=f"{number.name} at step 8, saved in") as caught:
            build_trainer(tmp_path, loss=ending_at(15, lambda: os.kill(os.getpid(), number))).run()
        assert caught.value.signum == number  # which decides the exit status of a recipe
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint")) == [6, 8]
    build_trainer(tmp_path).run()
    assert_same(all_results(tmp_path), undisturbed)


def test_no_signals_outside_the_main_thread(tmp_path, undisturbed):
    thread = threading.Thread(target=build_trainer(tmp_path).run)
    thread.start()
    thread.join()
    assert_same(all_results(tmp_path), undisturbed)


class Stop(Exception):
    pass


def stop():
    raise Stop


@pytest.mark.parametrize("step", range(1, 24, 2))
def test_stopped_at_each_step(tmp_path, undisturbed, step):
    """Also where a step, a checkpoint, a validation and the end of an epoch meet."""
    with pytest.raises(Stop):
        build_trainer(tmp_path, loss=ending_at(2 * step - step // 6, stop)).run()
    build_trainer(tmp_path).run()
    assert_same(all_results(tmp_path), undisturbed)


def test_stopped_where_all_meet(tmp_path):
    """At an epoch's end that is also a step to save at and to validate at."""
    config = replace(CONFIG, valid_every=None, max_epochs=3, log_every=6)
    build_trainer(tmp_path / "undisturbed", config).run()
    expected = all_results(tmp_path / "undisturbed")
    assert [point["step"] for point in expected[0]["history"] if "valid/loss" in point] == [6, 12, 18]
    for call in (11, 12, 22, 23, 24):
        folder, validations = tmp_path / str(call), []

        def validate_and_count(model):
            validations.append(None)
            return validate(model)

        with pytest.raises(Stop):
            build_trainer(folder, config, loss=ending_at(call, stop), validate=validate_and_count).run()
        build_trainer(folder, config, validate=validate_and_count).run()
        assert_same(all_results(folder), expected)
        assert len(validations) == 3 + 1  # and one of the mean of the best


@pytest.mark.parametrize("save", range(2, 16))
def test_stopped_while_saving(tmp_path, undisturbed, monkeypatch, save):
    """Every file of the run in turn is cut short while it is written."""
    saves, fsync = [], os.fsync

    def cut_short(descriptor):
        saves.append(None)
        if len(saves) == save:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.truncate(path, 2)
            # As a kill would: what has been written stays.
            os.link(path, path.with_name(path.name.replace(".", ".1", 1)))
            raise Stop
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", cut_short)
    with pytest.raises(Stop):
        build_trainer(tmp_path).run()
    assert list(tmp_path.glob(".*"))
    build_trainer(tmp_path).run()
    assert not list(tmp_path.glob(".*"))
    assert_same(all_results(tmp_path), undisturbed)


def empty(path):
    return b""


def truncated(path):
    return path.read_bytes()[: path.stat().st_size // 2]


def garbage(path):
    return b"no checkpoint\n" * 100


def flipped_bit(path):
    """In a weight: neither the directory of the zip nor pickle would notice."""
    weight = load_checkpoint(path)["model"]["5.weight"].numpy().tobytes()
    return path.read_bytes().replace(weight, weight[:2] + bytes([weight[2] ^ 16]) + weight[3:])


def other_zip(path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.txt", "no checkpoint")
    return stream.getvalue()


@pytest.mark.parametrize("damage", [empty, truncated, garbage, flipped_bit, other_zip])
def test_damaged_checkpoint_is_set_aside(tmp_path, undisturbed, damage, caplog):
    with pytest.raises(Stop):
        build_trainer(tmp_path, loss=ending_at(30, stop)).run()
    older, newest = checkpoint.numbered_files(tmp_path, "checkpoint").values()
    damaged = damage(newest)
    assert damaged != newest.read_bytes()
    newest.write_bytes(damaged)
    with caplog.at_level(logging.INFO):
        build_trainer(tmp_path).run()
    assert f"{newest} is damaged" in caplog.text and f"resumed from {older}" in caplog.text
    assert newest.with_name(newest.name + ".corrupt").exists()
    assert_same(all_results(tmp_path), undisturbed)


def test_all_checkpoints_damaged(tmp_path, undisturbed):
    with pytest.raises(Stop):
        build_trainer(tmp_path, loss=ending_at(30, stop)).run()
    for path in tmp_path.glob("checkpoint-*.pt"):
        path.write_bytes(b"")
    build_trainer(tmp_path).run()
    assert len(list(tmp_path.glob("*.corrupt"))) == 2
    assert_same(all_results(tmp_path), undisturbed)


def test_finished_run_returns_at_once(tmp_path, undisturbed):
    first = build_trainer(tmp_path)
    assert first.run() == tmp_path / "best.pt"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = build_trainer(tmp_path, loss=ending_at(1, stop), validate=lambda model: stop())
    assert again.run() == tmp_path / "best.pt"
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert_same(again.model.state_dict(), undisturbed[0]["model"])
    (tmp_path / "best.pt").write_bytes(b"")  # damaged: made again from the n best
    build_trainer(tmp_path, loss=ending_at(1, stop)).run()
    assert_same(all_results(tmp_path), undisturbed)


def test_longer_training_goes_on(tmp_path, undisturbed):
    build_trainer(tmp_path, replace(CONFIG, max_epochs=2)).run()
    build_trainer(tmp_path).run()
    result = load_checkpoint(tmp_path / "best.pt")
    assert result["last_step"] == 24
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint"))[-1] == 24
    last = load_checkpoint(tmp_path / "checkpoint-24.pt")
    assert_same(last["model"], undisturbed[1]["model"])


def test_refuses_what_it_cannot_go_on_from(tmp_path):
    build_trainer(tmp_path, replace(CONFIG, max_epochs=2)).run()
    for options, text in (
        (dict(lr=0.02), "trained with lr=0.01, and now lr=0.02"),
        (dict(seed=8), "trained with seed=7, and now seed=8"),
        (dict(max_steps=5), "beyond max_steps=5 already"),
    ):
        with pytest.raises(UserError, match=text):
            build_trainer(tmp_path, replace(CONFIG, max_epochs=2, **options)).run()
    with pytest.raises(UserError, match="trained with {'channels': 8}, and now {'channels': 9}"):
        build_trainer(tmp_path, extra={"channels": 9}).run()
    other = build_trainer(tmp_path)
    other.model = torch.nn.Linear(3, 3)
    with pytest.raises(UserError, match="checkpoint-12.pt: does not fit the model.*to start anew"):
        other.run()
    assert not list(tmp_path.glob("*.corrupt"))


def assert_tensorboard(folder, history):
    """TensorBoard shows each point of the history, each once and with the time of when it was made."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    kept = load_checkpoint(folder / "checkpoint-24.pt")["position"]["history"]
    assert [without_times(point) for point in kept] == history
    names = {name for point in kept for name in point if name not in ("step", "time")}
    results = {"train/loss", "train/noise", "train/grad_norm", "train/lr", "train/skipped", "valid/loss"}
    assert set(events.Tags()["scalars"]) == names == results | {"speed/steps_per_second", "speed/waiting"}
    for name in names:
        expected = [(point["step"], np.float32(point[name])) for point in kept if name in point]
        assert [(event.step, np.float32(event.value)) for event in events.Scalars(name)] == expected
        assert [event.wall_time for event in events.Scalars(name)] == [point["time"] for point in kept if name in point]


def test_tensorboard_has_each_point_once(tmp_path, undisturbed):
    for call in (9, 14, 20):
        with pytest.raises(Stop):
            build_trainer(tmp_path, loss=ending_at(call, stop)).run()
    build_trainer(tmp_path).run()
    history = undisturbed[0]["history"]
    assert_tensorboard(tmp_path, history)
    assert [point["step"] for point in history if "train/loss" in point] == list(range(2, 25, 2))
    assert [point["step"] for point in history if "valid/loss" in point] == [5, 10, 15, 20, 24]


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, num_workers, call, number = Path(sys.argv[1]), *map(int, sys.argv[2:])

    def end():
        if number == signal.SIGTERM:
            os.killpg(0, number)
        else:
            os.kill(os.getpid(), number)

    build_trainer(folder, replace(CONFIG, num_workers=num_workers), loss=ending_at(call, end)).run()
