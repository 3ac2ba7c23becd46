"""Real human voices that come in packages, as one list of clips per voice; no audio is kept in the repository.

    asterisk-core-sounds-*   telephone prompts, one voice a language, 8 kHz WAV
    tuxpaint-stamps-default  short descriptions, one voice a language, 44.1 kHz Ogg Vorbis
    fillets-ng-data-{cs,nl}  dialogues of a game, two main voices a language, 22.05 kHz Ogg Vorbis

Every name below was checked to be one voice, different from the others; the two prompt sets that name the same
speaker (English and Spanish) count as one person and must stay in the same split.
"""
from pathlib import Path

import numpy as np

# voice -> (glob below the unpacked packages, sex as heard from the fundamental frequency)
VOICES = {
    "asterisk-en": ("usr/share/asterisk/sounds/en_*/**/*.wav", "f"),
    "asterisk-es": ("usr/share/asterisk/sounds/es_*/**/*.wav", "f"),
    "asterisk-fr": ("usr/share/asterisk/sounds/fr_*/**/*.wav", "f"),
    "asterisk-it": ("usr/share/asterisk/sounds/it_*/**/*.wav", "m"),
    "asterisk-ru": ("usr/share/asterisk/sounds/ru_*/**/*.wav", "f"),
    "tuxpaint-ro": ("usr/share/tuxpaint/stamps/**/*_desc_ro.ogg", "f"),
    "tuxpaint-es": ("usr/share/tuxpaint/stamps/**/*_desc_es.ogg", "f"),
    "tuxpaint-ru": ("usr/share/tuxpaint/stamps/**/*_desc_ru.ogg", "m"),
    "tuxpaint-fr": ("usr/share/tuxpaint/stamps/**/*_desc_fr.ogg", "m"),
    "tuxpaint-bg": ("usr/share/tuxpaint/stamps/**/*_desc_bg.ogg", "m"),
    "tuxpaint-el": ("usr/share/tuxpaint/stamps/**/*_desc_el.ogg", "f"),
    "tuxpaint-be": ("usr/share/tuxpaint/stamps/**/*_desc_be.ogg", "f"),
    "tuxpaint-ca": ("usr/share/tuxpaint/stamps/**/*_desc_ca.ogg", "m"),
    "tuxpaint-da": ("usr/share/tuxpaint/stamps/**/*_desc_da.ogg", "m"),
    "fillets-cs-small": ("usr/share/games/fillets-ng/sound/*/cs/*-m-*.ogg", "f"),
    "fillets-cs-big": ("usr/share/games/fillets-ng/sound/*/cs/*-v-*.ogg", "m"),
    "fillets-nl-small": ("usr/share/games/fillets-ng/sound/*/nl/*-m-*.ogg", "f"),
    "fillets-nl-big": ("usr/share/games/fillets-ng/sound/*/nl/*-v-*.ogg", "m"),
}


def find_clips(root, voice):
    """Sorted paths of the clips of `voice` below `root`, a folder into which the packages were unpacked."""
    paths = sorted(Path(root).glob(VOICES[voice][0]))
    return [path for path in paths if "silence" not in path.parts and path.is_file()
            and not path.name.startswith(("beep", "ascending", "descending", "confbridge-join", "confbridge-leave"))]


def load_clip(path, sampling_rate=8000):
    """Read a clip as float64 (N,), channels mixed, resampled to `sampling_rate` with a polyphase filter."""
    import soundfile
    from scipy.signal import resample_poly

    samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    samples = samples.mean(axis=1)
    if rate != sampling_rate:
        divisor = np.gcd(rate, sampling_rate)
        samples = resample_poly(samples, sampling_rate // divisor, rate // divisor)
    return samples
