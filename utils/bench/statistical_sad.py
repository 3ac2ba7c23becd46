#!/usr/bin/env python3
"""Process time of the statistical SAD on one thread, with voicing and the paper's, and of WebRTC's detector beside them, as
fractions of real time.

The audio is made up (noise with bursts of a buzzing voice, 8 kHz) and in memory; time goes by the samples alone. Peak memory
is that of this process, which holds the audio too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.commands.arguments import length, tool_parser, whole_number
from steps.benchmark.machine import peak_gigabytes
from steps.benchmark.timing import best_process_times, use_one_thread

RATE = 8000


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--minutes", type=length, default=30.0, help="of audio (default: 30)")
    parser.add_argument("--repetitions", type=whole_number, default=3, help="of which the fastest counts (default: 3)")
    arguments = parser.parse_args(arguments)
    use_one_thread()

    import numpy as np
    import webrtcvad

    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.statistical import detect
    from steps.benchmark.parts import made_up_speech

    samples = made_up_speech(arguments.minutes * 60, RATE)
    frames = [frame.tobytes() for frame in (samples * 32767).astype(np.int16)[: len(samples) // 80 * 80].reshape(-1, 80)]

    def webrtc():
        detector = webrtcvad.Vad(3)
        return [detector.is_speech(frame, RATE) for frame in frames]

    seconds = len(samples) / RATE
    print(f"{arguments.minutes:g} minutes at {RATE} Hz, one thread, process time over audio time")
    ours = [lambda: detect(samples, RATE), lambda: detect(samples, RATE, StatisticalConfig(voicing=False))]
    (voicing, plain), _ = best_process_times(ours, arguments.repetitions)
    print(f"statistical SAD  {voicing / seconds:.6f}")
    print(f"without voicing  {plain / seconds:.6f}")
    print(f"peak memory      {1024 * peak_gigabytes():.0f} MB")
    [peer], _ = best_process_times([webrtc], arguments.repetitions)
    print(f"WebRTC           {peer / seconds:.6f}")


if __name__ == "__main__":
    main()
