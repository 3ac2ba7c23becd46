"""Word error rates against a plain edit distance, published figures and intervals known in closed form."""

import json

import kaldialign
import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.text.wer import (
    EPSILON,
    align,
    bootstrap_interval,
    compare,
    count_character_errors,
    count_errors,
    rate,
    relative_reduction,
    score_utterances,
    several,
    write_errs,
    write_recogs,
)


def utterance(name, ref, hyp, language="hi-IN", speaker="s", predicted=None):
    return (name, language, speaker, ref, hyp, predicted)


def plain_distance(ref, hyp):
    """Levenshtein distance, one cell at a time."""
    row = list(range(len(hyp) + 1))
    for i, word in enumerate(ref, 1):
        above, row = row, [i]
        for j, other in enumerate(hyp, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != other)))
    return row[-1]


def some_utterances(rng, count=60, words="abcde", languages=("hi-IN", "ta-IN")):
    def text():
        return " ".join(rng.choice(list(words), size=rng.integers(0, 9)))

    return [utterance(f"u{i:03}", text(), text(), languages[i % len(languages)], f"s{i % 7}") for i in range(count)]


def test_errors_equal_a_plain_edit_distance(rng):
    for _, _, _, ref, hyp, _ in some_utterances(rng, 300):
        pairs = align(ref.split(), hyp.split())
        counts = count_errors(pairs)
        assert counts["errors"] == plain_distance(ref.split(), hyp.split())
        assert counts["errors"] == counts["sub"] + counts["del"] + counts["ins"]
        assert [word for word, _ in pairs if word != EPSILON] == ref.split()
        assert [word for _, word in pairs if word != EPSILON] == hyp.split()
        assert counts["words"] == len(ref.split())
        assert counts["words"] - counts["del"] + counts["ins"] == len(hyp.split())
        assert counts["errors"] == kaldialign.edit_distance(ref.split(), hyp.split())["total"]
        assert count_character_errors(ref, hyp) == (plain_distance(ref, hyp), len(ref))


@pytest.mark.parametrize(
    "ref, hyp, expected",
    [
        ("", "", (0, 0, 0, 0, 0)),
        ("a b", "", (2, 2, 0, 2, 0)),
        ("", "a b", (2, 0, 0, 0, 2)),
        ("a", "a a a", (2, 1, 0, 0, 2)),
        ("a * b", "a b *", (2, 3, 0, 1, 1)),
        ("नमस्ते दुनिया", "नमस्ते दुनियां", (1, 2, 1, 0, 0)),
    ],
)
def test_edges_of_one_utterance(ref, hyp, expected):
    counts = count_errors(align(ref.split(), hyp.split()))
    assert tuple(counts[name] for name in ("errors", "words", "sub", "del", "ins")) == expected


def test_empty_references_and_hypotheses_count_in_the_pool():
    items = [utterance("a", "", "x y"), utterance("b", "p q r", ""), utterance("c", "", "", "ta-IN"), utterance("d", "m", "m")]
    scores = score_utterances(items)
    assert scores["languages"]["hi-IN"] | {"ci": 0} == {
        "errors": 5,
        "words": 4,
        "sub": 0,
        "del": 3,
        "ins": 2,
        "utterances": 3,
        "ci": 0,
    }
    assert scores["languages"]["ta-IN"]["ci"] is None and scores["languages"]["ta-IN"]["words"] == 0
    assert scores["average"]["errors"] == 5 and "lid" not in scores
    assert rate(0, 0) is None and rate(3, 2) == 1.5
    json.loads(json.dumps(scores, allow_nan=False))


def test_average_is_weighted_by_words_and_order_does_not_matter(rng):
    items = some_utterances(rng)
    scores = score_utterances(items)
    for name in ("errors", "words", "sub", "del", "ins", "utterances"):
        assert scores["average"][name] == sum(entry[name] for entry in scores["languages"].values())
    assert score_utterances(items[::-1]) == scores
    assert score_utterances(items, seed=1)["average"]["ci"] != scores["average"]["ci"]
    low, high = scores["average"]["ci"]
    assert low < rate(scores["average"]["errors"], scores["average"]["words"]) < high


def test_relative_reduction_gives_the_figures_of_the_paper():
    # Joshi et al. 2021, Tables 2 to 4: average WER, baseline, WERR; from rounded WERs, hence the tolerance.
    for wer, baseline, werr in [
        (32.45, 23.97, -35.35),
        (26.7, 23.97, -11.37),
        (22.86, 23.97, 4.65),
        (22.73, 23.97, 5.17),
        (23.24, 23.97, 3.05),
        (21.04, 23.97, 12.22),
        (27.95, 32.45, 13.86),
        (24.45, 32.45, 24.65),
    ]:
        assert 100 * relative_reduction(baseline, wer) == pytest.approx(werr, abs=0.04)
    for baseline, wer in [(0, 0.1), (None, 0.1), (0.1, None)]:
        assert relative_reduction(baseline, wer) is None


def test_bootstrap_interval_of_a_proportion(rng):
    """One word an utterance: the WER is a proportion, whose 95 % interval is p +- 1.96 sqrt(p (1 - p) / n)."""
    errors = (np.arange(2000) < 500).astype(int)
    low, high = bootstrap_interval(errors, np.ones(2000), ["x"] * 2000, list(range(2000)), resamples=4000)
    half = 1.96 * np.sqrt(0.25 * 0.75 / 2000)
    assert low == pytest.approx(0.25 - half, abs=0.002) and high == pytest.approx(0.25 + half, abs=0.002)


def test_bootstrap_against_a_plain_loop(rng):
    errors, words = rng.integers(0, 5, 40), rng.integers(1, 9, 40)
    strata, speakers = [i % 2 for i in range(40)], [i % 10 for i in range(40)]
    low, high = bootstrap_interval(errors, words, strata, speakers, resamples=4000)
    draws = []
    for _ in range(4000):
        chosen = []
        for stratum in (0, 1):
            names = sorted({speakers[i] for i in range(40) if strata[i] == stratum})
            for name in rng.choice(names, len(names)):
                chosen += [i for i in range(40) if strata[i] == stratum and speakers[i] == name]
        draws.append(errors[chosen].sum() / words[chosen].sum())
    assert np.percentile(draws, [2.5, 97.5]) == pytest.approx([low, high], abs=0.01)


def test_bootstrap_in_pieces_equals_at_once(rng, monkeypatch):
    errors, words = rng.integers(0, 5, 50), rng.integers(0, 9, 50)
    arguments = errors, words, ["x"] * 50, list(range(50))
    at_once = bootstrap_interval(*arguments)
    monkeypatch.setattr("pyspeech.text.wer.DRAWS_AT_ONCE", 170)
    assert bootstrap_interval(*arguments) == at_once


def test_speakers_alike_widen_the_interval():
    """Ten speakers, each all right or all wrong: utterances look independent only where speakers are ignored."""
    items = [utterance(f"{i:03}", "a b", "a b" if i % 10 < 7 else "x y", speaker=f"s{i % 10}") for i in range(300)]
    by_utterance, by_speaker = (score_utterances(items, resample=kind)["average"]["ci"] for kind in ("utterance", "speaker"))
    assert by_speaker[1] - by_speaker[0] > 3 * (by_utterance[1] - by_utterance[0])
    with pytest.raises(UserError, match="utterance x has no speaker"):
        score_utterances([utterance("x", "a", "a", speaker=None)], resample="speaker")


def test_paired_comparison_is_sharper_than_two_intervals(rng):
    before = [utterance(f"{i:03}", "a b c d", "x y c d" if i % 2 else "a b c d") for i in range(200)]
    after = [item[:4] + ("x b c d" if i % 10 == 1 else item[4], None) for i, item in enumerate(before)]
    result = compare(before, after)
    assert result["werr"] == pytest.approx(20 / 200) and result["p_fewer_errors"] == 1
    assert 0.04 < result["ci"][0] < 0.1 < result["ci"][1] < 0.16
    low, high = (score_utterances(items)["average"]["ci"] for items in (after, before))
    assert low[1] > high[0]  # the two intervals overlap, yet the difference is certain
    assert compare(before, before)["werr"] == 0 and compare(before, before)["p_fewer_errors"] == 0
    with pytest.raises(UserError, match="same references"):
        compare(before, [utterance("000", "other", "")] + after[1:])
    with pytest.raises(UserError, match="199 utterances against 200"):
        compare(before, after[:-1])


def test_lid_accuracy_and_confusion():
    items = [
        utterance("a", "x", "x", "hi-IN", predicted="hi-IN"),
        utterance("b", "x", "y", "hi-IN", predicted="ta-IN"),
        utterance("c", "x", "", "hi-IN", predicted=None),
        utterance("d", "x", "x", "ta-IN", predicted="ta-IN"),
    ]
    lid = score_utterances(items)["lid"]
    assert lid["accuracy"] == {"hi-IN": pytest.approx(1 / 3), "ta-IN": 1}
    assert lid["confusion"] == {"hi-IN": {"hi-IN": 1, "none": 1, "ta-IN": 1}, "ta-IN": {"ta-IN": 1}}
    assert lid["undecided"] == {"hi-IN": 0, "ta-IN": 0}


def test_what_fits_several_languages_is_neither_right_nor_wrong():
    both = several(["mr-IN", "hi-IN"])
    spoken = [("hi-IN", both), ("hi-IN", both), ("hi-IN", "hi-IN"), ("hi-IN", "ta-IN"), ("mr-IN", both), ("ta-IN", both)]
    items = [utterance(str(number), "x", "x", code, predicted=found) for number, (code, found) in enumerate(spoken)]
    lid = score_utterances(items)["lid"]
    assert lid["accuracy"] == {"hi-IN": 0.5, "mr-IN": None, "ta-IN": 0}  # for Tamil, both are wrong
    assert lid["undecided"] == {"hi-IN": 0.5, "mr-IN": 1, "ta-IN": 0}
    assert lid["confusion"]["mr-IN"] == {"hi-IN or mr-IN": 1} and several([]) == "none"


def test_clear_errors():
    with pytest.raises(UserError, match="no utterances"):
        score_utterances([])
    with pytest.raises(UserError, match="utterance a .* twice"):
        score_utterances([utterance("a", "x", "x"), utterance("a", "x", "y")])
    score_utterances([utterance("a", "x", "x"), utterance("a", "x", "y", "ta-IN")])  # ids of two corpora may be alike
    with pytest.raises(UserError, match="resample 'word'"):
        score_utterances([utterance("a", "x", "x")], resample="word")


def test_error_files_have_the_known_layout(tmp_path):
    items = [
        utterance("u2", "the cat sat", "the bat", speaker="bo"),
        utterance("u1", "", "oh", speaker="al"),
        utterance("u3", "a cat", "a cat", "en-IN", speaker="bo"),
        utterance("u4", "* hat", "hat", speaker=None),
    ]
    write_errs(tmp_path / "errs-test.txt", items)
    write_recogs(tmp_path / "recogs-test.txt", items)
    assert (tmp_path / "recogs-test.txt").read_text().splitlines()[:4] == [
        "u1:\tref=[]",
        "u1:\thyp=['oh']",
        "u2:\tref=['the', 'cat', 'sat']",
        "u2:\thyp=['the', 'bat']",
    ]
    text = (tmp_path / "errs-test.txt").read_text()
    assert text.splitlines() == [
        "%WER = 57.14",
        "Errors: 1 insertions, 2 deletions, 1 substitutions, over 7 reference words (4 correct)",
        "Search below for sections starting with PER-UTT DETAILS:, SUBSTITUTIONS:, DELETIONS:, INSERTIONS:, "
        "PER-WORD STATS:, PER-SPEAKER STATS:, PER-LANGUAGE STATS:",
        "",
        "PER-UTT DETAILS: corr or (ref->hyp)  ",
        "u1:\t(*->oh)",
        "u2:\tthe (cat sat->bat)",
        "u3:\ta cat",
        "u4:\t(*->*) hat",
        "",
        "SUBSTITUTIONS: count ref -> hyp",
        _substitution(text),
        "",
        "DELETIONS: count ref",
        *_deletions(text),
        "",
        "INSERTIONS: count hyp",
        "1   oh",
        "",
        "PER-WORD STATS: word  corr tot_errs count_in_ref count_in_hyp",
        "*   0 1 1 0",
        "bat   0 1 0 1",
        "cat   1 1 2 1",
        "oh   0 1 0 1",
        "sat   0 1 1 0",
        "a   1 0 1 1",
        "hat   1 0 1 1",
        "the   1 0 1 1",
        "",
        "PER-SPEAKER STATS: speaker  utterances words errors ins del sub %WER",
        "al   1 0 1 1 0 0 -",
        "bo   2 5 2 0 1 1 40.00",
        "",
        "PER-LANGUAGE STATS: language  utterances words errors ins del sub %WER",
        "en-IN   1 2 0 0 0 0 0.00",
        "hi-IN   3 5 4 1 2 1 80.00",
    ]


def _substitution(text):
    """Either word may be the one that was replaced: both alignments are best."""
    (found,) = [line for line in ("1   cat -> bat", "1   sat -> bat") if line in text.splitlines()]
    return found


def _deletions(text):
    return ["1   *", "1   sat" if _substitution(text) == "1   cat -> bat" else "1   cat"]
