"""Simulated mission audio from made-up voices: timing, labels, levels, the same samples every time."""

import logging
import re

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts
from tiny_corpora import voiced
from tiny_scenes import made_up_transcript

from local import voices
from local.fearless import mini as fearless_mini
from local.synthesis import radio, stream_scene
from pyspeech.data import audio_files
from pyspeech.sad.formats import read_reference
from pyspeech.sad.segments import segments_to_frames

log = logging.getLogger("test")
TRANSCRIPT = """# a comment

00 00 00 04 CDR
Roger. Clock.

00 00 00 13 CC
Roger. We got a roll program, and then some more
words on a second line.

00 00 00 13 CMP

01 02 03 04 LMP
Okay.
"""
WRITTEN = "audio/*/sim_*.wav"
MADE_UP_DIGEST = "79d101ab97d601025d060b4cc26eada26c2efe676835f25e5bc04afaf9b91b9a"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voices")
    people = {}
    for number, split in enumerate(fearless_mini.SPLITS):
        people[split] = {}
        for voice in ("a", "b"):
            rng = np.random.default_rng([number, ord(voice)])
            paths = []
            for index in range(5):
                path = folder / f"{split}-{voice}-{index}.wav"
                quiet = np.zeros(1600)
                samples = np.concatenate([quiet, 0.4 * voiced(0.6 + 0.4 * index, rng), quiet])
                soundfile.write(str(path), samples, 8000, subtype="PCM_16")
                paths.append(path)
            people[split][voice] = ("fm"[number % 2], paths)
    data = radio.keyed_tones(np.random.Generator(np.random.PCG64(1)), 40000)
    signals = {split: [data] for split in fearless_mini.SPLITS}
    return fearless_mini.Sources(people, made_up_transcript(), signals)


def test_transcript(tmp_path):
    (tmp_path / "log.txt").write_text(TRANSCRIPT)
    found = fearless_mini.read_transcript(tmp_path / "log.txt")
    late = ((24 + 2) * 60 + 3) * 60 + 4.0
    assert [(one.start, one.role) for one in found] == [(4.0, "CDR"), (13.0, "CC"), (late, "LMP")]
    assert found[0].seconds == 0.25 + 13 / 15 and found[1].seconds == 0.25 + (48 + 23) / 15


def test_windows_are_apart_and_as_dense_as_asked():
    rng = np.random.Generator(np.random.PCG64(3))
    transcript = made_up_transcript(400)
    seconds = [60.0, 60.0, 30.0]
    windows = fearless_mini.choose_windows(rng, transcript, seconds, [0.2, 0.35, 0.5])
    density = [sum(one.seconds for one in window) / length for window, length in zip(windows, seconds, strict=True)]
    assert density[0] < density[1] < density[2]
    used = [
        {
            transcript.index(fearless_mini.Transmission(one.start, one.role, one.seconds))
            for one in transcript
            if any(one.seconds == other.seconds for other in window)
        }
        for window in windows
    ]
    assert not used[0] & used[1] and not used[1] & used[2] and not used[0] & used[2]
    assert all(0.0 <= one.start < length for window, length in zip(windows, seconds, strict=True) for one in window)
    with pytest.raises(ValueError, match="stretches"):
        fearless_mini.choose_windows(rng, transcript, [900.0] * 10, [0.3] * 10)


def test_clips_are_used_once_before_any_is_used_again(sources):
    queue = fearless_mini.ClipQueue(
        np.random.Generator(np.random.PCG64(0)), {voice: paths for voice, (_, paths) in sources.voices["train"].items()}
    )
    lengths = [len(queue.take("a", 1.0)) for _ in range(5)]
    assert len(set(lengths)) == 5
    assert abs(lengths[0] / 8000 - 1.0) == min(abs(length / 8000 - 1.0) for length in lengths)


def test_corpus(sources, tmp_path):
    made = fearless_mini.prepare(tmp_path, log, minutes=(1, 0.5, 0.5), jobs=1, sources=sources)
    assert made == {"train": 1, "dev": 1, "eval": 1}
    for split, seconds in (("train", 60.0), ("dev", 30.0), ("eval", 30.0)):
        (cut,) = read_cuts(tmp_path, split)
        assert cut.id == f"sim_{split}_001" and cut.duration == seconds and cut.sampling_rate == 8000
        info = soundfile.info(cut.recording.sources[0].source)
        assert info.subtype == "PCM_16" and info.frames == int(seconds * 8000)
        reference = read_reference(tmp_path / "reference" / split / f"{cut.id}.txt")
        assert reference[0][0] == 0.0 and reference[-1][1] == seconds
        assert {label for *_, label in reference} == {"S", "NS"}
        assert [(a, b) for a, b, label in reference if label == "S"] == [
            (pytest.approx(s.start), pytest.approx(s.end)) for s in cut.supervisions
        ]
        share = sum(s.duration for s in cut.supervisions) / seconds
        assert 0.05 < share < 0.9
        samples = cut.load_audio()[0]
        assert np.abs(samples).max() > 0.01 and np.mean(np.abs(samples) > 0.999) < 0.01


def test_nothing_is_left_of_an_earlier_corpus(sources, tmp_path):
    fearless_mini.prepare(tmp_path, log, minutes=(0, 5, 0), jobs=2, sources=sources)
    assert len(list((tmp_path / "reference/dev").iterdir())) == 2
    fearless_mini.prepare(tmp_path, log, minutes=(0, 0.25, 0), jobs=1, sources=sources)
    for folder in ("audio/dev", "reference/dev"):
        assert [path.stem for path in (tmp_path / folder).iterdir()] == ["sim_dev_001"]
    assert not list(tmp_path.glob("train*"))


def test_a_fifth_of_training_has_no_speech(sources, tmp_path):
    made = fearless_mini.prepare(tmp_path, log, minutes=(10, 0.25, 0), jobs=2, sources=sources)
    assert made == {"train": 5, "dev": 1}
    *talk, quiet = sorted(read_cuts(tmp_path, "train"), key=lambda cut: "quiet" in cut.id)
    assert quiet.id == "sim_train_quiet_001" and quiet.duration == 150.0 and not quiet.supervisions
    assert all(cut.supervisions for cut in talk)
    assert read_reference(tmp_path / "reference/train/sim_train_quiet_001.txt") == [(0.0, 150.0, "NS")]
    samples = quiet.load_audio()[0]
    assert np.abs(samples).max() > 0.01 and np.std([np.std(part) for part in samples.reshape(-1, 8000)]) > 1e-3


def test_other_samples_than_published_are_said(sources, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(fearless_mini, "default_sources", lambda log: sources)
    monkeypatch.setattr(fearless_mini, "DIGESTS", {(0, 0.25, 0): "0" * 64})
    fearless_mini.prepare(tmp_path, log, minutes=(0, 0.25, 0), jobs=1)
    assert "not the very same samples" in caplog.text
    caplog.clear()
    monkeypatch.setattr(fearless_mini, "DIGESTS", {(0, 0.25, 0): audio_files.digest(tmp_path.glob(WRITTEN))})
    fearless_mini.prepare(tmp_path, log, minutes=(0, 0.25, 0), jobs=1)
    assert "not the very same samples" not in caplog.text


def test_the_same_samples_every_time(sources, tmp_path):
    """In any number of processes, and on any machine: the digest below was made once and for all."""
    for name, jobs, seed in (("one", 1, 7), ("two", 2, 7), ("other", 1, 8)):
        fearless_mini.prepare(tmp_path / name, log, minutes=(0.5, 0.25, 0.25), seed=seed, jobs=jobs, sources=sources)
    digests = [audio_files.digest((tmp_path / name).glob(WRITTEN)) for name in ("one", "two", "other")]
    assert digests[0] == digests[1] != digests[2]
    assert digests[0] == MADE_UP_DIGEST


def test_speech_is_where_the_labels_say(tmp_path):
    """Alone on the track, transmissions are loud inside the labels; outside there is their carrier noise, snr dB
    below."""
    rng = np.random.Generator(np.random.PCG64(5))
    transcript = [fearless_mini.Transmission(4.0 * index, "CC", 1.0) for index in range(20)]
    clip = np.concatenate([np.zeros(800), 0.3 * voiced(1.0, np.random.default_rng(0)), np.zeros(800)])
    talkers = stream_scene.draw_talkers(rng, ["CC"], {"a": "m"})
    talkers["CC"].snr, talkers["CC"].burst, talkers["CC"].quindar, talkers["CC"].strength = 18.0, -60.0, None, 0.0
    track, speech, keyed, _ = stream_scene.converse(rng, transcript, talkers, 90 * 8000, lambda voice, seconds: clip)
    inside = segments_to_frames(speech, len(track), 1 / 8000)
    assert len(speech) >= 15
    carrier = ~inside & (np.abs(track) > 0)
    measured = radio.level(track[inside]) - radio.level(track[carrier])
    heard = np.zeros(len(track), bool)
    for first, last, noise in keyed:
        heard[first:last] = True
        assert noise == talkers["CC"].level - 18.0
    assert heard[inside].all() and not track[~heard].any()
    assert radio.level(track[inside]) == pytest.approx(talkers["CC"].level, abs=2.5)
    assert 10.0 < measured < 26.0


def test_talkers_spread_over_tens_of_decibels():
    rng = np.random.Generator(np.random.PCG64(0))
    spreads, snrs = [], np.zeros(0)
    for _ in range(200):
        talkers = stream_scene.draw_talkers(rng, ["CC", "CDR", "CMP", "LMP"], {"a": "f", "b": "m", "c": "m"}).values()
        levels = [talker.level for talker in talkers]
        spreads.append(max(levels) - min(levels))
        snrs = np.append(snrs, [talker.snr for talker in talkers])
        assert {talker.voice for talker in talkers} == {"a", "b", "c"}
    assert max(spreads) > 30 and np.median(spreads) > 8
    clean = snrs >= 30  # those without radio noise
    assert min(snrs) >= 0 and max(snrs[~clean]) <= 20 and 8 < np.mean(snrs[~clean]) < 14
    assert 0.05 < np.mean(clean) < 0.2 and max(snrs) <= 50


def test_squelch_to_digital_silence():
    """Nothing is heard while nobody is keyed and the receiver is closed, everything else as it was."""
    rng = np.random.Generator(np.random.PCG64(0))
    samples = 1.0 + rng.random(60 * 8000)
    keyed = [(8000, 16000, -20.0), (300000, 320000, -20.0)]
    found = stream_scene.squelch(rng, samples, keyed)
    heard = found != 0
    assert (found[heard] == samples[heard]).all() and 0.1 < np.mean(~heard) < 0.98
    for first, last, _ in keyed:
        assert heard[first:last].all()


def test_two_loops_at_once(monkeypatch):
    """Some streams have a second conversation, whose speech is labelled too."""
    transcript = [fearless_mini.Transmission(3.0 * index, "CC", 1.5) for index in range(6)]
    moved = stream_scene.second_loop(transcript, 20 * 8000)
    assert [(one.start, one.seconds) for one in moved] == [(2.0, 1.5), (10.0, 1.5), (16.0, 1.5)]
    clip = np.concatenate([np.zeros(800), 0.3 * voiced(1.0, np.random.default_rng(0)), np.zeros(800)])
    converse, loops, streams = stream_scene.converse, [], 12

    def noted(*arguments):
        loops.append(converse(*arguments))
        return loops[-1]

    monkeypatch.setattr(stream_scene, "converse", noted)
    for seed in range(streams):
        before = len(loops)
        rng = np.random.Generator(np.random.PCG64(seed))
        _, speech, pitches = stream_scene.render(rng, transcript, 20.0, {"a": "m"}, lambda *_: clip, [])
        assert speech == sorted(segment for loop in loops[before:] for segment in loop[1])
        assert len(pitches) == sum(len(loop[3]) for loop in loops[before:])
    assert streams < len(loops) < 1.5 * streams


def test_render_edges():
    """No transmissions fit: a stream of noise alone; a stream of silence as voice has no speech."""
    for window in ([fearless_mini.Transmission(50.0, "CC", 1.0)], [fearless_mini.Transmission(1.0, "CC", 1.0)]):
        rng = np.random.Generator(np.random.PCG64(1))
        samples, speech, _ = stream_scene.render(rng, window, 8.0, {"a": "m"}, lambda voice, seconds: np.zeros(4000), [])
        assert samples.shape == (64000,) and np.abs(samples).max() <= 1.0 and not speech


def test_plan_shares_the_minutes():
    assert [stream[:2] for stream in fearless_mini.plan((5, 2, 0))] == [("train", 0), ("train", 1), ("dev", 0)]
    assert fearless_mini.plan((6, 5, 2))[0][2] == 180.0 and fearless_mini.plan((6, 5, 2))[-1] == ("eval", 0, 120.0)


def test_splits_have_different_people():
    names = [voice for split in fearless_mini.VOICES.values() for voice in split]
    assert len(names) == len(set(names)) and set(names) <= set(voices.VOICES)
    same_person = {"asterisk-en", "asterisk-es"}  # one name in both packages
    assert sum(bool(same_person & set(split)) for split in fearless_mini.VOICES.values()) == 1
    assert {package for package, _, _ in voices.VOICES.values()} <= set(voices.PACKAGES)
    assert all(re.fullmatch(r"[0-9a-f]{64}", package.sha256) for package in voices.PACKAGES.values())


def test_find_clips(tmp_path):
    folder = tmp_path / "usr/share/asterisk/sounds/en_US_f"
    for name in ("hello.wav", "digits/1.wav", "silence/1.wav", "beep.wav", "hello.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = voices.find_clips(tmp_path, "asterisk-en")
    assert [str(path.relative_to(folder)) for path in found] == ["digits/1.wav", "hello.wav"]


def test_clips_are_mixed_and_resampled(tmp_path):
    time = np.arange(22050) / 22050
    stereo = np.stack([np.sin(2 * np.pi * 440 * time), np.zeros(22050)], axis=1)
    soundfile.write(str(tmp_path / "a.wav"), stereo * 0.5, 22050, subtype="PCM_24")
    clip = voices.load_clip(tmp_path / "a.wav")
    assert len(clip) == 8000 and clip.dtype == np.float64
    np.testing.assert_allclose(clip[500:-500], 0.25 * np.sin(2 * np.pi * 440 * np.arange(500, 7500) / 8000), atol=2e-3)


def test_without_debian_packages_the_ami_clips_speak(monkeypatch, sources, caplog):
    monkeypatch.setattr(voices, "packages_available", lambda: False)
    monkeypatch.setattr(voices, "single_talker_turns", lambda: sources.voices)
    monkeypatch.setattr(fearless_mini, "apollo_transcript", lambda: "unused")
    monkeypatch.setattr(fearless_mini, "read_transcript", lambda path: sources.transcript)
    found = fearless_mini.default_sources(log)
    assert found.voices is sources.voices and found.signals == {"train": [], "dev": [], "eval": []}
    assert "PYSPEECH_DEBIAN_MIRROR" in caplog.text
