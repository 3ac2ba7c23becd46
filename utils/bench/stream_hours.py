#!/usr/bin/env python3
"""Speech detection while the audio comes in, over hours: memory, whether it finds what it finds offline, how late it says so.

AUDIO is a recording, or a folder of recordings, which are fed one after the other, over and over, in blocks of 0.3 s. Memory
is what the process has resident. A segment is late by the audio that came in after its end until it is given out. What a
network finds offline, in the same samples as a file, is what it has to find; the statistical system learns from the last
minute alone, and finds something else (utils/bench/sad_streaming.py says how much worse).

examples:
  utils/bench/stream_hours.py egs/fearless/exp/mini/corpus/audio/eval
  utils/bench/stream_hours.py --point words --hours 3 radio.wav
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

import itertools

from pyspeech.commands.arguments import length, tool_parser
from pyspeech.commands.terminal import exit_after

BLOCK_SECONDS = 0.3
MINUTES = (5, 30, 60, 120, 180)  # of audio, at which the memory is told


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("audio", metavar="AUDIO")
    parser.add_argument("--system", help="as of utils/detect_speech.py (default: shipped)")
    parser.add_argument("--model", metavar="DIR", help="as of utils/detect_speech.py")
    parser.add_argument("--point", help="operating point (default: the system's first)")
    parser.add_argument("--hours", type=length, default=1.0, help="default: 1")
    options = parser.parse_args(arguments)

    import tempfile

    import numpy as np

    from steps.benchmark.timing import use_one_thread

    use_one_thread()
    from pyspeech.sad.streaming import load_stream

    detector = load_stream(options.system, options.model, point=options.point)
    rate = detector.sampling_rate
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audio.wav")
        write_hours(options.audio, path, rate, options.hours)
        found, late = streamed(detector, path, rate)
        expected = offline(options, path)
    print(
        f"{len(found)} segments, each given out at most {late:.2f} s after its end (stated: {detector.delay:.2f} s, beside "
        f"the {BLOCK_SECONDS:g} s of a block)"
    )
    same = len(found) == len(expected) and np.allclose(found, expected, atol=1e-6)
    print("offline: the same" if same else f"offline: others, {len(expected)} segments")


def write_hours(audio, path, rate, hours):
    """A WAV file at `rate` Hz of the recordings of `audio`, again and again."""
    import soundfile

    from pyspeech.audio.io import find_audio, stream_audio

    with soundfile.SoundFile(path, "w", rate, 1, subtype="PCM_16") as file:
        left = round(hours * 3600 * rate)
        for recording in itertools.cycle(find_audio([audio])):
            for block in stream_audio(recording, rate):
                file.write(block[:left])
                left -= min(left, len(block))
            if left == 0:
                return


def streamed(detector, path, rate):
    """The segments (n, 2) and how late the latest was; prints the memory now and then, and the time it took."""
    import time

    import numpy as np

    from pyspeech.audio.io import stream_audio

    found, late, computing, marks = [], 0.0, 0.0, list(MINUTES)
    for block in stream_audio(path, rate, block_seconds=BLOCK_SECONDS):
        begun = time.process_time()
        segments = detector.add(block)
        computing += time.process_time() - begun
        if len(segments):
            found.append(segments)
            late = max(late, detector.seconds - segments[0, 1])
        if marks and detector.seconds >= 60 * marks[0]:
            print(f"{marks.pop(0):4d} min: {resident_megabytes():.1f} MB", flush=True)
    found.append(detector.finish())
    print(f"real-time factor {computing / detector.seconds:.5f}, process time")
    return np.concatenate(found), late


def resident_megabytes():
    import os

    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def offline(options, path):
    from pyspeech.sad.detector import load_detector

    return load_detector(options.system, options.model, point=options.point)(path).segments


if __name__ == "__main__":
    exit_after(main)
