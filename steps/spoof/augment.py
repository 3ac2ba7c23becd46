"""What training in egs/add2022 mixes with speech, at the detector's rate: the user's folders, or packages and made-up rooms.

    backgrounds/{noise,music,rooms}/    pyspeech.audio.sound_store; a kind whose probability is 0 is missing
"""
from functools import partial

from pyspeech.errors import UserError

ROOMS = 60  # impulse responses that are made up
# kind: (the option of how often it is heard, that of where it comes from, the argument of pyspeech.spoofing.augmentation)
KINDS = {"noise": ("noise", "noise_dir", "noises"), "music": ("music", "music_dir", "musics"),
         "rooms": ("reverberation", "room_dir", "rirs")}
OPTIONS = [f"augment.{option}" for probability, place, _ in KINDS.values() for option in (probability, place)]


def collect_backgrounds(exp, conf):
    """Fill backgrounds/; goes on after a kill. UserError for folders that cannot be used, and without a network, which
    says how to do without."""
    from tqdm import tqdm

    from pyspeech.audio.sound_store import SoundStore, write_sounds

    folder, rate = exp.dir / "backgrounds", conf.features.sampling_rate
    folder.mkdir(exist_ok=True)
    for kind, (probability, option, _) in KINDS.items():
        if getattr(conf.augment, probability):
            names, read = sources(kind, getattr(conf.augment, option), conf, folder / kind, exp.log)
            with tqdm(desc=kind, total=len(names), disable=None) as progress:
                write_sounds(folder / kind, names, partial(shown, read, progress))
            sounds = SoundStore(folder / kind)
            exp.log.info("%s: %d sounds, %.1f min", kind, len(sounds), sounds.samples() / rate / 60)


def shown(read, progress, name):
    progress.update()
    yield from read(name)


def sources(kind, value, conf, folder, log):
    """(names of sounds, function of a name that gives them) of a kind; value: of its option."""
    rate = conf.features.sampling_rate
    if value == "simulated":
        return [str(number) for number in range(ROOMS)], lambda name: [make_room(int(name), rate)]
    from local.backgrounds import read_sounds
    paths = packaged(kind) if value == "packages" else usable(kind, value, conf.skip_bad, folder, log)
    return [str(path) for path in paths], partial(read_sounds, kind=kind, rate=rate)


def packaged(kind):
    """Paths of the packages' sounds of a kind that are for training."""
    from local.backgrounds import backgrounds
    try:
        return backgrounds("train")[kind]
    except UserError as error:
        raise UserError(f"{error}; or name a folder of yours, augment.{kind}_dir=DIR, or augment.{kind}=0") from None


def usable(kind, value, skip_bad, folder, log):
    """Paths of a folder's audio files of a kind that can be used; the others are listed in folder/problems.txt, and stop
    where they are more than isolated ones."""
    from types import SimpleNamespace

    from local.audio_checks import check_utterances
    from local.backgrounds import check_sound, find_sounds
    from local.problems import report_problems

    name = f"augment.{KINDS[kind][1]}={value}"
    place, paths = find_sounds(value, kind)
    if not paths:
        raise UserError(f"{name}: no audio files of {kind} in {place} or below; expected some, such as *.wav or *.flac")
    log.info("%s: %d files in %s", name, len(paths), place)
    good, problems = check_utterances([SimpleNamespace(audio=path) for path in paths],
                                      lambda one: check_sound(one.audio, kind), log)
    folder.mkdir(exist_ok=True)
    report_problems(name, folder, problems, len(paths), skip_bad, log, what="files")
    if not good:
        raise UserError(f"{name}: none of its {len(paths)} files can be used; they are listed in {folder / 'problems.txt'}")
    return [one.audio for one, _ in good]


def make_room(number, rate):
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


def load_backgrounds(folder):
    """{"noises", "musics", "rirs": stores of sounds (n,) float16} of a folder that `collect_backgrounds` filled."""
    from pyspeech.audio.sound_store import SoundStore

    return {argument: SoundStore(folder / kind) for kind, (_, _, argument) in KINDS.items()}
