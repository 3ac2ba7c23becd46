"""Discrete units by k-means from features in files, such as hidden layers of a self-supervised model.

FEATURES is a Kaldi table of matrices (.scp, .ark), or a folder, searched recursively, with one file per utterance: NAME.npy or
NAME.pt (frames, dim), NAME.npz (`features`) or NAME.txt (one vector per line). Without --centres, k-means is first trained on
FEATURES. The output has lines `NAME 12 12 7 3`, the cluster of each frame, for utils/score_units.py,
utils/score_abx.py and utils/score_bitrate.py; with --merge it has no repeats, for language models.

examples:
  utils/kmeans_units.py train_features/ --clusters 100 --save centres.npy -o train.txt
  utils/kmeans_units.py test_features/ --centres centres.npy -o test.txt
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspeech.commands.arguments import new_file, seed, tool_parser, whole_number
from pyspeech.commands.terminal import set_up_messages
from pyspeech.errors import UserError
from pyspeech.files import atomic_path, atomic_write


def main(arguments=None):
    options = parser().parse_args(arguments)
    set_up_messages()
    if (options.centres is None) == (options.clusters is None):
        raise UserError("expected --clusters N, to train on FEATURES, or --centres FILE; one of them")
    from pyspeech.units.features_files import open_features

    features = open_features(options.features)
    names = features.names
    if not names:
        raise UserError(f"{options.features}: no features files in it; expected one for each utterance")
    centres = load_centres(options.centres) if options.centres else trained(features, names, options)
    if options.save:
        import numpy as np

        with atomic_path(options.save) as temporary, open(temporary, "wb") as stream:
            np.save(stream, centres.numpy())
    with atomic_write(options.output) as stream:
        for name in progress(names, "units"):
            stream.write(line_of(name, codes_of(features(name), centres, options)))
    print(f"{options.output}: {len(names)} utterances, {len(centres)} clusters", file=sys.stderr)


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("features", metavar="FEATURES", help="folder of files, or x.scp, x.ark")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=new_file, required=True, help="write lines `NAME 12 12 7 3` to FILE"
    )
    parser.add_argument("--clusters", metavar="N", type=whole_number, help="train k-means with N clusters on FEATURES")
    parser.add_argument(
        "--centres", metavar="FILE", help="use the centres in FILE: array (clusters, dim), .npy, as --save writes it"
    )
    parser.add_argument("--save", metavar="FILE", type=new_file, help="write the centres to FILE (.npy)")
    parser.add_argument("--average", metavar="N", type=whole_number, default=1, help="average each N frames first (default: 1)")
    parser.add_argument("--merge", action="store_true", help="write repeated units once")
    parser.add_argument(
        "--most", metavar="N", type=whole_number, default=1_000_000, help="train on at most N random frames (default: 1000000)"
    )
    parser.add_argument(
        "--seed", metavar="N", type=seed, default=0, help="random seed of k-means and of the frames drawn (default: 0)"
    )
    return parser


def trained(features, names, options):
    """Centres (clusters, dim), a tensor."""
    from pyspeech.units.kmeans import draw_frames, fit

    parts = (frames_of(features(name), options) for name in progress(names, "reading"))
    return fit(draw_frames(parts, options.most, options.seed), options.clusters, options.seed)


def frames_of(found, options):
    """Frames (F, D), a tensor float32, of Features."""
    import torch

    from pyspeech.units.kmeans import average_frames

    return average_frames(torch.from_numpy(found.values).float(), options.average)


def codes_of(found, centres, options):
    """Clusters of the frames of Features, an array (F,)."""
    from pyspeech.units.kmeans import assign
    from pyspeech.units.units_files import runs

    frames = frames_of(found, options)
    if frames.shape[1] != centres.shape[1]:
        raise UserError(f"{found.source}: vectors of {frames.shape[1]} numbers; the centres have {centres.shape[1]}")
    codes = assign(frames, centres).numpy()
    return runs(codes)[0] if options.merge else codes


def line_of(name, codes):
    """A tab behind a name with spaces."""
    return f"{name}{chr(9) if ' ' in name else ' '}{' '.join(map(str, codes.tolist()))}\n"


def load_centres(path):
    import torch

    from pyspeech.units.features_files import read_features

    if Path(path).suffix != ".npy":
        raise UserError(f"--centres {path}: expected a file that --save wrote (.npy)")
    return torch.from_numpy(read_features(path).values).float()


def progress(names, title):
    from tqdm import tqdm

    return tqdm(names, title, disable=None, leave=False)
