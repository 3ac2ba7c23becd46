"""Synthetic English speech by Flite 2.2, the shared libraries of the Debian package libflite1, through ctypes.

Voices: kal16, which joins diphones, and slt, rms and awb, statistical parametric synthesis (CLUSTERGEN). `synthesize`
speaks in a child process of its own, as `local.synthesis.espeak` does and for the same reasons. The libraries are those of
Debian 12 on x86-64 and need its C library (glibc 2.33) or a newer one.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.fetch.download import DebianPackage

DIPHONES, PARAMETRIC = ("kal16",), ("slt", "rms", "awb")
LIBRARIES = ("libflite", "libflite_cmulex", "libflite_usenglish")  # in the order in which they need each other


def packages() -> list[DebianPackage]:
    """The Debian packages with the libraries: Flite's, and the sound library that it is linked with."""
    from pyspeech.fetch.download import DebianPackage

    return [
        DebianPackage(
            "libflite1",
            "pool/main/f/flite/libflite1_2.2-5_amd64.deb",
            "bfa8c591f1b47730b30b372ec38e02918a1c9795eada67684e1746390ad2f061",
        ),
        DebianPackage(
            "libasound2",
            "pool/main/a/alsa-lib/libasound2_1.2.8-1+b1_amd64.deb",
            "44c77b076a7b11ae99712439022d822245b1994c435da564ebd320bb676faf4c",
        ),
    ]


def libraries() -> dict[str, str]:
    """{name: path} of the shared libraries, downloaded into the cache where they are not there."""
    from pyspeech.fetch.download import fetch_debian
    from pyspeech.fetch.unpack import unpack

    archives = fetch_debian(packages())
    found = [path for name in sorted(archives) for path in unpack(archives[name], ["usr/lib/*.so.*"]).rglob("*.so.*")]
    return {path.name.split(".")[0]: str(path) for path in sorted(found)}


def synthesize(utterances: Sequence[tuple[str, str]], where: Mapping[str, str] | None = None) -> list[tuple[np.ndarray, int]]:
    """Speak a list of (voice, English text): list of (int16 array (N,), sampling rate in Hz).

    where: default `libraries()`. UserError where the libraries do not run or a text gives no sound, with the reason.
    """
    import numpy as np

    from pyspeech.errors import UserError

    where = where or libraries()
    order = json.dumps({"where": where, "utterances": list(utterances)})
    child = subprocess.run([sys.executable, "-I", "-S", __file__], input=order.encode(), capture_output=True)
    found, start = [], 0
    while start < len(child.stdout):
        rate, count = (int.from_bytes(child.stdout[start + at : start + at + 4], "little") for at in (0, 4))
        found.append((np.frombuffer(child.stdout, "<i2", count, start + 8), rate))
        start += 8 + 2 * count
    if child.returncode or len(found) != len(utterances):
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"Flite cannot speak: {lines[-1] if lines else f'status {child.returncode}'}; expected the "
            f"libraries of Debian 12 on x86-64 in {where.get('libflite', 'the cache')}"
        )
    return found


class _Wave(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.c_void_p),
    ]


class Engine:
    """The libraries in this process. where: as `libraries()` gives it."""

    def __init__(self, where: Mapping[str, str]) -> None:
        self.where, self.voices = where, {}
        self._load("libasound")
        for name in LIBRARIES:
            self._load(name)
        self.lib = self._load("libflite")
        self.lib.flite_init()
        self.lib.flite_text_to_wave.restype = ctypes.POINTER(_Wave)
        self.lib.flite_text_to_wave.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        self.lib.delete_wave.argtypes = [ctypes.c_void_p]

    def _load(self, name):
        return ctypes.CDLL(self.where[name], mode=ctypes.RTLD_GLOBAL)  # what it needs is found among those loaded

    def speak(self, voice: str, text: str) -> tuple[bytes, int]:
        """(samples as bytes of int16, rate)."""
        if voice not in self.voices:
            register = getattr(self._load(f"libflite_cmu_us_{voice}"), f"register_cmu_us_{voice}")
            register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
            self.voices[voice] = register(None)
        wave = self.lib.flite_text_to_wave(text.encode(), self.voices[voice])
        if not wave or wave.contents.num_samples <= 0:
            raise RuntimeError(f"no sound of the text '{text}'")
        found = ctypes.string_at(wave.contents.samples, 2 * wave.contents.num_samples), wave.contents.sample_rate
        self.lib.delete_wave(wave)
        return found


def main() -> None:
    """The child process of `synthesize`: JSON on standard input; (rate, length, samples) of every utterance."""
    order = json.load(sys.stdin)
    try:
        engine = Engine(order["where"])
        for voice, text in order["utterances"]:
            samples, rate = engine.speak(voice, text)
            sys.stdout.buffer.write(rate.to_bytes(4, "little") + (len(samples) // 2).to_bytes(4, "little") + samples)
    except (RuntimeError, OSError, KeyError, AttributeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
