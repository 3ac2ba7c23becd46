"""Reader of the audio of utterances that training needs again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyspeech.audio.silence import without_silence
from pyspeech.data.cache import BoundedCache
from pyspeech.data.cuts import read_samples
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from lhotse.cut import Cut


class UtteranceReader:
    """Reader of whole utterances: read(cut) gives samples (N,) float32, N at least 1; the first ones read stay in memory.

    sampling_rate: Hz. cache_gigabytes: of memory, which processes that are forked off share. silence: samples; digital silence
    that is longer is cut out, save from an utterance that is nothing else; 0: none is.
    """

    def __init__(self, sampling_rate: int, cache_gigabytes: float = 0.0, silence: int = 0) -> None:
        self.sampling_rate, self.silence, self.cache = sampling_rate, silence, BoundedCache(int(cache_gigabytes * 2**30))

    def __call__(self, cut: Cut) -> np.ndarray:
        """UserError that names the cut where it cannot be read or holds no samples."""
        audio = _audio_of(cut)
        kept = self._read(cut) if audio is None else self.cache.get(audio, lambda: self._read(cut))
        return kept / np.float32(32768) if kept.dtype == np.int16 else kept

    def _read(self, cut):
        samples = read_samples(cut, self.sampling_rate)
        if len(samples) == 0:
            raise UserError(f"{cut.id}: no samples; remove it from the corpus, or prepare the corpus again")
        if self.silence:
            left = [stretch for _, stretch in without_silence([samples], self.silence)]
            samples = np.concatenate(left) if left else samples
        return _compact(samples)


def _audio_of(cut):
    """What tells the audio of a cut from that of others; None of a cut of several. Ids do not: two sets may have recordings of
    the same name."""
    recording = getattr(cut, "recording", None)
    if recording is None:
        return None
    sources = tuple(str(source.source) for source in recording.sources)
    return recording.id, sources, repr(recording.transforms), repr(cut.channel), cut.start, cut.duration


def _compact(samples):
    """The same samples as int16 where they are multiples of 1 / 32768, as those of most files are."""
    whole = samples * np.float32(32768)
    if np.array_equal(whole, np.rint(whole)) and whole.min() >= -32768 and whole.max() <= 32767:
        return whole.astype(np.int16)
    return samples
