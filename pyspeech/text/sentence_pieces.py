"""Sentence pieces (Kudo and Richardson 2018) as units, instead of graphemes: the unigram model of Kudo (2018).

Same interface as `pyspeech.text.graphemes.GraphemeUnits`; the blank takes the number of the model's unknown piece,
which is never put out. The trained model is kept as bytes, in JSON as base64, so that units are plain data.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable

from pyspeech.errors import UserError
from pyspeech.text.graphemes import BLANK, UNDETERMINED, merge_languages
from pyspeech.text.inventory import Inventory
from pyspeech.text.scripts import main_script


class SentencePieceUnits(Inventory):
    """Sentence pieces of one language, or of several together.

    symbols: list of V names, 0 the blank; a piece that begins with U+2581 starts a word.
    languages: as in `GraphemeUnits`, of the texts that the pieces were learnt from.
    """

    kind = "sentence pieces"

    def __init__(self, model: bytes, languages: dict[str, dict] | None = None) -> None:
        """model: bytes of a SentencePiece model whose unknown piece is number 0."""
        from sentencepiece import SentencePieceProcessor

        self.model = model
        self.languages = languages or {}
        try:
            self._processor = SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise UserError(f"not a SentencePiece model: {error}") from None
        pieces = [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]
        self.symbols = [BLANK, *pieces[1:]]
        self._characters = {character for piece in pieces[1:] for character in piece}

    @classmethod
    def train(cls, texts: Iterable[str], size: int, language: str = UNDETERMINED) -> SentencePieceUnits:
        """Pieces of normalised texts: `size` symbols with the blank, or fewer where the texts do not give as many.

        texts: list of texts; all their characters are covered. language: code, as in `GraphemeUnits.build`. UserError
        where there is no text or size is too small.
        """
        import sentencepiece

        lines = [text for text in texts if text.strip()]
        if not lines:
            raise UserError(
                f"no text to learn sentence pieces from (language {language}): expected transcripts of the training set"
            )
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=written,
                vocab_size=size,
                model_type="unigram",
                normalization_rule_name="identity",
                character_coverage=1.0,
                hard_vocab_limit=False,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                num_threads=1,
                max_sentence_length=1 << 20,
                minloglevel=3,
            )
        except RuntimeError as error:
            characters = len({character for line in lines for character in line})
            raise UserError(
                f"no {size} sentence pieces could be learnt; expected more than the {characters} different "
                f"characters of the texts ({' '.join(str(error).split())})"
            ) from None
        return cls(written.getvalue(), {language: _inventory(lines)})

    @classmethod
    def union(cls, units: dict[str, SentencePieceUnits] | list[SentencePieceUnits]) -> SentencePieceUnits:
        """Units of several languages together; a piece that two of them have is one symbol, with its better score.

        units: as for `GraphemeUnits.union`. A text is cut into the pieces with the best sum of scores (log
        probabilities within a piece's own language), whichever language they are from.
        """
        from sentencepiece import sentencepiece_model_pb2

        languages = merge_languages(units)
        members = list(units.values() if isinstance(units, dict) else units)
        proto = sentencepiece_model_pb2.ModelProto  # pyright: ignore[reportAttributeAccessIssue]
        models = [proto.FromString(item.model) for item in members]
        scores = {}
        for model in models:
            for piece in model.pieces[1:]:
                scores[piece.piece] = max(piece.score, scores.get(piece.piece, piece.score))
        merged = proto()
        merged.CopyFrom(models[0])
        del merged.pieces[1:]
        for piece in sorted(scores, key=lambda piece: (-scores[piece], piece)):
            merged.pieces.add(piece=piece, score=scores[piece])
        merged.trainer_spec.vocab_size = len(merged.pieces)
        return cls(merged.SerializeToString(), languages)

    def encode(self, text: str) -> list[int]:
        """Symbol numbers of a normalised text, [] for an empty one; unknown characters are dropped."""
        known = (("".join(character for character in word if character in self._characters)) for word in text.split())
        line = " ".join(word for word in known if word)
        return [number for number in self._processor.encode(line) if number] if line else []

    def decode(self, numbers: Iterable[int]) -> str:
        """Text of symbol numbers (ints, 0..V-1); blanks are passed over. Inverse of `encode` for known characters."""
        numbers = [int(number) for number in numbers]
        wrong = [number for number in numbers if not 0 <= number < len(self)]
        if wrong:
            raise UserError(f"symbol {wrong[0]} is not in 0..{len(self) - 1}: these are not the units of the model")
        text = "".join(self.symbols[number] for number in numbers if number)
        return " ".join(text.replace("\u2581", " ").split())

    def count_unknown(self, texts: Iterable[str]) -> Counter[str]:
        """Counter of the characters in normalised texts that are in no piece: {character: how often}."""
        return Counter(
            character for text in texts for word in text.split() for character in word if character not in self._characters
        )

    def to_json(self) -> dict:
        """Plain data (dict of strings) for `from_json`."""
        return {"kind": self.kind, "model": base64.b64encode(self.model).decode("ascii"), "languages": self.languages}

    @classmethod
    def from_json(cls, data: dict) -> SentencePieceUnits:
        """Units from what `to_json` gave."""
        return cls(base64.b64decode(data["model"], validate=True), data["languages"])

    def __reduce__(self) -> tuple:
        return type(self), (self.model, self.languages)


def _inventory(texts):
    counts = Counter(character for text in texts for word in text.split() for character in word)
    return {"graphemes": "".join(sorted(counts)), "script": main_script(counts)}
