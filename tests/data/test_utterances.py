"""Utterances as columns: the cuts that Lhotse would read, at every speed, and no more memory than their lines."""

import gzip
import json
import sys

import numpy as np
import pytest
import soundfile
from asr_corpora import make_cut, unequal_cuts

from pyspeech.data.cuts import read_samples, supervision_of
from pyspeech.data.utterances import Utterances
from pyspeech.errors import UserError


def write(path, cuts):
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(cut.to_dict(), ensure_ascii=False) + "\n" for cut in cuts)
    return path


def test_the_cuts_that_lhotse_reads(tmp_path):
    from lhotse import CutSet

    path = write(tmp_path / "train.jsonl.gz", unequal_cuts())
    utterances = Utterances.read(path, speeds=[0.9, 1.1])
    cuts = list(CutSet.from_file(path))
    expected = cuts + [cut.perturb_speed(0.9) for cut in cuts] + [cut.perturb_speed(1.1) for cut in cuts]
    assert [utterances[row] for row in range(len(utterances))] == expected
    assert utterances.originals == len(cuts) and utterances.names(range(len(expected))) == [cut.id for cut in expected]
    assert utterances.durations.tolist() == [cut.duration for cut in expected]
    assert [utterances.codes[index] for index in utterances.languages] == [supervision_of(cut).language for cut in expected]
    rows = utterances.rows_of("hi-IN")
    assert rows.tolist() == [row for row, cut in enumerate(expected) if supervision_of(cut).language == "hi-IN"]
    assert len(utterances.rows_of("xx")) == 0


@pytest.mark.parametrize("rate", [8000, 11025, 44100])
def test_durations_of_copies_are_those_of_lhotse(rate, rng):
    from lhotse import Recording

    recordings = [Recording(str(number), [], rate, number, number / rate) for number in rng.integers(1, 10**6, 200).tolist()]
    utterances = Utterances.of((make_cut(r.id, r, "en-IN", "a") for r in recordings), speeds=[0.9, 1.1, 2.0, 0.95])
    assert utterances.durations.tolist() == [utterances[row].duration for row in range(len(utterances))]


def test_none_where_there_is_no_manifest(tmp_path):
    utterances = Utterances.read(tmp_path / "dev.jsonl.gz", speeds=[0.9])
    assert len(utterances) == 0 and utterances.codes == [] and utterances.originals == 0


def test_copies_take_no_memory_of_their_own():
    cuts = unequal_cuts() * 20

    def size(utterances):
        columns = [value for value in vars(utterances).values() if isinstance(value, np.ndarray)]
        return len(utterances._blob) + sum(column.nbytes for column in columns)

    lines = sum(len(json.dumps(cut.to_dict()).encode()) for cut in cuts)
    assert size(Utterances.of(cuts)) < lines + 20 * len(cuts)
    assert size(Utterances.of(cuts, speeds=[0.9, 1.1])) < lines + 40 * len(cuts)
    assert sys.getsizeof(vars(Utterances.of(cuts))["_blob"]) < lines + 100  # bytes, not objects


def test_not_one_utterance():
    (cut, *_) = unequal_cuts()
    for broken in (cut.drop_supervisions(), cut.append(cut)):
        with pytest.raises(UserError, match="expected one utterance"):
            Utterances.of([broken])


def test_perturbed_speed(tmp_path):
    from lhotse import Recording

    rate = 8000
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(rate) / rate)
    soundfile.write(tmp_path / "tone.wav", tone, rate)
    cut = make_cut("tone", Recording.from_file(tmp_path / "tone.wav"), "en-IN", "one two")
    perturbed = list(map(Utterances.of([cut], speeds=[0.9, 1.1]).__getitem__, range(3)))
    assert [other.id for other in perturbed] == ["tone", "tone_sp0.9", "tone_sp1.1"]
    for other, factor in zip(perturbed, (1, 0.9, 1.1), strict=True):
        assert other.duration == pytest.approx(1 / factor, abs=2 / rate)
        assert supervision_of(other).text == "one two"
        samples = read_samples(other, 16000)
        assert samples.dtype == np.float32 and len(samples) == pytest.approx(16000 / factor, abs=4)
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
        assert spectrum.argmax() * 16000 / len(samples) == pytest.approx(1000 * factor, abs=2)
        assert np.abs(samples[2000:-2000]).max() == pytest.approx(0.5, abs=0.02)
