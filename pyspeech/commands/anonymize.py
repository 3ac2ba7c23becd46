"""Anonymise speakers: move formants by a McAdams coefficient (VoicePrivacy's baseline B2).

IN is an audio file ("-": standard input) or a folder, searched recursively; OUT gets the same names. Sampling rate, channels,
format, length and level are kept; formats that libsndfile cannot write become WAV. For a Kaldi data directory (a folder with
wav.scp) or a table *.scp, OUT is a new one with one WAV file per utterance; the other tables are kept.

The farther the coefficient is from 1, the stranger the voice. It is meant for 16 kHz: the fixed frequency is 0.16 of the
sampling rate. Words and much of the prosody are kept, so this does not protect against listeners who know the speaker or the
method. A random coefficient, as in VoicePrivacy 2022 (per speaker) and 2024 (per utterance), is harder to undo. With --seed,
the seed and the name reveal it.

examples:
  utils/anonymize.py call.wav hidden.wav
  utils/anonymize.py --coefficient 0.7 recordings/ hidden/
  utils/anonymize.py --coefficient 0.5-0.9 --per speaker data/test data/test_hidden
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import secrets
from pathlib import Path

from pyspeech.commands.arguments import seed, tool_parser
from pyspeech.commands.terminal import process_each, set_up_messages
from pyspeech.errors import UserError

BLOCK = 1 << 16  # frames written at once: libsndfile's Vorbis coder cannot take many more
FULL_SCALE = 0.999


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a file could not be anonymised."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    status = set_up_messages()
    from pyspeech.commands.anonymize_jobs import Coefficients, find_jobs, write_tables

    jobs = find_jobs(options.input, options.output)
    drawn_by = secrets.randbits(128) if options.seed is None else options.seed
    coefficients = Coefficients(options.coefficient, options.per == "speaker", drawn_by)
    done = {}

    def process(job, shown):
        done[job] = anonymize_job(job, coefficients(job), options.level)

    def summary():
        paths, seconds = zip(*done.values(), strict=True)
        place = options.output if Path(options.input).is_dir() or options.input.lower().endswith(".scp") else paths[0]
        return f"{len(paths)} file{'s' * (len(paths) != 1)}, {sum(seconds):.2f} s of audio: {place}"

    failed = process_each(jobs, process, status, "anonymised", summary)
    if done and failed != 130:
        write_tables(options.input, options.output, done)
    return failed


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("input", metavar="IN", help="audio file, -, folder, Kaldi data directory or *.scp")
    parser.add_argument(
        "output",
        metavar="OUT",
        help="file, or folder if IN has several files, exists as a folder, or ends in /; existing files are replaced",
    )
    parser.add_argument(
        "--coefficient",
        metavar="A",
        type=coefficient,
        default=(0.8, 0.8),
        help="McAdams coefficient above 0; 1 changes nothing, below 0.6 or above 1 is hard to understand; LOW-HIGH: random "
        "(default: 0.8)",
    )
    parser.add_argument(
        "--per",
        choices=("utterance", "speaker"),
        default="utterance",
        help="draw a coefficient per utterance (default) or per speaker; speakers come from the data directory, or utt2spk "
        "beside the table",
    )
    parser.add_argument(
        "--seed", metavar="N", type=seed, help="random seed of the coefficients (default: a new one each time, never saved)"
    )
    parser.add_argument(
        "--level",
        choices=("rms", "peak"),
        default="rms",
        help="rms: keep the loudness, limiting peaks that integer formats would clip; peak: scale to full scale, as the "
        "baseline does (default: rms)",
    )
    return parser


def coefficient(text):
    """(lowest, highest) of a number or a range."""
    try:
        values = [float(part) for part in text.split("-")] if not text.startswith("-") else []
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(0 < value < float("inf") for value in values) or values[0] > values[-1]:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0, such as 0.8, nor a range, such as 0.5-0.9")
    return values[0], values[-1]


def anonymize_job(job, coefficient, level):
    """Write one file. Returns (the path written, seconds of audio). UserError where it cannot be read or written."""
    from pyspeech.spoof.mcadams import anonymize

    samples, rate = read_job(job)
    kind = kind_of(job.path, job.target)
    try:
        for channel in samples:
            channel[:] = anonymize(channel, coefficient, rate, level)
    except UserError as error:
        raise UserError(f"{job.path}: {error}") from None
    return write(job.target, samples, rate, kind, job.path), samples.shape[1] / rate


def read_job(job):
    """(samples (channels, N), rate) of a job."""
    from pyspeech.audio.io import read_channels

    if job.duration is None:
        return read_channels(job.path)
    samples, rate = read_whole(job.path)
    part = samples[:, round(job.start * rate) : round((job.start + job.duration) * rate)].copy()
    if not part.shape[1]:
        raise UserError(f"{job.name}: {job.path} has no audio from {job.start:g} s on")
    return part, rate


@functools.lru_cache(maxsize=1)
def read_whole(path):
    """A recording whose utterances follow each other, read once."""
    from pyspeech.audio.io import read_channels

    return read_channels(path)


def kind_of(source, target):
    """(format, subtype) of what is written, in libsndfile's words: the source's where the name's ending is the same."""
    import soundfile

    try:
        with soundfile.SoundFile(os.fsencode(source)) as file:  # pyright: ignore[reportArgumentType]
            same = Path(source).suffix.lower() == Path(target).suffix.lower()
            if same and soundfile.check_format(file.format, file.subtype):
                return file.format, file.subtype
    except (soundfile.LibsndfileError, OSError):
        pass  # ffmpeg read it, or it is standard input
    ending = Path(target).suffix[1:].upper()
    if ending == "OPUS":
        return "OGG", "OPUS"
    form = {"OGA": "OGG", "AIF": "AIFF", "AIFC": "AIFF", "SPH": "NIST", "SND": "AU"}.get(ending, ending)
    return (form, soundfile.default_subtype(form)) if soundfile.check_format(form) else (None, None)


def write(target, samples, rate, kind, source):
    """Samples (channels, N) into a file of the kind, or into a WAV beside where that cannot be, and say so.

    Returns the path written.
    """
    import soundfile

    if kind[1] not in ("FLOAT", "DOUBLE"):
        samples = within_full_scale(samples, rate, source)
    if kind[0]:
        with contextlib.suppress(soundfile.LibsndfileError, ValueError):
            write_sound(target, samples, rate, *kind)
            return target
    wav = target if target.suffix.lower() == ".wav" else target.with_name(target.name + ".wav")
    if kind[0]:
        reason = f"libsndfile cannot write {kind[1]} at this rate and with these channels"
    else:
        reason = "libsndfile cannot write this format" if target.suffix else f"{target} has no ending that names a format"
    logging.warning("%s: %s; written as %s", source, reason, wav)
    try:
        write_sound(wav, samples, rate, "WAV", "PCM_16")
    except soundfile.LibsndfileError as error:
        raise UserError(f"{wav}: cannot be written: {error.error_string}") from None
    return wav


def within_full_scale(samples, rate, source):
    """Samples (channels, N) as loud as before, the peaks limited that integers would clip."""
    import numpy as np

    from pyspeech.audio.level import limited

    peak = float(np.abs(samples).max())
    if peak <= 1:
        return samples * min(1, FULL_SCALE / max(peak, FULL_SCALE))
    found = limited(samples, FULL_SCALE, rate)
    lost = 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) / np.mean(np.square(found, dtype=np.float64)))
    quieter = f", and {lost:.1f} dB quieter" if lost >= 0.1 else ""
    logging.warning("%s: its peaks would be at %.2f of full scale; they are limited%s", source, peak, quieter)
    return found


def write_sound(path, samples, rate, form, subtype):
    import soundfile

    from pyspeech.files import atomic_path

    with atomic_path(path) as temporary:
        with soundfile.SoundFile(os.fsencode(temporary), "w", rate, len(samples), subtype, format=form) as file:  # pyright: ignore[reportArgumentType]
            for begin in range(0, samples.shape[1], BLOCK):
                file.write(samples[:, begin : begin + BLOCK].T)
