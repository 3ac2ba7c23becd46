"""Options of decoding, as plain dataclasses that recipes embed in their configuration; it imports nothing heavy."""
import math
from dataclasses import dataclass

from pyspeech.errors import UserError

MOST_HYPOTHESES = 1000  # memory grows with their square
STOPPING_RULES = ("sum_logp", "mean_logp", "mean_p")


@dataclass
class SearchConfig:
    """Beam search (pyspeech/transducer/search.py); beam=1 is the greedy search."""

    beam: int = 4  # hypotheses kept for every utterance and language
    max_symbols: int = 3  # symbols that a hypothesis may put out in one encoder frame
    prune: float = 10.0  # hypotheses whose log probability is this much below the best are dropped; .inf: none

    def check(self):
        if not 1 <= self.beam <= MOST_HYPOTHESES or self.max_symbols < 1 or not self.prune > 0:
            raise UserError(f"search: beam={self.beam}, max_symbols={self.max_symbols}, prune={self.prune}; "
                            f"expected beam from 1 to {MOST_HYPOTHESES}, max_symbols of at least 1 and prune > 0")


@dataclass
class EarlyStopping:
    """When decoders of unlikely languages are switched off (Joshi et al. 2021, section 6.3); as given: never."""

    rule: str = "sum_logp"  # score of a language: sum_logp (equation 1), mean_logp or mean_p
    tau: float = math.inf  # encoder frames that all decoders run
    threshold: float = math.inf  # s_th: how far below the best active language's score one has to be to be switched off

    def check(self):
        if self.rule not in STOPPING_RULES:
            raise UserError(f"early stopping: rule={self.rule!r}; expected one of {', '.join(STOPPING_RULES)}")
        if not self.tau >= 0 or not self.threshold >= 0:
            raise UserError(f"early stopping: tau={self.tau}, threshold={self.threshold}; expected >= 0 or .inf")


@dataclass
class Endpointing:
    """When an utterance of a stream is over. The three rules are those of Kaldi's online decoders; .inf: never."""

    silence_before: float = 2.4  # seconds in which nothing was decoded, from the start
    silence_after: float = 1.2  # seconds since the last symbol
    longest: float = 20.0  # seconds of an utterance

    def check(self):
        if not all(seconds > 0 for seconds in (self.silence_before, self.silence_after, self.longest)):
            raise UserError(f"endpointing: silence_before={self.silence_before}, silence_after={self.silence_after}, "
                            f"longest={self.longest}; expected seconds > 0 or .inf")
