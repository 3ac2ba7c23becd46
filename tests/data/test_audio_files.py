"""pyspeech/data/audio_files.py: the digest of a corpus."""

import hashlib

import numpy as np

from pyspeech.data.audio_files import digest, write_audio

RATE = 8000


def test_digest_is_of_whole_files(tmp_path):
    samples = np.arange(-500, 500, dtype=np.int16)
    write_audio(tmp_path / "b.flac", samples, RATE)
    write_audio(tmp_path / "a.wav", samples[:9], RATE)
    wanted = hashlib.sha256(b"a.wav" + samples[:9].tobytes() + b"b.flac" + samples.tobytes()).hexdigest()
    assert digest(tmp_path.glob("*.*")) == wanted
    for name in (".1234.tmp.b.flac", ".1234567.tmp.c.flac"):  # as a process that was killed leaves them
        (tmp_path / name).write_bytes(b"fLaC")
    assert digest(tmp_path.glob("*.*")) == wanted
