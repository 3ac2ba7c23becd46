"""Check a Kaldi data directory and write it as a lhotse manifest: one cut per utterance.

DIR is checked by Kaldi's rules (validate_data_dir.sh): tables sorted in the C locale, unique ids that agree between tables,
spk2utt the inverse of utt2spk, recordings for all segments, and so on. Each fault is one line with file and line number, and
makes the exit status 1. With MANIFEST, the audio is checked too and the manifest written. Commands in wav.scp are run and
archives read, and their audio is saved as WAV beside the manifest. Ids changed by utils/kaldi_export.py are restored.
For a whole corpus, the recipe indic takes the folder of its data directories: corpus=DIR kind=kaldi.

examples:
  utils/kaldi_import.py data/train
  utils/kaldi_import.py data/train manifests/train.jsonl.gz
  utils/transcribe.py manifests/train.jsonl.gz --model DIR
"""

from __future__ import annotations

import logging
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import set_up_messages
from pyspeech.errors import UserError
from pyspeech.files import atomic_path

log = logging.getLogger("kaldi_import")


def main(arguments=None):
    """Returns the exit status: 0, or 1 where the directory breaks a rule."""
    options = parser().parse_args(arguments)
    set_up_messages()
    if options.manifest and not options.manifest.endswith(".jsonl.gz"):
        raise UserError(f"{options.manifest}: expected the name of a manifest, such as train.jsonl.gz")
    from pyspeech.kaldi.rules import check_data_dir, speaker_order

    count = 0
    for problem in check_data_dir(options.folder):
        print(problem, flush=True)
        count += 1
    if count:
        print(f"{options.folder}: {count} fault{'s' * (count > 1)}")
        return 1
    if options.manifest:
        write_cuts(Path(options.folder), Path(options.manifest).absolute(), options.skip_bad)
    else:
        print(speaker_order(options.folder) or f"{options.folder}: nothing wrong")
    if options.features:
        copy_features(Path(options.folder), Path(options.features))
    return 0


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("folder", metavar="DIR", help="a Kaldi data directory")
    parser.add_argument("manifest", metavar="MANIFEST", nargs="?", help="manifest to write, *.jsonl.gz")
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out any number of utterances with problems, instead "
        "of stopping at more than a few (half of a small corpus); they are listed in NAME_problems.txt beside a manifest "
        "NAME.jsonl.gz",
    )
    parser.add_argument(
        "--features",
        metavar="FOLDER",
        help="also write the matrices of feats.scp as FOLDER/NAME.npy, which the tools that score features read",
    )
    return parser


def write_cuts(folder, manifest, skip_bad):
    from pyspeech.data.audio_checks import check_utterances, utterance_check
    from pyspeech.data.audio_files import readable_copies
    from pyspeech.data.manifests import write_manifest
    from pyspeech.data.problems import report_problems
    from pyspeech.kaldi.utterances import read_utterances

    name = manifest.name.removesuffix(".jsonl.gz")
    audio = manifest.parent / f"{name}_audio"
    utterances, problems = read_utterances(folder, audio, log)
    good, found = check_utterances(utterances, utterance_check(), log)
    total = len(good) + len(found) + len(problems)
    report_problems(
        str(folder),
        manifest.parent,
        problems + found,
        total,
        skip_bad,
        log,
        option="--skip-bad",
        listing=f"{name}_problems.txt",
    )
    if not good:
        raise UserError(f"{folder}: no utterance that can be used")
    write_manifest(manifest, readable_copies(good, audio, log))
    print(f"{manifest}: {len(good)} utterances")


def copy_features(folder, target):
    """NAME.npy, float32 (frames, dim), of each utterance in feats.scp."""
    import numpy as np

    from pyspeech.kaldi.reading import read_data_dir
    from pyspeech.kaldi.rules import read_table
    from pyspeech.units.features_files import open_features

    if not (folder / "feats.scp").is_file():
        raise UserError(f"--features: {folder} has no feats.scp")
    features = open_features(folder / "feats.scp")
    count = 0
    for line, one in zip(read_table(folder / "feats.scp"), read_data_dir(folder), strict=False):
        path = target / f"{one.id}.npy"
        if not path.resolve().is_relative_to(target.resolve()):
            raise UserError(f"{folder}: no file in {target} can have the name of utterance {one.id}; rename it")
        with atomic_path(path) as temporary:
            np.save(temporary, features(line.key).values.astype(np.float32))
        count += 1
    print(f"{target}: features of {count} utterances")
