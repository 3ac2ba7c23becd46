"""Write cut manifests, e.g. those of an experiment's corpus, as a Kaldi data directory.

MANIFEST is a lhotse manifest of cuts (*.jsonl.gz); each of its supervisions is an utterance. DIR gets wav.scp, utt2spk,
spk2utt, text, utt2dur, reco2dur, and if needed segments, utt2lang, spk2gender. Tables that Kaldi ignores hold original ids
that it would not accept (utt2name, spk2name, reco2name) and custom fields of utterances (utt2custom). Mono 16-bit WAV stays
where it is; other audio is converted to it in DIR/wav. The directory is then checked by Kaldi's rules;
utils/kaldi_import.py reads it back.

examples:
  utils/kaldi_export.py exp/mini/corpus/train.jsonl.gz data/train
  utils/kaldi_export.py --features exp/mini/features/options.json exp/mini/corpus/test.jsonl.gz data/test
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import set_up_messages
from pyspeech.errors import UserError
from pyspeech.files import atomic_write

log = logging.getLogger("kaldi_export")


def main(arguments=None):
    options = parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    set_up_messages()
    folder = Path(options.folder)
    if (folder / "utt2spk").exists():
        raise UserError(f"{folder}: is a data directory already; remove it or name another folder")
    if options.compress and not options.features:
        raise UserError("--compress: applies to the features of --features FILE; add it")
    config = read_config(options.features) if options.features else None
    for name in ("feats.scp", "feats.ark", "utt2num_frames"):  # of an export that was killed
        (folder / name).unlink(missing_ok=True)
    from pyspeech.kaldi.reading import require_sound
    from pyspeech.kaldi.writing import kaldi_ids, write_data_dir

    utterances, durations = collect(options.manifests, folder)
    if config is not None:
        ids = kaldi_ids([(one.id, one.speaker) for one in utterances])
        ordered = sorted(zip((key for key, _ in ids), utterances, strict=True), key=lambda pair: pair[0])
        write_features(folder, ordered, config, options.compress)
    write_data_dir(folder, utterances, durations)
    require_sound(folder)
    print(f"{folder}: {len(utterances)} utterances of {len(durations)} recordings")


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("manifests", metavar="MANIFEST", nargs="+", help="lhotse cuts, *.jsonl or *.jsonl.gz")
    parser.add_argument("folder", metavar="DIR", help="data directory to write")
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="also write log-mel frames (feats.scp, feats.ark, utt2num_frames) with the options in FILE, "
        "features/options.json of an experiment of the recipe indic",
    )
    parser.add_argument(
        "--compress", action="store_true", help="with --features: compress them as Kaldi does, to one byte per value"
    )
    return parser


def read_config(path):
    """FbankConfig of a JSON file of its options."""
    from pyspeech.features.config import FbankConfig

    try:
        config = FbankConfig(**json.loads(Path(path).read_text(encoding="utf-8")))
        config.check()
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"{path}: no options of log-mel features ({getattr(error, 'strerror', None) or error}); expected "
            "the features/options.json of an experiment of the recipe indic"
        ) from None
    return config


def collect(manifests, folder):
    """([KaldiUtterance, ...], {recording: seconds}) of manifests; audio that has to be is copied to folder/wav."""
    from tqdm import tqdm

    from pyspeech.data.cut_files import read_cuts

    utterances, durations, places, silent = [], {}, {}, 0
    for manifest in manifests:
        if not Path(manifest).is_file():
            raise UserError(f"{manifest}: no such file; expected a lhotse manifest of cuts")
        for where, cut in tqdm(read_cuts(manifest), Path(manifest).name, disable=None):
            assert cut.recording is not None
            name = cut.recording.id if cut.recording.num_channels == 1 else f"{cut.recording.id}-{cut.channel}"
            source = json.dumps(cut.recording.to_dict(), sort_keys=True)
            key = name, hashlib.md5(source.encode()).hexdigest()
            if key not in places and cut.supervisions:
                places[key] = place_of(cut, folder, *key)
                check_length(where, cut.recording, places[key])
                durations[name] = cut.recording.duration
            silent += not cut.supervisions
            utterances += [utterance(where, cut, one, name, places[key]) for one in cut.supervisions]
    if not utterances:
        raise UserError(f"{', '.join(manifests)}: no utterance; expected cuts with supervisions")
    if silent:
        log.warning("%d cuts without a supervision are left out: Kaldi lists utterances", silent)
    return utterances, durations


def utterance(where, cut, supervision, recording, audio):
    from pyspeech.kaldi.reading import KaldiUtterance

    begin = cut.start + supervision.start
    end = begin + supervision.duration  # lhotse's own `end` is rounded
    start, last = max(begin, 0.0), min(end, cut.recording.duration)
    if start >= last:
        raise UserError(
            f"{where}: supervision {supervision.id} is from {begin:g} s to {end:g} s of recording {cut.recording.id}, which "
            f"has {cut.recording.duration:g} s; expected a part of it: mend it or leave it out"
        )
    whole = start == 0 and round(end * cut.recording.sampling_rate) >= cut.recording.num_samples
    return KaldiUtterance(
        id=cut.id if len(cut.supervisions) == 1 else supervision.id,
        recording=recording,
        audio=audio,
        speaker=supervision.speaker,
        start=None if whole else start,
        end=None if whole else last,
        text=supervision.text,
        language=supervision.language,
        gender=supervision.gender,
        custom=supervision.custom or None,
    )


def check_length(where, recording, path):
    """UserError where a recording's audio is not as long as the manifest says."""
    import soundfile

    from pyspeech.data.audio_checks import OVERSHOOT

    found = soundfile.info(os.fsencode(path)).duration  # pyright: ignore[reportArgumentType]
    if round(abs(found - recording.duration), 9) > OVERSHOOT:  # 4.4 - 3.9 is more than 0.5
        raise UserError(
            f"{where}: recording {recording.id} has {found:.2f} s of audio, not {recording.duration:.2f} s ({path}); "
            "prepare the corpus again"
        )


def place_of(cut, folder, name, digest):
    """Entry of a cut's recording in wav.scp: its file, or a copy that Kaldi can read."""
    from pyspeech.data.audio_files import safe_name
    from pyspeech.data.cut_files import copy_recording

    source = cut.recording.sources[0]
    plain = len(cut.recording.sources) == 1 and source.type == "file" and not cut.recording.transforms
    if plain and kaldi_reads(source.source):
        return os.path.abspath(source.source)
    target = folder.absolute() / "wav" / f"{safe_name(name)}.{digest[:8]}.wav"
    if kaldi_path(target) is None:
        raise UserError(f"{target}: wav.scp cannot hold this path; choose another folder")
    copy_recording(cut, target)  # one of an earlier export may be of other audio
    return str(target)


def kaldi_path(path):
    """A match where Kaldi would take a path for a file: none for a command, an offset, or space at the ends."""
    return re.fullmatch(r"[^\s~]([^\n\r]*[^\s|])?", str(path)) and not re.search(r":\d+$", str(path)) or None


def kaldi_reads(path):
    """True if Kaldi's programs can read a file directly."""
    import soundfile

    try:
        found = soundfile.info(os.fsencode(path))  # pyright: ignore[reportArgumentType]
    except (soundfile.LibsndfileError, OSError):
        raise UserError(f"{path}: cannot be read as audio; check the file, or prepare the corpus again") from None
    kind = found.format, found.subtype, found.channels
    return kind == ("WAV", "PCM_16", 1) and kaldi_path(os.path.abspath(path)) is not None


def write_features(folder, utterances, config, compress):
    """Write feats.ark, feats.scp and utt2num_frames of [(id, KaldiUtterance), ...], in the order of their ids."""
    import numpy as np
    from tqdm import tqdm

    from pyspeech.audio.io import stream_audio
    from pyspeech.features.fbank import fbank
    from pyspeech.units.features_files import kaldi_table

    counts = {}
    with kaldi_table(folder / "feats", compress) as write:
        for key, one in tqdm(utterances, "features", disable=None):
            start, length = one.start or 0.0, None if one.end is None else one.end - (one.start or 0.0)
            samples = np.concatenate(list(stream_audio(one.audio, config.sampling_rate, start=start, duration=length)))
            frames = fbank(samples, config).numpy()
            if not len(frames):
                raise UserError(f"{one.id}: too short for a frame of features; leave it out")
            counts[key] = len(frames)
            write(key, frames)
    with atomic_write(folder / "utt2num_frames") as stream:
        stream.writelines(f"{key} {count}\n" for key, count in counts.items())
