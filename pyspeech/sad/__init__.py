"""Speech activity detection: statistical and neural (Heitkaemper et al. 2020)."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.sad.api import SpeechDetector
    from pyspeech.sad.detector import Speech
    from pyspeech.sad.streaming import Event, StreamingDetector

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "Event": "pyspeech.sad.streaming",
        "Speech": "pyspeech.sad.detector",
        "SpeechDetector": "pyspeech.sad.api",
        "StreamingDetector": "pyspeech.sad.streaming",
    },
)
