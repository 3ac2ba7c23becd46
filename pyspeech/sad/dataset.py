"""Training batches for SAD networks: random 4 s crops of long recordings (Heitkaemper et al. 2020, end of section 3).

    streams: cuts, each a recording up to the end of its labels; its supervisions are the speech
    sampler = crop_sampler(streams, config, seed)            # lhotse cuts, one a crop
    dataset = CropDataset(streams, config, stft, model.context)
    loss, values = compute_loss(model, dataset[cuts])          # pyspeech.sad.training

The sampler goes over the recordings in shuffled windows of a crop's length, so an epoch sees all of the audio about once; the
data set moves each window by up to half its length, so no two epochs see the same crops. It draws from numpy's global
generator, which the loader seeds by epoch and batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.audio.io import find_audio
from pyspeech.audio.speed import play
from pyspeech.data.cache import BoundedCache
from pyspeech.data.cuts import read_samples
from pyspeech.errors import UserError
from pyspeech.sad.augmentation import augment
from pyspeech.sad.segments import union

if TYPE_CHECKING:
    from lhotse import Recording
    from lhotse.cut.data import DataCut
    from lhotse.dataset import SimpleCutSampler

    from pyspeech.sad.config import DatasetConfig, StftConfig


def crop_sampler(streams: Iterable[DataCut], config: DatasetConfig, seed: int, shuffle: bool = True) -> SimpleCutSampler:
    """A lhotse sampler of batches (CutSets) of `config.batch_size` windows of `config.crop_seconds` of the cuts `streams`."""
    from lhotse import CutSet
    from lhotse.dataset import SimpleCutSampler

    from pyspeech.compat import prepare_lhotse

    prepare_lhotse()
    windows = CutSet.from_cuts(streams).drop_supervisions().cut_into_windows(config.crop_seconds).to_eager()
    # All of them, whatever processes there are: BatchLoader shares them out.
    return SimpleCutSampler(windows, max_cuts=config.batch_size, shuffle=shuffle, seed=seed, world_size=1, rank=0)


class CropDataset(torch.utils.data.Dataset):
    """Data set of crops: dataset[windows] is a batch of random crops near the windows, with frame labels.

    streams: cuts, each of a recording up to the end of its labels, beyond which no crop trains. config: DatasetConfig, stft:
    StftConfig. context: frames to either side of a crop that the batch brings along for the normalisation
    (SadNetwork.context).
    """

    def __init__(self, streams: Iterable[DataCut], config: DatasetConfig, stft: StftConfig, context: int) -> None:
        config.check()
        self.config, self.stft, self.context = config, stft, context
        self.crop = round(config.crop_seconds / stft.frame_shift)  # frames
        self.speech = {cut.recording_id: union([(part.start, part.end) for part in cut.supervisions]) for cut in streams}
        self.end = {cut.recording_id: cut.end for cut in streams}  # of the labels, seconds
        hours = sum(cut.duration for cut in streams) / 3600
        recordings = [cut.recording for cut in streams if cut.recording and hours <= config.cache_hours]
        self.audio = AudioReader(stft.sampling_rate, keep=recordings)
        self.noises = None if config.noise_dir == "none" else Noises(config.noise_dir, stft.sampling_rate)

    def __getitem__(self, windows: Iterable[DataCut]) -> dict[str, torch.Tensor]:
        """windows: cuts. Returns tensors for B crops of T frames, with C frames of context to either side:

        samples  (B, (T + 2 C - 1) * shift + window) float32
        valid    (B, T + 2 C) bool, frames that exist
        targets  (B, T) float32, 1 where the middle of the frame's window is speech
        labelled (B, T) bool, frames whose middle lies within the labels: those that the loss counts
        """
        examples = [self._example(window) for window in windows]
        return {name: torch.from_numpy(np.stack([example[name] for example in examples])) for name in examples[0]}

    def _example(self, window):
        stft, percent = self.stft, self.config.speed
        speed = 100 + np.random.randint(-percent, percent + 1) if percent else 100  # of what is heard, in percent
        total = stft.num_frames(self.audio.num_samples(window.recording))
        labelled = min(total, frames_before(self.end[window.recording_id], stft))
        middle = window.start / stft.frame_shift + np.random.uniform(-0.5, 0.5) * self.crop
        core = int(np.clip(round(middle), 0, max(0, labelled - self.crop * speed // 100)))
        frames = core + np.arange(-self.context, self.crop + self.context) * speed / 100  # in frames of the recording
        length = (len(frames) - 1) * stft.shift + stft.window
        samples = self._read(window.recording, round(frames[0] * stft.shift), length, speed)
        targets = frame_targets(self.speech[window.recording_id], core, self.crop, stft, speed / 100)
        return {
            "samples": augment(samples, stft.sampling_rate, self.config.augment, self.noises and self.noises.take),
            "valid": (frames >= self._first_heard(core)) & (frames < total),
            "targets": targets.astype(np.float32),
            "labelled": frames[self.context :][: self.crop] < labelled,
        }

    def _first_heard(self, core):
        """The first frame that exists: that of the recording, or of a crop that is as if the recording began there."""
        return core if self.config.cold_start and np.random.random() < self.config.cold_start else 0

    def _read(self, recording, start, length, speed):
        """float32 (length,) from sample `start` of a recording on, played at `speed` percent."""
        return play(self.audio.read(recording, start, -(-length * speed // 100)), speed)[:length]


def frame_targets(speech: np.ndarray, first: int, count: int, stft: StftConfig, speed: float = 1.0) -> np.ndarray:
    """Labels of `count` frames, the first of which begins with frame `first` of the recording, played at `speed`: speech
    float64 (n, 2), seconds, disjoint and sorted -> bool (count,).

    A frame is speech if the middle of its window is, so the labels of frames begin and end half a shift at most before or
    after speech does.
    """
    middle = first * stft.shift + speed * (np.arange(count) * stft.shift + stft.window // 2)
    samples = np.rint(speech * stft.sampling_rate)
    started = np.searchsorted(samples[:, 0], middle, side="right")
    ended = np.searchsorted(samples[:, 1], middle, side="right")
    return started > ended


def frames_before(seconds: float, stft: StftConfig) -> int:
    """The number of frames the middle of whose windows comes before a time."""
    return max(0, -(-(round(seconds * stft.sampling_rate) - stft.window // 2) // stft.shift))


class AudioReader:
    """Pieces of recordings, at one sampling rate. Those to `keep` stay in memory, whole, as 16 bit."""

    def __init__(self, sampling_rate: int, keep: Sequence[Recording] = ()) -> None:
        self.sampling_rate, self.keep = sampling_rate, {recording.id for recording in keep}
        self.cache = BoundedCache(sum(2 * self.num_samples(recording) + 8192 for recording in keep))

    def num_samples(self, recording: Recording) -> int:
        return round(recording.num_samples * self.sampling_rate / recording.sampling_rate)

    def read(self, recording: Recording, start: int, length: int) -> np.ndarray:
        """float32 (length,) from sample `start` on; zeros before the recording's start and behind its end."""
        first, last = max(0, start), min(start + length, self.num_samples(recording))
        piece = np.zeros(length, np.float32)
        if last > first:
            read = self._whole if recording.id in self.keep else self._part
            samples = read(recording, first, last)
            piece[first - start :][: len(samples)] = samples
        return piece

    def _whole(self, recording, first, last):
        return self.cache.get(recording.id, lambda: self._samples(recording))[first:last] / np.float32(32768)

    def _samples(self, recording):
        samples = read_samples(recording.to_cut(), self.sampling_rate)
        return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)

    def _part(self, recording, first, last):
        # Whole seconds, which begin at a sample of either rate, and one more on either side, beyond which no filter of
        # resampling reaches: so the samples are those of the whole.
        begin = max(0, first // self.sampling_rate - 1)
        seconds = min(last // self.sampling_rate + 2, recording.duration) - begin
        samples = read_samples(recording.to_cut().truncate(offset=begin, duration=seconds), self.sampling_rate)
        return samples[first - begin * self.sampling_rate : last - begin * self.sampling_rate]


class Noises:
    """Random stretches of the recordings in a folder and below, at one sampling rate.

    UserError for a folder without audio, and for a file that cannot be read.
    """

    def __init__(self, folder: str, sampling_rate: int) -> None:
        from lhotse import Recording

        self._reader, self._recordings = AudioReader(sampling_rate), []
        for path in find_audio([folder]):
            try:
                self._recordings.append(Recording.from_file(path.resolve(), recording_id=str(path)))
            except Exception as error:
                raise UserError(f"{path}: cannot be read as audio ({error}); remove it from data.noise_dir") from None

    def take(self, length: int) -> np.ndarray:
        """Return float32 (length,) from a random place; short recordings are repeated."""
        recording = self._recordings[np.random.randint(len(self._recordings))]
        there = self._reader.num_samples(recording)
        start = np.random.randint(max(0, there - length) + 1)
        return np.resize(self._reader.read(recording, start, min(length, there)), length)
