"""File signatures, by which a nameless stream of audio is recognised."""

HEAD = 12  # bytes that tell what a stream is
# (first bytes, where they stand)
FILES = (
    (b"RIFF", 0),  # WAV, AVI
    (b"RIFX", 0),
    (b"RF64", 0),
    (b"riff\x2e\x91\xcf\x11", 0),  # Wave64
    (b"fLaC", 0),
    (b"OggS", 0),
    (b"ID3", 0),
    (b"FORM", 0),  # AIFF
    (b".snd", 0),  # AU
    (b"caff", 0),
    (b"NIST_1A", 0),
    (b"Creative Voi", 0),
    (b"#!AMR", 0),
    (b"\x1a\x45\xdf\xa3", 0),  # Matroska, WebM
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", 0),  # WMA
    (b"\x0b\x77", 0),  # AC-3
    (b"\x00\x00\x01\xba", 0),  # MPEG program stream
    (b"FLV\x01", 0),
    (b"MAC ", 0),
    (b"wvpk", 0),
    (b"ftyp", 4),  # MP4, M4A, 3GP; QuickTime:
    (b"moov", 4),
    (b"mdat", 4),
    (b"wide", 4),
    (b"free", 4),
)
NO_FILE = "{}: does not start as an audio file of a known kind; raw samples need --raw (--encoding, --rate)"


def is_file(start: bytes) -> bool:
    """True if the first HEAD bytes of a stream are those of an audio file."""
    return any(start[place:].startswith(magic) for magic, place in FILES) or _is_mpeg(start)


def _is_mpeg(start):
    """Whether bytes begin with the header of a frame of MPEG audio (MP3, MP2) or of AAC (ADTS)."""
    if len(start) < 4 or start[0] != 0xFF or start[1] & 0xE0 != 0xE0:
        return False
    version, layer, bit_rate, rate = start[1] >> 3 & 3, start[1] >> 1 & 3, start[2] >> 4, start[2] >> 2 & 3
    if layer == 0:  # AAC
        return start[1] & 0xF0 == 0xF0 and start[2] >> 2 & 15 < 13
    return version != 1 and 0 < bit_rate < 15 and rate != 3
