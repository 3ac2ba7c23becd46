"""Speech activity detection, recognition, unit discovery and fake audio detection: the library behind the recipes.

    from pyspeech import FakeDetector, Recognizer, SpeechDetector, UnitEncoder, UnitSynthesizer, anonymize, rnnt_loss

Importing it is instant: what a name stands for is loaded when it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pyspeech.asr import Alignment, Recognizer, Transcript, pruned_loss, rnnt_loss, smoothed_loss
    from pyspeech.audio.sound import Sound
    from pyspeech.errors import UserError
    from pyspeech.sad import Event, Speech, SpeechDetector, StreamingDetector
    from pyspeech.spoof import FakeDetector, FakeScore, anonymize
    from pyspeech.units import UnitEncoder, Units, UnitSynthesizer

__version__ = "1.0.0"
NEED_TORCH = ("pyspeech.asr.loss",)  # modules that import it before anything is called


def lazy_names(package: str, places: "Mapping[str, str]") -> "tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]":
    """(__getattr__, __dir__, __all__) of a package whose names lie in modules that are loaded when they are used.

    places: {name: module}. Without torch, help() and `import *`, which load all names, see none that cannot be loaded.
    """
    from importlib.util import find_spec

    names = sorted(name for name in places if places[name] not in NEED_TORCH or find_spec("torch"))

    def load(name):
        if name not in places:
            raise AttributeError("module %r has no attribute %r" % (package, name))
        from importlib import import_module

        with import_module("pyspeech.errors").naming_extras():
            return getattr(import_module(places[name]), name)

    return load, lambda: list(names), names


__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "Alignment": "pyspeech.asr.aligned",
        "Event": "pyspeech.sad.streaming",
        "FakeDetector": "pyspeech.spoof.api",
        "FakeScore": "pyspeech.spoof.api",
        "Recognizer": "pyspeech.asr.api",
        "Sound": "pyspeech.audio.sound",
        "Speech": "pyspeech.sad.detector",
        "SpeechDetector": "pyspeech.sad.api",
        "StreamingDetector": "pyspeech.sad.streaming",
        "Transcript": "pyspeech.asr.transcripts",
        "UnitEncoder": "pyspeech.units.api",
        "UnitSynthesizer": "pyspeech.units.api",
        "Units": "pyspeech.units.api",
        "UserError": "pyspeech.errors",
        "anonymize": "pyspeech.spoof.api",
        "pruned_loss": "pyspeech.asr.loss",
        "rnnt_loss": "pyspeech.asr.loss",
        "smoothed_loss": "pyspeech.asr.loss",
    },
)
