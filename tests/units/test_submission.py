"""ZeroSpeech 2020 submissions: what is written is right, and every kind of problem is named with its file."""

import os
import re
import shutil

import numpy as np
import pytest
import soundfile
import yaml
from tiny_zerospeech import make_zerospeech
from tool_harness import run_tool

from pyspeech.commands import submission_validate
from pyspeech.errors import UserError
from pyspeech.units.challenge import expected_files
from pyspeech.units.features_files import read_features
from pyspeech.units.submission import (
    TRACK,
    check_submission,
    embedding_problem,
    synthesis_names,
    wave_problem,
    write_embedding,
    write_metadata,
    write_wave,
)

TEST = "2019/english/test"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_zerospeech(tmp_path_factory.mktemp("corpus"), utterances=1)


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    """A submission that is right."""
    folder = tmp_path_factory.mktemp("submission")
    rng = np.random.default_rng(0)
    codebook = rng.standard_normal((8, 4)).astype(np.float32)
    for language, (utterances, pairs) in expected_files(corpus).items():
        for utterance in utterances:
            write_embedding(folder, language, utterance, codebook[rng.integers(0, 8, rng.integers(1, 9))])
        for name in synthesis_names(pairs).values():
            write_wave(folder / TRACK / language / "test" / name, 0.1 * rng.standard_normal(800))
    write_metadata(folder, "A. Author", "Ünïversity", "dtw_cosine", "a system", code="https://example.org")
    return folder


@pytest.fixture
def submission(made, tmp_path):
    """A copy to break."""
    return shutil.copytree(made, tmp_path / "submission")


def problems(folder, expected=None):
    return [f"{path}: {problem}" for path, problem in check_submission(folder, expected)]


def change(path, **entries):
    """Entries of a YAML file set, or removed where None; underscores stand for spaces."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content.update({name.replace("_", " "): value for name, value in entries.items()})
    path.write_text(yaml.safe_dump({name: value for name, value in content.items() if value is not None}))


def test_what_is_written_is_right(made, corpus):
    assert problems(made) == [] and problems(made, expected_files(corpus)) == []
    assert yaml.safe_load((made / "metadata.yaml").read_text(encoding="utf-8")) == {
        "author": "A. Author",
        "affiliation": "Ünïversity",
        "open source": True,
    }
    assert yaml.safe_load((made / "2019/metadata.yaml").read_text()) == {
        "abx distance": "dtw_cosine",
        "system description": "a system",
        "using parallel train": False,
        "using external data": False,
    }
    assert sorted(path.name for path in (made / TEST).iterdir() if path.suffix == ".wav")[0].startswith("V001_")


def test_rows_keep_their_digits(tmp_path):
    for rows in (
        np.float32([[0.1, -1e-20], [1 / 3, 7]]),
        np.array([[1 / 3, 2.0]]),
        np.eye(3, dtype=bool),
        np.eye(3, dtype=int),
    ):
        write_embedding(tmp_path, "english", "u", rows)
        path = tmp_path / TEST / "u.txt"
        np.testing.assert_array_equal(read_features(path).values.astype(rows.dtype), rows)
        assert embedding_problem(path) == (rows.shape[1], None)
    assert path.read_text() == "1 0 0\n0 1 0\n0 0 1\n"
    for rows in (np.zeros((0, 4)), np.zeros((3, 1)), np.zeros(3), [[1, np.nan]]):
        with pytest.raises(UserError, match="u.txt: an array of shape"):
            write_embedding(tmp_path, "english", "u", rows)
    for samples in ([], [[0.0]], [np.inf]):
        with pytest.raises(UserError, match="V_1.wav: samples of shape"):
            write_wave(tmp_path / TEST / "V_1.wav", samples)
    write_wave(tmp_path / TEST / "V_1.wav", [2.0])
    assert wave_problem(tmp_path / TEST / "V_1.wav") is None
    with pytest.raises(UserError, match="abx distance cosine: expected one of dtw_cosine"):
        write_metadata(tmp_path, "a", "b", "cosine", "c")


def test_names_of_the_challenge():
    """As its own list of required files has them; utterances whose names would be one keep the whole."""
    assert synthesis_names([("S002_0379088085", "V002"), ("S011_4019527684", "V001"), ("plain", "V001")]) == {
        ("S002_0379088085", "V002"): "V002_0379088085.wav",
        ("S011_4019527684", "V001"): "V001_4019527684.wav",
        ("plain", "V001"): "V001_plain.wav",
    }
    assert synthesis_names([("S1_sa1", "V001"), ("S2_sa1", "V001"), ("S2_sa1", "V002")]) == {
        ("S1_sa1", "V001"): "V001_S1_sa1.wav",
        ("S2_sa1", "V001"): "V001_S2_sa1.wav",
        ("S2_sa1", "V002"): "V002_sa1.wav",
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("1 2\n\n3 4\n", "line 2: is blank"),
        ("1 2\n3\n", "line 2: 1 numbers; expected 2"),
        ("1\n2\n", "line 1: 1 number; expected at least 2"),
        ("1 2\n3 nan\n", "line 2: a number that is not finite"),
        ("1 -inf\n", "not finite"),
        ("1  2\n", "line 1: '' is not a number; expected numbers with single spaces"),
        ("1 2 \n", "line 1: '' is not"),
        ("1\t2\n", "line 1: '1.t2' is not"),
        ("1,2 3\n", "'1,2' is not a number"),
        ("0x1 2\n", "'0x1' is not"),
        ("1 2\n\n", "line 2: is blank"),
        ("1 é\n", "not text in ASCII"),
    ],
)
def test_embeddings_that_are_wrong(submission, text, message):
    path = sorted((submission / TEST).glob("*.txt"))[3]
    path.write_text(text, encoding="utf-8")
    found = problems(submission)
    assert any(re.search(f"{path.name}: .*{message}", line) for line in found), found
    assert all(path.name in line for line in found)


def test_dimensions_and_distances(submission):
    path = sorted((submission / TEST).glob("*.txt"))[0]
    path.write_bytes(b"1 2.5e-3 +3\r\n")
    assert problems(submission) == [f"{TEST}/{path.name}: 3 numbers a line; expected 4, as in 23 other files"]
    change(submission / "2019/metadata.yaml", abx_distance="dtw_kl")
    assert sum("a negative number, for which dtw_kl is not defined" in line for line in problems(submission)) > 20


def test_metadata_that_is_wrong(submission):
    top, track = submission / "metadata.yaml", submission / "2019/metadata.yaml"
    change(top, author=None, affiliation="", open_source="yes", team="x")
    change(track, abx_distance="cosine", using_external_data=None, using_parallel_train="no", hyperparameters={"codes": 8})
    found = problems(submission)
    for line in [
        "metadata.yaml: no entry 'author'; expected text",
        "metadata.yaml: 'affiliation' is ''; expected text",
        "metadata.yaml: 'open source' is 'yes'; expected true or false",
        "metadata.yaml: entry 'team' is not expected; expected author, affiliation, open source",
        "2019/metadata.yaml: no entry 'using external data'; expected true or false",
        "2019/metadata.yaml: 'using parallel train' is 'no'; expected true or false",
        "2019/metadata.yaml: 'abx distance' is 'cosine'; expected one of dtw_cosine, dtw_kl, levenshtein",
        "2019/metadata.yaml: entry 'hyperparameters' is not expected; expected abx distance, system description, using "
        "parallel train, using external data, auxiliary1 description, auxiliary2 description",
    ]:
        assert line in found
    assert len(found) == 8
    change(top, author="A", affiliation="B", open_source=False, team=None)
    assert "2019/code: is not empty, but metadata.yaml says open source: false" in problems(submission)
    top.write_text("just text")
    track.write_text("a: [1\nb: 2")
    found = problems(submission)
    assert "metadata.yaml: holds no entries; expected author, affiliation, open source" in found
    assert any(line.startswith("2019/metadata.yaml: not YAML") for line in found) and len(found) == 2


def test_folders_that_are_wrong(submission, tmp_path):
    (submission / "notes.txt").touch()
    (submission / "2019/english/train").mkdir()
    (submission / "2019/klingon").mkdir()
    (submission / TEST / "more").mkdir()
    (submission / TEST / ".DS_Store").touch()
    open(os.fsencode(submission) + b"/caf\xe9", "w").close()
    (submission / TEST / "V001_nothing.wav").write_bytes(next((submission / TEST).glob("*.wav")).read_bytes())
    shutil.rmtree(submission / "2019/code")
    found = problems(submission)
    for path, words in [
        ("notes.txt", "not expected here"),
        ("2019/english/train", "not expected here; expected test"),
        ("2019/klingon", "not expected here"),
        (f"{TEST}/more", "expected files *.txt, *.wav"),
        (f"{TEST}/.DS_Store", "not expected"),
        ("caf\\udce9", "not expected"),
        (f"{TEST}/V001_nothing.wav", "no test utterance"),
        ("2019/code", "is missing"),
    ]:
        assert any(line.startswith(f"{path}: ") and words in line for line in found), path
    assert len(found) == 8
    shutil.rmtree(submission / "2019/english")
    assert "2019: no language; expected english and surprise" in problems(submission)
    shutil.rmtree(submission / "2019")
    (submission / "metadata.yaml").unlink()
    assert {"2019: is missing", "metadata.yaml: is missing"} < set(problems(submission))
    with pytest.raises(UserError, match="nowhere: no such folder; expected a submission"):
        check_submission(tmp_path / "nowhere")


def test_files_in_place_of_folders_and_links_to_nothing(submission):
    (submission / "2019/metadata.yaml").unlink()
    (submission / "2019/metadata.yaml").symlink_to("nowhere")
    (submission / "metadata.yaml").unlink()
    (submission / "metadata.yaml").mkdir()
    shutil.rmtree(submission / "2019/code")
    shutil.rmtree(submission / TEST)
    (submission / TEST).touch()
    assert set(problems(submission)) == {
        "metadata.yaml: is no file; expected one",
        f"{TEST}: is no folder; expected one",
        "2019/metadata.yaml: is no file; expected one",
    }
    shutil.rmtree(submission / "2019/english")
    (submission / "2019/english").touch()
    assert "2019/english: is no folder; expected one" in problems(submission)
    shutil.rmtree(submission / "2019")
    (submission / "2019").touch()
    assert "2019: is no folder; expected one" in problems(submission)


def test_names_and_dates_of_all_sorts(submission, tmp_path, capsys):
    (submission / "metadata.yaml").write_text("author: 2020-13-45\n")
    assert any(line.startswith("metadata.yaml: not YAML (month must be in") for line in problems(submission))
    open(os.fsencode(submission / TEST) + b"/V001_caf\xe9.wav", "w").close()
    shutil.copy(next((submission / TEST).glob("V*.wav")), os.fsencode(submission / TEST) + b"/V001_th\xe9.wav")
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xe9")
    shutil.copytree(submission, odd)
    assert submission_validate.main([odd]) == 1
    output = capsys.readouterr().out
    assert f"{TEST}/V001_caf\\udce9.wav: is empty (0 bytes)" in output and "V001_th\\udce9.wav: cannot" not in output
    assert output.splitlines()[-1].startswith(f"{tmp_path}/\\udce9: ")


def test_auxiliary_embeddings(submission):
    for number in "12":
        shutil.copytree(
            submission / TEST, submission / f"2019/english/auxiliary_embedding{number}", ignore=shutil.ignore_patterns("*.wav")
        )
    change(submission / "2019/metadata.yaml", auxiliary1_description="before the codebook")
    assert problems(submission) == ["2019/metadata.yaml: no entry 'auxiliary2 description'; expected text"]
    shutil.rmtree(submission / "2019/english/auxiliary_embedding1")
    assert "2019: auxiliary_embedding2 without auxiliary_embedding1" in problems(submission)


def test_waves_that_are_wrong(submission):
    folder = submission / TEST
    waves = sorted(folder.glob("*.wav"))
    noise = 0.1 * np.random.default_rng(0).standard_normal(800)
    whole = waves[0].read_bytes()
    soundfile.write(str(waves[0]), noise, 8000)
    soundfile.write(str(waves[1]), np.stack([noise, noise], 1), 16000)
    soundfile.write(str(waves[2]), np.zeros(0), 16000)
    waves[3].write_bytes(whole[:1000])
    waves[4].write_text("not audio")
    soundfile.write(str(waves[5]), noise, 16000, "FLOAT")
    for path, words in zip(
        waves,
        [
            "WAV, 8000 Hz, 1 channel(s), PCM_16; expected WAV, 16000 Hz",
            "2 channel(s)",
            "holds no samples",
            "is truncated: its header says 0.050 s",
            "cannot be read as audio",
            "FLOAT; expected",
        ],
        strict=True,
    ):
        assert any(line.startswith(f"{TEST}/{path.name}: ") and words in line for line in problems(submission)), words
    waves[0].write_bytes(b"")
    assert wave_problem(waves[0]) == "is empty (0 bytes)"


def test_against_the_corpus(submission, corpus):
    expected = expected_files(corpus)
    text, wave = sorted((submission / TEST).glob("*.txt"))[0], sorted((submission / TEST).glob("*.wav"))[0]
    text.rename(text.with_name("X_1.txt"))
    wave.rename(wave.with_name("V002_0000000099.wav"))
    assert sorted(problems(submission, expected)) == sorted(
        [
            f"{TEST}/{text.name}: is missing; the corpus has this test utterance",
            f"{TEST}/X_1.txt: is not expected; the corpus has no such test utterance",
            f"{TEST}/{wave.name}: is missing; the corpus's synthesis.txt asks for it",
            f"{TEST}/V002_0000000099.wav: is not expected; the corpus's synthesis.txt does not ask for it",
        ]
    )
    assert "2019/surprise: is missing" in problems(submission, {**expected, "surprise": (set(), None)})


def test_tool(submission, corpus, tmp_path, capsys):
    assert submission_validate.main([str(submission), "--corpus", str(corpus)]) == 0
    assert capsys.readouterr().out == (
        f"{submission}: nothing wrong; the challenge wants the language surprise too (utils/merge_submissions.py)\n"
    )
    (submission / "2019/metadata.yaml").unlink()
    run = run_tool("validate_submission", "submission", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr == ""
    assert run.stdout == "2019/metadata.yaml: is missing\nsubmission: 1 problem\n"
    with pytest.raises(UserError, match="--language english: needs --corpus"):
        submission_validate.main([str(submission), "--language", "english"])
    run = run_tool("validate_submission", "nowhere", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr.startswith("error: nowhere: no such folder") and run.stderr.count("\n") == 1
