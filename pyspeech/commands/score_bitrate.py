"""Score the bitrate of discovered units: (N / D) H, for N vectors in D seconds, H the entropy of distinct vectors in bits.

FEATURES is a folder, searched recursively, with one file per utterance: NAME.npy or NAME.pt (frames, dim), or codes (frames,),
NAME.npz (`features`), NAME.txt (one vector per line, or codes in one line), NAME.jsonl (from utils/encode_units.py); or one
file: a Kaldi table of matrices (.scp, .ark), or lines `NAME 12 12 7 3` of codes (.txt).

FILE names the utterances to score, one per line, like the challenge's bitrate_filelist.txt. If it also has their durations in
seconds, as that file does, neither --audio nor --durations is needed.
"""

from __future__ import annotations

from pathlib import Path

from pyspeech.commands.arguments import add_json, tool_parser
from pyspeech.errors import UserError
from pyspeech.files import write_json


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.units.bitrate import measure, read_filelist
    from pyspeech.units.features_files import open_features

    entries = with_durations(read_filelist(options.filelist), options)
    read = open_features(options.features)
    result = measure((read(name).values, seconds) for name, seconds in entries)  # pyright: ignore[reportArgumentType]
    if options.json:
        write_json(options.json, {**result, "files": len(entries)})
    print(report(result, len(entries)))


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--features", metavar="FEATURES", required=True, help="folder of files, or x.scp, x.ark, x.txt")
    parser.add_argument("--filelist", metavar="FILE", required=True, help="list of the utterances to score")
    durations = parser.add_mutually_exclusive_group()
    durations.add_argument("--audio", metavar="DIR", help="take durations from the utterances' audio in this folder")
    durations.add_argument(
        "--durations", metavar="FILE", help="take durations from lines `name seconds`, or a lhotse manifest (.jsonl, .jsonl.gz)"
    )
    add_json(parser)
    return parser


def with_durations(entries, options):
    """[(name, seconds), ...] of the entries of a list, with durations from where the options say; UserError for an
    utterance without one."""
    if options.audio:
        known, where = audio_durations(options.audio, dict(entries)), options.audio
    elif options.durations:
        known, where = listed_durations(options.durations), options.durations
    else:
        known, where = dict(entries), options.filelist
    for name, _ in entries:
        if known.get(name) is None:
            hint = "" if options.audio or options.durations else ", or --audio or --durations"
            raise UserError(f"{where}: no duration for {name}; expected one for each utterance of {options.filelist}{hint}")
    return [(name, known[name]) for name, _ in entries]


def audio_durations(folder, names):
    """{name: seconds} of those of the names that have an audio file in a folder or below."""
    from pyspeech.audio.io import find_audio

    return {path.stem: duration(path) for path in find_audio([folder]) if path.stem in names}


def duration(path):
    """Seconds of an audio file."""
    import soundfile

    try:
        return soundfile.info(str(path)).duration
    except soundfile.LibsndfileError as error:
        raise UserError(f"{path}: cannot be read as audio: {error.error_string}") from None


def listed_durations(path):
    """{name: seconds} of a text file or a lhotse manifest."""
    if not str(path).endswith((".jsonl", ".jsonl.gz")):
        from pyspeech.units.bitrate import read_filelist

        return dict(read_filelist(path))
    from pyspeech.audio.recordings import find_recordings

    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a lhotse manifest or lines `name seconds`")
    return {recording.name: recording.duration for recording in find_recordings([path])}


def report(result, files):
    """The figures of `pyspeech.units.bitrate.measure` as text."""
    rows = [
        ("bitrate B = (N / D) H", f"{result['bitrate']:.2f} bit/s"),
        ("vectors N", f"{result['lines']} in {files} files"),
        ("duration D", f"{result['seconds']:.3f} s ({result['lines'] / result['seconds']:.2f} vectors a second)"),
        ("entropy H", f"{result['entropy']:.4f} bit"),
        ("distinct vectors", f"{result['symbols']}"),
        ("ceiling", f"{result['ceiling']:.2f} bit/s, were they equally frequent"),
    ]
    return "\n".join(f"{title:<23}{value}" for title, value in rows)
