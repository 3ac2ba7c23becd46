#!/usr/bin/env python3
"""Measure the false-alarm rates of the bundled detector and the statistical system on recordings without speech.

The recordings resemble egs/detector's eval set without speech: switched receiver noise, carriers, hum, modems, alarms, music,
noises and rooms, two minutes each, with music and noises held out from training.

examples:
  utils/bench/false_alarms.py --hours 10 --by-kind
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from functools import partial

from pyspeech.commands.arguments import length, seed, tool_parser
from pyspeech.commands.terminal import exit_after
from steps.benchmark.timing import use_one_thread

SECONDS = 120.0  # of a recording


def recordings(hours, first_seed, split, kinds):
    """Yield samples float32 (N,) at 8 kHz without speech, as many hours, of some kinds of sounds, {kind: weight}."""
    import numpy as np

    from local.detector import scenes as speech_scenes
    from local.synthesis import close_scene

    sounds = speech_scenes.default_sounds(split)
    for number in range(max(1, round(hours * 3600 / SECONDS))):
        rng = np.random.Generator(np.random.PCG64([first_seed, number]))
        take = speech_scenes.Sounds(rng, sounds).take
        yield close_scene.render_without_speech(rng, SECONDS, take, kinds).astype(np.float32)


def share_called(audio, detectors):
    """{name: (share of all recordings, share of the worst)} that each of the detectors, {name: speech segments of samples},
    calls speech."""
    from pyspeech.sad.segments import total

    called = {name: [] for name in detectors}
    for samples in audio:
        for name, detect in detectors.items():
            called[name].append(total(detect(samples)) / SECONDS)
    return {name: (sum(shares) / len(shares), max(shares)) for name, shares in called.items()}


def all_detectors(model):
    """{name: a function of samples that gives speech segments (n, 2)}: the points of a network, and the statistical system."""
    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.detector import SHIPPED, load_scorer
    from pyspeech.sad.segments import frames_to_segments
    from pyspeech.sad.smoothing import find_speech
    from pyspeech.sad.statistical import detect

    scorer, points = load_scorer(model or SHIPPED)
    stft, config, last = scorer.stft_config, StatisticalConfig(), {}

    def scores_of(samples):
        if last.get("samples") is not samples:
            last.update(samples=samples, scores=score_samples(scorer, samples))
        return last["scores"]

    def by_network(point, samples):
        return find_speech(scores_of(samples), point, stft.frame_shift, SECONDS, stft.frame_offset)

    def statistical(samples):
        return frames_to_segments(detect(samples, config.sampling_rate, config).decisions, config.frame_shift, SECONDS)

    return {**{name: partial(by_network, point) for name, point in points.items()}, "statistical": statistical}


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--hours", type=length, default=1.0, help="hours of recordings (default: 1)")
    parser.add_argument(
        "--by-kind", action="store_true", help="also measure each kind of sound separately, on a tenth of the hours"
    )
    parser.add_argument("--model", metavar="FILE", help="ONNX file, or folder of a network (default: the bundled detector)")
    parser.add_argument(
        "--split", choices=("train", "dev", "eval"), default="eval", help="split of music and noises (default: eval)"
    )
    parser.add_argument("--seed", type=seed, default=1, help="random seed of the recordings (default: 1)")
    options = parser.parse_args(arguments)
    use_one_thread()

    from local.synthesis.unspoken import KINDS
    from pyspeech.report.tables import markdown_table, percent

    detectors = all_detectors(options.model)
    parts = {"all": (options.hours, KINDS)}
    if options.by_kind:
        parts |= {kind: (options.hours / len(KINDS), {kind: 1.0}) for kind in KINDS}
    rows = []
    for name, (hours, kinds) in parts.items():
        found = share_called(recordings(hours, options.seed, options.split, kinds), detectors)
        rows.append([name, f"{hours:.2f}", *(percent(share) for shares in found.values() for share in shares)])
    print(f"Called speech, %, of recordings without speech (sounds of {options.split}, seed {options.seed})\n")
    print(markdown_table(["sounds", "hours", *(f"{name}{which}" for name in detectors for which in ("", ", worst"))], rows))


if __name__ == "__main__":
    exit_after(main)
