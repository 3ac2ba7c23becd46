"""Score transcripts: word error rate (WER) by language and overall, with 95 % confidence intervals.

REF and HYP are each a Kaldi `text` file (lines `utterance-id words...`), the output of utils/transcribe.py (text, json, ctm, or
the folder of -o), NIST's trn, stm or ctm, a manifest of NeMo (lines of JSON; the ids are the names of the audio files without
their endings), or a lhotse manifest of supervisions or cuts (.jsonl, .jsonl.gz, .json, .yaml; the ids are those of the
supervisions). Words with times are compared with the segments of an stm. { a / b / @ } in trn and stm,
and <ALT_BEGIN> in ctm, are alternatives of a reference. A missing hypothesis counts as empty; a hypothesis without reference
is not scored; both are named. Languages in HYP are scored as predicted languages (LID accuracy and confusion) if the
references' languages are known.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from pyspeech.commands.arguments import add_bootstrap, add_json, tool_parser
from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import aligned, bracketed, percent

COUNTS = [("utts", "utterances"), ("words", "words"), ("errors", "errors"), ("sub", "sub"), ("del", "del"), ("ins", "ins")]


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.text.wer import compare, score_utterances, write_errs, write_recogs

    columns = read_names(options)
    utterances = read_utterances(options, options.hypothesis, columns)
    for path, names in zip((options.utt2lang, options.utt2spk), columns, strict=True):
        say_lacking(path, names, [name for name, *_ in utterances])
    bootstrap = {"resample": options.resample, "seed": options.seed}
    scores = score_utterances(utterances, characters=options.cer, **bootstrap)
    if options.baseline:
        scores["against_baseline"] = compare(read_utterances(options, options.baseline, columns), utterances, **bootstrap)
    if options.json:
        write_json(options.json, with_rates(scores))
    if options.errs:
        write_errs(options.errs, utterances)
    if options.recogs:
        write_recogs(options.recogs, utterances)
    print(report(scores, options.resample))


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("reference", metavar="REF", help="reference transcripts")
    parser.add_argument("hypothesis", metavar="HYP", help="hypotheses")
    parser.add_argument(
        "--baseline", metavar="HYP0", help="also print the relative WER reduction (WERR) of HYP against this hypothesis"
    )
    add_json(parser)
    parser.add_argument("--errs", metavar="FILE", help="write alignments and counts by word and speaker to FILE")
    parser.add_argument("--recogs", metavar="FILE", help="write the words of reference and hypothesis to FILE")
    parser.add_argument("--utt2lang", metavar="FILE", help="languages of the references: lines `utterance-id language`")
    parser.add_argument("--utt2spk", metavar="FILE", help="speakers of the references: lines `utterance-id speaker`")
    parser.add_argument(
        "--normalize",
        action="store_true",
        help="normalise both sides first, as the recipes do: tags, case, punctuation, Unicode "
        "(pyspeech/text/tags.py, normalize.py)",
    )
    parser.add_argument(
        "--optional",
        action="store_true",
        help="count missing words as correct if they stand in parentheses in a trn or stm of references (sclite -D)",
    )
    parser.add_argument("--cer", action="store_true", help="also print the character error rate (code points and spaces)")
    add_bootstrap(parser, draws=False)
    return parser


def read_names(options):
    """Return {utterance: language} of --utt2lang and {utterance: speaker} of --utt2spk; {} of a file that is not given."""
    from pyspeech.text.transcript_files import read_columns

    return [{} if path is None else read_columns(path) for path in (options.utt2lang, options.utt2spk)]


def read_utterances(options, hypothesis, columns):
    """Return the utterances as pyspeech.text.wer describes them; missing and extra ones are warned of, a line each.

    columns: what read_names returns, beyond what the references say.
    """
    from pyspeech.text.matching import matched, recording_of
    from pyspeech.text.normalize import normalize
    from pyspeech.text.reference_marks import resolved
    from pyspeech.text.transcript_files import Said, read_transcripts

    sides = read_transcripts(options.reference), read_transcripts(hypothesis)
    refuse_alternatives(sides[1])
    if options.optional and not sides[0].marked:
        raise UserError(f"--optional: {options.reference} has no place for optional words; expected trn or stm")
    references, hypotheses = matched(*sides)
    missing = [name for name in references if name not in hypotheses]
    extra = [name for name in hypotheses if name not in references]
    if len(missing) == len(references):
        raise UserError(
            f"{hypothesis}: none of the {len(references)} utterances of {options.reference} "
            f"({some(missing, 1)}), but {some(extra, 1)}; expected the same utterance ids in both"
        )
    if missing:
        print(
            f"warning: {hypothesis}: no hypothesis for {len(missing)} of {len(references)} utterances, "
            f"scored as empty: {some(missing)}",
            file=sys.stderr,
        )
    if extra:
        print(f"warning: {hypothesis}: {len(extra)} without reference, not scored: {some(extra)}", file=sys.stderr)
    languages, speakers = (
        {name: column.get(name, column.get(recording_of(name))) for name in references} for column in columns
    )
    references = {
        name: Said(said.text, languages[name] or said.language, speakers[name] or said.speaker)
        for name, said in references.items()
    }
    clean = normalize if options.normalize else as_it_is
    if options.normalize:  # tags may have several words, so they go before marks are looked for
        references, hypotheses = without_tags(references), without_tags(hypotheses)
    if sides[0].marked:
        references, hypotheses = resolved(references, hypotheses, options.optional, options.reference, clean)
        clean = as_it_is
    utterances = []
    for name, said in references.items():
        heard = hypotheses.get(name, Said(""))
        texts = (clean(text, said.language) for text in (said.text, heard.text))
        utterances.append((name, said.language, said.speaker, *texts, heard.language))
    return utterances


def say_lacking(path, names, utterances):
    """Warn where a file of languages or speakers lacks some of the utterances; path None: there is none."""
    from pyspeech.text.matching import recording_of

    lacking = [name for name in utterances if names.keys().isdisjoint((name, recording_of(name)))]
    if path is not None and lacking:
        print(f"warning: {path}: lacks {len(lacking)} of {len(utterances)} utterances: {some(lacking)}", file=sys.stderr)


def with_rates(scores):
    """Add to what `score_utterances` gives the fractions wer, and cer where characters were counted."""
    from pyspeech.text.wer import rate

    def entry(counts):
        found = {"wer": rate(counts["errors"], counts["words"])}
        if "characters" in counts:
            found["cer"] = rate(counts["character_errors"], counts["characters"])
        return {**found, **counts}

    languages = {code: entry(counts) for code, counts in scores["languages"].items()}
    return {**scores, "languages": languages, "average": entry(scores["average"])}


def as_it_is(text, language):
    return text


def without_tags(transcripts):
    """Transcripts {utterance: Said} without tags such as [background noise]."""
    from pyspeech.text.tags import Tags

    tags = Tags()
    return {name: replace(said, text=tags.drop(said.text)) for name, said in transcripts.items()}


def refuse_alternatives(hypotheses):
    """UserError where hypotheses, a Transcripts, have NIST's alternatives."""
    for name, said in hypotheses.texts.items() if hypotheses.marked else ():
        if {"{", "}"} & set(said.text.split()):
            raise UserError(f"{hypotheses.path}: {name}: has alternatives; expected one reading, only references may have more")


def report(scores, resample):
    """The scores of `score_utterances` as text: a line for each language, one for all, confused languages below."""
    languages = scores["languages"]
    named = [*languages.items()] if len(languages) > 1 else []
    lines = aligned([header(scores), *(row(*entry, scores) for entry in [*named, ("overall", scores["average"])])])  # pyright: ignore[reportCallIssue]
    lines.append(f"[ ]: 95 % interval, bootstrap over {resample}s; overall: errors and words of all languages pooled")
    if "against_baseline" in scores:
        lines.append(baseline_line(scores["against_baseline"]))
    if "lid" in scores and len(languages) > 1:
        confusion = scores["lid"]["confusion"]
        columns = [*confusion, *sorted({code for counts in confusion.values() for code in counts} - set(confusion))]
        lines += [
            "",
            *aligned(
                [
                    ["spoken \\ predicted", *columns],
                    *([code, *(counts.get(column, 0) for column in columns)] for code, counts in confusion.items()),
                ]
            ),
        ]
    return "\n".join(lines)


def baseline_line(result):
    """The result of `compare` as a line."""
    if result["werr"] is None:
        return "WERR against the baseline: not defined, the baseline has no errors"
    return (
        f"WERR against the baseline: {percent(result['werr'])} % {bracketed(result['ci'], 2)}, "
        f"fewer errors in {100 * result['p_fewer_errors']:.1f} % of the draws"
    )


def header(scores):
    titles = ["language", *(title for title, _ in COUNTS), "WER %", "[low, high]"]
    return titles + ["CER %"] * ("characters" in scores["average"]) + ["LID %"] * ("lid" in scores)


def row(name, counts, scores):
    from pyspeech.text.wer import rate

    cells = [name, *(counts[key] for _, key in COUNTS), percent(rate(counts["errors"], counts["words"]))]
    cells.append(bracketed(counts["ci"], 2) if counts["ci"] else None)
    if "characters" in counts:
        cells.append(percent(rate(counts["character_errors"], counts["characters"])))
    if "lid" in scores:
        rows = scores["lid"]["confusion"]
        spoken = [code for code in rows if name in (code, "overall")]
        cells.append(
            percent(rate(sum(rows[code].get(code, 0) for code in spoken), sum(sum(rows[code].values()) for code in spoken)))
        )
    return cells
