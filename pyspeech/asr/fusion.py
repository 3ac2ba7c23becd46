"""Terms that the search adds to the log probabilities of the transducer: hotwords, language models, less the internal one.

A hypothesis y that is extended by a symbol v gets, beside log P(v | t, y) of the transducer,

    hotwords                 what the automaton of hotwords.py gives or takes back
    shallow fusion           lm_weight * log P_LM(v | y)
    symbol bonus             symbol_bonus (of SearchConfig)
    internal language model  - ilm_weight * log P_ILM(v | y)

and nothing for a blank. symbol_bonus is against deletions, which a language model adds to as blanks cost nothing there (beta in
McDermott et al. 2019, A density ratio approach to language model fusion). P_ILM is estimated by the transducer itself with an
encoder output of zeros, over all symbols but the blank (Variani et al. 2020, Hybrid autoregressive transducer; Meng et al.
2021, Internal language model estimation for domain-adaptive end-to-end speech recognition). All of it depends on y and v
alone, so that hypotheses with the same prefix have the same, and sums over alignments stay sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from pyspeech.asr.context_graph import ContextGraph
    from pyspeech.asr.networks import Transducer


@dataclass
class Source:
    """Automaton that scores symbols. starts: (P, H, B) int64, the P nodes at which each utterance begins with each head, whose
    values are added up."""

    graph: ContextGraph
    starts: torch.Tensor


@dataclass
class SearchContext:
    """Sources of scores of a search, and by head the weight of the internal language model that is subtracted."""

    sources: list[Source] = field(default_factory=list)
    ilm_weights: dict[int, float] = field(default_factory=dict)


class Fusion:
    """Bonus of each extension of the hypotheses of a search, in the rows of its predictor.

    Attributes:
        bonus: (R, V) float64, added to the log probability of each symbol after the prefix of a row.
    """

    def __init__(
        self, model: Transducer, row_heads: torch.Tensor, context: SearchContext, symbol_bonus: float, predicted: torch.Tensor
    ) -> None:
        """row_heads: (R,) int64, rows ordered by head, utterance, slot; predicted: (R, J), the projected predictions."""
        self.model, self.row_heads, self.context, self.symbol_bonus = model, row_heads, context, symbol_bonus
        self.graphs, self.states, values = [], [], []  # states (P, R)
        for item in context.sources:
            starts = item.starts.to(row_heads.device).flatten(1)
            graph = item.graph.to(row_heads.device)
            states, found = graph.begin(starts.repeat_interleave(len(row_heads) // starts.shape[1], dim=1))
            self.graphs.append(graph)
            self.states.append(states)
            values.append(found)
        self._one_head = bool((row_heads == row_heads[0]).all())
        if context.ilm_weights:
            self._silence = model.project_encoded(predicted.new_zeros(1, model.config.encoder_size))
        size = max(model.vocabulary_sizes)
        self.bonus = torch.zeros(len(row_heads), size, dtype=torch.float64, device=row_heads.device)
        self.bonus += self._bonus(values, row_heads, predicted)

    def update(
        self,
        moved: torch.Tensor,
        sources: torch.Tensor,
        new: torch.Tensor,
        parents: torch.Tensor,
        tokens: torch.Tensor,
        predicted: torch.Tensor | None,
    ) -> None:
        """Rows `moved` take over those of `sources`; rows `new` are rows `parents`, extended by tokens, predicted (N, J)."""
        found = []
        if len(new):
            graphs = zip(self.graphs, self.states, strict=True)
            found = [graph.advance(states[:, parents], tokens) for graph, states in graphs]
        if len(moved):
            self.bonus[moved] = self.bonus[sources]
            for states in self.states:
                states[:, moved] = states[:, sources]
        if len(new):
            for states, (own, _) in zip(self.states, found, strict=True):
                states[:, new] = own
            self.bonus[new] = self._bonus([values for _, values in found], self.row_heads[new], predicted)

    def pending(self, first: int, last: int) -> torch.Tensor:
        """Sum up what rows first to last - 1 have to give back at the end of an utterance: (N,) float64."""
        pending = self.bonus.new_zeros(last - first)
        for graph, states in zip(self.graphs, self.states, strict=True):
            pending += graph.pending[graph.nodes_of(states[:, first:last])].sum(dim=0)
        return pending

    def _bonus(self, values: Sequence[torch.Tensor], heads, predicted):
        """(N, V) of N rows with values (P, N, V or fewer) of each source."""
        size = self.bonus.shape[1]
        bonus = None
        for own in values:
            own = own.sum(dim=0)
            own = own if own.shape[1] == size else functional.pad(own, (0, size - own.shape[1]))
            bonus = own if bonus is None else bonus + own
        bonus = self.bonus.new_zeros(len(heads), size) if bonus is None else bonus
        bonus[:, 1:] += self.symbol_bonus
        for head, weight in self.context.ilm_weights.items():
            rows = slice(None) if self._one_head else (heads == head).nonzero()[:, 0]
            logits = self.model.head_logits(self._silence, predicted[rows], head)
            bonus[rows, 1 : logits.shape[1]] -= weight * logits[:, 1:].log_softmax(dim=-1).double()
        return bonus
