"""Streaming multilingual RNN transducers (Joshi et al. 2021): models, losses and search."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.asr.aligned import Alignment
    from pyspeech.asr.api import Recognizer
    from pyspeech.asr.loss import pruned_loss, rnnt_loss, smoothed_loss
    from pyspeech.asr.transcripts import Transcript

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "Alignment": "pyspeech.asr.aligned",
        "Recognizer": "pyspeech.asr.api",
        "Transcript": "pyspeech.asr.transcripts",
        **dict.fromkeys(("pruned_loss", "rnnt_loss", "smoothed_loss"), "pyspeech.asr.loss"),
    },
)
