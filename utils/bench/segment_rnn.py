#!/usr/bin/env python3
"""Process time of the SAD networks on one thread: the segment RNN's plain and fast form, and each network end to end.

The networks have the paper's sizes and random weights, which does not change their speed. Each figure is the fraction of
real time of the best of several repetitions; plain and fast take turns in the same run.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.arguments import length, tool_parser, whole_number


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--seconds", type=length, default=60.0, help="of (random) audio; default %(default)s")
    parser.add_argument("--repetitions", type=whole_number, default=5, help="default %(default)s")
    options = parser.parse_args(arguments)

    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, one thread; fraction of real time (process time)")
    bench_segment_rnn(options.seconds, options.repetitions)
    bench_networks(options.seconds, options.repetitions)


def bench_segment_rnn(seconds, repetitions):
    import torch

    from pyspeech.sad.segment_rnn import last_outputs, last_outputs_plain

    gru = torch.nn.GRU(64, 128, batch_first=True, bidirectional=True)
    features = torch.randn(1, 2000, 64)  # what decoding gives it at once: a chunk of 20 s
    print("\nGRU over segments, 64 -> 2 x 128, shift 1\nlength   plain     fast      plain / fast   largest difference")
    for frames in (5, 10, 25):
        forms = [lambda form=form: form(features, gru, frames, 1) for form in (last_outputs_plain, last_outputs)]
        (plain, fast), outputs = best_times(forms, max(1, round(seconds / 20)), repetitions)
        difference = max((one - other).abs().max().item() for one, other in zip(*outputs))
        print(f"{frames:6d}   {plain / 20:.5f}   {fast / 20:.5f}   {plain / fast:12.2f}   {difference:.1e}")


def bench_networks(seconds, repetitions):
    import numpy as np

    from pyspeech.sad.config import TEMPORAL_LAYERS, NetworkConfig
    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.networks import SadNetwork

    samples = np.random.default_rng(0).standard_normal(round(seconds * 8000)).astype(np.float32)
    models = [SadNetwork(NetworkConfig(temporal=temporal)) for temporal in TEMPORAL_LAYERS]
    times, _ = best_times([lambda model=model: score_samples(model, samples) for model in models], 1, repetitions)
    print("\nsamples to scores, the paper's sizes")
    for temporal, elapsed in zip(TEMPORAL_LAYERS, times):
        print(f"{temporal:8s} {elapsed / seconds:.5f}")


def best_times(functions, calls, repetitions):
    """Seconds of process time a call, for each function, the best of the repetitions; and what each returned last."""
    import time

    import torch

    best = [float("inf")] * len(functions)
    outputs = [None] * len(functions)
    with torch.inference_mode():
        for function in functions:
            function()
        for _ in range(repetitions):
            for index, function in enumerate(functions):
                start = time.process_time()
                for _ in range(calls):
                    outputs[index] = function()
                best[index] = min(best[index], (time.process_time() - start) / calls)
    return best, outputs


if __name__ == "__main__":
    main()
