"""Measured parts of a recipe: features, loading of training batches, training steps, decoding.

Each is the recipe's own code at the sizes of one of its profiles, with random weights, on made-up audio. What is computed
does not depend on how many processes share it: UNITS pieces of audio or batches, of which each takes the `numbers` that it is
given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steps.benchmark.plans import PLANS, Training, training_of
from steps.benchmark.timing import cpu_pressure

if TYPE_CHECKING:
    import numpy as np
    import torch

    from pyspeech.features.config import FbankConfig, MfccConfig, StftConfig
    from pyspeech.spoof.config import LogMelConfig

PARTS = ("features", "loading", "training", "decoding")
UNITS = 12  # pieces of a part
PROOF_STEPS = 4  # of a training, whose losses say what was computed
FEATURE_SECONDS = 30.0  # of a piece of audio that features are computed of
DECODING_SECONDS = {"fearless": 30.0, "indic": 3.0, "zerospeech": 10.0, "add2022": 10.0}  # of one that is decoded
SYMBOLS_A_SECOND = 12.0  # that a transducer is made to put out


class Piece(NamedTuple):
    """run(): does it, and returns a number that says what came out; seconds: of audio."""

    run: object
    seconds: float


def made_up_speech(seconds: float, rate: int, seed: int = 0) -> np.ndarray:
    """Noise that changes its level, and bursts of a buzzing voice: float32 (N,)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    noise = 0.01 * (1 + (time % 60 > 40)) * rng.standard_normal(len(time))
    pulses = (np.diff(np.floor(120 * time + 3 * np.sin(2 * np.pi * time)), prepend=0) != 0) * (time % 7 < 2.3)
    return (noise + 0.3 * pulses).astype(np.float32)


def number_of(tensor: Any) -> float:
    """A number that tells arrays and tensors of other content apart."""
    import torch

    return float(torch.as_tensor(tensor).double().abs().mean())


def feature_pieces(recipe: str, profile: str, folder: Path, settings: Sequence[str], numbers: Iterable[int]) -> Iterator[Piece]:
    """Pieces of audio in memory, on the device, to features."""
    import torch

    from pyspeech.compat import default_device
    from steps.benchmark.plans import load_recipe

    config = load_recipe(recipe).configure(profile, settings)[1].features
    compute = FEATURES[recipe](config, default_device())

    def run(samples):
        with torch.inference_mode():
            return number_of(compute(samples))

    for number in numbers:
        samples = torch.from_numpy(made_up_speech(FEATURE_SECONDS, config.sampling_rate, number)).to(default_device())
        yield Piece(partial(run, samples), FEATURE_SECONDS)


def stft_features(config: StftConfig, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    from pyspeech.features.stft import MagnitudeStft

    stft = MagnitudeStft(config).to(device)
    return lambda samples: stft(samples[None])


def encoder_features(config: FbankConfig, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    from pyspeech.features.fbank import fbank, stack

    return lambda samples: stack(fbank(samples, config), config)


def unit_features(config: MfccConfig, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    from pyspeech.features.mfcc import raw_features

    return lambda samples: raw_features(samples, config)


def log_mel_features(config: LogMelConfig, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    from pyspeech.spoof.networks import LogMel

    log_mel = LogMel(config).to(device)
    return lambda samples: log_mel(samples[None])


FEATURES = {"fearless": stft_features, "indic": encoder_features, "zerospeech": unit_features, "add2022": log_mel_features}


def loading_pieces(recipe: str, profile: str, folder: Path, settings: Sequence[str], numbers: Iterable[int]) -> Iterator[Piece]:
    """Batches of a training from the files of a corpus, as its data set makes them."""
    from pyspeech.training.randomness import RandomStream

    training = training_of(recipe, profile, folder, settings)

    items = first_items(training.sampler, UNITS)

    def load(number):
        with RandomStream(9, training.config.seed, number):
            return training.dataset[items[number]]

    for number in numbers:
        seconds = PLANS[recipe].seconds(load(number), training.conf)  # pyright: ignore[reportCallIssue]
        yield Piece(lambda number=number: number_of_batch(load(number)), float(seconds))


def first_items(sampler: Any, count: int) -> list[Any]:
    """Return the first items of a sampler, from the beginning again where it has fewer."""
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(0)
    items = list(islice(sampler, count))
    return list(islice(cycle(items), count))


def number_of_batch(batch: Mapping[str, Any]) -> float:
    """As `number_of`, of the largest floating-point tensor of a batch."""
    tensors = [value for value in batch.values() if hasattr(value, "is_floating_point") and value.is_floating_point()]
    return number_of(max(tensors, key=lambda tensor: tensor.numel()))


def decoding_pieces(
    recipe: str, profile: str, folder: Path, settings: Sequence[str], numbers: Iterable[int]
) -> Iterator[Piece]:
    """Pieces of audio in memory to scores, text or units."""
    from pyspeech.compat import default_device
    from pyspeech.training.randomness import seed_everything

    training, seconds = training_of(recipe, profile, folder, settings), DECODING_SECONDS[recipe]
    seed_everything(training.config.seed)
    decode = DECODING[recipe](training, training.make_model().to(default_device()).eval(), folder)
    for number in numbers:
        samples = made_up_speech(seconds, training.conf.features.sampling_rate, number)
        yield Piece(partial(decode, samples), seconds)


def speech_scores(training: Training, model: Any, folder: Path) -> Callable[[np.ndarray], float]:
    import torch

    from pyspeech.sad.decoding import score_samples

    def decode(samples):
        with torch.inference_mode():
            return number_of(score_samples(model, samples))

    return decode


def recognition(training: Training, model: Any, folder: Path) -> Callable[[np.ndarray], float]:
    import torch

    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.recognizer import recognize
    from pyspeech.features.fbank import GlobalStats
    from steps.asr.corpus import load_units
    from steps.benchmark.transducer import ScheduledBlank, sharpen

    transducer, config = sharpen(model.transducer), training.conf.features
    transducer.logits = ScheduledBlank(transducer.logits, SYMBOLS_A_SECOND * config.frame_seconds)
    stats = GlobalStats.load(folder / "features" / "stats.json")
    bundle = Bundle(transducer, load_units(folder / "units", transducer.languages), config, stats)

    def decode(samples):
        transducer.logits.begin()  # pyright: ignore[reportAttributeAccessIssue]
        with torch.inference_mode():
            [found] = recognize(bundle, [samples], None, training.conf.search)
        return sum(map(len, found.by_language.values()))

    return decode


def units(training: Training, model: Any, folder: Path) -> Callable[[np.ndarray], float]:
    from pyspeech.units.checkpoint import Bundle
    from pyspeech.units.encoding import encode

    bundle = Bundle(model.vqvae, list(training.dataset.speakers), training.conf.features, training.dataset.read.stats)
    return lambda samples: number_of(encode(bundle, samples)[1])


def fake_scores(training: Training, model: Any, folder: Path) -> Callable[[np.ndarray], float]:
    from pyspeech.spoof.calibration import Calibration
    from pyspeech.spoof.detector import Detector, score_samples

    detector = Detector(model, training.conf.data, Calibration())
    return lambda samples: score_samples(detector, samples, detector.sampling_rate)


DECODING = {"fearless": speech_scores, "indic": recognition, "zerospeech": units, "add2022": fake_scores}
PIECES = {"features": feature_pieces, "loading": loading_pieces, "decoding": decoding_pieces}


def train_steps(
    training: Training, folder: Path, batches: int, repeats: int, seconds: float, log: logging.Logger
) -> dict[str, Any]:
    """Steps of a training, each of the same `batches` items of its sampler, measured by the trainer itself; by all processes of
    pyspeech.training.distributed that have joined, whose computing counts together.

    Returns {"seconds", "cpu_seconds": of a step, the mean of each repeat, "calls": steps of a repeat, "proof": the losses of
    the first steps, "pressure": as of Times, "waiting": share of the time spent waiting for data, "device_gigabytes": or None}.
    """
    import time
    from dataclasses import replace

    from pyspeech.compat import load_checkpoint
    from pyspeech.training import distributed
    from pyspeech.training.checkpoint import numbered_files
    from pyspeech.training.run import train

    items, begun, pressures = first_items(training.sampler, batches), [], []
    constant = replace(
        training.config,
        schedule="constant",
        warmup_steps=0,
        max_epochs=None,
        valid_every=None,
        patience=None,
        average_best=1,
        accumulate=batches,
        save_every=10**9,
    )

    def compute_loss(model, batch):
        begun.append(time.process_time())
        pressures.append(cpu_pressure() or 0.0)
        return training.compute_loss(model, batch)

    def run(steps, log_every):
        train(
            training.make_model,
            training.dataset,
            items,
            compute_loss,
            replace(constant, max_steps=steps, log_every=log_every),
            folder,
            None,
            log,
        )
        newest = list(numbered_files(folder, "checkpoint").values())[-1]
        return [point for point in load_checkpoint(newest)["position"]["history"] if "train/loss" in point]

    first = run(PROOF_STEPS, 1)
    calls = max(1, round(seconds * first[-1]["speed/steps_per_second"]))
    last = PROOF_STEPS + calls * (repeats + 1) + 1  # a repeat to warm up, and a step that ends the computing of the last
    points = [point for point in run(last, calls) if point["step"] < last][-repeats:]
    own = len(range(distributed.rank(), batches, distributed.world_size()))  # batches of a step that this process takes
    ends = [point["step"] * own for point in points]
    computing = [(begun[end] - begun[end - calls * own]) / calls for end in ends]
    return {
        "seconds": [1 / point["speed/steps_per_second"] for point in points],
        "cpu_seconds": [sum(each) for each in zip(*distributed.gather(computing), strict=True)],
        "calls": calls,
        "pressure": max(pressures[ends[0] :]),
        "proof": [point["train/loss"] for point in first],
        "waiting": sum(point["speed/waiting"] for point in points) / len(points),
        "device_gigabytes": max(
            (point["speed/gpu_gigabytes"] for point in points if "speed/gpu_gigabytes" in point), default=None
        ),
    }


def audio_of_step(recipe: str, training: Training, batches: int) -> float:
    """Seconds of audio in the first step of `train_steps`, of all processes."""
    from pyspeech.training import distributed
    from pyspeech.training.data import BatchLoader

    loader = BatchLoader(training.dataset, first_items(training.sampler, batches), training.config.seed)
    own = float(sum(PLANS[recipe].seconds(batch, training.conf) for _, batch in loader(0)))  # pyright: ignore[reportCallIssue]
    return sum(distributed.gather(own))
