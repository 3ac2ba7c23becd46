"""The batched transducer search against a plain one: one stream, one hypothesis at a time, prefixes in a dictionary."""

import math

import numpy as np
import pytest
import torch
from toy_transducer import VOCABULARIES, D, E, J, P, ToyTransducer, assert_same, forward_score, plain_search, random_batch

from pyspeech.asr.config import SearchConfig, TransducerConfig
from pyspeech.asr.hypotheses import Hypothesis, words_of
from pyspeech.asr.networks import Transducer
from pyspeech.asr.search import BeamSearch, extend_hashes, search
from pyspeech.errors import UserError


@pytest.mark.parametrize(
    "beam, max_symbols, prune",
    [(1, 3, math.inf), (2, 1, math.inf), (4, 3, math.inf), (4, 2, 2.0), (8, 1, 10.0), (10, 4, math.inf)],
)
def test_equals_the_plain_search(beam, max_symbols, prune):
    config = SearchConfig(beam, max_symbols, prune)
    joined = []
    for seed in range(3):
        model = ToyTransducer(seed, blank=(0.0, 1.0, 3.0)[seed % 3])
        encoded, lengths = random_batch(seed)
        results = search(model, encoded, lengths, config=config)
        for utterance, length in enumerate(lengths.tolist()):
            for head in range(model.num_heads):
                expected = plain_search(model, encoded[utterance, :length], head, config, joined)
                assert_same(results[utterance][head], expected)
    assert (beam > 1 or not joined) and (beam < 4 or len(joined) > 0)


@pytest.mark.parametrize("options", [dict(), dict(lsp=True), dict(structure="onehot"), dict(structure="vanilla")])
def test_equals_the_plain_search_with_every_model(options):
    config = TransducerConfig(
        encoder_layers=1, encoder_size=D, predictor_layers=2, predictor_size=P, embedding=E, joint=J, features=4, **options
    )
    sizes = VOCABULARIES if config.structure == "multi_softmax" else [6] * 3
    torch.manual_seed(1)
    model = Transducer(config, dict(zip(("hi-IN", "ta-IN", "gu-IN"), sizes, strict=True))).double().eval()
    for layer in model.joint.outputs:
        torch.nn.init.normal_(layer.weight, std=3)
    encoded, lengths = random_batch(11)
    results = search(model, encoded, lengths)
    assert len(results[0]) == model.num_heads
    for utterance, length in enumerate(lengths.tolist()):
        for head in range(model.num_heads):
            expected = plain_search(model, encoded[utterance, :length], head, SearchConfig(), [])
            assert_same(results[utterance][head], expected)


def test_joining_prefixes_sums_their_probabilities():
    """With beams and symbols enough for every prefix, the scores are the full-lattice probabilities."""
    model = ToyTransducer(3, vocabularies=[3])
    encoded, _ = random_batch(3, batch=1, longest=3)
    results = search(model, encoded, [3], config=SearchConfig(beam=400, max_symbols=2, prune=math.inf))[0][0]
    assert len(results) == 2**7 - 1  # all prefixes of up to 6 symbols
    for hypothesis in results:
        if len(hypothesis.tokens) <= 2:
            expected = forward_score(model, encoded[0], hypothesis.tokens)
            np.testing.assert_allclose(hypothesis.score, expected, rtol=0, atol=1e-10)


def test_greedy_is_the_best_symbol_again_and_again():
    model = ToyTransducer(1)
    encoded, _ = random_batch(1, batch=1, longest=20)
    tokens, heads = [], torch.tensor([2])
    with torch.inference_mode():
        output, state = model.predict(torch.tensor([0]), heads, model.predictor_start(1))
        for frame in range(20):
            projected = model.project_encoded(encoded[0, frame : frame + 1])
            for _ in range(2):
                token = int(model.head_logits(projected, output, 2).argmax())
                if token == 0:
                    break
                tokens.append(token)
                output, state = model.predict(torch.tensor([token]), heads, state)
    assert len(tokens) > 5
    assert search(model, encoded, [20], [2], SearchConfig(1, 2))[0][0][0].tokens == tokens


@pytest.mark.parametrize("beam", [1, 4])
def test_languages_and_utterances_in_a_batch_equal_each_alone(beam):
    model, config = ToyTransducer(5), SearchConfig(beam, 2)
    encoded, lengths = random_batch(5, batch=4, longest=15)
    together = search(model, encoded, lengths, config=config)
    for heads in ([0], [1], [2], [2, 0], [0, 2]):
        for utterance in range(4):
            alone = search(model, encoded[utterance : utterance + 1], lengths[utterance : utterance + 1], heads, config)
            for index, head in enumerate(heads):
                assert_same(together[utterance][head], alone[0][index])


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_any_chunks_equal_the_whole(chunk):
    model = ToyTransducer(7)
    encoded, lengths = random_batch(7, longest=17)
    whole = search(model, encoded, lengths)
    beam = BeamSearch(model, 3)
    for start in range(0, 17, chunk):
        beam.add(encoded[:, start : start + chunk], (lengths - start).clamp(min=0))
    for one, other in zip(beam.nbest(), whole, strict=True):
        for hypotheses, expected in zip(one, other, strict=True):
            assert_same(hypotheses, expected)
    assert beam.best(0, 1).tokens == whole[0][1][0].tokens
    assert beam.last_frame(0, 1) == (whole[0][1][0].frames or [None])[-1]


def test_a_stream_that_is_switched_off_keeps_its_hypotheses():
    model = ToyTransducer(8)
    encoded, _ = random_batch(8, longest=10)
    active = torch.ones(3, 10, 3, dtype=torch.bool)
    active[1, 4:, 2] = False
    results, whole = search(model, encoded, [10] * 3, active=active), search(model, encoded, [10] * 3)
    for utterance in range(3):
        for head in range(3):
            expected = whole[utterance][head]
            if (utterance, head) == (1, 2):
                expected = search(model, encoded[1:2, :4], [4], [2])[0][0]
            assert_same(results[utterance][head], expected)


def test_the_predictor_runs_only_for_what_was_extended():
    model = ToyTransducer(0, blank=50.0)
    encoded, _ = random_batch(0, batch=2)
    search(model, encoded, [12, 12], config=SearchConfig(4, 3, 10.0))
    assert model.calls == [2 * 3 * 4]  # the start alone: nothing is ever near the blank


def test_no_frames_give_one_empty_hypothesis():
    model = ToyTransducer(0)
    for encoded, lengths in ((torch.zeros(2, 0, D).double(), [0, 0]), (torch.zeros(2, 3, D).double(), [0, 0])):
        assert search(model, encoded, lengths) == [[[Hypothesis([], 0.0, [], [])]] * 3] * 2
    assert Hypothesis([], 0.0, [], []).confidence == 0.0


def test_more_slots_than_hypotheses():
    """One symbol and one frame: three prefixes for ten slots."""
    model = ToyTransducer(2, vocabularies=[2])
    encoded, _ = random_batch(2, batch=1, longest=1)
    config = SearchConfig(10, 2, math.inf)
    results = search(model, encoded, [1], config=config)[0][0]
    assert sorted(item.tokens for item in results) == [[], [1], [1, 1]]
    assert_same(results, plain_search(model, encoded[0], 0, config, []))


def test_prefix_hashes_differ_and_are_not_negative():
    hashes = torch.zeros(1, dtype=torch.int64)
    every = [hashes]
    for _ in range(5):
        hashes = torch.cat([extend_hashes(hashes, torch.full_like(hashes, symbol)) for symbol in range(1, 10)])
        every.append(hashes)
    every = torch.cat(every)
    assert len(every) == sum(9**length for length in range(6)) == len(every.unique())
    assert every.min() >= 0


def test_wrong_options_are_named():
    model = ToyTransducer(0)
    for config in (SearchConfig(beam=0), SearchConfig(max_symbols=0), SearchConfig(prune=0)):
        with pytest.raises(UserError, match="^search option (beam|max_symbols|prune)=0: expected"):
            BeamSearch(model, 1, config=config)
    with pytest.raises(UserError, match="heads 0 to 2"):
        BeamSearch(model, 1, heads=[3])


class WordUnits:
    """Symbols 1-2 go on with a word, 3-4 start one."""

    def decode(self, numbers):
        return "".join(" ab"[number] if number < 3 else " " + "  cd"[number - 1] for number in numbers).strip()


def test_words_have_times_and_confidences():
    hypothesis = Hypothesis([3, 1, 4, 2, 2], -9.0, [2, 3, 7, 7, 9], [math.log(value) for value in (0.5, 0.5, 0.8, 0.1, 1)])
    first, second = words_of(hypothesis, WordUnits(), 0.03)
    assert (first.text, second.text) == tuple(WordUnits().decode(hypothesis.tokens).split()) == ("ca", "dbb")
    assert (first.start, first.end) == pytest.approx((0.06, 0.12))
    assert (second.start, second.end) == pytest.approx((0.21, 0.30))
    assert (first.confidence, second.confidence) == pytest.approx((0.5, 0.08 ** (1 / 3)))
    assert hypothesis.confidence == pytest.approx(0.02 ** (1 / 5))
    assert words_of(Hypothesis([], 0.0, [], []), WordUnits(), 0.03) == []
