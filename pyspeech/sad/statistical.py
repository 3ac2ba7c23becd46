"""Statistical speech activity detection (Heitkaemper, Schmalenstroeer and Haeb-Umbach, Interspeech 2020, section 2).

    audio -> combined sub-band energy of the denoised signal (stat_energies.py), smoothed over 0.48 s: CSBE(t)
          -> its floor F-CSBE(t), the mean floor A-CSBE, and from them the thresholds                    (section 2.1)
          -> a Gaussian mixture for noise and one for speech, in the log domain                          (Figure 3)
          -> Viterbi decoding with 5 noise and 5 speech states                                           (hmm.py)

No training, no labels. Only ratios of energies matter, so a gain changes nothing. Four things are not in the paper: a
frame of which denoising leaves next to nothing is noise, whatever its class (a fit of two classes always finds two, also in
noise alone); short pauses between words belong to the speech around them, as people label it; the emissions of the HMM
have a second stream beside the energies, the voicing (voicing.py), as if independent of them given the class, which tells a
voice from the noise of a receiver that opens and closes (`voicing=False` leaves it out); and a recording whose quiet frames
are voiced, or that hardly has louder ones, has one class of energies only, so that the voicing alone decides.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from pyspeech.errors import UserError
from pyspeech.sad import gmm
from pyspeech.sad.config import StatisticalConfig
from pyspeech.sad.gliding import voice_llr
from pyspeech.sad.hmm import viterbi_each
from pyspeech.sad.smoothing import keep_peaks
from pyspeech.sad.stat_energies import FrameEnergies, frame_energies
from pyspeech.sad.voicing import voicing_llr, voicing_step

FEWEST_FRAMES = 10  # of a class, to fit a mixture to it
GRID = 800  # points at which the log-likelihood ratio is worked out
VARIANCE_FLOOR = 1.0  # dB^2
HARMONIC, VOICED_NOISE = 0.7, 0.4  # windows so harmonic are voiced; a larger share of them among the quiet ones is no noise's
LARGEST_SAMPLE = 1e12  # beyond it, energies leave the range of float32


@dataclass
class Detection:
    """Decisions for each of the T frames, and the tracks behind them. Levels are 10 log10 of energies."""

    config: StatisticalConfig
    decisions: np.ndarray  # bool (T,), speech
    told: np.ndarray  # bool (T,), frames that tell something: the others are noise at any threshold
    clear: np.ndarray  # bool (T,), frames of which denoising leaves much: a stretch without one is no speech
    llr: np.ndarray  # float64 (T,), log p(x | speech) - log p(x | noise), within +-largest_ratio, for any threshold
    level: np.ndarray  # (T,) dB, log CSBE
    noise_threshold: np.ndarray  # (T,) dB, below it a frame teaches the noise mixture ...
    speech_threshold: np.ndarray  # (T,) dB, ... and above it the speech mixture
    noise: object  # gmm.GaussianMixture of the noise and ...
    speech: object  # ... of the speech levels; None where nothing was to be told apart

    def decide(self, threshold: float) -> np.ndarray:
        """The decisions (T,) at another threshold, nats, as of `decide`."""
        (decisions,) = self.decide_each([threshold])
        return decisions

    def decide_each(self, thresholds: Iterable[float]) -> Iterator[np.ndarray]:
        """Yield the decisions (T,) at each of the thresholds."""
        config = self.config
        # A low threshold does not turn the other frames into speech.
        biased = (self.llr - np.where(self.told, threshold, max(threshold, 0.0)) for threshold in thresholds)
        for decisions in viterbi_each(biased) if config.decision == "hmm" else (row > 0 for row in biased):
            decisions = fill_pauses(decisions, round(config.fill_seconds / config.frame_shift))
            yield keep_peaks(decisions, self.clear)


def detect(
    samples: np.ndarray, sampling_rate: int, config: StatisticalConfig | None = None, threshold: float = 0.0
) -> Detection:
    """Detection of a recording: samples (N,) float, any gain, at `sampling_rate` Hz (8000 is what the defaults are for).

    threshold: as for `decide`. Raises UserError for another sampling rate than config.sampling_rate, and for samples
    that are not finite numbers (those of files are mended on reading, by `stream_audio`).
    """
    config = config or StatisticalConfig()
    if sampling_rate != config.sampling_rate:
        raise UserError(
            f"statistical SAD: audio at {sampling_rate} Hz, expected {config.sampling_rate} (resample it, or set "
            "statistical.sampling_rate)"
        )
    return detect_stream([np.asarray(samples)], config, threshold)


def detect_stream(blocks: Iterable[np.ndarray], config: StatisticalConfig | None = None, threshold: float = 0.0) -> Detection:
    """Detect speech in an iterable of blocks (n,) at config.sampling_rate; the decisions do not depend on the block lengths."""
    config = config or StatisticalConfig()
    config.check()
    return decide(frame_energies(_checked(blocks, config), config), config, threshold)


def decide(energies: FrameEnergies, config: StatisticalConfig, threshold: float = 0.0) -> Detection:
    """Section 2.1: from FrameEnergies to a Detection.

    threshold: nats; by itself, a frame is speech where its log-likelihood ratio exceeds it. Frames that tell nothing,
    or of which denoising leaves nothing, are noise at any threshold, and so is all of a recording that hardly exceeds
    its speech threshold.
    """
    heard = ~energies.muted
    if not heard.any() or energies.csbe[heard].max() <= 0:
        return _nothing(len(heard), config)
    csbe = smooth_csbe(energies.csbe, config)
    # Below this, differences are those of rounding, or of a recorder's silence; they would only widen the noise class.
    csbe = np.maximum(csbe, np.quantile(csbe[heard], 0.999) * 10 ** (-config.range_db / 10))
    level = 10 * np.log10(csbe)
    floor = 10 * np.log10(floor_sum(csbe, heard, config))
    noise_threshold, speech_threshold = (
        floor + margin(share, level - floor, heard, config) for share in (config.noise_margin, config.speech_margin)
    )
    denoised, received = (smooth(track, config.smoothing_seconds, config) for track in (energies.denoised, energies.received))
    empty = denoised < received * 10 ** (config.residual_db / 10)
    is_noise, is_speech = heard & (level < noise_threshold), heard & (level > speech_threshold)

    noise = speech = None
    told = heard & ~empty
    voicing = frame_voicing_llr(energies, config) if config.voicing and config.decision == "hmm" else None
    if voicing is not None and (is_speech.sum() < FEWEST_FRAMES or _voiced_share(energies, is_noise, config) > VOICED_NOISE):
        # All of it is speech, or none: there is one class of levels, which tell nothing, and the voicing alone decides.
        llr = np.zeros(len(level))
    elif is_speech.sum() < FEWEST_FRAMES:
        llr, told = np.full(len(level), -config.largest_ratio), np.zeros(len(level), bool)
    elif config.decision == "threshold" or is_noise.sum() < FEWEST_FRAMES:
        llr = np.where(is_speech, config.largest_ratio, -config.largest_ratio)
    else:
        noise, speech = (gmm.fit(*gmm.histogram(level[kind]), variance_floor=VARIANCE_FLOOR) for kind in (is_noise, is_speech))
        llr = likelihood_ratio(level, noise, speech, config)
    if voicing is not None:
        llr = np.where(told, llr + voicing, -config.largest_ratio)
        llr = np.clip(llr, -config.largest_ratio, config.largest_ratio)
        llr = np.maximum(llr + frame_voice_llr(energies, llr > 0, config), -config.largest_ratio)
    llr = np.where(told, llr, -config.largest_ratio)
    clear = denoised >= received * 10 ** (config.peak_residual_db / 10)
    nothing = np.zeros(len(llr), bool)
    found = Detection(config, nothing, told, clear, llr, level, noise_threshold, speech_threshold, noise, speech)
    found.decisions = found.decide(threshold)
    return found


def _checked(blocks, config):
    """The blocks as they are; UserError for a sample that is not a finite number, which would silence all around it."""
    before = 0
    for block in blocks:
        good = np.abs(block) < LARGEST_SAMPLE  # not so for NaN
        if not good.all():
            first = int(np.argmin(good))
            seconds = (before + first) / config.sampling_rate
            raise UserError(
                f"statistical SAD: the sample at {seconds:.3f} s is {block[first]:g}; expected finite "
                f"numbers below {LARGEST_SAMPLE:g} (replace it, such as by 0)"
            )
        before += len(block)
        yield block


def smooth(energy: np.ndarray, seconds: float, config: StatisticalConfig) -> np.ndarray:
    """Mean over `seconds` around each frame, (T,) -> float64 (T,)."""
    length = max(1, round(seconds / config.frame_shift))
    # A running sum, whose rounding can leave less than nothing.
    return np.maximum(uniform_filter1d(energy.astype(np.float64), length, mode="nearest"), 0)


def smooth_csbe(csbe: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """CSBE(t) from the energies of single frames, (T,): the paper's mean over smoothing_seconds, with its edges kept.

    A loud word raises that mean long before it begins and after it ends. So the mean may exceed a short one by at most
    edge_db, where the short one has its gaps of up to closing_seconds closed (a maximum, then a minimum filter).
    """
    length = 2 * round(config.closing_seconds / 2 / config.frame_shift) + 1
    short = smooth(csbe, config.edge_seconds, config)
    closed = minimum_filter1d(maximum_filter1d(short, length, mode="nearest"), length, mode="nearest")
    return np.minimum(smooth(csbe, config.smoothing_seconds, config), closed * 10 ** (config.edge_db / 10))


def floor_sum(csbe: np.ndarray, heard: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """F-CSBE(t) + A-CSBE (T,): the minimum of the CSBE within floor_seconds around a frame, and its mean over the frames."""
    length = round(config.floor_seconds / config.frame_shift) // 2 * 2 + 1
    floor = minimum_filter1d(np.where(heard, csbe, np.inf), min(length, 2 * len(csbe) - 1), mode="nearest")
    average = floor[heard].mean()
    return np.where(np.isfinite(floor), floor, average) + average


def margin(share: float, above_floor: np.ndarray, heard: np.ndarray, config: StatisticalConfig) -> float:
    """The safety margin over F-CSBE + A-CSBE, dB: a share of the recording's range, for the louder its speech stands over
    its floor, the louder is what is not speech. above_floor: levels (T,) over that sum, dB."""
    return float(np.clip(share * np.quantile(above_floor[heard], 0.97), config.least_margin_db, config.most_margin_db))


def likelihood_ratio(
    level: np.ndarray, noise: gmm.GaussianMixture, speech: gmm.GaussianMixture, config: StatisticalConfig
) -> np.ndarray:
    """log p(level | speech) - log p(level | noise) (T,), within +-largest_ratio and never falling with the level.

    A wide mixture overtakes a narrow one again far out on the other side; a louder frame is no less likely speech.
    """
    grid = np.linspace(level.min(), level.max(), GRID)
    ratio = np.maximum.accumulate(gmm.log_likelihood(speech, grid) - gmm.log_likelihood(noise, grid))
    return np.interp(level, grid, np.clip(ratio, -config.largest_ratio, config.largest_ratio))


def frame_voicing_llr(energies: FrameEnergies, config: StatisticalConfig) -> np.ndarray:
    """The log-likelihood ratio of the voicing around each frame, float64 (T,); see `voicing_llr`. ValueError where the
    energies were worked out without it."""
    tracks = _voicing_of(energies)
    step, num_frames = voicing_step(config.frame_shift), len(energies.muted)
    length = max(1, round(config.voicing_seconds / (step * config.frame_shift)))
    muted = np.pad(energies.muted, (0, -num_frames % step), mode="edge").reshape(-1, step).sum(axis=1)
    heard = muted == 0
    llr = voicing_llr(tracks, heard, length, config.voicing_against, config.voicing_favour)
    return np.repeat(llr, step)[:num_frames]


def frame_voice_llr(energies: FrameEnergies, called: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """The log-likelihood ratio of gliding pitch around each frame, 0 or less, float64 (T,); see `voice_llr`. called: bool (T,),
    the frames that would be speech without it. ValueError as of `frame_voicing_llr`."""
    step, num_frames = voicing_step(config.frame_shift), len(called)
    # Less time has less of either, so a shorter recording has less of the prior.
    whole = min(1.0, np.sum(~energies.muted) * config.frame_shift / config.phrase_seconds)
    windows = np.pad(called, (0, -num_frames % step)).reshape(-1, step).sum(axis=1) > 0
    reach = (config.phrase_seconds, config.talk_seconds)
    llr = voice_llr(
        _voicing_of(energies),
        windows,
        step * config.frame_shift,
        reach,
        config.glide_share,
        config.glide_nats,
        config.prior_nats * whole,
    )
    return np.repeat(llr, step)[:num_frames]


def _voiced_share(energies, frames, config):
    """The share of voiced windows among frames, bool (T,); 0 of none."""
    voiced = np.repeat(_voicing_of(energies).harmonicity > HARMONIC, voicing_step(config.frame_shift))
    some = frames[: len(voiced)]
    return voiced[: len(some)][some].mean() if some.any() else 0.0


def _voicing_of(energies):
    if energies.voicing is None:
        raise ValueError("energies without voicing; expected those of frame_energies with config.voicing")
    return energies.voicing


def fill_pauses(decisions: np.ndarray, longest: int) -> np.ndarray:
    """Pauses of less than `longest` frames between two stretches of speech become speech: bool (T,) -> bool (T,)."""
    edges = np.flatnonzero(np.diff(decisions, prepend=False, append=False)).reshape(-1, 2)
    filled = decisions.copy()
    for end, start in zip(edges[:-1, 1], edges[1:, 0], strict=True):
        if start - end < longest:
            filled[end:start] = True
    return filled


def _nothing(num_frames, config):
    low, llr, never = np.full(num_frames, -np.inf), np.full(num_frames, -config.largest_ratio), np.zeros(num_frames, bool)
    return Detection(config, never, never, never, llr, low, low, low, None, None)
