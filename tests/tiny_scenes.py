"""Made-up voices and radio talk for tests of the detector's corpus."""

import numpy as np
import soundfile
from tiny_corpora import voiced

from local.detector import scenes as speech_scenes
from local.fearless import mini as fearless_mini
from local.synthesis import radio


def made_up_transcript(count=200, seed=0):
    """Exchanges of CC and CDR every few seconds."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum(rng.uniform(2.0, 8.0, count))
    roles = ("CC", "CDR", "LMP")
    return [
        fearless_mini.Transmission(float(round(start)), roles[index % 3], float(rng.uniform(0.5, 3.0)))
        for index, start in enumerate(starts)
    ]


def make_sources(folder):
    """{split: Sources} of two voices of five clips each, no recorded sounds and one data signal."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for number, split in enumerate(speech_scenes.SPLITS):
        people = {}
        for voice in ("a", "b"):
            rng, paths = np.random.default_rng([number, ord(voice)]), []
            for index in range(5):
                paths.append(folder / f"{split}-{voice}-{index}.wav")
                quiet = np.zeros(1600)
                samples = np.concatenate([quiet, 0.4 * voiced(0.6 + 0.4 * index, rng), quiet])
                soundfile.write(str(paths[-1]), samples, 8000, subtype="PCM_16")
            people[voice] = ("fm"[number % 2], paths)
        data = radio.keyed_tones(np.random.Generator(np.random.PCG64(1)), 40000)
        found[split] = speech_scenes.Sources(people, {"a": 7.0, "b": 7.0}, {"noise": [], "music": [], "signals": [data]})
    return found
