"""People who speak in games: the files of these, and the compression of one of them."""

import numpy as np
import pytest
import soundfile

from local import voices
from local.add2022 import games
from local.add2022.rnc import crc16, is_packed, unpack_rnc
from local.synthesis.recording_chain import speech_bounds


class Writer:
    """Words of 16 bits and the bytes between them, as a reader that is always a word ahead wants them."""

    def __init__(self):
        self.out, self.bits, self.word = bytearray(2), 0, 0  # where the word that is being filled stands

    def put(self, value, count):
        for place in range(count):
            self.out[self.word + self.bits // 8] |= (value >> place & 1) << self.bits % 8
            self.bits += 1
            if self.bits == 16:
                self.bits, self.word = 0, len(self.out)
                self.out += bytes(2)

    def put_bytes(self, plain):
        """A reader that has k bits of a word left has also read the next word, unless k is 16; it is put back."""
        if self.bits == 0:  # the word begun is the one that is read again
            self.out[self.word :] = plain + bytes(2)
            self.word += len(plain)
        else:
            self.out += plain


def pack(data, rounds):
    """RNC of data: rounds of (how many plain bytes, distance, length), the last without a copy; codes of 4 bits."""
    writer, place = Writer(), 0
    writer.put(0, 2)
    for _ in range(3):
        writer.put(16, 5)
        for _ in range(16):
            writer.put(4, 4)

    def put(value):
        symbol = value.bit_length() if value > 1 else value
        writer.put(int(f"{symbol:04b}"[::-1], 2), 4)
        if symbol > 1:
            writer.put(value - (1 << (symbol - 1)), symbol - 1)

    writer.put(len(rounds), 16)
    for index, (count, distance, length) in enumerate(rounds):
        put(count)
        writer.put_bytes(data[place : place + count])
        place += count
        if index < len(rounds) - 1:
            put(distance - 1)
            put(length - 2)
            place += length
    packed = bytes(writer.out)
    crcs = crc16(data).to_bytes(2, "big") + crc16(packed).to_bytes(2, "big")
    return b"RNC\1" + len(data).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + crcs + bytes([0, 1]) + packed


SAID = b"abcabcabcabc, said the fox. abcabc!"
ROUNDS = [(3, 3, 9), (16, 28, 6), (1, 0, 0)]


def test_crc():
    assert crc16(b"123456789") == 0xBB3D  # the check value of CRC-16/ARC
    assert crc16(b"") == 0


def test_what_was_packed_is_unpacked():
    assert unpack_rnc(pack(SAID, ROUNDS)) == SAID
    noise = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    assert unpack_rnc(pack(noise, [(5000, 0, 0)])) == noise
    silence = bytes(1000)
    assert unpack_rnc(pack(silence, [(1, 1, 999), (0, 0, 0)]) + b"more") == silence


@pytest.mark.parametrize("length", [0, 3, 10, 17, 18, 40, 60, 70])
def test_damaged_ones_are_refused(length):
    packed = pack(SAID, ROUNDS)
    with pytest.raises(ValueError):
        unpack_rnc(packed[:length])


def test_a_byte_that_is_another_is_noticed():
    packed = bytearray(pack(SAID, ROUNDS))
    packed[packed.index(b"fox")] ^= 1
    with pytest.raises(ValueError, match="CRC"):
        unpack_rnc(bytes(packed))
    assert not is_packed(b"RNC\2") and is_packed(bytes(packed))


def test_lines_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(games, "LINES", 2)
    for name, value in (("1", 128), ("2", 0), ("3", 255), ("4", 64)):
        (tmp_path / f"{name}.ALS").write_bytes(bytes([value]) * 5)
    found = games.read_files(sorted(tmp_path.iterdir()))
    assert [name for name, _ in found] == ["1", "3"]
    np.testing.assert_allclose([samples[0] for _, samples in found], [0.0, 127 / 128])


def test_lines_of_the_sky(tmp_path):
    packed = pack(SAID, ROUNDS)
    files = [(50001, bytes(22) + packed), (60001, bytes(22) + packed), (50002, b"not packed" * 9)]
    index, data = len(files).to_bytes(4, "little"), b""
    for number, content in files:
        data += bytes(-len(data) % 16)
        index += number.to_bytes(2, "little") + (len(data) >> 4 | 0x800000).to_bytes(3, "little")
        index += len(content).to_bytes(3, "little")
        data += content
    (tmp_path / "sky.dnr").write_bytes(index)
    (tmp_path / "sky.dsk").write_bytes(data)
    ((name, samples),) = games.read_sky([tmp_path / "sky.dnr", tmp_path / "sky.dsk"])
    assert name == "50001"
    np.testing.assert_allclose(samples, (np.array(list(SAID)) - 128) / 128)


@pytest.mark.network
@pytest.mark.parametrize("voice", games.LINES_OF)
def test_people_say_lines(voice):
    (clips,) = games.fetch_lines([voice])[voice].values()
    assert len(clips) > 200
    for path in clips[::40]:
        info = soundfile.info(str(path))
        assert info.samplerate == games.RATE and info.duration >= games.SHORTEST
        samples = voices.load_clip(path, games.RATE)
        first, last = speech_bounds(samples)
        assert last - first > 0.5 * games.RATE and abs(samples.mean()) < 0.05
    before = clips[0].stat().st_mtime_ns
    assert games.fetch_lines([voice])[voice][voice][0].stat().st_mtime_ns == before


@pytest.mark.network
def test_hedgehogs_shout():
    for voice, (_, clips) in games.fetch_shouts(list(games.HEDGEWARS)).items():
        assert len(clips) > 30 and soundfile.info(str(clips[0])).samplerate >= 44100, voice
