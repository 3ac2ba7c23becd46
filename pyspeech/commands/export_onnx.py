"""Export a trained model as ONNX: a detector for these tools, or a transducer for sherpa-onnx.

A detector of speech or of fake speech becomes one file with its options and threshold. utils/detect_speech.py and
utils/detect_fake.py take the file as --model and do not need PyTorch then. In a folder with model.pt and model.onnx,
utils/detect_speech.py uses the latter. Scores are equal up to rounding; the largest difference on noise is printed.

With --format sherpa-onnx, each language of a transducer of the recipe indic becomes a folder of encoder.onnx, decoder.onnx,
joiner.onnx and tokens.txt, which sherpa-onnx runs as a streaming NeMo transducer. Its features are those of models trained
with features.kind=nemo; from others, which are approximated, its texts can differ a little.

examples:
  utils/export_onnx.py exp/mini/models/rnn           # rnn/model.onnx, beside model.pt
  utils/export_onnx.py exp/mini/models/rnm_sm/42 -o fakes.onnx
  utils/export_onnx.py exp/mini/models/multi_softmax_lid --format sherpa-onnx --language hi-IN -o hindi
"""

from __future__ import annotations

from pathlib import Path

from pyspeech.asr.config import KIND as TRANSDUCER, language_among
from pyspeech.commands.arguments import tool_parser
from pyspeech.errors import UserError
from pyspeech.files import atomic_path
from pyspeech.model_file import ONNX_FILE, find_model, kind_of
from pyspeech.sad.config import KIND
from pyspeech.spoof.config import KIND as FAKES

CHECKED = 30.0  # seconds of audio
LARGEST_DIFFERENCE = 1e-4  # between the two forms' scores
LARGEST_LOGITS = 1e-3  # likewise, of a transducer
ONNX, SHERPA = "onnx", "sherpa-onnx"


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("model", metavar="DIR", help="folder of a trained network, or the model.pt in it")
    parser.add_argument("--format", choices=(ONNX, SHERPA), default=ONNX, help=f"{ONNX} (detectors, default) or {SHERPA}")
    parser.add_argument("--language", metavar="CODE", help=f"{SHERPA}: the language to export (default: each, in a folder)")
    parser.add_argument(
        "-o", "--output", metavar="PATH", help=f"the file to write (default: DIR/{ONNX_FILE}), or the folder (DIR/{SHERPA})"
    )
    return parser


def main(arguments=None):
    options = parser().parse_args(arguments)
    folder = find_model(options.model, TRANSDUCER if options.format == SHERPA else KIND, option="DIR")
    kind = kind_of(folder)
    if (kind == TRANSDUCER.name) != (options.format == SHERPA):
        fitting = (
            f"add --format {SHERPA}" if kind == TRANSDUCER.name else f"leave out --format {SHERPA}, which is for transducers"
        )
        raise UserError(
            f"{folder}: a {kind or 'model of no kind'} cannot be exported with --format {options.format}; {fitting}"
        )
    if options.language and options.format != SHERPA:
        raise UserError(f"--language {options.language}: is for --format {SHERPA}; leave it out")
    return export_transducer(options, folder) if kind == TRANSDUCER.name else export_detector(options, folder, kind)


def export_detector(options, folder, kind):
    path = Path(options.output or folder / ONNX_FILE)
    if path.suffix != ".onnx":
        raise UserError(f"-o {path}: expected a name that ends in .onnx")
    export = export_spoof if kind == FAKES.name else export_sad
    with atomic_path(path) as temporary:  # utils/detect_speech.py would take a wrong one too
        forms = export(folder, temporary)
        difference = compare(*forms)
        if not difference <= LARGEST_DIFFERENCE:
            raise UserError(
                f"{path}: its scores would differ from those of {folder} by {difference:.1e}; expected at most "
                f"{LARGEST_DIFFERENCE:g}; not written"
            )
    print(f"{path}: {path.stat().st_size / 1024:.0f} KB; scores differ from torch's by {difference:.1e} at most")


def export_transducer(options, folder):
    """Write a folder for each language, or for that of --language."""
    output = Path(options.output or folder / SHERPA)
    if output.suffix == ".onnx":
        raise UserError(f"-o {output}: expected the name of a folder; {SHERPA} takes several files")
    from pyspeech.asr.checkpoint import load_model
    from pyspeech.asr.sherpa_export import check_exportable, export_sherpa, largest_difference

    bundle = load_model(folder)
    check_exportable(bundle)
    languages = bundle.model.languages
    if options.language:
        languages = [language_among(options.language, languages)]
    for language in languages:
        place = output if options.language and options.output else output / language
        export_sherpa(bundle, language, place)
        difference = largest_difference(bundle, language, place)
        if not difference <= LARGEST_LOGITS:
            raise UserError(
                f"{place}: its logits differ from those of {folder} by {difference:.1e}; expected at most {LARGEST_LOGITS:g}; "
                "do not use it"
            )
        size = sum(path.stat().st_size for path in place.iterdir()) / 1024
        print(f"{place}: {size:.0f} KB; logits differ from torch's by {difference:.1e} at most")
    if bundle.fbank.kind != "nemo":
        print("features.kind=kaldi: sherpa-onnx's features only come near; train with features.kind=nemo for the same texts")
    if bundle.search.symbol_bonus:
        print(f"symbol bonus {bundle.search.symbol_bonus:g}: give sherpa-onnx blank_penalty={bundle.search.symbol_bonus:g}")


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
