"""Labels of utterances in files: what is genuine and what is fake.

Known by their columns are

    ADD_T_00000000.wav genuine                               ADD2022: file, genuine or fake
    LA_0079 LA_T_1138215 - - bonafide                        ASVspoof 2019: speaker, utterance, environment, attack, key
    LA_0009 LA_E_9332881 alaw ita_tx A07 spoof notrim eval   ASVspoof 2021 LA: speaker, utterance, codec, channel, attack, key,
                                                             trimmed, subset; DF has the kind of vocoder and four more
    PA_0010 PA_E_1000001 R3 M3 d4 r1 m1 s4 c4 spoof notrim eval      ASVspoof 2021 PA: speaker, utterance, room, microphone,
                                                             distance; the attacker's four, key, trimmed, subset
    T_4850 T_0000000000 F - - - AC3 A05 spoof -              ASVspoof 5: speaker, utterance, gender, codec, two more, tag,
                                                             attack, key, one more

CSV, TSV and JSON with names of columns (a name, a label, and where known speaker, attack or system, family, condition or
codec, subset or split). Of other files, the column that says genuine or fake in every line is the key, and the names of scores
tell which one is the name. The words for genuine are genuine, bonafide, real, human and 1, for fake fake, spoof and 0.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from pyspeech.data.names import KnownNames
from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN, Label, kind_named, labels_of, utterance_name
from pyspeech.spoof.text_tables import NAMES, column_name, read_table

MANIFESTS = (".jsonl", ".jsonl.gz")
INVERTED = ("isfake", "isspoof", "fake", "spoof")  # headers under which 1 is fake
LABELS = ("label", "labels", "key", "cmlabel", "class", "kind", "target", "genuine", "real", *INVERTED)
FIELDS = {
    "speaker": ("speaker", "spk", "speakerid"),
    "attack": ("attack", "attacklabel", "system", "engine"),
    "condition": ("condition", "codec"),
    "family": ("family", "vocoder"),
    "subset": ("subset", "split"),
}
PROTOCOL_KEYS = ("bonafide", "spoof")
PROTOCOLS = {  # {number of columns: what they are}
    5: {"speaker": 0, "name": 1, "condition": 2, "attack": 3, "key": 4},
    8: {"speaker": 0, "name": 1, "condition": 2, "attack": 4, "key": 5},
    13: {"speaker": 0, "name": 1, "condition": 2, "attack": 4, "key": 5, "family": 8},
    12: {"speaker": 0, "name": 1, "condition": 2, "attack": 7, "key": 9},
    10: {"speaker": 0, "name": 1, "condition": 3, "attack": 7, "key": 8},
}
PA_COLUMNS = 12
HIDDEN_PA = {("notrim", "hidden"): "hidden1_PA", ("trim", "hidden"): "hidden2_PA"}
EXPECTED = (
    "expected `FILE genuine|fake` (ADD2022), `SPEAKER UTTERANCE - ATTACK bonafide|spoof` (ASVspoof 2019), or a header with the "
    "names of the columns"
)
log = logging.getLogger(__name__)


def read_labels(path: Path | str, names: Collection[str] = (), genuine: str | None = None) -> dict[str, Label]:
    """Read {utterance: Label}, in the order of the file.

    Args:
        path: A label file, a protocol (see above), or a manifest of cuts (*.jsonl, *.jsonl.gz).
        names: Names of the utterances that are wanted, by which the column of names is told in files of unknown columns.
        genuine: The word of the label column that stands for genuine, all others for fake; None for the usual words.

    Raises:
        UserError: with the line, for what has no label and for an utterance that is there twice.
    """
    if str(path).endswith(MANIFESTS):
        return _read_manifest(path)
    table = read_table(path, "label file", LABELS, number=False)
    parse = _by_header(table, genuine) if table.header else _by_values(table, names, genuine)
    labels, places = {}, {}
    for number, fields in table.rows:
        name, label = parse(f"{path}:{number}", fields)
        name = utterance_name(name)
        if name in labels:
            raise UserError(f"{path}:{number}: utterance '{name}' is there twice, first in line {places[name]}; remove one")
        labels[name], places[name] = label, number
    return labels


def _by_header(table, genuine):
    places = {"name": table.place(NAMES), "key": table.place(LABELS)}
    if None in places.values():
        raise UserError(f"{table.path}: columns {', '.join(table.header)}; expected one of names, such as file, and a label")
    others = {field: table.place(columns) for field, columns in FIELDS.items()}
    places.update({field: place for field, place in others.items() if place not in (None, places["name"], places["key"])})
    texts = {fields[places["key"]] for _, fields in table.rows if len(fields) == len(table.header)}
    kind_of = _reader_of_kinds(table.path, texts, genuine, table.header[places["key"]] in INVERTED)

    def parse(where, fields):
        if len(fields) != len(table.header):
            raise UserError(f"{where}: {len(fields)} columns; expected {len(table.header)}, as the header has")
        kind = kind_of(fields[places["key"]])
        if kind is None:
            raise UserError(f"{where}: label '{fields[places['key']]}'; expected genuine or fake (or --genuine WORD)")
        return _entry(fields, places, kind)

    return parse


def _by_values(table, names, genuine):
    others = [row for row in table.rows if _protocol(row[1]) is None]
    parse = _other_columns(table, others, names, genuine) if others else None

    def read(where, fields):
        places = _protocol(fields)
        if places is None:
            return parse(where, fields)  # pyright: ignore[reportOptionalCall]
        return _entry(fields, places, kind_named(fields[places["key"]]), subset_of(fields))

    return read


def _protocol(fields):
    """Places of a line of a known protocol; None for others."""
    places = PROTOCOLS.get(len(fields))
    return places if places and fields[places["key"]] in PROTOCOL_KEYS else None


def subset_of(fields: Sequence[str]) -> str:
    """Return the subset that a line of a key of ASVspoof 2021 is of, "-" for other lines.

    The hidden subset of physical access is two, as in the official package: one trimmed, one not.
    """
    if len(fields) == PA_COLUMNS:
        return HIDDEN_PA.get((fields[-2], fields[-1]), fields[-1])
    return fields[7] if len(fields) in (8, 13) else UNKNOWN


def _key_place(rows, genuine):
    """The column that is a key in every line: the last one, if it can be. rows: lists of fields, two or more each."""
    width = min(map(len, rows))
    even = all(len(fields) == width for fields in rows)
    for wanted in (str.isalpha, str.isdigit):  # words go before 0 and 1, of which other columns may consist
        for place in (-1, *(range(width - 1) if even else ())):
            texts = {fields[place] for fields in rows}
            if genuine is not None and genuine.lower() in map(str.lower, texts) and len(texts) <= 2:
                return place
            if all(kind_named(text) and wanted(column_name(text)) for text in texts):
                return place
    return -1


def _reader_of_kinds(path, texts, genuine, inverted=False):
    """A function from a word of the label column to its kind or None; a warning says what 1 is taken for."""
    if genuine is not None:
        return lambda text: "genuine" if text.lower() == genuine.lower() else "fake"
    if texts <= {"0", "1"}:
        kinds = {"1": "fake", "0": "genuine"} if inverted else {"1": "genuine", "0": "fake"}
        log.warning("%s: labels 0 and 1: 1 is taken for %s; --genuine 0 or 1 says which is genuine", path, kinds["1"])
        return kinds.get
    return kind_named


def _other_columns(table, rows, names, genuine):
    """A function (place, fields) -> (name, Label) for lines of unknown columns: the name is all but the key, or a column."""
    for number, fields in rows:
        if len(fields) < 2:
            raise UserError(f"{table.path}:{number}: '{fields[0][:120]}'; expected 2 columns or more of a label file")
    rows = [fields for _, fields in rows]
    key = _key_place(rows, genuine)
    kind_of = _reader_of_kinds(table.path, {fields[key] for fields in rows}, genuine)
    width = len(rows[0])
    even = all(len(fields) == width for fields in rows)
    place = _name_place(rows, key % width, names, table.spaces) if even else None

    def parse(where, fields):
        kind, at = kind_of(fields[key]), key % len(fields)
        if kind is None:
            raise UserError(f"{where}: '{fields[key][:120]}' is no label; {EXPECTED}")
        if place is None:
            return " ".join(fields[:at] + fields[at + 1 :]), Label(kind)
        attack = at - 1 if at > 0 and at - 1 != place else None
        speaker = 0 if place == 1 and at != 0 else None
        places = {"name": place, "attack": attack, "speaker": None if speaker == attack else speaker}
        return _entry(fields, {field: found for field, found in places.items() if found is not None}, kind)

    return parse


def _name_place(rows, key, names, spaces):
    """The column with the most of the `names`; None for all columns but the key, which are a name with spaces."""
    known, columns = KnownNames(names, utterance_name), [place for place in range(len(rows[0])) if place != key]
    if len(columns) == 1:
        return columns[0]
    counts: dict[int | None, int] = {place: sum(known.find(fields[place]) is not None for fields in rows) for place in columns}
    whole = spaces and key in (0, len(rows[0]) - 1)
    if whole:
        counts[None] = sum(known.find(" ".join(fields[:key] + fields[key + 1 :])) is not None for fields in rows)
    best = max(counts, key=lambda place: (counts[place], place is None))
    return best if counts[best] or whole else columns[0]


def _entry(fields, places, kind, subset=UNKNOWN):
    """(name, Label) of a line whose columns are known; "-" and nothing stand for what is not known."""
    values = {field: fields[place] or UNKNOWN for field, place in places.items() if field not in ("name", "key")}
    if kind == "genuine":  # the protocols of 2021 call its attack "bonafide"
        values.update({field: UNKNOWN for field in ("attack", "family") if field in values})
    return fields[places["name"]], Label(kind, **{"subset": subset, **values})


def _read_manifest(path):
    from lhotse import CutSet

    try:
        cuts = CutSet.from_file(path).to_eager()
    except OSError as error:
        raise UserError(f"{path}: cannot read the manifest: {error.strerror or error}") from None
    except Exception as error:  # lhotse raises nearly every kind
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{path}: not a manifest of cuts ({type(error).__name__}: {reason})") from error
    if len(cuts) == 0:
        raise UserError(f"{path}: holds no cuts; expected a manifest of utterances, each genuine or fake")
    return labels_of(cuts)
