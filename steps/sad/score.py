"""What the stages of a SAD recipe do, one function a stage; `exp` is the engine's Experiment."""
from pyspeech.files import write_json
from steps.cuts import load_cuts
from steps.sad import detect
from steps.sad.corpus import scored_sets
from steps.sad.figures import draw_statistical
from steps.sad.tables import table_2

COLLARS = [0.0, 0.5]  # seconds: without, and the Fearless Steps default
WEBRTC_MODES = range(4)
SMOOTHINGS = {"cnn": ["hmm", "median"], "rnn": ["hmm", "median"], "seg_rnn": ["none"]}  # the first is Table 2's


def detect_without_training(exp, config):
    """Hypotheses and scores of the statistical SAD (whole, and the adaptive threshold alone) and of WebRTC; prints their
    table; Figures 2 and 3."""
    corpus, hypotheses = exp.dir / "corpus", exp.dir / "hypotheses"
    for name in scored_sets(corpus):
        cuts = load_cuts(corpus, name)
        exp.log.info("%s: %d streams, %.1f min", name, len(cuts), sum(cut.duration for cut in cuts) / 60)
        detect.detect_statistical(cuts, config, {hypotheses / "statistical" / name: config.decision,
                                                 hypotheses / "threshold" / name: "threshold"})
        detect.detect_webrtc(cuts, {hypotheses / f"webrtc{mode}" / name: mode for mode in WEBRTC_MODES})
    scores = score_systems(exp, ["statistical", "threshold", *(f"webrtc{mode}" for mode in WEBRTC_MODES)])
    draw_statistical(corpus, config, exp.dir / "figures" / "statistical")
    exp.log.info("\n%s", table_2(with_best_webrtc(scores), scored_sets(corpus), COLLARS[0]))


def score_systems(exp, systems):
    """scores/<system>.json of each from its hypotheses: {set: {collar: {dcf, p_miss, p_fa, precision, recall, f1}}},
    fractions; sets without references are left out. Returns {system: the same}."""
    from pyspeech.sad.scoring import score_folders

    scores = {}
    for system in systems:
        scores[system] = {
            reference.name: {f"{collar:g}": score_folders(reference, hypothesis, collar)["overall"] for collar in COLLARS}
            for reference in sorted((exp.dir / "corpus" / "reference").iterdir()) if any(reference.glob("*.txt"))
            for hypothesis in [exp.dir / "hypotheses" / system / reference.name] if hypothesis.is_dir()}
        write_json(exp.dir / "scores" / f"{system}.json", scores[system])
    return scores


def with_best_webrtc(scores):
    """The scores with "webrtc" for the aggressiveness that does best on dev, in place of all four."""
    modes = [f"webrtc{mode}" for mode in WEBRTC_MODES]
    best = min(modes, key=lambda mode: scores[mode]["dev"][f"{COLLARS[0]:g}"]["dcf"])
    return {**{system: by_set for system, by_set in scores.items() if system not in modes}, "webrtc": scores[best]}


def score_networks(exp, systems):
    """Frame scores of every network: frame_scores/<system>/<set>/<recording>.npy."""
    from tqdm import tqdm

    from pyspeech.compat import default_device
    from pyspeech.sad.checkpoint import load_model

    corpus = exp.dir / "corpus"
    for system in systems:
        model = load_model(exp.dir / "training" / system, default_device())
        for name in scored_sets(corpus):
            exp.log.info("%s: %s", system, name)
            detect.score_streams(model, load_cuts(corpus, name), exp.dir / "frame_scores" / system / name,
                                 lambda cuts: tqdm(cuts, unit="stream", disable=None))


def tune_thresholds(exp, systems):
    """The threshold with the lowest DCF on dev for each system and smoothing; hypotheses of all sets at it, their scores.

    The network with its threshold and smoothing is models/<system>/model.pt, which utils/detect_speech.py takes.
    """
    from pyspeech.sad.checkpoint import load_model, save_model

    corpus, scores = exp.dir / "corpus", exp.dir / "frame_scores"
    dev = load_cuts(corpus, "dev")
    sweeps = {}
    for system in systems:
        model = load_model(exp.dir / "training" / system)
        frame_shift = model.stft.config.frame_shift
        for smoothing in SMOOTHINGS[system]:
            found = detect.sweep_scores([detect.read_scores(scores / system / "dev", cut) for cut in dev], dev,
                                        corpus / "reference" / "dev", smoothing, frame_shift)
            exp.log.info("%s, smoothing %s: threshold %.3f, dev DCF %.2f %%", system, smoothing, found.threshold,
                         100 * found.best_dcf)
            sweeps.setdefault(system, {})[smoothing] = {
                "thresholds": found.thresholds.tolist(), "dcf": found.dcf.tolist(),
                "threshold": found.threshold, "best_dcf": found.best_dcf}
        used = SMOOTHINGS[system][0]
        threshold = sweeps[system][used]["threshold"]
        save_model(exp.dir / "models" / system, model, threshold, used)
        for name in scored_sets(corpus):
            detect.detect_network(load_cuts(corpus, name), scores / system / name, frame_shift, threshold, used,
                                  exp.dir / "hypotheses" / system / name)
    score_systems(exp, systems)
    write_json(exp.dir / "sweeps.json", sweeps)


def measure_speed(exp, config, systems):
    """Process time over audio time on one thread, from samples in memory to decisions, on the longest stream of dev."""
    import time

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
        speeds = {"statistical": fraction(lambda: detect_statistical(samples, rate, config))}
        for system in systems:
            model = load_model(exp.dir / "models" / system)
            speeds[system] = fraction(lambda: decide(score_samples(model, samples), model.threshold, model.smoothing))
    finally:
        torch.set_num_threads(threads)
        blas.restore_original_limits()
    for system, value in speeds.items():
        exp.log.info("%s: %.5f of real time on one thread", system, value)
    write_json(exp.dir / "speed.json", speeds)
