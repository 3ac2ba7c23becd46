"""Score transcripts: word error rate (WER) by language and overall, with 95 % confidence intervals.

REF and HYP are each a Kaldi `text` file (lines `utterance-id words...`), what utils/transcribe.py prints (lines of an
id, which may have blanks, a tab and the words), or a lhotse manifest of supervisions or cuts (.jsonl, .jsonl.gz, .json,
.yaml; the ids are those of the supervisions). A missing hypothesis counts as an empty one, a
hypothesis without reference is not scored; both are named. Where HYP is a manifest that gives languages, they are
scored as predicted languages (LID accuracy and confusion) of the references whose languages are known.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspeech.commands.arguments import add_json, seed, tool_parser
from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import aligned, bracketed, percent

MANIFESTS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".yaml", ".yaml.gz")
COUNTS = [("utts", "utterances"), ("words", "words"), ("errors", "errors"), ("sub", "sub"), ("del", "del"), ("ins", "ins")]


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.text.wer import compare, score_utterances, write_errs, write_recogs

    utterances = read_utterances(options, options.hypothesis)
    bootstrap = {"resample": options.resample, "seed": options.seed}
    scores = score_utterances(utterances, characters=options.cer, **bootstrap)
    if options.baseline:
        scores["against_baseline"] = compare(read_utterances(options, options.baseline), utterances, **bootstrap)
    if options.json:
        write_json(options.json, scores)
    if options.errs:
        write_errs(options.errs, utterances)
    if options.recogs:
        write_recogs(options.recogs, utterances)
    print(report(scores, options.resample))


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("reference", metavar="REF", help="what was said")
    parser.add_argument("hypothesis", metavar="HYP", help="what was recognised")
    parser.add_argument(
        "--baseline",
        metavar="HYP0",
        help="another hypothesis: print the relative WER reduction (WERR) of HYP against it as well",
    )
    add_json(parser)
    parser.add_argument("--errs", metavar="FILE", help="write alignments and counts by word and speaker to FILE")
    parser.add_argument("--recogs", metavar="FILE", help="write the words of reference and hypothesis to FILE")
    parser.add_argument("--utt2lang", metavar="FILE", help="languages of the references: lines `utterance-id language`")
    parser.add_argument("--utt2spk", metavar="FILE", help="speakers of the references: lines `utterance-id speaker`")
    parser.add_argument(
        "--normalize",
        action="store_true",
        help="first normalise both sides as the recipes do (case, punctuation, Unicode; see "
        "pyspeech/text/normalize.py); otherwise words are compared as they are",
    )
    parser.add_argument("--cer", action="store_true", help="character error rate as well (code points and spaces)")
    parser.add_argument(
        "--resample",
        choices=("utterance", "speaker"),
        default="utterance",
        help="what the bootstrap of the intervals draws (default: utterance)",
    )
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="seed of the bootstrap (default: 0)")
    return parser


def read_utterances(options, hypothesis):
    """Return the utterances as pyspeech.text.wer describes them; missing and extra ones are warned of, a line each."""
    references, hypotheses = read_transcripts(options.reference), read_transcripts(hypothesis)
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
    languages, speakers = ({} if path is None else read_columns(path) for path in (options.utt2lang, options.utt2spk))
    normalize = normaliser() if options.normalize else lambda text, language: text
    utterances = []
    for name, (ref, language, speaker) in references.items():
        hyp, predicted, _ = hypotheses.get(name, ("", None, None))
        language, speaker = languages.get(name, language), speakers.get(name, speaker)
        utterances.append((name, language, speaker, normalize(ref, language), normalize(hyp, language), predicted))
    return utterances


def normaliser():
    from pyspeech.text.normalize import normalize

    return normalize


def read_transcripts(path):
    """{utterance id: (text, language or None, speaker or None)} of a Kaldi text file or a lhotse manifest."""
    if str(path).endswith(MANIFESTS):
        found = read_manifest(path)
    else:
        found = {name: (text, None, None) for name, text in read_columns(path).items()}
    if not found:
        raise UserError(f"{path}: no utterances; expected lines `utterance-id words...` or supervisions")
    return found


def read_columns(path):
    """{name: the rest} of the lines of a UTF-8 text file, as Kaldi's text, utt2spk and utt2lang are; the name ends at
    the first tab or, without one, at the first blank."""
    found = {}
    try:
        with open(path, encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                line = line.lstrip().rstrip("\r\n")
                parts = [part.strip() for part in line.split("\t" if "\t" in line else None, maxsplit=1)]
                if not parts:
                    continue
                if parts[0] in found:
                    raise UserError(f"{path}:{number}: {parts[0]} for the second time; expected each utterance once")
                found[parts[0]] = parts[1] if len(parts) == 2 else ""
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 ({error.reason}); expected a text file in UTF-8 or a lhotse manifest "
            f"named {', '.join(MANIFESTS)}"
        ) from error
    return found


def read_manifest(path):
    """As `read_transcripts`, of a lhotse manifest of supervisions or cuts."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a Kaldi text file or a lhotse manifest")
    from lhotse.supervision import SupervisionSegment

    found = {}
    for item in manifest_items(path):
        for supervision in [item] if isinstance(item, SupervisionSegment) else getattr(item, "supervisions", [None]):
            if supervision is None:
                raise UserError(f"{path}: a manifest of {type(item).__name__}; expected supervisions or cuts")
            if supervision.id in found:
                raise UserError(f"{path}: {supervision.id} for the second time; expected each utterance once")
            if supervision.text is None:
                raise UserError(f'{path}: supervision {supervision.id} has no text; expected "" where nothing was said')
            found[supervision.id] = (supervision.text, supervision.language, supervision.speaker)
    return found


def manifest_items(path):
    """Yield what a lhotse manifest holds. lhotse has an exception of its own for each way in which a file is broken."""
    from lhotse import load_manifest

    try:
        yield from load_manifest(path)
    except Exception as error:
        raise UserError(
            f"{path}: not a whole lhotse manifest ({type(error).__name__}: {str(error).splitlines()[0]}); write it again"
        ) from error


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
