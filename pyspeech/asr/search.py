"""Time-synchronous beam search for transducers, batched over utterances, languages and hypotheses.

A stream is an utterance decoded by the head of one language. Each stream has K = `beam` slots for hypotheses: a prefix
y, its log probability s(y) and the predictor's state after y. In each encoder frame t a hypothesis is open while it
may put out symbols in that frame, and closed once it has put out the blank that ends it. Before the first frame there
is the empty prefix alone, s = 0. A frame begins with all hypotheses open and goes through rounds r = 0, 1, ...,
max_symbols:

1. every open hypothesis closes: it becomes a closed one with s(y) + log P(blank | t, y);
2. where a hypothesis with the same prefix was closed in an earlier round of this frame, the two become one, whose
   probability is the sum and whose alignment (times, symbol probabilities) is that of the more probable one;
3. for r < max_symbols, every open hypothesis is also extended by each symbol v: an open hypothesis y + v with
   s(y) + log P(v | t, y);
4. the K most probable of all closed hypotheses and all extensions stay, less those more than `prune` below the best;
5. the frame is over when none of them is open.

After the last frame the slots hold the n-best hypotheses. With K = 1 this is the greedy search: the best symbol, again
and again, until it is the blank or max_symbols are out. Within one round, no two open hypotheses and no two closed
ones have the same prefix, so step 2 joins pairs at most.

What makes it fast: all streams and slots are one tensor in every step; the LSTM predictor runs only for hypotheses
that were extended and stayed, and whose prefix is in no slot yet; prefixes are compared by a 63-bit hash. Hashes of
prefixes are not negative; the empty slots of a stream have different negative ones, so they are never joined with
anything.

Nothing depends on frames to come, so decoding chunk by chunk is the same search. Scores are summed in float64.

With a symbol bonus or a context (hotwords, language models: pyspeech/asr/fusion.py) step 3 adds its score of v after y, and
the n-best are ordered without the bonus of hotwords that are not complete.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from pyspeech.asr.config import SearchConfig  # stands where importing it is fast
from pyspeech.asr.fusion import Fusion, SearchContext
from pyspeech.asr.hypotheses import History, Hypothesis
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.asr.networks import Transducer

BLANK = 0
_MULTIPLIER, _INCREMENT, _LARGEST = 0x2545F4914F6CDD1D, 0x1B873593CC9E2D51, 2**63 - 1


def search(
    model: Transducer,
    encoded: torch.Tensor,
    lengths: torch.Tensor,
    heads: Sequence[int] | None = None,
    config: SearchConfig | None = None,
    active: torch.Tensor | None = None,
    context: SearchContext | None = None,
) -> list[list[list[Hypothesis]]]:
    """Decode a batch of whole utterances: encoded (B, T, D), lengths (B,) in frames.

    heads: numbers of the heads (languages) to decode with; None for all. active (B, T, len(heads)) bool: the frames in
    which each of them runs (early stopping); None for all frames. context: SearchContext for these heads and utterances.
    Returns [utterance][head] -> [Hypothesis, ...], best first.
    """
    beam = BeamSearch(model, len(encoded), heads, config, context)
    beam.add(encoded, lengths, active)
    return beam.nbest()


class BeamSearch:
    """The search over B utterances whose frames come chunk by chunk; see the top of this module.

        beam = BeamSearch(model, batch)
        for encoded in chunks:
            beam.add(encoded)
        hypotheses = beam.nbest()

    Inside, tensors are (H, B, K, ...), for H heads, B utterances, K slots; the predictor's rows are those flattened.
    """

    def __init__(
        self,
        model: Transducer,
        batch: int,
        heads: Sequence[int] | None = None,
        config: SearchConfig | None = None,
        context: SearchContext | None = None,
    ) -> None:
        self.model, self.config = model, config or SearchConfig()
        self.config.check()
        self.heads = list(range(model.num_heads)) if heads is None else list(heads)
        if not self.heads or not all(0 <= head < model.num_heads for head in self.heads):
            raise UserError(f"search: heads {self.heads}; the model has heads 0 to {model.num_heads - 1}")
        self.history, self.frame = History(), 0
        with torch.inference_mode():
            self._start(batch)
            bonus = self.config.symbol_bonus
            used = context or (SearchContext() if bonus else None)
            self.fusion = None if used is None else Fusion(self.model, self.row_heads, used, bonus, self.predicted)

    def _start(self, batch):
        parameter = next(self.model.parameters(), None)
        device = parameter.device if parameter is not None else torch.device("cpu")
        shape = (len(self.heads), batch, self.config.beam)
        self.scores = torch.full(shape, -math.inf, dtype=torch.float64, device=device)
        self.scores[..., 0] = 0.0
        self.nodes = torch.full(shape, -1, dtype=torch.int64, device=device)
        self.empty = -1 - torch.arange(self.config.beam, device=device)
        self.hashes = self.empty.repeat(*shape[:2], 1)
        self.hashes[..., 0] = 0
        self.own_rows = torch.arange(self.scores.numel(), device=device).reshape(shape)
        self.row_heads = torch.tensor(self.heads, device=device).repeat_interleave(shape[1] * shape[2])
        sizes = torch.tensor([self.model.vocabulary_sizes[head] for head in self.heads], device=device)
        symbols = torch.arange(max(self.model.vocabulary_sizes), device=device)
        self.padding = (symbols >= sizes[:, None])[:, None, None]  # (H, 1, 1, V)
        blanks = torch.full_like(self.row_heads, BLANK)
        start = self.model.predictor_start(len(blanks))
        self.predicted, state = self.model.predict(blanks, self.row_heads, start)
        self.state = tuple(part.clone() for part in state)

    @torch.inference_mode()
    def add(self, encoded: torch.Tensor, lengths: torch.Tensor | None = None, active: torch.Tensor | None = None) -> None:
        """The next T frames: encoded (B, T, D); lengths (B,): how many of them count, all where None.

        active (B, T, H) bool: streams that run in each frame, all where None. One that stops keeps its hypotheses.
        """
        batch, total, _ = encoded.shape
        frames = torch.arange(total, device=encoded.device)
        live = torch.ones(batch, total, dtype=torch.bool, device=encoded.device)
        if lengths is not None:
            live = frames < torch.as_tensor(lengths, device=encoded.device)[:, None]
        live = live[:, :, None].expand(-1, -1, len(self.heads))
        if active is not None:
            live = live & torch.as_tensor(active, device=encoded.device)
        live = live.permute(1, 2, 0)  # (T, H, B)
        projected = self.model.project_encoded(encoded)
        for frame, any_live in enumerate(live.flatten(1).any(dim=1).tolist()):
            if any_live:
                self._decode_frame(projected[:, frame], live[frame], self.frame + frame)
        self.frame += total

    def nbest(self) -> list[list[list[Hypothesis]]]:
        """[utterance][head] -> [Hypothesis, ...], best first, at least one; heads in the order of `heads`."""
        heads, batch, _ = self.scores.shape
        return [[self.nbest_of(utterance, head) for head in range(heads)] for utterance in range(batch)]

    def nbest_of(self, utterance: int, head: int) -> list[Hypothesis]:
        """[Hypothesis, ...] of one stream, best first; `head` counts within `heads`."""
        slots = zip(*(part.tolist() for part in self._ranked(utterance, head)), strict=True)
        return [self.history.hypothesis(node, score) for node, score in slots if score > -math.inf]

    def best(self, utterance: int, head: int) -> Hypothesis:
        """The best Hypothesis of one stream."""
        nodes, scores = self._ranked(utterance, head)
        return self.history.hypothesis(int(nodes[0]), float(scores[0]))

    def last_frame(self, utterance: int, head: int) -> int | None:
        """Frame of the best hypothesis's last symbol; None where it has none."""
        return self.history.last_frame(int(self._ranked(utterance, head)[0][0]))

    def _ranked(self, utterance, head):
        """Nodes (K,) and scores (K,) of one stream, best first."""
        nodes, scores = self.nodes[head, utterance], self.scores[head, utterance]
        if self.fusion is None:
            return nodes, scores
        first = int(self.own_rows[head, utterance, 0])
        scores, order = (scores - self.fusion.pending(first, first + len(scores))).sort(descending=True, stable=True)
        return nodes[order], scores

    def _decode_frame(self, projected, live, frame):
        """projected (B, J): one frame; live (H, B)."""
        heads, batch, beam = self.scores.shape
        projected = projected[None, :, None].expand(heads, batch, beam, -1).reshape(heads, batch * beam, -1)
        is_open = live[..., None] & (self.scores > -math.inf)
        for symbols in range(self.config.max_symbols + 1):
            candidates = self._candidates(projected, is_open, extend=symbols < self.config.max_symbols)
            scores, parents, tokens = self._best(candidates)
            is_open = tokens != BLANK
            log_probs = scores - self.scores.gather(2, parents)
            self.scores = scores
            self._move(parents, tokens, log_probs, frame)
            if not is_open.any():
                return

    def _candidates(self, projected, is_open, extend):
        """Scores (H, B, K, V) of what may fill the slots: at symbol 0 the hypothesis closed, else its extensions."""
        logits = self.model.logits(projected, self.predicted.reshape(projected.shape), self.heads)
        logits = logits.reshape(*self.scores.shape, -1)
        scores = self.scores[..., None] + logits.log_softmax(dim=-1).double()
        if self.fusion is not None:
            scores += self.fusion.bonus.reshape(scores.shape)
        closed = self._join(torch.where(is_open, scores[..., BLANK], self.scores), is_open)
        if not extend:
            scores = torch.full_like(scores, -math.inf)
        scores = scores.masked_fill(~is_open[..., None] | self.padding, -math.inf)
        scores[..., BLANK] = closed
        return scores

    def _join(self, closed, is_open):
        """Closed scores (H, B, K) with pairs of the same prefix joined in the slot of the more probable one."""
        same = self.hashes[..., :, None] == self.hashes[..., None, :]
        same = same & (is_open[..., :, None] != is_open[..., None, :])
        partner = closed[..., None, :].masked_fill(~same, -math.inf).amax(dim=-1)
        loses = (partner > closed) | ((partner == closed) & is_open)
        return torch.logaddexp(closed, partner).masked_fill(loses & (partner > -math.inf), -math.inf)

    def _best(self, candidates):
        """The K best of (H, B, K, V): scores, the slots they come from, symbols (BLANK: none), each (H, B, K)."""
        size = candidates.shape[-1]
        scores, index = candidates.flatten(2).topk(self.config.beam)
        scores = scores.masked_fill(scores < scores[..., :1] - self.config.prune, -math.inf)
        is_empty = scores == -math.inf
        parents = torch.div(index, size, rounding_mode="floor")
        parents = torch.where(is_empty, -1 - self.empty, parents)  # an empty slot: what was there does not matter
        return scores, parents, (index % size).masked_fill(is_empty, BLANK)

    def _move(self, parents, tokens, log_probs, frame):
        """Slots take over the hypotheses of slots `parents` (H, B, K), extended by `tokens` that are not BLANK."""
        is_open, before = tokens != BLANK, self.hashes
        hashes = before.gather(2, parents)
        hashes = torch.where(is_open, extend_hashes(hashes, tokens), hashes)
        self.hashes = torch.where(self.scores == -math.inf, self.empty, hashes)
        self.nodes = self.nodes.gather(2, parents)
        if is_open.any():
            log_probs, symbols = log_probs[is_open], tokens[is_open]
            if self.fusion is not None:  # those of the transducer
                rows = (self.own_rows[..., :1] + parents)[is_open]
                log_probs = log_probs - self.fusion.bonus[rows, symbols]
            self.nodes[is_open] = self._new_nodes(symbols, log_probs, self.nodes[is_open], frame)
        # Often y + v is in a slot already when y is extended by v: then so is what the predictor says after it.
        match = self.hashes[..., :, None] == before[..., None, :]
        is_known = match.any(dim=-1)
        sources = self.own_rows[..., :1] + torch.where(is_known, match.int().argmax(dim=-1), parents)
        self._update_predictor(sources, tokens, is_open & ~is_known)

    def _new_nodes(self, tokens, log_probs, parents, frame):
        first = self.history.add(parents.tolist(), tokens.tolist(), log_probs.tolist(), frame)
        return torch.arange(first, first + len(tokens), device=tokens.device)

    def _update_predictor(self, sources, tokens, is_new):
        """Rows take over those of `sources` (H, B, K), with one step of the predictor more where `is_new`."""
        new, moved = self.own_rows[is_new], (sources != self.own_rows) & ~is_new
        parents, stepped = sources[is_new], None
        if len(new):
            state = tuple(part[:, parents] for part in self.state)
            stepped = self.model.predict(tokens[is_new], self.row_heads[new], state)  # pyright: ignore[reportArgumentType]
        rows, sources = self.own_rows[moved], sources[moved]
        if self.fusion is not None and len(new) + len(rows):
            self.fusion.update(rows, sources, new, parents, tokens[is_new], None if stepped is None else stepped[0])
        self.predicted[rows] = self.predicted[sources]
        for part in self.state:
            part[:, rows] = part[:, sources]
        if stepped is not None:
            self.predicted[new] = stepped[0]
            for part, values in zip(self.state, stepped[1], strict=True):
                part[:, new] = values


def extend_hashes(hashes: torch.Tensor, symbols: torch.Tensor) -> torch.Tensor:
    """Hashes, 0 to 2 ** 63 - 1, of prefixes (N,) int64 with one more symbol each; products wrap around."""
    return ((hashes ^ (hashes >> 31)) * _MULTIPLIER + (symbols + 1) * _INCREMENT) & _LARGEST
