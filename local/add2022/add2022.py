"""The corpus of ADD 2022, the first Audio Deep Synthesis Detection challenge, track 1, as Li et al. 2022 use it (3.1).

http://addchallenge.cn/add2022 (registration); 16 kHz mono WAV, Mandarin:

    ADD_train_dev/train/ADD_T_00000000.wav          train: 3,012 genuine (AISHELL-3), 24,072 fake
    ADD_train_dev/dev/ADD_D_00000000.wav            dev: 2,307 genuine, 21,295 fake, other speakers
    ADD_train_dev/label/{train,dev}_label.txt       `ADD_T_00000000.wav genuine`, or fake
    track1adp_out/*.wav, track1adp_out/label.txt    adapt: 300 genuine, 700 fake, with noise and music
    track1*eval* or track1*test*                    eval: came without labels; a label.txt in it is read

Speakers, attacks and conditions are not told. Nothing depends on more than this: audio belongs to the set that the
nearest folder above it names with a word of its own (train, dev, adp, eval, test ...), a label file is a *.txt with
"label" or "key" in its name, which names the set itself or lies in a folder that does; and folders of tracks 2 and 3
are passed over. So `corpus` may be any folder above, and also ADD_train_dev or a folder in it. Checks, and the
{train,dev,adapt,eval}.jsonl.gz that are written, are those of local/add2022/manifests.py.
"""

import logging
import re
from collections import defaultdict
from pathlib import Path

from local.add2022.manifests import SETS, pair, write_sets
from local.splits import SPLIT_WORDS
from pyspeech.audio import io
from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError

WORDS = {**SPLIT_WORDS, **dict.fromkeys(("adp", "adapt", "adaptation", "adaption"), "adapt")}
OTHER_TRACK = re.compile(r"track[ _-]?[23]", re.IGNORECASE)
LABEL_FILE = re.compile(r"label|key", re.IGNORECASE)
EXPECTED = "ADD_train_dev/train/*.wav, ADD_train_dev/label/train_label.txt, track1adp_out/*.wav ..."
RELEASED = {"train": (3012, 24072), "dev": (2307, 21295), "adapt": (300, 700)}  # genuine, fake: Table 2 of the paper


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    test: bool = False,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check the corpus and write <set>.jsonl.gz (train, dev, adapt, eval) into `out`; see local/add2022/manifests.py.

    corpus: its folder or one above it. test: whether only eval is wanted. Any set but train, or eval for a test, may be
    missing, which a line says. Isolated utterances with problems (no audio, no label, empty, broken, silent) are named and left
    out, more stop, unless skip_bad.
    Returns {set: {"genuine": n, "fake": n, "unlabelled": n}}. UserError in one line for a corpus that cannot be used.
    """
    folder = Path(corpus)
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected one with {EXPECTED}")
    audio, labels = find_files(folder)
    if not (audio["train"] and labels["train"] or _holds_sets(folder, audio)) and set_of(folder.resolve().name):
        log.info("corpus=%s: taking the folder above it", folder)
        folder = folder.resolve().parent
        audio, labels = find_files(folder)
    sets, problems, wanted = {}, [], ("eval",) if test else SETS
    for part in wanted:
        label_file = _only(labels[part], part, folder)
        if not audio[part]:
            if part == wanted[0]:
                raise UserError(f"corpus={folder}: no audio in a folder {part}; expected {EXPECTED}")
            log.warning("corpus=%s: no audio of the %s set; going on without it", folder, part)
            continue
        if label_file is None and part != "eval":
            raise UserError(
                f"corpus={folder}: {len(audio[part])} audio files of the {part} set (as {audio[part][0]}) "
                f"but no label file; expected "
                f"{'label.txt' if part == 'adapt' else f'label/{part}_label.txt'}"
            )
        if label_file is None:
            log.warning(
                "corpus=%s: no label file of the eval set: it can be scored, but has no error rate; where one "
                "is added, run this once with --force --stage prepare --stop-stage prepare",
                folder,
            )
        sets[part], found = pair(part, audio[part], label_file, "zh")
        problems += found
    counts = write_sets(sets, out, log, f"corpus={folder}", skip_bad, problems, parts, needed=wanted[0])
    for part, (genuine, fake) in RELEASED.items():
        if part in counts and (counts[part]["genuine"], counts[part]["fake"]) != (genuine, fake):
            log.warning(
                "%s: %d genuine and %d fake utterances; the release has %d and %d",
                part,
                counts[part]["genuine"],
                counts[part]["fake"],
                genuine,
                fake,
            )
    return counts


def find_files(folder: Path) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
    """({set: [audio path, ...]}, {set: [label file, ...]}) of the files below `folder`."""
    audio, labels = defaultdict(list), defaultdict(list)
    for path in io.find_files(folder, AUDIO_SUFFIXES):
        part = _place(path.relative_to(folder).parts[:-1])
        if part:
            audio[part].append(path)
    for path in io.find_files(folder, (".txt",)):
        parts = path.relative_to(folder).parts
        part = _place(parts) or _place(parts[:-1])
        if part and LABEL_FILE.search(path.stem):
            labels[part].append(path)
    return audio, labels


def _holds_sets(folder, audio):
    """Whether a folder that is named after a set is a whole corpus nevertheless: train, dev or labels are in it."""
    return bool(audio["train"] or audio["dev"]) or any(
        path.is_dir() and LABEL_FILE.search(path.name) for path in folder.iterdir()
    )


def set_of(name: str) -> str | None:
    """The set that a folder or file is named after: the only one that a word of its name stands for, or None."""
    found = {WORDS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in WORDS}
    return found.pop() if len(found) == 1 else None


def _place(parts):
    """The set that the last of some names tells; None where none does, and for other tracks."""
    if any(OTHER_TRACK.search(part) for part in parts):
        return None
    return next((part for part in map(set_of, reversed(parts)) if part), None)


def _only(paths, part, folder):
    if len(paths) > 1:
        raise UserError(f"corpus={folder}: {len(paths)} label files of the {part} set, {paths[0]} and {paths[1]}; leave one")
    return paths[0] if paths else None
