"""Forced alignment: Viterbi against all paths written out, densities against SciPy, times against known ones."""

import multiprocessing
import re

import numpy as np
import pytest
from scipy.stats import norm

from pyspeech.units import alignment
from pyspeech.units.alignment import SILENCE, Aligner

TEXTS = [
    "Co je to za divnou loď?",
    "To je vrak dopravního letadla.",
    "Konečně vidím nějakou novou lebku.",
    "Ještě kousek, ať pod tebou můžu projet.",
    "Myslím, že tahle místnost nás změní navždy.",
    "Podáš mi, prosím tě, to koště?",
    "Opatrně, ať jí neublížíš.",
    "Třeba z ní tryská vzduch, jako ve vířivé lázni.",
    "Neotravuj pořád.",
    "Jak můžeš vědět, co je rozumné vysvětlení?",
    "Tohle jsou patrně palivové tyče reaktoru.",
    "Raději bych se držel nějakého rozumného vysvětlení.",
    "Na uhlák se vykašli a nameť to dolů.",
    "Naším úkolem bude dostat ven z místnosti ten špunt!",
    "Nevím, ale je to odporné.",
    "Co by to mohlo být?",
]


def all_paths(graph, length):
    """Every way through a graph, place by place."""

    def extend(path):
        if len(path) == length:
            if path[-1] in (len(graph.ids) - 1, len(graph.ids) - 4):
                yield path
            return
        for place in (path[-1], path[-1] + 1, path[-1] + 4):
            if place < len(graph.ids) and (place - path[-1] < 4 or graph.skip[place]):
                yield from extend([*path, place])

    yield from extend([0])
    yield from extend([3])


def plain_score(path, emissions, ids, stay):
    moves = [
        np.log(stay[ids[one]]) if one == other else np.log(1.0 - stay[ids[one]])
        for one, other in zip(path, path[1:], strict=False)
    ]
    return sum(moves) + sum(emissions[t, ids[place]] for t, place in enumerate(path))


def test_viterbi_finds_the_best_of_all_paths(rng):
    transcripts = [[["a"]], [["a"], ["b"]], [["b", "a"]]]
    graphs = [alignment.build_graph(words, [SILENCE, "a", "b"]) for words in transcripts]
    stay = rng.uniform(0.2, 0.8, 9)
    for lengths in (np.array([3, 7, 9]), np.array([9, 12, 6])):
        emissions = rng.normal(0, 3, (lengths.max(), 3, 9)).astype(np.float32)
        paths, scores = alignment.viterbi(emissions, lengths, graphs, stay)
        for row, graph in enumerate(graphs):
            expected = max(
                all_paths(graph, lengths[row]), key=lambda path: plain_score(path, emissions[:, row], graph.ids, stay)
            )
            assert paths[row].tolist() == expected
            assert scores[row] == pytest.approx(plain_score(expected, emissions[:, row], graph.ids, stay), abs=1e-4)


def test_too_short_for_its_graph(rng):
    graph = alignment.build_graph([["a", "b"]], [SILENCE, "a", "b"])
    emissions = rng.normal(0, 1, (8, 2, 9)).astype(np.float32)
    paths, scores = alignment.viterbi(emissions, np.array([5, 8]), [graph, graph], np.full(9, 0.5))
    assert scores[0] == -np.inf and np.isfinite(scores[1]) and [len(path) for path in paths] == [5, 8]


def made_up(rng, count):
    """Utterances of phones that are Gaussians: (features, transcripts, phones of each frame)."""
    means = {phone: rng.normal(0, 2, 4) for phone in "abcde"} | {SILENCE: np.zeros(4)}
    for phone, mean in means.items():
        mean[0] = -4.0 if phone == SILENCE else 1.0
    features, transcripts, truth = [], [], []
    for _ in range(count):
        words = [[str(phone) for phone in rng.choice(list("abcde"), rng.integers(1, 4))] for _ in range(4)]
        labels = [SILENCE] * int(rng.integers(4, 15))
        for word in words:
            for number, phone in enumerate(word):
                labels += [f"{phone}{number}"] * int(rng.integers(4, 12))
            labels += [SILENCE] * int(rng.choice([0, 8]))
        features.append(np.stack([means[label.rstrip("0123")] for label in labels]) + rng.normal(0, 0.5, (len(labels), 4)))
        transcripts.append(words)
        truth.append([label.rstrip("0123") for label in labels])
    return features, transcripts, truth


def test_known_times_are_found(rng):
    features, transcripts, truth = made_up(rng, 60)
    lines = []
    aligner = Aligner.train(features, transcripts, (1, 1, 1, 1, 1, 2), progress=lines.append)
    assert len(lines) == 6 and aligner.weights.shape[1] == 2
    right = total = 0
    for found, words, labels in zip(aligner.align_all(features, transcripts), transcripts, truth, strict=True):
        assert [phone for phone, _, _ in found if phone != SILENCE] == [phone for word in words for phone in word]
        assert found[0][1] == 0 and found[-1][2] == len(labels)
        assert all(one[2] == other[1] for one, other in zip(found, found[1:], strict=False))
        assert all(end - first >= alignment.STATES for _, first, end in found)
        named = [phone for phone, first, end in found for _ in range(first, end)]
        right, total = right + sum(map(str.__eq__, named, labels)), total + len(labels)
    assert right / total > 0.97


def test_together_as_one_by_one(rng):
    features, transcripts, _ = made_up(rng, 12)
    aligner = Aligner.train(features, transcripts, (1, 2))
    alone = [aligner.align(*one) for one in zip(features, transcripts, strict=True)]
    assert aligner.align_all(features, transcripts) == alone


def test_densities(rng):
    features, transcripts, _ = made_up(rng, 12)
    aligner = Aligner.train(features, transcripts, (1, 2))
    frames = features[0][:5].astype(np.float32)
    parts = norm.logpdf(frames[:, None, None], aligner.means, np.sqrt(aligner.variances)).sum(3) + np.log(aligner.weights)
    np.testing.assert_allclose(aligner.log_likelihoods(frames), np.logaddexp.reduce(parts, axis=2), atol=1e-3)
    np.testing.assert_allclose(aligner.weights.sum(axis=1), 1.0)


def test_edges(rng):
    features, transcripts, _ = made_up(rng, 12)
    aligner = Aligner.train([*features, features[0][:2]], [*transcripts, transcripts[0]], (1,))
    assert aligner.align_all([features[0][:2], features[1]], transcripts[:2])[0] is None
    with pytest.raises(ValueError, match="2 frames"):
        aligner.align(features[0][:2], transcripts[0])
    with pytest.raises(ValueError, match="'z'"):
        aligner.align(features[0], [["z"]])
    assert aligner.align(features[0], []) == [(SILENCE, 0, len(features[0]))]
    assert aligner.align(features[0][:3], [["a"]]) == [("a", 0, 3)]
    assert aligner.align_all([], []) == []
    with pytest.raises(ValueError, match="no utterance"):
        Aligner.train([features[0][:2]], transcripts[:1])
    silent = Aligner.train([np.zeros((50, 4))] * 3, [[["a", "b"]]] * 3, (1, 2))
    assert silent.align(np.zeros((50, 4)), [["a", "b"]])[-1][2] == 50


def speak(texts):
    """In a process of its own: [(samples, [(phoneme, seconds)], words of phonemes)] of eSpeak NG's Czech."""
    from local.synthesis import espeak

    class Timed(espeak.Engine):
        # Private, and nowhere else: eSpeak NG tells the times of its phonemes here alone, and the product wants none.
        def _on_samples(self, samples, count, events):
            index = 0
            while events[index].type != espeak._EVENT_END:
                if events[index].type == espeak._EVENT_PHONEME:
                    self.times.append((events[index].id.string.decode(), events[index].sample / espeak.RATE))
                index += 1
            return super()._on_samples(samples, count, events)

    engine, found = Timed(espeak.library()), []
    for number, text in enumerate(texts):
        engine.times = []
        samples, _ = engine.speak(espeak.Voice("cs", ("m1", "f2")[number % 2], rate=140 + 10 * (number % 4)), text)
        names = [(re.sub(r"^[',%=!;:|*]*", "", name), time) for name, time in engine.times]
        found.append(
            (
                np.frombuffer(samples, "<i2"),
                [one for one in names if one[0] and one[0][0] != "_"],
                espeak.without_marks(engine.phonemes(text, "cs")),
            )
        )
    return found


@pytest.mark.network
def test_synthetic_speech_whose_times_are_known(rng):
    from scipy.signal import resample_poly

    from pyspeech.features.config import MfccConfig
    from pyspeech.features.mfcc import compute_features

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spoken = pool.apply(speak, (TEXTS * 3,))
    features = []
    for samples, _, _ in spoken:
        audio = resample_poly(samples / 32768.0, 320, 441)
        audio = (audio + 1e-4 * rng.standard_normal(len(audio))).astype(np.float32)
        features.append(compute_features(audio, MfccConfig()).numpy())
    transcripts = [words for _, _, words in spoken]
    found = Aligner.train(features, transcripts, (1, 1, 1, 1, 1, 2, 2, 2)).align_all(features, transcripts)
    errors = []
    for (_, times, _), segments in zip(spoken, found, strict=True):
        segments = [segment for segment in segments if segment[0] != SILENCE]
        assert [name for name, _ in times] == [phone for phone, _, _ in segments]
        errors += [0.01 * first + 0.0075 - time for (_, time), (_, first, _) in zip(times, segments, strict=True)]
    assert len(errors) > 1000
    assert np.median(np.abs(errors)) < 0.015 and np.mean(np.abs(errors)) < 0.025
