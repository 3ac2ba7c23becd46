"""Training batches of the detector: random crops of utterances, each genuine or fake (Li et al. 2022, section 3.2).

    sampler = UtteranceSampler(cuts, data, seed)
    dataset = CropDataset(data, sampling_rate, augment)
    loader = BatchLoader(dataset, sampler, seed)                # pyspeech.training.data

A cut is one utterance; formats.label_of says what its supervision holds. The sampler draws from a generator of its own,
which follows from seed and epoch; crops and augmentation draw from one that follows from numpy's global generator,
which the loader seeds by epoch and batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyspeech.data.reader import UtteranceReader
from pyspeech.errors import UserError
from pyspeech.spoof.formats import label_of, original_of, page_of
from pyspeech.spoof.heard import SHORTEST
from pyspeech.spoof.networks import FAKE, GENUINE
from pyspeech.spoof.page_draws import draw_by_page, pair_up
from pyspeech.spoof.pieces import prepared, random_crop
from pyspeech.spoof.resynthesis import resynthesize

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

    from pyspeech.spoof.config import CropConfig

CLEAN = "as_it_is"  # custom field of a cut that is not to be augmented


class UtteranceSampler:
    """Sampler of every utterance once per epoch, in random order, in batches whose sizes differ by at most 1, for
    BatchLoader.

    data: CropConfig. With data.balanced an epoch has as many utterances as before, but each batch is half genuine and half
    fake (one more where that is odd): of the larger class some are left to later epochs, of the smaller one all return. A
    genuine utterance has then one of the fakes behind it that were made of it, where the cuts say so (formats.original_of).
    Those by the engines of data.often are so many times as often behind it as others. Where the cuts say which page they are of
    (formats.page_of), data.even_pages says how evenly those of a class are drawn, and a fake of its page is behind a genuine
    utterance as far as there are some (pyspeech/spoof/page_draws.py). In the first data.clean_batches batches cuts are
    marked, and CropDataset leaves them as they are. UserError where there is no utterance of either class.
    """

    def __init__(self, cuts: Iterable[Cut], data: CropConfig, seed: int) -> None:
        data.check()
        self.cuts, self.data, self.seed, self.epoch = list(cuts), data, seed, 0
        labels = [label_of(cut) for cut in self.cuts]
        genuine = np.array([label.genuine for label in labels], dtype=bool)
        self.classes = [np.flatnonzero(genuine), np.flatnonzero(~genuine)]
        for name, indices in zip(("genuine", "fake"), self.classes, strict=True):
            if len(indices) == 0:
                raise UserError(
                    f"none of the {len(self.cuts)} training utterances is {name}; training needs both kinds: check the corpus"
                )

        self.fakes_of = self._fakes_of()
        self.originals = {fake: genuine for genuine, fakes in self.fakes_of.items() for fake in fakes}
        self.times = np.array([data.often.get(label.attack, 1.0) for label in labels])
        pages = np.unique([page_of(cut) for cut in self.cuts], return_inverse=True)[1]
        self.pages = pages if data.even_pages else np.zeros_like(pages)

    def _fakes_of(self):
        """{index of a genuine cut: those of the fakes made of it}."""
        genuine = {self.cuts[index].id: index for index in self.classes[0]}
        found = {}
        for index in self.classes[1]:
            original = genuine.get(original_of(self.cuts[index]))
            if original is not None:
                found.setdefault(original, []).append(index)
        return found

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[CutSet]:
        from lhotse import CutSet

        rng = np.random.default_rng([self.seed, self.epoch])
        order = self._balanced_order(rng) if self.data.balanced else rng.permutation(len(self.cuts))
        batches = np.array_split(order, -(-len(order) // self.data.batch_size))
        for index, batch in enumerate(batches):
            clean = self.epoch * len(batches) + index < self.data.clean_batches
            yield CutSet.from_cuts(self._named(batch, clean))

    def _balanced_order(self, rng):
        """Genuine and fake in turn."""
        half = -(-len(self.cuts) // 2)
        drawn = self._evenly_drawn(half, rng) if np.any(self.pages) else self._drawn(half, rng)
        return np.stack(drawn, axis=1).reshape(-1)[: len(self.cuts)]

    def _drawn(self, half, rng):
        drawn = []
        for indices in self.classes:
            rounds = -(-half // len(indices))
            drawn.append(np.concatenate([rng.permutation(indices) for _ in range(rounds)])[:half])
        if self.fakes_of or self.data.often:
            genuine, others = drawn
            drawn[1] = np.array(
                [self._draw(self.fakes_of.get(index), other, rng) for index, other in zip(genuine, others, strict=True)]
            )
        return drawn

    def _evenly_drawn(self, half, rng):
        genuine, fakes = (
            draw_by_page(some, self.pages[some], half, rng, self.times[some], self.data.even_pages) for some in self.classes
        )
        return [genuine, pair_up(genuine, fakes, self.pages, self.originals)]

    def _draw(self, fakes, other, rng):
        """The fake behind a genuine utterance: of those made of it, or, where none is known, `other` or any. One that is a copy
        of none stands where it was drawn: else those that are copies would take all places."""
        if fakes is not None and other not in self.originals:
            fakes = self.classes[1] if self.data.often else [other]
        if not self.data.often:  # with equal chances p would draw others than before there was this option
            return rng.choice([other] if fakes is None else fakes)
        fakes = self.classes[1] if fakes is None else fakes
        return rng.choice(fakes, p=self.times[fakes] / self.times[fakes].sum())

    def _named(self, indices, clean):
        """The cuts of a batch; one that is there again has another id, for a CutSet has each id once."""
        seen = {}
        for index in indices:
            cut = self.cuts[index]
            seen[cut.id] = seen.get(cut.id, -1) + 1
            named = cut if seen[cut.id] == 0 else cut.with_id(f"{cut.id}#{seen[cut.id]}")
            yield named.with_custom(CLEAN, True) if clean else named


class CropDataset(torch.utils.data.Dataset):
    """dataset[cuts]: a batch of one random crop of each. A fake right behind the genuine utterance that it was made of, or
    behind another of its fakes, is cut and augmented as that one is: what differs is what made it. With
    data.resynthesized some fakes right behind a genuine utterance are copies of that one by a made-up vocoder instead
    (pyspeech/spoof/resynthesis.py).

    data: CropConfig. augment: augment(samples (N,) float32, rng=numpy Generator) -> (N,), applied to a crop before it
    is filled up; None for none. It follows from the batch alone: rng is its only source of chance.
    """

    def __init__(self, data: CropConfig, sampling_rate: int, augment: Callable[..., np.ndarray] | None = None) -> None:
        data.check()
        self.data, self.sampling_rate, self.augment = data, sampling_rate, augment
        self.read = UtteranceReader(sampling_rate, data.cache_gigabytes, data.silence)

    def __getitem__(self, cuts: Iterable[Cut]) -> dict[str, Any]:
        """B utterances:

        samples  (B, data.samples) float32
        targets  (B,) int64, networks.GENUINE or FAKE
        seconds  float, the audio in all, without what fills crops up
        clean    bool, whether they are as they were, and are to stay so (data.clean_batches)
        """
        cuts = list(cuts)
        seed = np.random.randint(2**32, size=4, dtype=np.uint64)
        rng, chance = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
        crops, original, genuine, state = [], None, None, rng.bit_generator.state
        for cut in cuts:
            before, original = original, original_of(cut)
            copied = genuine if not label_of(cut).genuine and chance.random() < self.data.resynthesized else None
            if copied is not None or (original and original == before):
                rng.bit_generator.state = state
            else:
                state = rng.bit_generator.state
            speed = 0 if is_clean(cut) else self.data.speed
            crop = random_crop(self.read(cut if copied is None else copied), self._size(rng), rng, speed)
            if copied is not None:
                crop = resynthesize(crop, self.sampling_rate, chance)
            crops.append(self._augmented(crop, cut, rng))
            genuine = cut if label_of(cut).genuine else None
        return {
            "samples": torch.from_numpy(np.stack([prepared(crop, self.data) for crop in crops])),
            "targets": torch.tensor([GENUINE if label_of(cut).genuine else FAKE for cut in cuts]),
            "seconds": sum(map(len, crops)) / self.sampling_rate,
            "clean": is_clean(cuts[0]),
        }

    def _size(self, rng):
        if not self.data.shortened or rng.random() >= self.data.shortened:
            return self.data.samples
        return int(rng.integers(min(self.data.samples, round(SHORTEST * self.sampling_rate)), self.data.samples + 1))

    def _augmented(self, crop, cut, rng):
        if self.augment is None or is_clean(cut):
            return crop
        augmented = np.asarray(self.augment(crop, rng=rng), dtype=np.float32)
        if augmented.shape != crop.shape:
            raise ValueError(f"augmentation turned {crop.shape} samples into {augmented.shape}")
        return augmented


def is_clean(cut: Cut) -> bool:
    """True if the sampler has marked a cut as clean, not to be augmented."""
    return bool((getattr(cut, "custom", None) or {}).get(CLEAN))
