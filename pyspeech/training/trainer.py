"""The training loop.

It reads top to bottom: `run` resumes and loops over the epochs, `_step` updates the weights once (pyspeech.training.step),
`_between_steps` validates and saves, `_finish` writes the result. What must survive a kill is the model, the optimiser and a
`Position`; a checkpoint holds these three.

Several processes run this loop at once, each with the same weights and the same Position. Process 0 alone reads and writes
the folder, validates and reports; the others learn from it what came of that, an error included.
"""

import logging
import math
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from pyspeech.compat import computes_in_bf16, describe_environment, load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.training import checkpoint, distributed
from pyspeech.training.config import CHANGEABLE, TrainConfig
from pyspeech.training.data import WorkerLost
from pyspeech.training.interruption import Signals, TrainingInterrupted
from pyspeech.training.optimization import learning_rate_factor
from pyspeech.training.progress import NoProgress, Progress, StepClock
from pyspeech.training.randomness import RandomStream
from pyspeech.training.step import Stepper


@dataclass
class Position:
    """Position in a training."""

    step: int = 0  # steps done, the skipped ones included
    epoch: int = 0
    consumed: int = 0  # batches of this epoch that are used up
    epoch_start: int = 0  # the step at which this epoch began
    skipped: int = 0  # steps without an update, for a loss or gradient that was not finite
    bad_in_a_row: int = 0
    validated: int = 0  # the step of the last validation
    without_best: int = 0  # validations since the last new best
    best: list = field(default_factory=list)  # (metric, step) of the n best weights, the best first
    sums: dict = field(default_factory=dict)  # of the values of the updates since the last log line
    summed: int = 0  # the number of these updates
    # TensorBoard's points: {"step": ..., "time": ..., "train/loss": ..., "speed/waiting": ...}
    history: list = field(default_factory=list)


class Trainer:
    """Trains `model` and leaves the result in `folder`/best.pt.

    model          on the device to train on; its parameters and buffers are what is saved
    optimizer      over the model's parameters (make_optimizer, or any); the schedule multiplies its learning rates
    batches        batches(epoch, consumed) iterates over (names, batch) of an epoch from the batch of index `consumed`
                   on, the same ones each time; of several processes, over those whose index modulo their number is this
                   process's rank: a BatchLoader
    compute_loss   compute_loss(model, batch) -> (loss, values): a scalar tensor, the mean over the batch, and
                   {name: number} to log beside it; "audio_seconds", the audio in the batch, is logged as a speed
    config         TrainConfig
    folder         of this training run alone: checkpoints, TensorBoard, result
    validate       validate(model) -> {name: number}, called in evaluation mode, without gradients, with the same random
                   numbers each time. The weights with the lowest `config.minimize` are the best; None: the last are.
    choose_after   only weights of later steps are candidates for the best, such as those since an augmentation began
    log            a logging.Logger
    extra          plain data stored in best.pt, such as the network's configuration, for whoever loads the model

    compute_loss and validate draw random numbers from the global generators of python, numpy and torch, which follow from
    the seed, and for compute_loss from the epoch and the batch. Call seed_everything(config.seed) before building the model.
    A step has `config.accumulate` batches, of all processes together: UserError where these are more.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Callable[[int, int], Iterable[tuple[list[str], Any]]],
        compute_loss: Callable[[Any, Any], tuple[torch.Tensor, dict[str, float]]],
        config: TrainConfig,
        folder: str | Path,
        validate: Callable[[Any], dict[str, float]] | None = None,
        log: logging.Logger | None = None,
        extra: Any = None,
        choose_after: int = 0,
    ) -> None:
        config.check()
        if validate is None and (config.average_best > 1 or config.patience):
            raise UserError("training options average_best, patience: they need a validation, and there is none")
        if config.accumulate < distributed.world_size():
            raise UserError(
                f"training option accumulate={config.accumulate}: expected at least {distributed.world_size()}: each of the "
                f"{distributed.world_size()} processes needs a batch in each step"
            )
        self.model, self.optimizer, self.batches = model, optimizer, batches
        self.config, self.folder, self.validate, self.extra = config, Path(folder), validate, extra
        self.choose_after = choose_after
        self.log = log or logging.getLogger(__name__)
        if distributed.rank():
            self.log = logging.Logger("silent", logging.CRITICAL)
        self.device = next(model.parameters()).device
        self.stepper = Stepper(model, optimizer, compute_loss, config.clip_norm, config.seed, self._in_bf16())
        self.result = self.folder / "best.pt"
        self.position = Position()
        self.clock = StepClock()
        self._saved, self._asked_to_stop = self._mark(), 0
        self._base_lrs = [group["lr"] for group in optimizer.param_groups]

    def run(self) -> Path:
        """Train to the end, from the newest intact checkpoint on; the path of best.pt, whose weights `model` then has.

        Raises TrainingInterrupted after SIGTERM or SIGUSR2 (at the next step, with a checkpoint saved), and UserError
        where the checkpoint is of another configuration, an epoch has no batch, or too many steps in a row are skipped.
        """
        distributed.from_first(lambda: checkpoint.remove_leftovers(self.folder))
        self._resume()
        if self._is_over() and distributed.from_first(self._result_stands):
            self.log.info("already finished at step %d: %s", self.position.step, self.result)
            return self.result
        with Signals() as self.signals, self._report_to() as self.progress:
            self._between_steps()  # a validation may be due
            while not self._is_over():
                self._rest_of_epoch()
            self._save()
        distributed.from_first(self._finish)
        return self.result

    def _report_to(self):
        position = self.position
        if distributed.rank():
            return NoProgress()
        return Progress(self.folder, self.log, position.step, self._last_step(), position.history)

    def _rest_of_epoch(self):
        """The steps that are left of this epoch, as far as training is not over before."""
        position = self.position
        batches = iter(self.batches(position.epoch, position.consumed))
        while self._step(batches):
            self._between_steps()
            if self._is_over():
                return
        if position.consumed == 0:
            raise UserError(f"epoch {position.epoch} has no batch: the sampler yields nothing")
        position.epoch, position.consumed, position.epoch_start = position.epoch + 1, 0, position.step
        self._between_steps()

    def _step(self, batches):
        """One update of the weights; whether there was a batch left for it."""
        position = self.position
        factor = learning_rate_factor(self.config, position.step)
        for parameters, lr in zip(self.optimizer.param_groups, self._base_lrs, strict=True):
            parameters["lr"] = lr * factor
        self.clock.begin()
        outcome = self.stepper.step(
            position.epoch, position.consumed, lambda: self._read(batches), lambda: int(self.signals.caught or 0)
        )
        self._asked_to_stop = outcome.signal
        if outcome.unread:
            self._stop_if_asked()
        if outcome.count == 0:
            return False
        position.step += 1
        position.consumed += outcome.count
        self.clock.end()
        self._count(outcome.bad, outcome.values)
        return True

    def _read(self, batches):
        """[(index, names, batch)] of this process's batches of the next step."""
        consumed, rank, size = self.position.consumed, distributed.rank(), distributed.world_size()
        own = range(consumed + (rank - consumed) % size, consumed + self.config.accumulate, size)
        try:
            return [(index, *named) for index, named in zip(own, batches, strict=False)]
        except WorkerLost as error:
            # A signal to the whole process group ends the workers too. Whatever was read is read again.
            if self.signals.caught:
                raise InterruptedError from error
            raise
        finally:
            self.clock.has_read()

    def _count(self, bad_names, values):
        """Book-keeping after a step: add its values up, or count it as skipped."""
        position, config = self.position, self.config
        self.progress.advance(self._last_step())
        if not bad_names:
            position.bad_in_a_row = 0
            position.summed += 1
            for name, value in values.items():
                position.sums[name] = position.sums.get(name, 0.0) + value
        else:
            position.skipped += 1
            position.bad_in_a_row += 1
            text = ", ".join(bad_names[:10]) + (f" and {len(bad_names) - 10} more" if len(bad_names) > 10 else "")
            self.log.warning("step %d skipped: loss or gradient not finite, batch of %s", position.step, text)
            if position.bad_in_a_row >= config.max_bad_steps:
                raise UserError(
                    f"training stopped at step {position.step}: loss or gradient not finite in "
                    f"{position.bad_in_a_row} steps in a row (max_bad_steps), the last with the batch of "
                    f"{text}; look at these, or lower the learning rate (lr={config.lr})"
                )
        if position.step % config.log_every == 0:
            self._report()

    def _report(self):
        """A log line and TensorBoard points for the steps since the last ones."""
        position = self.position
        audio_seconds = position.sums.pop("audio_seconds", None)
        values = {name: total / position.summed for name, total in position.sums.items()}
        values["lr"] = self.optimizer.param_groups[0]["lr"]
        speed = self.clock.read(self.device)
        self.progress.line(position.step, position.epoch, values, audio_seconds, position.skipped, speed)
        self._record({**{f"train/{name}": value for name, value in {**values, "skipped": position.skipped}.items()}, **speed})
        position.sums, position.summed = {}, 0

    def _record(self, values):
        self.position.history.append({"step": self.position.step, "time": time.time(), **values})
        self.progress.record(self.position.history[-1])

    def _between_steps(self):
        """Stop, validate and save, where that is due; after a resume nothing is done twice."""
        self._stop_if_asked()
        if self._validation_is_due():
            self._validate()
            self._save()
            self._asked_to_stop = max(distributed.gather(int(self.signals.caught or 0)))
            self._stop_if_asked()
        elif self.position.step % self.config.save_every == 0:
            self._save()

    def _validation_is_due(self):
        position, every = self.position, self.config.valid_every
        if self.validate is None or position.step == position.validated:
            return False
        return self._is_over() or (position.consumed == 0 if every is None else position.step % every == 0)

    def _validate(self):
        """Measure the weights, and keep them if they are among the n best."""
        position, config = self.position, self.config
        metrics = distributed.from_first(self._measure)
        self.log.info("step %d, validation: %s", position.step, _text(metrics))
        self._record({f"valid/{name}": value for name, value in metrics.items()})

        position.validated = position.step
        if position.step <= self.choose_after:
            return
        value = metrics[config.minimize] if math.isfinite(metrics[config.minimize]) else math.inf
        is_best = not position.best or value < position.best[0][0]
        position.without_best = 0 if is_best else position.without_best + 1
        position.best = sorted(position.best + [(value, position.step)])[: config.average_best]
        if (value, position.step) in position.best:
            distributed.from_first(lambda: self._write_best(metrics))

    def _write_best(self, metrics):
        step = self.position.step
        content = {"model": self.model.state_dict(), "step": step, "metrics": metrics}
        save_checkpoint(self.folder / f"best-{step}.pt", content)

    def _measure(self):
        self.model.eval()
        with torch.no_grad(), RandomStream(3, self.config.seed):
            measured = self.validate(self.model)  # pyright: ignore[reportOptionalCall]
            metrics = {name: float(value) for name, value in measured.items()}
        if self.config.minimize not in metrics:
            raise UserError(
                f"training option minimize={self.config.minimize}: expected a figure of the validation: {', '.join(metrics)}"
            )
        return metrics

    def _is_over(self):
        position, config = self.position, self.config
        return (
            (config.max_steps is not None and position.step >= config.max_steps)
            or (config.max_epochs is not None and position.epoch >= config.max_epochs)
            or (config.patience is not None and position.without_best >= config.patience)
        )

    def _last_step(self):
        """The step at which training will end, as far as the epochs so far tell, or None."""
        position, bounds = self.position, [self.config.max_steps] if self.config.max_steps else []
        if self.config.max_epochs and position.epoch:
            steps_an_epoch = position.epoch_start / position.epoch
            bounds.append(max(position.step, round(steps_an_epoch * self.config.max_epochs)))
        return min(bounds, default=None)

    def _stop_if_asked(self):
        """Where a signal has asked any of the processes to stop: all of them do, behind the same step."""
        if self._asked_to_stop:
            number = signal.Signals(self._asked_to_stop)
            self._save()
            raise TrainingInterrupted(
                f"training stopped by {number.name} at step {self.position.step}, saved in "
                f"{self.folder}; the same command goes on from there",
                number,
            )

    def _save(self):
        """Write a checkpoint of this position, unless there is one, and remove what it makes superfluous."""
        if self._mark() != self._saved:
            distributed.from_first(self._write_checkpoint)
            self._saved = self._mark()

    def _write_checkpoint(self):
        position = self.position
        save_checkpoint(
            self.folder / f"checkpoint-{position.step}.pt",
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "position": asdict(position),
                "config": asdict(self.config),
                "extra": self.extra,
                "versions": describe_environment(),
            },
        )
        checkpoint.remove_older(self.folder, self.config.keep_checkpoints)
        # Only now: without this checkpoint, the one before would have had need of them.
        checkpoint.remove_best_except(self.folder, [step for _, step in position.best])

    def _in_bf16(self):
        """Whether to compute in bfloat16: as the option says, but on no CPU that would take many times as long."""
        wanted, on_cpu = self.config.bf16, self.device.type == "cpu"
        if wanted is None:
            return not on_cpu and computes_in_bf16(self.device)
        if wanted and on_cpu and not computes_in_bf16(self.device):
            self.log.warning(
                "training option bf16=true: this CPU lacks the instructions; training in float32, which is faster here"
            )
            return False
        return wanted

    def _mark(self):
        return self.position.step, self.position.epoch, self.position.validated

    def _resume(self):
        """Take everything from the newest checkpoint that loads; a new run has the weights that process 0 has."""
        count, size = sum(parameter.numel() for parameter in self.model.parameters()), distributed.world_size()
        together = f", {size} processes" if size > 1 else ""
        self.log.info("%d parameters, on %s%s%s", count, self.device, ", bf16" if self.stepper.bf16 else "", together)
        found = distributed.from_first(lambda: checkpoint.load_newest(self.folder, self.log))
        if found is None:
            distributed.copy_from([*self.model.parameters(), *self.model.buffers()], 0)
            return
        path, content = found
        self._check_same_run(path, content)
        try:
            self.model.load_state_dict(content["model"])
            self.optimizer.load_state_dict(content["optimizer"])
        except (RuntimeError, ValueError) as error:
            raise self._refusal(path, f"does not fit the model: {' '.join(str(error).split())[:300]}") from error
        self.position = position = Position(**content["position"])
        position.best = distributed.from_first(lambda: [pair for pair in position.best if self._best_exists(pair[1])])
        self._saved = self._mark()
        self.log.info(
            "resumed from %s: step %d, epoch %d, %d batches into it", path, position.step, position.epoch, position.consumed
        )

    def _check_same_run(self, path, content):
        """Raise UserError where going on would not give what this configuration gives from the start."""
        config, saved, done = self.config, content["config"], content["position"]
        for name, value in asdict(config).items():
            fixed = name not in CHANGEABLE or (name == "max_steps" and config.schedule == "cosine")
            if fixed and saved.get(name, value) != value:
                raise self._refusal(path, f"trained with {name}={saved[name]}, and now {name}={value}")
        for name, number in (("max_steps", done["step"]), ("max_epochs", done["epoch"])):
            if getattr(config, name) is not None and number > getattr(config, name):
                raise self._refusal(path, f"beyond {name}={getattr(config, name)} already")
        if content["extra"] != self.extra:
            raise self._refusal(path, f"trained with {content['extra']}, and now {self.extra}")

    def _refusal(self, path, reason):
        return UserError(
            f"{path}: {reason}; go back to the configuration that it was made with, or remove {self.folder} to start anew"
        )

    def _best_exists(self, step):
        path = self.folder / f"best-{step}.pt"
        if not path.exists():
            self.log.warning("%s is missing: left out of the best weights", path)
        return path.exists()

    def _result_stands(self):
        """Whether best.pt is the result of this very run; `model` then has its weights."""
        try:
            content = load_checkpoint(self.result)
        except UserError:  # missing, or damaged
            return False
        if content["last_step"] != self.position.step:
            return False
        self.model.load_state_dict(content["model"])
        return True

    def _finish(self):
        """Write best.pt: the best weights, or the mean of the n best where that measures no worse.

        Without a validation, the last weights.
        """
        position, config = self.position, self.config
        steps, metrics = [position.step], {}
        if position.best:
            paths = [self.folder / f"best-{step}.pt" for _, step in position.best]
            best = load_checkpoint(paths[0])
            steps, metrics = [best["step"]], best["metrics"]
            if len(paths) > 1:
                self.model.load_state_dict(checkpoint.average(paths))
                mean_metrics = self._measure()
                self.log.info(
                    "best weights, of step %d: %s; mean of %d best: %s",
                    steps[0],
                    _text(metrics),
                    len(paths),
                    _text(mean_metrics),
                )
            if len(paths) > 1 and mean_metrics[config.minimize] <= metrics[config.minimize]:
                steps, metrics = [step for _, step in position.best], mean_metrics
            else:
                self.model.load_state_dict(best["model"])
        save_checkpoint(
            self.result,
            {
                "model": self.model.state_dict(),
                "steps": steps,  # whose weights these are; more than one for a mean
                "metrics": metrics,  # of these weights
                "last_step": position.step,
                "history": [without_times(point) for point in position.history],
                "config": asdict(config),
                "extra": self.extra,
                "versions": describe_environment(),
            },
        )
        self.log.info(
            "finished at step %d, %d skipped: weights of step %s in %s",
            position.step,
            position.skipped,
            ", ".join(map(str, steps)),
            self.result,
        )


def without_times(point: dict[str, float]) -> dict[str, float]:
    """A point of Position.history without what differs from run to run: the time of day and speeds."""
    return {name: value for name, value in point.items() if name != "time" and not name.startswith("speed/")}


def _text(metrics):
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
