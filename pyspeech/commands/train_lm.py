"""Estimate an n-gram language model over the symbols of a transducer, for utils/transcribe.py --lm.

TEXT is a UTF-8 file with a sentence a line (or .gz), - for standard input, or a lhotse manifest (*.jsonl, *.jsonl.gz) such as
the training set of an experiment, of which only the utterances of the language count. Texts are normalised as transcripts
are, without tags such as <noise>. The smoothing is interpolated Witten-Bell; the result is an ARPA file, whose words are the
model's symbols.

examples:
  utils/train_lm.py exp/mini/corpus/train.jsonl.gz news.txt --model DIR --language hi-IN -o hi.arpa
  utils/transcribe.py call.wav --model DIR --language hi-IN --lm hi.arpa
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspeech.asr.config import KIND, LM_ORDER, language_among
from pyspeech.commands.arguments import new_file, tool_parser, whole_number
from pyspeech.commands.terminal import set_up_messages
from pyspeech.errors import UserError
from pyspeech.files import input_lines, text_lines
from pyspeech.model_file import find_model


def parser() -> argparse.ArgumentParser:
    parser = tool_parser(__doc__)
    parser.add_argument("texts", metavar="TEXT", nargs="+", help="text file, *.jsonl, *.jsonl.gz, -")
    parser.add_argument("--model", metavar="DIR", required=True, help="folder of the model.pt whose symbols the model is over")
    parser.add_argument(
        "--language", metavar="CODE", help="hi-IN or hi; needed if the model has a vocabulary for each of several languages"
    )
    parser.add_argument(
        "--order", metavar="N", type=whole_number, default=LM_ORDER, help=f"longest n-grams, in symbols (default: {LM_ORDER})"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=new_file, required=True, help="ARPA file to write")
    return parser


def main(arguments=None):
    options = parser().parse_intermixed_args(arguments)
    set_up_messages()
    folder = find_model(options.model, KIND)
    from pyspeech.asr.checkpoint import load_model
    from pyspeech.asr.ngram import symbol_ngrams
    from pyspeech.text.arpa import write_arpa
    from pyspeech.text.normalize import normalize
    from pyspeech.text.tags import Tags

    bundle = load_model(folder)
    codes = bundle.model.languages
    language = codes[0] if len(codes) == 1 else None
    if options.language:
        language = language_among(options.language, codes)
    elif bundle.model.num_heads > 1:
        raise UserError(f"--language: the model has a vocabulary for each of {', '.join(codes)}; give one of them")
    units = bundle.units[language or codes[0]]
    drop = Tags().drop
    texts = [normalize(drop(text), language) for path in options.texts for text in read_sentences(path, language, codes)]
    arpa = symbol_ngrams(texts, units, options.order)
    write_arpa(options.output, arpa)
    counts = ", ".join(f"{len(ngrams.words)} {order}-grams" for order, ngrams in enumerate(arpa.orders, start=1))
    print(f"{options.output}: {sum(map(bool, texts))} sentences; {counts}")
    unknown = units.count_unknown(texts)
    if unknown:
        commonest = " ".join(character for character, _ in unknown.most_common(10))
        logging.warning("characters that the model lacks are left out, %d in all, such as %s", unknown.total(), commonest)


def read_sentences(path: str, language: str | None, codes: Sequence[str]) -> Iterator[str]:
    """The sentences of a text file, of standard input (-), or of the utterances of a manifest in a language (None: all) of the
    model's."""
    from pyspeech.text.transcript_files import MANIFESTS, read_transcripts

    if path == "-":
        yield from input_lines()
    elif path.endswith(MANIFESTS):
        for said in read_transcripts(path).texts.values():
            if None in (language, said.language) or _meant(said.language, codes) == language:
                yield said.text
    else:
        yield from text_lines(Path(path))


def _meant(code, codes):
    """The one of a model's language codes that a manifest's is; None for another language."""
    try:
        return language_among(code, codes)
    except UserError:
        return None
