"""The corpus of the bundled detector, from synthetic voices: levels, labels of words and turns, quiet recordings."""

import logging
import random
from functools import partial

import numpy as np
import pytest
from kill_harness import killed_until_it_ends
from tiny_audio import read_cuts
from tiny_corpora import voiced
from tiny_scenes import made_up_transcript, make_sources

from local import voices
from local.detector import scenes as speech_scenes
from local.synthesis import close_scene, unspoken
from pyspeech.engine.parts import Parts
from pyspeech.files import is_temporary
from pyspeech.sad.formats import read_reference
from pyspeech.sad.segments import segments_to_frames, total

MINUTES = {"train": [0.5, 1.0, 0.5], "dev": [0, 0.5, 0], "eval": [0, 0, 0.5]}

prepare = partial(speech_scenes.prepare, log=logging.getLogger("test"), minutes=MINUTES, transcript=made_up_transcript())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    prepare(folder, jobs=1, sources=make_sources(folder / "voices"))
    return folder


def test_killed_while_it_is_made(corpus, tmp_path):
    """SIGKILL again and again: the corpus of an undisturbed run, and what another one has left is gone."""
    sources, out = make_sources(tmp_path / "voices"), tmp_path / "corpus"
    for stale in ("audio/train/radio_train_009.wav", "turns/eval/radio_eval_001.txt"):
        (out / stale).parent.mkdir(parents=True)
        (out / stale).touch()

    def make():
        prepare(out, jobs=2, sources=sources, parts=Parts(tmp_path / "parts"))

    assert killed_until_it_ends(make, tmp_path, random.Random(4), 90) > 2
    assert contents(out) == contents(corpus)


def contents(folder):
    """{name: bytes} of recordings and labels."""
    found = {str(path.relative_to(folder)): path for kind in ("*.wav", "*.txt") for path in folder.rglob(kind)}
    return {name: path.read_bytes() for name, path in found.items() if not is_temporary(path.name) and "voices" not in name}


def segments(folder, labels, cut):
    rows = read_reference(folder / labels / cut.id.split("_")[1] / f"{cut.id}.txt")
    assert rows[0][0] == 0 and rows[-1][1] == pytest.approx(cut.duration, abs=1e-3)
    return np.array([(start, end) for start, end, label in rows if label == "S"]).reshape(-1, 2)


def test_what_there_is_of_each_kind(corpus):
    found = {split: {cut.id: cut.duration for cut in read_cuts(corpus, split)} for split in speech_scenes.SPLITS}
    assert found == {
        "train": {"radio_train_001": 30.0, "close_train_001": 60.0, "quiet_train_001": 30.0},
        "dev": {"close_dev_001": 30.0},
        "eval": {"quiet_eval_001": 30.0},
    }


def test_turns_are_words_without_short_pauses(corpus):
    for cut in read_cuts(corpus, "train"):
        words, turns = segments(corpus, "reference", cut), segments(corpus, "turns", cut)
        assert np.array([(part.start, part.end) for part in cut.supervisions]).reshape(-1, 2) == pytest.approx(words, abs=2e-3)
        if cut.id.startswith("quiet"):
            assert not len(words) and not len(turns)
            continue
        assert 0 < len(turns) <= len(words) and total(turns) >= total(words)
        assert (turns[1:, 0] - turns[:-1, 1] >= speech_scenes.TURN_GAP - 2e-3).all()
        count = int(cut.duration * 100)
        assert (segments_to_frames(turns, count) >= segments_to_frames(words, count)).all()


def test_samples_are_the_same_every_time(corpus, tmp_path):
    sources = make_sources(tmp_path / "voices")
    prepare(tmp_path, jobs=1, sources=sources)
    for cut in read_cuts(corpus, "train"):
        path = f"audio/train/{cut.id}.wav"
        assert (tmp_path / path).read_bytes() == (corpus / path).read_bytes()


def test_close_speech_is_where_the_labels_say():
    """Without noise, the recording's energy is inside the labels; a pause of 0.3 s within a clip is outside."""
    rng = np.random.Generator(np.random.PCG64(5))
    quiet = np.zeros(2400)
    clip = np.concatenate([quiet, 0.4 * voiced(0.7, rng), quiet, 0.4 * voiced(0.7, rng), quiet])
    shares = []
    for seed in range(12):
        draws = np.random.Generator(np.random.PCG64(seed))
        samples, speech, _ = close_scene.render(
            draws, 20.0, {"a": "f"}, lambda voice, seconds: clip, lambda kind, seconds: None
        )
        assert np.abs(samples).max() <= 1.0 and len(samples) == 160000
        inside = segments_to_frames(speech, 2000)
        power = np.square(samples - np.median(samples)).reshape(2000, 80).mean(1)
        shares.append(power[inside].mean() / power[~inside].mean())
        lengths = np.diff(np.array(speech), axis=1)
        assert lengths.min() > 0.4 and lengths.max() < 1.5  # a clip has two stretches, and the pace changes them
    assert np.median(shares) > 10


def test_nobody_speaks_where_it_is_quiet():
    """The source of voices is not even there; whatever is heard is within the scale, at very different levels."""
    levels = []
    for seed in range(6):
        rng = np.random.Generator(np.random.PCG64(seed))
        samples = close_scene.render_without_speech(rng, 10.0, lambda kind, seconds: None)
        assert np.abs(samples).max() <= 1.0 and len(samples) == 80000 and np.isfinite(samples).all()
        levels.append(10 * np.log10(np.mean(np.square(samples)) + 1e-12))
    assert max(levels) - min(levels) > 10


@pytest.mark.parametrize("kind", unspoken.KINDS)
def test_every_kind_without_speech(kind):
    rng = np.random.Generator(np.random.PCG64(3))
    for size in (1, 800, 40001):
        sound = unspoken.stretch(rng, kind, size, lambda kind, seconds: None)
        assert sound.shape == (size,) and np.isfinite(sound).all()
    assert np.mean(np.square(sound)) == pytest.approx(1.0, rel=1e-3)


def test_kinds_are_drawn_by_their_weights():
    rng = np.random.Generator(np.random.PCG64(3))
    drawn = [unspoken.draw_kind(rng, {"hum": 3.0, "hiss": 1.0}) for _ in range(400)]
    assert 0.68 < drawn.count("hum") / 400 < 0.82 and set(drawn) == {"hum", "hiss"}


def test_interruptions_leave_the_speech_as_it_is():
    """What was said is still within the labels, sample by sample, and the rest is as long as was asked for."""
    samples, speech = np.full(80000, 1e-3), np.array([(1.0, 2.5), (2.6, 4.0), (6.0, 9.0)])
    for number, (start, end) in enumerate(speech, start=1):
        samples[int(start * 8000) : int(end * 8000)] = 0.1 * number
    for seed in range(20):
        rng = np.random.Generator(np.random.PCG64(seed))
        longer, moved = close_scene.interrupt(rng, samples, speech, [1.23, 2.0], lambda kind, seconds: None)
        assert len(longer) == 80000 + 9840 + 16000
        assert np.diff(moved) == pytest.approx(np.diff(speech))
        for number, (start, end) in enumerate(np.rint(np.array(moved) * 8000).astype(int), start=1):
            assert (longer[start:end] == 0.1 * number).all()


def test_lengths_of_interruptions():
    rng = np.random.Generator(np.random.PCG64(0))
    lengths = [close_scene.draw_interruptions(rng, 120.0) for _ in range(200)]
    assert 60 < sum(not some for some in lengths) < 150
    assert all(
        1.0 <= length <= 12.0 and length * 8000 == pytest.approx(round(length * 8000)) for some in lengths for length in some
    )
    assert max(map(sum, lengths)) < 80  # most of a recording is left


def test_nobody_is_in_two_splits():
    splits = {voice: speech_scenes.split_of(voice) for voice in voices.VOICES}
    assert set(splits.values()) == {"train", "dev", "eval"}
    assert splits["asterisk-en"] == splits["asterisk-es"]  # the same speaker
    games = {voice: split for voice, split in splits.items() if voice.startswith(("klettres", "ktuberling"))}
    for voice, split in games.items():  # one person may have recorded both games
        language = voice.split("-", 1)[1]
        assert {other for name, other in games.items() if name.split("-", 1)[1] == language} == {split}
