"""Compiled ABX tasks: the HDF5 files `*.abx` of ABXpy (Schatz et al. 2013), in which ZeroSpeech distributes its ABX tests.

Such a file lists every triplet of its task. For each block of items in one context (`by`, the text of a tuple of labels):

    bys                                   names of the blocks, in the order of triplets/by_index
    feat_dbs/<by>/table                   file, onset and offset of each item, a table of pandas with columns in blocks
    triplets/data, triplets/by_index      rows (A, B, X), places in that table; which of the rows are the block's
    regressors/<by>/indexed_data          for each triplet, places in indexes/<name> of the labels in indexed_datasets:
                                          phone_1 of A and X, phone_2 of B, speaker_1 of A and B, speaker_2 of X
    unique_pairs                          pairs to compare, which follow from the triplets; not read

Older files have triplets/<by> in place of bys, triplets/data and triplets/by_index. Labels are there only by way of the
triplets, so an item that is in none is left out. The items make the same triplets again (abx.py), which is checked by their
number: a task that was sampled or filtered has fewer, and is refused.

Times. ZeroSpeech 2019 tests snippets as wholes, and its evaluation puts frame i of n at i / n: where all items of a task go
from 0 to 1, they are whole files, here from 0 to infinity. Other times are taken as seconds.
"""

from __future__ import annotations

import ast
import math
import pickletools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.errors import UserError
from pyspeech.units.items import Item, read_items

ROWS = 1 << 18  # triplets in memory at a time
LAYOUT = "expected an ABX task on `phone` across `speaker`, as ABXpy compiles it"


def read_item_file(path: Path | str) -> list[Item]:
    """Items of an `.item` file or of a compiled task, whichever it is."""
    import h5py

    return read_task(path) if h5py.is_hdf5(str(path)) else read_items(path)


def read_task(path: Path | str, wanted: Callable[[str], object] | None = None) -> list[Item]:
    """Items of a compiled task, in the order of its blocks, each with its phone and its speaker.

    wanted: file name -> whether it is of interest; blocks without any such are passed over. [] where that is all of them.
    UserError for a file that is no task, of other columns, or without all triplets of its items.
    """
    import h5py

    try:
        with h5py.File(path, "r") as task:
            items = [item for block in _blocks(task) for item in _block_items(task, *block, wanted, path)]
    except (KeyError, ValueError, IndexError, RuntimeError) as error:
        raise UserError(f"{path}: not a task that can be read ({' '.join(str(error).split())}); {LAYOUT}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read as HDF5 ({' '.join(str(error).split())}); {LAYOUT}") from None
    if items and all(item.onset == 0 and item.offset == 1 for item in items):
        return [item._replace(offset=math.inf) for item in items]
    return items


def _blocks(task: Any):
    """[(name of a block, dataset of triplets, first row, behind the last)]"""
    triplets = task["triplets"]
    if "by_index" not in triplets:
        return [(name, triplets[name], 0, len(triplets[name])) for name in triplets]
    names, edges = [_text(name) for name in task["bys"][:]], triplets["by_index"][:].tolist()
    return [(name, triplets["data"], begin, end) for name, (begin, end) in zip(names, edges, strict=True)]


def _block_items(task, name, triplets, begin, end, wanted, path):
    """The items of a block that are in a triplet."""
    table = _columns(task["feat_dbs"][name]["table"])
    if wanted and not any(wanted(file) for file in table["file"]):
        return []
    regressors = task["regressors"][name]
    datasets = [_text(one) for one in regressors["indexed_datasets"][:]]
    labels = [f"{column}_{number}" for column in ("phone", "speaker") for number in (1, 2)]
    if missing := [label for label in labels if label not in datasets]:
        raise UserError(f"{path}: its triplets have {', '.join(sorted(datasets))}, no {', '.join(missing)}; {LAYOUT}")
    values = [[_text(value) for value in regressors["indexes"][label][:]] for label in labels]
    if values[0] != values[1] or values[2] != values[3]:
        raise UserError(f"{path}: block {name} has other labels for A than for B or X; {LAYOUT}")
    phones, speakers = (np.full(len(table["file"]), -1, np.int64) for _ in range(2))
    places = [datasets.index(label) for label in labels]
    for row in range(begin, end, ROWS):
        last = min(row + ROWS, end)
        a, b, x = triplets[row:last].astype(np.int64).T
        found = regressors["indexed_data"][row - begin : last - begin].astype(np.int64)
        phone, other_phone, speaker, other_speaker = (found[:, place] for place in places)
        for items, phone_of, speaker_of in ((a, phone, speaker), (b, other_phone, speaker), (x, phone, other_speaker)):
            _put(phones, items, phone_of, name, path)
            _put(speakers, items, speaker_of, name, path)
    possible = _count_triplets([pair for pair in zip(phones.tolist(), speakers.tolist(), strict=True) if pair[0] >= 0])
    if possible != end - begin:
        raise UserError(
            f"{path}: block {name} lists {end - begin} triplets, its items make {possible}; expected all of them, "
            "as a sampled or filtered task cannot be scored here: give its .item file"
        )
    context = _context(name)
    return [
        Item(file, float(onset), float(offset), values[0][phone], context, values[2][speaker])
        for file, onset, offset, phone, speaker in zip(
            table["file"], table["onset"], table["offset"], phones, speakers, strict=False
        )
        if phone >= 0
    ]


def _put(labels, items, values, name, path):
    """labels[items] = values, which must not be others than those that are there."""
    before = labels[items]
    labels[items] = values
    if np.any((before >= 0) & (before != values)) or np.any(labels[items] != values):
        raise UserError(f"{path}: an item of block {name} has two labels; {LAYOUT}")


def _count_triplets(labels):
    """Triplets of items [(phone, speaker), ...]: A and X of one phone, A and B of one speaker, B and X of neither."""
    groups, phones, speakers = (Counter(values) for values in (labels, *zip(*labels, strict=True)))
    return sum(count * (speakers[speaker] - count) * (phones[phone] - count) for (phone, speaker), count in groups.items())


def _columns(table):
    """{column: list of its values} of a table that pandas appended to: fields values_block_<n>, whose attribute
    values_block_<n>_kind is a pickled list of column names, here taken apart without running it."""
    rows, columns = table[:], {}
    for block in rows.dtype.names:
        if block.startswith("values_block_"):
            kind = table.attrs[f"{block}_kind"]
            names = [
                value for code, value, _ in pickletools.genops(bytes(kind)) if "STRING" in code.name or "UNICODE" in code.name
            ]
            columns.update(zip(names, rows[block].reshape(len(rows), -1).T.tolist(), strict=True))
    return {"file": [_text(value) for value in columns["file"]], "onset": columns["onset"], "offset": columns["offset"]}


def _context(name):
    """(phone before, phone after) of a block's name where it is a tuple of two, else the name and "-"."""
    try:
        labels = ast.literal_eval(name)
    except (ValueError, SyntaxError):
        labels = name
    if isinstance(labels, tuple) and len(labels) == 2:
        return tuple("_".join(str(label).split()) for label in labels)
    return "_".join(name.split()), "-"


def _text(value):
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
