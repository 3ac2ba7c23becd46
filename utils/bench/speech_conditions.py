#!/usr/bin/env python3
"""Error rates of a transducer on a test set as it is, and behind silence, in noise, softer, joined and streamed.

Each utterance is recognised as `transcribe` does, without its language where the model can tell. Its floor is noise of the
spectrum and level of its quietest 0.1 s; white noise lies so far below the RMS of the utterance. Joined: three utterances of a
language, their floor for a second around each, as a recording and streamed. What is random follows from an utterance's place.

examples:
  utils/bench/speech_conditions.py --corpus egs/indic/exp/quick/corpus --model egs/indic/exp/quick/models/multi_softmax_lid
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import exit_after, set_up_messages

JOINED = 3  # utterances of a stream
BLOCK = 0.3  # seconds that a stream brings at a time


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--corpus", metavar="DIR", required=True, help="corpus in an experiment folder of egs/indic")
    parser.add_argument("--model", metavar="DIR", required=True, help="folder of a model.pt that egs/indic/run.py made")
    parser.add_argument("--set", choices=("dev", "test"), default="test", help="which of its sets (default: test)")
    parser.add_argument("--no-vad", action="store_true", help="recognise all audio, not only what the speech detector finds")
    options = parser.parse_args(arguments)
    status = set_up_messages()
    from pyspeech.asr.api import Recognizer
    from pyspeech.asr.config import KIND
    from pyspeech.errors import UserError
    from pyspeech.model_file import find_model
    from pyspeech.report.tables import markdown_table
    from steps.benchmark.recognition import read_set

    recognizer = Recognizer.load(find_model(options.model, KIND), vad=not options.no_vad)
    utterances = read_set(options.corpus, options.set, recognizer.languages, recognizer.sampling_rate)
    if not utterances:
        raise UserError(f"--corpus {options.corpus}: no {options.set} utterance in a language of the model")
    rows = []
    for name, change in conditions(recognizer.sampling_rate).items():
        status.show(f"{name} ...")
        rows.append([name, *figures(recognise(recognizer, utterances, change))])
    status.show("joined ...")
    rows.append(["joined in threes", *figures(recognise(recognizer, join(recognizer, utterances), lambda samples: samples))])
    rows.append(["joined in threes, streamed", *figures(stream(recognizer, join(recognizer, utterances)))])
    status.clear()
    print(markdown_table(["condition", "WER", "utterances of the right language"], rows))


def conditions(rate):
    """{name: change(samples (N,) at `rate` Hz) -> (M,)}; chance is numpy's global generator's."""
    import numpy as np

    from pyspeech.asr.surroundings import at_level, coloured, floor_noise
    from pyspeech.audio.level import power

    def floor(seconds, before=True):
        def change(samples):
            pause = floor_noise(samples, round(seconds * rate), rate)
            return np.concatenate([pause, samples] if before else [samples, pause])

        return change

    def white(seconds, level):
        return lambda samples: np.concatenate([at_level(coloured(round(seconds * rate), rate, 0.0), level), samples])

    def in_noise(decibels):
        def change(samples):
            level = 10 * np.log10(max(power(samples), 1e-30))
            return samples + at_level(coloured(len(samples), rate, 0.0), level - decibels)

        return change

    return {
        "as it is": lambda samples: samples,
        "0.5 s of its floor before": floor(0.5),
        "1 s of its floor before": floor(1.0),
        "0.5 s of white noise of -80 dB before": white(0.5, -80.0),
        "1 s of white noise of -50 dB before": white(1.0, -50.0),
        "1 s of zeros before": lambda samples: np.concatenate([np.zeros(rate, np.float32), samples]),
        "2 s of zeros before": lambda samples: np.concatenate([np.zeros(2 * rate, np.float32), samples]),
        "1 s of its floor behind": floor(1.0, before=False),
        "white noise 20 dB below": in_noise(20.0),
        "white noise 10 dB below": in_noise(10.0),
        "20 dB softer": lambda samples: samples * np.float32(0.1),
        "40 dB softer": lambda samples: samples * np.float32(0.01),
    }


def recognise(recognizer, utterances, change):
    """Recognise utterances as `change` makes them: the input of `score_utterances`."""
    import numpy as np

    heard = []
    for number, (_, _, _, samples) in enumerate(utterances):
        np.random.seed(number)
        heard.append(change(samples))
    results = recognizer.transcribe([(samples, recognizer.sampling_rate) for samples in heard])
    return [
        (name, language, None, text, result.text, result.language)
        for (name, language, text, _), result in zip(utterances, results, strict=True)
    ]


def join(recognizer, utterances):
    """Utterances joined in threes of a language, with a second of their floor around each: as of `read_set`."""
    import numpy as np

    from pyspeech.asr.surroundings import floor_noise

    joined, rate = [], recognizer.sampling_rate
    for language in dict.fromkeys(one[1] for one in utterances):
        own = [one for one in utterances if one[1] == language]
        for first in range(0, len(own), JOINED):
            some, pieces = own[first : first + JOINED], []
            np.random.seed(first)
            for _, _, _, samples in some:
                pieces += [floor_noise(samples, rate, rate), samples]
            samples = np.concatenate([*pieces, floor_noise(some[-1][3], rate, rate)])
            joined.append((some[0][0], language, " ".join(one[2] for one in some), samples))
    return joined


def stream(recognizer, utterances):
    """Recognise utterances streamed with endpoints, the language untold: the input of `score_utterances`."""
    scored, size = [], round(BLOCK * recognizer.sampling_rate)
    for name, language, text, samples in utterances:
        blocks = (samples[start : start + size] for start in range(0, len(samples), size))
        found = " ".join(result.text for result, _ in recognizer.segments(blocks) if result.final and result.text)
        scored.append((name, language, None, text, found, None))
    return scored


def figures(scored):
    """The cells of a row: WER in % with its 95 % interval, how many utterances have the right language, where it is told."""
    from pyspeech.text.wer import score_utterances
    from steps.benchmark.recognition import wer_cell

    average = score_utterances(scored)["average"]
    told = any(predicted for *_, predicted in scored)
    right = sum(language == predicted for _, language, _, _, _, predicted in scored)
    return [wer_cell(average), f"{right} of {len(scored)}" if told else None]


if __name__ == "__main__":
    exit_after(main)
