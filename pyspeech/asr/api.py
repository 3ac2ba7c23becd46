"""Speech to text with a trained transducer, as a whole, in segments, or while the audio comes in.

    recognizer = Recognizer.load("exp/mini/models/multi_softmax_lid")
    transcript = recognizer.transcribe("call.wav")
    print(transcript.language, transcript.text)
    transcript.save("call.srt")

Recordings are cut into stretches of speech (pyspeech/speech.py), several of which are recognised at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pyspeech.asr.config import KIND, WHOLE, ContextWeights, EarlyStopping, Endpointing, SearchConfig, language_among
from pyspeech.asr.transcripts import Transcript
from pyspeech.errors import UserError, naming_extras
from pyspeech.model_file import check_in_memory, find_model

if TYPE_CHECKING:
    import numpy as np
    import torch

    from pyspeech.asr.aligned import Alignment
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.context import Context, Lm, Phrases
    from pyspeech.asr.recognizer import Recognition
    from pyspeech.asr.streaming import SpokenRecognizer, StreamingRecognizer
    from pyspeech.audio.inputs import AudioInput


class Recognizer:
    """Recognise speech with a trained transducer.

    Attributes:
        sampling_rate: Hz of the audio that the model was trained with.
        languages: Codes of the languages that the model knows, such as "hi-IN".
        computing: Seconds spent on recognition so far, reading of audio left out.
    """

    def __init__(
        self,
        bundle: Bundle,
        language: str | None = None,
        search: SearchConfig | None = None,
        early_stopping: EarlyStopping | None = None,
        endpointing: Endpointing | None = None,
        context: Context | None = None,
        vad: bool = True,
    ) -> None:
        """Recognise with a model in memory; `load` reads one. vad: as of `load`; the rest: as of `StreamingRecognizer`."""
        from pyspeech.asr.context import Context
        from pyspeech.asr.recognizer import Decoder

        check_in_memory(bundle, "Recognizer")
        self.bundle, self._endpointing = bundle, endpointing or Endpointing()
        language = None if language is None else language_among(language, bundle.model.languages)
        self._settings = language, search, early_stopping, context or Context(bundle)
        self.sampling_rate: int = bundle.fbank.sampling_rate
        self.languages: list[str] = bundle.model.languages
        self.computing, self.vad = 0.0, vad
        self._endpointing.check()
        if Decoder(bundle, 1, *self._settings).stopper is None and early_stopping is not None:
            raise UserError(
                "tau, threshold: early stopping is for language=None and a model with identification of several languages; "
                f"this one has {', '.join(self.languages)}, and language={language}"
            )

    @classmethod
    @naming_extras()
    def load(
        cls,
        model: str | Path | None = None,
        language: str | None = None,
        *,
        beam: int | None = None,
        max_symbols: int | None = None,
        prune: float | None = None,
        symbol_bonus: float | None = None,
        tau: float | None = None,
        threshold: float | None = None,
        rule: str = EarlyStopping.rule,
        hotwords: Phrases = (),
        hotwords_score: float = ContextWeights.hotwords_score,
        lm: Lm | Mapping[str, Lm] | None = None,
        lm_weight: float = ContextWeights.lm_weight,
        ilm_weight: float = ContextWeights.ilm_weight,
        min_silence: float = Endpointing.silence_after,
        vad: bool = True,
        int8: bool = False,
        device: str | torch.device = "auto",
    ) -> Recognizer:
        """Load a trained transducer.

        Args:
            model: Folder of a model.pt, or that file. No model is bundled.
            language: Code of the language that is spoken, such as hi-IN or hi; None to identify it, or to tell it by the script
                where a model has one vocabulary for all.
            beam: Hypotheses kept, 1 (fastest) to 1000; also the most alternatives that a result has. None, here and in the next
                three: as the recipe that trained the model.
            max_symbols: Symbols that a hypothesis may put out in one encoder frame.
            prune: Log probability below the best hypothesis from which others are dropped.
            symbol_bonus: Added to the log probability for each symbol, against deletions; language models add to these.
            tau: Early stopping: encoder frames (30 ms in models of the paper's size) after which the decoders of unlikely
                languages are switched off; 0 where only `threshold` is given, None for both: never.
            threshold: Score below the best language's from which a language is unlikely; 0 where only `tau` is given.
            rule: That score: "sum_logp", "mean_logp" or "mean_p".
            hotwords: Phrases to prefer: a file with one a line, or with a phrase, a tab and its boost; or a list of them, each
                a text or (text, boost).
            hotwords_score: Bonus in log probability for each symbol of a phrase that has no boost.
            lm: ARPA file over the model's symbols, as `pyspeech train-lm` makes it; {language code: file} for a model with a
                vocabulary for each language.
            lm_weight: Weight of its log probability (shallow fusion).
            ilm_weight: Weight of the internal language model of the transducer, which is subtracted.
            min_silence: Seconds of a pause that ends a segment.
            vad: Recognise only what the bundled speech detector finds, in streams that for streams; recordings of up to 30 s
                without any speech as a whole. False: all audio, recordings of up to 30 s as a whole.
            int8: Compute with 8-bit integers, on the CPU: faster, a little less exact.
            device: "auto" (the GPU where there is one), "cpu", "cuda", or a torch.device.

        Raises:
            UserError: for a model that is not there or none of these, and for options that do not fit it.
        """
        from pyspeech.asr.context import Context

        if not min_silence > 0:
            raise UserError(f"min_silence={min_silence}: expected seconds above 0, or inf")
        stopping = None if tau is None and threshold is None else EarlyStopping(rule, tau or 0.0, threshold or 0.0)
        if stopping is None and rule != EarlyStopping.rule:
            raise UserError(f"rule={rule}: nothing is stopped early without tau or threshold; give one of them")
        bundle = load_bundle(find_model(model, KIND, option="model"), device, int8)
        search = bundle.search.changed(beam=beam, max_symbols=max_symbols, prune=prune, symbol_bonus=symbol_bonus)
        known = None if language is None else language_among(language, bundle.model.languages)
        if lm is None and lm_weight != ContextWeights.lm_weight:
            raise UserError(f"lm_weight={lm_weight}: has no effect without lm; give the language model too")
        weights = ContextWeights(hotwords_score, lm_weight, ilm_weight)
        context = Context(bundle, hotwords, lm, weights, known)
        return cls(bundle, language, search, stopping, Endpointing(silence_after=min_silence), context, vad)

    @overload
    def transcribe(
        self, audio: AudioInput, sampling_rate: int | None = None, hotwords: Phrases | None = None
    ) -> Transcript: ...
    @overload
    def transcribe(
        self, audio: Sequence[AudioInput], sampling_rate: int | None = None, hotwords: Sequence[Phrases | None] | None = None
    ) -> list[Transcript]: ...

    def transcribe(
        self,
        audio: AudioInput | Sequence[AudioInput],
        sampling_rate: int | None = None,
        hotwords: Phrases | Sequence[Phrases | None] | None = None,
    ) -> Transcript | list[Transcript]:
        """Transcribe a recording, or each of a list of them, as the command `pyspeech transcribe` does.

        Args:
            audio: Path of an audio file of any format, rate and length, what else `pyspeech.audio.inputs` takes,
                or a list of these. Channels are averaged.
            sampling_rate: Hz of samples given alone. A file knows its own.
            hotwords: Phrases of the recording beside those of `load`; for a list of recordings a list with those of each.

        Returns:
            A `Transcript`, or a list of them in the order of the list given.

        Raises:
            UserError: for what cannot be read, holds no samples or has another shape.
        """
        from pyspeech.asr.context import check_lists
        from pyspeech.asr.recognizer import BATCH
        from pyspeech.audio.inputs import is_many, stream_inputs

        transcripts, waiting = [], []
        lists: Any = [hotwords]
        if is_many(audio):
            lists = [None] * len(audio) if hotwords is None else hotwords  # pyright: ignore[reportArgumentType]
            check_lists(lists, len(audio))  # pyright: ignore[reportArgumentType]
        for own, (name, blocks) in zip(lists, stream_inputs(audio, sampling_rate, self.sampling_rate), strict=False):
            transcripts.append(Transcript(name, [], 0.0))
            samples, blocks = take(blocks, WHOLE * self.sampling_rate)
            if samples is not None:
                waiting.append((transcripts[-1], samples, own))
                if len(waiting) == BATCH:
                    self._finish(waiting)
                continue
            for segments, transcripts[-1].duration in self.long_segments(blocks, own):
                transcripts[-1].segments += segments
        self._finish(waiting)
        return transcripts if is_many(audio) else transcripts[0]

    def align(self, audio: AudioInput, text: str, sampling_rate: int | None = None) -> Alignment:
        """Find the times of the words and symbols of a text in the recording in which it is said.

        Args:
            audio: A recording, as for `transcribe`.
            text: What is said. It is normalised as in training.
            sampling_rate: Hz of samples given alone.

        Raises:
            UserError: for what cannot be read, and for a text with characters that the model does not have.
        """
        import numpy as np

        from pyspeech.asr.alignment import align
        from pyspeech.audio.inputs import is_many, stream_inputs

        if is_many(audio):
            raise UserError("align: several recordings; expected one, with its text")
        if not isinstance(text, str):
            raise UserError(f"align: a text of type {type(text).__name__}; expected a str")
        ((name, blocks),) = stream_inputs(audio, sampling_rate, self.sampling_rate)
        samples = np.concatenate([np.zeros(0, dtype=np.float32), *blocks])
        with self._timed():
            return align(self.bundle, samples, text, self._settings[0], name)

    def _finish(self, waiting):
        """Recognise (Transcript, samples, hotwords) of short recordings and empty the list."""
        results = self.recognize_spoken([samples for _, samples, _ in waiting], [own for _, _, own in waiting])
        for (transcript, samples, _), segments in zip(waiting, results, strict=True):
            transcript.segments, transcript.duration = segments, len(samples) / self.sampling_rate
        waiting.clear()

    def recognize_spoken(
        self, samples_list: Sequence[np.ndarray], hotwords: Sequence[Phrases | None] | None = None
    ) -> list[list[Recognition]]:
        """Recognise the stretches of speech of short recordings: of each the segments with a text.

        samples_list, hotwords: as of `recognize`. Without `vad` each recording is one segment.
        """
        recordings = [self._parts(samples) for samples in samples_list]
        owner = [place for place, parts in enumerate(recordings) for _ in parts]
        lists = None if hotwords is None else [hotwords[place] for place in owner]
        segments = [[] for _ in recordings]
        results = self._recognize_parts([part for parts in recordings for part in parts], lists)
        for place, segment in zip(owner, results, strict=True):
            segments[place] += [segment] * bool(segment.text or not self.vad)
        return segments

    def long_segments(
        self, blocks: Iterable[np.ndarray], hotwords: Phrases | None = None
    ) -> Iterator[tuple[list[Recognition], float]]:
        """Recognise a recording of any length in bounded memory.

        Args:
            blocks, hotwords: As of `segments`.

        Yields:
            (segments with a text that are over, seconds of audio so far).
        """
        from pyspeech.asr.recognizer import BATCH

        if not self.vad:
            for segment, seconds in self.segments(blocks, hotwords):
                yield [segment] * bool(segment.final and segment.text), seconds
            return
        waiting, seconds = [], 0.0
        for parts, seconds in self._stretches(blocks):
            waiting += parts
            if len(waiting) >= BATCH:
                yield self._with_text(waiting, hotwords), seconds
                waiting = []
        yield self._with_text(waiting, hotwords), seconds

    def _parts(self, samples):
        from pyspeech.speech import Part

        if not self.vad:
            return [Part(0.0, samples)]
        with self._timed():
            parts = [part for some, _ in self._stretches([samples]) for part in some]
        return parts or [Part(0.0, samples)]  # the detector may miss a single word in noise

    def _stretches(self, blocks):
        from pyspeech.speech import speech_parts

        return speech_parts(blocks, self.sampling_rate, self._endpointing.silence_after, self._endpointing.longest)

    def _with_text(self, parts, hotwords):
        results = self._recognize_parts(parts, [hotwords] * len(parts))
        return [segment for segment in results if segment.text]

    def _recognize_parts(self, parts, hotwords):
        results = self.recognize([part.samples for part in parts], hotwords)
        return [_small(result).moved(part.start) for part, result in zip(parts, results, strict=True)]

    def recognize(
        self, samples_list: Sequence[np.ndarray | torch.Tensor], hotwords: Sequence[Phrases | None] | None = None
    ) -> list[Recognition]:
        """Recognise utterances as a whole: samples (N,) float from -1 to 1 at `sampling_rate`, a Recognition of each.

        hotwords: for each utterance phrases beside those of `load`; None: no others.
        """
        from pyspeech.asr.recognizer import recognize

        with self._timed():
            return recognize(self.bundle, samples_list, *self._settings, hotwords)

    def segments(self, blocks: Iterable[np.ndarray], hotwords: Phrases | None = None) -> Iterator[tuple[Recognition, float]]:
        """Recognise audio while it comes in, such as from a microphone.

        Args:
            blocks: Samples (n,) float from -1 to 1 at `sampling_rate`, of any lengths.
            hotwords: Phrases beside those of `load`.

        Yields:
            (Recognition, seconds of audio so far): with `final` False what there is of a segment that goes on, with `final`
            True a segment that is over. The last one, and others, may have no text.
        """
        stream, count = self.stream(hotwords), 0
        for block in blocks:
            count += len(block)
            with self._timed():
                results = stream.add(block)
            for result in results:
                yield _small(result), count / self.sampling_rate
        with self._timed():
            result = stream.finish()
        yield _small(result), count / self.sampling_rate

    def stream(self, hotwords: Phrases | None = None) -> StreamingRecognizer | SpokenRecognizer:
        """Start a stream, for audio that arrives by itself: `add(samples)` and `finish()`, see `StreamingRecognizer`.

        With `vad` only what the bundled speech detector for streams calls speech is recognised: results come 0.3 s later.

        hotwords: phrases of the stream beside those of `load`.
        """
        from pyspeech.asr.streaming import SpokenRecognizer, StreamingRecognizer

        language, search, stopping, context = self._settings
        return (SpokenRecognizer if self.vad else StreamingRecognizer)(
            self.bundle,
            endpointing=self._endpointing,
            language=language,
            search=search,
            early_stopping=stopping,
            context=context,
            hotwords=hotwords,
        )

    @contextlib.contextmanager
    def _timed(self):
        begin = time.perf_counter()
        yield
        self.computing += time.perf_counter() - begin


def load_bundle(folder: str | Path, device: str | torch.device = "auto", int8: bool = False) -> Bundle:
    """Load the Bundle of a transducer's folder, on a device as for `Recognizer.load`, or in 8-bit integers on the CPU."""
    from pyspeech.asr.checkpoint import load_model
    from pyspeech.compat import named_device

    if not int8:
        return load_model(folder, named_device(device, "device"))
    from pyspeech.asr.quantization import quantize_bundle

    return quantize_bundle(load_model(folder))


def take(blocks: Iterable[np.ndarray], most: float) -> tuple[np.ndarray | None, Iterable[np.ndarray]]:
    """Join blocks of up to `most` samples: (samples, ()); of longer ones (None, the blocks), of which few are read."""
    import numpy as np

    blocks, taken, length = iter(blocks), [np.zeros(0, dtype=np.float32)], 0
    for block in blocks:
        taken.append(block)
        length += len(block)
        if length > most:
            return None, itertools.chain(taken[1:], blocks)
    return np.concatenate(taken), ()


def _small(result):
    """A Recognition without what takes memory with every frame, as hours of audio have many."""
    return dataclasses.replace(result, lid_log_posteriors=None, by_language={})
