"""Multilingual corpora that Lhotse has recipes for: FLEURS, Common Voice and the CMU Indic voices.

    fleurs       <language>/{train,dev,test}/*.wav, metadata/<language>/{train,dev,test}.tsv; languages hi_in, en_us
                 (as `lhotse download fleurs` saves it; the folder fleurs, or the one above it), or
                 <language>/audio/{train,dev,test}/*.wav, <language>/{train,dev,test}.tsv
                 (https://huggingface.co/datasets/google/fleurs, its archives unpacked; the folder data)
    commonvoice  <language>/{train,dev,test}.tsv, <language>/clips/*.mp3; languages hi, ta, en, ...
                 (https://commonvoice.mozilla.org, registration; unpacked, the folder cv-corpus-*, or the one above it)
    cmu_indic    cmu_indic_<speaker>/wav/*.wav, cmu_indic_<speaker>/etc/txt.done.data; speakers hin_ab, tam_sdr, ...
                 (http://festvox.org/cmu_indic, `lhotse download cmu-indic`)

Lhotse's own `prepare_*` functions read them; checks and manifests are those of `local.indic.transcribed`. FLEURS and Common
Voice have train, dev and test sets; of the CMU Indic voices 10 % of each language's utterances are held out as test and
10 % of the rest as dev (as of languages of Common Voice without a dev set), by texts, so the same speakers are in all
of them: figures on them are optimistic. The speakers of FLEURS are not known (Lhotse's are numbers of readings), so
none is written.
"""

import contextlib
import io
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

from local.indic.languages import language_code
from local.indic.lengths import NO_LIMIT, LengthLimit
from local.indic.transcribed import SETS, write_corpus
from local.splits import hold_out
from pyspeech.data.manifests import Utterance
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.text.tags import DEFAULT_TAGS

HELD_OUT = 0.1
COMMONVOICE_COLUMNS = ("client_id", "path", "sentence")
COMMONVOICE_UNUSED = ("age", "gender", "accents", "variant")  # Lhotse wants them; not all releases have them
EXPECTED = {
    "fleurs": "hi_in/train/*.wav and metadata/hi_in/train.tsv, or hi_in/audio/train/*.wav and hi_in/train.tsv",
    "commonvoice": "hi/train.tsv and hi/clips/*.mp3",
    "cmu_indic": "cmu_indic_hin_ab/wav/*.wav and cmu_indic_hin_ab/etc/txt.done.data",
}


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    kind: str,
    languages: Sequence[str] = (),
    tags: Sequence[str] = DEFAULT_TAGS,
    limit: LengthLimit = NO_LIMIT,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Read a corpus with Lhotse's recipe, check it and write out/{train,dev,test}.jsonl.gz.

    corpus: where it lies, downloaded and unpacked. kind: fleurs, commonvoice or cmu_indic. languages: codes of
    those to take, which the manifests then have (hi-IN, or hi: the part behind the hyphen may be left out where one
    only fits), all where empty. tags, skip_bad, and what is returned and raised, as `local.indic.transcribed.write_corpus`.
    """
    if kind not in EXPECTED:
        raise UserError(f"kind={kind}: expected one of {', '.join(EXPECTED)}")
    folder = Path(corpus)
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected {kind}: {EXPECTED[kind]}")
    readers = {"fleurs": read_fleurs, "commonvoice": read_commonvoice, "cmu_indic": read_cmu_indic}
    with tempfile.TemporaryDirectory() as scratch:
        utterances, problems = readers[kind](folder, Path(scratch), list(languages), log)
    return write_corpus(utterances, out, log, f"corpus={folder}", skip_bad, problems, HELD_OUT, parts, tags, limit)


def read_fleurs(
    folder: Path, scratch: Path, languages: Sequence[str], log: logging.Logger
) -> tuple[list[Utterance], list[tuple[str, str]]]:
    """(utterances, problems) of FLEURS; a language without one of its sets is left out, as Lhotse wants all three."""
    from lhotse.recipes.fleurs import prepare_fleurs

    root, there = _find(folder, "fleurs", "metadata/*/*.tsv", "*/*.tsv")
    utterances, problems = [], []
    for name, code in _choose(there, languages, folder).items():
        sets = {split: _copy_fleurs_set(root, name, split, scratch) for split in SETS}
        if not _usable(name, sets, SETS, languages, log):
            continue
        problems += [problem for split in SETS for problem in sets[split][1]]
        with _in_words(folder, "fleurs"):
            manifests = prepare_fleurs(scratch, scratch / "out", languages=[name])[name]
        utterances += [item for split in SETS for item in _utterances(manifests[split], split, code, speakers=False)]
    return utterances, problems


def _copy_fleurs_set(root, name, split, scratch):
    """What `_copy_good_lines` gives for a set, in Lhotse's layout or in that of the release."""
    if (root / "metadata").is_dir():
        table, audio = root / "metadata" / name / f"{split}.tsv", root / name / split
    else:
        table, audio = root / name / f"{split}.tsv", root / name / "audio" / split
    good, problems = _copy_good_lines(table, scratch / "metadata" / name / f"{split}.tsv", _fleurs_line(audio))
    _link(good, scratch / name / split)
    return good, problems


def read_commonvoice(
    folder: Path, scratch: Path, languages: Sequence[str], log: logging.Logger
) -> tuple[list[Utterance], list[tuple[str, str]]]:
    """(utterances, problems) of Common Voice; a set without a line, as small languages have, is none."""
    from lhotse.recipes.commonvoice import prepare_commonvoice

    root, there = _find(folder, "commonvoice", "*/train.tsv")
    utterances, problems = [], []
    for name, code in _choose(there, languages, folder).items():
        sets = {}
        for split in SETS:
            table = root / name / f"{split}.tsv"
            sets[split] = _copy_good_lines(
                table,
                scratch / name / table.name,
                _commonvoice_line(root / name / "clips", _header(table)),
                "\t".join(COMMONVOICE_COLUMNS + COMMONVOICE_UNUSED),
            )
        usable = _usable(name, sets, ["train"], languages, log)
        if not usable:
            continue
        problems += [problem for split in SETS for problem in sets[split][1]]
        (scratch / name / "clips").symlink_to((root / name / "clips").resolve())
        with _in_words(folder, "commonvoice"):
            manifests = prepare_commonvoice(scratch, scratch / "out", languages=[name], splits=usable)[name]
        utterances += [item for split in usable for item in _utterances(manifests[split], split, code)]
    return utterances, problems


def read_cmu_indic(
    folder: Path, scratch: Path, languages: Sequence[str], log: logging.Logger
) -> tuple[list[Utterance], list[tuple[str, str]]]:
    """(utterances, problems) of the CMU Indic voices; English sentences of theirs are en-IN."""
    from lhotse.recipes.cmu_indic import LANGUAGE_MAP, prepare_cmu_indic

    root, _ = _find(folder, "cmu_indic", "cmu_indic_*/etc/txt.done.data")
    problems, count = [], 0
    for table in sorted(root.glob("cmu_indic_*/etc/txt.done.data")):
        voice = table.parent.parent
        if voice.name.split("_")[2] not in LANGUAGE_MAP:
            log.warning("%s: not used, as its name says none of the languages %s", voice, ", ".join(sorted(LANGUAGE_MAP)))
            continue
        good, bad = _copy_good_lines(table, scratch / voice.name / "etc" / table.name, _cmu_indic_line(voice / "wav"))
        _link(good, scratch / voice.name / "wav")
        problems, count = problems + bad, count + len(good)
    if not count:
        return [], problems
    with _in_words(folder, "cmu_indic"):
        manifests = prepare_cmu_indic(scratch)
    there = sorted({supervision.language for supervision in manifests["supervisions"]})  # pyright: ignore[reportGeneralTypeIssues]
    chosen = _choose(there, languages, folder, code_of=language_code)
    utterances = [item for name, code in chosen.items() for item in _utterances(manifests, "train", code, name=name)]
    return hold_out(utterances, HELD_OUT, "test"), problems


def _find(folder, kind, *patterns):
    """(folder that holds the corpus: `folder` or one in it, languages or voices there: what a pattern's * is)."""
    for pattern in patterns:
        place = next(number for number, part in enumerate(Path(pattern).parts) if "*" in part)
        for root in [folder, *sorted(item for item in folder.iterdir() if item.is_dir())]:
            found = sorted({path.relative_to(root).parts[place] for path in root.glob(pattern)})
            if found:
                return root, found
    raise UserError(f"corpus={folder}: nothing of {kind} found; expected {EXPECTED[kind]}")


def _usable(name, sets, needed, wanted, log):
    """Those of a language's sets, {set: what `_copy_good_lines` gives}, that have a good line; none where one that is
    needed has not, and the language is left out. UserError for that in one of the languages `wanted`."""
    for split, (good, problems) in sets.items():
        if good:
            continue
        message = f"{name}: no usable line in its {split} set" + "".join(
            f" ({place}: {problem})" for place, problem in problems[:1]
        )
        if wanted and split in needed:
            raise UserError(message)
        log.warning("%s; %s", message, "the language is left out" if split in needed else "it does without")
    return [split for split in sets if sets[split][0]] if all(sets[split][0] for split in needed) else []


def _link(paths, folder):
    """Links to audio files in a folder, with the ending that Lhotse's recipes take."""
    folder.mkdir(parents=True)
    for path in paths:
        (folder / f"{path.stem}.wav").symlink_to(path.resolve())


def _files(folder):
    """A function that gives the path of a file by its name, whose ending may be in small or in capital letters."""
    there = {path.stem + path.suffix.lower(): path for path in sorted(folder.glob("*"))}
    return lambda name: there.get(name, folder / name)


# A line of each corpus' tables: functions that take one and return (path of its audio, the line as Lhotse wants it).
# KeyError or ValueError: it is none, and Lhotse's recipe would stop at it.


def _fleurs_line(folder):
    find = _files(folder)

    def parse(line):
        _, name, _, _, _, samples, _ = line.strip().split("\t")
        int(samples)
        return find(name), line.strip()

    return parse


def _commonvoice_line(clips, header):
    def parse(line):
        fields = dict(zip(header, line.rstrip("\r\n").split("\t"), strict=False))
        columns = [fields[column] for column in COMMONVOICE_COLUMNS]
        return clips / fields["path"], "\t".join([*columns, *("" for _ in COMMONVOICE_UNUSED)])

    return parse


def _cmu_indic_line(folder):
    find = _files(folder)

    def parse(line):
        name, _ = line.strip()[2:-2].split(maxsplit=1)  # ( name "text" )
        return find(f"{name}.wav"), line.strip()

    return parse


def _header(table):
    with _table(table) as stream:
        header = stream.readline().rstrip("\r\n").split("\t")
    for column in COMMONVOICE_COLUMNS:
        if column not in header:
            raise UserError(f"{table}: its first line names no column '{column}'; expected a table of Common Voice")
    return header


def _copy_good_lines(table, target, parse, header=None):
    """Copy the lines of a table whose audio can be opened, as Lhotse's recipes stop at the first that cannot.

    parse: a function as above. header: the first line of the copy, where the table has one too. Returns (audio paths of
    the lines copied, problems of the others).
    """
    if not table.is_file():
        return [], [(table, "no such file")]
    audio, problems, kept = {}, [], [] if header is None else [header]
    with _table(table) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip() or header is not None and number == 1:
                continue
            try:
                path, text = parse(line)
            except (KeyError, ValueError):
                problem = f"not a line of this table: {line.strip()[:60]!r}"
            else:
                problem = f"names the audio of line {audio[path]} again" if path in audio else _audio_problem(path)
            if problem:
                problems.append((f"{table}, line {number}", problem))
            else:
                audio[path] = number
                kept.append(text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return list(audio), problems


def _audio_problem(path):
    import soundfile

    if not path.is_file():
        return f"transcript without audio, {path}"
    try:
        frames = soundfile.info(str(path)).frames
    except soundfile.LibsndfileError as error:
        return f"{path}: cannot be read as audio: {error.error_string}"
    return None if frames else f"{path}: holds no samples"


@contextlib.contextmanager
def _table(path):
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as stream:
            yield stream
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}; the release is not complete"
        ) from None


def _code(name):
    """hi_in -> hi-IN, cmn_hans_cn -> cmn-Hans-CN, es_419 -> es-419, hi -> hi, zh-CN -> zh-CN."""
    first, *rest = name.replace("_", "-").split("-")
    return "-".join([first.lower(), *(part.title() if len(part) == 4 else part.upper() for part in rest)])


def _choose(there, wanted, folder, code_of=_code):
    """{name in the corpus: code in the manifests} of the languages wanted, or of all; UserError for one not there."""
    codes = {name: code_of(name) for name in there}
    if not wanted:
        return codes
    chosen = {}
    for language in map(_code, wanted):
        exact = [name for name, code in codes.items() if code == language]
        fitting = exact or [
            name
            for name, code in codes.items()
            if code.split("-")[0] == language.split("-")[0] and ("-" not in code or "-" not in language)
        ]
        if len(fitting) != 1:
            raise UserError(
                f"corpus={folder}: languages: {'several of' if fitting else 'no'} {language}; there are "
                f"{', '.join(sorted(codes.values()))}"
            )
        chosen[fitting[0]] = language
    return chosen


def _utterances(manifests, split, code, speakers=True, name=None):
    """Utterances of Lhotse's recordings and supervisions, of one language of these where `name` says which."""
    recordings = {recording.id: recording for recording in manifests["recordings"]}
    utterances = []
    for supervision in manifests["supervisions"]:
        if name in (None, supervision.language):
            audio = Path(recordings[supervision.recording_id].sources[0].source).resolve()
            utterances.append(
                Utterance(
                    f"{code}-{supervision.id}",
                    str(audio),
                    supervision.text or "",
                    code,
                    supervision.speaker if speakers else None,
                    split,
                )
            )
    return utterances


@contextlib.contextmanager
def _in_words(folder, kind):
    """Lhotse's exceptions as one line, and what it prints left out."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    except Exception as error:
        raise UserError(
            f"corpus={folder}: Lhotse's recipe for {kind} stopped: {type(error).__name__}: "
            f"{' '.join(str(error).split())[:300]}; expected {EXPECTED[kind]}"
        ) from error
