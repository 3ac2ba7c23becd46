"""Mean and variance normalisation of spectra for the SAD networks.

The paper mentions no normalisation of the magnitude spectrum. Over a 4 s crop in training and a whole file in testing the
network would see two kinds of input. Here each frame is normalised over a window that slides with it, the
frames up to `half` to either side, fewer at the recording's ends. So training crops, short clips and hours of radio are
treated alike, and a change of level or noise within a recording is forgotten as soon as it leaves the window.
"""

import math

import torch
from torch.nn import functional

FLOOR = 1e-3  # of the window's root mean square magnitude: 60 dB down
SILENCE = 1e-10  # absolute floor, for digital silence: far below a rounding step of any audio
LOG_SCALE = math.log(10)  # normalised log magnitudes are in units of 20 dB
ALL = slice(None)
LEAST_DEVIATION = 0.1  # of linear magnitudes, as a fraction of their mean: keeps a constant tone from blowing up


def normalise(
    magnitudes: torch.Tensor,
    valid: torch.Tensor | None,
    half: int,
    compress: str,
    left: int = 0,
    right: int = 0,
    ahead: int | None = None,
) -> torch.Tensor:
    """Spectra (B, T, F) to network features (B, T, F), zero on average, that do not depend on the recording's gain.

    valid: (B, T) bool, frames that exist, or None for all; the others do not count. half: frames to either side. left, right:
    frames at the start and at the end that only count for others' windows: (B, T - left - right, F) without them. ahead: frames
    after each, None: `half`; 0 for a causal network.
    compress: "log": log magnitudes less their mean; "none": magnitudes less their mean, by their standard deviation.
    A constant spectrum (silence, a steady tone) gives zeros.
    """
    window = SlidingMean(magnitudes, valid, half, half if ahead is None else ahead)
    core = slice(left, magnitudes.shape[1] - right)
    if compress == "none":
        return _standardised(magnitudes[:, core], window(magnitudes, core), window(magnitudes.double().square(), core))
    logs = _floored_logs(magnitudes, window(_powers(magnitudes)))
    return _centred(logs[:, core], window(logs, core))


def normalise_on(
    magnitudes: torch.Tensor, before: dict[str, torch.Tensor], behind: int, compress: str
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Normalise `count` more frames of a recording for a causal network, as `normalise` with ahead=0 does the whole of it.

    magnitudes: (1, count, F). before: of the `behind` + 1 frames before them "powers" (1, behind + 1, 2), the mean square
    and 1, "values" (1, behind + 1, F), which the mean is over, and for "log" compression "sums" (1, 1, F), float64, of these;
    zeros for frames before the recording.
    Returns features (1, count, F), and what is `before` of the frames that follow.
    """
    length = behind + 1
    new = torch.cat([_powers(magnitudes), torch.ones_like(magnitudes[:, :, :1])], 2)
    powers = torch.cat([before["powers"], new], 1)
    power, present = _past_sums(powers, length).split(1, 2)
    after = {"powers": powers[:, -length:]}
    if compress == "none":
        past = torch.cat([before["values"], magnitudes], 1)
        mean, square = (_past_sums(values, length) / present for values in (past, past.double().square()))
        return _standardised(magnitudes, mean, square), {**after, "values": past[:, -length:]}
    logs = _floored_logs(magnitudes, power / present)
    past = torch.cat([before["values"], logs], 1)
    # What enters the window, less what leaves it. Logs are so few orders apart that the rounding of hours does not matter.
    sums = before["sums"] + (logs.double() - past[:, : logs.shape[1]].double()).cumsum(1)
    return _centred(logs, sums / present), {**after, "values": past[:, -length:], "sums": sums[:, -1:]}


def _past_sums(values, length):
    """Sums (1, T, F), float64, over the `length` frames up to each of the last T of values (1, length + T, F)."""
    running = values.double().cumsum(1)
    return running[:, length:] - running[:, :-length]


def _powers(magnitudes):
    return magnitudes.square().mean(2, keepdim=True)


def _floored_logs(magnitudes, powers):
    """Logs of magnitudes, of which the windows' mean squares are `powers`."""
    level = powers.clamp(min=0).sqrt().to(magnitudes.dtype)
    return torch.maximum(magnitudes, (FLOOR * level).clamp(min=SILENCE)).log()


def _centred(logs, mean):
    return ((logs - mean) / LOG_SCALE).to(logs.dtype)


def _standardised(magnitudes, mean, square):
    variance = (square - mean.square()).clamp(min=0)
    return ((magnitudes - mean) / (variance.sqrt() + LEAST_DEVIATION * mean + SILENCE)).to(magnitudes.dtype)


class SlidingMean:
    """Means over the valid frames at most `behind` before and `ahead` after, (B, T, F) -> float64 (B, T', F) of the T' frames
    of `core`, by differences of a running sum.

    In double precision the place at which a recording is cut into chunks leaves no trace once the features are rounded.
    """

    def __init__(self, like: torch.Tensor, valid: torch.Tensor | None, behind: int, ahead: int) -> None:
        num_frames = like.shape[1]
        self.valid = None if valid is None else valid[:, :, None]
        frames = torch.arange(num_frames, device=like.device)
        self.start, self.end = (frames - behind).clamp(min=0), (frames + ahead + 1).clamp(max=num_frames)
        if valid is None:
            self.count = (self.end - self.start)[None, :, None].double()
        else:
            self.count = self._sums(valid[:, :, None], ALL).clamp(min=1)

    def __call__(self, values: torch.Tensor, core: slice = ALL) -> torch.Tensor:
        values = values if self.valid is None else values * self.valid
        return self._sums(values, core) / self.count[:, core]

    def _sums(self, values, core):
        running = functional.pad(values.double().cumsum(1), (0, 0, 1, 0))
        return running[:, self.end[core]] - running[:, self.start[core]]
