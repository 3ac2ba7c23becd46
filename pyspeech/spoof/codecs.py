"""Training speech through a codec, as it comes over a telephone or out of a compressed file.

What a codec leaves out, and adds, is no sign of a fake, but a detector that has heard none takes it for one: genuine speech and
fakes go through the same ones. Not of Li et al. 2022; libsndfile codes and decodes.
"""

import numpy as np

from pyspeech.audio.coding import coded

TELEPHONE = 8000  # Hz
OPUS_RATES = (8.0, 64.0)  # kbit/s: half of the draws are below 23; voice messages have 16 to 24
COARSENESS = (0.2, 0.95)  # of other codecs that can be coarser: libsndfile's compression level, 0 finest to 1 coarsest


def coarser(drawn: float) -> float:
    """The compression level for a number from 0 to 1: COARSENESS, each as likely."""
    low, high = COARSENESS
    return low + drawn * (high - low)


def opus_level(drawn: float) -> float:
    """The same of Opus, which has 256 kbit/s at level 0 and 6 at level 1: OPUS_RATES, each octave as likely."""
    low, high = OPUS_RATES
    return 1 - (low * (high / low) ** drawn - 6) / 250


# name: (format and subtype of libsndfile, its sampling rate in Hz or None for that of the samples, the level for a number drawn
# from 0 to 1, or None)
CODECS = {
    "mu-law": ("WAV", "ULAW", TELEPHONE, None),
    "a-law": ("WAV", "ALAW", TELEPHONE, None),
    "gsm": ("WAV", "GSM610", TELEPHONE, None),
    "adpcm": ("WAV", "IMA_ADPCM", None, None),
    "vorbis": ("OGG", "VORBIS", None, coarser),
    "opus": ("OGG", "OPUS", 16000, opus_level),
    "mp3": ("MP3", "MPEG_LAYER_III", 16000, coarser),
}
DRAWN = (*CODECS, "opus", "opus")  # voice messages and calls over the internet are Opus
PEAK = 0.9  # of what is coded: none of them clips


def through_codec(samples: np.ndarray, rate: int, rng: np.random.Generator, name: str | None = None) -> np.ndarray:
    """Samples (N,) at `rate` Hz -> (N,) float32, coded and decoded. rng: numpy Generator, the only source of chance.

    name: one of CODECS, by default one of DRAWN, each as likely. What it does not hold, above half of its rate, is gone, and
    the delay of its filters stays. Silence stays silence.
    """
    import soxr

    name = name or str(rng.choice(DRAWN))
    container, subtype, own_rate, level = CODECS[name]
    drawn = rng.uniform()
    peak, own_rate = float(np.abs(samples).max()) if len(samples) else 0.0, own_rate or rate
    if peak == 0:
        return np.array(samples, dtype=np.float32)
    scaled = np.asarray(samples, dtype=np.float32) * np.float32(PEAK / peak)
    if own_rate != rate:
        scaled = np.clip(soxr.resample(scaled, rate, own_rate), -1.0, 1.0)
    decoded = coded(scaled, own_rate, container, subtype, level and level(drawn), "float32")
    if own_rate != rate:
        decoded = soxr.resample(decoded, own_rate, rate)
    kept = decoded[: len(samples)] * np.float32(peak / PEAK)
    return np.pad(kept, (0, len(samples) - len(kept)))
