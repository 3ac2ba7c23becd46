"""Measurements of SAD recipes, one function per stage; `exp` is the engine's Experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.engine.process import model_processes
from pyspeech.files import write_json
from pyspeech.sad.registry import NETWORKS
from steps.chance import warn
from steps.sad import detect
from steps.sad.corpus import scored_sets
from steps.sad.options import timed
from steps.sad.systems import FIXED, STATISTICAL, votes_of
from steps.sad.tables import chance_notes
from steps.sad.vote import tune_vote

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment
    from pyspeech.features.config import StftConfig
    from pyspeech.sad.thresholds import Sweep


def hypotheses(exp: Experiment, system: str, collar: float | None = None) -> Path:
    """The folder of a system's hypotheses, with a folder for each set; of those with a threshold, at that for a collar."""
    folder = exp.dir / "hypotheses" / system
    return folder if collar is None else folder / f"collar_{collar:g}"


def score_systems(exp: Experiment, systems: Iterable[str], collars: Sequence[float]) -> dict[str, Any]:
    """scores/<system>.json of each from its hypotheses: {set: {collar: {dcf, p_miss, p_fa, precision, recall, f1}}},
    fractions; sets without references are left out. Returns {system: the same}."""
    from pyspeech.sad.scoring import score_files

    scores = {}
    for system in systems:
        folders = {collar: hypotheses(exp, system, None if system in FIXED else collar) for collar in collars}
        scores[system] = {
            reference.name: {
                f"{collar:g}": score_files(reference, folder / reference.name, collar)["overall"]
                for collar, folder in folders.items()
            }
            for reference in sorted((exp.dir / "corpus" / "reference").iterdir())
            if any(reference.glob("*.txt")) and (folders[collars[0]] / reference.name).is_dir()
        }
        write_json(exp.dir / "scores" / f"{system}.json", scores[system])
    return scores


def keep_sweeps(
    exp: Experiment, system: str, by_smoothing: Mapping[str, Sequence[Sweep]], collars: Sequence[float]
) -> dict[float, float]:
    """Write sweeps/<system>.json: {smoothing: {collar: {thresholds, dcf, p_miss, p_fa, threshold, best_dcf}}}. by_smoothing:
    {smoothing: a Sweep for each of the collars}, the system's own smoothing first; returns {collar: its threshold}."""
    for smoothing, found in by_smoothing.items():
        for collar, sweep in zip(collars, found, strict=True):
            exp.log.info(
                "%s, smoothing %s, collar %g s: threshold %.3f, dev DCF %.2f %%",
                system,
                smoothing,
                collar,
                sweep.threshold,
                100 * sweep.best_dcf,
            )
    write_json(
        exp.dir / "sweeps" / f"{system}.json",
        {
            smoothing: {
                f"{collar:g}": {
                    "thresholds": sweep.thresholds.tolist(),
                    "dcf": sweep.dcf.tolist(),
                    **{name: rate.tolist() for name in ("p_miss", "p_fa") if (rate := getattr(sweep, name)) is not None},
                    "threshold": sweep.threshold,
                    "best_dcf": sweep.best_dcf,
                }
                for collar, sweep in zip(collars, found, strict=True)
            }
            for smoothing, found in by_smoothing.items()
        },
    )
    own = next(iter(by_smoothing.values()))
    return {collar: sweep.threshold for collar, sweep in zip(collars, own, strict=True)}


def score_networks(exp: Experiment, conf: Any, systems: Sequence[str] | None = None) -> None:
    """Scores of every network for every frame of dev and the eval sets.

    Frame scores of every network, by default those of `conf`: frame_scores/<system>/<set>/<recording>.npy. A stage that was
    killed goes on with the streams that are missing.
    """
    from pyspeech.compat import default_device
    from pyspeech.sad.checkpoint import load_model

    corpus, systems = exp.dir / "corpus", systems or conf.systems
    models = {system: load_model(exp.dir / "training" / system, default_device()) for system in systems}  # pyright: ignore[reportOptionalIterable]
    parts = {
        f"{system} {name} {cut.recording_id}": (system, name, cut)
        for system in systems  # pyright: ignore[reportOptionalIterable]
        for name in scored_sets(corpus)
        for cut in load_cuts(corpus, name)
    }

    def path(part):
        system, name, cut = part
        return exp.dir / "frame_scores" / system / name / f"{cut.recording_id}.npy"

    in_parts(
        exp.parts,
        "streams",
        lambda part: detect.write_scores(models[part[0]], part[2], path(part)),
        parts,
        model_processes(),
        files=lambda part: [path(part)],
        log=exp.log,
    )


def tune_thresholds(exp: Experiment, conf: Any) -> None:
    """Thresholds from dev (Figure 6); decisions of each network and of their majority, and their scores.

    The threshold tuned on dev for each network, smoothing and collar, and those for their majority;
    hypotheses of all sets at them, and their scores.

    The network with its smoothing and its threshold for the first collar is models/<system>/model.pt, which
    utils/detect_speech.py takes.
    """
    from pyspeech.sad.checkpoint import load_model, save_model
    from pyspeech.sad.thresholds import sweep

    corpus, scores, systems, collars = exp.dir / "corpus", exp.dir / "frame_scores", conf.systems, conf.collars
    models = {system: load_model(exp.dir / "training" / system) for system in systems}
    stft = next(iter(models.values())).stft.config

    def sweep_stream(system, smoothing, cut, references, durations):
        found = [detect.read_scores(scores / system / "dev", cut)]
        return sweep(found, references, durations, smoothing, collars, stft.frame_shift, stft.frame_offset)

    found = detect.sweeps_in_parts(
        "thresholds",
        load_cuts(corpus, "dev"),
        {
            f"{system} {smoothing}": partial(sweep_stream, system, smoothing)
            for system in systems
            for smoothing in NETWORKS[system].smoothings
        },
        exp,
    )
    deciders = {collar: {} for collar in collars}
    for system, model in models.items():
        thresholds = keep_sweeps(
            exp, system, {smoothing: found[f"{system} {smoothing}"] for smoothing in NETWORKS[system].smoothings}, collars
        )
        save_model(exp.dir / "models" / system, model, thresholds[collars[0]], NETWORKS[system].smoothings[0])
        for collar in collars:
            deciders[collar][system] = [(scores / system, thresholds[collar], NETWORKS[system].smoothings[0])]
    if votes := votes_of(systems):
        add_votes(exp, deciders, stft, *votes)
    for name in scored_sets(corpus):
        cuts = load_cuts(corpus, name)
        for collar, by_system in deciders.items():
            for system, voters in by_system.items():
                detect.detect_networks(cuts, name, voters, stft, hypotheses(exp, system, collar) / name, exp.parts)
    warn(exp.log, chance_notes(score_systems(exp, [*systems, *votes], collars), collars[0]))


def add_votes(exp: Experiment, deciders: dict[float, Any], stft: StftConfig, own: str, together: str) -> None:
    """Add the majorities by the networks' own thresholds, and by thresholds tuned together, which go to sweeps/<together>.json.

    deciders: {collar: {network: [its one voter]}}, to be extended.
    """
    tuned = {}
    for collar, by_system in deciders.items():
        systems, voters = list(by_system), [voters[0] for voters in by_system.values()]
        by_system[own] = voters
        by_system[together], dcf = tune_vote(exp, voters, stft, collar)
        points = {system: threshold for system, (_, threshold, _) in zip(systems, by_system[together], strict=True)}
        tuned[f"{collar:g}"] = {"threshold": points, "best_dcf": dcf}
        exp.log.info("majority, collar %g s: thresholds %s, dev DCF %.2f %%", collar, points, 100 * dcf)
    write_json(exp.dir / "sweeps" / f"{together}.json", {"majority": tuned})


def measure_speed(exp: Experiment, conf: Any) -> None:
    """Real-time factor on one thread (Table 3).

    speed.json of the statistical systems and of the networks of Table 3: process time over audio time on one thread, from
    samples in memory to decisions, on the longest stream of dev.
    """
    import time
    from dataclasses import replace

    import torch
    from threadpoolctl import threadpool_limits

    from pyspeech.audio.io import read_audio
    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.smoothing import decide
    from pyspeech.sad.statistical import detect as detect_statistical

    cut = max(load_cuts(exp.dir / "corpus", "dev"), key=lambda cut: cut.duration)
    samples, rate = read_audio(detect.cut_path(cut), detect.SAMPLING_RATE)

    def fraction(run):
        run()  # the first run pays for memory and plans
        begun = time.process_time()
        run()
        return (time.process_time() - begun) / (len(samples) / rate)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    blas = threadpool_limits(1)  # numpy's own threads, whose waiting for each other counts as process time too
    try:
        speeds = {
            system: fraction(lambda: detect_statistical(samples, rate, replace(conf.statistical, voicing=voicing)))
            for system, voicing in STATISTICAL.items()
        }
        for system in timed(conf):
            model = load_model(exp.dir / "models" / system)
            speeds[system] = fraction(lambda: decide(score_samples(model, samples), model.threshold, model.smoothing))  # pyright: ignore[reportArgumentType]
    finally:
        torch.set_num_threads(threads)
        blas.restore_original_limits()
    for system, value in speeds.items():
        exp.log.info("%s: %.5f of real time on one thread", system, value)
    write_json(exp.dir / "speed.json", speeds)
