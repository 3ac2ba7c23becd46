"""ASVspoof 2019, logical and physical access (Wang et al. 2020): the layout as distributed to Lhotse manifests.

https://datashare.ed.ac.uk/handle/10283/3336 (LA.zip, 7.6 GB; PA.zip, 16 GB); 16 kHz mono FLAC, English (VCTK):

    LA/ASVspoof2019_LA_{train,dev,eval}/flac/LA_T_1138215.flac
    LA/ASVspoof2019_LA_cm_protocols/ASVspoof2019.LA.cm.{train.trn,dev.trl,eval.trl}.txt
    LA/ASVspoof2019_LA_asv_scores/ASVspoof2019.LA.asv.{dev,eval}.gi.trl.scores.txt        for the t-DCF; optional

and the same with PA for LA. Lines of the protocols are `LA_0079 LA_T_1138215 - - bonafide`: speaker, utterance, environment
(of PA), attack, key. Of LA, train and dev have attacks A01 to A06, eval A07 to A19; of PA, all have AA to CC. There is no
adaptation set. The folders are found in any letters' case in `corpus`, one or two levels below it, or above it where it is one
of them or the flac in it; where LA and PA lie side by side, it is LA. Checks, and the {train,dev,eval}.jsonl.gz that are
written, are those of local/add2022/manifests.py.
"""

import logging
import shutil
from pathlib import Path

from local.add2022.manifests import pair, write_sets
from pyspeech.audio.io import find_files
from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.files import atomic_path
from pyspeech.spoof.score_files import read_asv_scores

TRACKS = ("LA", "PA")
PARTS = ("train", "dev", "eval")
EXPECTED = "LA/ASVspoof2019_LA_train/flac/*.flac and LA/ASVspoof2019_LA_cm_protocols/ASVspoof2019.LA.cm.train.trn.txt"


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    test: bool = False,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check the corpus and write {train,dev,eval}.jsonl.gz into `out`; see local/add2022/manifests.py.

    corpus: LA, PA or a folder near it, see above. test: whether only eval is wanted. ASV scores are copied to
    out/asv_scores_{dev,eval}.txt where the corpus has them. Sets other than train, or eval for a test, may be missing, which a
    line says. Utterances with problems as in `local.add2022.add2022.prepare`.
    Returns {set: {"genuine": n, "fake": n}}. UserError in one line for a corpus that cannot be used.
    """
    folder, out = Path(corpus), Path(out).resolve()
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected one with {EXPECTED}")
    root, track = find_root(folder)
    name = f"ASVspoof2019_{track}"
    protocols = _file_of(_child(root, f"{name}_cm_protocols"), ".cm.")
    sets, problems, wanted = {}, [], PARTS[-1:] if test else PARTS
    for part in wanted:
        audio_folder = _child(root, f"{name}_{part}")
        audio = find_files(audio_folder, AUDIO_SUFFIXES) if audio_folder else []
        protocol = f"{name.replace('_', '.')}.cm.{part}.{'trn' if part == 'train' else 'trl'}.txt"
        if part == wanted[0] and not (audio and protocols.get(part)):
            missing = f"audio in {name}_{part}/flac" if not audio else protocol
            raise UserError(f"corpus={root}: no {missing}; expected {EXPECTED.replace('LA', track)}")
        if audio and not protocols.get(part):
            raise UserError(
                f"corpus={root}: {len(audio)} audio files of the {part} set but no protocol; expected "
                f"{name}_cm_protocols/{protocol}"
            )
        if not audio:
            log.warning("corpus=%s: no audio of the %s set; going on without it", root, part)
            continue
        sets[part], found = pair(part, audio, protocols[part], "en")
        problems += found
    counts = write_sets(sets, out, log, f"corpus={root}", skip_bad, problems, parts, needed=wanted[0])
    _copy_scores(_file_of(_child(root, f"{name}_asv_scores"), ".asv."), out, log)
    return counts


def find_root(folder: Path) -> tuple[Path, str]:
    """(the folder in which the protocols' folder lies, LA or PA): `folder`, up to two levels below it, or above (see there)."""
    inside = folder.resolve()
    above = [one.parent for one in (inside, inside.parent) if one.name.lower().startswith("asvspoof2019_")]
    bases = [base for base in (folder, *sorted(folder.glob("*/")), *sorted(folder.glob("*/*/")), *above) if base.is_dir()]
    for track in TRACKS:
        for base in bases:
            if _child(base, f"ASVspoof2019_{track}_cm_protocols"):
                return base, track
    raise UserError(f"corpus={folder}: no folder ASVspoof2019_LA_cm_protocols in it or near it; expected {EXPECTED}")


def _child(folder, name):
    """The folder in `folder` of that name in any letters' case; None where there is none."""
    return next((entry for entry in sorted(folder.iterdir()) if entry.name.lower() == name.lower() and entry.is_dir()), None)


def _file_of(folder, kind):
    """{part: text file} in a folder, of names such as ASVspoof2019.LA.cm.dev.trl.txt; kind: ".cm." or ".asv."."""
    found = {}
    for path in sorted(folder.glob("*.txt")) if folder else ():
        words = path.name.lower().split(".")
        for part in PARTS:
            if part in words and kind in path.name.lower():
                found.setdefault(part, path)
    return found


def _copy_scores(found, out, log):
    for part in PARTS[1:]:
        target = out / f"asv_scores_{part}.txt"
        target.unlink(missing_ok=True)
        if part not in found:
            log.info("no ASV scores of the %s set: no t-DCF", part)
            continue
        read_asv_scores(found[part])
        with atomic_path(target) as temporary:
            shutil.copyfile(found[part], temporary)
