"""`utils/detect_fake.py --calibrate`: calibration and threshold of a detector by labelled recordings, without training."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from pyspeech.commands.terminal import process_each, shown_name, some
from pyspeech.errors import UserError
from pyspeech.model_file import MODEL_FILE, ONNX_FILE, find_model
from pyspeech.spoof.config import KIND


def calibrate(options, recordings, status, judge):
    """Score the recordings, fit to their labels, and write what --model finds then. Returns the exit status.

    judge(recording, detector) -> FakeScore.
    """
    from pyspeech.spoof.api import FakeDetector
    from pyspeech.spoof.label_files import read_labels
    from pyspeech.spoof.own_calibration import fit_own, save_own
    from pyspeech.spoof.score_files import match_scores

    labels = read_labels(options.calibrate)
    model = place(options)
    detector, scores = FakeDetector(model, force=True, own_calibration=False, device=options.device), {}

    def work(recording, shown):
        found = judge(recording, detector)
        scores[shown_name(recording)] = detector.detector.calibration.score(found.score)

    failed = process_each(recordings, work, status, "scored")
    if failed == 130:
        raise KeyboardInterrupt
    matched = match_scores(scores, labels, "INPUT")
    sides = {"labels without a recording": (labels, matched), "recordings without a label": (matched, labels)}
    for what, (these, others) in sides.items():
        if alone := sorted(these.keys() - others.keys()):
            logging.warning("%s: %s: %s", options.calibrate, what, some(alone))
    own = fit_own(matched, labels)
    if options.output:
        Path(options.output).mkdir(parents=True, exist_ok=True)
        model = Path(shutil.copy(model, options.output))
    path = save_own(model, own)
    print(
        f"{own.genuine} genuine and {own.fake} fake recordings: EER {100 * own.eer:.1f} %, Cllr {own.cllr:.3f} bit on these "
        f"themselves; written to {path}, use: --model {path.parent}"
    )
    return failed


def place(options):
    """The file of the model; UserError where a calibration would have no place."""
    from pyspeech.spoof.onnx_network import SHIPPED

    if options.model:
        folder = find_model(options.model, KIND, ((MODEL_FILE,), (ONNX_FILE,)))
        return folder / MODEL_FILE if (folder / MODEL_FILE).is_file() else folder / ONNX_FILE
    if not options.output:
        raise UserError("--calibrate: the bundled detector stays as it is; name a folder for a calibrated copy: -o DIR")
    return SHIPPED
