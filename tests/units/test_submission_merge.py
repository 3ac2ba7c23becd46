"""Two submissions with a language each become one that the rules of the challenge's validator accept."""

import wave

import numpy as np
import pytest
import yaml
from tiny_zerospeech import make_zerospeech
from tool_harness import run_tool

from pyspeech.errors import UserError
from pyspeech.units.challenge import expected_files
from pyspeech.units.submission import TRACK, check_submission, synthesis_names, write_embedding, write_metadata, write_wave
from pyspeech.units.submission_merge import merge_submissions


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_zerospeech(tmp_path_factory.mktemp("corpus"), ("english", "surprise"), utterances=1)


def write_submission(folder, corpus, language, description="a system", **metadata):
    utterances, pairs = expected_files(corpus)[language]
    rng = np.random.default_rng(len(language))
    for utterance in utterances:
        write_embedding(folder, language, utterance, rng.standard_normal((3, 4)).astype(np.float32))
    for name in synthesis_names(pairs).values():
        write_wave(folder / TRACK / language / "test" / name, 0.1 * rng.standard_normal(800))
    options = {"author": "Ä. Author", "affiliation": "x", "distance": "dtw_cosine", "code": f"code of {language}", **metadata}
    write_metadata(folder, description=description, **options)
    return folder


def refused(folder, corpus):
    """What the challenge's validator refuses, by the rules that its source has: the first, or None."""

    def listing(path):
        return {entry.name for entry in path.iterdir()}

    top, track = (yaml.safe_load((folder / name).read_text("utf-8")) for name in ("metadata.yaml", "2019/metadata.yaml"))
    if listing(folder) != {"metadata.yaml", "2019"} or set(top) != {"author", "affiliation", "open source"}:
        return "the upper folder"
    if top["open source"] is not True or listing(folder / "2019") != {"metadata.yaml", "english", "surprise", "code"}:
        return "the folder 2019"
    if not listing(folder / "2019/code"):
        return "no code"
    if set(track) != {"abx distance", "system description", "using parallel train", "using external data"}:
        return "the entries"
    for language, (utterances, pairs) in expected_files(corpus).items():
        test = folder / "2019" / language / "test"
        if not {f"{name}.txt" for name in utterances} | set(synthesis_names(pairs).values()) <= listing(test):
            return "a file is missing"
        columns = {
            len([float(number) for number in line.split(" ")])
            for path in test.glob("*.txt")
            for line in path.read_text().split("\n")[:-1]
        }
        if len(columns) != 1:
            return "numbers a line"
        for path in test.glob("*.wav"):
            with wave.open(str(path)) as stream:
                if not stream.getnframes():
                    return "empty audio"
    return None


def test_two_languages_in_one(corpus, tmp_path):
    for language in ("english", "surprise"):
        write_submission(tmp_path / language, corpus, language, description=f"made for {language}")
    run = run_tool("merge_submissions", "english", "surprise", "-o", "both", cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "both: nothing wrong, both languages\n", "")
    merged = tmp_path / "both"
    assert refused(merged, corpus) is None and check_submission(merged, expected_files(corpus)) == []
    for language in ("english", "surprise"):
        for path in (tmp_path / language / "2019" / language).rglob("*.*"):
            assert (merged / path.relative_to(tmp_path / language)).read_bytes() == path.read_bytes()
        assert (merged / "2019/code" / language / "README.txt").read_text() == f"code of {language}\n"
    track = yaml.safe_load((merged / "2019/metadata.yaml").read_text())
    assert track["system description"] == "english: made for english; surprise: made for surprise"
    assert refused(tmp_path / "english", corpus) == "the folder 2019"
    run = run_tool("merge_submissions", "english", "surprise", "-o", "both", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr.startswith("error: both: exists already") and run.stderr.count("\n") == 1


def test_what_does_not_go_together(corpus, tmp_path):
    english = write_submission(tmp_path / "english", corpus, "english")
    other = write_submission(tmp_path / "other", corpus, "surprise", distance="levenshtein")
    broken = write_submission(tmp_path / "broken", corpus, "surprise")
    (broken / "2019/metadata.yaml").unlink()
    for folders, message in (
        ([english, english], "has english, as .*english has; expected another language"),
        ([english, other], "other: 'abx distance' is 'levenshtein', but 'dtw_cosine' in .*english; expected the same"),
        ([english, broken], r"broken: 1 problems \(2019/metadata.yaml: is missing\); expected a valid submission"),
        ([english, tmp_path / "nowhere"], "nowhere: no such folder"),
    ):
        with pytest.raises(UserError, match=message):
            merge_submissions(folders, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    merge_submissions([english], tmp_path / "out")
    assert check_submission(tmp_path / "out") == []
