"""Score files of other tools, and scores of speaker verification with a key of their own."""

import json

import pytest

from pyspeech.errors import UserError
from pyspeech.spoof.api import FakeScore, render
from pyspeech.spoof.score_files import AsvScores, match_scores, read_asv_scores, read_scores


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "LA_E_1 2.5\nLA_E_2 -1\n",
        "LA_E_1,2.5\nLA_E_2,-1\n",
        "LA_E_1\t2.5\r\nLA_E_2\t-1\r\n",
        "file;score\nLA_E_1;2.5\nLA_E_2;-1\n",
        "filename cm-score\nLA_E_1 2.5\nLA_E_2 -1\n",
        "# utterance,attack,score\nLA_E_1,-,2.5\nLA_E_2,A07,-1\n",
        "Loading the model ...\nOutput, LA_E_1, 1, 2.5\nOutput, LA_E_2, 0, -1.0\ndone, 2 files\n",
        "LA_0015 LA_E_1 2.5 bonafide\nLA_0007 LA_E_2 -1 spoof\n",
        "LA_E_1 2.5 Genuine\nLA_E_2 -1 fake\n",
        "LA_E_1 - bonafide 2.5\nLA_E_2 A07 spoof -1\n",
        "LA_E_1 1 2.5\nLA_E_2 0 -1\n",
        "file,fake,bonafide\nLA_E_1,0.5,3\nLA_E_2,2,1\n",
        '[{"recording": "LA_E_1", "score": 2.5}, {"recording": "LA_E_2", "score": -1}]',
        '{"utterance": "LA_E_1", "llr": 2.5}\n  \n{"utterance": "LA_E_2", "llr": -1}\n',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_forms_of_score_files(tmp_path, text, encoding):
    path = tmp_path / "scores"
    path.write_text(text, encoding=encoding)
    assert match_scores(read_scores(path), ["LA_E_1", "LA_E_2"], path) == {"LA_E_1": 2.5, "LA_E_2": -1}


@pytest.mark.parametrize("format", ["scores", "csv", "json"])
def test_what_detect_fake_writes_of_files_of_one_name(tmp_path, format):
    """Its names join folders with the stem."""
    names = {"real_LJ001": 1.5, "melgan_LJ001": -0.5, "LJ002": 1.0}
    found = [FakeScore(name, score, 0.0, 3.0, [(0.0, score)]) for name, score in names.items()]
    path = write(tmp_path / "scores", render(found, format))
    labels = ["set/real/LJ001", "set/melgan/LJ001", "set/melgan/LJ002"]
    assert match_scores(read_scores(path), labels, path) == dict(zip(labels, names.values(), strict=True))


def test_two_logits(tmp_path):
    path = write(tmp_path / "scores", "a 0.5 3\nb 2 1\n")
    with pytest.raises(UserError, match="two numbers behind each name; say what they are, such as --columns name,fake,genuine"):
        match_scores(read_scores(path), ["a", "b"], path)
    assert read_scores(path, ["name", "fake", "genuine"]) == {"a": 2.5, "b": -1}
    assert read_scores(path, ["name", "-", "score"]) == {"a": 3, "b": 1}
    assert read_scores(write(path, "3,x,a\n"), ["score", "-", "name"]) == {"a": 3}


@pytest.mark.parametrize(
    "text, columns, message",
    [
        ("a 1 2\nb 1\n", ["name", "-", "score"], ":2: 2 columns; expected 3"),
        ("a 1\n", ["name", "genuine"], "--columns name,genuine: expected name and score, or name, genuine and fake"),
        ("a 1\n", ["name", "name", "score"], "each once"),
        ("file,score\na,1\nb\n", None, ":3: 1 columns; expected 2"),
        ("file,score\na,1\nb,x\n", None, ":3: 'x' is not a number; expected the score of 'b'"),
        ("file,fake,genuine\na,1,nan\n", None, ":2: the score of 'a' is nan"),
        ("utt_a,cm\na,1\nb,2\n", None, ":1: 'cm' is not a number; expected the score of 'utt_a'"),
        ("Output, a, 0, x\n", None, ":1: 'x' is not a number"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, columns, message):
    with pytest.raises(UserError) as caught:
        read_scores(write(tmp_path / "scores", text), columns)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_scores_of_speaker_verification_with_a_key(tmp_path):
    kinds = ("target", "nontarget", "spoof", "target", "nontarget", "spoof")
    subsets = ("eval", "eval", "eval", "progress", "progress", "progress")
    key = write(
        tmp_path / "key",
        "".join(
            f"LA_1 LA_E_{number % 3} alaw ita_tx A07 {kind} notrim {subset}\n"
            for number, (kind, subset) in enumerate(zip(kinds, subsets, strict=True))
        ),
    )
    path = write(tmp_path / "scores", "".join(f"LA_1 LA_E_{number % 3} {number}\n" for number in range(6)))
    assert read_asv_scores(path, key, "eval") == AsvScores([0], [1], [2])
    assert read_asv_scores(path, key) == AsvScores([0, 3], [1, 4], [2, 5])
    with pytest.raises(UserError, match="no score of kind target in subset hidden"):
        read_asv_scores(path, key, "hidden")
    with pytest.raises(UserError, match="column 2 is 'LA_E_0'; expected target, .*need their key .--asv-key"):
        read_asv_scores(path)
    with pytest.raises(UserError, match="6 lines, .*: 5; expected the same trials"):
        read_asv_scores(path, write(tmp_path / "short", "".join(key.read_text().splitlines(keepends=True)[:5])))
    with pytest.raises(UserError, match=":1: a score of LA_E_0, .*key:1: LA_E_9; expected the same trials"):
        read_asv_scores(path, write(key, key.read_text().replace("LA_E_0", "LA_E_9")))


def test_json_that_is_none(tmp_path):
    with pytest.raises(UserError, match="not JSON"):
        read_scores(write(tmp_path / "scores", '[{"recording": "a", "score": }]'))
    write(tmp_path / "scores", json.dumps([{"what": 1}]))
    with pytest.raises(UserError, match="columns what; expected a column of names"):
        read_scores(tmp_path / "scores")
