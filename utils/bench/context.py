#!/usr/bin/env python3
"""Error rates of a transducer with hotwords, language models and a bonus for each symbol, and their time.

Hotwords: of each language the words of dev and test that training has least often. Language models: n-grams of symbols of
the training transcripts; internal LM: the transducer's own is subtracted. Weights are those with the lowest WER on dev.
Found: how many of the hotwords said are recognised; false: how many more are recognised. Time: process time on dev, relative
to the search without any of this.

examples:
  utils/bench/context.py --corpus egs/indic/exp/quick/corpus --model egs/indic/exp/quick/models/multi_softmax_lid
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import itertools
from collections import Counter
from functools import partial

from pyspeech.commands.arguments import tool_parser, whole_number
from pyspeech.commands.terminal import exit_after, set_up_messages
from steps.benchmark.timing import best_process_times, use_one_thread

GRID = {
    "hotwords_score": (0.15, 0.3, 0.6),
    "lm_weight": (0.15, 0.3, 0.5),
    "ilm_weight": (0.05, 0.1, 0.2),
    "symbol_bonus": (0.3, 0.6, 0.9),
}
ROWS = {  # name: the row whose weights it has too, and the weights that are chosen for it
    "plain search": ("", ()),
    "symbol bonus": ("", ("symbol_bonus",)),
    "hotwords": ("", ("hotwords_score",)),
    "language model": ("", ("lm_weight",)),
    "language model, symbol bonus": ("", ("lm_weight", "symbol_bonus")),
    "language model, symbol bonus, internal LM": ("language model, symbol bonus", ("ilm_weight",)),
    "hotwords, language model, symbol bonus": ("language model, symbol bonus", ("hotwords_score",)),
}


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--corpus", metavar="DIR", required=True, help="corpus in an experiment folder of egs/indic")
    parser.add_argument("--model", metavar="DIR", required=True, help="folder of a model.pt that egs/indic/run.py made")
    parser.add_argument("--words", metavar="N", type=whole_number, default=10, help="hotwords of each language (default: 10)")
    parser.add_argument(
        "--repeats", metavar="N", type=whole_number, default=3, help="times that each row is timed (default: 3)"
    )
    options = parser.parse_args(arguments)
    use_one_thread()
    status = set_up_messages()
    from pyspeech.asr.api import load_bundle
    from pyspeech.asr.config import KIND
    from pyspeech.errors import UserError
    from pyspeech.model_file import find_model
    from pyspeech.report.tables import markdown_table
    from steps.benchmark.recognition import read_set, texts_of

    bundle = load_bundle(find_model(options.model, KIND), "cpu")
    languages, rate = bundle.model.languages, bundle.fbank.sampling_rate
    dev, test = (read_set(options.corpus, name, languages, rate) for name in ("dev", "test"))
    if not dev or not test:
        raise UserError(f"--corpus {options.corpus}: no {'test' if dev else 'dev'} utterance in a language of the model")
    train = texts_of(options.corpus, "train", languages)
    hotwords, lm = rare_words(train, [*dev, *test], options.words), language_models(train, bundle)

    chosen, rows = {"": {}}, []
    for name, (base, varied) in ROWS.items():
        status.show(f"{name} ...")
        chosen[name] = choose(bundle, dev, hotwords, lm, chosen[base], varied)
        named = ", ".join(f"{weight} {value}" for weight, value in chosen[name].items())
        scored = recognise(bundle, test, *search_and_context(bundle, hotwords, lm, chosen[name]))
        rows.append([name, named, *figures(scored, hotwords)])
    status.show("time ...")
    work = [partial(recognise, bundle, dev, *search_and_context(bundle, hotwords, lm, chosen[name])) for name in ROWS]
    times, _ = best_process_times(work, options.repeats)
    rows = [[*row, f"{seconds / times[0]:.2f}"] for row, seconds in zip(rows, times, strict=True)]
    status.clear()
    print(markdown_table(["search", "weights", "WER", "hotwords found", "false", "time"], rows))


def rare_words(train, utterances, count):
    """List for each language the `count` words of utterances that training has least often.

    train: {language: [text, ...]}; utterances: as of `read_set`.
    """
    found = []
    for language, texts in train.items():
        often = Counter(word for text in texts for word in text.split())
        own = {word for _, other, text, _ in utterances if other == language for word in text.split()}
        found += [word for _, word in sorted((often[word], word) for word in own)[:count]]
    return list(dict.fromkeys(found))


def language_models(train, bundle):
    """As Context takes it: that of each language, or that of all where the model has one vocabulary."""
    from pyspeech.asr.config import LM_ORDER
    from pyspeech.asr.ngram import symbol_ngrams

    if bundle.model.num_heads == 1:
        return symbol_ngrams(sum(train.values(), []), next(iter(bundle.units.values())), LM_ORDER)
    return {code: symbol_ngrams(texts, bundle.units[code], LM_ORDER) for code, texts in train.items() if texts}


def choose(bundle, dev, hotwords, lm, base, varied):
    """{weight: value} of the lowest WER on dev: those of base, and of all combinations in the grid the best of those varied."""
    found = []
    for values in itertools.product(*(GRID[name] for name in varied)):
        weights = {**base, **dict(zip(varied, values, strict=True))}
        used = search_and_context(bundle, hotwords, lm, weights)
        errors = errors_of(recognise(bundle, dev, *used)) if varied else 0
        found.append((errors, weights))
    return min(found, key=lambda one: one[0])[1]


def search_and_context(bundle, hotwords, lm, weights):
    """The model's SearchConfig with no symbol bonus but that of the weights, and the Context with what else has a weight."""
    from pyspeech.asr.config import ContextWeights
    from pyspeech.asr.context import Context

    weights = dict(weights)
    search = bundle.search.changed(symbol_bonus=weights.pop("symbol_bonus", 0.0))
    used = hotwords if "hotwords_score" in weights else (), lm if "lm_weight" in weights else None
    return search, Context(bundle, *used, ContextWeights(**weights)) if weights else None


def recognise(bundle, utterances, search, context):
    """Recognise utterances, the language untold where the model can tell: the input of `score_utterances`."""
    from pyspeech.asr.recognizer import recognize

    results = recognize(bundle, [samples for *_, samples in utterances], search=search, context=context)
    return [
        (name, language, None, text, result.text, None)
        for (name, language, text, _), result in zip(utterances, results, strict=True)
    ]


def errors_of(scored):
    from pyspeech.text.wer import score_utterances

    return score_utterances(scored, resamples=1)["average"]["errors"]


def figures(scored, hotwords):
    """The cells of a row: WER in % with its 95 % interval, hotwords found of those said, and false ones."""
    from pyspeech.text.wer import align, score_utterances
    from steps.benchmark.recognition import wer_cell

    average, hotwords = score_utterances(scored)["average"], set(hotwords)
    pairs = [pair for *_, said, heard, _ in scored for pair in align(said.split(), heard.split())]
    said, heard = (sum(pair[side] in hotwords for pair in pairs) for side in (0, 1))
    found = sum(one == other and one in hotwords for one, other in pairs)
    return [wer_cell(average), f"{found} of {said}", heard - found]


if __name__ == "__main__":
    exit_after(main)
