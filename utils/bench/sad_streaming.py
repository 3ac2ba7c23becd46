#!/usr/bin/env python3
"""What it costs the statistical SAD to decide while the audio comes in: DCF of its causal variant beside the offline one's.

AUDIO is a folder of recordings, LABELS one with a reference label file <recording>.txt for each, such as corpus/audio/dev and
corpus/reference/dev of an experiment of egs/fearless. The causal variant is pyspeech/sad/streaming.py's: the offline system on
the last seconds of audio. The DCF has no collar; the time is process time on one thread, over that of the audio.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.commands.arguments import length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after

BLOCK = 2400  # samples that come in at once


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("audio", metavar="AUDIO")
    parser.add_argument("labels", metavar="LABELS")
    parser.add_argument(
        "--windows",
        metavar="S",
        type=length,
        nargs="+",
        default=[30.0, 60.0, 120.0],
        help="that the classes are learned from (default: 30 60 120)",
    )
    parser.add_argument("--look-ahead", metavar="S", type=length, default=1.0, help="default: 1")
    parser.add_argument("--recordings", metavar="N", type=whole_number, help="the first N alone (default: all)")
    options = parser.parse_args(arguments)

    from pyspeech.audio.io import find_audio, read_audio
    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.formats import read_reference

    config = StatisticalConfig()
    paths = find_audio([options.audio])[: options.recordings]
    recordings = [
        (read_audio(path, config.sampling_rate)[0], read_reference(Path(options.labels, path.stem + ".txt"))) for path in paths
    ]
    seconds = sum(len(samples) for samples, _ in recordings) / config.sampling_rate
    print(f"{len(paths)} recordings, {seconds / 60:.1f} minutes")
    print("variant               latency s   DCF %   miss %   false %   real time")
    variants = [("offline", lambda: Offline(config))]
    for window in options.windows:
        variants.append((f"last {window:g} s", lambda window=window: causal(config, window, options.look_ahead)))
    for name, make in variants:
        dcf, miss, false, used = measure(recordings, make, config)
        print(
            f"{name:20s} {make().latency:10.1f} {100 * dcf:7.2f} {100 * miss:8.2f} {100 * false:9.2f} {used / seconds:11.5f}",
            flush=True,
        )


class Offline:
    """The offline system as a pyspeech.sad.streaming.Decider that decides at the end."""

    latency = float("inf")

    def __init__(self, config):
        self.config, self.blocks = config, []

    def add(self, samples):
        self.blocks.append(samples)
        return []

    def finish(self):
        from pyspeech.sad.statistical import detect_stream

        return detect_stream(self.blocks, self.config).decisions


def causal(config, window, look_ahead):
    from pyspeech.sad.streaming import CausalStatistical

    return CausalStatistical(config, 0.0, window, look_ahead)


def measure(recordings, make, config):
    """Means over the recordings of DCF, missed and false speech, fractions; and the seconds of process time."""
    import time

    import numpy as np

    from pyspeech.sad.scoring import score_pair
    from pyspeech.sad.segments import frames_to_segments

    rows, used = [], 0.0
    for samples, reference in recordings:
        decider, begun = make(), time.process_time()
        decisions = [decider.add(samples[start : start + BLOCK]) for start in range(0, len(samples), BLOCK)]
        decisions = np.concatenate([*decisions, decider.finish()])
        used += time.process_time() - begun
        speech = frames_to_segments(decisions, config.frame_shift, len(samples) / config.sampling_rate)
        scores = score_pair(reference, speech, 0.0)
        rows.append([scores[name] for name in ("dcf", "p_miss", "p_fa")])
    return *np.mean(rows, axis=0), used


if __name__ == "__main__":
    exit_after(main)
