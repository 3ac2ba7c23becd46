"""The engines that make the fakes of local/add2022/mini.py: those that speak a text and those that copy a recording.

    world, world_convert, griffin_lim, lpc, sinusoidal, phase_vocoder     local/synthesis/vocoders.py
    melgan             Multi-band MelGAN, a neural vocoder                local/synthesis/melgan.py
    hifigan            HiFi-GAN, a neural vocoder, of many voices         local/synthesis/hifigan.py
    hifigan_lj         the same, learnt from a single voice
    espeak             eSpeak NG: formant synthesis, all languages        local/synthesis/espeak.py
    flite_kal          Flite: diphones, English                           local/synthesis/flite.py
    flite_parametric   Flite: statistical parametric, English
    kokoro             Kokoro: neural, all languages, with an accent      local/synthesis/kokoro.py
    piper              Piper: neural, all languages, with an accent       local/synthesis/piper.py

Any item that these functions take has: system (one of the names), language, speaker, seed, and, to be spoken, texts
and the wanted number of samples, recording.samples.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from local.synthesis import espeak, flite, hifigan, kokoro, melgan, piper
from local.synthesis.recording_chain import RATE
from local.synthesis.vocoders import ENGINES, resample
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from local.add2022.mini_sets import Item

LANGUAGES = {"flite_kal": ("en",), "flite_parametric": ("en",)}  # of others: all
SPEAKING = ("espeak", "kokoro", "piper", *LANGUAGES)
HIFIGAN = {"hifigan": "universal", "hifigan_lj": "LJSpeech"}  # its weights
PACES = (0.8, 1.2)  # of neural vocoders
QUIET = (*SPEAKING, "melgan")  # their speech comes without noise
SECONDS = 0.5  # what is spoken is to be longer than wanted by so much
CHARACTERS = 18.0  # said in a second, at most
LEISURELY = 15.0  # by Kokoro, which takes its time in computing too


def find_engines(log: logging.Logger) -> dict[str, Any]:
    """{name: what it needs, from the cache or downloaded}; without those that this machine cannot have."""
    found = {**dict.fromkeys(ENGINES), "espeak": espeak.library()}
    for names, package, find in (
        (("flite_kal", "flite_parametric"), None, flite.libraries),
        (("melgan",), "ai_edge_litert", melgan.generator),
        (("kokoro",), "onnxruntime", kokoro.model),
        (("piper",), "onnxruntime", piper.model),
        (tuple(HIFIGAN), None, hifigan.generators),
    ):
        try:
            if package and find_spec(package) is None:
                raise UserError(f"the package {package} is not installed; run ./path.sh, which installs it")
            found.update(dict.fromkeys(names, find()))
        except UserError as error:
            log.warning("no fakes of %s: %s", " and ".join(names), error)
    return found


def copy(system: str, samples: np.ndarray, rng: np.random.Generator, engines: Mapping[str, Any]) -> np.ndarray:
    """A recording, (N,) float64 at 16 kHz, taken apart and put together again: (N,). Neural vocoders each time at a pace of
    their own."""
    if system == "melgan":
        return melgan.copy_melgan(samples, engines[system], rng.uniform(*PACES))
    if system in HIFIGAN:
        return hifigan.copy_hifigan(samples, engines[system][HIFIGAN[system]], rng.uniform(*PACES))
    return ENGINES[system](samples, rng)


def name_speaker(system: str, voices: Sequence[str], rng: np.random.Generator) -> str:
    """Name of one of the voices of an engine. voices: those of eSpeak NG to choose from."""
    names = {
        "espeak": voices,
        "kokoro": kokoro.VOICES,
        "piper": piper.VOICES,
        "flite_kal": flite.DIPHONES,
        "flite_parametric": flite.PARAMETRIC,
    }[system]
    return f"{system.split('_')[0]}-{names[rng.integers(len(names))]}"


def speak(items: Sequence[Item], engines: Mapping[str, Any]) -> list[np.ndarray]:
    """Items, all of one engine -> list of speech at 16 kHz, (N,)."""
    system = items[0].system
    said = [(item.speaker.split("-", 1)[1], " ".join(_enough(item))) for item in items]
    if system == "espeak":
        made = espeak.synthesize(
            [(_espeak_voice(item), text) for item, (_, text) in zip(items, said, strict=True)], engines[system]
        )
        made = [(samples, espeak.RATE) for samples in made]
    elif system == "kokoro":
        made = kokoro.synthesize(
            [(voice, item.language, text) for item, (voice, text) in zip(items, said, strict=True)], engines[system]
        )
    elif system == "piper":
        order = [(item.seed[-1], item.language, text) for item, (_, text) in zip(items, said, strict=True)]
        made = piper.synthesize(order, engines[system])
    else:
        made = flite.synthesize(said, engines[system])
    return [resample(samples / 32768.0, rate, RATE) for samples, rate in made]


def _enough(item):
    """As many texts of an item as make it as long as is wanted."""
    speed = LEISURELY if item.system == "kokoro" else CHARACTERS
    chosen = []
    for text in item.texts:
        chosen.append(text)
        if sum(map(len, chosen)) > speed * (item.recording.samples / RATE + SECONDS):
            break
    return chosen


def _espeak_voice(item):
    """eSpeak NG's voice: the speaker's variant, with a rate, pitch and range of its own."""
    rng = np.random.Generator(np.random.PCG64([*item.seed, 1]))
    return espeak.Voice(
        item.language,
        item.speaker.removeprefix("espeak-"),
        int(rng.integers(130, 190)),
        int(rng.integers(35, 66)),
        int(rng.integers(35, 66)),
    )
