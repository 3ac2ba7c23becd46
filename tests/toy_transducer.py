"""A random transducer, and searches over it that are plain and slow: one stream, one hypothesis at a time."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import torch

from pyspeech.asr.hypotheses import Hypothesis

D, J, E, P = 6, 8, 5, 7
VOCABULARIES = [5, 4, 7]


class ToyTransducer(torch.nn.Module):
    """A random transducer with the interface that the search uses; its posteriors are peaked enough to disagree."""

    def __init__(self, seed=0, vocabularies=VOCABULARIES, blank=1.0):
        super().__init__()
        torch.manual_seed(seed)
        self.vocabulary_sizes, self.num_heads = list(vocabularies), len(vocabularies)
        self.config = SimpleNamespace(encoder_size=D)
        most = max(vocabularies)
        self.embedding = torch.nn.Parameter(torch.randn(self.num_heads, most, E) * 2)
        self.lstm = torch.nn.LSTM(E, P, 2)
        self.predicted = torch.nn.Linear(P, J)
        self.encoded = torch.nn.Linear(D, J)
        self.weight = torch.nn.Parameter(torch.randn(self.num_heads, J, most) * 2)
        self.bias = torch.nn.Parameter(torch.zeros(self.num_heads, 1, most))
        with torch.no_grad():
            for weight in self.lstm.parameters():
                weight.mul_(4)
            self.bias[:, :, 0] = blank
            for head, size in enumerate(vocabularies):
                self.weight[head, :, size:] = 0
                self.bias[head, :, size:] = -1e30
        self.double()
        self.calls = []

    def project_encoded(self, encoded):
        return self.encoded(encoded)

    def predictor_start(self, rows):
        zeros = torch.zeros(2, rows, P, dtype=torch.float64)
        return zeros, zeros

    def predict(self, tokens, heads, state):
        self.calls.append(len(tokens))
        output, state = self.lstm(self.embedding[heads, tokens][None], state)
        return self.predicted(output[0]), state

    def logits(self, encoded, predicted, heads):
        return torch.baddbmm(self.bias[heads], torch.tanh(encoded + predicted), self.weight[heads])

    def head_logits(self, encoded, predicted, head):
        size = self.vocabulary_sizes[head]
        return torch.tanh(encoded + predicted) @ self.weight[head, :, :size] + self.bias[head, 0, :size]


@torch.inference_mode()
def plain_search(model, encoded, head, config, joined, bonus=lambda prefix: 0.0, kept=None):
    """encoded (T, D) of one utterance -> [(tokens, score, frames, log_probs), ...], as search.py's text defines it.

    joined: a list, which collects the prefixes that came about in two ways. bonus(prefix): what a context gives it;
    kept(prefix): what is left of that at the end, None: all.
    """
    kept = kept or bonus
    heads = torch.tensor([head])

    def predict(token, state):
        return model.predict(torch.tensor([token]), heads, state)

    # prefix: (score, frames, log_probs, (predictor output, predictor state))
    closed = {(): (0.0, [], [], predict(0, model.predictor_start(1)))}
    for frame in range(len(encoded)):
        projected = model.project_encoded(encoded[frame : frame + 1])
        opened, closed = closed, {}
        for symbols in range(config.max_symbols + 1):
            extensions = []
            for prefix, (score, frames, log_probs, predictor) in opened.items():
                posteriors = model.head_logits(projected, predictor[0], head)[0].log_softmax(0).tolist()
                entry = (score + posteriors[0], frames, log_probs, predictor)
                if prefix in closed:
                    joined.append(prefix)
                    better = max(entry, closed[prefix], key=lambda item: item[0])
                    entry = (np.logaddexp(entry[0], closed[prefix][0]), *better[1:])
                closed[prefix] = entry
                if symbols < config.max_symbols:
                    extensions += [
                        (score + posteriors[token] + bonus(prefix + (token,)) - bonus(prefix), prefix, token, posteriors[token])
                        for token in range(1, len(posteriors))
                    ]
            ranking = sorted([entry[0] for entry in closed.values()] + [item[0] for item in extensions], reverse=True)
            least = max(ranking[: config.beam][-1], ranking[0] - config.prune)
            closed = {prefix: entry for prefix, entry in closed.items() if entry[0] >= least}
            parents, opened = opened, {}
            for score, prefix, token, log_prob in extensions:
                if score >= least:
                    _, frames, log_probs, predictor = parents[prefix]
                    opened[prefix + (token,)] = (score, frames + [frame], log_probs + [log_prob], predict(token, predictor[1]))
    nbest = [(list(prefix), entry[0] - bonus(prefix) + kept(prefix), *entry[1:3]) for prefix, entry in closed.items()]
    return sorted(nbest, key=lambda item: -item[1])


def random_batch(seed, batch=3, longest=12):
    generator = torch.Generator().manual_seed(seed)
    encoded = torch.randn(batch, longest, D, dtype=torch.float64, generator=generator) * 2
    lengths = torch.randint(0, longest + 1, (batch,), generator=generator)
    lengths[0] = longest
    return encoded, lengths


def assert_same(hypotheses, expected):
    """expected: [(tokens, score, frames, log_probs)] or [Hypothesis]."""
    expected = [dataclasses.astuple(item) if isinstance(item, Hypothesis) else item for item in expected]
    assert [item.tokens for item in hypotheses] == [item[0] for item in expected]
    np.testing.assert_allclose([item.score for item in hypotheses], [item[1] for item in expected], rtol=0, atol=1e-8)
    assert [item.frames for item in hypotheses] == [item[2] for item in expected]
    for item, other in zip(hypotheses, expected, strict=True):
        np.testing.assert_allclose(item.log_probs, other[3], rtol=0, atol=1e-8)


@torch.inference_mode()
def forward_score(model, encoded, tokens):
    """log P(tokens | encoded) by the forward recursion over the lattice (Graves 2012, equation 16)."""
    heads = torch.tensor([0])
    state, outputs = model.predictor_start(1), []
    for token in [0, *tokens]:
        output, state = model.predict(torch.tensor([token]), heads, state)
        outputs.append(output)
    alphas = np.full((len(encoded) + 1, len(tokens) + 1), -np.inf)
    alphas[0, 0] = 0
    for frame in range(len(encoded)):
        projected = model.project_encoded(encoded[frame : frame + 1])
        for place, output in enumerate(outputs):
            posteriors = model.head_logits(projected, output, 0)[0].log_softmax(0).numpy()
            if place < len(tokens):
                step = alphas[frame, place] + posteriors[tokens[place]]
                alphas[frame, place + 1] = np.logaddexp(alphas[frame, place + 1], step)
            alphas[frame + 1, place] = np.logaddexp(alphas[frame + 1, place], alphas[frame, place] + posteriors[0])
    return alphas[len(encoded), len(tokens)]
