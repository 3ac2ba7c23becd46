#!/usr/bin/env python3
"""Process time of the statistical SAD on one thread, and of WebRTC's detector beside it, as fractions of real time.

The audio is made up (noise with bursts of a buzzing voice, 8 kHz) and in memory; time goes by the samples alone. Peak memory
is that of this process, which holds the audio too.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

import os

from pyspeech.arguments import length, tool_parser, whole_number

RATE = 8000


def make_stream(minutes):
    """Noise that changes its level, and a pulse train in bursts: float32 (N,)."""
    import numpy as np

    rng = np.random.default_rng(0)
    time = np.arange(round(minutes * 60 * RATE)) / RATE
    noise = 0.01 * (1 + (time % 60 > 40)) * rng.standard_normal(len(time))
    pulses = (np.diff(np.floor(120 * time + 3 * np.sin(2 * np.pi * time)), prepend=0) != 0) * (time % 7 < 2.3)
    return (noise + 0.3 * pulses).astype(np.float32)


def process_time(run, repetitions):
    """Seconds of process time, the smallest of some runs; the first one, which fills caches, does not count."""
    import time

    run()
    times = []
    for _ in range(repetitions):
        begun = time.process_time()
        run()
        times.append(time.process_time() - begun)
    return min(times)


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--minutes", type=length, default=30.0, help="of audio (default: 30)")
    parser.add_argument("--repetitions", type=whole_number, default=3, help="of which the fastest counts (default: 3)")
    arguments = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # before numpy loads

    import resource

    import numpy as np
    import webrtcvad

    from pyspeech.sad.statistical import detect

    samples = make_stream(arguments.minutes)
    frames = [frame.tobytes() for frame in (samples * 32767).astype(np.int16)[: len(samples) // 80 * 80].reshape(-1, 80)]

    def webrtc():
        detector = webrtcvad.Vad(3)
        return [detector.is_speech(frame, RATE) for frame in frames]

    seconds = len(samples) / RATE
    print(f"{arguments.minutes:g} minutes at {RATE} Hz, one thread, process time over audio time")
    print(f"statistical SAD  {process_time(lambda: detect(samples, RATE), arguments.repetitions) / seconds:.6f}")
    print(f"peak memory      {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print(f"WebRTC           {process_time(webrtc, arguments.repetitions) / seconds:.6f}")


if __name__ == "__main__":
    main()
