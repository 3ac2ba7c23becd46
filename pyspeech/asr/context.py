"""Hotwords and language models of a recogniser, as what its search takes (pyspeech/asr/fusion.py).

Hotwords count for each language whose symbols can write them. A language model is that of one language, or of the one
vocabulary that a model has for all languages.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pyspeech.asr.config import ContextWeights, language_among
from pyspeech.asr.context_graph import ContextGraph
from pyspeech.asr.fusion import SearchContext, Source
from pyspeech.asr.hotwords import Hotword, as_hotwords, encode_hotwords, hotword_graph
from pyspeech.asr.ngram import ngram_graph
from pyspeech.errors import UserError
from pyspeech.text.arpa import Arpa, read_arpa

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle

Phrases = str | Path | Iterable[str | tuple[str, float] | Hotword]
Lm = str | Path | Arpa
LISTS_KEPT = 16  # sets of lists of hotwords whose automata are kept


class Context:
    """Hotwords and language models for the model of a bundle, shared by all its searches.

    Args:
        bundle: Result of `load_model`.
        hotwords: A file as `read_hotwords` reads it, or a list of phrases, each a text or (text, boost).
        lm: An ARPA file over the model's symbols, or an Arpa; {language code: one} for a model with a vocabulary for each.
        weights: ContextWeights; None: the default ones.
        language: Code of the language that is recognised, if it is given.

    Raises:
        UserError: for files that cannot be read, language models that do not fit the model, and phrases that no language of
            the model can write.
    """

    def __init__(
        self,
        bundle: Bundle,
        hotwords: Phrases = (),
        lm: Lm | Mapping[str, Lm] | None = None,
        weights: ContextWeights | None = None,
        language: str | None = None,
    ) -> None:
        self.weights = weights or ContextWeights()
        self.weights.check_weights(lm is not None)
        self.model, self.units = bundle.model, bundle.units
        self.heads = self._heads(language)
        by_head = self._by_head(lm, language)
        self._graphs = {head: self._lm_graph(head, own).scaled(self.weights.lm_weight) for head, own in by_head.items()}
        self.hotwords = tuple(as_hotwords(hotwords))
        self._joined, self._joined_lists, self._named = {}, {}, set()
        self._check(self.hotwords)

    def search_context(
        self, heads: Sequence[int], batch: int, hotwords: Sequence[Phrases | None] | None = None
    ) -> SearchContext | None:
        """Context of a search by heads of the model over a batch of utterances; None where there is none.

        hotwords: for each utterance phrases beside those of all; None: no others.
        """
        heads, lm = tuple(heads), any(head in self._graphs for head in heads)
        if hotwords is not None:
            check_lists(hotwords, batch)
        further = [tuple(as_hotwords(phrases or ())) for phrases in hotwords or [()] * batch]
        lists = {phrases: place for place, phrases in enumerate(dict.fromkeys(further))}
        own = ((),) if self.hotwords else ()
        sources = []
        if lm or own and not any(lists):
            graph, starts = self._graph(heads, lm, () if any(lists) else own)
            sources.append(Source(graph, starts[..., None].expand(-1, -1, batch)))
        if any(lists):
            graph, starts = self._graph(heads, False, tuple(lists))
            columns = torch.tensor([lists[phrases] for phrases in further], device=starts.device)
            sources.append(Source(graph, starts[columns].t()[None]))
        ilm = self.weights.ilm_weight
        return SearchContext(sources, {head: ilm for head in heads if head in self._graphs and ilm}) if sources else None

    def _graph(self, heads, lm, lists):
        """(graph, starts (P, H)) of the language models, if lm, and of the hotwords of all utterances with each of the lists of
        further ones. What all utterances have is one graph, so that a step of the search is one lookup; it is not joined with
        what some have, as language models are large."""
        kept = self._joined_lists if any(lists) else self._joined
        if (heads, lm, lists) not in kept:
            if len(self._joined_lists) >= LISTS_KEPT:
                self._joined_lists.clear()
            graphs = [self._graphs.get(head) or self._empty(head) for head in heads] if lm else []
            for phrases in lists:
                self._check(self.hotwords + phrases)
                graphs += [self._hotword_graph(head, self.hotwords + phrases) for head in heads]
            graph, starts = ContextGraph.join(graphs)
            device = next(self.model.parameters()).device
            kept[heads, lm, lists] = graph.to(device), torch.tensor(starts, device=device).reshape(-1, len(heads))
        return kept[heads, lm, lists]

    def _hotword_graph(self, head, phrases):
        phrases, _ = self._encoded(head, phrases)
        return hotword_graph(phrases, self.model.vocabulary_sizes[head]) if phrases else self._empty(head)

    def _empty(self, head):
        return ContextGraph.empty(self.model.vocabulary_sizes[head])

    def _encoded(self, head, phrases):
        language = self.model.languages[head] if self.model.num_heads > 1 else None
        return encode_hotwords(phrases, self._units_of(head), language, self.weights.hotwords_score)

    def _units_of(self, head):
        return self.units[self.model.languages[head]]  # of a model with one head, the same for all

    def _check(self, phrases):
        """Name phrases that no language can write, each once; UserError where that is all of them."""
        left_out = set.intersection(*(set(self._encoded(head, phrases)[1]) for head in self.heads))
        missing = [hotword.text for hotword in phrases if hotword.text in left_out]
        what = f"hotwords {', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}: the model lacks characters of them"
        if phrases and len(missing) == len(phrases):
            codes = self.model.languages if self.model.num_heads == 1 else [self.model.languages[head] for head in self.heads]
            raise UserError(f"{what}; expected phrases in {', '.join(codes)}")
        if not self._named.issuperset(missing):
            logging.getLogger(__name__).warning("%s; %d of %d phrases are left out", what, len(missing), len(phrases))
            self._named.update(missing)

    def _heads(self, language):
        return range(self.model.num_heads) if language is None else [self.model.head_of(language)]

    def _by_head(self, lm, language):
        """{head: its language model} of what the user gave."""
        codes = self.model.languages
        if lm is None:
            return {}
        if not isinstance(lm, Mapping):
            heads = self._heads(language)
            if len(heads) > 1:
                raise UserError(
                    f"language model {_name(lm)}: of which language of {', '.join(codes)}? Give it with the file, as "
                    f"{codes[0]}=FILE, or recognise one language alone"
                )
            return {heads[0]: lm}
        if self.model.num_heads == 1 and len(codes) > 1:
            raise UserError(
                f"language model {', '.join(lm)}: the model has one vocabulary for {', '.join(codes)}; give one for all, "
                "without a language"
            )
        return {self.model.head_of(code): own for code, own in _by_language(lm, codes, language).items()}

    def _lm_graph(self, head, lm):
        arpa = lm if isinstance(lm, Arpa) else read_arpa(lm)
        return ngram_graph(arpa, self._units_of(head).symbols)


def _by_language(lm, codes, language):
    """{code of the model: its language model}; UserError for a second one, and for one that the search in `language`, where
    that is given, would not use."""
    found = {}
    for given, own in lm.items():
        code = language_among(given, codes)
        if code in found:
            raise UserError(
                f"language model {given}={_name(own)}: a second one for {code}, beside {_name(found[code])}; leave one out"
            )
        if language not in (None, code):
            raise UserError(
                f"language model {given}={_name(own)}: without effect, as the language is {language}; give one for {language}, "
                "or leave it out"
            )
        found[code] = own
    return found


def check_lists(hotwords: Sequence[Phrases | None], count: int) -> None:
    """UserError unless there are as many lists of hotwords as utterances."""
    if isinstance(hotwords, (str, Path)) or len(hotwords) != count:
        raise UserError(f"hotwords: expected a list of {count} lists of phrases, one for each utterance, not {hotwords!r:.60}")


def _name(lm):
    return lm.source if isinstance(lm, Arpa) else lm
