"""Labels of fake audio detection, names of utterances, and what is written of scores.

Files are read by `score_files` and `label_files`. The ending of an audio file's name is no part of the utterance's: labels
and scores agree with and without it. In a manifest, a cut has one supervision: `text` "genuine" or "fake", `speaker`, and
`custom = {"attack": ..., "condition": ...}`; "-" stands for what is not known or does not apply. `custom` may have
"original", "family", "kind" and "page" too (`original_of`, `family_of`, `kind_of`, `page_of`).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.audio.io import FFMPEG_SUFFIXES, SNDFILE_SUFFIXES
from pyspeech.errors import UserError
from pyspeech.files import atomic_write

if TYPE_CHECKING:
    from lhotse.cut import Cut

KINDS = ("genuine", "fake")
KEYS = {
    **dict.fromkeys(("genuine", "bonafide", "real", "human"), "genuine"),
    **dict.fromkeys(("fake", "spoof", "spoofed"), "fake"),
}
UNKNOWN = "-"


@dataclass(frozen=True)
class Label:
    """Label of an utterance. kind: "genuine" or "fake"; attack: the system that made a fake; "-" if unknown."""

    kind: str
    speaker: str = UNKNOWN
    attack: str = UNKNOWN
    condition: str = UNKNOWN  # such as a codec, noise or music
    family: str = UNKNOWN  # kind of the system that made a fake
    subset: str = UNKNOWN  # of a key that holds several sets

    @property
    def genuine(self) -> bool:
        return self.kind == "genuine"


def kind_named(text: str) -> str | None:
    """Return the kind that a word of label files stands for, in any case (`Bona-fide`, `REAL`, 0, 1); None for others."""
    word = text.lower().replace("-", "").replace("_", "")
    return KEYS.get(word, {"1": "genuine", "0": "fake"}.get(word))


def utterance_name(name: str) -> str:
    """A file's name without the ending of audio files: `ADD_T_00000000.wav` -> `ADD_T_00000000`.

    In composed characters (NFC) and with single spaces, so that files and the lines of label files agree.
    """
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    stem, dot, ending = name.rpartition(".")
    return stem.rstrip() if stem and dot + ending.lower() in SNDFILE_SUFFIXES + FFMPEG_SUFFIXES else name


def write_scores(path: Path | str, scores: Mapping[str, float]) -> None:
    """Write {utterance: score}, with all digits, whole or not at all."""
    with atomic_write(path) as stream:
        for name, score in scores.items():
            if not math.isfinite(score):
                raise UserError(f"{path}: the score of '{name}' is {score}; expected a finite number")
            stream.write(f"{_one_line(path, name)} {float(score)!r}\n")


def label_of(cut: Cut) -> Label:
    """The Label of a cut with one supervision (see above); UserError that names the cut for any other."""
    if len(cut.supervisions) != 1:
        raise UserError(f"{cut.id}: {len(cut.supervisions)} supervisions; expected one, with text genuine or fake")
    supervision = cut.supervisions[0]
    if supervision.text not in KINDS:
        raise UserError(f"{cut.id}: the text of its supervision is {supervision.text!r}; expected genuine or fake")
    custom = supervision.custom or {}
    return Label(
        supervision.text,
        supervision.speaker or UNKNOWN,
        str(custom.get("attack", UNKNOWN)),
        str(custom.get("condition", UNKNOWN)),
    )


def original_of(cut: Cut) -> str:
    """The id of the genuine cut whose recording a fake was made of or stands beside, a genuine cut's own; "" where the
    supervision does not say it (custom field `original`)."""
    return str((cut.supervisions[0].custom or {}).get("original", ""))


def family_of(cut: Cut) -> str:
    """The family of the engine that made a fake (custom field `family`; the engine where it is not said); "-" of a genuine
    cut."""
    label = label_of(cut)
    return UNKNOWN if label.genuine else str((cut.supervisions[0].custom or {}).get("family", label.attack))


def page_of(cut: Cut) -> str:
    """The source of a recording, such as a web page (custom field `page`); "-" where it is not said."""
    return str((cut.supervisions[0].custom or {}).get("page", UNKNOWN))


def kind_of(cut: Cut) -> str:
    """Kind of engine of a fake's family, e.g. "neural" (custom field `kind`); "-" if unknown."""
    return str((cut.supervisions[0].custom or {}).get("kind", UNKNOWN))


def labels_of(cuts: Iterable[Cut]) -> dict[str, Label]:
    """{cut id: Label} of a CutSet."""
    return {cut.id: label_of(cut) for cut in cuts}


def _one_line(path, name):
    if not name or name != " ".join(name.split()):
        raise UserError(f"{path}: {name!r} cannot name an utterance: line breaks and runs of spaces would be lost")
    return name
