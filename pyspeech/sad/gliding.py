"""Gliding pitch: what tells a voice from music, whistles, hum, modems and noise, and whether anybody speaks at all.

The pitch of a voice hardly ever stands still: within a syllable it glides by some percent every few hundredths of a second.
Notes are held and then step, tones and hum stand still, and what noise has of a pitch jumps. So three windows of the
voicing (voicing.py) in a row glide where each is somewhat harmonic, no step between two is a jump, and the lag of the
highest autocorrelation moves by more than GLIDE_RATE from the first to the last.

The seconds that glide are counted among those that the energies and the voicing call speech, within some seconds around a
frame, and set against a share of those that are harmonic (`voice_llr`): with Poisson's distribution, n events where a voice
would make a and other sounds b have the log-likelihood ratio n log(a / b) - (a - b), which is linear in both. In
a minute of radio talk there is enough of it for the words that are too weak or too short to show their own; so the minute's
ratio counts where it is the higher one. A recording in which nobody speaks has it nowhere, however loud its sounds are:
this is the prior that there may be no speech, which two classes fitted to the energies of a recording do not have.
"""

import numpy as np
from scipy.ndimage import uniform_filter1d

from pyspeech.sad.voicing import VoicingTracks

GLIDE_RATE = 0.75  # of the logarithm of the lag a second, an octave; slower are notes that are held, and tuned carriers
JUMP_RATE = 5.0  # of a jump
LEAST_HARMONICITY = 0.3  # of a window that glides; about that of white noise
HARMONIC = 0.4  # of windows among which those that glide have their share


def gliding(tracks: VoicingTracks, shift: float) -> np.ndarray:
    """Windows whose pitch glides, bool (V,): from the one before to the one after. shift: seconds from window to window."""
    log_lag = np.log(tracks.lag.astype(np.float64))
    smooth = np.abs(np.diff(log_lag)) < JUMP_RATE * shift
    told = tracks.harmonicity > LEAST_HARMONICITY
    moved = np.abs(log_lag[2:] - log_lag[:-2]) > 2 * GLIDE_RATE * shift
    found = np.zeros(len(log_lag), bool)
    found[1:-1] = moved & smooth[1:] & smooth[:-1] & told[2:] & told[1:-1] & told[:-2]
    return found


def voice_llr(
    tracks: VoicingTracks, called: np.ndarray, shift: float, reach: tuple[float, float], share: float, nats: float, prior: float
) -> np.ndarray:
    """log p(glides | speech) - log p(glides | none) around each window, less the prior: float64 (V,), 0 or less.

    called: bool (V,), windows that count, those that would be speech otherwise; shift: seconds from window to window; reach:
    seconds around a window that count, the few of a phrase and those of a conversation, of which the higher ratio is taken;
    share: of the harmonic ones that glide where speech and other sounds are as likely; nats: for a second that glides;
    prior: nats against there being a voice within reach.
    """
    glides = gliding(tracks, shift) & called
    harmonic = (tracks.harmonicity > HARMONIC) & called
    surplus = nats * (glides - share * harmonic) * shift
    ratios = [_around(surplus, max(1, round(seconds / shift))) for seconds in reach]
    return np.minimum(np.max(ratios, axis=0) - prior, 0.0)


def _around(rows, length):
    """Sum over `length` windows around each, nothing beyond the ends: (V,) -> float64 (V,)."""
    return length * uniform_filter1d(rows, length, mode="constant")
