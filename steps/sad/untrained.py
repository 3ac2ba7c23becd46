"""The detectors of a SAD recipe that train nothing: statistical SAD, GMM baseline, WebRTC; `exp` is the engine's Experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from steps.sad import detect
from steps.sad.corpus import scored_sets
from steps.sad.figures import draw_statistical
from steps.sad.score import hypotheses, keep_sweeps, score_systems
from steps.sad.systems import FIXED, STATISTICAL, TUNED, WEBRTC
from steps.sad.tables import table_2, with_best_webrtc

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.engine.run import Experiment
    from pyspeech.sad.config import StatisticalConfig

NUM_RATIOS = 81  # log-likelihood ratios that are tried as threshold of the statistical SAD


def detect_without_training(exp: Experiment, conf: Any) -> None:
    """Statistical SAD, GMM baseline and WebRTC on every set; Figures 2 and 3.

    Hypotheses and scores of the statistical SAD, the paper's and with voicing (thresholds from dev, and 0; the adaptive
    threshold alone), of the baseline and of WebRTC; prints their table; Figures 2 and 3.
    """
    corpus, config, collars = exp.dir / "corpus", conf.statistical, conf.collars
    configs = {system: replace(config, voicing=voicing) for system, voicing in STATISTICAL.items()}
    ratios = {system: tune_statistical(exp, system, configs[system], collars) for system in STATISTICAL}
    plain, voicing = configs.values()
    fixed = {"untuned": plain, "voicing_untuned": voicing, "threshold": replace(plain, decision="threshold")}
    direction, places = tune_baseline(exp, collars)
    for name in scored_sets(corpus):
        cuts = load_cuts(corpus, name)
        exp.log.info("%s: %d streams, %.1f min", name, len(cuts), sum(cut.duration for cut in cuts) / 60)
        detect.detect_statistical(
            cuts,
            voicing,
            {
                **{
                    hypotheses(exp, system, collar) / name: (configs[system], ratios[system][collar])
                    for system in STATISTICAL
                    for collar in collars
                },
                **{hypotheses(exp, system) / name: (each, 0.0) for system, each in fixed.items()},
            },
            exp.parts,
        )
        detect.detect_baseline(
            cuts, direction, {hypotheses(exp, "baseline", collar) / name: places[collar] for collar in collars}, exp.parts
        )
        detect.detect_webrtc(cuts, {hypotheses(exp, system) / name: mode for mode, system in enumerate(WEBRTC)}, exp.parts)
    scores = score_systems(exp, TUNED + FIXED, collars)
    draw_statistical(corpus, config, exp.dir / "figures" / "statistical")
    exp.log.info("\n%s", table_2(with_best_webrtc(scores), scored_sets(corpus), collars[0]))


def tune_statistical(exp: Experiment, system: str, config: StatisticalConfig, collars: Sequence[float]) -> dict[float, float]:
    """{collar: the log-likelihood ratio tuned on dev}; sweeps/<system>.json."""
    import numpy as np

    from pyspeech.sad.statistical import detect_stream
    from pyspeech.sad.thresholds import sweep_decisions

    ratios = np.linspace(-config.largest_ratio, config.largest_ratio, NUM_RATIOS)

    def sweep(cut, references, durations):
        detection = detect_stream(detect.blocks(cut), config)
        decisions = [detection.decide_each(ratios.tolist())]
        return sweep_decisions(decisions, ratios, references, durations, collars, config.frame_shift)

    found = detect.sweep_in_parts(f"tuning of {system}", load_cuts(exp.dir / "corpus", "dev"), sweep, exp)
    return keep_sweeps(exp, system, {config.decision: found}, collars)


def tune_baseline(exp: Experiment, collars: Sequence[float]) -> tuple[np.ndarray, dict[float, float]]:
    """The direction of the principal component on dev, and {collar: the threshold tuned there};
    sweeps/baseline.json."""
    from pyspeech.sad.combo import combo_scores, principal_direction
    from pyspeech.sad.thresholds import sweep

    dev = load_cuts(exp.dir / "corpus", "dev")
    streams = {cut.recording_id: cut for cut in dev}
    features = list(in_parts(exp.parts, "features of baseline", detect.baseline_features, streams).values())
    direction = principal_direction(features)
    scores = (combo_scores(each, direction) for each in features)
    found = sweep(scores, *detect.labels_of_dev(exp, dev), "none", collars)
    return direction, keep_sweeps(exp, "baseline", {"none": found}, collars)
