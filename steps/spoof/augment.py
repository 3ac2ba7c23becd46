"""What training in egs/add2022 mixes with speech: noise and music that no other set has, and rooms made up."""
ROOMS = 60  # impulse responses


def collect_backgrounds(exp, conf):
    """backgrounds/{noise,music,rooms}.npz at the detector's rate; a kind whose probability is 0 is left out."""
    from pyspeech.audio.io import read_audio

    folder, rate = exp.dir / "backgrounds", conf.features.sampling_rate
    folder.mkdir(exist_ok=True)
    if conf.augment.noise or conf.augment.music:
        from local.backgrounds import backgrounds
        for kind, paths in backgrounds("train").items():
            if getattr(conf.augment, kind):
                pieces = [read_audio(path, rate)[0] for path in paths]
                write_pieces(folder / f"{kind}.npz", pieces)
                exp.log.info("%s: %d pieces, %.1f min", kind, len(pieces), sum(map(len, pieces)) / rate / 60)
    if conf.augment.reverberation:
        write_pieces(folder / "rooms.npz", make_rooms(rate))
        exp.log.info("rooms: %d impulse responses", ROOMS)


def make_rooms(rate):
    """ROOMS impulse responses (n,) float32 of rooms with reverberation times up to 0.8 s (lhotse's FRA-RIR)."""
    import numpy as np
    import torch
    from lhotse.augmentation.utils import FastRandomRIRGenerator

    from pyspeech.training.randomness import RandomStream

    rooms, threads = [], torch.get_num_threads()
    torch.set_num_threads(1)  # of reflections with the same delay the last one counts: with threads, any one
    for number in range(ROOMS):
        with RandomStream(number):  # it draws from torch's generator beside its own two
            response = FastRandomRIRGenerator(sr=rate, room_seed=number, source_seed=number)(nsource=1)[0]
        rooms.append(np.asarray(response / np.abs(response).max(), dtype=np.float32))
    torch.set_num_threads(threads)
    return rooms


def write_pieces(path, pieces):
    """Arrays (n,) of any lengths, in order."""
    import numpy as np

    from pyspeech.files import atomic_path

    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **{f"{number:04d}": np.asarray(piece, dtype=np.float16) for number, piece in enumerate(pieces)})


def read_pieces(path):
    """What `write_pieces` wrote, as float32; [] where there is no such file."""
    import numpy as np

    if not path.exists():
        return []
    with np.load(path) as stored:
        return [stored[name].astype(np.float32) for name in sorted(stored)]


def load_backgrounds(folder):
    """{"noises", "musics", "rirs": lists of arrays (n,) float32} of a folder that `collect_backgrounds` filled."""
    return {argument: read_pieces(folder / f"{name}.npz")
            for argument, name in (("noises", "noise"), ("musics", "music"), ("rirs", "rooms"))}
