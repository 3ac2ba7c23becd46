"""Average the weights of detectors of fake speech; calibrate the mean and set its threshold.

The detectors must share their initial training, each fine-tuned differently (start_from=). The mean is often better than
each of them (Wortsman et al. 2022, "Model soups"). Detectors trained from different random weights cannot be averaged.

examples:
  utils/average_detectors.py A/models/rnm_sm_mc0.8/42 B/models/rnm_sm_mc0.8/42 --corpus A/corpus -o averaged
  utils/detect_fake.py message.ogg --model averaged
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import set_up_messages
from pyspeech.errors import UserError


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("models", metavar="DIR", nargs="+", help="folder of a model.pt made by the recipe add2022")
    parser.add_argument(
        "--corpus",
        metavar="DIR",
        required=True,
        help="corpus in an experiment folder of that recipe; its dev set sets calibration and threshold",
    )
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="write model.pt and the scores of dev into DIR")
    return parser


def main(arguments=None):
    options = parser().parse_args(arguments)
    set_up_messages()
    from pyspeech.spoof.scored_cuts import save_calibrated, scorable_cuts

    output = Path(options.output)
    if output.exists() and (not output.is_dir() or (output / "model.pt").exists()):
        raise UserError(f"--output {output}: {'has a model.pt' if output.is_dir() else 'is a file'}; expected a new folder")
    cuts = scorable_cuts(options.corpus, "dev")
    detector = averaged(options.models)
    save_calibrated(output, detector.model, detector.crop, "dev", cuts, logging.getLogger(__name__))
    return 0


def averaged(folders):
    """The Detector of the first folder with the mean of the weights of all; UserError where they do not fit each other."""
    from pyspeech.spoof.checkpoint import load_model
    from pyspeech.training.checkpoint import mean

    if len(folders) < 2:
        raise UserError(f"{folders[0]}: one detector alone; expected two or more")
    first, *others = (load_model(folder) for folder in folders)
    for folder, other in zip(folders[1:], others, strict=False):
        for name, wanted in computed(first).items():
            if computed(other)[name] != wanted:
                raise UserError(
                    f"{folder}: made with {name}={computed(other)[name]}, but {folders[0]} with {wanted}; expected "
                    "trainings from the same start"
                )
    first.model.load_state_dict(mean(detector.model.state_dict() for detector in (first, *others)))
    return first


def computed(detector):
    """{option: value} of what makes a score of audio and weights."""
    features = {f"features.{name}": value for name, value in asdict(detector.model.front_end.config).items()}
    pieces = {f"data.{name}": getattr(detector.crop, name) for name in ("samples", "hop", "short", "whole")}
    return {**features, **pieces, "network.residual": detector.model.config.residual}
