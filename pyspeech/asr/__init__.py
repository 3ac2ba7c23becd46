"""Streaming multilingual RNN transducers (Joshi et al. 2021): models, losses and search."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.asr.api import Recognizer
    from pyspeech.asr.loss import rnnt_loss
    from pyspeech.asr.transcripts import Transcript

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"Recognizer": "pyspeech.asr.api", "Transcript": "pyspeech.asr.transcripts", "rnnt_loss": "pyspeech.asr.loss"}
)
