#!/usr/bin/env python3
"""Process time of the segment RNN's plain and fast form on one thread; utils/bench/sad_speed.py has whole networks.

It has the paper's size and random weights, which does not change its speed. Each figure is the fraction of real time of the
best of several repetitions, in which plain and fast take turns.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.commands.arguments import length, tool_parser, whole_number
from steps.benchmark.timing import best_process_times


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


def bench_segment_rnn(seconds, repetitions):
    import torch

    from pyspeech.sad.segment_rnn import last_outputs, last_outputs_plain

    gru = torch.nn.GRU(64, 128, batch_first=True, bidirectional=True)
    features = torch.randn(1, 2000, 64)  # what decoding gives it at once: a chunk of 20 s
    print("\nGRU over segments, 64 -> 2 x 128, shift 1\nlength   plain     fast      plain / fast   largest difference")
    for frames in (5, 10, 25):
        forms = [lambda form=form: form(features, gru, frames, 1) for form in (last_outputs_plain, last_outputs)]
        with torch.inference_mode():
            (plain, fast), outputs = best_process_times(forms, repetitions, calls=max(1, round(seconds / 20)))
        difference = max((one - other).abs().max().item() for one, other in zip(*outputs, strict=True))
        print(f"{frames:6d}   {plain / 20:.5f}   {fast / 20:.5f}   {plain / fast:12.2f}   {difference:.1e}")


if __name__ == "__main__":
    main()
