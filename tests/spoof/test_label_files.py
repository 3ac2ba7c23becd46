"""Keys and label files of all kinds: their columns, their words for genuine and fake, and the line that is wrong."""

import json

import pytest

from pyspeech.errors import UserError
from pyspeech.spoof.formats import Label
from pyspeech.spoof.label_files import read_labels

GENUINE, FAKE = Label("genuine"), Label("fake")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_keys_of_2021_pa_and_of_asvspoof_5(tmp_path):
    text = (
        "PA_0010 PA_E_1000001 R3 M3 d4 r1 m1 s4 c4 spoof notrim eval\n"
        "PA_0010 PA_E_1000002 R4 M3 d4 - - - - bonafide notrim hidden\n"
        "PA_0010 PA_E_1000003 R4 M3 d4 r1 m1 s2 c4 spoof trim hidden\n"
    )
    assert read_labels(write(tmp_path / "pa", text)) == {
        "PA_E_1000001": Label("fake", "PA_0010", "s4", "R3", subset="eval"),
        "PA_E_1000002": Label("genuine", "PA_0010", "-", "R4", subset="hidden1_PA"),
        "PA_E_1000003": Label("fake", "PA_0010", "s2", "R4", subset="hidden2_PA"),
    }
    text = "T_4850 T_0000000000 F - - - AC3 A05 spoof -\nE_1 E_0000000001 M C06 3 E_7 - bonafide bonafide -\n"
    assert read_labels(write(tmp_path / "5", text)) == {
        "T_0000000000": Label("fake", "T_4850", "A05"),
        "E_0000000001": Label("genuine", "E_1", "-", "C06"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "real/x.wav genuine\nvits/x.wav fake\n",
        "real/x.wav\tREAL\nvits/x.wav\tSpoof\n",
        "real/x.wav,bona-fide\nvits/x.wav,FAKE\n",
        "file,label\nreal/x.wav,Bonafide\nvits/x.wav,spoof\n",
        "genuine real/x\nfake vits/x\n",
        "# filename cm-label\nreal/x human\nvits/x spoof\n",
        '[{"path": "real/x.wav", "label": "real"}, {"path": "vits/x.wav", "label": "fake"}]',
        '{"path": "real/x.wav", "label": 1}\n{"path": "vits/x.wav", "label": 0}\n',
        "real/x.wav 1\nvits/x.wav 0\n",
        "path,is_fake\nreal/x.wav,0\nvits/x.wav,1\n",
    ],
)
def test_words_and_columns(tmp_path, text):
    assert read_labels(write(tmp_path / "labels", text)) == {"real/x": GENUINE, "vits/x": FAKE}


def test_what_0_and_1_are_taken_for_is_said(tmp_path, caplog):
    path = write(tmp_path / "labels", "a 1\nb 0\n")
    assert read_labels(path) == {"a": GENUINE, "b": FAKE}
    assert "1 is taken for genuine; --genuine 0 or 1 says which is genuine" in caplog.text
    caplog.clear()
    assert read_labels(path, genuine="0") == {"a": FAKE, "b": GENUINE} and not caplog.text
    assert read_labels(write(path, "a authentic\nb tts\n"), genuine="Authentic") == {"a": GENUINE, "b": FAKE}


def test_names_of_scores_tell_the_column_of_names(tmp_path):
    """Keys of three, four, six and seven columns, of which none is known."""
    for text, expected in (
        ("u1 A01 spoof\nu2 - bonafide\n", {"u1": Label("fake", attack="A01"), "u2": GENUINE}),
        ("D1 u1 S1 spoof\nD1 u2 human human\n", {"u1": Label("fake", "D1", "S1"), "u2": Label("genuine", "D1")}),
        ("D1 u1 F - AC1 spoof\nD2 u2 M - - bonafide\n", {"u1": Label("fake", "D1", "AC1"), "u2": Label("genuine", "D2")}),
        ("u1.wav spoof M0001 S05 E1 P1 R1\nu2.wav genuine M2 S5 - - -\n", {"u1": FAKE, "u2": GENUINE}),
    ):
        assert read_labels(write(tmp_path / "key", text), ["u1.wav", "u2", "u3"]) == expected
    spaced = write(tmp_path / "key", "my 1.wav fake\nmy 2.wav genuine\n")
    assert read_labels(spaced) == read_labels(spaced, ["my 2"]) == {"my 1": FAKE, "my 2": GENUINE}


def test_a_table_with_all_columns(tmp_path):
    text = 'file,speaker,System,family,codec,split,label\n"a, b.wav",Ada,vits-1,vits,mp3,test,fake\nc.wav,Bo,,,,dev,real\n'
    assert read_labels(write(tmp_path / "meta.csv", text)) == {
        "a, b": Label("fake", "Ada", "vits-1", "mp3", "vits", "test"),
        "c": Label("genuine", "Bo", subset="dev"),
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("file,label\na,real\nb,maybe\n", ":3: label 'maybe'; expected genuine or fake"),
        ("file,label\na,real\nb\n", ":3: 1 columns; expected 2, as the header has"),
        ("file,label\na,real\na.wav,fake\n", ":3: utterance 'a' is there twice, first in line 2"),
        ("a A01 spoof\nb A01 what\n", ":2: 'what' is no label"),
        ("a genuine\nb\n", ":2: 'b'; expected 2 columns or more of a label file"),
        ('[{"path": ', "not JSON"),
        ("[]", "expected a label file: a list of records"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        read_labels(write(tmp_path / "labels", text))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_record_of_json_for_each_utterance(tmp_path):
    records = [{"recording": f"u{number}", "label": "real", "speaker": "s"} for number in range(3)]
    path = write(tmp_path / "labels.json", json.dumps(records))
    assert read_labels(path) == {f"u{number}": Label("genuine", "s") for number in range(3)}
