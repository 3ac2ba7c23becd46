#!/usr/bin/env python3
"""Compare the process time of our ABX scoring and zerospeech-libriabx on the same synthetic items.

Both use one thread and all triplets, read the same files, and average alike (joint), with cosine distance, within and across
speakers. The peer drops the last frame of every item, so its item file has offsets one frame later. Both then see the same
frames, and the errors must agree within its single precision.
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import contextlib
import importlib.util
import os
import tempfile
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from steps.benchmark.timing import best_process_times, use_one_thread

RATE = 25
SPEAKERS = 6  # all of a context: with more than 5 as X the peer would draw some of them, or its bar stops it
PHONES, PER_CELL = 4, 2  # phones in a context, and about how many tokens of each by a speaker
INSTALL = "pip install --no-deps --target peer zerospeech-libriabx progressbar2 python-utils virtual-dataset"


def write_corpus(folder, count, mean_frames, dim):
    """Features, a file a speaker, and the item files of both scorers: (ours, peer's)."""
    import numpy as np

    rng = np.random.default_rng(0)
    contexts = max(1, count // (SPEAKERS * PHONES * PER_CELL))
    phones = rng.standard_normal((PHONES, dim))
    lines = {"ours": ["#file onset offset #phone prev-phone next-phone speaker"]}
    lines["peer"] = list(lines["ours"])
    for speaker in range(SPEAKERS):
        tokens, begin = [], 0
        voice = 0.5 * rng.standard_normal(dim)
        for _ in range(count // SPEAKERS + (speaker < count % SPEAKERS)):
            length, phone, context = rng.integers(1, 2 * mean_frames), rng.integers(PHONES), rng.integers(contexts)
            tokens.append(phones[phone] + voice + 4 * rng.standard_normal((length, dim)))
            for name, extra in (("ours", 0), ("peer", 1)):
                # A quarter of a frame inside: no frame is on an edge.
                onset, offset = ((begin + 0.25) / RATE, (begin + length - 0.25 + extra) / RATE)
                lines[name].append(f"s{speaker} {onset:.6f} {offset:.6f} p{phone} c{context} c s{speaker}")
            begin += length
        np.save(folder / f"s{speaker}.npy", np.concatenate([*tokens, np.zeros((1, dim))]).astype(np.float32))
    for name, content in lines.items():
        (folder / f"{name}.item").write_text("\n".join(content) + "\n")
    return folder / "ours.item", folder / "peer.item"


def score_ours(items, folder):
    from pyspeech.units.abx import error_rate, load_frames, score_cells
    from pyspeech.units.items import read_items

    tokens = read_items(items)
    frames = load_frames(tokens, folder, RATE)
    return {mode: error_rate(score_cells(tokens, frames, "cosine", mode), "joint") for mode in ("within", "across")}


def score_peer(items, folder):
    from libriabx import AbxArguments, abx_eval  # pyright: ignore[reportMissingImports]

    arguments = AbxArguments(
        str(folder),
        str(items),
        feature_size=1 / RATE,
        cuda=False,
        file_extension=".npy",
        mode="all",
        max_size_group=10**9,
        max_x_across=SPEAKERS - 1,
    )
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        return {mode: 100 * error for mode, error in abx_eval(arguments).items()}


def measured(score, items, folder):
    [seconds], [errors] = best_process_times([lambda: score(items, folder)], 1, warm_up=False)
    return errors, seconds


def report(name, seconds, errors):
    return f"{name:20s} {seconds:8.2f} s   within {errors['within']:.4f} %   across {errors['across']:.4f} %"


def main():
    parser = tool_parser(__doc__)
    parser.add_argument("--items", type=int, default=10000, help="number of synthetic tokens (default: 10000)")
    parser.add_argument("--frames", type=int, default=6, help="mean length of a token in frames (default: 6, 0.24 s at 25 Hz)")
    parser.add_argument("--dim", type=int, default=64, help="size of a feature vector (default: 64)")
    arguments = parser.parse_args()
    use_one_thread()
    import pyspeech.units.abx  # noqa: F401  (imports are not measured)

    peer_is_here = importlib.util.find_spec("libriabx") is not None
    if peer_is_here:
        import libriabx.libri_light.eval_ABX  # noqa: F401  # pyright: ignore[reportMissingImports]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, peers = write_corpus(folder, arguments.items, arguments.frames, arguments.dim)
        print(f"{arguments.items} items of {arguments.frames} frames on average, {arguments.dim} numbers each; process time")
        errors, seconds = measured(score_ours, ours, folder)
        print(report("ours", seconds, errors))
        if not peer_is_here:
            print(f"zerospeech-libriabx  is not here; `{INSTALL}` and PYTHONPATH=peer bring it (Python 3.10, 3.11)")
            return
        errors, peer_seconds = measured(score_peer, peers, folder)
        print(report("zerospeech-libriabx", peer_seconds, errors))
        print(f"ours / peer          {seconds / peer_seconds:8.3f}")


if __name__ == "__main__":
    main()
