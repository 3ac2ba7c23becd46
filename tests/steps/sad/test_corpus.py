"""What RESULTS.md of egs/fearless says about the corpus: simulated streams beside real ones, sets without labels."""

import logging
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from tiny_corpora import RATE, make_fearless

from local.fearless import mini as fearless_mini
from pyspeech.data.manifests import write_split
from pyspeech.errors import DownloadError, UserError
from pyspeech.sad.formats import write_reference
from steps.sad.corpus import prepare_fearless, scored_sets
from steps.sad.results import describe_corpus
from steps.sad.tables import report


def simulate(out, log, *, minutes, parts):
    """In place of local.fearless.mini.prepare: two streams of 6 s of each set, half of them speech."""
    from lhotse import Recording

    for split in ("train", "dev"):
        streams = []
        for name in (f"sim_{split}_001", f"sim_{split}_002"):
            path = out / "audio" / split / f"{name}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, np.zeros(6 * RATE), RATE)
            write_reference(out / "reference" / split / f"{name}.txt", name, [(0, 3)], 6.0)
            streams.append((Recording.from_file(path), [(0, 3)], None))
        write_split(out, split, streams)


@pytest.mark.parametrize(
    "simulated, added",
    [("never", None), ("auto", "2 of the 3 train streams"), ("no dev", "2 of the 3 train streams and 2 of the 2 dev streams")],
)
def test_simulated_streams_and_missing_labels_are_told(tmp_path, monkeypatch, simulated, added):
    monkeypatch.setattr(fearless_mini, "prepare", simulate)
    sizes = {"Train": 1, "Dev": 1, "Eval": 1}
    corpus = make_fearless(tmp_path / "FSC", sizes if simulated != "no dev" else {"Train": 1, "Eval": 1}, 12.0)
    shutil.rmtree(corpus / "Transcripts/SAD/Eval")
    conf = SimpleNamespace(
        corpus=str(corpus), skip_bad=False, minutes=[1, 1, 1], simulated="never" if simulated == "never" else "auto"
    )
    prepare_fearless(conf, tmp_path / "out", logging.getLogger(__name__))
    described = describe_corpus(tmp_path / "out", conf)
    assert described["eval"] == {"streams": 1, "simulated": 0, "minutes": 0.2, "speech": None}
    text = report({}, scored_sets(tmp_path / "out"), [0.0], {}, {}, 0.01, described, "run")
    assert "eval 0.2 min (no labels)." in text
    assert ("Simulated" in text) == (added is not None)
    assert (
        added is None or f"Simulated, not of the corpus (human recordings through a simulated radio channel): {added}." in text
    )


def test_without_a_network_the_corpus_is_all_there_is(tmp_path, monkeypatch, caplog):
    """A corpus that has train and dev goes on; one that lacks dev, or was to have simulated streams, cannot."""

    def offline(out, log, *, minutes, parts):
        raise DownloadError("cannot download voices.deb: no route to host")

    monkeypatch.setattr(fearless_mini, "prepare", offline)
    whole = make_fearless(tmp_path / "FSC", {"Train": 1, "Dev": 1, "Eval": 1}, 12.0)
    conf = SimpleNamespace(corpus=str(whole), skip_bad=False, minutes=[1, 1, 1], simulated="auto")
    prepare_fearless(conf, tmp_path / "out", logging.getLogger(__name__))
    assert "going on without simulated streams: cannot download voices.deb" in caplog.text
    assert describe_corpus(tmp_path / "out", conf)["train"]["simulated"] == 0
    conf.simulated = "always"
    with pytest.raises(DownloadError, match="no route to host"):
        prepare_fearless(conf, tmp_path / "out", logging.getLogger(__name__))
    conf.corpus = str(make_fearless(tmp_path / "short", {"Train": 1, "Eval": 1}, 12.0))
    conf.simulated = "auto"
    with pytest.raises(UserError, match="no labelled dev streams"):
        prepare_fearless(conf, tmp_path / "short out", logging.getLogger(__name__))


def test_the_mini_corpus_is_simulated_as_a_whole(tmp_path):
    simulate(tmp_path, None, minutes=None, parts=None)
    described = describe_corpus(tmp_path, SimpleNamespace(corpus="mini"))
    assert described["dev"] == {"streams": 2, "simulated": 2, "minutes": 0.2, "speech": 0.5}
    text = report({}, ["dev"], [0.0], {}, {}, 0.01, described, "run")
    assert "Simulated streams: human recordings" in text and "dev 0.2 min (50.0 % speech)." in text
