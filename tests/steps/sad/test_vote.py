"""Majority voting: the thresholds of the networks, tuned for what they decide together."""

from types import SimpleNamespace

import numpy as np
import pytest
from tiny_corpora import write_label

from pyspeech.sad.config import StftConfig
from pyspeech.sad.formats import read_reference
from pyspeech.sad.scoring import score_pair
from pyspeech.sad.segments import frames_to_segments, segments_to_frames
from pyspeech.sad.smoothing import decide, majority
from steps.sad import vote

SECONDS, STFT = 10.0, StftConfig()
SMOOTHINGS = ("none", "median", "hmm")


@pytest.fixture
def exp(tmp_path, monkeypatch):
    """Two streams of dev and the scores of three networks, one of which knows less than the others."""
    cuts = [SimpleNamespace(recording_id=name, duration=SECONDS) for name in ("a", "b")]
    monkeypatch.setattr(vote, "load_cuts", lambda corpus, name: cuts)
    for seed, cut in enumerate(cuts):
        rng = np.random.default_rng(seed)
        borders = np.sort(np.round(rng.uniform(0.5, SECONDS - 0.5, 8), 2)).reshape(-1, 2).tolist()
        write_label(tmp_path / "corpus/reference/dev" / f"{cut.recording_id}.txt", cut.recording_id, borders, SECONDS)
        speech = segments_to_frames(borders, 1000)
        for system, noise in (("none", 0.5), ("median", 0.6), ("hmm", 0.9)):
            scores = np.clip(0.2 + 0.4 * speech + noise * rng.standard_normal(1000) / 3, 0.001, 0.999)
            (tmp_path / system / "dev").mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / system / "dev" / f"{cut.recording_id}.npy", scores.astype(np.float32))
    return SimpleNamespace(dir=tmp_path, parts=None)


def official_dcf(exp, voters, collar):
    files = []
    for name in ("a", "b"):
        decisions = [decide(np.load(scores / "dev" / f"{name}.npy"), *how) for scores, *how in voters]
        speech = frames_to_segments(majority(decisions), STFT.frame_shift, SECONDS, STFT.frame_offset)
        reference = read_reference(exp.dir / "corpus/reference/dev" / f"{name}.txt")
        files.append(round(score_pair(reference, speech, collar)["dcf"], 5))
    return np.mean(files)


@pytest.mark.parametrize("collar", [0.0, 0.5])
def test_no_threshold_alone_does_better(exp, collar):
    voters = [(exp.dir / smoothing, 0.77, smoothing) for smoothing in SMOOTHINGS]
    found, dcf = vote.descend(exp, voters, STFT, collar, vote.Decisions())
    assert [voter[::2] for voter in found] == [voter[::2] for voter in voters] and found != voters
    assert dcf == pytest.approx(official_dcf(exp, found, collar), abs=1.1e-5) and dcf < official_dcf(exp, voters, collar)
    for index, (scores, _, smoothing) in enumerate(found):
        for threshold in np.linspace(0, 1, vote.STEPS)[::4]:
            changed = [*found[:index], (scores, threshold, smoothing), *found[index + 1 :]]
            assert official_dcf(exp, changed, collar) >= dcf - 2e-5


def test_best_thresholds_stay(exp):
    start, decisions = [(exp.dir / smoothing, 0.5, smoothing) for smoothing in SMOOTHINGS], vote.Decisions()
    voters, dcf = vote.descend(exp, start, STFT, 0.0, decisions)
    assert (
        vote.descend(exp, voters, STFT, 0.0, decisions)
        == vote.descend(exp, voters, STFT, 0.0, vote.Decisions())
        == (voters, dcf)
    )


def test_one_of_them_alone(exp):
    """The starts are the networks themselves, so their majority is no worse on dev than the best of them."""
    voters = [(exp.dir / smoothing, 0.4, smoothing) for smoothing in SMOOTHINGS]
    single = [official_dcf(exp, voters[index : index + 1], 0.0) for index in range(3)]
    assert [official_dcf(exp, vote.alone(voters, index), 0.0) for index in range(3)] == single
    assert vote.tune_vote(exp, voters, STFT, 0.0)[1] <= min(single) + 1e-5
