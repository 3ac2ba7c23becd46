"""Write a SAD network that egs/fearless/run.py trained as one ONNX file, which carries its options, threshold and smoothing.

utils/detect_speech.py takes such a file, and of a folder with model.pt and model.onnx the latter: it needs no torch, starts
sooner and computes faster. The scores are the same up to rounding; by how much they differ on made-up audio is printed.

examples:
  utils/export_onnx.py egs/fearless/exp/mini/models/rnn           # rnn/model.onnx, beside model.pt
  utils/export_onnx.py egs/fearless/exp/mini/models/rnn -o radio.onnx
"""

from __future__ import annotations

from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.errors import UserError
from pyspeech.files import atomic_path
from pyspeech.model_file import ONNX_FILE, find_model

CHECKED = 30.0  # seconds of audio
LARGEST_DIFFERENCE = 1e-4  # between the two forms' scores


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("model", metavar="DIR", help="folder of a trained network, or the model.pt in it")
    parser.add_argument("-o", "--output", metavar="FILE", help=f"the file to write (default: DIR/{ONNX_FILE})")
    return parser


def main(arguments=None):
    options = parser().parse_args(arguments)
    folder = find_model(options.model, "SAD network")
    path = Path(options.output or folder / ONNX_FILE)
    if path.suffix != ".onnx":
        raise UserError(f"-o {path}: expected a name that ends in .onnx")
    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.config import OperatingPoint
    from pyspeech.sad.onnx_export import export_onnx

    model = load_model(folder)
    with atomic_path(path) as temporary:  # utils/detect_speech.py would take a wrong one too
        export_onnx(model, temporary, {"default": OperatingPoint(model.threshold, model.smoothing)})
        difference = compare(model, temporary)
        if not difference <= LARGEST_DIFFERENCE:
            raise UserError(
                f"{path}: its scores would differ from those of {folder} by {difference:.1e}; expected at most "
                f"{LARGEST_DIFFERENCE:g}; not written"
            )
    print(f"{path}: {path.stat().st_size / 1024:.0f} KB; scores differ from torch's by {difference:.1e} at most")


def compare(model, path):
    """The largest difference of the scores in torch and in ONNX Runtime, on noise whose level changes."""
    import numpy as np

    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.onnx_network import OnnxNetwork

    rng = np.random.default_rng(0)
    count = round(CHECKED * model.stft.config.sampling_rate)
    samples = rng.standard_normal(count) * 10 ** np.interp(np.arange(count), np.linspace(0, count, 50), rng.uniform(-4, -1, 50))
    found = [score_samples(form, samples) for form in (model, OnnxNetwork(path))]
    return float(np.abs(found[0] - found[1]).max())
