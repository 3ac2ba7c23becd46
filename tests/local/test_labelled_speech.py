"""Folders of recordings with labels: formats, copies, what is wrong with them, and what they are joined to."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts

from local import labelled_speech
from pyspeech.data.manifests import load_cuts
from pyspeech.errors import UserError
from pyspeech.sad.formats import read_reference
from steps.sad import bundled, corpus
from steps.sad.corpus import add_real, prepare_real
from steps.sad.options import check_real
from steps.sad.results import describe_corpus

log = logging.getLogger("test")
CALLS = {"one": [(1.0, 2.0), (2.25, 3.0)], "two": [(0.5, 4.0)]}


def write_audio(path, seconds=5.0, rate=8000, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = 0.1 * np.random.default_rng(0).standard_normal((int(seconds * rate), channels))
    soundfile.write(path, samples, rate, subtype="PCM_16")


@pytest.fixture
def folder(tmp_path):
    """Two calls, one of them stereo at 16 kHz, with Audacity labels."""
    for name, speech in CALLS.items():
        wide = name == "two"
        write_audio(tmp_path / "my calls/audio" / f"{name}.wav", rate=16000 if wide else 8000, channels=1 + wide)
        lines = "".join(f"{start}\t{end}\tspeech\n" for start, end in speech)
        (tmp_path / "my calls" / f"{name}.txt").write_text(lines)
    return tmp_path / "my calls"


def speech_of(out, labels, name, stem):
    return [(start, end) for start, end, label in read_reference(out / labels / name / f"{stem}.txt") if label == "S"]


def test_audacity_labels(folder, tmp_path):
    out = tmp_path / "out"
    assert labelled_speech.prepare([str(folder)], ["eval"], out, log) == ["eval_my_calls"]
    found = {cut.id: cut for cut in read_cuts(out, "eval_my_calls")}
    assert set(found) == {"real_my_calls_one", "real_my_calls_two"}
    for stem, speech in CALLS.items():
        cut = found[f"real_my_calls_{stem}"]
        assert (cut.duration, cut.sampling_rate, cut.num_channels) == (5.0, 8000, 1)
        assert [(part.start, part.end) for part in cut.supervisions] == speech
        assert speech_of(out, "reference", "eval_my_calls", cut.id) == speech
        rows = read_reference(out / "reference/eval_my_calls" / f"{cut.id}.txt")
        assert rows[0][0] == 0 and rows[-1][1] == 5.0
        assert np.abs(cut.load_audio()).max() > 0.01
    assert speech_of(out, "turns", "eval_my_calls", "real_my_calls_one") == [(1.0, 2.0), (2.0, 2.25), (2.25, 3.0)]


def test_rttm_of_several_recordings_for_training(tmp_path):
    write_audio(tmp_path / "radio/a.wav")
    write_audio(tmp_path / "radio/b.flac")
    (tmp_path / "radio/labels.rttm").write_text(
        "SPEAKER a 1 0.5 1.0 <NA> <NA> x <NA> <NA>\nSPEAKER a 1 1.2 1.0 <NA> <NA> y <NA> <NA>\n"
        "SPEAKER b 1 2.0 2.0 <NA> <NA> x <NA> <NA>\n"
    )
    assert labelled_speech.prepare([str(tmp_path / "radio")], ["train"], tmp_path / "out", log) == ["train"]
    found = {cut.id: [(part.start, part.end) for part in cut.supervisions] for cut in read_cuts(tmp_path / "out", "train")}
    assert found == {"real_radio_a": [(0.5, 2.2)], "real_radio_b": [(2.0, 4.0)]}


def test_what_is_wrong_is_named(folder, tmp_path):
    write_audio(folder / "audio/three.wav")
    (folder / "two.txt").write_text("0.5\t9.0\tspeech\n")
    with pytest.raises(UserError) as caught:
        labelled_speech.prepare([str(folder)], ["dev"], tmp_path / "out", log)
    told = str(caught.value)
    assert "2 of 3 recordings have problems" in told and "three.wav: no labels of that name" in told
    assert "run to 9.00 s, the audio ends at 5.00 s" in told and "skip_bad=true" in told
    labelled_speech.prepare([str(folder)], ["dev"], tmp_path / "out", log, skip_bad=True)
    assert [cut.id for cut in read_cuts(tmp_path / "out", "dev")] == ["real_my_calls_one"]


def test_a_recording_with_a_damaged_label_file_is_one_problem(folder, tmp_path, caplog):
    (folder / "two.txt").write_text("3.0\t1.0\tspeech\n")
    labelled_speech.prepare([str(folder)], ["dev"], tmp_path / "out", log)
    assert "left out 1 of 2 recordings" in caplog.text and "no labels of that name" not in caplog.text
    write_audio(folder / "more/two.wav")  # another one of that name, which has no labels
    with pytest.raises(UserError, match="2 of 3 recordings have problems(.|\n)*two.wav: no labels of that name"):
        labelled_speech.prepare([str(folder)], ["dev"], tmp_path / "out", log)


def test_nothing_there(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        labelled_speech.prepare([str(tmp_path / "x")], ["dev"], tmp_path / "out", log)
    write_audio(tmp_path / "y/a.wav")
    with pytest.raises(UserError, match="no label files"):
        labelled_speech.prepare([str(tmp_path / "y")], ["dev"], tmp_path / "out", log)


def test_joined_to_a_corpus_and_gone_again(folder, tmp_path):
    """dev and an eval set of its own grow by them; without the option an earlier set of its own is gone."""
    write_audio(tmp_path / "more/a.wav")
    (tmp_path / "more/a.txt").write_text("1.0\t2.0\tspeech\n")
    out = tmp_path / "corpus"
    (out / "turns").mkdir(parents=True)  # a corpus with labels of turns
    conf = SimpleNamespace(corpus="mini", real=[str(folder), str(tmp_path / "more")], real_as=["dev", "eval"])
    check_real(conf)
    add_real(out, prepare_real(conf, out, log))
    assert len(load_cuts(out, "dev")) == 2 and len(load_cuts(out, "eval_more")) == 1
    assert speech_of(out, "turns", "eval_more", "real_more_a") == speech_of(out, "reference", "eval_more", "real_more_a")
    described = describe_corpus(out, conf)
    assert described["dev"]["real"] == 2 and described["eval_more"] == {
        "streams": 1,
        "simulated": 0,
        "minutes": 0.08,
        "speech": 0.2,
        "real": 1,
    }
    add_real(out, prepare_real(SimpleNamespace(real=[], real_as=["eval"]), out, log))
    assert not load_cuts(out, "eval_more") and not list(out.glob("reference/eval_more/*"))


@pytest.mark.parametrize("prepare", [corpus.prepare, bundled.prepare])
def test_faults_of_the_folders_are_told_before_anything_is_simulated(prepare, tmp_path):
    write_audio(tmp_path / "own/a.wav")
    exp = SimpleNamespace(dir=tmp_path / "exp", log=log, parts=None)
    with pytest.raises(UserError, match="own: no label files"):
        prepare(exp, SimpleNamespace(corpus="mini", real=[str(tmp_path / "own")], real_as=["dev"]))  # no minutes: none are made


@pytest.mark.parametrize(
    "real, real_as, told",
    [
        (["a"], ["test"], "train, dev or eval each"),
        (["a", "b", "c"], ["dev", "eval"], "one for all folders"),
        (["x/a", "y/a"], ["dev"], "different names"),
    ],
)
def test_options(real, real_as, told):
    with pytest.raises(UserError, match=told):
        check_real(SimpleNamespace(real=real, real_as=real_as))
