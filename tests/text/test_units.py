"""Grapheme and sentence-piece units."""

import json
import pickle
import random

import pytest

from pyspeech.errors import UserError
from pyspeech.text.normalize import normalize
from pyspeech.text.scripts import languages_of, script_of
from pyspeech.text.units import GraphemeUnits, SentencePieceUnits, load_units, save_units, units_from_json

TEXTS = {
    "en-IN": ["one two three", "don't go to the house at nine", "the cat sat on the mat", "seven ships sail"],
    "hi-IN": ["एक दो तीन चार", "क्या हाल है", "मेरा नाम राम है", "यह घर बड़ा है", "ok ठीक है"],
    "ta-IN": ["ஒன்று இரண்டு மூன்று", "என் பெயர் கொடி", "நான்கு ஐந்து ஆறு", "வணக்கம் நண்பரே"],
    "gu-IN": ["એક બે ત્રણ ચાર", "કેમ છો", "મારું નામ રામ છે", "આ ઘર મોટું છે"],
}
TEXTS = {language: [normalize(text, language) for text in texts] for language, texts in TEXTS.items()}


def build(language):
    return GraphemeUnits.build(TEXTS[language], language=language)


def test_layout_of_the_vocabulary():
    units = GraphemeUnits.build(["ab ba", "c"])
    assert units.symbols == ["<blk>", "a", "b", "c", "B-a", "B-b", "B-c"] and len(units) == units.size == 7
    assert units.encode("ab ba") == [4, 2, 5, 1]
    assert units.decode([4, 2, 5, 1]) == "ab ba"
    assert units.encode("") == [] and units.decode([]) == ""
    assert units.decode([1, 0, 2, 4]) == "ab a"


def test_vocabulary_sizes_of_the_paper_are_odd_and_an_inventory_can_be_given():
    for size in (133, 59, 97, 123):
        graphemes = [chr(0x4E00 + number) for number in range((size - 1) // 2)]
        assert len(GraphemeUnits.build([], graphemes=graphemes)) == size


@pytest.mark.parametrize("language", TEXTS)
def test_round_trip_is_exact(language):
    pieces = SentencePieceUnits.train(TEXTS[language], 60, language)
    rng = random.Random(1)
    words = [word for text in TEXTS[language] for word in text.split()]
    everything = {name: SentencePieceUnits.train(TEXTS[name], 60) for name in TEXTS}
    for units in (
        build(language),
        pieces,
        GraphemeUnits.union([build(name) for name in TEXTS]),
        SentencePieceUnits.union(everything),
    ):
        for text in TEXTS[language] + [" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(200)]:
            numbers = units.encode(text)
            assert units.decode(numbers) == text
            assert all(0 < number < len(units) for number in numbers)
            starts = [number for number in numbers if units.symbols[number].startswith(("B-", "\u2581"))]
            assert len(starts) == len(text.split())


def test_unknown_graphemes_are_dropped_and_counted():
    units = GraphemeUnits.build(["abc"])
    assert units.decode(units.encode("axb xx xc")) == "ab c"
    assert units.count_unknown(["axb xx", "ya"]) == {"x": 3, "y": 1}
    hindi = GraphemeUnits.build(["का"])
    assert hindi.decode(hindi.encode("खा का")) == "का"  # the sign of an unknown letter goes with it
    pieces = SentencePieceUnits.train(["ab ba", "bab ab"], 8)
    assert pieces.decode(pieces.encode("axb xx xa")) == "ab a"
    assert pieces.count_unknown(["axb xx"]) == {"x": 3}


def test_union_shares_what_languages_share():
    spanish, french = (
        GraphemeUnits.build(texts, language=code)
        for code, texts in {"es": ["el niño pequeño"], "fr": ["le garçon est là"]}.items()
    )
    union = GraphemeUnits.union([spanish, french])
    assert set(union.graphemes) == set(spanish.graphemes) | set(french.graphemes)
    assert len(union) == 2 * len(union.graphemes) + 1 and len(set(union.symbols)) == len(union)
    assert GraphemeUnits.union({"es": spanish, "fr": french}).to_json() == union.to_json()
    assert union.language_of(union.encode("niño")) == "es"
    assert union.language_of(union.encode("là")) == "fr"
    assert union.language_of(union.encode("el est")) is None or union.languages_of(union.encode("el est")) == ["fr"]
    assert union.languages_of(union.encode("el")) == ["es", "fr"] and union.language_of(union.encode("el")) is None
    unnamed = GraphemeUnits.union({"es": GraphemeUnits.build(["el niño pequeño"]), "fr": french})
    assert unnamed.to_json() == union.to_json()
    for wrong in ([GraphemeUnits.build(["a"]), spanish], [spanish, spanish], {"x": union}, {}, []):
        with pytest.raises(UserError, match="union of units"):
            GraphemeUnits.union(wrong)


def test_union_of_pieces_shares_what_languages_share():
    first = SentencePieceUnits.train(["ab ba ab"] * 4, 8, "x")
    second = SentencePieceUnits.train(["bc ab cb"] * 4, 9, "y")
    union = SentencePieceUnits.union([first, second])
    assert set(union.symbols) == set(first.symbols) | set(second.symbols) and len(set(union.symbols)) == len(union)
    for text in ("ab ba", "bc cb", "abcba acc"):
        assert union.decode(union.encode(text)) == text


@pytest.mark.parametrize("kind", ["graphemes", "pieces"])
def test_language_by_script(kind):
    units = (
        GraphemeUnits.union([build(name) for name in TEXTS])
        if kind == "graphemes"
        else SentencePieceUnits.union({name: SentencePieceUnits.train(TEXTS[name], 60) for name in TEXTS})
    )
    for language, texts in TEXTS.items():
        for text in texts:
            assert units.language_of(units.encode(text)) == language
    assert units.language_of(units.encode("cat o")) == "en-IN"  # o and k are in the Hindi text, too
    assert units.language_of([]) is None
    assert languages_of("я", units.languages) == [] and languages_of("12", units.languages) == []
    assert script_of("\u093e") == "DEVANAGARI" and script_of("7") is None and script_of("\u0301") is None


def test_json_and_files(tmp_path):
    for number, units in enumerate(
        [
            build("ta-IN"),
            GraphemeUnits.union([build(name) for name in TEXTS]),
            SentencePieceUnits.train(TEXTS["hi-IN"], 40, "hi-IN"),
        ]
    ):
        again = units_from_json(json.loads(json.dumps(units.to_json())))
        assert again.to_json() == units.to_json() and again.symbols == units.symbols and type(again) is type(units)
        save_units(tmp_path / f"{number}.json", units)
        for copy in (load_units(tmp_path / f"{number}.json"), pickle.loads(pickle.dumps(units))):
            assert copy.symbols == units.symbols and copy.languages == units.languages
            assert all(copy.encode(text) == units.encode(text) for texts in TEXTS.values() for text in texts)
    (tmp_path / "wrong.json").write_text("{}")
    for name in ("wrong.json", "missing.json"):
        with pytest.raises(UserError, match=name):
            load_units(tmp_path / name)


def test_errors():
    with pytest.raises(UserError, match="hi-IN"):
        GraphemeUnits.build([" "], language="hi-IN")
    with pytest.raises(UserError, match="single character"):
        GraphemeUnits.build([], graphemes=["ab"])
    for units in (GraphemeUnits.build(["ab"]), SentencePieceUnits.train(["ab ab b"], 5)):
        for number in (-1, len(units)):
            with pytest.raises(UserError, match="symbol"):
                units.decode([number])
    with pytest.raises(UserError, match="characters"):
        SentencePieceUnits.train(["the quick brown fox"], 4)
    with pytest.raises(UserError, match="no text"):
        SentencePieceUnits.train([""], 10)


def test_pieces_are_the_same_each_time_and_at_most_as_many_as_asked_for():
    texts = TEXTS["en-IN"] * 3
    first, second = SentencePieceUnits.train(texts, 35), SentencePieceUnits.train(texts, 35)
    assert first.symbols == second.symbols and len(first) <= 35
    assert max(len(first.encode(text)) for text in texts) < max(map(len, texts))
