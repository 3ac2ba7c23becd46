"""The corpora of egs/zerospeech: manifests, ABX items, the list of files that the bitrate is measured on.

corpus/{unit,voice,test}.jsonl.gz   Lhotse cuts, one an utterance; supervision.speaker
corpus/abx.item, corpus/bitrate_filelist
corpus/alignment.ctm                phones of the test utterances, where they are known
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment

MINI_LANGUAGES = ("cs", "nl")  # of local/zerospeech/mini.py


def prepare(exp: Experiment, conf: Any) -> None:
    """Corpus to Lhotse manifests, ABX items and the list for the bitrate."""
    out, log, parts = exp.dir / "corpus", exp.log, exp.parts
    if conf.corpus == "mini":
        from local.zerospeech import mini

        counts = mini.prepare(out, log, scale=conf.scale, languages=conf.languages, parts=parts)
    else:
        from local.zerospeech import zerospeech2019

        language = conf.language or None
        counts = zerospeech2019.prepare(conf.corpus, out, log, language=language, skip_bad=conf.skip_bad, parts=parts)
    log.info("%s", ", ".join(f"{name} {count}" for name, count in counts.items()))


def speaker_of(cut: Cut) -> str:
    return cut.supervisions[0].speaker  # pyright: ignore[reportReturnType]


def words_of(cut: Cut) -> str:
    """The text of a cut as lower-case words; "" where there is none."""
    return plain_words(cut.supervisions[0].text or "")


def plain_words(text: str) -> str:
    """A text as lower-case words; letters with accents are one character each where Unicode has them."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFC", text).lower()))
