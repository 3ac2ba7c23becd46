#!/usr/bin/env python3
"""Compare the process time of our McAdams anonymisation and a loop over frames, on the same speech and one thread.

The loop follows VoicePrivacy's B2 baseline one frame at a time with numpy and scipy, and uses linear prediction from librosa
if installed, as the baseline does. Without --audio the speech is synthetic: a buzz through moving formants, and noise.
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import importlib.util

from pyspeech.commands.arguments import length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from steps.benchmark.timing import best_process_times, use_one_thread

RATE = 16000
COEFFICIENTS = (0.6, 0.7, 0.8, 0.9)
CROP = 64600  # samples: what egs/add2022 trains on with the paper's settings


def make_speech(seconds, rate=RATE, seed=0):
    """Vowels of gliding pitch and formants, with syllables, fricatives and a little noise: float64 (N,)."""
    import numpy as np
    from scipy.signal import iirpeak, lfilter

    rng = np.random.default_rng(seed)
    clock = np.arange(round(seconds * rate)) / rate
    phase = np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * clock)) / rate
    hiss = 0.05 * rng.standard_normal(len(clock))
    source = np.where(clock * 2.3 % 1 < 0.7, np.diff(np.floor(phase), prepend=0.0), hiss)
    speech = np.zeros(len(clock))
    for centre, depth, speed in ((500, 200, 0.9), (1500, 600, 1.3), (2500, 300, 0.6)):
        for begin in range(0, len(clock), rate // 10):  # a formant stands still for 100 ms
            stretch = slice(begin, begin + rate // 10)
            place = centre + depth * np.sin(2 * np.pi * speed * begin / rate)
            speech[stretch] += lfilter(*iirpeak(place, 8, fs=rate), source[stretch])
    speech *= 0.5 + 0.5 * np.sin(2 * np.pi * 3.7 * clock)
    return 0.3 * speech + 1e-4 * rng.standard_normal(len(clock))


def plain_burg(frame, order):
    import numpy as np

    predictor = np.zeros(order + 1)
    predictor[0] = 1.0
    forward, backward = frame[1:], frame[:-1]
    for stage in range(1, order + 1):
        power = forward @ forward + backward @ backward
        reflection = -2 * (forward @ backward) / power if power > 0 else 0.0
        predictor[: stage + 1] = predictor[: stage + 1] + reflection * predictor[stage::-1]
        forward, backward = (forward + reflection * backward)[1:], (backward + reflection * forward)[:-1]
    return predictor


def plain(samples, coefficient, rate=RATE, burg=plain_burg, order=20):
    """The anonymisation of samples (N,) frame by frame, with the frames that ours has; the level is left."""
    import numpy as np
    from scipy.signal import lfilter

    size, shift = rate * 20 // 1000, rate * 10 // 1000
    window = np.sqrt(np.hanning(size) / (np.hanning(size).sum() / shift))
    padded = np.concatenate([np.zeros(shift), samples, np.zeros(size + shift)])
    total = np.zeros(len(padded))
    for begin in range(0, shift + len(samples), shift):
        frame = padded[begin : begin + size] * window
        predictor = burg(frame, order)
        poles = np.roots(predictor)
        angles = np.minimum(np.abs(np.angle(poles)) ** coefficient, np.pi)
        turned = np.abs(poles) * np.exp(1j * np.sign(poles.imag) * angles)
        moved = np.real(np.poly(np.where(poles.imag == 0, poles, turned)))
        excitation = lfilter(predictor, [1.0], frame)
        total[begin : begin + size] += lfilter([1.0], moved, excitation) * window
    return total[shift : shift + len(samples)]


def librosa_burg():
    """librosa's linear prediction as plain() takes it, compiled; None where it is not installed."""
    if importlib.util.find_spec("librosa") is None:
        return None
    import librosa  # pyright: ignore[reportMissingImports]
    import numpy as np

    librosa.lpc(np.random.default_rng(0).standard_normal(320), order=20)
    return lambda frame, order: librosa.lpc(frame, order=order) if frame.any() else plain_burg(frame, order)


def main(arguments=None):
    options = parser().parse_args(arguments)
    use_one_thread()
    import numpy as np

    from pyspeech.audio.io import read_audio
    from pyspeech.spoof.mcadams import anonymize, anonymize_many

    samples = make_speech(options.seconds) if options.audio is None else read_audio(options.audio, RATE)[0]
    samples = samples[: round(options.seconds * RATE)].astype(np.float64)
    burg = librosa_burg()
    anonymize(samples[:RATE], 0.8)  # fills caches

    def least(call, repetitions=options.repetitions):
        """(seconds, result) of a call."""
        [taken], [result] = best_process_times([call], repetitions, warm_up=False)
        return taken, result

    one, _ = least(lambda: anonymize(samples, 0.8, level="none"))
    four, all_ours = least(lambda: anonymize_many(samples, COEFFICIENTS, level="none"))
    plain_one, _ = least(lambda: plain(samples, 0.8, burg=burg or plain_burg))
    plain_four, all_theirs = least(
        lambda: [plain(samples, coefficient, burg=burg or plain_burg) for coefficient in COEFFICIENTS], 1
    )

    seconds = len(samples) / RATE
    print(
        f"{seconds:.1f} s at {RATE} Hz, one thread, process time over audio time; "
        f"linear prediction of the loop: {'librosa' if burg else 'numpy'}"
    )
    print(f"one coefficient    ours {one / seconds:.5f}   loop {plain_one / seconds:.5f}   ratio {plain_one / one:.1f}")
    crop, _ = least(lambda: anonymize(samples[:CROP].astype(np.float32), 0.8))
    print(f"a training crop of {min(CROP, len(samples)) / RATE:.2f} s takes {1000 * crop:.1f} ms")
    print(f"four coefficients  ours {four / seconds:.5f}   loop {plain_four / seconds:.5f}   ratio {plain_four / four:.1f}")
    for coefficient, mine, other in zip(COEFFICIENTS, all_ours, all_theirs, strict=True):
        print(
            f"coefficient {coefficient}: largest difference {np.abs(mine - other).max():.1e} "
            f"at a largest value of {np.abs(other).max():.1f}"
        )


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--seconds", type=seconds, default=20.0, help="longest audio in seconds (default: 20)")
    parser.add_argument(
        "--repetitions", type=whole_number, default=3, help="repetitions, of which the fastest counts (default: 3)"
    )
    parser.add_argument("--audio", metavar="FILE", help="speech to measure on (default: synthetic)")
    return parser


def seconds(text):
    return length(text, least=0.02)  # a frame


if __name__ == "__main__":
    exit_after(main)
