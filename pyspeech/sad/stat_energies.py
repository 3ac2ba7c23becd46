"""Denoising and filtering half of the statistical SAD: from audio to one energy per frame.

Implements section 2 of Heitkaemper, Schmalenstroeer and Haeb-Umbach, "Statistical and neural network based speech activity
detection in non-stationary acoustic environments" (Interspeech 2020), up to the combined sub-band energy (CSBE):

    |X(t,f)|^2 -> minimum statistics and Wiener filter, several times (equation 1) -> high-pass -> first-order LPC
               -> energies of sub-bands of 1 kHz -> weighted with 1/s and summed: CSBE(t), before its smoothing in time

All of it works on power spectra: one FFT per frame, no signal is ever resynthesised. A recording is cut into chunks at
fixed frames, with the context that noise tracking needs, wherever the caller's blocks end; so the energies do not depend on
the blocks, and memory grows only by the few numbers kept per frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import rfft

from pyspeech.sad.voicing import VoicingTracks, voicing_step, voicing_tracks, voicing_window

if TYPE_CHECKING:
    from pyspeech.sad.config import StatisticalConfig

CHUNK_FRAMES = 2048  # frames denoised at a time; a multiple of MEAN_FRAMES
FFT_FRAMES = 256  # frames transformed at a time: their spectra stay in the processor's cache
MEAN_FRAMES = 4  # noise tracking looks for the minimum among means over this many frames, which fluctuate less
HUGE = np.float32(1e30)
TINY = np.float32(1e-37)


@dataclass
class FrameEnergies:
    """Tracks of one number per frame, (T,), in squared samples times the window's energy; and of the voicing."""

    csbe: np.ndarray  # float32, combined sub-band energy of the processed signal, not yet smoothed
    received: np.ndarray  # float32, energy above the high-pass before denoising
    denoised: np.ndarray  # float32, energy above the high-pass after denoising
    muted: np.ndarray  # bool, most samples are digital zeros (a gap in the recording): the frame tells nothing
    voicing: VoicingTracks | None = None  # of ceil(T / voicing_step) windows, where the configuration wants it


def frame_energies(blocks: Iterable[np.ndarray], config: StatisticalConfig) -> FrameEnergies:
    """FrameEnergies of a recording, T = ceil(N / hop): frame t stands for the samples [t hop, (t + 1) hop), its window is
    centred on them, and zeros lie beyond both ends.

    blocks: iterable of (n,) float arrays of any lengths, at config.sampling_rate. config: StatisticalConfig.
    """
    filters = band_filters(config)
    context = config.iterations * window_blocks(config) * MEAN_FRAMES
    if config.voicing:
        context = max(context, voicing_context(config))
    window = np.hanning(config.n_fft + 1)[:-1].astype(np.float32)
    nothing = np.zeros(0, np.float32)
    parts = [FrameEnergies(nothing, nothing, nothing, np.zeros(0, bool))]
    voicing = []
    for samples, left, core in _chunks(blocks, config, context):
        power, muted = power_spectra(samples, window, config)
        received = power @ filters["passed"]
        processed = denoise(power, muted, config)
        rows = slice(left, left + core)
        parts.append(
            FrameEnergies(
                combine_bands(processed[rows], filters), received[rows], processed[rows] @ filters["passed"], muted[rows]
            )
        )
        if config.voicing:
            voicing.append(_chunk_voicing(samples, left, core, config))
    energies = _joined(parts)
    energies.voicing = _joined(voicing) if voicing else None
    return energies


def _joined(parts):
    """Parts of tracks one after the other."""
    tracks = {field.name: [getattr(part, field.name) for part in parts] for field in fields(parts[0])}
    return type(parts[0])(**{name: np.concatenate(values) for name, values in tracks.items() if values[0] is not None})


def voicing_context(config: StatisticalConfig) -> int:
    """Frames on either side of some that the windows of their voicing reach into, a multiple of step and MEAN_FRAMES."""
    unit = max(voicing_step(config.frame_shift), MEAN_FRAMES)  # powers of two
    return unit * -(-voicing_window(config.sampling_rate) // (unit * config.hop))


def _chunk_voicing(samples, left, core, config):
    """The voicing of the `core` frames behind the `left` first ones of a chunk of `_chunks`; windows are centred on frames."""
    step = voicing_step(config.frame_shift)
    hop, size = step * config.hop, voicing_window(config.sampling_rate)
    count = -(-core // step)
    first = (config.n_fft - config.hop) // 2 + left * config.hop - (size - hop) // 2
    end = first + (count - 1) * hop + size
    samples = np.pad(samples, (max(0, -first), max(0, end - len(samples))))
    first = max(0, first)
    return voicing_tracks(samples[first : first + (count - 1) * hop + size], hop, config.sampling_rate)


def power_spectra(samples: np.ndarray, window: np.ndarray, config: StatisticalConfig) -> tuple[np.ndarray, np.ndarray]:
    """|X(t,f)|^2 of the frames that lie whole in `samples` (N,): float32 (T, n_fft / 2 + 1), and muted, bool (T,)."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, config.n_fft)[:: config.hop]
    power = np.empty((len(frames), config.n_fft // 2 + 1), np.float32)
    windowed = np.empty((FFT_FRAMES, config.n_fft), np.float32)  # once: memory that is new each time takes longer
    for start in range(0, len(frames), FFT_FRAMES):
        part = frames[start : start + FFT_FRAMES]
        spectrum = rfft(np.multiply(part, window, out=windowed[: len(part)]))
        power[start : start + FFT_FRAMES] = spectrum.real**2 + spectrum.imag**2  # pyright: ignore[reportAttributeAccessIssue]
    zeros = np.concatenate(([0], np.cumsum(samples == 0, dtype=np.int32)))
    begin = np.arange(len(frames)) * config.hop
    return power, zeros[begin + config.n_fft] - zeros[begin] > config.n_fft // 2


def denoise(power: np.ndarray, muted: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """Noise tracking and Wiener filtering, `iterations` times over: power spectra (T, F) to power spectra (T, F)."""
    for _ in range(config.iterations):
        power = wiener_filter(power, noise_power(power, muted, config), config)
    return power


def noise_power(power: np.ndarray, muted: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """Minimum statistics: the smallest mean over MEAN_FRAMES frames within noise_seconds before a frame, or within as much
    after it, whichever is larger. power (T, F) -> (ceil(T / MEAN_FRAMES), F). Muted frames take no part.

    The minimum over both sides at once would take the quiet before a transmission for the noise of its first moments, and
    the carrier noise between the key and the first word would pass for speech; one side or the other knows better.
    """
    num_blocks = -(-len(power) // MEAN_FRAMES)
    missing = num_blocks * MEAN_FRAMES - len(power)
    present = np.pad(~muted, (0, missing))
    if present.all():
        means = power.reshape(num_blocks, MEAN_FRAMES, -1).mean(1)
    else:
        padded = np.pad(power, ((0, missing), (0, 0))) * present[:, None]
        counts = present.reshape(num_blocks, MEAN_FRAMES).sum(1, dtype=np.float32)
        means = padded.reshape(num_blocks, MEAN_FRAMES, -1).sum(1) / np.maximum(counts, 1)[:, None]
        means[counts == 0] = HUGE
    reach = window_blocks(config)
    lowest = running_minimum(np.pad(means, ((reach, reach), (0, 0)), mode="edge"), reach + 1)
    return np.maximum(lowest[:num_blocks], lowest[reach : reach + num_blocks])


def running_minimum(rows: np.ndarray, length: int) -> np.ndarray:
    """Minimum over `length` consecutive rows: (T, F) -> (T - length + 1, F), row t from rows t to t + length - 1."""
    span = 1
    while 2 * span <= length:
        rows = np.minimum(rows[:-span], rows[span:])
        span *= 2
    return np.minimum(rows[: len(rows) - (length - span)], rows[length - span :]) if length > span else rows


def wiener_filter(power: np.ndarray, noise: np.ndarray, config: StatisticalConfig) -> np.ndarray:
    """Equation 1, W(t,f) = max(1 - gamma |V|^2 / |X|^2, G_min), and the filtered |W X|^2 = (W |X|^2)^2 / |X|^2.

    power (T, F), noise (ceil(T / MEAN_FRAMES), F) -> (T, F). Both sides are multiplied out: one division instead of two.
    """
    filtered = np.empty_like(power)
    noise = noise * np.float32(config.oversubtraction)
    for start in range(0, len(power), FFT_FRAMES):  # again so that all of it stays in the cache
        part, out = power[start : start + FFT_FRAMES], filtered[start : start + FFT_FRAMES]
        blocks = slice(start // MEAN_FRAMES, (start + FFT_FRAMES) // MEAN_FRAMES)
        left = np.repeat(noise[blocks], MEAN_FRAMES, axis=0)[: len(part)]
        np.subtract(part, left, out=left)
        np.maximum(left, part * np.float32(config.min_gain), out=left)
        np.divide(left, np.maximum(part, TINY), out=out)
        out *= left
    return filtered


def window_blocks(config: StatisticalConfig) -> int:
    """Blocks of MEAN_FRAMES frames before a block (and after it) within which the minimum is looked for."""
    return max(1, round(config.noise_seconds * config.sampling_rate / config.hop / MEAN_FRAMES))


def band_filters(config: StatisticalConfig) -> dict[str, np.ndarray]:
    """Weights over the frequency bins: "passed" (F,) by the high-pass, "lag1" (F,) for the first autocorrelation
    coefficient, and "bands" (F, S), the sub-bands of 1 kHz, band s weighted 1/s."""
    frequency = np.arange(config.n_fft // 2 + 1) * config.sampling_rate / config.n_fft
    passed = (frequency >= config.high_pass).astype(np.float32)
    band = (frequency // config.band_hertz).astype(int)
    band[-1] = band[-2]  # the Nyquist frequency belongs to the last band
    bands = passed[:, None] * (band[:, None] == np.arange(band.max() + 1)) / (1 + np.arange(band.max() + 1))
    lag1 = passed * np.cos(2 * np.pi * np.arange(len(frequency)) / config.n_fft)
    return {"passed": passed, "lag1": lag1.astype(np.float32), "bands": bands.astype(np.float32)}


def combine_bands(processed: np.ndarray, filters: dict[str, np.ndarray]) -> np.ndarray:
    """CSBE(t) = sum over s of E_s(t) / s, of the linear prediction of the processed power spectra: (T, F) -> (T,)."""
    return (processed @ filters["bands"]).sum(1) * predictor_gain(processed, filters)


def predictor_gain(processed: np.ndarray, filters: dict[str, np.ndarray]) -> np.ndarray:
    """First-order LPC: a1^2 of every frame, a1 = r1 / r0 within 0 to 1, from the processed power spectra (T, F) -> (T,).

    The predictable part of a frame is the output of the predictor, a1 x(n - 1), whose power is a1^2 times the frame's at
    every frequency. Noise, with a1 near 0, loses by it; voiced speech does not.
    """
    energy, lag1 = processed @ filters["passed"], processed @ filters["lag1"]
    return np.clip(lag1 / np.maximum(energy, TINY), 0, 1) ** 2


def _chunks(blocks, config, context):
    """Yield (samples, left, core): the samples of `left` + `core` + right frames, of which the `core` ones are new.

    Chunks begin at multiples of CHUNK_FRAMES and bring up to `context` frames along on either side.
    """
    before = (config.n_fft - config.hop) // 2  # zeros before the first frame's samples
    held = np.zeros(before, np.float32)
    held_from, done, received = 0, 0, 0  # frames, but `received` samples
    for block in blocks:
        held = np.concatenate([held, np.asarray(block, np.float32)])
        received += len(block)
        # Complete frames: those whose window has all its samples.
        while (received + before - config.n_fft) // config.hop + 1 >= done + CHUNK_FRAMES + context:
            left, end = done - max(0, done - context), done + CHUNK_FRAMES + context
            first = done - left
            yield held[(first - held_from) * config.hop : (end - 1 - held_from) * config.hop + config.n_fft], left, CHUNK_FRAMES
            done += CHUNK_FRAMES
            keep = max(0, done - context)
            held, held_from = held[(keep - held_from) * config.hop :], keep
    num_frames = -(-received // config.hop)
    held = np.concatenate([held, np.zeros(config.n_fft, np.float32)])
    while done < num_frames:
        core = min(CHUNK_FRAMES, num_frames - done)
        left, end = done - max(0, done - context), min(num_frames, done + core + context)
        yield held[(done - left - held_from) * config.hop : (end - 1 - held_from) * config.hop + config.n_fft], left, core
        done += core
