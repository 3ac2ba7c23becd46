"""Speech activity detection: statistical and neural (Heitkaemper et al. 2020)."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.sad.api import SpeechDetector
    from pyspeech.sad.detector import Speech

__getattr__, __dir__, __all__ = lazy_names(__name__, {"SpeechDetector": "pyspeech.sad.api", "Speech": "pyspeech.sad.detector"})
