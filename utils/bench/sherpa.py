#!/usr/bin/env python3
"""Compare streamed recognition in sherpa-onnx with ours, on test utterances of a corpus of egs/indic.

Each language of the model is exported. Both searches are greedy and are told the language; both hear the utterance and 0.7 s of
silence, 0.1 s at a time. Same text: utterances with identical output, which needs features.kind=nemo. Time: process time over
audio time, with one thread. It needs: pip install sherpa-onnx

examples:
  utils/bench/sherpa.py --corpus egs/indic/exp/NAME/corpus --model egs/indic/exp/NAME/models/multi_softmax_lid
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import tempfile
import time
from pathlib import Path

from pyspeech.commands.arguments import tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from steps.benchmark.timing import use_one_thread

TAIL, BLOCK = 0.7, 0.1  # seconds
MAX_SYMBOLS = 10  # of a frame, sherpa-onnx's


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--corpus", metavar="DIR", required=True, help="corpus in an experiment folder of egs/indic")
    parser.add_argument("--model", metavar="DIR", required=True, help="folder of a model.pt that egs/indic/run.py made")
    parser.add_argument("--utterances", metavar="N", type=whole_number, default=15, help="of each language (default: 15)")
    options = parser.parse_args(arguments)
    use_one_thread()
    from pyspeech.asr.api import load_bundle
    from pyspeech.asr.config import KIND
    from pyspeech.asr.sherpa_export import export_sherpa
    from pyspeech.errors import UserError
    from pyspeech.model_file import find_model
    from pyspeech.report.tables import markdown_table
    from steps.benchmark.recognition import read_set

    try:
        import sherpa_onnx  # noqa: F401
    except ImportError:
        raise UserError("sherpa-onnx is not installed: pip install sherpa-onnx") from None
    bundle = load_bundle(find_model(options.model, KIND), "cpu")
    utterances = read_set(options.corpus, "test", bundle.model.languages, bundle.fbank.sampling_rate)
    if not utterances:
        raise UserError(f"--corpus {options.corpus}: no test utterance in a language of the model")
    rows, compared = [], []
    for language in dict.fromkeys(one[1] for one in utterances):
        own = evenly([one for one in utterances if one[1] == language], options.utterances)
        with tempfile.TemporaryDirectory() as folder:
            export_sherpa(bundle, language, folder)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            pairs = [searched(search, own, bundle.fbank.sampling_rate) for search in (theirs(folder), ours(bundle, language))]
        compared.append((own, *pairs))
        rows.append([language, *cells([compared[-1]]), f"{size / 1e6:.1f}"])
    rows.append(["all", *cells(compared), None])
    header = ["language", "same text", "WER, sherpa-onnx", "WER, ours", "time, sherpa-onnx", "time, ours", "MB"]
    print(markdown_table(header, rows))


def evenly(items, count):
    """At most `count` of the items, evenly spread."""
    return [items[number * len(items) // count] for number in range(count)] if len(items) > count else items


def theirs(folder):
    """A search by sherpa-onnx with the files of a folder: search(blocks, rate) -> text."""
    import sherpa_onnx

    recognizer = sherpa_onnx.OnlineRecognizer.from_transducer(
        tokens=f"{folder}/tokens.txt",
        encoder=f"{folder}/encoder.onnx",
        decoder=f"{folder}/decoder.onnx",
        joiner=f"{folder}/joiner.onnx",
        num_threads=1,
        snip_edges=True,
    )

    def search(blocks, rate):
        stream = recognizer.create_stream()
        for block in blocks:
            stream.accept_waveform(rate, block)
            while recognizer.is_ready(stream):
                recognizer.decode_stream(stream)
        return recognizer.get_result(stream)

    return search


def ours(bundle, language):
    """The same search by us."""
    from pyspeech import Recognizer
    from pyspeech.asr.config import Endpointing

    search = bundle.search.changed(beam=1, max_symbols=MAX_SYMBOLS, symbol_bonus=0.0, prune=float("inf"))
    never = float("inf")
    recognizer = Recognizer(bundle, language, search, endpointing=Endpointing(never, never, never), vad=False)

    def run(blocks, rate):
        stream = recognizer.stream()
        for block in blocks:
            stream.add(block)
        return stream.finish().text

    return run


def searched(search, utterances, rate):
    """(texts, (process time, audio time)) of a search; times in seconds."""
    import numpy as np

    def heard(samples):
        all_of_it = np.concatenate([samples, np.zeros(round(TAIL * rate), np.float32)])
        return [all_of_it[start : start + size] for start in range(0, len(all_of_it), size)]

    size = round(BLOCK * rate)
    search(heard(utterances[0][-1]), rate)  # what is made once does not count
    begun = time.process_time()
    texts = [search(heard(samples), rate) for *_, samples in utterances]
    seconds = sum(len(samples) / rate + TAIL for *_, samples in utterances)
    return [" ".join(text.split()) for text in texts], (time.process_time() - begun, seconds)


def cells(compared):
    """The cells of a row.

    Args:
        compared: (utterances, what `searched` gave of sherpa-onnx, of us) of each language of the row.
    """
    from pyspeech.text.wer import score_utterances

    same = sum(one == other for _, (found, _), (own, _) in compared for one, other in zip(found, own, strict=True))
    rates, speeds = [], []
    for side in (1, 2):
        scored = [
            (name, language, None, text, heard, None)
            for one in compared
            for (name, language, text, _), heard in zip(one[0], one[side][0], strict=True)
        ]
        average = score_utterances(scored, resamples=1)["average"]
        rates.append(f"{100 * average['errors'] / average['words']:.1f}")
        times = [sum(values) for values in zip(*(one[side][1] for one in compared), strict=True)]
        speeds.append(f"{times[0] / times[1]:.4f}")
    return [f"{same} of {sum(len(one[0]) for one in compared)}", *rates, *speeds]


if __name__ == "__main__":
    exit_after(main)
