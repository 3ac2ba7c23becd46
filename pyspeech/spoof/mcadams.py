"""Speaker anonymisation by the McAdams coefficient: Li et al. 2022, section 2.1; Patino et al. 2021 (VoicePrivacy B2).

Frames of 20 ms every 10 ms, windowed before and after, each with linear prediction of order 20 by Burg's method: the
angle phi of every complex pole becomes min(phi^coefficient, pi), its radius stays, real poles stay, and the residual is
filtered by what results. The angle of 1 rad stays where it is: 2546 Hz at 16 kHz, and in proportion at other rates, so
that the same coefficient does something else to a voice there.

The frames of a block go through all of it together, time along the first axis of the arrays. Where the reference leaves
gaps, this does not: frames begin before the first sample and end behind the last, so that all samples are in as many
frames; silence stays silence; by default the RMS stays what it was, where the reference makes the peak 1.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyspeech.errors import UserError
from pyspeech.spoof.roots import find_roots, multiply_out

ORDER = 20
FRAME_MS, SHIFT_MS = 20, 10
LEVELS = ("rms", "peak", "none")
LOWEST_RATE = 2000  # Hz: a frame has twice as many samples as there are coefficients
BLOCK = 512  # frames that go through all of it together: 1.3 MB an array
LEAST_POWER = 1 / 8  # one of three digits that a sum of 300 squares has lost to rounding anyway
# A frame may become louder by so much. Below 1 all frames do (at 0.6 by 20 dB, at most 40): that never is in the way.
# Above 1 only those do whose poles meet at half the sampling rate, and would drown the rest.
MOST_GAIN_DB, MOST_GAIN_DB_ABOVE_1 = 60.0, 12.0


def anonymize(samples: ArrayLike, coefficient: float, rate: float = 16000, level: str = "rms") -> np.ndarray:
    """Speech with its formants moved: the same shape, finite wherever the input is.

    samples: (..., N), time last; every row is processed by itself. coefficient: above 0; 0.6 to 0.9 in the paper, 1
    changes nothing but the ends. rate: whole Hz. level: "rms" keeps the RMS of each row, "peak" makes its largest
    magnitude 1, "none" leaves what comes out. Returns float32 for float32 input and float64 for float64 and integers.
    UserError for another coefficient, level, or rate, and for samples that are not finite numbers.
    """
    return anonymize_many(samples, [coefficient], rate, level)[0]


def anonymize_many(samples: ArrayLike, coefficients: ArrayLike, rate: float = 16000, level: str = "rms") -> np.ndarray:
    """`anonymize` for several coefficients, with one analysis: (number of coefficients, ..., N)."""
    samples = np.asarray(samples)
    try:
        coefficients = np.asarray(coefficients, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"McAdams coefficients {coefficients}: expected numbers above 0, such as 0.8") from None
    _check(samples, coefficients, rate, level)
    rate = int(rate)
    kind = np.float32 if samples.dtype in (np.float16, np.float32) else np.float64
    result = np.empty((len(coefficients), *samples.shape), dtype=kind)
    for row in np.ndindex(samples.shape[:-1]):
        _anonymize_row(samples[row], coefficients, rate, level, result[(slice(None), *row)])
    return result


def _check(samples, coefficients, rate, level):
    if coefficients.ndim != 1 or not np.all((coefficients > 0) & np.isfinite(coefficients)):
        raise UserError(f"McAdams coefficient {np.squeeze(coefficients)}: expected numbers above 0, such as 0.8")
    if level not in LEVELS:
        raise UserError(f"level={level}: expected one of {', '.join(LEVELS)}")
    if not (rate >= LOWEST_RATE and float(rate).is_integer()):
        raise UserError(f"a sampling rate of {rate} Hz: the anonymisation needs at least {LOWEST_RATE} Hz, and whole Hz")
    if samples.ndim == 0 or samples.dtype.kind not in "fiu":
        raise UserError(f"{samples.ndim}-dimensional samples of type {samples.dtype}: expected an array of numbers")
    if not np.isfinite(samples).all():
        raise UserError("samples that are not finite numbers: expected none, set them to 0 first")


def _anonymize_row(samples, coefficients, rate, level, out):
    """samples (N,) -> out (coefficients, N), block by block; only then is the factor of the level known."""
    window, shift = analysis_window(rate)
    overlap = len(window) - shift
    count = 0 if len(samples) == 0 else (len(samples) - 1) // shift + 2  # the first one begins at sample -shift
    tail = np.zeros((len(coefficients), overlap))
    energy, peak = np.zeros(len(coefficients)), np.zeros(len(coefficients))
    for first in range(0, count, BLOCK):
        frames = _take_frames(samples, (first - 1) * shift, min(BLOCK, count - first), window, shift)
        frames = anonymize_frames(frames, coefficients)
        frames *= window[:, None, None]
        made = overlap_add(frames, shift)
        made[:, :overlap] += tail
        made, tail = made[:, :-overlap], made[:, -overlap:]
        begin = (first - 1) * shift
        made = made[:, max(0, -begin) : len(samples) - begin]
        out[:, max(0, begin) : begin + BLOCK * shift] = made
        energy += np.einsum("cn,cn->c", made, made)
        peak = np.maximum(peak, np.abs(made).max(axis=1, initial=0.0))
    out *= _level_factors(samples, energy, peak, level)[:, None].astype(out.dtype)


def _level_factors(samples, energy, peak, level):
    """What each result is to be multiplied by; 1 for silence."""
    if level == "none":
        return np.ones_like(energy)
    if level == "peak":
        return 1 / np.where(peak > 0, peak, 1.0)
    # Summed piece by piece: a copy of hours in float64 is what the blocks are there to avoid.
    pieces = (samples[begin : begin + (1 << 16)].astype(np.float64) for begin in range(0, len(samples), 1 << 16))
    return np.sqrt(sum(piece @ piece for piece in pieces) / np.where(energy > 0, energy, 1.0))


def analysis_window(rate: int) -> tuple[np.ndarray, int]:
    """(window (W,) of 20 ms, shift in samples): the squares of the windows add up to 1, but for half a percent."""
    size, shift = rate * FRAME_MS // 1000, rate * SHIFT_MS // 1000
    hann = np.hanning(size)
    return np.sqrt(hann * shift / hann.sum()), shift


def _take_frames(samples, start, count, window, shift):
    """Windowed frames (W, count), the first from sample `start`; 0 outside of the samples."""
    stretch = np.zeros((count - 1) * shift + len(window))
    inside = samples[max(0, start) : start + len(stretch)]
    stretch[max(0, -start) :][: len(inside)] = inside
    views = np.lib.stride_tricks.sliding_window_view(stretch, len(window))[::shift]
    return np.multiply(views.T, window[:, None], order="C")


def anonymize_frames(frames: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Frames (W, F) with the poles of their linear prediction moved: (W, coefficients, F)."""
    predictor, residual = burg(frames)
    poles = find_roots(predictor)
    # All coefficients side by side, as if there were so many more frames.
    moved = np.stack([multiply_out(move_poles(poles, coefficient)) for coefficient in coefficients], axis=1)
    filtered = synthesize(residual, moved)
    limit = 10 ** (np.where(coefficients > 1, MOST_GAIN_DB_ABOVE_1, MOST_GAIN_DB) / 20)
    before = np.sqrt(np.einsum("tf,tf->f", frames, frames))
    after = np.sqrt(np.einsum("tcf,tcf->cf", filtered, filtered))
    filtered *= np.minimum(1.0, limit[:, None] * before / np.where(after > 0, after, 1.0))
    return filtered


def burg(frames: np.ndarray, order: int = ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Linear prediction by Burg's method: frames (W, F) -> predictor (order + 1, F), the first row 1; of silence, the
    others 0; and the residual (W, F): the frames through the predictor, from rest.

    The sums of squares that each reflection is divided by are those of the errors themselves. The usual recursion for
    them loses digits where a frame is well predicted, and lets poles leave the unit circle: it is followed no farther
    than until a frame has but LEAST_POWER of its last sum left.
    """
    predictor = np.zeros((order + 1, frames.shape[1]))
    predictor[0] = 1.0
    residual = frames.copy()
    forward, backward = residual[1:], frames[:-1].copy()  # the errors; the backward ones are `scale` times what is held
    scratch, power, least = np.empty_like(backward), np.zeros(frames.shape[1]), np.inf
    scale = np.ones(frames.shape[1])
    rounding = 1e-28 * np.einsum("tf,tf->f", frames, frames) + 1e-250  # what is less is not there to be predicted
    for stage in range(1, order + 1):
        length = len(frames) - stage
        ahead, behind, product = forward[stage - 1 :], backward[:length], scratch[:length]
        if (power < least).any():
            power = np.einsum("tf,tf->f", ahead, ahead) + scale**2 * np.einsum("tf,tf->f", behind, behind)
            least = LEAST_POWER * power
        cross = scale * np.einsum("tf,tf->f", ahead, behind)
        reflection = np.where(power > rounding, -2 * cross / np.maximum(power, rounding), 0.0)
        predictor[1 : stage + 1] += reflection * predictor[stage - 1 :: -1]
        # ahead + reflection * behind, and behind + reflection * ahead of what ahead was before: in place, in few passes.
        ahead += np.multiply(behind, reflection * scale, out=product)
        left = np.maximum(1 - reflection**2, 1e-30)
        scale *= left
        behind += np.multiply(ahead, reflection / scale, out=product)
        power = power * left - ahead[0] ** 2 - (scale * behind[-1]) ** 2
    residual[:order] = filter_start(frames[:order], predictor)  # the rest are the forward errors
    return predictor, residual


def filter_start(frames: np.ndarray, predictor: np.ndarray) -> np.ndarray:
    """The residual of the beginning of frames (W, F), which the forward errors of Burg's method do not hold."""
    result = frames.copy()
    for delay in range(1, len(frames)):
        result[delay:] += predictor[delay] * frames[:-delay]
    return result


def move_poles(poles: NDArray[np.complex128], coefficient: float) -> NDArray[np.complex128]:
    """The poles with angles min(phi^coefficient, pi) and the same radii; real ones as they are."""
    with np.errstate(over="ignore"):
        angles = np.minimum(np.abs(np.angle(poles)) ** coefficient, np.pi)
    moved = np.abs(poles) * np.exp(1j * np.copysign(angles, poles.imag))
    return np.where(poles.imag == 0, poles, moved)


def synthesize(excitation: np.ndarray, predictor: np.ndarray) -> np.ndarray:
    """Excitation (W, F) through 1 / predictor (order + 1, C, F), from rest: (W, C, F)."""
    order, *shape = len(predictor) - 1, *predictor.shape[1:]
    newest_last = np.ascontiguousarray(predictor[:0:-1])
    product = np.empty_like(newest_last)
    made = np.zeros((order + len(excitation), *shape))
    for index, sample in enumerate(excitation):
        np.multiply(newest_last, made[index : index + order], out=product)
        np.subtract(sample, np.add.reduce(product, axis=0), out=made[index + order])
    return made[order:]


def overlap_add(frames: np.ndarray, shift: int) -> np.ndarray:
    """Frames (W, C, F) every `shift` samples: their sum (C, (F - 1) * shift + W)."""
    size, rows, count = frames.shape
    total = np.zeros((rows, count * shift + size))
    for offset in range(0, size, shift):
        piece = frames[offset : offset + shift]
        # A view, as only the last axis is split.
        target = total[:, offset : offset + count * shift].reshape(rows, count, shift)
        target[..., : len(piece)] += piece.transpose(1, 2, 0)
    return total[:, : (count - 1) * shift + size]
