"""Anonymise speakers: move formants by a McAdams coefficient (VoicePrivacy's baseline B2).

IN is an audio file ("-": standard input), or a folder, of which OUT becomes a copy with the same names: all audio files
in it and below. Rate, channels, format and length are kept; formats that libsndfile cannot write become
WAV. The farther the coefficient is from 1, the stranger the voice. It is meant for 16 kHz: the fixed frequency is 0.16 of the
sampling rate. Words and much of the prosody are kept: this is no protection against those who know the speaker or the method.

examples:
  utils/anonymize.py call.wav hidden.wav
  utils/anonymize.py --coefficient 0.7 recordings/ hidden/
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import process_each, set_up_messages
from pyspeech.errors import UserError

BLOCK = 1 << 16  # frames written at once: libsndfile's Vorbis coder cannot take many more
FULL_SCALE = 0.999


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a file could not be anonymised."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    status = set_up_messages()
    targets = find_targets(options.input, options.output)
    from pyspeech.audio.recordings import Recording

    recordings = [Recording(os.path.basename(source), source) for source in targets]
    written = []

    def process(recording, shown):
        target = targets[recording.path]
        written.append(anonymize_file(recording.path, target, options.coefficient, options.level))

    def summary():
        paths, seconds = zip(*written, strict=True)
        place = options.output if Path(options.input).is_dir() else paths[0]
        return f"{len(paths)} file{'s' * (len(paths) != 1)}, {sum(seconds):.2f} s of audio: {place}"

    return process_each(recordings, process, status, "anonymised", summary)


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("input", metavar="IN", help="audio file, - or folder")
    parser.add_argument(
        "output",
        metavar="OUT",
        help="file, or folder where IN is one; of a single IN, a folder "
        "that is there, or any that ends in /; files that are there are replaced",
    )
    parser.add_argument(
        "--coefficient",
        metavar="A",
        type=coefficient,
        default=0.8,
        help="above 0; 1 changes nothing, below 0.6 and above 1 is hard to understand (default: 0.8)",
    )
    parser.add_argument(
        "--level",
        choices=("rms", "peak"),
        default="rms",
        help="rms: as loud as before, but quieter where a format of integers would clip, and a warning "
        "says by how much; peak: to full scale, as the baseline does (default: rms)",
    )
    return parser


def coefficient(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0, such as 0.8")
    return value


def find_targets(source, output):
    """{path of an audio file: Path to write}; UserError where that would replace or become part of what is read."""
    from pyspeech.audio.io import find_audio

    files = [str(path) for path in find_audio([source])]
    if output == "-":
        raise UserError("OUT -: expected a file or folder to write; audio does not go to standard output")
    several = Path(source).is_dir()
    folder, output = several or output.endswith("/") or Path(output).is_dir(), Path(output)
    if folder and output.exists() and not output.is_dir():
        raise UserError(f"{output}: is a file; expected a folder")
    if not several:
        if folder and source == "-":
            raise UserError(f"{output}: is a folder; expected a file to write standard input's audio to")
        target = output / Path(source).name if folder else output
        if target.is_dir() or source != "-" and target.resolve() == Path(source).resolve():
            raise UserError(f"{target}: expected a file to write that is not {source} itself")
        return {files[0]: target}
    if Path(source).resolve() in (output.resolve(), *output.resolve().parents):
        raise UserError(f"{output}: lies in the folder that is read, {source}; expected another place")
    return {path: output / Path(path).relative_to(source) for path in files}


def anonymize_file(source, target, coefficient, level):
    """Write one file. Returns (the path written, seconds of audio). UserError where it cannot be read or written."""
    from pyspeech.audio.io import read_channels
    from pyspeech.spoof.mcadams import anonymize

    samples, rate = read_channels(source)
    kind = kind_of(source, target)
    try:
        for channel in samples:
            channel[:] = anonymize(channel, coefficient, rate, level)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    return write(target, samples, rate, kind, source), samples.shape[1] / rate


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
    What would clip is made quieter as a whole: limiting the peaks alone would distort, and floats are another format.
    """
    import numpy as np
    import soundfile

    peak = float(np.abs(samples).max())
    if peak > FULL_SCALE and kind[1] not in ("FLOAT", "DOUBLE"):
        if peak > 1:
            logging.warning(
                "%s: its peaks would be at %.2f of full scale; made quieter by %.1f dB",
                source,
                peak,
                20 * np.log10(peak / FULL_SCALE),
            )
        samples *= FULL_SCALE / peak
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


def write_sound(path, samples, rate, form, subtype):
    import soundfile

    from pyspeech.files import atomic_path

    with atomic_path(path) as temporary:
        with soundfile.SoundFile(os.fsencode(temporary), "w", rate, len(samples), subtype, format=form) as file:  # pyright: ignore[reportArgumentType]
            for begin in range(0, samples.shape[1], BLOCK):
                file.write(samples[:, begin : begin + BLOCK].T)
