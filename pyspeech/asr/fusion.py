"""Terms that the search adds to the log probabilities of the transducer: hotwords, language models, less the internal one.

A hypothesis y that is extended by a symbol v gets, beside log P(v | t, y) of the transducer,

    hotwords                 what the automaton of hotwords.py gives or takes back
    shallow fusion           lm_weight * log P_LM(v | y)
    internal language model  - ilm_weight * log P_ILM(v | y)

and nothing for a blank. P_ILM is estimated by the transducer itself with an encoder output of zeros, over all symbols but the
blank (Variani et al. 2020, Hybrid autoregressive transducer, section 4; Meng et al. 2021, Internal language model estimation
for domain-adaptive end-to-end speech recognition, section 3). All of it depends on y and v alone, so that hypotheses with the
same prefix have the same, and sums over alignments stay sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pyspeech.asr.context_graph import ContextGraph
    from pyspeech.asr.networks import Transducer


@dataclass
class Source:
    """Automaton that scores symbols. starts: (H, B) int64, the node at which each utterance begins with each head."""

    graph: ContextGraph
    starts: torch.Tensor
    weight: float = 1.0


@dataclass
class SearchContext:
    """Sources of scores of a search, and by head the weight of the internal language model that is subtracted."""

    sources: list[Source]
    ilm_weights: dict[int, float] = field(default_factory=dict)


class Fusion:
    """Bonus of each extension of the hypotheses of a search, in the rows of its predictor.

    Attributes:
        bonus: (R, V) float64, added to the log probability of each symbol after the prefix of a row.
    """

    def __init__(self, model: Transducer, row_heads: torch.Tensor, context: SearchContext, predicted: torch.Tensor) -> None:
        """row_heads: (R,) int64, rows ordered by head, utterance, slot; predicted: (R, J), the projected predictions."""
        self.model, self.row_heads, self.ilm_weights = model, row_heads, context.ilm_weights
        self.sources = [Source(item.graph.to(row_heads.device), item.starts, item.weight) for item in context.sources]
        self.nodes = [
            item.starts.to(row_heads.device).flatten().repeat_interleave(len(row_heads) // item.starts.numel())
            for item in self.sources
        ]
        self.size = max(model.vocabulary_sizes)
        if self.ilm_weights:
            self._silence = model.project_encoded(predicted.new_zeros(1, model.config.encoder_size))
        self.bonus = self._bonus(self.nodes, row_heads, predicted)

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
        stepped = []
        if len(new):
            stepped = [item.graph.step(nodes[parents], tokens) for item, nodes in zip(self.sources, self.nodes, strict=True)]
        if len(moved):
            for rows in (self.bonus, *self.nodes):
                rows[moved] = rows[sources]
        if len(new):
            for nodes, own in zip(self.nodes, stepped, strict=True):
                nodes[new] = own
            self.bonus[new] = self._bonus(stepped, self.row_heads[new], predicted)

    def pending(self, first: int, last: int) -> torch.Tensor:
        """What rows first to last - 1 have to give back at the end of an utterance, (N,) float64."""
        pending = self.bonus.new_zeros(last - first)
        for item, nodes in zip(self.sources, self.nodes, strict=True):
            pending += item.weight * item.graph.pending[nodes[first:last]]
        return pending

    def _bonus(self, nodes: Sequence[torch.Tensor], heads, predicted):
        """(N, V) of rows at nodes, a tensor (N,) for each source."""
        bonus = torch.zeros(len(heads), self.size, dtype=torch.float64, device=heads.device)
        for item, own in zip(self.sources, nodes, strict=True):
            bonus[:, : item.graph.size] += item.weight * item.graph.values_at(own)
        for head, weight in self.ilm_weights.items():
            rows = (heads == head).nonzero()[:, 0]
            if len(rows):
                logits = self.model.head_logits(self._silence, predicted[rows], head)
                bonus[rows, 1 : logits.shape[1]] -= weight * logits[:, 1:].log_softmax(dim=-1).double()
        return bonus
