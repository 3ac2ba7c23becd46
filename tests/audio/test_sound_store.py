"""Sounds written once and memory-mapped: what comes back, several files, a kill in between, loud and quiet ones."""

import numpy as np
import pytest

from pyspeech.audio.sound_store import SoundStore, write_sounds
from pyspeech.errors import UserError


def sounds_of(rng, names="abcdefg"):
    """{name: its sounds}: one each, but two of b and none of c but an empty one."""
    made = {name: [rng.uniform(-1, 1, rng.integers(1, 3000)).astype(np.float32)] for name in names}
    made["b"].append(np.full(7, 0.25, np.float32))
    made["c"] = [np.zeros(0, np.float32)]
    return made


@pytest.mark.parametrize("file_bytes", [1, 6000, 1 << 28])
def test_what_is_written_comes_back(tmp_path, rng, file_bytes):
    made = sounds_of(rng)
    write_sounds(tmp_path, list(made), made.__getitem__, file_bytes)
    expected = [sound for name in made for sound in made[name] if len(sound)]
    store = SoundStore(tmp_path)
    assert len(store) == len(expected) and store.samples() == sum(map(len, expected))
    for sound, wanted in zip(store, expected, strict=True):
        assert sound.dtype == np.float16 and np.array_equal(sound, wanted.astype(np.float16))
    assert len(list(tmp_path.glob("*.f16"))) == (6 if file_bytes == 1 else 1 if file_bytes > 1 << 20 else 3)


def test_goes_on_after_a_kill(tmp_path, rng):
    made = sounds_of(rng)
    write_sounds(tmp_path / "whole", list(made), made.__getitem__, 6000)
    read = []

    def killed(name):
        read.append(name)
        if name == "f":
            raise KeyboardInterrupt
        return made[name]

    with pytest.raises(KeyboardInterrupt):
        write_sounds(tmp_path / "killed", list(made), killed, 6000)
    before = len(read)
    write_sounds(tmp_path / "killed", list(made), lambda name: read.append(name) or made[name], 6000)
    assert read[before:] and "a" not in read[before:]  # its file was whole
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "killed" / path.name).read_bytes()


def test_other_names_write_all_that_differs(tmp_path, rng):
    made = sounds_of(rng)
    write_sounds(tmp_path, list(made), made.__getitem__, 1)
    write_sounds(tmp_path, ["a", "d"], made.__getitem__, 1)
    store = SoundStore(tmp_path)
    assert [len(sound) for sound in store] == [len(made["a"][0]), len(made["d"][0])]


def test_sounds_beyond_half_precision_are_scaled(tmp_path, rng):
    sound = rng.uniform(-1, 1, 1000)
    levels = {"loud": 1e6, "quiet": 1e-7, "usual": 0.5, "silent": 0.0}
    write_sounds(tmp_path, list(levels), lambda name: [levels[name] * sound])
    for made, level in zip(SoundStore(tmp_path), levels.values(), strict=True):
        found = made.astype(np.float64)
        assert np.isfinite(found).all()
        if level:
            factor = (found @ sound) / (sound @ sound)
            assert np.abs(found - factor * sound).max() < 1e-3 * factor and 0.4 < factor < 1.1
            assert np.log2(factor / level) == pytest.approx(round(np.log2(factor / level)), abs=1e-3)


def test_a_file_that_is_not_whole_is_named(tmp_path, rng):
    write_sounds(tmp_path, ["a"], sounds_of(rng).__getitem__)
    (tmp_path / "00000.f16").write_bytes(b"12345")
    with pytest.raises(UserError, match=r"00000\.f16: 5 bytes, expected"):
        SoundStore(tmp_path)


def test_nothing_is_no_sounds(tmp_path):
    assert len(SoundStore(tmp_path / "nowhere")) == 0
