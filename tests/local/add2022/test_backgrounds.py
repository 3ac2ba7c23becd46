"""Noise, music and rooms from folders laid out as MUSAN and RIRS_NOISES: what is taken, what is left out and named."""

import json
import logging
import types

import numpy as np
import pytest
import soundfile

from local.add2022 import backgrounds
from pyspeech.audio.io import read_audio
from pyspeech.errors import DownloadError, UserError
from pyspeech.spoof.augmentation import augment
from pyspeech.spoof.config import AugmentConfig, LogMelConfig
from steps.spoof import augment as augment_stage
from steps.spoof.augment import collect_backgrounds, load_backgrounds
from steps.spoof.tables import sources_note

LOG = logging.getLogger("test")


def write(path, samples, rate=16000):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)
    return path


@pytest.fixture
def musan(tmp_path, rng):
    """Of each kind two files: one at 44.1 kHz and stereo, with a space and an umlaut in its name."""
    folder = tmp_path / "müsan corpus" / "musan"
    for kind, part in (("noise", "free-sound"), ("music", "jamendo"), ("speech", "librivox")):
        write(folder / kind / part / f"{kind}-{part}-0000.wav", 0.1 * rng.standard_normal(8000))
        write(folder / kind / part / f"{kind} ü.flac", 0.1 * rng.standard_normal((4410, 2)), 44100)
        (folder / kind / part / "LICENSE").write_text("free")
    return folder


@pytest.fixture
def rooms(tmp_path):
    folder = tmp_path / "RIRS_NOISES"
    left, right = np.zeros(2000), np.zeros(2000)
    left[[30, 90]], right[[50, 95]] = (0.9, 0.3), (0.7, 0.2)
    write(folder / "simulated_rirs/smallroom/Room001/Room001-00001.wav", left)
    write(folder / "real_rirs_isotropic_noises/air_type1_air_binaural_aula_1.wav", np.stack([left, right], 1))
    write(folder / "real_rirs_isotropic_noises/RVB2014_type1_noise_largeroom1_1.wav", left)
    write(folder / "pointsource_noises/noise-free-sound-0000.wav", left)
    return folder


def settings(skip_bad=False, rate=16000, corpus="/data/ADD2022", **options):
    return types.SimpleNamespace(
        augment=AugmentConfig(**{"noise": 0.0, "music": 0.0, "reverberation": 0.0, **options}),
        features=LogMelConfig(sampling_rate=rate),
        skip_bad=skip_bad,
        corpus=corpus,
    )


def collected(tmp_path, **options):
    tmp_path.mkdir(exist_ok=True)
    collect_backgrounds(types.SimpleNamespace(dir=tmp_path, log=LOG, parts=None), settings(**options))
    return load_backgrounds(tmp_path / "backgrounds")


def test_the_part_that_is_asked_for(musan, rooms):
    for kind in ("noise", "music"):
        whole, part = (backgrounds.find_sounds(folder, kind) for folder in (musan, musan / kind))
        assert whole == part and part[0] == musan / kind and len(part[1]) == 2
    assert [path.name for path in backgrounds.find_sounds(rooms, "noise")[1]] == ["noise-free-sound-0000.wav"]
    assert {path.stem for path in backgrounds.find_sounds(rooms, "rooms")[1]} == {
        "Room001-00001",
        "air_type1_air_binaural_aula_1",
    }


def test_sounds_at_the_working_rate(musan, rooms, tmp_path):
    found = collected(tmp_path, noise=0.5, reverberation=0.5, noise_dir=str(musan), room_dir=str(rooms), rate=8000)
    paths = sorted((musan / "noise").rglob("*.*"))
    for sound, path in zip(found["noises"], paths, strict=True):
        np.testing.assert_allclose(sound, read_audio(path, 8000)[0], rtol=1e-3, atol=1e-6)
    assert len(found["noises"]) == 2 and len(found["musics"]) == 0 and len(found["rirs"]) == 2
    first = read_audio(rooms / "real_rirs_isotropic_noises/air_type1_air_binaural_aula_1.wav", 8000, channel=0)[0]
    np.testing.assert_allclose(found["rirs"][0], first, rtol=1e-3, atol=1e-6)


def test_they_are_heard_in_training(musan, rooms, tmp_path, rng):
    """As if they were arrays in memory."""
    every = dict(noise=1.0, music=1.0, reverberation=1.0, mcadams=0.0)
    found = collected(tmp_path, noise_dir=str(musan), music_dir=str(musan), room_dir=str(rooms), **every)
    speech = rng.standard_normal(4000).astype(np.float32)
    config = AugmentConfig(**every)
    heard = augment(speech, 16000, config, np.random.default_rng(3), **found)
    loaded = {name: [np.array(sound, np.float32) for sound in sounds] for name, sounds in found.items()}
    assert np.array_equal(heard, augment(speech, 16000, config, np.random.default_rng(3), **loaded))
    assert len(heard) == 4000 and np.abs(heard - speech).max() > 0.1


def test_long_recordings_are_several_sounds(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(backgrounds, "LONGEST_SOUND", 100.0)
    path = write(tmp_path / "long.wav", 0.1 * rng.standard_normal(16000 * 250))
    sounds = list(backgrounds.read_sounds(path, "noise", 8000))
    assert min(map(len, sounds[:-1])) >= 100 * 8000 > len(sounds[-1])
    assert np.array_equal(np.concatenate(sounds), read_audio(path, 8000)[0])


def test_what_cannot_be_used_is_named(musan, tmp_path, caplog):
    (musan / "noise" / "empty.wav").touch()
    found = collected(tmp_path, noise=0.5, noise_dir=str(musan), skip_bad=True)
    assert len(found["noises"]) == 2 and "left out 1 of 3 files" in caplog.text and "empty.wav" in caplog.text
    for number in range(20):
        (musan / "noise" / f"empty{number}.wav").touch()
    with pytest.raises(UserError, match=r"augment.noise_dir=.*: 21 of 23 files have problems"):
        collected(tmp_path / "again", noise=0.5, noise_dir=str(musan))


def test_folders_of_something_else(musan, tmp_path):
    with pytest.raises(UserError, match=r"augment.music_dir=.*LICENSES: no audio files of music in"):
        (tmp_path / "LICENSES").mkdir()
        collected(tmp_path, music=0.5, music_dir=str(tmp_path / "LICENSES"))
    long = write(tmp_path / "speech" / "talk.wav", 0.1 * np.sin(np.arange(16000 * 11)))
    with pytest.raises(
        UserError, match=r"augment.room_dir=.*1 of 1 files have problems(.|\n)*11.0 s long; expected an impulse"
    ):
        collected(tmp_path, reverberation=0.5, room_dir=str(long.parent))


def test_without_a_network(tmp_path, monkeypatch, caplog):
    """The mini corpus cannot be made without packages; with a corpus that is there, sounds are made up, and that is said."""

    def offline(part):
        raise DownloadError("cannot download music.deb: no route to host")

    monkeypatch.setattr(backgrounds, "backgrounds", offline)
    monkeypatch.setattr(augment_stage, "SIMULATED", 12)
    with pytest.raises(DownloadError, match="no route to host"):
        collected(tmp_path, noise=0.5, corpus="mini")
    found = collected(tmp_path, noise=0.5, music=0.5, reverberation=0.5, rate=8000)
    assert "noise: simulated, because packages cannot be had; better name a folder, augment.noise_dir=DIR" in caplog.text
    described = json.loads((tmp_path / "backgrounds/sources.json").read_text())
    assert described == {"noise": "12 made up, 2.0 min", "music": "12 made up, 2.0 min", "rooms": described["rooms"]}
    assert "noise, 12 made up, 2.0 min; rooms" in sources_note(described)
    for sounds in found.values():
        assert len(sounds) == 12 and len({sound.tobytes() for sound in sounds}) == 12
    for kind in ("noises", "musics"):
        for sound in found[kind]:
            assert len(sound) == 80000 and np.abs(sound).max() == pytest.approx(1, abs=1e-3) and np.std(sound[-8000:]) > 1e-3
