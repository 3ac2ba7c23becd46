"""The last stage of egs/zerospeech: its tables and pictures; `exp` is the engine's Experiment."""
import json

from pyspeech.experiment.process import short_path
from steps.units import figures as units_plots, tables as units_results
from steps.units.corpus import load_cuts
from steps.units.score import read_scores
from steps.units.synthesis import pairs_to_speak

NOTES = {"mini": "Corpus mini: two Czech voices of a game, acted; items from an automatic alignment "
                 "(local/zerospeech_mini.py)."}
PICTURED = (1.5, 4.0)  # seconds: an utterance so long is shown, where there is one


def report(exp, conf):
    """results.json, RESULTS.md and figures/ in the experiment folder."""
    scores = {name: entries for name, entries in read_scores(exp.dir / "scores").items()
              if name in conf.systems or name == "mfcc" or conf.kmeans and name.startswith("kmeans")}
    synthesis = json.loads((exp.dir / "synthesis.json").read_text(encoding="utf-8"))
    draw(exp, conf, scores)
    # Without what differs from run to run.
    measured = {name: value for name, value in synthesis.items() if name != "real_time"}
    note, model = NOTES.get(conf.corpus, f"Corpus {conf.corpus}."), short_path(exp.dir / "models" / "synthesis")
    exp.publish({"scores": scores, "synthesis": measured},
                units_results.report_text(scores, note, exp.command, synthesis, model))


def draw(exp, conf, scores):
    """figures/: abx_bitrate.png where there is ABX, code_usage.png, sentence.png."""
    figures = exp.dir / "figures"
    figures.mkdir(exist_ok=True)
    units_plots.plot_trade_off(scores, figures / "abx_bitrate.png")
    shown = dict.fromkeys([conf.synthesis, *(name for name in conf.repeated if name in scores), *(
        name for name in scores if name.startswith("kmeans"))])
    shares = {name: units_plots.code_shares(exp.dir / "units" / name / str(conf.seeds[0])) for name in shown}
    units_plots.plot_code_usage({name: found for name, found in shares.items() if found}, figures / "code_usage.png")
    draw_sentence(exp, conf, figures / "sentence.png")


def draw_sentence(exp, conf, path):
    """The picture of one utterance, spoken by at most two voices."""
    from pyspeech.audio.io import read_audio
    from pyspeech.cuts import read_samples
    from pyspeech.units.checkpoint import load_pair
    from pyspeech.units.encoding import code_times, encode
    from pyspeech.units.submission import synthesis_names

    vqvae, inverter = load_pair(exp.dir / "models" / "synthesis")
    pairs = pairs_to_speak(exp.dir / "corpus", inverter.speakers, conf.spoken)
    spoken = {name for name, _ in pairs}
    cuts = [cut for cut in load_cuts(exp.dir / "corpus", "test") if cut.id in spoken]
    low, high = PICTURED
    cut = min(cuts, key=lambda cut: (not low <= cut.duration <= high, cut.id))
    rate = vqvae.features.sampling_rate
    samples = read_samples(cut, rate)
    codes, _ = encode(vqvae, samples)
    starts, ends = code_times(vqvae, len(codes), len(samples))
    names = {voice: name for (utterance, voice), name in synthesis_names(pairs).items() if utterance == cut.id}
    voices = {voice: read_audio(exp.dir / "wavs" / names[voice], rate)[0] for voice in sorted(names)[:2]}
    units_plots.plot_sentence(cut.id, samples, units_plots.runs_of(codes.tolist(), starts, ends), voices,
                              vqvae.features.magnitudes, path)
