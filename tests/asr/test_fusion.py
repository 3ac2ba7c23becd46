"""The search with hotwords and language models against plain ones that score each prefix from its beginning."""

import functools
import itertools
import math

import numpy as np
import pytest
import torch
from toy_transducer import D, ToyTransducer, assert_same, forward_score, plain_search, random_batch

from pyspeech.asr.config import SearchConfig
from pyspeech.asr.context_graph import ContextGraph
from pyspeech.asr.fusion import SearchContext, Source
from pyspeech.asr.hotwords import hotword_graph
from pyspeech.asr.ngram import ngram_graph
from pyspeech.asr.search import BeamSearch, search
from pyspeech.text.witten_bell import witten_bell

NAMES = ["<blk>", *"abcdef"]
LM, BONUS, ILM = 0.4, 0.2, 0.3


def along(graph):
    """A function: prefix -> (sum of the values of a graph along it, what is pending at its end)."""

    @functools.cache
    def at(prefix):
        if not prefix:
            return 0.0, torch.tensor([graph.start])
        total, node = at(prefix[:-1])
        return total + float(graph.begin(node)[1][0, prefix[-1]]), graph.step(node, torch.tensor(prefix[-1:]))

    return lambda prefix: (at(prefix)[0], float(graph.pending[at(prefix)[1]]))


def internal(model, head):
    """A function: prefix -> its log probability by the predictor alone: encoder output 0, no blank."""
    heads = torch.tensor([head])
    silence = model.project_encoded(torch.zeros(1, D, dtype=torch.float64))

    @functools.cache
    def at(prefix):
        if not prefix:
            return 0.0, *model.predict(torch.tensor([0]), heads, model.predictor_start(1))
        total, output, state = at(prefix[:-1])
        total += float(model.head_logits(silence, output, head)[0, 1:].log_softmax(0)[prefix[-1] - 1])
        return total, *model.predict(torch.tensor(prefix[-1:]), heads, state)

    return torch.inference_mode()(lambda prefix: at(prefix)[0])


class Everything:
    """Hotwords (a list for each utterance, for each head), a language model for head 0 and 2, and the internal ones there."""

    def __init__(self, model, batch):
        self.model = model
        texts = ["abab", "ba", "aab", "bbba", "cabc"]
        self.lms = {
            head: ngram_graph(
                witten_bell([[c for c in t if NAMES.index(c) < size] for t in texts], 3, NAMES[1:size]), NAMES[:size]
            )
            for head, size in enumerate(model.vocabulary_sizes)
            if head != 1
        }
        phrases = [[], [((1, 2, 1), 1.0), ((2, 2), 2.5)], [((2,), 0.7), ((1, 1), 1.0), ((1, 1, 2), 1.0)]]
        self.hotwords = [
            [hotword_graph([p for p in phrases[(u + head) % 3] if max(p[0]) < size], size) for u in range(batch)]
            for head, size in enumerate(model.vocabulary_sizes)
        ]

    def context(self, utterances, heads):
        lm, starts = ContextGraph.join(
            [
                self.lms[head].scaled(LM) if head in self.lms else ContextGraph.empty(self.model.vocabulary_sizes[head])
                for head in heads
            ]
        )
        lm = Source(lm, torch.tensor(starts)[None, :, None].expand(-1, -1, len(utterances)))
        words, starts = ContextGraph.join([self.hotwords[head][u] for head in heads for u in utterances])
        words = Source(words, torch.tensor(starts).reshape(1, len(heads), len(utterances)))
        return SearchContext([lm, words], {head: ILM for head in heads if head in self.lms})

    def plain(self, utterance, head):
        """(bonus, kept) of prefixes, for `plain_search`."""

        hotwords, own = along(self.hotwords[head][utterance]), internal(self.model, head)
        lm = along(self.lms[head]) if head in self.lms else None

        @functools.cache
        def parts(prefix):
            total, pending = hotwords(prefix)
            total += BONUS * len(prefix)
            if lm is not None:
                total += LM * lm(prefix)[0] - ILM * own(prefix)
            return total, pending

        return lambda prefix: parts(prefix)[0], lambda prefix: parts(prefix)[0] - parts(prefix)[1]


def test_with_room_for_every_prefix_scores_are_those_of_the_whole_lattice():
    """All sequences of up to three symbols in two frames, each scored by the full lattice, the language model and hotwords."""
    model = ToyTransducer(3, vocabularies=[3])
    encoded, _ = random_batch(3, batch=1, longest=2)
    everything = Everything(model, 3)
    for utterance in range(3):
        context, (_, kept) = everything.context([utterance], [0]), everything.plain(utterance, 0)
        config = SearchConfig(beam=400, max_symbols=3, prune=math.inf, symbol_bonus=BONUS)
        found = {tuple(item.tokens): item.score for item in search(model, encoded, [2], None, config, context=context)[0][0]}
        assert len(found) == 2**7 - 1
        for length in range(4):
            for prefix in itertools.product((1, 2), repeat=length):
                expected = forward_score(model, encoded[0], list(prefix)) + kept(prefix)
                assert found[prefix] == pytest.approx(expected, abs=1e-9)
        assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize("beam, max_symbols, prune", [(1, 3, math.inf), (4, 3, math.inf), (4, 2, 3.0), (6, 3, 10.0)])
def test_equals_the_plain_search(beam, max_symbols, prune):
    config, joined = SearchConfig(beam, max_symbols, prune, BONUS), []
    for seed in range(2):
        model = ToyTransducer(seed, blank=1.0 + seed)
        encoded, lengths = random_batch(seed, longest=5)
        everything = Everything(model, 3)
        results = search(model, encoded, lengths, config=config, context=everything.context([0, 1, 2], [0, 1, 2]))
        for utterance, length in enumerate(lengths.tolist()):
            for head in range(model.num_heads):
                parts = everything.plain(utterance, head)
                expected = plain_search(model, encoded[utterance, :length], head, config, joined, *parts)
                assert_same(results[utterance][head], expected)
    assert beam == 1 or joined


def test_chunks_heads_and_batches_equal_the_whole():
    model = ToyTransducer(7)
    encoded, lengths = random_batch(7, longest=11)
    everything = Everything(model, 3)
    whole = search(model, encoded, lengths, context=everything.context([0, 1, 2], [0, 1, 2]))
    beam = BeamSearch(model, 3, context=everything.context([0, 1, 2], [0, 1, 2]))
    for start in range(0, 11, 3):
        beam.add(encoded[:, start : start + 3], (lengths - start).clamp(min=0))
    for utterance in range(3):
        rows = slice(utterance, utterance + 1)
        for head in range(3):
            expected = whole[utterance][head]
            alone = search(model, encoded[rows], lengths[rows], [head], context=everything.context([utterance], [head]))
            assert_same(beam.nbest_of(utterance, head), expected)
            assert_same(alone[0][0], expected)
            assert_same([beam.best(utterance, head)], expected[:1])
            assert beam.last_frame(utterance, head) == (expected[0].frames or [None])[-1]


def test_an_empty_context_changes_no_bit():
    model = ToyTransducer(9)
    encoded, lengths = random_batch(9)
    empty = ContextGraph.empty(max(model.vocabulary_sizes))
    for beam in (1, 4):
        config = SearchConfig(beam)
        without = search(model, encoded, lengths, config=config)
        context = SearchContext([Source(empty, torch.zeros(2, 3, 3, dtype=torch.int64))])
        assert search(model, encoded, lengths, config=config, context=context) == without


def test_a_hotword_is_found_and_a_half_one_is_not():
    """A bonus for a phrase makes it the result; the bonus of its first half alone does not outlive the utterance."""
    model = ToyTransducer(4, vocabularies=[5], blank=3.0)
    encoded, _ = random_batch(4, batch=1, longest=6)
    config = SearchConfig(8, 3, math.inf)
    before = search(model, encoded, [6], config=config)[0][0]
    phrase = next(item.tokens for item in before[1:] if len(item.tokens) >= 2 and item.tokens != before[0].tokens)

    def best(symbols):
        graph = hotword_graph([(symbols, 8.0)], 5)
        context = SearchContext([Source(graph, torch.zeros(1, 1, 1, dtype=torch.int64))])
        return search(model, encoded, [6], config=config, context=context)[0][0]

    found = best(phrase)[0]
    assert any(found.tokens[at : at + len(phrase)] == phrase for at in range(len(found.tokens)))
    assert all(log_prob <= 0 for log_prob in found.log_probs)  # those of the transducer: confidences stay probabilities
    scores = {tuple(item.tokens): item.score for item in before}
    for item in best([*phrase, *[4] * 20]):  # never complete
        if tuple(item.tokens) in scores:
            np.testing.assert_allclose(item.score, scores[tuple(item.tokens)], atol=0.7)
