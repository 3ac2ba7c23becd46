"""Augmentation material of egs/add2022 at the detector's rate: sounds of folders and packages, or simulated ones.

backgrounds/{noise,music,rooms}/    pyspeech.audio.sound_store; a kind whose probability is 0 is missing
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.errors import DownloadError, UserError

if TYPE_CHECKING:
    import numpy as np
    from tqdm import tqdm

    from pyspeech.audio.sound_store import SoundStore
    from pyspeech.engine.parts import Parts
    from pyspeech.engine.run import Experiment

SIMULATED = 60  # sounds of a kind, where they are made up
# kind: (the option of how often it is heard, that of where it comes from, the argument of pyspeech.spoof.augmentation)
KINDS = {
    "noise": ("noise", "noise_dir", "noises"),
    "music": ("music", "music_dir", "musics"),
    "rooms": ("reverberation", "room_dir", "rirs"),
}
OPTIONS = [
    "corpus",
    "skip_bad",
    "features.sampling_rate",  # what `collect_backgrounds` depends on
    *(f"augment.{option}" for probability, place, _ in KINDS.values() for option in (probability, place)),
]


def collect_backgrounds(exp: Experiment, conf: Any) -> None:
    """Noise, music and rooms for training alone.

    Fill backgrounds/, and say in backgrounds/sources.json what with: {kind: text}. Goes on after a kill. UserError for
    folders that cannot be used, and where packages cannot be downloaded, unless the corpus is a folder.
    """
    from tqdm import tqdm

    from pyspeech.audio.sound_store import SoundStore, write_sounds
    from pyspeech.files import write_json

    folder, rate, described = exp.dir / "backgrounds", conf.features.sampling_rate, {}
    folder.mkdir(exist_ok=True)
    for kind, (probability, option, _) in KINDS.items():
        if getattr(conf.augment, probability):
            origin, names, read = sources(kind, getattr(conf.augment, option), conf, folder / kind, exp.log, exp.parts)
            with tqdm(desc=kind, total=len(names), disable=None) as progress:
                write_sounds(folder / kind, names, partial(shown, read, progress))
            sounds = SoundStore(folder / kind)
            described[kind] = f"{len(sounds)} {origin}, {sounds.samples() / rate / 60:.1f} min"
            exp.log.info("%s: %s", kind, described[kind])
    write_json(folder / "sources.json", described)


def shown(read: Callable[[str], Iterable[np.ndarray]], progress: tqdm, name: str) -> Iterator[np.ndarray]:
    progress.update()
    yield from read(name)


def sources(
    kind: str, value: str, conf: Any, folder: Path, log: logging.Logger, parts: Parts | None
) -> tuple[str, list[str], Callable[[str], Iterable[np.ndarray]]]:
    """(what they are, names of sounds, function of a name that gives them) of a kind; value: of its option."""
    from local.add2022.backgrounds import backgrounds, read_sounds

    rate = conf.features.sampling_rate
    if value == "packages":
        try:
            paths, origin = backgrounds("train")[kind], "of packages"
        except DownloadError as error:
            if conf.corpus == "mini":
                raise
            log.warning(
                "%s: simulated, because packages cannot be had; better name a folder, augment.%s_dir=DIR: %s", kind, kind, error
            )
            value = "simulated"
    if value == "simulated":
        return "made up", [str(number) for number in range(SIMULATED)], partial(simulate, kind, rate)
    if value != "packages":
        paths, origin = usable(kind, value, conf.skip_bad, folder, log, parts), f"of {value}"
    return origin, [str(path) for path in paths], partial(read_sounds, kind=kind, rate=rate)


def simulate(kind: str, rate: int, name: str) -> list[np.ndarray]:
    """The made-up sound of a kind, by its number, alone in a list."""
    from local.synthesis.soundscape import make_music, make_noise

    return [{"noise": make_noise, "music": make_music, "rooms": make_room}[kind](int(name), rate)]


def usable(kind: str, value: str, skip_bad: bool, folder: Path, log: logging.Logger, parts: Parts | None) -> list[Path]:
    """Paths of a folder's audio files of a kind that can be used; the others are listed in folder/problems.txt, and stop
    where they are more than isolated ones."""
    from types import SimpleNamespace

    from local.add2022.backgrounds import check_sound, find_sounds
    from pyspeech.data.audio_checks import check_utterances
    from pyspeech.data.problems import report_problems

    name = f"augment.{KINDS[kind][1]}={value}"
    place, paths = find_sounds(value, kind)
    if not paths:
        raise UserError(f"{name}: no audio files of {kind} in {place} or below; expected some, such as *.wav or *.flac")
    log.info("%s: %d files in %s", name, len(paths), place)
    good, problems = check_utterances(
        [SimpleNamespace(audio=path) for path in paths],
        lambda one: check_sound(one.audio, kind),
        log,
        what=f"files of {kind}",
        parts=parts,
    )
    folder.mkdir(exist_ok=True)
    report_problems(name, folder, problems, len(paths), skip_bad, log, what="files")
    if not good:
        raise UserError(f"{name}: none of its {len(paths)} files can be used; they are listed in {folder / 'problems.txt'}")
    return [one.audio for one, _ in good]


def make_room(number: int, rate: int) -> np.ndarray:
    """The impulse response (n,) float32 of a room with a reverberation time of up to 0.8 s (lhotse's FRA-RIR), by its
    number."""
    import numpy as np
    import torch
    from lhotse.augmentation.utils import FastRandomRIRGenerator

    from pyspeech.training.randomness import RandomStream

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of reflections with the same delay the last one counts: with threads, any one
    with RandomStream(number):  # it draws from torch's generator beside its own two
        response = FastRandomRIRGenerator(sr=rate, room_seed=number, source_seed=number)(nsource=1)[0]
    torch.set_num_threads(threads)
    return np.asarray(response / np.abs(response).max(), dtype=np.float32)


def load_backgrounds(folder: Path) -> dict[str, SoundStore]:
    """{"noises", "musics", "rirs": stores of sounds (n,) float16} of a folder that `collect_backgrounds` filled."""
    from pyspeech.audio.sound_store import SoundStore

    return {argument: SoundStore(folder / kind) for kind, (_, _, argument) in KINDS.items()}
