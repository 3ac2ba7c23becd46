"""Score files, labels and protocols: what is read, what is written, and the line that is wrong."""

import pytest
from tiny_spoof import write_corpus

from pyspeech.errors import UserError
from pyspeech.spoof.formats import Label, label_of, labels_of, utterance_name, write_scores
from pyspeech.spoof.label_files import read_labels
from pyspeech.spoof.score_files import AsvScores, match_scores, read_asv_scores, read_scores


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_utterance_names():
    for name, expected in (
        ("ADD_T_0.wav", "ADD_T_0"),
        ("a.b.FLAC", "a.b"),
        ("a.b", "a.b"),
        ("v1.5", "v1.5"),
        ("x", "x"),
        (".wav", ".wav"),
        ("día 1.ogg", "día 1"),
        ("x.mp3.wav", "x.mp3"),
        ("a  b\u3000c\u00a0d .wav", "a b c d"),
        ("u\u0308.wav", "\u00fc"),
        (" .wav", ".wav"),
    ):
        assert utterance_name(name) == expected


def test_scores_are_read_as_they_were_written(tmp_path, rng):
    names = [*(f"utterance {index} ñ" for index in range(50)), "x.mp3", "x", "my call spoof"]
    for scores in (dict(zip(names, rng.normal(0, 1e3, 53).tolist(), strict=True)), {"a b spoof": 1.0, "a c bonafide": 2.0}):
        write_scores(tmp_path / "scores", scores)
        assert read_scores(tmp_path / "scores") == scores
        assert list(read_scores(tmp_path / "scores")) == list(scores)
        assert match_scores(scores, scores, "scores") == scores


def test_scores_of_other_tools(tmp_path):
    path = write(tmp_path / "s", "\ufeffADD_E_1.wav  2.5e-1\r\n\n a b.wav\t-3\n")
    assert read_scores(path) == {"ADD_E_1.wav": 0.25, "a b.wav": -3}
    path = write(tmp_path / "2019", "LA_E_1 A07 spoof 1\nLA_E_2 - bonafide 2")
    labels = {"LA_E_2": 0, "LA_E_1": 0}
    assert match_scores(read_scores(path), labels, path) == {"LA_E_1": 1, "LA_E_2": 2}


@pytest.mark.parametrize(
    "scores, labels, expected",
    [
        (["a.wav", "b", "c.flac"], ["a", "b.wav", "d"], ["a", "b.wav", "c"]),
        (["x.mp3", "x"], ["x.mp3", "x"], ["x.mp3", "x"]),  # files x.mp3.wav, x.wav
        (["x.mp3.wav", "x.wav"], ["x.mp3", "x"], ["x.mp3", "x"]),
        (["x.mp3"], ["x.mp3.wav"], ["x.mp3.wav"]),
        (["u\u0308 1"], ["\u00fc 1"], ["\u00fc 1"]),
        (["my call spoof", "b"], ["b", "my call spoof"], ["my call spoof", "b"]),
        (["a c spoof", "b c spoof"], ["a c spoof", "b"], ["a c spoof", "b c spoof"]),  # some name is a label's
        (["a c spoof", "b x"], ["a", "b"], ["a c spoof", "b x"]),  # not all lines are of 2019
    ],
)
def test_scores_find_their_labels(scores, labels, expected):
    labels = dict.fromkeys(labels)
    found = match_scores({name: index for index, name in enumerate(scores)}, labels, "scores")
    assert found == {name: index for index, name in enumerate(expected)}


@pytest.mark.parametrize(
    "scores, labels, expected",
    [
        (["x.wav", "y"], ["train/x", "train/y"], ["train/x", "train/y"]),
        (["eval/x.wav"], ["x", "y"], ["x"]),
        (["b/x", "a/x"], ["a/x", "b/x"], ["b/x", "a/x"]),
        (["x"], ["a/x", "b/x"], ["x"]),  # which of the two?
        (["real/x.wav", "y"], ["set/real/x", "set/fake/x", "set/fake/y"], ["set/real/x", "set/fake/y"]),
        (["/data/set/real/x.wav"], ["real/x", "fake/x"], ["real/x"]),
        (["other/x"], ["real/x"], ["other/x"]),
    ],
)
def test_folders_may_be_more_or_fewer(scores, labels, expected):
    assert list(match_scores(dict.fromkeys(scores, 1.0), labels, "s")) == expected


def test_two_scores_of_one_utterance():
    for scores, message in (
        ({"a": 1, "a.wav": 1}, "scores: 'a' and 'a.wav' both name utterance 'a'; remove one"),
        ({"s/a": 1, "t/a": 1}, "'s/a' and 't/a' both name utterance 'a'"),
    ):
        with pytest.raises(UserError, match=message):
            match_scores(scores, {"a": 0}, "scores")


def test_labels_of_add2022(tmp_path):
    path = write(tmp_path / "train_label.txt", "ADD_T_00000000.wav genuine\nADD_T_00000001.wav fake\nmy file.wav fake\n")
    assert read_labels(path) == {"ADD_T_00000000": Label("genuine"), "ADD_T_00000001": Label("fake"), "my file": Label("fake")}


def test_protocols_of_asvspoof(tmp_path):
    text = "LA_0079 LA_T_1138215 - - bonafide\nLA_0079 LA_T_1271820 - A01 spoof\n"
    labels = read_labels(write(tmp_path / "2019.txt", text))
    assert labels == {"LA_T_1138215": Label("genuine", "LA_0079"), "LA_T_1271820": Label("fake", "LA_0079", "A01")}
    text = (
        "LA_0009 LA_E_9332881 alaw ita_tx A07 spoof notrim eval\n"
        "LA_0020 LA_E_6866159 none none bonafide bonafide notrim hidden\n"
        "LA_0023 DF_E_1 low_mp3 asvspoof A14 spoof notrim progress traditional_vocoder - - - -\n"
    )
    labels = read_labels(write(tmp_path / "2021.txt", text))
    assert list(labels.values()) == [
        Label("fake", "LA_0009", "A07", "alaw", subset="eval"),
        Label("genuine", "LA_0020", "-", "none", subset="hidden"),
        Label("fake", "LA_0023", "A14", "low_mp3", "traditional_vocoder", "progress"),
    ]


def test_labels_of_cuts(tmp_path):
    cuts = write_corpus(tmp_path / "audio", 4)
    expected = {
        "u0_0": Label("fake", "s0", "A01", "clean"),
        "u0_1": Label("fake", "s1", "A02", "noise"),
        "u0_2": Label("genuine", "s2", "-", "clean"),
        "u0_3": Label("fake", "s3", "A01", "noise"),
    }
    assert labels_of(cuts) == expected
    cuts.to_file(tmp_path / "cuts.jsonl.gz")
    assert read_labels(tmp_path / "cuts.jsonl.gz") == expected
    cuts.modify_ids(lambda name: f"{name}.mp3").to_file(tmp_path / "endings.jsonl.gz")
    assert list(read_labels(tmp_path / "endings.jsonl.gz")) == [f"{name}.mp3" for name in expected]
    plain = cuts[2]
    plain.supervisions[0].custom = plain.supervisions[0].speaker = None
    assert label_of(plain) == Label("genuine")
    plain.supervisions[0].text = "real"
    with pytest.raises(UserError, match="u0_2: the text of its supervision is 'real'; expected genuine or fake"):
        label_of(plain)


def test_asv_scores(tmp_path):
    path = write(tmp_path / "asv", "LA_0039 target 5.1\n- target 3\nbonafide nontarget -2\nA07 spoof 1.5\n")
    assert read_asv_scores(path) == AsvScores([5.1, 3], [-2], [1.5])


@pytest.mark.parametrize(
    "read, text, message",
    [
        (read_scores, "a 1\nb x\n", ":2: 'x' is not a number; expected the score of 'b'"),
        (read_scores, "a 1\nb nan\n", ":2: the score of 'b' is nan; expected a finite number"),
        (read_scores, "b -inf\n", ":1: the score of 'b' is -inf"),
        (read_scores, "a 1\n\nb 2\na 1\n", ":4: utterance 'a' is there twice, first in line 1"),
        (read_scores, "a 1\nb\n", ":2: 'b'; expected 2 columns or more of a score file"),
        (read_scores, "\n \n", "file: empty; expected a score file"),
        (read_labels, "a genuine\nb maybe\n", ":2: 'maybe' is no label; expected `FILE genuine|fake`"),
        (read_labels, "a genuine\na.wav fake\n", ":2: utterance 'a' is there twice, first in line 1"),
        (read_asv_scores, "x target 1\nx impostor 2\n", ":2: column 2 is 'impostor'; expected target, nontarget or spoof"),
        (read_asv_scores, "x target 1\nx spoof 2\n", "no score of kind nontarget"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, read, text, message):
    with pytest.raises(UserError) as caught:
        read(write(tmp_path / "file", text))
    assert message in str(caught.value) and str(tmp_path / "file") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path):
    (tmp_path / "binary").write_bytes(b"\x80\x81\x00\xff")
    write(tmp_path / "x.jsonl", "{}\n")
    write(tmp_path / "y.jsonl", "")
    for name, read, message in (
        ("nowhere", read_scores, "cannot read the score file: No such file"),
        ("binary", read_labels, "not a text file in UTF-8 or UTF-16; expected a label file"),
        ("z.jsonl", read_labels, "z.jsonl: cannot read the manifest: "),
        ("x.jsonl", read_labels, "x.jsonl: not a manifest of cuts"),
        ("y.jsonl", read_labels, "y.jsonl: "),
    ):
        with pytest.raises(UserError, match=message) as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_what_cannot_be_written(tmp_path):
    for call, message in (
        (lambda: write_scores(tmp_path / "s", {"a": float("nan")}), "the score of 'a' is nan"),
        (lambda: write_scores(tmp_path / "s", {"a\nb": 1.0}), "cannot name an utterance"),
    ):
        with pytest.raises(UserError, match=message):
            call()
    assert not list(tmp_path.iterdir())
