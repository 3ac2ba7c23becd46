"""Batches of utterances for transducers (Joshi et al. 2021, section 4): log-mel frames, stored or computed, and symbols.

    utterances = Utterances.read("corpus/train.jsonl.gz")       # pyspeech.data.utterances
    sampler = LanguageSampler(utterances, languages, batch_seconds=200, max_utterances=32, seed=1)      # .batching
    dataset = UtteranceDataset(utterances, units, fbank_config, stats, specaugment)
    loader = BatchLoader(dataset, sampler, seed=1)              # pyspeech.training.data

A cut is one utterance, with one supervision: its raw text and its language's code. SpecAugment, warp, channel and
surroundings draw from numpy's global generator, which the loader seeds by epoch and batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyspeech.data.cuts import read_samples, supervision_of
from pyspeech.data.reader import UtteranceReader
from pyspeech.errors import UserError
from pyspeech.features.channel import random_channel
from pyspeech.features.fbank import fbank, stack
from pyspeech.features.frame_store import to_stored
from pyspeech.features.specaugment import spec_augment
from pyspeech.features.warping import draw_factor, warp_log_mel
from pyspeech.text.normalize import normalize

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.asr.surroundings import Surroundings
    from pyspeech.data.utterances import Utterances
    from pyspeech.features.config import FbankConfig, SpecAugmentConfig
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.features.frame_store import FrameStore


class UtteranceDataset(torch.utils.data.Dataset):
    """Data set of batches: dataset[rows] is the batch of these rows of the `utterances`.

    units: {language code: units} (encode(text) -> list of symbols); the order of its languages is that of the indices
    in the batch. stats: GlobalStats. specaugment: SpecAugmentConfig, or None for validation.
    stored: FrameStore of the log-mel frames of these very rows, or None. Those that it lacks are computed each time, and
    rounded alike: how many are stored changes no batch. warp: vocal tract length perturbation (pyspeech.features.warping)
    by factors up to this one; 1 for none. channel_db: gains up to this, drawn at channel_corners
    frequencies (pyspeech.features.channel); 0 for none. surroundings: pauses, joined utterances and levels, or None;
    what they change is computed from its audio, stored or not. surroundings_from: (epoch, index) of the first batch that has
    them. cache_gigabytes: of audio kept in memory; it changes no batch.
    """

    def __init__(
        self,
        utterances: Utterances,
        units: dict[str, Any],
        fbank_config: FbankConfig,
        stats: GlobalStats,
        specaugment: SpecAugmentConfig | None = None,
        stored: FrameStore | None = None,
        warp: float = 1.0,
        channel_db: float = 0.0,
        channel_corners: int = 2,
        surroundings: Surroundings | None = None,
        surroundings_from: tuple[int, int] = (0, 0),
        cache_gigabytes: float = 0.0,
    ) -> None:
        fbank_config.check()
        if specaugment is not None:
            specaugment.check()
        if stored is not None and len(stored) != len(utterances):
            raise UserError(
                f"{stored.folder}: frames of {len(stored)} utterances, expected {len(utterances)}; "
                "run the stage that writes them again"
            )
        self.utterances, self.units, self.languages = utterances, units, list(units)
        self.config, self.stats, self.specaugment, self.stored = fbank_config, stats, specaugment, stored
        self.warp, self.channel_db, self.corners = warp, channel_db, channel_corners
        self.surroundings, self.surroundings_from, self._position = surroundings, surroundings_from, (0, 0)
        self._read = UtteranceReader(fbank_config.sampling_rate, cache_gigabytes)

    def set_position(self, epoch: int, index: int) -> None:
        """Say which batch of what epoch is made next, both from 0."""
        self._position = epoch, index

    def names(self, rows: Iterable[int]) -> list[str]:
        """Names of these rows in messages: their utterance ids."""
        return self.utterances.names(rows)

    def __getitem__(self, rows: Iterable[int]) -> dict[str, torch.Tensor]:
        """B utterances, T encoder frames and S symbols at most:

        features       (B, T, dim) float32, normalised, 0 behind the end
        lengths        (B,) int64, encoder frames
        tokens         (B, S) int64, 0 behind the end
        token_lengths  (B,) int64
        languages      (B,) int64, indices into `self.languages`
        """
        features, tokens, languages = [], [], []
        for row in rows:
            cut = self.utterances[row]
            frames, heard = self._heard(row, cut)
            if self.warp > 1:
                frames = warp_log_mel(frames, draw_factor(self.warp), self.config)
            if self.channel_db > 0:
                frames = random_channel(frames, self.channel_db, self.config, self.corners)
            frames = self.stats.apply(frames)
            if self.specaugment is not None:
                frames = spec_augment(frames, self.specaugment)
            features.append(stack(frames, self.config))
            tokens.append(torch.tensor(self._encode(heard), dtype=torch.int64))
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

    def _frames(self, row, cut):
        frames = None if self.stored is None else self.stored.get(row)
        return to_stored(fbank(self._read(cut), self.config)) if frames is None else frames

    def _heard(self, row, cut):
        """(frames, [cut, ...] of what is said in them) of an utterance, with what is drawn around it."""
        surroundings = self.surroundings
        if surroundings is None or self._position < self.surroundings_from:
            return self._frames(row, cut), [cut]
        rows = self.utterances.rows_of(supervision_of(cut).language or "")

        def another():
            return self.utterances[int(rows[np.random.randint(len(rows))])]

        heard = [cut, another()] if surroundings.joins() else [cut]
        reads = [functools.partial(self._read, one) for one in heard]
        samples = surroundings.surround(reads, lambda: self._read(another()))
        if samples is None:
            return self._frames(row, cut), heard
        return to_stored(fbank(samples, self.config)), heard

    def _encode(self, cuts):
        language, texts = supervision_of(cuts[0]).language, [supervision_of(cut).text for cut in cuts]
        if language not in self.units:
            raise UserError(f"{cuts[0].id}: language '{language}'; expected one of {', '.join(self.languages)}")
        return self.units[language].encode(normalize(" ".join(filter(None, texts)), language))


def compute_frames(cut: Cut, config: FbankConfig) -> torch.Tensor:
    """Log-mel frames (F, num_bins) float32 of a cut."""
    return fbank(read_samples(cut, config.sampling_rate), config)


def _pad(sequences):
    """Tensors (n, ...) -> (batch (B, max n, ...) with 0 behind the end, lengths (B,) int64)."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True), lengths
