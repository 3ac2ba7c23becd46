"""The reader of utterances, and what it keeps in memory."""

import numpy as np
import soundfile
from tiny_spoof import RATE, write_corpus

from pyspeech.data.cuts import read_samples
from pyspeech.data.reader import UtteranceReader


def test_the_cache_changes_nothing(tmp_path, rng, monkeypatch):
    cuts = write_corpus(tmp_path / "audio ñ", 18)
    soundfile.write(tmp_path / "loud.wav", rng.normal(0, 2, 5000), RATE, subtype="FLOAT")
    from lhotse import Recording

    loud = Recording.from_file(tmp_path / "loud.wav").to_cut()
    counted = []
    monkeypatch.setattr(
        "pyspeech.data.reader.read_samples", lambda *arguments: (counted.append(1), read_samples(*arguments))[1]
    )
    kept, read = UtteranceReader(RATE, 1.0), UtteranceReader(RATE, 0)
    for _ in range(2):
        for cut in [*cuts, loud]:
            assert np.array_equal(kept(cut), read(cut)) and kept(cut).dtype == np.float32
    assert len(counted) == 2 * 19 + 19  # all of the one that keeps nothing, each once of the other
    tight, sizes = UtteranceReader(RATE, 40000 / 2**30), np.cumsum([2 * len(kept(cut)) for cut in cuts])
    counted.clear()
    for cut in [*cuts, *cuts]:
        tight(cut)
    assert 0 < (sizes <= 40000).sum() == 2 * len(cuts) - len(counted)
    # A cut of another stretch of the same recording is another utterance.
    half = cuts["u0_2"].truncate(duration=0.1, preserve_id=True)
    assert len(kept(half)) == 1600
    # So is a recording of another folder with the same name, and one that is transformed.
    (tmp_path / "other").mkdir()
    soundfile.write(tmp_path / "other" / "loud.wav", rng.normal(0, 0.1, 5000), RATE)
    same_name = Recording.from_file(tmp_path / "other" / "loud.wav").to_cut()
    for cut in (same_name, loud.perturb_volume(0.5, affix_id=False)):
        assert cut.recording_id == loud.recording_id and cut.duration == loud.duration
        assert np.array_equal(kept(cut), read(cut)) and not np.array_equal(kept(cut), kept(loud))
    # Cuts that lhotse mixes are made anew each time.
    padded = [loud.pad(seconds, preserve_id=True) for seconds in (1.0, 1.5)]
    assert [len(kept(cut)) for cut in padded] == [16000, 24000]
