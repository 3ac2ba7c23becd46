"""The training loop against plain versions of what it does: updates, skipped steps, validation, mean of the n best."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from pyspeech.compat import load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.training import checkpoint
from pyspeech.training.config import TrainConfig
from pyspeech.training.data import BatchLoader
from pyspeech.training.optimization import learning_rate_factor, make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer

CONFIG = TrainConfig(max_steps=12, lr=0.1, clip_norm=None, log_every=4, save_every=6)
X, Y = torch.randn(24, 3, generator=torch.Generator().manual_seed(0)), torch.arange(24.0)[:, None] / 12 - 1


class Rows:
    """Rows of X and Y; NaN or infinity in place of those in `bad`."""

    def __init__(self, bad=(), value=math.nan):
        self.x = X.clone()
        self.x[list(bad)] = value

    def __getitem__(self, indexes):
        return self.x[indexes], Y[indexes]


def rows(size):
    return [list(range(first, first + size)) for first in range(0, 24, size)]


def squared_error(model, batch):
    x, y = batch
    return (model(x) - y).square().mean(), {}


def linear():
    seed_everything(0)
    return torch.nn.Linear(3, 1)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def build(folder, config=CONFIG, model=None, dataset=None, size=4, loss=squared_error, **options):
    model = model or linear()
    return Trainer(model, sgd(model), BatchLoader(dataset or Rows(), rows(size), config.seed), loss, config, folder, **options)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_equals_a_plain_loop(tmp_path):
    trainer = build(tmp_path, replace(CONFIG, clip_norm=0.5, schedule="cosine"))
    trainer.run()
    model, losses = linear(), []
    for step in range(12):
        indexes = rows(4)[step % 6]
        loss, _ = squared_error(model, (X[indexes], Y[indexes]))
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.data -= 0.1 * 0.5 * (1 + math.cos(math.pi * step / 12)) * gradient * min(1, 0.5 / norm)
    np.testing.assert_allclose(weights(trainer.model), weights(model), rtol=1e-5)
    logged = [point["train/loss"] for point in load_checkpoint(tmp_path / "best.pt")["history"]]
    np.testing.assert_allclose(logged, np.mean(np.reshape(losses, (3, 4)), axis=1), rtol=1e-5)


def test_accumulated_batches_equal_a_big_one(tmp_path):
    big = build(tmp_path / "big", size=8)
    small = build(tmp_path / "small", replace(CONFIG, accumulate=4), size=2)
    big.run()
    small.run()
    np.testing.assert_allclose(weights(small.model), weights(big.model), rtol=1e-5)
    assert small.position.step == big.position.step == 12 and small.position.epoch == big.position.epoch == 3
    np.testing.assert_allclose(
        [point["train/loss"] for point in small.position.history],
        [point["train/loss"] for point in big.position.history],
        rtol=1e-5,
    )


def test_result(tmp_path):
    trainer = build(tmp_path, extra={"network": {"inputs": 3}})
    assert trainer.run() == tmp_path / "best.pt"
    result = load_checkpoint(tmp_path / "best.pt")
    assert torch.equal(result["model"]["weight"], trainer.model.weight)
    assert (result["steps"], result["last_step"], result["metrics"]) == ([12], 12, {})
    assert result["config"]["lr"] == 0.1 and result["extra"] == {"network": {"inputs": 3}}
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint")) == [6, 12]


class WithStatistics(torch.nn.Module):
    """Batch normalisation before a linear layer: a forward pass of NaN spoils its statistics for good."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = torch.nn.BatchNorm1d(3), linear()

    def forward(self, x):
        return self.linear(self.norm(x))


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_bad_batch_is_skipped(tmp_path, caplog, value, accumulate):
    """As if the step with the bad batch had not been there; momentum of the statistics and all."""
    config = replace(CONFIG, max_steps=6 // accumulate, accumulate=accumulate)
    trainer = build(tmp_path / "bad", config, WithStatistics(), Rows(bad=[9], value=value))
    trainer.run()
    assert trainer.position.skipped == 1 and trainer.position.bad_in_a_row == 0
    step = 2 // accumulate + 1
    assert f"step {step} skipped: loss or gradient not finite, batch of 8, 9, 10, 11" in caplog.text

    good = [indexes for number, indexes in enumerate(rows(4)) if number // accumulate != 2 // accumulate]
    model = WithStatistics()
    loader = BatchLoader(Rows(), good, config.seed)
    Trainer(model, sgd(model), loader, squared_error, replace(config, max_steps=6 // accumulate - 1), tmp_path / "good").run()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, trainer.model.state_dict()[name]), name


def test_bad_gradient_is_skipped(tmp_path):
    """The square root has a finite value at 0 and no finite slope."""

    def loss(model, batch):
        finite, _ = squared_error(model, batch)
        return finite + (batch[0] * 0 * model.weight).abs().sum().sqrt(), {}

    trainer = build(tmp_path, loss=loss)
    trainer.run()
    assert trainer.position.skipped == 12
    assert torch.equal(weights(trainer.model), weights(linear()))


def test_too_many_bad_steps(tmp_path):
    config = replace(CONFIG, max_bad_steps=3)
    with pytest.raises(UserError, match=r"stopped at step 5.*not finite in 3 steps in a row.*batch of 16, 17, 18, 19"):
        build(tmp_path, config, dataset=Rows(bad=range(8, 24))).run()
    build(tmp_path / "two", config, dataset=Rows(bad=range(16, 24))).run()  # two in a row, then a good one


def test_bad_steps_in_a_row_are_counted_across_a_resume(tmp_path):
    config = replace(CONFIG, max_bad_steps=4, save_every=1)
    with pytest.raises(UserError, match="stopped at step 4"):
        build(tmp_path, config, dataset=Rows(bad=range(24))).run()
    assert list(checkpoint.numbered_files(tmp_path, "checkpoint")) == [2, 3]
    with pytest.raises(UserError, match="stopped at step 4"):
        build(tmp_path, config, dataset=Rows(bad=range(24))).run()


class Metrics:
    """validate() with given losses, one a call; keeps the weights it was called with."""

    def __init__(self, *losses):
        self.losses, self.seen = list(losses), []

    def __call__(self, model):
        assert not model.training and not torch.is_grad_enabled()
        self.seen.append(weights(model))
        return {"loss": self.losses[len(self.seen) - 1], "number": len(self.seen)}


def test_best_weights(tmp_path):
    validate = Metrics(3, 1, math.nan, 2, 5)
    trainer = build(tmp_path, replace(CONFIG, max_epochs=5, max_steps=None), validate=validate)
    trainer.run()
    result = load_checkpoint(tmp_path / "best.pt")
    assert (result["steps"], result["metrics"]) == ([12], {"loss": 1, "number": 2})
    assert torch.equal(weights(trainer.model), validate.seen[1])
    assert list(checkpoint.numbered_files(tmp_path, "best")) == [12]


def test_best_weights_after_a_step(tmp_path):
    validate = Metrics(3, 1, 4, 2, 5)
    config = replace(CONFIG, max_epochs=5, max_steps=None, patience=2)
    trainer = build(tmp_path, config, validate=validate, choose_after=12)  # of the second validation
    trainer.run()
    result = load_checkpoint(tmp_path / "best.pt")
    assert (result["steps"], result["metrics"]) == ([24], {"loss": 2, "number": 4})
    assert trainer.position.step == 30


def test_no_weights_but_the_last_are_after_a_step(tmp_path):
    trainer = build(tmp_path, replace(CONFIG, valid_every=6), validate=Metrics(1, 2), choose_after=12)
    trainer.run()
    assert load_checkpoint(tmp_path / "best.pt")["steps"] == [12]


@pytest.mark.parametrize("loss_of_mean", [0.5, 7])
def test_mean_of_the_best(tmp_path, loss_of_mean):
    validate = Metrics(3, 1, 4, 2, 5, loss_of_mean)
    trainer = build(tmp_path, replace(CONFIG, max_epochs=5, max_steps=None, average_best=3), validate=validate)
    trainer.run()
    result = load_checkpoint(tmp_path / "best.pt")
    if loss_of_mean < 1:
        assert (result["steps"], result["metrics"]) == ([12, 24, 6], {"loss": 0.5, "number": 6})
        expected = np.mean([validate.seen[index].double().numpy() for index in (0, 1, 3)], axis=0)
        np.testing.assert_allclose(weights(trainer.model).numpy(), expected.astype(np.float32), rtol=2e-7)
    else:
        assert (result["steps"], result["metrics"]) == ([12], {"loss": 1, "number": 2})
        assert torch.equal(weights(trainer.model), validate.seen[1])
    assert list(checkpoint.numbered_files(tmp_path, "best")) == [6, 12, 24]


def test_average_against_numpy(tmp_path):
    generator = np.random.RandomState(0)
    states = [
        {
            "w": torch.from_numpy(generator.randn(4, 3) * 10.0**index).float(),
            "half": torch.from_numpy(generator.rand(3)).bfloat16(),
            "num_batches_tracked": torch.tensor(10 + index),
            "mask": torch.tensor([True, False]),
        }
        for index in range(4)
    ]
    paths = [tmp_path / f"best-{index}.pt" for index in range(4)]
    for path, state in zip(paths, states, strict=True):
        save_checkpoint(path, {"model": state})
    mean = checkpoint.average(paths)
    expected = np.mean([state["w"].double().numpy() for state in states], axis=0).astype(np.float32)
    assert np.array_equal(mean["w"].numpy(), expected)
    halves = torch.stack([state["half"].double() for state in states]).mean(0).bfloat16()
    assert torch.equal(mean["half"], halves) and mean["half"].dtype == torch.bfloat16
    assert mean["num_batches_tracked"] == 10 and mean["mask"].tolist() == [True, False]
    assert torch.equal(checkpoint.average(paths[:1])["w"], states[0]["w"])


def test_patience(tmp_path):
    validate = Metrics(3, 2, 2, 4, 1, 5, 6, 7, 8)
    trainer = build(tmp_path, replace(CONFIG, max_steps=100, valid_every=2, patience=3), validate=validate)
    trainer.run()
    assert trainer.position.step == 16  # the third without a new best after the fifth
    assert load_checkpoint(tmp_path / "best.pt")["steps"] == [10]


def test_validation_times(tmp_path):
    for options, steps in (
        (dict(), [6, 12, 16]),
        (dict(valid_every=5), [5, 10, 15, 16]),
        (dict(valid_every=8), [8, 16]),
        (dict(accumulate=4), [2, 4, 6, 8, 10, 12, 14, 16]),
    ):
        trainer = build(tmp_path / str(options), replace(CONFIG, max_steps=16, **options), validate=Metrics(*range(9)))
        trainer.run()
        assert [point["step"] for point in trainer.position.history if "valid/loss" in point] == steps


def test_validation_does_not_disturb_training(tmp_path):
    def noisy(model, batch):
        x, y = batch
        return squared_error(model, (x + torch.randn(x.shape), y))

    def random_loss(model):
        return {"loss": torch.rand(1).item()}

    without = build(tmp_path / "without", loss=noisy)
    without.run()
    trainer = build(tmp_path / "with", replace(CONFIG, valid_every=5), loss=noisy, validate=random_loss)
    trainer.run()
    assert torch.equal(load_checkpoint(tmp_path / "with" / "checkpoint-12.pt")["model"]["weight"], without.model.weight)
    assert len({point["valid/loss"] for point in trainer.position.history if "valid/loss" in point}) == 1


def test_missing_metric(tmp_path):
    with pytest.raises(UserError, match="minimize=dcf: expected a figure of the validation: loss, number"):
        build(tmp_path, replace(CONFIG, minimize="dcf"), validate=Metrics(1, 2)).run()


def test_needs_a_validation(tmp_path):
    for options in (dict(average_best=2), dict(patience=2)):
        with pytest.raises(UserError, match="need a validation"):
            build(tmp_path, replace(CONFIG, **options))


def test_no_batches(tmp_path):
    model = linear()
    with pytest.raises(UserError, match="epoch 0 has no batch"):
        Trainer(model, sgd(model), BatchLoader(Rows(), [], 0), squared_error, CONFIG, tmp_path).run()


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(max_steps=None), "max_steps=null: expected a number, or max_epochs set"),
        (dict(max_steps=None, max_epochs=3, schedule="cosine"), "max_steps=null: expected a number, for schedule=cosine"),
        (dict(schedule="linear"), "schedule=linear: expected constant or cosine"),
        (dict(lr=0.0), "lr=0.0: expected a positive number"),
        (dict(keep_checkpoints=1), "keep_checkpoints=1: expected at least 2"),
        (dict(accumulate=0), "accumulate=0: expected at least 1"),
        (dict(weight_decay=-1.0), "weight_decay=-1.0: expected 0 or a positive number"),
        (dict(weight_decay=math.nan), "weight_decay=nan: expected 0 or a positive number"),
        (dict(betas=(0.9,)), r"betas=\[0.9\]: expected two numbers, 0 to less than 1"),
        (dict(betas=(2.0, 3.0)), r"betas=\[2.0, 3.0\]: expected two numbers, 0 to less than 1"),
        (dict(betas=(0.9, math.nan)), r"betas=\[0.9, nan\]: expected two numbers, 0 to less than 1"),
        (dict(seed=-1), "seed=-1: expected 0 to"),
        (dict(seed=10**20), "seed=100000000000000000000: expected 0 to"),
    ],
)
def test_options_that_make_no_sense(options, text):
    with pytest.raises(UserError, match=text):
        replace(CONFIG, **options).check()


def test_options_from_yaml():
    from omegaconf import OmegaConf

    text = "{lr: 0.5, max_epochs: 3, betas: [0.8, 0.9], bf16: true, clip_norm: null}"
    merged = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainConfig), OmegaConf.create(text)))
    assert merged == TrainConfig(lr=0.5, max_epochs=3, betas=(0.8, 0.9), bf16=True, clip_norm=None)


def test_learning_rate():
    config = TrainConfig(max_steps=110, warmup_steps=10, schedule="cosine")
    factors = [learning_rate_factor(config, step) for step in range(111)]
    np.testing.assert_allclose(factors[:11], [*np.arange(1, 11) / 10, 1])
    np.testing.assert_allclose(factors[10:], (1 + np.cos(np.linspace(0, np.pi, 101))) / 2, atol=1e-12)
    config = replace(config, schedule="constant")
    assert [learning_rate_factor(config, step) for step in (0, 4, 9, 10, 200)] == [0.1, 0.5, 1, 1, 1]


def test_optimizer_decays_matrices_only():
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.BatchNorm1d(3))
    model[0].weight.requires_grad_(True)
    optimizer = make_optimizer(model, TrainConfig(weight_decay=0.1, lr=0.3, betas=(0.8, 0.9)))
    decayed, others = optimizer.param_groups
    assert [tuple(p.shape) for p in decayed["params"]] == [(3, 2, 3)] and decayed["weight_decay"] == 0.1
    assert len(others["params"]) == 3 and others["weight_decay"] == 0
    assert others["lr"] == 0.3 and others["betas"] == (0.8, 0.9)


def test_log_lines(tmp_path, caplog):
    def loss(model, batch):
        return squared_error(model, batch)[0], {"accuracy": torch.tensor(0.25), "audio_seconds": 40}

    with caplog.at_level(logging.INFO):
        build(tmp_path, loss=loss, dataset=Rows(bad=[0]), log=logging.getLogger("test")).run()
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "4 parameters, on cpu"
    report = [line for line in lines if line.startswith("step 8/12, epoch 1, ")]
    for part in (
        " loss ",
        " accuracy 0.25,",
        " lr 0.1,",
        " grad_norm ",
        " steps/s,",
        " audio-s/s,",
        " % waiting for data,",
        " skipped 2,",
        " ETA 0:00:0",
    ):
        assert part in report[0]
    assert "finished at step 12, 2 skipped: weights of step 12" in lines[-1]


def test_speed_is_that_of_steps_alone(tmp_path, monkeypatch):
    """By a clock that data, loss and validation move: 3 s, 1 s and 100 s each. It is no part of the result."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def passes(seconds, value):
        now[0] += seconds
        return value

    class Slow(Rows):
        def __getitem__(self, indexes):
            return passes(3.0, super().__getitem__(indexes))

    trainer = build(
        tmp_path,
        replace(CONFIG, valid_every=2),
        dataset=Slow(),
        loss=lambda model, batch: passes(1.0, squared_error(model, batch)),
        validate=lambda model: passes(100.0, {"loss": 0.0}),
    )
    trainer.run()
    speeds = [point for point in trainer.position.history if "speed/waiting" in point]
    assert [point["speed/waiting"] for point in speeds] == pytest.approx([0.75] * 3)
    assert [point["speed/steps_per_second"] for point in speeds] == pytest.approx([0.25] * 3)
    kept = load_checkpoint(tmp_path / "best.pt")["history"]
    assert len(kept) == 9 and not any(name.startswith("speed") or name == "time" for point in kept for name in point)


def test_bar_on_a_terminal(tmp_path, monkeypatch, capsys):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    build(tmp_path).run()
    assert "12/12" in capsys.readouterr().err


def test_bf16(tmp_path, monkeypatch, caplog):
    """Autocast is on for the loss where it is asked for and the CPU has instructions for it, and off on a CPU by default."""
    seen = []

    def loss(model, batch):
        seen.append(model(batch[0]).dtype)
        return squared_error(model, batch)

    for native in (True, False):
        monkeypatch.setattr("pyspeech.training.trainer.computes_in_bf16", lambda device, native=native: native)
        build(tmp_path / f"default {native}", replace(CONFIG, max_steps=1), loss=loss).run()
        assert "no instructions" not in caplog.text
        build(tmp_path / f"bf16 {native}", replace(CONFIG, max_steps=1, bf16=True), loss=loss).run()
    assert seen == [torch.float32, torch.bfloat16, torch.float32, torch.float32]
    assert "training option bf16=true: this CPU lacks the instructions" in " ".join(caplog.messages)
