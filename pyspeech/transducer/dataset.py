"""Minibatches of utterances for transducers: each of one language, drawn by hours (Joshi et al. 2021, section 4), or of
the languages as they come (section 3, vanilla and one-hot).

    stats = GlobalStats.compute(frames for _, frames in compute_frames(cuts, fbank_config))
    sampler = language_sampler(cuts, languages, batch_seconds=200, max_utterances=32, seed=1)
    dataset = UtteranceDataset(units, fbank_config, stats, specaugment)
    loader = BatchLoader(dataset, sampler, seed=1)              # pyspeech.training.data

A cut is one utterance, with one supervision: its raw text and its language's code. The sampler draws from a generator
of its own, which follows from seed and epoch; SpecAugment and the warp draw from numpy's global one, which the loader
seeds by epoch and batch. So an epoch can be entered anywhere with the batches that it would have had.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyspeech.cache import BoundedCache
from pyspeech.cuts import DURATION_JITTER, read_samples, split_batches, supervision_of
from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank, stack
from pyspeech.features.specaugment import spec_augment
from pyspeech.features.warping import draw_factor, warp_log_mel
from pyspeech.text.normalize import normalize
from pyspeech.training import distributed

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

    from pyspeech.features.config import FbankConfig, SpecAugmentConfig
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.features.frame_store import FrameStore

CACHE_BYTES = 2 << 30  # 18 hours of log-mel frames; what comes later is computed each time


def language_sampler(
    cuts: Iterable[Cut],
    languages: Iterable[str],
    batch_seconds: float,
    max_utterances: int,
    seed: int,
    together: int = 1,
    pooled: bool = False,
) -> LanguageSampler:
    """A sampler for BatchLoader of CutSets, each of one of `languages` (codes); cuts of others are left out.

    batch_seconds: limit of a minibatch's seconds, padding included (the longest utterance times their number; an
    utterance longer than that is a minibatch of its own). max_utterances: limit of their number. together: minibatches,
    of a language each, that make one CutSet; fewer at the end of an epoch. pooled: the languages are one set of
    utterances, from which minibatches of similar durations are drawn, of whatever languages.
    """
    return LanguageSampler(cuts, languages, batch_seconds, max_utterances, seed, together, pooled)


class LanguageSampler:
    """Each epoch: every utterance once, in minibatches of one language and similar durations.

    The languages of a step's minibatches are drawn with probabilities in proportion to their hours, among the languages
    that have minibatches left: by systematic sampling, so that the share of each is its share of the hours to within one
    minibatch, and steps differ little in their languages. The minibatches of a step have the same rank among the
    durations of their languages, as far as what is left allows, so that little of them is padding when they are encoded
    together. With several processes all of them have minibatches of the same language at a time.
    """

    def __init__(
        self,
        cuts: Iterable[Cut],
        languages: Iterable[str],
        batch_seconds: float,
        max_utterances: int,
        seed: int,
        together: int = 1,
        pooled: bool = False,
    ) -> None:
        if batch_seconds <= 0 or max_utterances < 1 or together < 1:
            raise UserError(
                f"batch_seconds={batch_seconds}, max_utterances={max_utterances}, together={together}: expected more than 0"
            )
        self.cuts = {language: [] for language in languages}
        for cut in cuts:
            language = supervision_of(cut).language
            if language in self.cuts:
                self.cuts[language].append(cut)
        for language, chosen in self.cuts.items():
            if not chosen:
                raise UserError(f"no training utterances of language '{language}'; leave it out or check the corpus")
        if pooled:
            self.cuts = {"all": [cut for chosen in self.cuts.values() for cut in chosen]}
        self.batch_seconds, self.max_utterances = batch_seconds, max_utterances
        self.seed, self.epoch, self.together = seed, 0, together

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[CutSet]:
        from lhotse import CutSet

        rng = np.random.default_rng([self.seed, self.epoch])
        rank, world_size = distributed.rank(), distributed.world_size()
        seconds = {language: sum(cut.duration for cut in cuts) for language, cuts in self.cuts.items()}
        left = {language: self._batches(cuts, rng) for language, cuts in self.cuts.items()}
        while left:
            step, place = [], rng.random()
            for language in draw_languages({language: seconds[language] for language in left}, self.together, rng):
                batches = [_pop(left[language], place) for _ in range(min(world_size, len(left[language])))]
                if batches:  # the languages drawn before may have taken the last one
                    step += batches[rank % len(batches)]
            left = {language: batches for language, batches in left.items() if batches}
            yield CutSet.from_cuts(step)

    def _batches(self, cuts, rng):
        """The language's minibatches of the epoch by duration: lists of cuts."""
        durations = [cut.duration * (1 + rng.uniform(-DURATION_JITTER, DURATION_JITTER)) for cut in cuts]
        ordered = [cuts[index] for index in np.argsort(durations, kind="stable")]
        return split_batches(ordered, self.batch_seconds, self.max_utterances)


def draw_languages(seconds: dict[str, float], count: int, rng: np.random.Generator) -> list[str]:
    """`count` of the languages of {language: seconds}, in order, each about seconds / total * count times.

    Systematic sampling: points of equal distance, the first of them random, on the line of all seconds. A count of 1 is
    a draw with probabilities in proportion to the seconds.
    """
    ends = np.cumsum(list(seconds.values()))
    points = (rng.random() + np.arange(count)) / count * ends[-1]
    chosen = np.searchsorted(ends, points, side="right").clip(max=len(ends) - 1)
    return [list(seconds)[index] for index in chosen]


def _pop(entries, place):
    """Take an entry out of a list, at a place from 0 (first) to 1 (excluded; behind the last)."""
    return entries.pop(int(place * len(entries)))


class UtteranceDataset(torch.utils.data.Dataset):
    """dataset[cuts]: the batch of these utterances.

    units: {language code: units} (encode(text) -> list of symbols); the order of its languages is that of the indices
    in the batch. stats: GlobalStats. specaugment: SpecAugmentConfig, or None for validation.
    stored: FrameStore of log-mel frames, or None; those that it lacks are computed. cache: whether these stay in memory,
    up to CACHE_BYTES in each process. warp: vocal tract length perturbation (pyspeech.features.warping) by factors up to
    this one; 1 for none.
    """

    def __init__(
        self,
        units: dict[str, Any],
        fbank_config: FbankConfig,
        stats: GlobalStats,
        specaugment: SpecAugmentConfig | None = None,
        cache: bool = True,
        stored: FrameStore | None = None,
        warp: float = 1.0,
    ) -> None:
        if specaugment is not None:
            specaugment.check()
        self.units, self.languages = units, list(units)
        self.config, self.stats, self.specaugment, self.warp = fbank_config, stats, specaugment, warp
        self.frames = FrameReader(fbank_config, CACHE_BYTES if cache else 0, stored)

    def __getitem__(self, cuts: Iterable[Cut]) -> dict[str, torch.Tensor]:
        """B utterances, T encoder frames and S symbols at most:

        features       (B, T, dim) float32, normalised, 0 behind the end
        lengths        (B,) int64, encoder frames
        tokens         (B, S) int64, 0 behind the end
        token_lengths  (B,) int64
        languages      (B,) int64, indices into `self.languages`
        """
        features, tokens, languages = [], [], []
        for cut in cuts:
            frames = self.frames(cut)
            if self.warp > 1:
                frames = warp_log_mel(frames, draw_factor(self.warp), self.config)
            frames = self.stats.apply(frames)
            if self.specaugment is not None:
                frames = spec_augment(frames, self.specaugment)
            features.append(stack(frames, self.config))
            tokens.append(torch.tensor(self._encode(cut), dtype=torch.int64))
            languages.append(self.languages.index(supervision_of(cut).language))  # pyright: ignore[reportArgumentType]
        features, lengths = _pad(features)
        tokens, token_lengths = _pad(tokens)
        return {
            "features": features,
            "lengths": lengths,
            "tokens": tokens,
            "token_lengths": token_lengths,
            "languages": torch.tensor(languages),
        }

    def _encode(self, cut):
        supervision = supervision_of(cut)
        if supervision.language not in self.units:
            raise UserError(f"{cut.id}: language '{supervision.language}'; expected one of {', '.join(self.languages)}")
        return self.units[supervision.language].encode(normalize(supervision.text or "", supervision.language))


def compute_frames(cuts: Iterable[Cut], fbank_config: FbankConfig, jobs: int = 1) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (id, log-mel frames) of each of `cuts`, in order, computed by `jobs` threads; few are in memory at a time."""
    from concurrent.futures import ThreadPoolExecutor

    read, cuts = FrameReader(fbank_config), iter(cuts)
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            some = list(itertools.islice(cuts, 64 * jobs))
            if not some:
                return
            yield from zip([cut.id for cut in some], pool.map(read, some))


def perturb_speed(cuts: Iterable[Cut], factors: Sequence[float] = (0.9, 1.1)) -> CutSet:
    """The cuts and, for each factor, a copy that is so many times as fast (Ko et al. 2015), as a CutSet.

    Pitch and tempo change together. The copies have the factor in their ids.
    """
    from lhotse import CutSet

    cuts = list(cuts)
    return CutSet.from_cuts(cuts + [cut.perturb_speed(factor) for factor in factors for cut in cuts])


class FrameReader:
    """read(cut): its log-mel frames (F, num_bins) float32, from the FrameStore `stored` where it has them. Of those that
    are computed, the first are kept, up to cache_bytes."""

    def __init__(self, config: FbankConfig, cache_bytes: int = 0, stored: FrameStore | None = None) -> None:
        config.check()
        self.config, self.cache, self.stored = config, BoundedCache(cache_bytes), stored

    def __call__(self, cut: Cut) -> torch.Tensor:
        frames = None if self.stored is None else self.stored.get(cut.id)
        return self.cache.get(cut.id, lambda: self._compute(cut)) if frames is None else frames

    def _compute(self, cut):
        return fbank(read_samples(cut, self.config.sampling_rate), self.config)


def _pad(sequences):
    """Tensors (n, ...) -> (batch (B, max n, ...) with 0 behind the end, lengths (B,) int64)."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True), lengths
