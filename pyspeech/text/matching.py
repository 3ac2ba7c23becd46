"""References and hypotheses brought to the same utterances, where one side has recordings and the other their segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate

from pyspeech.audio.recordings import one_word
from pyspeech.errors import UserError
from pyspeech.text.transcript_files import Said, Segment, Transcripts


def matched(references: Transcripts, hypotheses: Transcripts) -> tuple[dict[str, Said], dict[str, Said]]:
    """Bring both sides to the same utterances: (references, hypotheses), each {utterance: Said}.

    Words with times go to the segments of an stm. Otherwise a recording whose segments differ is compared as a whole, and each
    of its channels by itself where both sides have several. A name with blanks is that with underscores on the other side,
    where ctm, stm and trn write it so.
    """
    refs, hyps = references.texts, hypotheses.texts
    if references.segments and hypotheses.words:
        hyps = _to_segments(references.segments, hypotheses)
    else:
        whole, split = _compared_whole(references, hypotheses), _split(references, hypotheses)
        refs, hyps = (_joined(side, whole, split) for side in (references, hypotheses))
    return refs, _named_alike(refs, hyps)


def _to_segments(segments, hypotheses):
    """{id of a segment: Said}, for recordings that have words: a word goes to the first segment that ends behind its middle,
    else to the last one, as sclite has it; words of segments that are not scored are left out. What has no segment keeps its
    name."""
    places = _by_recording(segments)
    texts, words = (_named_alike(places, mapping) for mapping in (hypotheses.texts, hypotheses.words))
    said, found = defaultdict(list), {name: text for name, text in texts.items() if name not in places}
    for recording in places.keys() & words.keys():
        channels = {
            channel: _of_channel(places[recording], channel) for channel in {channel for channel, *_ in words[recording]}
        }
        ends = {channel: [*accumulate((one.end for one in own), max)] for channel, own in channels.items()}  # up to each
        for channel, middle, word in words[recording]:
            own = channels[channel]
            if own:
                said[own[min(bisect_right(ends[channel], middle), len(own) - 1)]].append(word)
            else:
                said[f"{recording}, channel {channel}"].append(word)
        for segment in places[recording]:
            if segment.scored:
                found[segment.id] = Said(" ".join(said[segment]), texts[recording].language)
    strangers = {name: Said(" ".join(text)) for name, text in said.items() if isinstance(name, str)}
    return {**found, **strangers}


def _by_recording(segments: Iterable[Segment]) -> dict[str, list[Segment]]:
    """{recording: its segments in order of time}"""
    places = defaultdict(list)
    for segment in sorted(segments, key=lambda segment: segment.start):
        places[segment.recording].append(segment)
    return places


def _of_channel(segments, channel):
    """The segments that a word of a channel may be of: all, where one of the two sides has one channel alone."""
    known = {segment.channel for segment in segments}
    if channel is None or (len(known) == 1 and channel not in known):
        return segments
    return [segment for segment in segments if segment.channel == channel]


def recording_of(name: str) -> str:
    """The recording of an utterance that is one of its channels, see `_channel_name`."""
    return name.rpartition("-")[0]


def _channel_name(recording, channel):
    return f"{recording}-{channel}"


def _compared_whole(references, hypotheses):
    """The recordings whose segments are joined: the other side has the whole, or segments of which less than half are these."""
    sides = (references, hypotheses)
    if not any(side.segments for side in sides):
        return set()
    ids = [defaultdict(set), defaultdict(set)]
    for found, side in zip(ids, sides, strict=True):
        for segment in side.segments:
            found[segment.recording] |= {segment.id} if segment.scored else set()
    # A hypothesis that is empty needs no joined reference, whose segments may be such that are not scored.
    names = [
        {one_word(name) for name in references.texts},
        {one_word(name) for name, said in hypotheses.texts.items() if said.text},
    ]
    whole = set()
    for recording in ids[0].keys() | ids[1].keys():
        ours, theirs = (found.get(recording) for found in ids)
        if ours is not None and theirs is not None:
            joined = 2 * len(ours & theirs) < min(len(ours), len(theirs))
        else:
            joined = one_word(recording) in names[0 if ours is None else 1]
        if joined:
            whole.add(recording)
    return whole


def _split(references, hypotheses):
    """The recordings that are compared by channel: both sides have several."""
    return set.intersection(
        *({name for name, channels in _channels(side).items() if len(channels) > 1} for side in (references, hypotheses))
    )


def _channels(transcripts):
    """{recording: the channels that its segments and words tell}"""
    found = defaultdict(set)
    for segment in transcripts.segments:
        found[segment.recording].add(segment.channel)
    for name, words in transcripts.words.items():
        found[name] |= {channel for channel, *_ in words if channel is not None}
    return found


def _joined(transcripts, whole, split):
    """{utterance: Said}: the recordings of `whole` as one text, those of `split` as one for each channel; all else as it is."""
    result = dict(transcripts.texts)
    for recording, segments in _by_recording(transcripts.segments).items():
        if recording not in whole:
            continue
        if not all(segment.scored for segment in segments):
            raise UserError(
                f"{transcripts.path}: {recording} has segments that are not scored; "
                "expected words with times, as ctm, to compare"
            )
        parts = defaultdict(list)
        for segment in segments:
            del result[segment.id]
            parts[_channel_name(recording, segment.channel) if recording in split else recording].append(segment)
        result |= {name: _one_text(some) for name, some in parts.items()}
    for name in split & transcripts.words.keys():
        said, parts = result.pop(name), defaultdict(list)
        for channel, _, word in transcripts.words[name]:
            parts[_channel_name(name, channel)].append(word)
        result |= {name: Said(" ".join(words), said.language, said.speaker) for name, words in parts.items()}
    return result


def _one_text(segments):
    speakers = {segment.said.speaker for segment in segments}
    text = " ".join(segment.said.text for segment in segments if segment.said.text)
    return Said(text, speaker=speakers.pop() if len(speakers) == 1 else None)


def _named_alike(wanted: Iterable[str], offered: Mapping) -> dict:
    """`offered` under the names of `wanted` where these differ by blanks for underscores alone, on either side."""
    wanted = set(wanted)
    ours, theirs = _by_word(wanted - offered.keys()), _by_word(offered.keys() - wanted)
    single = [word for word in ours.keys() & theirs.keys() if len(ours[word]) == len(theirs[word]) == 1]
    alike = {theirs[word][0]: ours[word][0] for word in single}
    return {alike.get(name, name): value for name, value in offered.items()}


def _by_word(names):
    """{name without blanks: the names that are it}"""
    found = defaultdict(list)
    for name in names:
        found[one_word(name)].append(name)
    return found
