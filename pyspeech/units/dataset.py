"""Minibatches of utterances for the VQ-VAE and the inverter: features, speakers and, for the inverter, magnitudes.

    stats = corpus_stats(cuts, features) if features.needs_stats else None
    sampler = DurationSampler(cuts, data, seed)
    dataset = UnitDataset(speakers_of(cuts), features, data, stats, magnitudes=False)
    loader = BatchLoader(dataset, sampler, seed)                # pyspeech.training.data

A cut is one utterance, with one supervision that names its speaker. The sampler draws from a generator of its own, which
follows from seed and epoch; crops are drawn from numpy's global one, which the loader seeds by epoch and batch. Features are
normalised over the whole utterance before a piece is cropped.

With data.warp, the VQ-VAE's encoder hears each utterance in the voice of another vocal tract (pyspeech.features.warping), by a
factor that is drawn anew each time, its logarithm uniform; the decoder still has to give the features as they were. So codes
learn to be alike for alike sounds of different voices, of which reconstruction alone says nothing: with the speaker known, any
pairing of one voice's sounds with another's serves it as well. The paper has no such thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyspeech.data.cache import BoundedCache
from pyspeech.data.cuts import DURATION_JITTER, read_samples, split_batches, supervision_of
from pyspeech.errors import UserError
from pyspeech.features.fbank import GlobalStats
from pyspeech.features.mfcc import normalise, raw_features
from pyspeech.features.stft import MagnitudeStft
from pyspeech.features.warping import draw_factor, warp

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

    from pyspeech.features.config import MfccConfig
    from pyspeech.units.config import UnitDataConfig


def speakers_of(cuts: Iterable[Cut]) -> list[str]:
    """The speakers' names, sorted; a name's index is what the models know. UserError where a cut has none."""
    return sorted({speaker_of(cut) for cut in cuts})


def speaker_of(cut: Cut) -> str:
    speaker = supervision_of(cut).speaker
    if not speaker:
        raise UserError(f"{cut.id}: no speaker in its supervision; the models need one for each training utterance")
    return speaker


def corpus_stats(cuts: Iterable[Cut], config: MfccConfig) -> GlobalStats:
    """GlobalStats of the features of `cuts`, not normalised; config: MfccConfig."""
    return GlobalStats.compute(raw_features(read_samples(cut, config.sampling_rate), config) for cut in cuts)


class DurationSampler:
    """Sampler of every utterance once per epoch, in batches of similar durations, the batches in random order, for
    BatchLoader.

    data: UnitDataConfig; an utterance longer than its batch_seconds is a batch of its own.
    """

    def __init__(self, cuts: Iterable[Cut], data: UnitDataConfig, seed: int) -> None:
        data.check()
        self.cuts, self.data, self.seed, self.epoch = list(cuts), data, seed, 0
        if not self.cuts:
            raise UserError("no utterance to train on; check the corpus")

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[CutSet]:
        from lhotse import CutSet

        rng = np.random.default_rng([self.seed, self.epoch])
        durations = np.array([cut.duration for cut in self.cuts])
        if self.data.crop_seconds:
            durations = np.minimum(durations, self.data.crop_seconds)
        order = np.argsort(durations * (1 + rng.uniform(-DURATION_JITTER, DURATION_JITTER, len(durations))), kind="stable")
        batches = split_batches(order, self.data.batch_seconds, self.data.max_utterances, durations.__getitem__)
        rng.shuffle(batches)
        for batch in batches:
            yield CutSet.from_cuts(self.cuts[index] for index in batch)


class UnitDataset(torch.utils.data.Dataset):
    """Data set of batches: dataset[cuts] is the batch of these utterances.

    speakers: names in the order of their indices. features: MfccConfig, with `stats` where it needs them. data:
    UnitDataConfig. magnitudes: whether the batch has them, for the inverter, which hears voices as they are.
    """

    def __init__(
        self,
        speakers: Iterable[str],
        features: MfccConfig,
        data: UnitDataConfig,
        stats: GlobalStats | None = None,
        magnitudes: bool = False,
    ) -> None:
        data.check()
        self.speakers = {speaker: index for index, speaker in enumerate(speakers)}
        self.features, self.data = features, data
        self.warp = 1.0 if magnitudes else data.warp
        self.read = FeatureReader(features, stats, magnitudes, int(data.cache_gigabytes * 2**30), raw=self.warp > 1)

    def __getitem__(self, cuts: Iterable[Cut]) -> dict[str, Any]:
        """B utterances of T frames at most:

        features    (B, T, dim) float32, 0 behind the end
        lengths     (B,) int64, frames, at least 1
        speakers    (B,) int64
        targets     (B, T, dim) float32, features of the voices as they are; where data.warp has the others warped
        magnitudes  (B, T, bins) float32, linear, 0 behind the end; where asked for
        seconds     float, the audio in all
        """
        cuts = list(cuts)
        size = self._crop_frames()
        utterances = [self._piece(self._perturb(self.read(cut)), size) for cut in cuts]
        lengths = torch.tensor([len(parts[0]) for parts in utterances])
        batch = {
            "features": _pad([parts[0] for parts in utterances]),
            "lengths": lengths,
            "speakers": torch.tensor([self._speaker(cut) for cut in cuts]),
            "seconds": float(lengths.sum()) * self.features.frame_seconds,
        }
        if self.warp > 1:
            batch["targets"] = _pad([parts[1] for parts in utterances])
        if self.read.stft is not None:
            batch["magnitudes"] = _pad([parts[1] for parts in utterances])
        return batch

    def _perturb(self, parts):
        """[features, raw features] -> [features of the warped, features], where there is a warp."""
        if self.warp <= 1:
            return parts
        features, raw = parts
        return [normalise(warp(raw, draw_factor(self.warp), self.features), self.features, self.read.stats), features]

    def _crop_frames(self):
        """Frames that the pieces of a batch have at most, or None for whole utterances."""
        data = self.data
        if not data.crop_seconds:
            return None
        seconds = np.random.uniform(data.shortest_crop or data.crop_seconds, data.crop_seconds)
        return max(1, round(seconds / self.features.frame_seconds))

    @staticmethod
    def _piece(parts, size):
        """The same random piece of `size` frames of each of `parts`; all of it where there are no more."""
        if size is None or len(parts[0]) <= size:
            return parts
        start = np.random.randint(len(parts[0]) - size + 1)
        return [part[start : start + size] for part in parts]

    def _speaker(self, cut):
        speaker = speaker_of(cut)
        if speaker not in self.speakers:
            raise UserError(
                f"{cut.id}: speaker '{speaker}'; expected one of the {len(self.speakers)} that are trained: "
                f"{', '.join(list(self.speakers)[:8])}"
            )
        return self.speakers[speaker]


class FeatureReader:
    """read(cut): [features (F, dim)] of the whole utterance, float32; behind them, where asked for, linear magnitudes
    (F, bins), and the features before they are normalised.

    The first that are computed are kept in memory, up to cache_bytes of all processes that were forked off.
    """

    def __init__(
        self,
        config: MfccConfig,
        stats: GlobalStats | None = None,
        magnitudes: bool = False,
        cache_bytes: int = 0,
        raw: bool = False,
    ) -> None:
        config.check()
        self.config, self.stats, self.raw = config, stats, raw
        self.stft = MagnitudeStft(config.magnitudes) if magnitudes else None
        self.cache = BoundedCache(cache_bytes)

    def __call__(self, cut: Cut) -> list[torch.Tensor]:
        return list(map(torch.from_numpy, self.cache.get(cut.id, lambda: [part.numpy() for part in self._compute(cut)])))

    def _compute(self, cut):
        samples = torch.from_numpy(read_samples(cut, self.config.sampling_rate))
        raw = raw_features(samples, self.config)
        if len(raw) == 0:
            raise UserError(f"{cut.id}: no samples; remove it from the corpus, or prepare the corpus again")
        parts = [normalise(raw, self.config, self.stats)]
        if self.stft is not None:
            parts.append(self.stft(samples[None], len(raw))[0])
        return [*parts, raw] if self.raw else parts


def _pad(sequences):
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
