"""The last stage of a SAD recipe: its tables and figures; `exp` is the engine's Experiment."""
import json
from pathlib import Path

from steps.sad import tables as sad_results
from steps.sad.corpus import load_cuts, scored_sets
from steps.sad.score import with_best_webrtc


def report(exp, conf, collars):
    """results.json, RESULTS.md and figures/ in the experiment folder; prints the tables."""
    from steps.sad.figures import draw_figures

    corpus = exp.dir / "corpus"
    sets = scored_sets(corpus)
    scores = sad_results.score_systems(corpus / "reference", exp.dir / "hypotheses", collars)
    sweeps, speeds = (json.loads((exp.dir / name).read_text()) for name in ("sweeps.json", "speed.json"))
    described = describe_corpus(corpus, conf)
    draw_figures(exp.dir, conf.statistical, sweeps, scores)
    points = {system: {smoothing: {key: found[key] for key in ("threshold", "best_dcf")}
                       for smoothing, found in by_smoothing.items()} for system, by_smoothing in sweeps.items()}
    exp.publish({"corpus": described, "scores": scores, "operating_points": points},
                sad_results.report_text(with_best_webrtc(scores, collars[0]), sets, collars, speeds, described, exp.command))


def describe_corpus(corpus, conf):
    """What the figures were measured on: {"name", "simulated": whether by its nature, set: {"streams", "simulated":
    how many of them, "minutes", "speech": share of the time, None where there are no labels}}."""
    described = {"name": "mini" if conf.corpus == "mini" else Path(conf.corpus).name, "simulated": conf.corpus == "mini"}
    for name in ["train", *scored_sets(corpus)]:
        cuts = load_cuts(corpus, name)
        seconds = sum(cut.duration for cut in cuts)
        speech = sum(segment.duration for cut in cuts for segment in cut.supervisions)
        described[name] = {"streams": len(cuts), "simulated": sum(cut.id.startswith("sim_") for cut in cuts),
                           "minutes": round(seconds / 60, 2),
                           "speech": round(speech / seconds, 4) if any(cut.labelled for cut in cuts) else None}
    return described
