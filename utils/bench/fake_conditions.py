#!/usr/bin/env python3
"""Measure a detector of fake audio on a set as it is, after each codec, and as recorded by simulated devices.

Genuine speech and fakes are changed alike. The rise of the EER shows what the detector no longer hears; the error rates at its
threshold show how well that threshold transfers. White noise is Gaussian, at the given dB below the RMS of the utterance.
Level control divides samples by the square root of the RMS of the 0.1 s around them (at least -60 dB of the highest). Random
numbers depend only on an utterance's place in the manifest.

examples:
  utils/bench/fake_conditions.py --corpus egs/add2022/exp/release/corpus
  utils/bench/fake_conditions.py --corpus egs/add2022/exp/mini/corpus --model egs/add2022/exp/mini/models/rnm_sm/42 --set eval
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from functools import partial

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import exit_after, set_up_messages

QUIETEST = 1e-3  # of the highest RMS: what level control lifts no further


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--corpus", metavar="DIR", required=True, help="corpus in an experiment folder of egs/add2022")
    parser.add_argument("--set", choices=("dev", "adapt", "eval"), default="dev", help="set to score (default: dev)")
    parser.add_argument(
        "--model", metavar="DIR", help="folder of a model.pt made by egs/add2022/run.py (default: the bundled detector)"
    )
    options = parser.parse_args(arguments)
    status = set_up_messages()
    from pyspeech.data.reader import UtteranceReader
    from pyspeech.model_file import find_model
    from pyspeech.report.tables import markdown_table
    from pyspeech.spoof.checkpoint import SHIPPED, load_model
    from pyspeech.spoof.config import KIND
    from pyspeech.spoof.detector import score_samples
    from pyspeech.spoof.formats import label_of
    from pyspeech.spoof.scored_cuts import scorable_cuts

    detector = load_model(find_model(options.model, KIND) if options.model else SHIPPED)
    cuts, rate, rows = scorable_cuts(options.corpus, options.set), detector.sampling_rate, []
    genuine, read = [label_of(cut).genuine for cut in cuts], UtteranceReader(rate, detector.crop.cache_gigabytes)
    for name, change in conditions(rate).items():
        status.show(f"{name} ...")
        rows.append(
            [
                name,
                *figures(
                    [score_samples(detector, change(read(cut), number), rate) for number, cut in enumerate(cuts)],
                    genuine,
                    detector.threshold,
                ),
            ]
        )
    status.clear()
    print(markdown_table(["condition", "EER", "genuine called fake", "fakes called genuine"], rows))


def conditions(rate):
    """{name: change(samples (N,) at `rate` Hz, a number that chance follows from) -> (N,)}."""
    import numpy as np

    from pyspeech.spoof.codecs import CODECS, through_codec

    def codec(name, samples, number):
        return through_codec(samples, rate, np.random.default_rng(number), name)

    return {
        "as it is": lambda samples, number: samples,
        **{name: partial(codec, name) for name in CODECS},
        **{f"white noise {decibels} dB below speech": partial(hissing, decibels) for decibels in (20, 30, 40)},
        "clipped at 0.3 of the peak": clipped,
        "level control that halves decibels": partial(levelled, rate),
    }


def hissing(decibels, samples, number):
    """Samples with white noise so many dB below their RMS."""
    import numpy as np

    from pyspeech.audio.level import mix

    return mix(samples, np.random.default_rng(number).standard_normal(len(samples)), decibels)


def clipped(samples, number):
    """Samples of an amplifier that goes up to 0.3 of their peak."""
    import numpy as np

    limit = 0.3 * np.abs(samples).max(initial=0)
    return np.clip(samples, -limit, limit)


def levelled(rate, samples, number):
    """Samples of which 0.1 s that are 2 dB louder become 1 dB louder."""
    import numpy as np
    from scipy.ndimage import uniform_filter1d

    powers = uniform_filter1d(np.square(samples, dtype=np.float64), rate // 10, mode="reflect").clip(0)
    levels = np.sqrt(powers)
    return samples / np.sqrt(np.maximum(levels, levels.max(initial=0) * QUIETEST).clip(np.finfo(float).tiny))


def figures(scores, genuine, threshold):
    """The cells of a row: EER with its 95 % interval, and the shares in % that `threshold` gets wrong of either kind."""
    import numpy as np

    from pyspeech.report.tables import bracketed, percent
    from pyspeech.spoof.scoring import eer_interval, equal_error_rate

    scores, genuine = np.array(scores), np.array(genuine)
    people, fakes = scores[genuine], scores[~genuine]
    return [
        f"{percent(equal_error_rate(people, fakes)[0], 1)} {bracketed(eer_interval(people, fakes))}",
        percent(np.mean(people < threshold), 0),
        percent(np.mean(fakes >= threshold), 0),
    ]


if __name__ == "__main__":
    exit_after(main)
