"""With all engines: what follows the mini corpus's plan, and the people of whom there are a few sentences."""

import logging
from collections import Counter, defaultdict

import pytest
import soundfile

from local import voices
from local.add2022 import games, mini as add_mini, mini_more as add_mini_more, mini_sets as add_mini_sets, readers, words
from local.add2022.mini_more import PEOPLE
from local.synthesis import fake_speech, festival
from local.synthesis.recording_chain import RATE, speech_bounds

log = logging.getLogger("test")
SCALE = 0.1


@pytest.fixture(scope="module")
def sources():
    return add_mini.find_sources(log, "all")


@pytest.fixture(scope="module")
def plans(sources):
    return {part: add_mini_more.plan(part, SCALE, add_mini.SEED, sources) for part in add_mini_sets.SETS}


def test_each_of_the_people_is_in_one_set():
    used = [voice for groups in PEOPLE.values() for group in groups for voice in group.voices]
    assert len(used) == len(set(used))
    assert set(used) == {*readers.READERS, *words.WORDS, *games.HEDGEWARS, *games.LINES_OF}
    assert set(used) <= set(add_mini_sets.FLOORS) and not set(used) & {*sum(add_mini_sets.STUDIO.values(), ())}
    assert set(words.WORDS) <= set(voices.VOICES)
    speakers = [speaker for people in readers.READERS.values() for speaker in people]
    assert len(set(speakers)) == len(speakers) == 21


@pytest.mark.network
def test_readers_speak_for_seconds():
    for voice, people in readers.fetch_readers(list(readers.READERS)).items():
        assert voice in add_mini_sets.FLOORS and set(people) == set(readers.READERS[voice])
        for speaker, clips in people.items():
            assert clips and all(soundfile.info(clip).samplerate >= RATE for clip in clips), speaker
            first, last = speech_bounds(voices.load_clip(clips[0], RATE))
            assert last - first > 0.7 * RATE, speaker


@pytest.mark.network
def test_what_follows_the_plan(plans, sources):
    for part, items in plans.items():
        before = add_mini_sets.plan(part, SCALE, add_mini.SEED, sources, engines="all")
        assert items[: len(before)] == before
        assert [item.id for item in items] == [f"{part}-{number:05d}" for number in range(len(items))]
        fakes = defaultdict(list)
        for item in items[len(before) :]:
            if item.system != "-":
                fakes[item.original].append(item)
        genuine = {item.id: item for item in items if item.system == "-"}
        planned = {item.id for item in before if item.system == "-"}
        assert set(fakes) == set(genuine)
        for name, found in fakes.items():
            systems, voice = {item.system for item in found}, genuine[name].voice
            if name in planned:
                assert len(found) == add_mini_more.FAKES[part] and systems <= set(add_mini_sets.MORE)
            else:
                (group,) = [group for group in PEOPLE[part] if voice in group.voices]
                assert len(found) == group.fakes and (group.spoken or not systems & set(fake_speech.SPEAKING))
            taken = (genuine[name].clip, genuine[name].take, genuine[name].voice)
            assert all((item.clip, item.take, item.voice) == taken for item in found)


@pytest.mark.network
def test_every_engine_and_speaker_is_there(plans, sources):
    assert set(sources.engines) == {*add_mini_sets.ALL, *add_mini_sets.MORE}
    systems = Counter(item.system for items in plans.values() for item in items)
    assert set(systems) == {"-", *add_mini_sets.ALL, *add_mini_sets.MORE}
    speakers = Counter(item.speaker for item in plans["train"] if item.voice == "tortoise-en" and item.system == "-")
    assert len(speakers) == 9 and set(speakers.values()) == {3}
    speakers = {item.speaker for item in plans["train"] if item.voice in words.WORDS and item.system == "-"}
    assert speakers == set(words.WORDS)
    lines = [item for item in plans["train"] if item.voice in games.LINES_OF]
    low, high = add_mini_sets.BAND_OF_LINES
    assert {item.voice for item in lines} == set(games.LINES_OF) and all(low <= item.recording.band <= high for item in lines)
    for items in plans.values():
        for item in items:
            if item.system in fake_speech.FESTIVAL:
                voice = festival.VOICES[item.speaker.removeprefix("festival-")]
                assert voice.language == item.language


@pytest.mark.network
def test_engines_speak_and_copy(plans, sources):
    """One item of each, of the length that was wanted."""
    found = {item.system: item for items in plans.values() for item in items if item.system in add_mini_sets.MORE}
    assert set(found) == set(add_mini_sets.MORE)
    for system, item in found.items():
        speech = fake_speech.speak([item], sources.engines)[0] if item.texts else voices.load_clip(item.clip, RATE)
        made = add_mini.make(item, speech, sources.engines)
        assert made.dtype == "int16" and made.std() > 50, system
        assert len(made) == item.recording.samples, system
