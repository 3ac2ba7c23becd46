"""The augmentations of pyspeech/spoofing/augmentation.py for lhotse's cuts, applied while their audio is read.

lhotse has noise, music and rooms (CutMix, ReverbWithImpulseResponse); anonymisation is added here, as a transform of
recordings like its own. A manifest that holds it can be read where this module has been imported.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional

import numpy as np
from lhotse import CutSet, RecordingSet
from lhotse.augmentation import AudioTransform
from lhotse.cut import Cut, MixedCut, PaddingCut
from lhotse.dataset.cut_transforms import CutMix, ReverbWithImpulseResponse
from lhotse.dataset.dataloading import resolve_seed
from lhotse.utils import fastcopy

from pyspeech.spoofing.config import AugmentConfig
from pyspeech.spoofing.mcadams import anonymize


@dataclass
class McAdamsAnonymization(AudioTransform):
    """Of the audio of a recording, as much of it as is read: samples (channels, N) -> the same shape.

    sampling_rate: of these samples, in Hz. Lhotse calls each transform of a recording with the rate that the last one
    leaves, which is another one where the recording is resampled after this; None: that rate.
    """

    coefficient: float
    level: str = "rms"
    sampling_rate: Optional[int] = None

    def __call__(self, samples: np.ndarray, sampling_rate: int) -> np.ndarray:
        return anonymize(np.asarray(samples), self.coefficient, self.sampling_rate or sampling_rate, self.level)

    def reverse_timestamps(
        self, offset: float, duration: float | None, sampling_rate: int | None
    ) -> tuple[float, float | None]:
        """Nothing moves in time."""
        return offset, duration


class McAdams:
    """CutSet -> CutSet: each cut anonymised with probability `p`, by one of the coefficients, each as likely.

    seed: an int, or "trng" or "randomized" as in lhotse; draws go on from call to call. preserve_id: whether a changed
    cut keeps its id, which else ends in the coefficient (_mc0.8).
    """

    def __init__(
        self,
        coefficients: Sequence[float],
        p: float = 0.5,
        seed: int | Literal["trng", "randomized"] = 42,
        preserve_id: bool = False,
    ) -> None:
        self.coefficients, self.p, self.seed, self.preserve_id = tuple(coefficients), p, seed, preserve_id
        self.random: Any = None  # random.Random, made at the first call, in the process that makes it

    def __call__(self, cuts: CutSet) -> CutSet:
        if self.random is None:
            self.random = random.Random(resolve_seed(self.seed))  # pyright: ignore[reportArgumentType]
        return CutSet.from_cuts([self._draw(cut) for cut in cuts])  # pyright: ignore[reportGeneralTypeIssues]

    def _draw(self, cut):
        chance, coefficient = self.random.random(), self.random.choice(self.coefficients)
        return anonymize_cut(cut, coefficient, affix_id=not self.preserve_id) if chance < self.p else cut


def anonymize_cut(cut: Cut, coefficient: float, affix_id: bool = True) -> Cut:
    """The cut with its audio anonymised when it is read; features that are stored are left behind."""
    name = f"{cut.id}_mc{coefficient:g}" if affix_id else cut.id
    if isinstance(cut, PaddingCut):
        return cut
    if isinstance(cut, MixedCut):
        tracks = [fastcopy(track, cut=anonymize_cut(track.cut, coefficient, affix_id)) for track in cut.tracks]
        return fastcopy(cut, id=name, tracks=tracks)
    recording = cut.recording  # pyright: ignore[reportAttributeAccessIssue]
    anonymization = McAdamsAnonymization(coefficient, sampling_rate=recording.sampling_rate)
    transforms = [*(recording.transforms or []), anonymization]
    return fastcopy(cut, id=name, features=None, recording=fastcopy(recording, transforms=transforms))


def cut_transforms(
    config: AugmentConfig,
    noises: CutSet | None = None,
    musics: CutSet | None = None,
    rirs: RecordingSet | None = None,
    seed: int = 42,
) -> list[Callable[[CutSet], CutSet]]:
    """AugmentConfig -> list of transforms of CutSets, to be applied in this order, as `augment` does to samples.

    noises, musics: CutSet. rirs: RecordingSet; None takes rooms that lhotse makes up. Padding to the longest cut of a
    batch is left to others.
    """
    config.check()
    transforms: list[Callable[[CutSet], CutSet]] = (
        [McAdams(config.coefficients, config.mcadams, seed)] if config.mcadams else []
    )
    if config.reverberation:
        transforms.append(ReverbWithImpulseResponse(rirs, p=config.reverberation, randgen=random.Random(seed + 1)))
    mixed = ((config.noise, noises, config.noise_snr), (config.music, musics, config.music_snr))
    for place, (p, cuts, snr) in enumerate(mixed, start=seed + 2):
        if p and cuts is not None:
            transforms.append(CutMix(cuts, snr=snr, p=p, pad_to_longest=False, seed=place, random_mix_offset=True))
    return transforms
