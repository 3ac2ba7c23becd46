#!/usr/bin/env python3
"""Measure the speech that a speech detector misses by pitch and manner of speaking, on folders of labelled recordings.

A folder has audio and labels in any format that utils/score_sad.py reads, searched recursively. Labelled segments less than
0.3 s apart are one; its pitch is the median F0 of its voiced frames. Speech is missed if it is labelled and not found. With
--shift, all recordings are measured again with their voices moved to each pitch by the vocoder WORLD, with formants and
tempo as they were. With --whisper and --chant, WORLD whispers them (noise for the voice, weaker below 800 Hz) and holds them
on one note, both at 8 kHz.

examples:
  utils/bench/sad_pitch.py air_traffic/ an4/
  utils/bench/sad_pitch.py an4/ timit/ --shift 70 85 95 110 160 250 350 400 500 --point words
  utils/bench/sad_pitch.py timit/ --whisper --chant 150 300 450
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import exit_after
from steps.benchmark.timing import use_one_thread

CLASSES = ((60.0, 90.0), (90.0, 105.0), (105.0, 125.0), (125.0, 350.0), (350.0, float("inf")))  # Hz
GAP = 0.3  # seconds: segments less apart are one, of which the pitch is measured
RATE = 16000  # Hz, of the vocoder


def class_of(pitch):
    """Name of the class of a pitch in Hz; "no pitch" of nan and of less than the lowest."""
    for low, high in CLASSES:
        if low <= pitch < high:
            return f"{low:g}-{high:g} Hz" if high < float("inf") else f"above {low:g} Hz"
    return "no pitch"


def pitched(recording, samples):
    """[(class, seconds of speech, its segments (n, 2))] of each stretch of labelled speech."""
    from pyspeech.audio.pitch import median_pitch
    from pyspeech.sad.segments import union

    speech, found = union(recording.speech), []
    for start, end in union(speech, gap=GAP):
        own = speech[(speech[:, 0] >= start) & (speech[:, 1] <= end)]
        pitch = median_pitch(samples[int(start * RATE) : int(end * RATE)], RATE)
        found.append((class_of(pitch), own))
    return found


def missed(speech, found):
    """Seconds of the segments `speech` (n, 2) that the segments `found` (m, 2) do not cover."""
    from pyspeech.sad.segments import total, union

    both = total(union([*speech.tolist(), *found.tolist()]))
    return both - total(found)


def changed(samples, pitches=(), whispered=False, notes=()):
    """{name: samples (N,) at RATE} of a recording said in other ways; {} without a voice.

    Args:
        samples: (N,) at RATE.
        pitches: Hz, of the median F0.
        whispered: Whether it is whispered too.
        notes: Hz, of notes on which all of it is held.
    """
    import numpy as np
    from scipy.signal import resample_poly

    from local.synthesis.revoice import Manner, revoice
    from local.synthesis.vocoders import analyse
    from pyspeech.audio.pitch import median_pitch

    own = median_pitch(samples, RATE)
    if not np.isfinite(own):
        return {}
    made = {}
    if pitches:
        speech = analyse(samples.astype(np.float64))
        made = {f"moved to {pitch:g} Hz": speech.say(pitch / own) for pitch in pitches}
    manners = {"whispered": Manner()} if whispered else {}
    manners |= {f"on one note, {note:g} Hz": Manner(pitch=note, typical=own, liveliness=0.0) for note in notes}
    for name, manner in manners.items():
        said = revoice(np.random.default_rng(0), resample_poly(samples, 1, 2).astype(np.float64), manner)
        made[name] = resample_poly(said, 2, 1)[: len(samples)]
    return {name: one.astype(np.float32) for name, one in made.items()}


def measure(detector, recordings):
    """{class: [seconds of speech, seconds missed, segments, segments of which nothing is found]}, and (recordings with speech,
    those without any found).

    recordings: (LabelledRecording, samples at RATE, class of all its speech or None: by its pitch).
    """
    from pyspeech.sad.segments import total

    table, count, empty = {}, 0, 0
    for recording, samples, own in recordings:
        found = detector.detect((samples, RATE)).segments
        for name, speech in pitched(recording, samples) if own is None else [(own, recording.speech)]:
            row = table.setdefault(name, [0.0, 0.0, 0, 0])
            seconds, lost = total(speech), missed(speech, found)
            for place, value in enumerate((seconds, lost, 1, lost > seconds - 1e-6)):
                row[place] += value
        count, empty = count + 1, empty + (len(found) == 0)
    return table, (count, empty)


def rows(table):
    """Rows of the table of a folder, from the lowest pitch to the highest."""
    from pyspeech.report.tables import percent

    order = [*(class_of(low) for low, _ in CLASSES), *sorted(table)]
    return [
        [name, f"{table[name][0] / 60:.1f}", table[name][2], percent(table[name][1] / table[name][0]), table[name][3]]
        for name in dict.fromkeys(order)
        if name in table and table[name][0] > 0
    ]


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("folders", metavar="DIR", nargs="+", help="folder of recordings with labels")
    parser.add_argument("--shift", metavar="HZ", nargs="+", type=float, default=[], help="pitches to move the voices to")
    parser.add_argument("--whisper", action="store_true", help="whisper the voices")
    parser.add_argument("--chant", metavar="HZ", nargs="+", type=float, default=[], help="notes to hold the voices on")
    parser.add_argument("--system", metavar="NAME", help="system of utils/detect_speech.py (default: the bundled network)")
    parser.add_argument("--model", metavar="DIR", help="folder of a trained network, or an ONNX file")
    parser.add_argument("--point", metavar="NAME", help="operating point (default: the model's first)")
    options = parser.parse_args(arguments)
    use_one_thread()

    from pyspeech import SpeechDetector
    from pyspeech.audio.io import read_audio
    from pyspeech.report.tables import markdown_table
    from steps.benchmark.labelled import labelled

    detector = SpeechDetector(options.model, system=options.system, point=options.point)
    header = ["pitch", "minutes of speech", "segments", "missed, %", "segments without any found"]
    for folder in options.folders:
        recordings = [one for one in labelled(folder) if len(one.speech)]
        audio = [read_audio(one.path, RATE)[0] for one in recordings]
        table, (count, empty) = measure(detector, [(*pair, None) for pair in zip(recordings, audio, strict=True)])
        found = rows(table)
        if options.shift or options.whisper or options.chant:
            voices = (
                (one, samples, name)
                for one, own in zip(recordings, audio, strict=True)
                for name, samples in changed(own, options.shift, options.whisper, options.chant).items()
            )
            table, _ = measure(detector, voices)
            found += [row for name in table for row in rows({name: table[name]})]
        print(f"\n{Path(folder).name}: {count} recordings with speech, {empty} without any found\n")
        print(markdown_table(header, found), flush=True)


if __name__ == "__main__":
    exit_after(main)
