"""The detectors of a SAD recipe that train nothing: statistical SAD, GMM baseline, WebRTC; `exp` is the engine's Experiment."""
from steps.cuts import load_cuts
from steps.sad import detect
from steps.sad.corpus import scored_sets
from steps.sad.figures import draw_statistical
from steps.sad.score import hypotheses, keep_sweeps, score_systems
from steps.sad.systems import FIXED, TUNED, WEBRTC
from steps.sad.tables import table_2, with_best_webrtc

NUM_RATIOS = 81  # log-likelihood ratios that are tried as threshold of the statistical SAD


def detect_without_training(exp, config, collars):
    """Hypotheses and scores of the statistical SAD (its threshold from dev, 0, and the adaptive threshold alone), of the
    baseline and of WebRTC; prints their table; Figures 2 and 3. config: StatisticalConfig."""
    corpus = exp.dir / "corpus"
    ratios = tune_statistical(exp, config, collars)
    direction, places = tune_baseline(exp, collars)
    for name in scored_sets(corpus):
        cuts = load_cuts(corpus, name)
        exp.log.info("%s: %d streams, %.1f min", name, len(cuts), sum(cut.duration for cut in cuts) / 60)
        detect.detect_statistical(cuts, config, {
            **{hypotheses(exp, "statistical", collar) / name: (config.decision, ratios[collar]) for collar in collars},
            hypotheses(exp, "untuned") / name: (config.decision, 0.0), hypotheses(exp, "threshold") / name: ("threshold", 0.0)})
        detect.detect_baseline(cuts, direction, {hypotheses(exp, "baseline", collar) / name: places[collar]
                                                 for collar in collars})
        detect.detect_webrtc(cuts, {hypotheses(exp, system) / name: mode for mode, system in enumerate(WEBRTC)})
    scores = score_systems(exp, TUNED + FIXED, collars)
    draw_statistical(corpus, config, exp.dir / "figures" / "statistical")
    exp.log.info("\n%s", table_2(with_best_webrtc(scores), scored_sets(corpus), collars[0]))


def tune_statistical(exp, config, collars):
    """{collar: the log-likelihood ratio with the lowest DCF on dev}; sweeps/statistical.json."""
    import numpy as np

    from pyspeech.audio.io import stream_audio
    from pyspeech.sad.statistical import detect_stream
    from pyspeech.sad.thresholds import sweep_decisions

    dev = load_cuts(exp.dir / "corpus", "dev")
    ratios = np.linspace(-config.largest_ratio, config.largest_ratio, NUM_RATIOS)
    detections = (detect_stream(stream_audio(detect.cut_path(cut), detect.SAMPLING_RATE), config) for cut in dev)
    decisions = ((detection.decide(ratio) for ratio in ratios.tolist()) for detection in detections)
    found = sweep_decisions(decisions, ratios, *detect.labels_of_dev(exp, dev), collars, config.frame_shift)
    return keep_sweeps(exp, "statistical", {config.decision: found}, collars)


def tune_baseline(exp, collars):
    """The direction of the principal component on dev, and {collar: the threshold with the lowest DCF there};
    sweeps/baseline.json."""
    from pyspeech.sad.combo import combo_scores, principal_direction
    from pyspeech.sad.thresholds import sweep

    dev = load_cuts(exp.dir / "corpus", "dev")
    features = [detect.baseline_features(cut) for cut in dev]
    direction = principal_direction(features)
    scores = (combo_scores(each, direction) for each in features)
    found = sweep(scores, *detect.labels_of_dev(exp, dev), "none", collars)
    return direction, keep_sweeps(exp, "baseline", {"none": found}, collars)
