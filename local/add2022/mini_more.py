"""Further material of local/add2022/mini.py with all engines, for a detector to deploy: engines from packages that are not
in mini's table, and speakers with a few sentences each, most in studio quality.

Each genuine utterance of `add_mini_sets.plan` gets fakes by engines of MORE behind it, as many as FAKES says; of PEOPLE there
are more genuine utterances, several of a clip, each with fakes by any engine that there is, or by any that copies. The voices
of Festival are the same in all sets, as those of Flite are.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from local.add2022 import games, mini_sets as sets, readers, words
from local.add2022.mini_sets import ALL, COPIES, MORE, Item, Sources, make_fake, make_genuine, measure, speaking, take_turn
from local.synthesis.fake_speech import SPEAKING
from local.synthesis.recording_chain import RATE
from pyspeech.engine.parts import Parts

FAKES = {"train": 2, "dev": 1, "adapt": 1, "eval": 1}  # behind each utterance of the plan


@dataclass(frozen=True)
class People:
    """voices: of one set; genuine: how many utterances of them at scale 1; fakes: of each of these; spoken: whether also by
    engines that speak."""

    voices: tuple
    genuine: int
    fakes: int
    spoken: bool


PEOPLE = {  # of each set; those behind others change nothing of what comes before
    "train": (
        People(("tortoise-en",), 270, 4, True),
        People(words.WORDS, 392, 4, False),
        People(tuple(games.HEDGEWARS), 182, 4, False),
        People(tuple(games.LINES_OF), 540, 4, True),
    ),
    "dev": (People(("william-en", "horizons-de", "horizons-en", "horizons-fr", "mfa-sv"), 60, 3, True),),
    "adapt": (),
    "eval": (People(("mfa-es", "mfa-en", "austen-en", "sonnet-en"), 60, 3, True),),
}


def fetch_people() -> dict[str, dict[str, list[Path]]]:
    """{voice: {speaker: [paths of clips]}} of PEOPLE, downloaded where they are not in the cache."""
    names = [voice for groups in PEOPLE.values() for group in groups for voice in group.voices]
    return {
        **readers.fetch_readers([name for name in names if name in readers.READERS]),
        **words.fetch_words([name for name in names if name in words.WORDS or name in games.HEDGEWARS]),
        **games.fetch_lines([name for name in names if name in games.LINES_OF]),
    }


def plan(
    part: str, scale: float, seed: int, sources: Sources, jobs: int | None = None, parts: Parts | None = None
) -> list[Item]:
    """List of Item of one set: `add_mini_sets.plan` with all engines, and what comes behind it."""
    items = sets.plan(part, scale, seed, sources, jobs, "all", parts)
    rng, turns = np.random.Generator(np.random.PCG64([seed, list(sets.SETS).index(part), 1])), {}
    for original in [item for item in items if item.system == "-"]:
        _add_fakes(items, rng, turns, original, FAKES[part], MORE, sources)
    everything = (*ALL, *MORE)
    copying = tuple(engine for engine in everything if engine not in SPEAKING)
    for group in PEOPLE[part]:
        engines = everything if group.spoken else copying
        for voice, speaker, clip, seconds in _readings(group.voices, round(scale * group.genuine), sources, jobs, parts):
            longest = min(seconds, sets.LONGEST)
            wanted = int(RATE * rng.uniform(min(sets.SHORTEST, longest), longest))
            condition = take_turn(turns, rng, "condition", sets.CONDITIONS[part])
            original = make_genuine(rng, part, len(items), voice, speaker, clip, wanted, condition, seed, sources, "all")
            items.append(original)
            _add_fakes(items, rng, turns, original, group.fakes, engines, sources)
    return items


def _add_fakes(items, rng, turns, original, count, engines, sources):
    usable = speaking(engines, original.language, sources)
    usable += [engine for engine in COPIES if engine in usable]
    for _ in range(count if usable else 0):
        engine = take_turn(turns, rng, (original.voice, engines), usable)
        items.append(make_fake(rng, original, len(items), engine, sources))


def _readings(voices, count, sources, jobs, parts):
    """[(voice, speaker, clip, seconds of its speech), ...]: speakers of voices in turn,
    and their clips in turn; the turns of those without a long one are left out."""
    people = [(voice, *one) for voice in voices for one in sorted(sources.clips[voice].items())]
    lengths = {}
    for _, _, clips in people:
        lengths.update(zip(clips, measure(clips, jobs, parts), strict=True))
    chosen = []
    for index in range(count):
        voice, speaker, clips = people[index % len(people)]
        usable = [clip for clip in clips if lengths[clip] >= sets.SHORTEST]
        if usable:
            clip = usable[index // len(people) % len(usable)]
            chosen.append((voice, speaker, clip, lengths[clip]))
    return chosen
