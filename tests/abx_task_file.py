"""Writes ABX tasks as ABXpy compiles them, triplet by triplet: the layout of its files, as they were seen."""

import itertools

import h5py
import numpy as np

TEXT = h5py.special_dtype(vlen=str)


def write_task(path, items, old=False, columns=("phone", "speaker"), keep=lambda triplet: True):
    """items: [items.Item]; a block for each of their contexts that has triplets. old: the layout of older files.

    keep: whether a triplet (A, B, X) is to be listed. Items are in the order in which they come, those without triplets too.
    """
    on, across = columns
    edges, rows, names = [], [], []
    with h5py.File(path, "w") as task:
        for context in sorted({item.context for item in items}):
            own = [item for item in items if item.context == context]
            triplets = [
                (a, b, x)
                for a, b, x in itertools.product(range(len(own)), repeat=3)
                if own[a].phone == own[x].phone != own[b].phone
                and own[a].speaker == own[b].speaker != own[x].speaker
                and keep((own[a], own[b], own[x]))
            ]
            if not triplets:
                continue
            name = str(tuple(context))
            write_table(task.create_group(f"feat_dbs/{name}"), own, old)
            phones, speakers = sorted({item.phone for item in items}), sorted({item.speaker for item in items})
            labels = {
                f"{across}_1": (speakers, [own[a].speaker for a, _, _ in triplets]),
                f"{on}_1": (phones, [own[a].phone for a, _, _ in triplets]),
                f"{on}_2": (phones, [own[b].phone for _, b, _ in triplets]),
                f"{across}_2": (speakers, [own[x].speaker for _, _, x in triplets]),
            }
            group = task.create_group(f"regressors/{name}")
            for dataset in ("indexed_datasets", "indexed_datasets_indexes", "non_fused_datasets"):
                group.create_dataset(dataset, data=list(labels), dtype=TEXT)
            for label, (index, _) in labels.items():
                group.create_dataset(f"indexes/{label}", data=index, dtype=TEXT)
            found = [[index.index(value) for value in values] for index, values in labels.values()]
            group.create_dataset("indexed_data", data=np.array(found, np.uint8).T)
            if old:
                task.create_dataset(f"triplets/{name}", data=np.array(triplets, np.uint16))
            names.append(name)
            edges.append((len(rows), len(rows) + len(triplets)))
            rows += triplets
        if not old:
            task.create_dataset("bys", data=names, dtype=TEXT)
            task.create_dataset("triplets/data", data=np.array(rows, np.int64), chunks=True)
            task.create_dataset("triplets/by_index", data=np.array(edges, np.int64))
    return path


def write_table(group, items, old):
    """file, onset and offset as pandas appends them, by Python 2 (old) and 3."""
    blocks = {"values_block_0": ["onset", "offset"], "values_block_1": ["file"]}
    rows = [(place, (item.onset, item.offset), (item.file.encode(),)) for place, item in enumerate(items)]
    width = max(len(item.file.encode()) for item in items)
    table = group.create_dataset(
        "table", data=np.array(rows, [("index", "<i8"), ("values_block_0", "<f8", (2,)), ("values_block_1", f"S{width}", (1,))])
    )
    table.attrs["index_kind"] = np.bytes_(b"integer")
    for block, names in blocks.items():
        quoted = [f"S'{name}'" if old else f"V{name}" for name in names]
        pickled = "(lp1\n" + "a".join(f"{name}\np{number}\n" for number, name in enumerate(quoted, 2)) + "a."
        table.attrs[f"{block}_kind"] = np.bytes_(pickled.encode())
