"""A limit to the length of utterances in training, which bounds the memory that a batch takes.

Longer utterances of train and dev are left out, or cut at pauses where their words have times. A cut lies in the middle of a
pause that the bundled speech detector finds between two words; a text whose words are not as many as those with times cannot
be shared out, and is left out with its utterance. Test utterances stay as they are.
"""

import functools
import itertools
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.data.manifests import Segment, Utterance, length_of
from pyspeech.data.problems import list_problems
from pyspeech.engine.parts import Parts, file_state, fingerprint, in_parts
from pyspeech.text.normalize import normalize

LATE = 0.15  # seconds by which the times of words may be wrong
LISTING = "too_long.txt"
LIMITED = ("train", "dev")

Row = tuple[Utterance, dict[str, Any]]  # with the properties of its audio
Word = tuple[str, float, float]


@dataclass(frozen=True)
class LengthLimit:
    """Longest utterance in seconds, and whether longer ones are cut instead of left out."""

    seconds: float = math.inf
    cut: bool = False


NO_LIMIT = LengthLimit()


def limit_lengths(
    good: Sequence[Row], limit: LengthLimit, name: str, folder: Path, log: logging.Logger, parts: Parts | None = None
) -> list[Row]:
    """The utterances of train and dev that are as short as `limit` allows, or pieces of them, and all of test.

    What is left out is named in one warning and listed in `folder`; name: of the corpus in messages.
    """
    lengths = {one.id: length_of(one, properties["duration"]) for one, properties in good if one.split in LIMITED}
    long = {key: seconds for key, seconds in lengths.items() if seconds > limit.seconds}
    waiting = {fingerprint(one.id): one for one, _ in good if one.id in long and limit.cut and one.words}
    found = in_parts(
        parts,
        "pauses",
        lambda one: cut_at_pauses(one, lengths[one.id], limit.seconds),
        waiting,
        inputs=lambda one: (one, limit, file_state(one.audio)),
        log=log,
    )
    pieces = {one.id: found[key] for key, one in waiting.items() if found[key]}
    rows = []
    for one, properties in good:
        if one.id in pieces:
            rows += [(_piece(one, number, *piece), properties) for number, piece in enumerate(pieces[one.id], 1)]
        elif one.id not in long:
            rows.append((replace(one, words=None) if one.words else one, properties))
    if pieces:
        log.info(
            "%s: cut %d utterances longer than %g s at pauses, into %d",
            name,
            len(pieces),
            limit.seconds,
            sum(map(len, pieces.values())),
        )
    left = [(key, f"{seconds:.2f} s") for key, seconds in long.items() if key not in pieces]
    listing, shown = list_problems(folder, left, LISTING)
    if left:
        why = f"longer than {limit.seconds:g} s (longest)" + " that cannot be cut: no word times, or no pause" * limit.cut
        log.warning("%s: left out %d of %d utterances %s (list: %s)\n%s", name, len(left), len(lengths), why, listing, shown)
    return rows


def _piece(utterance, number, start, end, text):
    recording = utterance.segment.recording if utterance.segment else utterance.id
    segment = Segment(recording, start, end)
    return replace(utterance, id=f"{utterance.id}-{number}", text=text, segment=segment, stated=None, words=None)


def cut_at_pauses(utterance: Utterance, seconds: float, longest: float) -> list[tuple[float, float, str]]:
    """[(start, end, text), ...] of an utterance of `seconds`, in seconds of its audio file, none of them longer than `longest`;
    [] where its text cannot be shared out, or there is no pause where one is needed."""
    start = utterance.segment.start if utterance.segment else 0.0
    words = with_text(utterance)
    if not words:
        return []
    places = cut_places(words, find_pauses(utterance.audio, start, seconds))
    cuts = choose_cuts(places, start, start + seconds, longest)
    if cuts is None:
        return []
    times, numbers = [start, *(time for time, _ in cuts), start + seconds], [0, *(number for _, number in cuts), len(words)]
    texts = (" ".join(word for word, _, _ in words[first:last]) for first, last in itertools.pairwise(numbers))
    return [(*span, text) for span, text in zip(itertools.pairwise(times), texts, strict=True)]


def with_text(utterance: Utterance) -> list[Word]:
    """The words with times of an utterance, each as its text spells it; [] where they are not those of the text."""
    words = utterance.words or ()
    for text in (utterance.text, normalize(utterance.text, utterance.language)):
        if len(text.split()) == len(words):
            spelt = [(spelling, *word[1:]) for spelling, word in zip(text.split(), words, strict=True)]
            in_order = all(one[1] <= other[1] for one, other in itertools.pairwise(spelt))
            return spelt if in_order else []
    return []


@functools.cache
def _detector():
    from pyspeech.sad.api import SpeechDetector

    return SpeechDetector(point="words", pad=0.0)


def find_pauses(path: str, start: float, seconds: float) -> list[tuple[float, float]]:
    """The pauses (start, end) between the speech of a part of an audio file, in seconds of the file."""
    from pyspeech.audio.io import stream_audio

    rate = _detector().sampling_rate
    samples = np.concatenate([np.zeros(0, np.float32), *stream_audio(path, rate, start=start, duration=seconds)])
    segments = _detector().detect((samples, rate)).segments.tolist()
    return [(start + before[1], start + after[0]) for before, after in itertools.pairwise(segments)]


def cut_places(words: Sequence[Word], pauses: Sequence[tuple[float, float]]) -> list[tuple[float, int, float]]:
    """(time, number of words before it, seconds of the pause) of the middle of each pause that lies between two words."""
    middles, places = [(start + end) / 2 for _, start, end in words], []
    for begin, end in pauses:
        time = (begin + end) / 2
        number = sum(middle < time for middle in middles)
        if 0 < number < len(words) and words[number - 1][2] - LATE <= time <= words[number][1] + LATE:
            places.append((time, number, end - begin))
    return places


def choose_cuts(
    places: Sequence[tuple[float, int, float]], start: float, end: float, longest: float
) -> list[tuple[float, int]] | None:
    """(time, number of words before it) of cuts that leave no piece of [start, end] longer than `longest`: as few as there can
    be, and of these the ones with the longest pauses. None where the `places` do not allow it."""
    nodes = [(start, 0, 0.0), *places, (end, math.inf, 0.0)]
    ways: list[Any] = [(0, 0.0, ())]  # to each node: pieces, less its pauses, the nodes before it; or None
    for index, (time, words, pause) in enumerate(nodes[1:], 1):
        before = [
            (ways[other][0] + 1, ways[other][1] - pause, (*ways[other][2], other))
            for other in range(index)
            if ways[other] and time - nodes[other][0] <= longest + 1e-9 and words > nodes[other][1]
        ]
        ways.append(min(before, default=None))
    return [nodes[index][:2] for index in ways[-1][2][1:]] if ways[-1] else None
