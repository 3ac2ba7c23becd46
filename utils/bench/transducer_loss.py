#!/usr/bin/env python3
"""Compare process time and memory of the pruned transducer loss with k2's own helpers and torchaudio's full lattice.

A pass goes from random projected outputs of encoder and predictor to the gradients for them and for the weights: joint network
(tanh and a linear layer), simple heads, both losses, one thread, float32. Each implementation runs in its own process. Memory
is the rise of its peak above what it held before the first pass; time is the best of the later passes.
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import argparse
import json
import os
import subprocess
import sys

from pyspeech.commands.arguments import tool_parser
from steps.benchmark.machine import held_gigabytes, peak_gigabytes
from steps.benchmark.timing import best_process_times, thread_variables

IMPLEMENTATIONS = {
    "k2": "pruned, k2 backend",
    "torch": "pruned, torch backend",
    "k2_helpers": "pruned, k2's own helpers",
    "full": "full lattice, torch backend",
    "torchaudio": "full lattice, torchaudio",
}
NEEDS_K2, FULL = ("k2", "k2_helpers"), ("full", "torchaudio")


def main():
    parser = tool_parser(__doc__)
    for name, default, text in (
        ("batch", 8, "utterances in the batch"),
        ("frames", 400, "encoder frames per utterance"),
        ("symbols", 80, "symbols per utterance"),
        ("vocabulary", 134, "number of output symbols"),
        ("joint", 1024, "size of the joint network"),
        ("prune-range", 5, "symbol positions per frame of the pruned loss"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: %(default)s)")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=6,
        help="repetitions of the pruned losses; the full ones have 2 (default: %(default)s)",
    )
    parser.add_argument("--only", choices=IMPLEMENTATIONS, help="run only this implementation in this process, and print JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options)))
        return
    print(
        f"B {options.batch}, T {options.frames}, U {options.symbols}, V {options.vocabulary}, joint {options.joint}, "
        f"range {options.prune_range}; forward and backward pass, one thread\n"
        f"{'':30s}{'loss':>10s}{'process time':>16s}{'peak memory':>14s}",
        flush=True,
    )
    results = {}
    for name, title in IMPLEMENTATIONS.items():
        results[name] = result = run_alone(name)
        if result is None:
            print(f"{title:30s}  k2 is not installed", flush=True)
        else:
            print(
                f"{title:30s}{result['loss']:10.4f}{1000 * result['seconds']:13.0f} ms{result['megabytes']:11.0f} MB",
                flush=True,
            )
    for ours in ("k2", "torch"):
        for other in ("k2_helpers", "torchaudio"):
            if results[ours] and results[other]:
                factor = results[other]["seconds"] / results[ours]["seconds"]
                print(f"{IMPLEMENTATIONS[ours]}: {factor:.1f} times as fast as {IMPLEMENTATIONS[other]}", flush=True)


def run_alone(name):
    """The result of `measure` in a new process, on one thread; None where it needs k2 and that is not installed."""
    import importlib.util

    if name in NEEDS_K2 and importlib.util.find_spec("k2") is None:
        return None
    command = [sys.executable, *sys.argv, "--only", name]
    process = subprocess.run(command, env={**os.environ, **thread_variables(1)}, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(process.stdout.splitlines()[-1])


def measure(options):
    """{loss, seconds, megabytes} of a forward and backward pass of options.only."""
    import torch

    torch.set_num_threads(1)
    run = make_pass(options.only, options)
    warm_up = argparse.Namespace(**{**vars(options), "batch": 1, "frames": 20, "symbols": 5})
    make_pass(options.only, warm_up)()  # loads what loads late
    before = held_gigabytes()
    loss = run()
    peak = peak_gigabytes()
    [seconds], _ = best_process_times([run], 2 if options.only in FULL else options.repetitions, warm_up=False)
    return {"loss": loss, "seconds": seconds, "megabytes": 1024 * (peak - before)}


def make_pass(name, options):
    """A function of nothing: one forward and backward pass; returns the loss per frame."""
    import torch

    torch.manual_seed(0)
    size, vocabulary = options.joint, options.vocabulary
    encoded = torch.randn(options.batch, options.frames, size, requires_grad=True)
    predicted = torch.randn(options.batch, options.symbols + 1, size, requires_grad=True)
    tokens = torch.randint(1, vocabulary, (options.batch, options.symbols))
    lengths = torch.full((options.batch,), options.frames)
    token_lengths = torch.full((options.batch,), options.symbols)
    layers = output, simple_am, simple_lm = [torch.nn.Linear(size, vocabulary) for _ in range(3)]
    leaves = [encoded, predicted, *(parameter for layer in layers for parameter in layer.parameters())]

    def joint(encoded, predicted):
        return output(torch.tanh(encoded + predicted))

    def pruned(backend):
        from pyspeech.asr.loss import pruned_loss, smoothed_loss
        from pyspeech.asr.pruning import gather_encoded, gather_predicted

        batch = tokens, lengths, token_lengths
        smoothed, ranges = smoothed_loss(simple_am(encoded), simple_lm(predicted), *batch, options.prune_range, backend=backend)
        logits = joint(gather_encoded(encoded, ranges), gather_predicted(predicted, ranges))
        return 0.5 * smoothed + pruned_loss(logits, ranges, *batch, backend)

    def k2_helpers():
        import k2  # pyright: ignore[reportMissingImports]

        zeros = torch.zeros_like(lengths)
        boundary = torch.stack([zeros, zeros, token_lengths, lengths], dim=1)
        smoothed, grads = k2.rnnt_loss_smoothed(
            simple_lm(predicted),
            simple_am(encoded),
            tokens,
            0,
            lm_only_scale=0.25,
            am_only_scale=0.0,
            boundary=boundary,
            reduction="none",
            return_grad=True,
        )
        ranges = k2.get_rnnt_prune_ranges(*grads, boundary, options.prune_range)
        logits = joint(*k2.do_rnnt_pruning(encoded, predicted, ranges))
        return 0.5 * smoothed + k2.rnnt_loss_pruned(logits, tokens, ranges, 0, boundary, reduction="none")

    def full():
        from pyspeech.asr.loss import full_loss

        return full_loss(joint(encoded[:, :, None], predicted[:, None]), tokens, lengths, token_lengths, "torch")

    def torchaudio():
        from torchaudio.functional import rnnt_loss

        logits = joint(encoded[:, :, None], predicted[:, None])
        return rnnt_loss(logits, tokens.int(), lengths.int(), token_lengths.int(), blank=0, reduction="none")

    losses = {
        "k2": lambda: pruned("k2"),
        "torch": lambda: pruned("torch"),
        "k2_helpers": k2_helpers,
        "full": full,
        "torchaudio": torchaudio,
    }[name]

    def run():
        for leaf in leaves:
            leaf.grad = None
        loss = losses().sum() / lengths.sum()
        loss.backward()
        return loss.item()

    return run


if __name__ == "__main__":
    main()
