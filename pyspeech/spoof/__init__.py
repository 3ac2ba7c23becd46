"""Fake audio detection: augmentation by speaker anonymisation, the LCNN-BLSTM, scoring."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.spoof.api import FakeDetector, FakeScore, anonymize

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"FakeDetector": "pyspeech.spoof.api", "FakeScore": "pyspeech.spoof.api", "anonymize": "pyspeech.spoof.api"}
)
