"""Figures of units against phones, by a plain count and at their ends; alignments of all forms, and what is wrong with them."""

import math
from collections import Counter

import numpy as np
import pytest
from tool_harness import one_line_error

from pyspeech.units.features_files import open_features
from pyspeech.units.phones import count_together, figures, read_alignment


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_figures_are_those_of_a_plain_count(rng):
    """Mutual information from single frames, purities from lists of them."""
    pairs = [(int(unit), int(unit // 3 if rng.random() < 0.6 else rng.integers(4))) for unit in rng.integers(12, size=500)]
    counts = np.zeros((12, 4), int)
    np.add.at(counts, tuple(np.array(pairs).T), 1)
    both, units, phones = Counter(pairs), Counter(unit for unit, _ in pairs), Counter(phone for _, phone in pairs)
    information = sum(math.log2(500 * both[pair] / (units[pair[0]] * phones[pair[1]])) for pair in pairs) / 500
    entropy = -sum(math.log2(phones[phone] / 500) for _, phone in pairs) / 500
    found = figures(counts)
    assert found["information"] == pytest.approx(information) and found["phone_entropy"] == pytest.approx(entropy)
    assert found["pnmi"] == pytest.approx(information / entropy)
    best = {unit: Counter(phone for one, phone in pairs if one == unit).most_common(1)[0][1] for unit in units}
    assert found["phone_purity"] == pytest.approx(sum(best.values()) / 500)
    best = {phone: Counter(unit for unit, one in pairs if one == phone).most_common(1)[0][1] for phone in phones}
    assert found["cluster_purity"] == pytest.approx(sum(best.values()) / 500)


def test_figures_at_their_ends():
    for counts, expected in (
        (np.eye(4), (1, 1, 1)),
        (np.ones((4, 4)), (0.25, 0.25, 0)),
        (np.kron(np.eye(2), [[1], [1]]), (1, 0.5, 1)),  # twice as many units as phones
        ([[3, 1]], (0.75, 1, 0)),
        ([[3], [1]], (1, 0.75, 1)),
    ):
        found = figures(np.array(counts))
        assert (found["phone_purity"], found["cluster_purity"], found["pnmi"]) == pytest.approx(expected)


@pytest.mark.parametrize("rate, told", [(100, ""), (10000, "0.0 s of units, but 2.0 s of alignment"), (10, "20.0 s of units")])
def test_a_rate_that_does_not_fit_the_alignment_is_said(tmp_path, caplog, rate, told):
    write(tmp_path / "units.txt", "u " + " ".join("12" * 100) + "\n")
    alignment = read_alignment(write(tmp_path / "a", "u 0 1 a\nu 1 2 b\n"))
    count_together(open_features(tmp_path / "units.txt"), ["u"], alignment, rate)
    assert told in caplog.text and bool(told) == ("--frame-rate" in caplog.text)


def test_features_in_place_of_codes_are_said(tmp_path, rng, caplog):
    (tmp_path / "f").mkdir()
    np.save(tmp_path / "f/u.npy", rng.standard_normal((200, 3)))
    alignment = read_alignment(write(tmp_path / "a", "u 0 1 a\nu 1 2 b\n"))
    count_together(open_features(tmp_path / "f"), ["u"], alignment, 100)
    assert "nearly every frame is a unit of its own" in caplog.text


@pytest.mark.parametrize(
    "name, text",
    [
        ("a", "u 0 0.1 a\nu 0.1 0.25 b\nv 0.2 0.3 a\n"),
        ("a.ctm", "u 1 0 0.1 a\nu 1 0.1 0.15 b\nv A 0.2 0.1 a 0.9\n"),
        (
            "a.item",
            "#file onset offset #phone prev-phone next-phone speaker\nu 0 0.1 a x b s\nu 0.1 0.25 b a x s\nv 0.2 0.3 a x x s\n",
        ),
    ],
)
def test_alignments(tmp_path, name, text):
    found = read_alignment(write(tmp_path / name, text))
    assert {key: [(start, pytest.approx(end), phone) for start, end, phone in rows] for key, rows in found.items()} == {
        "u": [(0, 0.1, "a"), (0.1, 0.25, "b")],
        "v": [(0.2, 0.3, "a")],
    }


def test_frames_in_phones(caplog):
    """At 20 a second the middles are 0.025, 0.075, ...; the last of u and the first of v are in no phone."""
    alignment = {"set/u": [(0.0, 0.1, "a"), (0.1, 0.25, "b")], "v": [(0.05, 0.2, "a")]}
    codes = {"u": np.array([3, 3, 10, 10, 3, 3]), "v": np.array([7, 3, 3])}
    units, phones, counts = count_together(open_features(codes), ["u", "v"], alignment, 20)
    assert (units, phones, counts.tolist()) == (["3", "10"], ["a", "b"], [[4, 1], [0, 2]]) and not caplog.records
    onehot = {name: np.eye(11)[of_one] for name, of_one in codes.items()}
    assert count_together(open_features(onehot), ["u", "v"], alignment, 20)[2].tolist() == counts.tolist()
    timed = {"u": (codes["u"][:, None], np.array([0.0, 0.1, 0.15, 0.16, 0.2, 0.3]))}
    assert count_together(open_features(timed), ["u"], alignment, None)[2].tolist() == [[1, 2], [0, 2]]
    count_together(open_features(codes), ["u", "v"], {"u": alignment["set/u"]}, 20)
    assert "1 of 2 utterances are in the alignment, and 83 % of their units in a phone" in caplog.text
    with one_line_error("u: no times of its units; give their rate"):
        count_together(open_features(codes), ["u"], alignment, None)
    with one_line_error("no unit is in a phone: 0 of 1 utterances are in the alignment"):
        count_together(open_features(codes), ["u"], {"w": [(0, 1, "a")]}, 20)


@pytest.mark.parametrize(
    "text, message",
    [
        ("u 0 0.1 a\nu 0.1 a\n", "line 2: 'u 0.1 a'; expected `NAME START END PHONE`"),
        ("u 0.2 0.1 a\n", "line 1: from 0.2 s to 0.1 s"),
        ("u 0 0.2 a\nu 0.1 0.3 b\n", "u: a until 0.2 s, b from 0.1 s; expected no overlap"),
        ("# nothing\n", "no phones; expected"),
    ],
)
def test_alignments_that_are_wrong(tmp_path, text, message):
    with one_line_error(message):
        read_alignment(write(tmp_path / "a", text))
