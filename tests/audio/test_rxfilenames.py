"""Kinds of pipes and archives in wav.scp: what is read of them, as a file of the same bytes, and what is refused; the same for
tools, which read any name, and for data directories, whose audio is kept."""

import io
import struct

import kaldiio
import numpy as np
import pytest
import soundfile

from pyspeech.audio.io import read_audio
from pyspeech.audio.recordings import find_recordings
from pyspeech.errors import UserError
from pyspeech.kaldi import utterances
from pyspeech.kaldi.reading import KaldiUtterance

RATE = 16000
SAMPLES = (0.4 * np.sin(2 * np.pi * 220 * np.arange(RATE // 2) / RATE)).astype(np.float32)


def encoded(format="WAV", subtype="PCM_16", channels=1, rate=RATE):
    stream = io.BytesIO()
    soundfile.write(stream, np.stack([SAMPLES] * channels, axis=1), rate, format=format, subtype=subtype)
    return stream.getvalue()


def with_sizes(riff, data):
    """A WAV whose header has these sizes, as programs write it that do not know how long it will be."""
    whole = encoded()
    assert whole[36:40] == b"data"
    return whole[:4] + struct.pack("<I", riff) + whole[8:40] + struct.pack("<I", data) + whole[44:]


def with_chunks(before=b"", behind=b""):
    whole = encoded()
    return whole[:36] + before + whole[36:] + behind


LIST = b"LIST" + struct.pack("<I", 26) + b"INFOISFT\x0e\x00\x00\x00Lavf58.29.100\x00"
CAT = "cat {} |"
# kind: (bytes of the file, command); within what of the samples
GOOD = {
    "16 bits": (encoded(), CAT, 1e-4),
    "8 bits": (encoded(subtype="PCM_U8"), CAT, 1e-2),
    "24 bits": (encoded(subtype="PCM_24"), CAT, 1e-4),
    "32 bits": (encoded(subtype="PCM_32"), CAT, 1e-4),
    "float": (encoded(subtype="FLOAT"), CAT, 1e-4),
    "double": (encoded(subtype="DOUBLE"), CAT, 1e-4),
    "mu-law": (encoded(subtype="ULAW"), CAT, 2e-2),
    "A-law": (encoded(subtype="ALAW"), CAT, 2e-2),
    "stereo": (encoded(channels=2), CAT, 1e-4),
    "extensible": (encoded("WAVEX"), CAT, 1e-4),
    "RF64": (encoded("RF64"), CAT, 1e-4),
    "FLAC": (encoded("FLAC"), CAT, 1e-4),
    "Ogg": (encoded("OGG", "VORBIS"), CAT, 5e-2),
    "SPHERE": (encoded("NIST"), CAT, 1e-4),
    "AIFF": (encoded("AIFF"), CAT, 1e-4),
    "AU": (encoded("AU", "ULAW"), CAT, 2e-2),
    "lengths of sox": (with_sizes(0x7FFFF024, 0x7FFFF000), CAT, 1e-4),
    "lengths of ffmpeg": (with_sizes(0xFFFFFFFF, 0xFFFFFFFF), CAT, 1e-4),
    "lengths of arecord": (with_sizes(0x80000024, 0x80000000), CAT, 1e-4),
    "no length": (with_sizes(0, 0), CAT, 1e-4),
    "a chunk before": (with_chunks(before=LIST), CAT, 1e-4),
    "a chunk behind": (with_chunks(behind=LIST), CAT, 1e-4),
    "pipeline": (encoded(), "cat {0} | cat|", 1e-4),
    "one that has enough": (encoded() * 50, f"cat {{0}} {{0}} | head -c {len(encoded())} |", 1e-4),
}
BAD = {
    "fails": (encoded(), "exit 3 |", "failed with exit status 3 \\(no message\\)"),
    "fails in the end": (encoded(), "cat {}; echo half a file >&2; exit 1 |", "failed with exit status 1 \\(half a file\\)"),
    "fails within a pipeline": (encoded(), "(cat {}; exit 4) | cat |", "failed with exit status 4"),
    "no such file": (encoded(), "cat {}.none | cat |", "failed with exit status 1 .*No such file"),
    "no such program": (encoded(), "sph2pype {} |", "failed with exit status 127 .*not found"),
    "is killed": (encoded(), "cat {}; kill -9 $$ |", "was ended by signal 9"),
    "says nothing": (encoded(), "true |", "empty \\(0 bytes\\)"),
    "text": (b"This is a letter.\n" * 20, CAT, "cannot be read as audio|no audio"),
    "no header": (encoded()[44:], CAT, "does not start as an audio file|cannot be read as audio"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_the_output_of_a_command_is_read_as_a_file(tmp_path, kind):
    content, command, tolerance = GOOD[kind]
    (tmp_path / "x").write_bytes(content)
    place = command.format(tmp_path / "x")
    for read in (read_audio(place), kept(place, tmp_path)):
        assert read[1] == RATE
        np.testing.assert_allclose(read[0], SAMPLES, atol=tolerance)


@pytest.mark.parametrize("form, subtype", [("WAV", "GSM610"), ("AU", "G721_32"), ("WAV", "NMS_ADPCM_32"), ("WAV", "IMA_ADPCM")])
def test_codecs_of_blocks_are_kept_whole(tmp_path, form, subtype):
    """libsndfile cannot seek in the first three; the last block is filled up."""
    (tmp_path / "x").write_bytes(encoded(form, subtype))
    samples, _ = kept(f"cat {tmp_path / 'x'} |", tmp_path)
    assert 0 <= len(samples) - len(SAMPLES) < 512
    assert np.corrcoef(samples[: len(SAMPLES)], SAMPLES)[0, 1] > 0.97


@pytest.mark.parametrize("kind", BAD)
def test_a_command_that_gives_no_audio_is_refused(tmp_path, kind):
    content, command, message = BAD[kind]
    (tmp_path / "x").write_bytes(content)
    place = command.format(tmp_path / "x")
    with pytest.raises(UserError, match=message) as error:
        read_audio(place)
    assert str(error.value).startswith(place) and "\n" not in str(error.value)
    with pytest.raises(Refused, match=message):
        kept(place, tmp_path)


CUT_OFF = [encoded(), encoded(subtype="ULAW"), encoded("AU"), encoded("W64"), encoded("RF64")]
CUT_OFF += [encoded(subtype="IMA_ADPCM"), encoded(subtype="MS_ADPCM"), encoded("AIFF", "IMA_ADPCM")]


@pytest.mark.parametrize("content", CUT_OFF)
def test_a_cut_off_file_is_one_in_a_pipe_too(tmp_path, caplog, content):
    """Its own header says so: a tool warns and takes what there is, a corpus leaves it out."""
    (tmp_path / "x").write_bytes(content)
    place = f"head -c {len(content) // 2} {tmp_path / 'x'} |"
    assert 0 < len(read_audio(place)[0]) < 4100 and f"{place}: truncated or damaged" in caplog.text
    with pytest.raises(Refused, match=r"truncated: its header says 0.5\d s"):
        kept(place, tmp_path)


class Refused(Exception):
    pass


def kept(place, folder):
    """(samples, rate) of what a data directory keeps of a place in wav.scp; Refused where it is a problem."""
    found = {"name": utterances._usable(KaldiUtterance("name", "name", place), folder, folder / "audio", False)}
    path, problem = utterances._copied(found, None, None)["name"]
    if problem:
        raise Refused(problem)
    samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate


def as_soundfile(path, *audio):
    kaldiio.save_ark(str(path), dict(audio), write_function="soundfile", write_kwargs={"subtype": "PCM_24"})


def as_wav(path, *audio):
    kaldiio.save_ark(str(path), dict(audio))


def as_files(path, *audio):
    """What Kaldi's wav-copy leaves: one file after the other, of other codecs too."""
    with open(path, "wb") as stream:
        for name, _ in audio:
            stream.write(f"{name} ".encode() + encoded(subtype="ULAW" if name == "b" else "PCM_U8"))


@pytest.mark.parametrize("write, tolerance", [(as_soundfile, 1e-4), (as_wav, 1e-4), (as_files, 2e-2)])
def test_archives(tmp_path, monkeypatch, write, tolerance):
    integers = np.rint(SAMPLES * 32767).astype(np.int16)
    write(tmp_path / "audio.data", ("a", (RATE, integers)), ("b", (RATE, integers)))
    where = (tmp_path / "audio.data").read_bytes().rindex(b"b " + (b"AUDIO" if write is as_soundfile else b"RIFF")) + 2
    (tmp_path / "wav.scp").write_text(f"a audio.data:2\nb audio.data:{where}\n")
    for recording in find_recordings([tmp_path / "wav.scp"]):
        for samples, rate in (read_audio(recording.path), kept(recording.path, tmp_path)):
            assert rate == RATE
            np.testing.assert_allclose(samples, SAMPLES, atol=tolerance)
    monkeypatch.chdir(tmp_path)
    assert len(read_audio("audio.data:2")[0]) == len(SAMPLES)


@pytest.mark.parametrize(
    "content, message",
    [
        (with_sizes(0x7FFFF024, 0x7FFFF000), "does not say its length"),
        (b"\0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0\0", "holds a matrix, not audio"),
        (b"PKL\x80\x04K\x01.", "no audio file at byte 2"),
        (b"", "no audio file at byte 2"),
    ],
)
def test_other_archives(tmp_path, content, message):
    (tmp_path / "x.ark").write_bytes(b"x " + content)
    with pytest.raises(UserError, match=message):
        read_audio(f"{tmp_path}/x.ark:2")
    with pytest.raises(UserError, match="none.ark:2: cannot be read: No such file"):
        read_audio(f"{tmp_path}/none.ark:2")


def test_a_file_whose_name_ends_like_an_offset(tmp_path):
    (tmp_path / "call").write_bytes(b"")
    (tmp_path / "call:12").write_bytes(encoded())
    assert len(read_audio(tmp_path / "call:12")[0]) == len(SAMPLES)
