"""Units of the test set and their scores in egs/zerospeech: ABX within and across speakers, bitrate, codes in use,
and their agreement with phones where an alignment is there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.errors import UserError
from pyspeech.files import atomic_path, write_json
from steps.chance import warn
from steps.systems import seeds_of
from steps.units.tables import chance_notes
from steps.units.train import SYSTEMS

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.engine.run import Experiment


def score_system(exp: Experiment, conf: Any, system: str) -> None:
    """units/<system>/<seed>/<utterance>.npy, the codes' vectors, and scores/<system>.json: a list, an entry a seed, each of
    which is kept where the stage is killed."""

    def entry(seed):
        from pyspeech.compat import default_device
        from pyspeech.data.cuts import read_samples
        from pyspeech.units.checkpoint import load_model
        from pyspeech.units.config import VQVAE
        from pyspeech.units.encoding import encode

        bundle = load_model(exp.dir / "models" / system / str(seed), VQVAE, default_device())
        rate, codes = 1 / (bundle.features.frame_seconds * bundle.model.config.stride), bundle.model.config.codes
        vectors = {}
        for cut in load_cuts(exp.dir / "corpus", "test"):
            _, vectors[cut.id] = encode(bundle, read_samples(cut, bundle.features.sampling_rate), cut.id)
        return {"seed": seed, "codes": codes, **score_units(exp, vectors, units_folder(exp, system, seed), rate, codes)}

    entries = in_parts(
        exp.parts,
        "seeds",
        entry,
        {str(seed): seed for seed in seeds_of(conf, system)},
        jobs=1,
        files=lambda seed: [units_folder(exp, system, seed)],
    ).values()
    for found in entries:
        exp.log.info("%s, seed %d: %s", system, found["seed"], one_line(found))
        warn(exp.log, chance_notes(system, found))
    write_json(exp.dir / "scores" / f"{system}.json", list(entries))


def units_folder(exp: Experiment, system: str, seed: int) -> Path:
    return exp.dir / "units" / system / str(seed)


def anchors_of(conf: Any) -> str:
    """A pattern for the names of the systems that are not trained; of the sizes of k-means some may be left out."""
    return "{mfcc,kmeans*}" if conf.kmeans else "mfcc"


def score_anchors(exp: Experiment, conf: Any) -> None:
    """ABX of the input features, and of k-means at the same rate and numbers of codes.

    scores/mfcc.json, the features themselves, and scores/kmeans<K>.json, an entry a seed: k-means on the features,
    averaged to the units' rate. No K that is larger than the number of frames.
    """
    import torch

    from pyspeech.data.cuts import read_samples
    from pyspeech.features.mfcc import compute_features
    from pyspeech.units import kmeans
    from pyspeech.units.dataset import corpus_stats

    corpus, config, stride = exp.dir / "corpus", conf.features, conf.vqvae.stride
    unit, test = load_cuts(corpus, "unit"), load_cuts(corpus, "test")
    stats = corpus_stats(unit, config) if config.needs_stats else None

    def read(cut):
        return compute_features(read_samples(cut, config.sampling_rate), config, stats)

    features = {cut.id: read(cut) for cut in test}
    plain = {name: frames.numpy() for name, frames in features.items()}
    averaged = {name: kmeans.average_frames(rows, stride) for name, rows in features.items()}
    frames = torch.cat([kmeans.average_frames(read(cut), stride) for cut in unit]) if conf.kmeans else []
    compared = {SYSTEMS[system].get("codes", conf.vqvae.codes) for system in conf.repeated}

    def folder(anchor):
        return units_folder(exp, f"kmeans{anchor[0]}", anchor[1]) if anchor else exp.dir / "units" / "mfcc"

    def entry(anchor):
        if not anchor:
            return score_units(exp, plain, folder(anchor), 1 / config.frame_seconds)
        size, seed = anchor
        centres = kmeans.fit(frames, size, seed)  # pyright: ignore[reportArgumentType]
        vectors = {name: centres[kmeans.assign(rows, centres)].numpy() for name, rows in averaged.items()}
        return {
            "seed": seed,
            "codes": size,
            **score_units(exp, vectors, folder(anchor), 1 / (config.frame_seconds * stride), size),
        }

    sizes = usable_sizes(conf.kmeans, len(frames), exp.log) if conf.kmeans else []
    anchors = {
        f"kmeans{size} {seed}": (size, seed) for size in sizes for seed in (conf.seeds if size in compared else conf.seeds[:1])
    }
    found = in_parts(exp.parts, "anchors", entry, {"mfcc": None, **anchors}, jobs=1, files=lambda anchor: [folder(anchor)])
    by_name = {}
    for part, scored in found.items():
        by_name.setdefault(part.partition(" ")[0], []).append(scored)
        exp.log.info("%s: %s", part, one_line(scored))
    for name, entries in by_name.items():
        write_json(exp.dir / "scores" / f"{name}.json", entries)


def usable_sizes(sizes: Sequence[int], frames: int, log: logging.Logger) -> list[int]:
    """Select the numbers of codes that k-means can have on a number of frames; UserError where none can."""
    usable = [size for size in sizes if size <= frames]
    if not usable:
        raise UserError(
            f"kmeans=[{','.join(map(str, sizes))}]: the unit set has {frames} frames at the units' rate; "
            "expected a number of codes up to that, or kmeans=[]"
        )
    if len(usable) < len(sizes):
        log.warning(
            "kmeans: %s left out, the unit set has %d frames at the units' rate",
            ", ".join(str(size) for size in sizes if size > frames),
            frames,
        )
    return usable


def score_units(
    exp: Experiment, vectors: Mapping[str, np.ndarray], folder: Path, rate: float, codes: int | None = None
) -> dict[str, Any]:
    """Write the vectors {utterance: (N, D)}, `rate` a second, to `folder` and score them.

    {"abx": {"within", "across"} in %, None where the items have no triplets of it, and where the corpus has no items;
    "abx_by", of each mode that has triplets the errors of pairs of phones and of speakers, where there are items;
    "bitrate" in bit/s, with the durations of bitrate_filelist where it has them, and "used", the number of distinct
    vectors in the listed files, both None for features that are not discrete (codes=None); "phones", the figures of
    `pyspeech.units.phones.figures`, of discrete units where the corpus has an alignment}
    """
    import numpy as np

    from pyspeech.units import abx, phones
    from pyspeech.units.bitrate import measure, read_filelist
    from pyspeech.units.features_files import open_features
    from pyspeech.units.items import read_items

    for name, rows in vectors.items():
        with atomic_path(folder / f"{name}.npy") as temporary, open(temporary, "wb") as stream:
            np.save(stream, rows)
    corpus = exp.dir / "corpus"
    entry: dict[str, Any] = {"abx": None, "bitrate": None, "used": None}
    if (corpus / "abx.item").exists():
        items = read_items(corpus / "abx.item")
        frames = abx.load_frames(items, folder, rate)
        cells = dict(abx.cells_of_modes(items, frames))
        entry["abx"] = {mode: abx.error_rate(found) if found else None for mode, found in cells.items()}
        entry["abx_by"] = {mode: abx.errors_by_pair(items, found) for mode, found in cells.items() if found}
    if codes:
        seconds = {cut.id: cut.duration for cut in load_cuts(corpus, "test")}
        measured = measure(
            (vectors[name], seconds[name] if listed is None else listed)
            for name, listed in read_filelist(corpus / "bitrate_filelist")
        )
        entry.update(bitrate=measured["bitrate"], used=measured["symbols"])
        if (corpus / "alignment.ctm").exists():
            units, alignment = open_features(dict(vectors)), phones.read_alignment(corpus / "alignment.ctm")
            entry["phones"] = phones.figures(phones.count_together(units, units.names, alignment, rate)[-1])
    return entry


def one_line(entry: Mapping[str, Any]) -> str:
    """The figures of an entry as text."""
    parts = [f"ABX {mode} {value:.2f} %" for mode, value in (entry["abx"] or {}).items() if value is not None]
    if entry["bitrate"] is not None:
        parts.append(f"{entry['bitrate']:.1f} bit/s, {entry['used']} of {entry['codes']} codes in use")
    if "phones" in entry:
        parts.append(f"phone purity {100 * entry['phones']['phone_purity']:.1f} %, PNMI {entry['phones']['pnmi']:.3f}")
    return ", ".join(parts)
