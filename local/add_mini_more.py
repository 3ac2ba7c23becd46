"""What the corpus of local/add_mini.py has more with all engines, for a detector that is to be used: engines that come along
with packages and are not in the table of mini, and people of whom there are a few sentences each, most in studio quality.

Each genuine utterance of `add_mini_sets.plan` gets fakes by engines of MORE behind it, as many as FAKES says; of READERS there
are more genuine utterances, several of a clip, each with READERS_FAKES fakes by any engine. The voices of Festival are the same
in all sets, as those of Flite are.
"""

import numpy as np

from local import add_mini_sets as sets, words
from local.add_mini_sets import ALL, COPIES, MORE, make_fake, make_genuine, measure, speaking, take_turn
from local.synthesis.fake_speech import SPEAKING
from local.synthesis.recording_chain import RATE

FAKES = {"train": 2, "dev": 1, "adapt": 1, "eval": 1}  # behind each utterance of the plan
READERS = {
    "train": ("tortoise-en",),
    "dev": ("william-en", "horizons-de", "horizons-en", "horizons-fr", "mfa-sv"),
    "adapt": (),
    "eval": ("mfa-es", "mfa-en", "austen-en", "sonnet-en"),
}
READERS_GENUINE = {"train": 270, "dev": 60, "adapt": 0, "eval": 60}  # at scale 1
READERS_FAKES = {"train": 4, "dev": 3, "adapt": 0, "eval": 3}
WORDS = {"train": words.WORDS, "dev": (), "adapt": (), "eval": ()}
WORDS_GENUINE = {"train": 392, "dev": 0, "adapt": 0, "eval": 0}  # at scale 1
WORDS_FAKES = {"train": 4, "dev": 0, "adapt": 0, "eval": 0}


def plan(part, scale, seed, sources, jobs=None):
    """List of Item of one set: `add_mini_sets.plan` with all engines, and what comes behind it."""
    items = sets.plan(part, scale, seed, sources, jobs, "all")
    rng, turns = np.random.Generator(np.random.PCG64([seed, list(sets.SETS).index(part), 1])), {}
    for original in [item for item in items if item.system == "-"]:
        _add_fakes(items, rng, turns, original, FAKES[part], MORE, sources)
    everything = (*ALL, *MORE)
    copying = tuple(engine for engine in everything if engine not in SPEAKING)
    for voices, genuine, fakes, engines in (
        (READERS[part], READERS_GENUINE[part], READERS_FAKES[part], everything),
        (WORDS[part], WORDS_GENUINE[part], WORDS_FAKES[part], copying),
    ):
        for voice, speaker, clip, seconds in _readings(voices, round(scale * genuine), sources, jobs):
            longest = min(seconds, sets.LONGEST)
            wanted = int(RATE * rng.uniform(min(sets.SHORTEST, longest), longest))
            condition = take_turn(turns, rng, "condition", sets.CONDITIONS[part])
            original = make_genuine(rng, part, len(items), voice, speaker, clip, wanted, condition, seed, sources, "all")
            items.append(original)
            _add_fakes(items, rng, turns, original, fakes, engines, sources)
    return items


def _add_fakes(items, rng, turns, original, count, engines, sources):
    usable = speaking(engines, original.language, sources)
    usable += [engine for engine in COPIES if engine in usable]
    for _ in range(count if usable else 0):
        engine = take_turn(turns, rng, (original.voice, engines), usable)
        items.append(make_fake(rng, original, len(items), engine, sources))


def _readings(voices, count, sources, jobs):
    """[(voice, speaker, clip, seconds of its speech), ...]: speakers of voices in turn,
    and their clips in turn; the turns of those without a long one are left out."""
    people = [(voice, *one) for voice in voices for one in sorted(sources.clips[voice].items())]
    lengths = {}
    for _, _, clips in people:
        lengths.update(zip(clips, measure(clips, jobs)))
    chosen = []
    for index in range(count):
        voice, speaker, clips = people[index % len(people)]
        usable = [clip for clip in clips if lengths[clip] >= sets.SHORTEST]
        if usable:
            clip = usable[index // len(people) % len(usable)]
            chosen.append((voice, speaker, clip, lengths[clip]))
    return chosen
