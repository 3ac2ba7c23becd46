"""Units discovered in untranscribed speech, speech made from them, and how both are judged."""

from typing import TYPE_CHECKING

from pyspeech import lazy_names

if TYPE_CHECKING:
    from pyspeech.units.api import UnitEncoder, Units, UnitSynthesizer

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"UnitEncoder": "pyspeech.units.api", "UnitSynthesizer": "pyspeech.units.api", "Units": "pyspeech.units.api"}
)
