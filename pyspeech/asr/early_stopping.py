"""Early stopping of language decoders by the language posteriors of each frame (Joshi et al. 2021, section 6.3).

After t frames (t = 1, 2, ...) the score of language l is, by the rule chosen,

    sum_logp    s_l(t) = sum over t' <= t of log P_t'(l)     equation 1 as printed
    mean_logp   s_l(t) / t
    mean_p      mean over t' <= t of P_t'(l)

and its decoder is switched off for good after frame t where t > tau and s_l(t) < best - threshold. `best` is the
highest score among the decoders that still run, so that one always does: compared with a language switched off before,
the last one could stop as well, and there would be no output.

The language of the utterance is the one with the highest mean posterior among the decoders that still run at its end.
Equation 2: T_avg = sum over languages of the fraction of the utterance's frames that its decoder ran, 1 to L.

The search plays no part in any of this, so one search with all decoders running serves for any number of settings: the
output of the language chosen is the same, and `run` gives the choice and T_avg.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pyspeech.asr.config import EarlyStopping

AT_ONCE = 500  # utterances that `run` goes through together


class EarlyStopper:
    """Scores and decoders that run, of a batch of B utterances and L languages, frame by frame.

    active (B, L) bool: decoders that run. num_frames (B,): frames seen. frames_run (B, L): those that each decoder ran.
    """

    def __init__(self, batch: int, languages: int, config: EarlyStopping | None = None) -> None:
        self.config = config or EarlyStopping()
        self.config.check()
        self.active = np.ones((batch, languages), dtype=bool)
        self.num_frames = np.zeros(batch, dtype=np.int64)
        self.frames_run = np.zeros((batch, languages), dtype=np.int64)
        self._sum_p = np.zeros((batch, languages))
        self._sum_logp = np.zeros((batch, languages))

    def add(self, log_posteriors: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Add the next T frames, log_posteriors (B, T, L), of which `lengths` (B,) count (all where None).

        Returns (B, T, L) bool: the decoders that run in each frame; none beyond the length.
        """
        log_posteriors = np.asarray(log_posteriors, dtype=np.float64)
        batch, total, languages = log_posteriors.shape
        lengths = np.full(batch, total) if lengths is None else np.asarray(lengths)
        running = np.zeros((batch, total, languages), dtype=bool)
        for frame in range(total):
            live = frame < lengths
            running[:, frame] = self.active & live[:, None]
            self.frames_run += running[:, frame]
            self.num_frames += live
            self._sum_logp += np.where(live[:, None], log_posteriors[:, frame], 0)
            self._sum_p += np.where(live[:, None], np.exp(log_posteriors[:, frame]), 0)
            self._switch_off(live & (self.num_frames > self.config.tau))
        return running

    def _switch_off(self, decided):
        """decided (B,): utterances in which decoders may be switched off now."""
        if not decided.any():
            return
        scores = self._scores()
        best = np.where(self.active, scores, -np.inf).max(axis=1, keepdims=True)
        self.active &= ~(decided[:, None] & (scores < best - self.config.threshold))

    def _scores(self):
        if self.config.rule == "sum_logp":
            return self._sum_logp
        total = self._sum_logp if self.config.rule == "mean_logp" else self._sum_p
        return total / np.maximum(self.num_frames, 1)[:, None]

    @property
    def mean_posteriors(self) -> np.ndarray:
        """(B, L): of all frames seen; equal where none was."""
        seen = self.num_frames[:, None]
        return np.where(seen > 0, self._sum_p / np.maximum(seen, 1), 1 / self.active.shape[1])

    def best(self) -> np.ndarray:
        """(B,) number of the language with the highest mean posterior among those whose decoders run."""
        return np.where(self.active, self.mean_posteriors, -1).argmax(axis=1)

    def t_avg(self) -> np.ndarray:
        """(B,) equation 2: 1..L; 0 for an utterance without frames."""
        return self.frames_run.sum(axis=1) / np.maximum(self.num_frames, 1)


def run(log_posteriors: Sequence[np.ndarray], config: EarlyStopping) -> list[tuple[int, float]]:
    """Whole utterances: a list of log_posteriors (T, L), each with its T -> [(number of its language, T_avg), ...]."""
    found = []
    for start in range(0, len(log_posteriors), AT_ONCE):
        batch = [np.asarray(item) for item in log_posteriors[start : start + AT_ONCE]]
        lengths = np.array([len(item) for item in batch])
        padded = np.zeros((len(batch), lengths.max(), batch[0].shape[1]))
        for row, item in zip(padded, batch, strict=True):
            row[: len(item)] = item
        stopper = EarlyStopper(len(batch), padded.shape[2], config)
        stopper.add(padded, lengths)
        found += zip(stopper.best().tolist(), stopper.t_avg().tolist(), strict=True)
    return found


def overall_t_avg(values: Iterable[float]) -> float:
    """Mean of utterances' T_avg, those without frames left out; 0.0 where there is none."""
    values = [value for value in values if value > 0]
    return float(np.mean(values)) if values else 0.0
