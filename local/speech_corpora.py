"""Multilingual corpora that Lhotse has recipes for: FLEURS, Common Voice and the CMU Indic voices.

    fleurs       <language>/{train,dev,test}/*.wav, metadata/<language>/{train,dev,test}.tsv; languages hi_in, en_us
                 (as `lhotse download fleurs` saves it; the folder fleurs, or the one above it)
    commonvoice  <language>/{train,dev,test}.tsv, <language>/clips/*.mp3; languages hi, ta, en, ...
                 (https://commonvoice.mozilla.org, registration; unpacked, the folder cv-corpus-*, or the one above it)
    cmu_indic    cmu_indic_<speaker>/wav/*.wav, cmu_indic_<speaker>/etc/txt.done.data; speakers hin_ab, tam_sdr, ...
                 (http://festvox.org/cmu_indic, `lhotse download cmu-indic`)

Lhotse's own `prepare_*` functions read them; checks and manifests are those of `local.transcribed`. FLEURS and Common
Voice have train, dev and test sets; of the CMU Indic voices 10 % of each language's utterances are held out as test and
10 % of the rest as dev, by texts, so the same speakers are in all of them: figures on them are optimistic. The speakers
of FLEURS are not known (Lhotse's are numbers of readings), so none is written.
"""
import contextlib
import io
import tempfile
from pathlib import Path

from local.transcribed import SETS, Utterance, hold_out, language_code, write_corpus
from pyspeech.errors import UserError

HELD_OUT = 0.1
COMMONVOICE_COLUMNS = ("client_id", "path", "sentence")
COMMONVOICE_UNUSED = ("age", "gender", "accents", "variant")    # Lhotse wants them; not all releases have them
EXPECTED = {"fleurs": "hi_in/train/*.wav and metadata/hi_in/train.tsv",
            "commonvoice": "hi/train.tsv and hi/clips/*.mp3",
            "cmu_indic": "cmu_indic_hin_ab/wav/*.wav and cmu_indic_hin_ab/etc/txt.done.data"}


def prepare(kind, folder, out, log, languages=(), skip_bad=False):
    """Read a corpus with Lhotse's recipe, check it and write out/{train,dev,test}.jsonl.gz.

    kind: fleurs, commonvoice or cmu_indic. folder: where the corpus lies, downloaded and unpacked. languages: codes of
    those to take, which the manifests then have (hi-IN, or hi: the part behind the hyphen may be left out where one
    only fits), all where empty. skip_bad, and what is returned and raised, as `local.transcribed.write_corpus`.
    """
    if kind not in EXPECTED:
        raise UserError(f"kind={kind}: expected one of {', '.join(EXPECTED)}")
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected {kind}: {EXPECTED[kind]}")
    readers = {"fleurs": read_fleurs, "commonvoice": read_commonvoice, "cmu_indic": read_cmu_indic}
    with tempfile.TemporaryDirectory() as scratch:
        utterances, problems = readers[kind](folder, Path(scratch), list(languages))
    return write_corpus(utterances, out, log, f"corpus={folder}", skip_bad, problems,
                        HELD_OUT if kind == "cmu_indic" else 0.0)


def read_fleurs(folder, scratch, languages):
    """(utterances, problems) of FLEURS."""
    from lhotse.recipes.fleurs import prepare_fleurs

    root, there = _find(folder, "fleurs", "metadata/*/train.tsv")
    utterances, problems = [], []
    for name, code in _choose(there, languages, folder).items():
        for split in SETS:
            table = Path("metadata", name, f"{split}.tsv")
            problems += _copy_good_lines(root / table, scratch / table, _fleurs_line(root / name / split))[1]
        (scratch / name).symlink_to((root / name).resolve())
        with _in_words(folder, "fleurs"):
            manifests = prepare_fleurs(scratch, scratch / "out", languages=[name])[name]
        utterances += [item for split in SETS for item in _utterances(manifests[split], split, code, speakers=False)]
    return utterances, problems


def read_commonvoice(folder, scratch, languages):
    """(utterances, problems) of Common Voice."""
    from lhotse.recipes.commonvoice import prepare_commonvoice

    root, there = _find(folder, "commonvoice", "*/train.tsv")
    utterances, problems = [], []
    for name, code in _choose(there, languages, folder).items():
        for split in SETS:
            table = root / name / f"{split}.tsv"
            problems += _copy_good_lines(table, scratch / name / table.name,
                                         _commonvoice_line(root / name / "clips", _header(table)),
                                         "\t".join(COMMONVOICE_COLUMNS + COMMONVOICE_UNUSED))[1]
        (scratch / name / "clips").symlink_to((root / name / "clips").resolve())
        with _in_words(folder, "commonvoice"):
            manifests = prepare_commonvoice(scratch, scratch / "out", languages=[name], splits=SETS)[name]
        utterances += [item for split in SETS for item in _utterances(manifests[split], split, code)]
    return utterances, problems


def read_cmu_indic(folder, scratch, languages):
    """(utterances, problems) of the CMU Indic voices; English sentences of theirs are en-IN."""
    from lhotse.recipes.cmu_indic import prepare_cmu_indic

    root, _ = _find(folder, "cmu_indic", "cmu_indic_*/etc/txt.done.data")
    problems = []
    for table in sorted(root.glob("cmu_indic_*/etc/txt.done.data")):
        voice = table.parent.parent
        copy = scratch / voice.name
        audio, bad = _copy_good_lines(table, copy / "etc" / table.name, _cmu_indic_line(voice / "wav"))
        problems += bad
        (copy / "wav").mkdir()
        for path in audio:
            (copy / "wav" / path.name).symlink_to(path.resolve())
    with _in_words(folder, "cmu_indic"):
        manifests = prepare_cmu_indic(scratch)
    there = sorted({supervision.language for supervision in manifests["supervisions"]})
    chosen = _choose(there, languages, folder, code_of=language_code)
    utterances = [item for name, code in chosen.items() for item in _utterances(manifests, "train", code, name=name)]
    return hold_out(utterances, HELD_OUT, "test"), problems


def _find(folder, kind, pattern):
    """(folder that holds the corpus: `folder` or one in it, languages or voices there: what the pattern's * is)."""
    place = next(number for number, part in enumerate(Path(pattern).parts) if "*" in part)
    for root in [folder, *sorted(item for item in folder.iterdir() if item.is_dir())]:
        found = sorted(path.relative_to(root).parts[place] for path in root.glob(pattern))
        if found:
            return root, found
    raise UserError(f"corpus={folder}: nothing of {kind} found; expected {EXPECTED[kind]}")


# A line of each corpus' tables: functions that take one and return (path of its audio, the line as Lhotse wants it).
# KeyError or ValueError: it is none, and Lhotse's recipe would stop at it.

def _fleurs_line(folder):
    def parse(line):
        _, name, _, _, _, samples, _ = line.strip().split("\t")
        int(samples)
        return folder / name, line.strip()
    return parse


def _commonvoice_line(clips, header):
    def parse(line):
        fields = dict(zip(header, line.rstrip("\r\n").split("\t")))
        columns = [fields[column] for column in COMMONVOICE_COLUMNS]
        return clips / fields["path"], "\t".join([*columns, *("" for _ in COMMONVOICE_UNUSED)])
    return parse


def _cmu_indic_line(folder):
    def parse(line):
        name, _ = line.strip()[2:-2].split(maxsplit=1)      # ( name "text" )
        return folder / f"{name}.wav", line.strip()
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
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}; the release "
                        f"is not complete") from None


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
        fitting = exact or [name for name, code in codes.items() if code.split("-")[0] == language.split("-")[0]
                            and ("-" not in code or "-" not in language)]
        if len(fitting) != 1:
            raise UserError(f"corpus={folder}: languages: {'several of' if fitting else 'no'} {language}; there are "
                            f"{', '.join(sorted(codes.values()))}")
        chosen[fitting[0]] = language
    return chosen


def _utterances(manifests, split, code, speakers=True, name=None):
    """Utterances of Lhotse's recordings and supervisions, of one language of these where `name` says which."""
    recordings = {recording.id: recording for recording in manifests["recordings"]}
    utterances = []
    for supervision in manifests["supervisions"]:
        if name in (None, supervision.language):
            audio = Path(recordings[supervision.recording_id].sources[0].source).resolve()
            utterances.append(Utterance(f"{code}-{supervision.id}", str(audio), supervision.text or "", code,
                                        supervision.speaker if speakers else None, split))
    return utterances


@contextlib.contextmanager
def _in_words(folder, kind):
    """Lhotse's exceptions as one line, and what it prints left out."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    except Exception as error:
        raise UserError(f"corpus={folder}: Lhotse's recipe for {kind} stopped: {type(error).__name__}: "
                        f"{' '.join(str(error).split())[:300]}; expected {EXPECTED[kind]}") from error
