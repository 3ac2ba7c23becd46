"""Recognition of audio while it comes in: features, encoder, language identification and search carry their state.

The audio may come in blocks of any sizes: the result is the same, as features are decoded `chunk_frames` at a time in
any case. It is also that of `pyspeech.asr.recognizer.recognize` for the whole utterance, whatever
`chunk_frames` is (up to rounding, in float32; int8 models quantise each chunk by its own range).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch

from pyspeech.asr.config import EarlyStopping, Endpointing, SearchConfig
from pyspeech.asr.hotwords import as_hotwords
from pyspeech.asr.recognizer import Decoder, Recognition
from pyspeech.errors import UserError
from pyspeech.features.fbank import FbankStream

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.context import Context, Phrases


class StreamingRecognizer:
    """Recogniser of one stream of audio.

        recognizer = StreamingRecognizer(bundle, endpointing=Endpointing())
        for block in blocks:
            for result in recognizer.add(block):
                ...                     # result.final: an utterance that is over; otherwise what there is of the next
        result = recognizer.finish()    # the last utterance; its text may be empty

    language, search, early_stopping: as for `recognize`. endpointing: Endpointing; None: all is one utterance.
    chunk_frames: frames of features decoded at once; more take less time and give results later. context, hotwords: as
    for `recognize`, hotwords of this stream. Attribute partial: Recognition of the utterance that goes on.
    """

    def __init__(
        self,
        bundle: Bundle,
        language: str | None = None,
        search: SearchConfig | None = None,
        early_stopping: EarlyStopping | None = None,
        endpointing: Endpointing | None = None,
        chunk_frames: int = 10,
        context: Context | None = None,
        hotwords: Phrases | None = None,
    ) -> None:
        if chunk_frames < 1:
            raise UserError(f"streaming: chunk_frames={chunk_frames}; expected at least 1")
        if endpointing:
            endpointing.check()
        self.bundle, self.endpointing, self.chunk_frames = bundle, endpointing, chunk_frames
        own = None if hotwords is None else [as_hotwords(hotwords)]
        self._options = language, search, early_stopping, context, own
        self._fbank = FbankStream(bundle.fbank)
        self._restart()

    def _restart(self):
        self._features = torch.zeros(0, self.bundle.fbank.dim)  # not decoded yet
        self._frames_before = 0  # the utterance
        self._decoder = Decoder(self.bundle, 1, *self._options)
        self.partial = self._result(final=False)

    def add(self, samples: np.ndarray | torch.Tensor) -> list[Recognition]:
        """Add samples (n,) float; return [Recognition, ...]: utterances that ended in them, and last the one that goes on."""
        self._features = torch.cat([self._features, self._fbank.add(samples)])
        results = []
        ready = len(self._features) >= self.chunk_frames
        while len(self._features) >= self.chunk_frames:
            self._decode(self.chunk_frames)
            if self._at_endpoint():
                self._decode(0, last=True)
                results.append(self._result(final=True))
                self._frames_before += int(self._decoder.num_frames[0])
                self._decoder = Decoder(self.bundle, 1, *self._options)
        if ready:
            self.partial = self._result(final=False)
        return [*results, self.partial]

    def finish(self, samples: np.ndarray | torch.Tensor | None = None) -> Recognition:
        """The Recognition of the last utterance, which may have further samples. The recognizer is then as new."""
        if samples is not None:
            self._features = torch.cat([self._features, self._fbank.add(samples)])
        self._features = torch.cat([self._features, self._fbank.finish()])
        self._decode(len(self._features), last=True)
        result = self._result(final=True)
        self._restart()
        return result

    def _decode(self, count, last=False):
        self._decoder.add(self._features[None, :count], last=last)
        self._features = self._features[count:]

    def _at_endpoint(self):
        if self.endpointing is None:
            return False
        return is_endpoint(
            int(self._decoder.num_frames[0]), self._decoder.last_frame(), self.endpointing, self.bundle.frame_seconds
        )

    def _result(self, final):
        return self._decoder.result(0, self._frames_before * self.bundle.frame_seconds, final)


class SpokenRecognizer:
    """Recogniser of the speech in a stream, as the bundled speech detector finds it; `add` and `finish` of StreamingRecognizer.

    A stretch of speech that ends is an utterance that ends, after which the recogniser begins anew: only `longest` of its own
    endpointing counts. Times are those of the stream.
    """

    def __init__(self, bundle: Bundle, endpointing: Endpointing, **options: Any) -> None:
        """endpointing.silence_after: seconds of a pause that ends a stretch; options: others of StreamingRecognizer."""
        from pyspeech.speech import SpokenStream

        longest = Endpointing(math.inf, math.inf, endpointing.longest)
        self._recognizer = StreamingRecognizer(bundle, endpointing=longest, **options)
        self._make = functools.partial(SpokenStream, bundle.fbank.sampling_rate, endpointing.silence_after)
        self._begin()

    def _begin(self):
        self._speech, self._start = self._make(), None  # of the stretch that goes on

    def add(self, samples: np.ndarray | torch.Tensor) -> list[Recognition]:
        """Add samples (n,); return [Recognition, ...]: utterances that ended in them, and last what there is of the next."""
        results = []
        for heard in self._speech.add(samples):  # pyright: ignore[reportArgumentType]
            found = self._recognizer.add(heard.samples)[:-1]
            if heard.over:
                found.append(self._recognizer.finish())
            results += [one.moved(heard.start) for one in found]
            self._start = None if heard.over else heard.start
        start = self._speech.seconds if self._start is None else self._start
        return [*results, self._recognizer.partial.moved(start)]

    def finish(self) -> Recognition:
        """The Recognition of the last utterance; its text may be empty. The recogniser is then as new."""
        heard = self._speech.finish()
        start = self._speech.seconds if heard is None else heard.start
        result = self._recognizer.finish(None if heard is None else heard.samples)
        self._begin()
        return result.moved(start)


def is_endpoint(num_frames: int, last_frame: int | None, config: Endpointing, frame_seconds: float) -> bool:
    """True if any rule of `config` (Endpointing) ends an utterance here.

    num_frames: encoder frames decoded; last_frame: that of the best hypothesis's last symbol, None where it has none;
    frame_seconds: seconds a frame.
    """
    seconds = num_frames * frame_seconds
    if last_frame is None:
        return seconds >= min(config.silence_before, config.longest)
    silence = (num_frames - 1 - last_frame) * frame_seconds
    return silence >= config.silence_after or seconds >= config.longest
