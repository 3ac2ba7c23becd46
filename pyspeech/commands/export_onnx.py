"""Export a trained detector of speech or of fake speech as one ONNX file, with its options and threshold.

utils/detect_speech.py and utils/detect_fake.py take the file as --model and do not need PyTorch then. In a folder with
model.pt and model.onnx, utils/detect_speech.py uses the latter. Scores are equal up to rounding; the largest difference on
noise is printed.

examples:
  utils/export_onnx.py exp/mini/models/rnn           # rnn/model.onnx, beside model.pt
  utils/export_onnx.py exp/mini/models/rnm_sm/42 -o fakes.onnx
"""

from __future__ import annotations

from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.errors import UserError
from pyspeech.files import atomic_path
from pyspeech.model_file import ONNX_FILE, find_model, kind_of
from pyspeech.sad.config import KIND
from pyspeech.spoof.config import KIND as FAKES

CHECKED = 30.0  # seconds of audio
LARGEST_DIFFERENCE = 1e-4  # between the two forms' scores


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("model", metavar="DIR", help="folder of a trained network, or the model.pt in it")
    parser.add_argument("-o", "--output", metavar="FILE", help=f"the file to write (default: DIR/{ONNX_FILE})")
    return parser


def main(arguments=None):
    options = parser().parse_args(arguments)
    folder = find_model(options.model, KIND)
    path = Path(options.output or folder / ONNX_FILE)
    if path.suffix != ".onnx":
        raise UserError(f"-o {path}: expected a name that ends in .onnx")
    export = export_spoof if kind_of(folder) == FAKES.name else export_sad
    with atomic_path(path) as temporary:  # utils/detect_speech.py would take a wrong one too
        forms = export(folder, temporary)
        difference = compare(*forms)
        if not difference <= LARGEST_DIFFERENCE:
            raise UserError(
                f"{path}: its scores would differ from those of {folder} by {difference:.1e}; expected at most "
                f"{LARGEST_DIFFERENCE:g}; not written"
            )
    print(f"{path}: {path.stat().st_size / 1024:.0f} KB; scores differ from torch's by {difference:.1e} at most")


def export_sad(folder, path):
    """Write the file. Returns the sampling rate and what scores samples in torch and in ONNX Runtime."""
    from functools import partial

    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.config import OperatingPoint
    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.onnx_export import export_onnx
    from pyspeech.sad.onnx_network import OnnxNetwork

    model = load_model(folder)
    export_onnx(model, path, {"default": OperatingPoint(model.threshold, model.smoothing)})  # pyright: ignore[reportArgumentType]
    return model.stft.config.sampling_rate, partial(score_samples, model), partial(score_samples, OnnxNetwork(path))


def export_spoof(folder, path):
    """Export a detector of fake audio; see `export_sad`."""
    from pyspeech.spoof.checkpoint import load_model
    from pyspeech.spoof.detector import score_blocks
    from pyspeech.spoof.onnx_export import export_onnx
    from pyspeech.spoof.onnx_network import load_onnx

    trained = load_model(folder)
    export_onnx(trained, path)
    exported = load_onnx(path)
    return trained.sampling_rate, *(lambda samples, form=form: score_blocks(form, [samples])[1] for form in (trained, exported))


def compare(rate, *forms):
    """The largest difference of the scores of two forms, on noise whose level changes."""
    import numpy as np

    rng, count = np.random.default_rng(0), round(CHECKED * rate)
    samples = rng.standard_normal(count) * 10 ** np.interp(np.arange(count), np.linspace(0, count, 50), rng.uniform(-4, -1, 50))
    first, second = (form(samples) for form in forms)
    return float(np.abs(first - second).max())
