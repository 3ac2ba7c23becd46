"""RNC, method 1: the compression of game data of the 1990s (Rob Northen Computing's Pro-Pack), as of Beneath a Steel Sky.

A file is "RNC", 1, the sizes unpacked and packed (4 bytes each, high byte first), the CRCs of both (2 bytes each), a byte that
does not matter here and the number of blocks; behind these 18 bytes come words of 16 bits, low byte first, read from the lowest
bit on. The first two bits are flags. A block has three Huffman tables (numbers of plain bytes, distances, lengths), how many
rounds it has (16 bits), and these: plain bytes, which stand between the words, and a copy of earlier ones, at least two; the
last round has no copy. A symbol s of a table stands for s itself below 2, else for 2^(s - 1) and s - 1 further bits.
"""

from __future__ import annotations

import functools

MAGIC = b"RNC\1"
HEADER = 18
LONGEST = 16  # bits of a symbol


def is_packed(data: bytes) -> bool:
    """Whether data begins as a packed file does."""
    return data[: len(MAGIC)] == MAGIC


def unpack_rnc(data: bytes) -> bytes:
    """What was packed; what stands behind it in data does not matter. ValueError where the data are damaged."""
    if not is_packed(data) or len(data) < HEADER:
        raise ValueError(f"begins with {data[:4]!r}, expected {MAGIC!r} and the rest of a header")
    size, expected = int.from_bytes(data[4:8], "big"), int.from_bytes(data[12:14], "big")
    bits, out = _Bits(data, HEADER), bytearray()
    bits.take(2)
    try:
        for _ in range(data[17]):
            _unpack_block(bits, out, size)
    except IndexError:
        raise ValueError("a copy begins before the first byte") from None
    if len(out) != size or crc16(out) != expected:
        raise ValueError(f"{len(out)} bytes with CRC {crc16(out):04x}, expected {size} with {expected:04x}")
    return bytes(out)


def _unpack_block(bits, out, size):
    plain, distance, length = (_Table(bits) for _ in range(3))
    for left in range(bits.take(16) - 1, -1, -1):
        if count := plain.read(bits):
            out += bits.take_bytes(count)
        if left:
            back = distance.read(bits) + 1
            for _ in range(length.read(bits) + 2):  # a copy may go on into itself
                out.append(out[-back])
        if len(out) > size:
            raise ValueError(f"more than the {size} bytes that were packed")


class _Bits:
    """The bits of the words, and the bytes between them. A word is read as soon as fewer than 16 bits are left: plain bytes
    stand where that word, which is not yet used, was read from, and it is read again behind them."""

    def __init__(self, data, place):
        self.data, self.place = data, place
        self.kept, self.count = self._word(), 16

    def _word(self):
        return int.from_bytes(self.data[self.place : self.place + 2], "little")

    def take(self, count):
        """The number that the next bits (at most 16) are, the first the lowest."""
        value = self.kept & ((1 << count) - 1)
        self.kept, self.count = self.kept >> count, self.count - count
        if self.count < 16:
            self.place += 2
            self.kept, self.count = self.kept | self._word() << self.count, self.count + 16
        return value

    def take_bytes(self, count):
        plain = self.data[self.place : self.place + count]
        if len(plain) < count:
            raise ValueError(f"ends after {len(self.data)} bytes, in the middle")
        self.place += count
        self.count -= 16
        self.kept = self.kept & ((1 << self.count) - 1) | self._word() << self.count
        self.count += 16
        return plain


class _Table:
    """Canonical Huffman codes: of the lengths (4 bits each) of up to 31 symbols' codes, 0 for none."""

    def __init__(self, bits):
        lengths = [bits.take(4) for _ in range(bits.take(5))]
        self.symbols, code = {}, 0
        for length in range(1, LONGEST):
            for symbol in [symbol for symbol, own in enumerate(lengths) if own == length]:
                # codes count up from the highest bit, and are read from the lowest on
                self.symbols[length, int(f"{code:0{length}b}"[::-1], 2)] = symbol
                code += 1
            code <<= 1
        self.lengths = sorted({length for length, _ in self.symbols})

    def read(self, bits):
        for length in self.lengths:
            symbol = self.symbols.get((length, bits.kept & ((1 << length) - 1)))
            if symbol is not None:
                bits.take(length)
                return symbol if symbol < 2 else 1 << (symbol - 1) | bits.take(symbol - 1)
        raise ValueError("bits that are no code")


def crc16(data: bytes | bytearray) -> int:
    """CRC-16/ARC of data: polynomial 0xA001 from the lowest bit on, begun with 0."""
    table, crc = _crc_table(), 0
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc


@functools.cache
def _crc_table():
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ 0xA001 if value & 1 else value >> 1 for value in table]
    return table
