"""Forced alignment against a search of all paths, against the sum over them, and at its edges."""

import itertools
import json
import re

import numpy as np
import pytest
import torch
from tiny_asr import babble, save_random_model

from pyspeech import Recognizer
from pyspeech.asr.aligned import render
from pyspeech.asr.alignment import _columns, _encode, align, best_path
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import SearchConfig
from pyspeech.asr.lattice import log_likelihood
from pyspeech.asr.search import search
from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank, stack

RATE = 16000


def every_path(px, py):
    """(score, frames of the symbols) of each path through px (S, T) and py (S + 1, T)."""
    symbols, total = px.shape
    for frames in itertools.combinations_with_replacement(range(total), symbols):
        emitted = [sum(frame <= t for frame in frames) for t in range(total)]
        yield sum(px[s, t] for s, t in enumerate(frames)) + sum(py[s, t] for t, s in enumerate(emitted)), frames


@pytest.mark.parametrize("symbols, total", [(0, 3), (1, 1), (3, 1), (1, 4), (4, 4), (5, 3), (2, 7)])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_it_is_the_best_of_all_paths(rng, symbols, total, scale):
    px, py = -scale * rng.exponential(size=(symbols, total)), -scale * rng.exponential(size=(symbols + 1, total))
    frames, log_probs, score = best_path(zip(px.T, py.T, strict=True))
    best, expected = max(every_path(px, py))
    assert tuple(frames) == expected and score == pytest.approx(best)
    assert log_probs == pytest.approx([px[s, t] for s, t in enumerate(frames)])


def test_a_long_lattice_is_that_of_the_plain_recursion(rng):
    px, py = -rng.exponential(size=(40, 90)), -rng.exponential(size=(41, 90))
    alpha = np.full((41, 91), -np.inf)
    alpha[0, 0] = 0
    for t, s in itertools.product(range(91), range(41)):
        if s and t < 90:
            alpha[s, t] = max(alpha[s, t], alpha[s - 1, t] + px[s - 1, t])
        if t < 90:
            alpha[s, t + 1] = max(alpha[s, t + 1], alpha[s, t] + py[s, t])
    frames, log_probs, score = best_path(zip(px.T, py.T, strict=True))
    assert score == pytest.approx(alpha[40, 90]) and frames == sorted(frames)
    emitted = [sum(frame <= t for frame in frames) for t in range(90)]
    assert score == pytest.approx(sum(log_probs) + sum(py[s, t] for t, s in enumerate(emitted)))


def check_times(alignment):
    """Words and symbols follow each other, the symbols of a word lie in it, and all are in the recording."""
    for items in (alignment.words, alignment.symbols):
        assert all(item.start < item.end and 0 < item.confidence <= 1 for item in items)
        assert all(first.end <= second.start + 1e-9 for first, second in itertools.pairwise(items))
        assert items[-1].end <= alignment.duration + 0.03
    starts = [symbol.start for symbol in alignment.symbols if symbol.text.startswith("B-")]
    assert [word.start for word in alignment.words] == starts
    assert " ".join(word.text for word in alignment.words) == alignment.text


MODELS = [
    ("multi_softmax", {}),
    ("multi_softmax", {"lid": True, "lsp": True}),
    ("vanilla", {}),
    ("onehot", {}),
    ("multi_softmax", {"encoder": "conformer", "encoder_options": {"heads": 2}}),
]


@pytest.mark.parametrize("structure, options", MODELS)
def test_structures(tmp_path, structure, options):
    """A text goes to the head that has its letters; what is recognised can be aligned."""
    bundle = load_model(save_random_model(tmp_path, structure, **options))
    samples = babble(3)
    alignment = align(bundle, samples, "कख, गघ! क", name="x")
    assert (alignment.text, alignment.language) == ("कख गघ क", "hi-IN") and alignment.duration == 3.0
    assert [symbol.text for symbol in alignment.symbols] == ["B-क", "ख", "B-ग", "घ", "B-क"]
    check_times(alignment)
    recognizer = Recognizer(bundle, "hi-IN", vad=False)
    heard = recognizer.transcribe((samples, RATE))
    again = recognizer.align((samples, RATE), heard.text)
    assert heard.text and again.text == heard.text and len(again.words) == len(heard.words)
    check_times(again)


def test_it_is_at_least_as_probable_as_the_greedy_path(tmp_path):
    bundle = load_model(save_random_model(tmp_path, "multi_softmax"))
    model, features = bundle.model, stack(fbank(babble(3), bundle.fbank), bundle.fbank)
    with torch.inference_mode():
        encoded, lengths, _ = model.encode(bundle.stats.apply(features)[None], torch.tensor([len(features)]))
        greedy = search(model, encoded, lengths, [1], SearchConfig(beam=1, prune=np.inf))[0][0][0]
    lattice = list(_columns(model, _encode(bundle, features, "hi-IN"), greedy.tokens, 1))
    frames, _, score = best_path(lattice)
    waited = [sum(frame <= t for frame in greedy.frames) for t in range(len(features))]
    own = sum(greedy.log_probs) + sum(lattice[t][1][s] for t, s in enumerate(waited))
    assert len(frames) > 2 and own == pytest.approx(greedy.score, abs=1e-4) and score >= own - 1e-4


def test_the_path_is_one_of_the_sum(tmp_path):
    """The lattice is the loss's: the best path has most of its probability where the network is sure, and never more."""
    bundle = load_model(save_random_model(tmp_path, "multi_softmax"))
    features, units = stack(fbank(babble(1), bundle.fbank), bundle.fbank), bundle.units["en-IN"]
    tokens = units.encode("ab c")
    columns = list(_columns(bundle.model, _encode(bundle, features, "en-IN"), tokens, 0))
    px, py = (torch.from_numpy(np.stack(parts, axis=1))[None] for parts in zip(*columns, strict=True))
    total = log_likelihood(px, py, torch.tensor([len(features)]), torch.tensor([len(tokens)]), "torch")[0].item()
    score = align(bundle, babble(1), "ab c", "en").score
    paths = len(list(itertools.combinations_with_replacement(range(len(features)), len(tokens))))
    assert total - np.log(paths) <= score <= total


def test_edges(tmp_path):
    bundle = load_model(save_random_model(tmp_path, "multi_softmax"))
    silent = align(bundle, babble(1), " ... ", "ta")
    assert (silent.text, silent.words, silent.symbols, silent.confidence) == ("", [], [], 0) and silent.score < 0
    crowded = align(bundle, babble(0.02), "abcde abcde abcde")  # all in one frame
    check_times(crowded)
    assert len(crowded.words) == 3 and crowded.words[-1].end == pytest.approx(0.02)
    assert align(bundle, babble(1), "<noise> कख").text == "कख"
    with pytest.raises(UserError, match="^y: no samples"):
        align(bundle, np.zeros(0, np.float32), "a", name="y")
    with pytest.raises(UserError, match="language fr: the model knows en-IN, hi-IN, ta-IN"):
        align(bundle, babble(1), "a", "fr")
    with pytest.raises(UserError, match=r"several recordings; expected one"):
        Recognizer(bundle, "hi-IN").align([babble(1), babble(1)], "क")


@pytest.mark.parametrize(
    "text, language, named", [("abq xa", None, r"q \(1\), x \(1\) in en-IN"), ("कa क", "hi", r"a \(1\) in hi-IN")]
)
def test_symbols_that_the_model_does_not_have(tmp_path, text, language, named):
    bundle = load_model(save_random_model(tmp_path, "multi_softmax"))
    with pytest.raises(
        UserError, match=f"text '{text}': the model has no symbols for {named}.*; expected characters"
    ) as caught:
        align(bundle, babble(1), text, language)
    assert "\n" not in str(caught.value)


def test_files(tmp_path):
    bundle = load_model(save_random_model(tmp_path, "multi_softmax"))
    alignment = align(bundle, babble(2), "ab c", name="a b")
    for name in ("x.ctm", "x.json", "x.TextGrid", "x.srt", "x.vtt"):
        alignment.save(tmp_path / name)
    with pytest.raises(UserError, match="its ending names no format; expected one of ctm"):
        alignment.save(tmp_path / "x.doc")
    times = [(word.start, word.end) for word in alignment.words]
    rows = [line.split() for line in (tmp_path / "x.ctm").read_text().splitlines()]
    assert [(name, channel, word) for name, channel, *_, word, _ in rows] == [("a_b", "1", "ab"), ("a_b", "1", "c")]
    assert [(float(row[2]), float(row[2]) + float(row[3])) for row in rows] == [
        pytest.approx(time, abs=0.011) for time in times
    ]
    assert render("ctm", alignment, symbols=True).count("\n") == 3
    record = json.loads((tmp_path / "x.json").read_text())
    assert [word["word"] for word in record["words"]] == ["ab", "c"] and record["duration"] == 2.0
    assert [symbol["symbol"] for symbol in record["symbols"]] == ["B-a", "b", "B-c"]
    tiers = read_tiers((tmp_path / "x.TextGrid").read_text())
    assert {name: [text for *_, text in items if text] for name, items in tiers.items()} == {
        "words": ["ab", "c"],
        "symbols": ["B-a", "b", "B-c"],
    }
    for items in tiers.values():
        assert items[0][0] == 0 and items[-1][1] == 2.0 and all(one[1] == two[0] for one, two in itertools.pairwise(items))
    assert [item[:2] for item in tiers["words"] if item[2]] == [pytest.approx(time, abs=1e-4) for time in times]


def read_tiers(text):
    """{tier: [(start, end, text), ...]} of a TextGrid, by regular expressions."""
    tiers = {}
    for part in text.split('class = "IntervalTier"')[1:]:
        items = re.findall(r'xmin = (\S+)\s+xmax = (\S+)\s+text = "(.*)"', part)
        tiers[re.search(r'name = "(.*)"', part)[1]] = [(float(start), float(end), item) for start, end, item in items]
    return tiers
