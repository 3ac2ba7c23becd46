"""The layout of ASVspoof 2019, logical access."""

import logging
import shutil

import pytest
from tiny_audio import read_cuts, write_audio
from tool_harness import one_line_error

from local.add2022 import asvspoof2019
from pyspeech.errors import UserError
from pyspeech.spoof.formats import labels_of
from pyspeech.spoof.label_files import read_labels
from steps.spoof.corpus import kind_of

log = logging.getLogger("test")
PROTOCOLS = {
    part: f"ASVspoof2019_LA_cm_protocols/ASVspoof2019.LA.cm.{part}.{'trn' if part == 'train' else 'trl'}.txt"
    for part in ("train", "dev", "eval")
}
SCORES = "ASVspoof2019_LA_asv_scores/ASVspoof2019.LA.asv.{}.gi.trl.scores.txt"


def make_corpus(root, each=8):
    for part, protocol in PROTOCOLS.items():
        lines = []
        for number in range(each):
            name = f"LA_{part[0].upper()}_{1000000 + number}"
            write_audio(root / f"ASVspoof2019_LA_{part}/flac/{name}.flac", 0.25, seed=number)
            kind = "- bonafide" if number % 4 == 0 else f"A{number + (7 if part == 'eval' else 0):02d} spoof"
            lines.append(f"LA_{number % 3:04d} {name} - {kind}\n")
        (root / protocol).parent.mkdir(exist_ok=True)
        (root / protocol).write_text("".join(lines))
    for part in ("dev", "eval"):
        path = root / SCORES.format(part)
        path.parent.mkdir(exist_ok=True)
        path.write_text("bonafide target 3.5\nbonafide nontarget -2\nA01 spoof 0.5\n")
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("asvspoof") / "DS_10283_3336/LA")


ALL = {part: {"genuine": 2, "fake": 6} for part in PROTOCOLS}


@pytest.mark.parametrize("given", [".", "..", "../..", "ASVspoof2019_LA_train", "ASVspoof2019_LA_train/flac"])
def test_layout(made, tmp_path, given):
    assert asvspoof2019.prepare(made / given, tmp_path, log) == ALL
    for part in PROTOCOLS:
        cuts = read_cuts(tmp_path, part)
        found, expected = labels_of(cuts), read_labels(made / PROTOCOLS[part])
        assert found == expected and all(cut.supervisions[0].language == "en" for cut in cuts)
    eval_cut = read_cuts(tmp_path, "eval")[1]
    assert eval_cut.id == "LA_E_1000001" and eval_cut.supervisions[0].speaker == "LA_0001"
    assert eval_cut.supervisions[0].custom == {"attack": "A08", "condition": "-"} and eval_cut.num_samples == 4000
    assert not (tmp_path / "adapt.jsonl.gz").exists()
    for part in ("dev", "eval"):
        assert (tmp_path / f"asv_scores_{part}.txt").read_bytes() == (made / SCORES.format(part)).read_bytes()


@pytest.mark.parametrize("given", [".", "..", "../..", "ASVspoof2019_LA_train", "ASVspoof2019_LA_train/flac"])
def test_the_layout_is_told_wherever_it_is_found(made, given):
    assert kind_of(made / given) == "asvspoof2019"


def test_the_layout_is_told_by_what_is_the_corpus_alone(corpus, tmp_path):
    (corpus / "ADD2022/ADD_train_dev/train").mkdir(parents=True)
    assert kind_of(corpus / "ADD2022") == "add2022"  # beside the folders of another corpus
    shutil.rmtree(corpus / "ASVspoof2019_LA_cm_protocols")
    assert kind_of(corpus) == "asvspoof2019"  # and that they are missing is what is said
    with pytest.raises(UserError, match="no folder ASVspoof2019_LA_cm_protocols in it"):
        asvspoof2019.prepare(corpus, tmp_path / "out", log)


def test_without_what_is_optional(corpus, tmp_path, caplog):
    asvspoof2019.prepare(corpus, tmp_path / "out", log)
    shutil.rmtree(corpus / "ASVspoof2019_LA_asv_scores")
    shutil.rmtree(corpus / "ASVspoof2019_LA_dev")
    (corpus / "ASVspoof2019_LA_eval").rename(corpus / "asvspoof2019_la_EVAL")
    with caplog.at_level(logging.INFO):
        assert asvspoof2019.prepare(corpus, tmp_path / "out", log) == {part: ALL[part] for part in ("train", "eval")}
    assert not list((tmp_path / "out").glob("asv_scores_*")) and not (tmp_path / "out/dev.jsonl.gz").exists()
    assert "no audio of the dev set" in caplog.text and "no ASV scores of the eval set" in caplog.text


def test_problems_are_named(corpus, tmp_path):
    audio = corpus / "ASVspoof2019_LA_train/flac"
    (audio / "LA_T_1000001.flac").write_bytes(b"")
    (audio / "LA_T_1000002.flac").write_bytes((audio / "LA_T_1000002.flac").read_bytes()[:3000])
    (audio / "LA_T_1000003.flac").rename(audio / "LA_T_9.flac")
    counts = asvspoof2019.prepare(corpus, tmp_path / "out", log)
    assert counts["train"] == {"genuine": 2, "fake": 3}
    problems = (tmp_path / "out/problems.txt").read_text()
    for words in (
        "LA_T_1000001.flac: the audio file is empty",
        "LA_T_1000002.flac: truncated",
        "LA_T_1000003: label without audio",
        "LA_T_9.flac: audio without a label",
    ):
        assert words in problems


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda root: shutil.rmtree(root / "ASVspoof2019_LA_cm_protocols"), "no folder ASVspoof2019_LA_cm_protocols in it"),
        (lambda root: shutil.rmtree(root / "ASVspoof2019_LA_train"), "no audio in ASVspoof2019_LA_train/flac; expected"),
        (lambda root: (root / PROTOCOLS["train"]).unlink(), "no ASVspoof2019.LA.cm.train.trn.txt; expected"),
        (lambda root: (root / PROTOCOLS["dev"]).unlink(), "8 audio files of the dev set but no protocol"),
        (lambda root: (root / PROTOCOLS["eval"]).write_text("LA_0001 LA_E_1000000 - -\n"), "eval.trl.txt:1: "),
        (lambda root: (root / SCORES.format("dev")).write_text("bonafide target x\n"), "dev.gi.trl.scores.txt:1: 'x' is"),
        (lambda root: shutil.rmtree(root), "no such folder"),
    ],
)
def test_a_corpus_that_cannot_be_used(corpus, tmp_path, change, message):
    change(corpus)
    with one_line_error(message):
        asvspoof2019.prepare(corpus, tmp_path / "out", log)


def test_physical_access(corpus, tmp_path):
    """The same layout with PA for LA, and environments."""
    for path in sorted(corpus.rglob("*"), reverse=True):
        if path.suffix == ".txt" and "scores" not in path.name:
            path.write_text(path.read_text().replace("LA_", "PA_").replace(" - A", " aaa A").replace(" - -", " abc -"))
        path.rename(path.with_name(path.name.replace("LA", "PA")))
    assert kind_of(corpus) == "asvspoof2019"
    assert asvspoof2019.prepare(corpus, tmp_path / "out", log) == ALL
    custom = {cut.id: cut.supervisions[0].custom for cut in read_cuts(tmp_path / "out", "dev")}
    assert custom["PA_D_1000001"] == {"attack": "A01", "condition": "aaa"} and custom["PA_D_1000000"]["condition"] == "abc"
    shutil.rmtree(corpus / "ASVspoof2019_PA_train")
    with pytest.raises(UserError, match="no audio in ASVspoof2019_PA_train/flac; expected PA/ASVspoof2019_PA_train"):
        asvspoof2019.prepare(corpus, tmp_path / "out", log)
    assert asvspoof2019.prepare(corpus, tmp_path / "test", log, test=True) == {"eval": ALL["eval"]}
    shutil.rmtree(corpus / "ASVspoof2019_PA_cm_protocols")
    assert kind_of(corpus) == "asvspoof2019"
