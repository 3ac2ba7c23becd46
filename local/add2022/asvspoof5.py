"""ASVspoof 5, track 1 (Wang et al. 2024): the layout as distributed to Lhotse manifests.

https://zenodo.org/records/14498691 (flac_T_*.tar, flac_D_*.tar, flac_E_*.tar and the protocols); 16 kHz mono FLAC, English:

    flac_T/T_0000000000.flac, flac_D/, flac_E_eval/                            train, dev, eval
    ASVspoof5.train.tsv, ASVspoof5.dev.track_1.tsv, ASVspoof5.eval.track_1.tsv in this folder, below it or in the one above

The codec is the `condition`. There is no adaptation set. Checks, and the {train,dev,eval}.jsonl.gz that are written, are those
of local/add2022/manifests.py.
"""

import logging
import re
from pathlib import Path

from local.add2022.asvspoof2021 import find_near
from local.add2022.manifests import pair, write_sets
from pyspeech.audio.io import find_files
from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError

PARTS = {"train": ("T_", "train"), "dev": ("D_", "dev.track_1"), "eval": ("E_", "eval.track_1")}  # names of audio, of protocols
EXPECTED = "flac_T/T_*.flac and ASVspoof5.train.tsv"


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

    corpus: the folder of the audio, see above. test: whether only eval is wanted. Sets other than train, or eval for a test,
    may be missing, which a line says. Utterances with problems as in `local.add2022.add2022.prepare`.
    Returns {set: {"genuine": n, "fake": n}}. UserError in one line for a corpus that cannot be used.
    """
    folder = Path(corpus)
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected one with {EXPECTED}")
    audio = find_files(folder, AUDIO_SUFFIXES)
    wanted = ["eval"] if test else list(PARTS)
    sets, problems = {}, []
    for part in wanted:
        prefix, name = PARTS[part]
        own = [path for path in audio if path.name.startswith(prefix)]
        protocol = next(iter(find_near(folder, re.compile(rf"ASVspoof5\.{re.escape(name)}\.tsv", re.IGNORECASE))), None)
        if own and not protocol:
            raise UserError(f"corpus={folder}: {len(own)} audio files of the {part} set but no ASVspoof5.{name}.tsv near them")
        if not own and part == wanted[0]:
            raise UserError(f"corpus={folder}: no audio {prefix}*.flac; expected {EXPECTED}")
        if not own:
            log.warning("corpus=%s: no audio of the %s set; going on without it", folder, part)
            continue
        sets[part], found = pair(part, own, protocol, "en")
        problems += found
    return write_sets(sets, out, log, f"corpus={folder}", skip_bad, problems, parts, needed=wanted[0])
