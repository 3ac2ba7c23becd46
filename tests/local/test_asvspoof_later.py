"""The layouts of ASVspoof 2021 and ASVspoof 5."""

import logging
import shutil

import pytest
from tiny_audio import read_cuts, write_audio
from tool_harness import one_line_error

from local.add2022 import asvspoof5, asvspoof2021
from pyspeech.spoof.formats import family_of, label_of
from steps.spoof.corpus import kind_of

log = logging.getLogger("test")
KEYS = {  # of utterance number, in turn genuine and fake; the third has another subset
    "LA": ("LA_0009 LA_E_{} alaw ita_tx bonafide bonafide notrim {}", "LA_0009 LA_E_{} alaw ita_tx A07 spoof notrim {}"),
    "DF": (
        "TEF2 DF_E_{} low_m4a vcc2020 bonafide bonafide notrim {} bonafide - - - -",
        "TEF2 DF_E_{} low_m4a vcc2020 Task1-team20 spoof notrim {} neural_vocoder_autoregressive Task1 team20 FF E",
    ),
}


def make_2021(root, track="DF", number=6):
    lines = []
    for index in range(number):
        write_audio(root / f"ASVspoof2021_{track}_eval/flac/{track}_E_200{index}.flac", 0.2, seed=index)
        lines.append(KEYS[track][index % 2].format(f"200{index}", "progress" if index == 2 else "eval"))
    for kind, text in (("CM", lines), ("ASV", [line.replace("DF_E", "DF_E") for line in lines])):
        (root / f"keys/{track}/{kind}").mkdir(parents=True)
        (root / f"keys/{track}/{kind}/trial_metadata.txt").write_text("\n".join(text) + "\n")
    return root


@pytest.mark.parametrize("track", ["LA", "DF"])
def test_2021(tmp_path, track, caplog):
    root, other = make_2021(tmp_path / "2021", track), {"LA": "DF", "DF": "LA"}[track]
    (root / f"keys/{other}/CM").mkdir(parents=True)
    (root / f"keys/{other}/CM/trial_metadata.txt").write_text(KEYS[other][0].format("1", "eval") + "\n")
    for given in (".", f"ASVspoof2021_{track}_eval"):  # the keys lie beside the audio
        assert kind_of(root / given) == "asvspoof2021"
        with caplog.at_level(logging.INFO):
            assert asvspoof2021.prepare(root / given, tmp_path / given, log, test=True) == {"eval": {"genuine": 2, "fake": 3}}
    assert "left out: 1 of progress" in caplog.text and not (tmp_path / "problems.txt").exists()
    cuts = {cut.id: cut for cut in read_cuts(tmp_path, "eval")}
    cut = cuts[f"{track}_E_2001"]
    attack, condition = {"LA": ("A07", "alaw"), "DF": ("Task1-team20", "low_m4a")}[track]
    assert (label_of(cut).attack, label_of(cut).condition) == (attack, condition)
    assert family_of(cut) == {"LA": "A07", "DF": "neural_vocoder_autoregressive"}[track]
    assert label_of(cuts[f"{track}_E_2000"]).attack == family_of(cuts[f"{track}_E_2000"]) == "-"


def test_2021_that_cannot_be_used(tmp_path):
    root = make_2021(tmp_path / "2021")
    with one_line_error("ASVspoof 2021 has no training set; expected another corpus, and test.NAME="):
        asvspoof2021.prepare(root, tmp_path, log)
    make_2021(root, "LA")
    with one_line_error("audio of DF and LA; expected the folder of one track"):
        asvspoof2021.prepare(root, tmp_path, log, test=True)
    shutil.rmtree(root / "keys")
    (root / "nothing").mkdir()
    with one_line_error("no key of LA in it or beside it; expected keys/LA/CM/trial_metadata.txt"):
        asvspoof2021.prepare(root / "ASVspoof2021_LA_eval", tmp_path, log, test=True)
    with one_line_error("no audio; expected"):
        asvspoof2021.prepare(root / "nothing", tmp_path, log, test=True)
    with one_line_error("no such folder; expected one with ASVspoof2021_DF_eval"):
        asvspoof2021.prepare(tmp_path / "nowhere", tmp_path, log, test=True)


FIVE = {"train": ("flac_T", "T", "train"), "dev": ("flac_D", "D", "dev.track_1"), "eval": ("flac_E_eval", "E", "eval.track_1")}


def make_5(root):
    for folder, letter, protocol in FIVE.values():
        lines = []
        for number in range(4):
            name = f"{letter}_000000000{number}"
            write_audio(root / folder / f"{name}.flac", 0.2, seed=number)
            lines.append(f"{letter}_1607 {name} M C05 2 - {'AC1 A26 spoof' if number else '- bonafide bonafide'} -")
        (root / "ASVspoof5_protocols").mkdir(parents=True, exist_ok=True)
        (root / f"ASVspoof5_protocols/ASVspoof5.{protocol}.tsv").write_text("\n".join(lines) + "\n")
    return root


def test_5(tmp_path, caplog):
    root = make_5(tmp_path / "data")
    assert kind_of(root) == "asvspoof5"
    assert asvspoof5.prepare(root, tmp_path, log) == {part: {"genuine": 1, "fake": 3} for part in FIVE}
    assert asvspoof5.prepare(root, tmp_path / "test", log, test=True) == {"eval": {"genuine": 1, "fake": 3}}
    label = label_of(read_cuts(tmp_path, "eval")[3])
    assert (label.kind, label.speaker, label.attack, label.condition) == ("fake", "E_1607", "A26", "C05")
    shutil.rmtree(root / "flac_D")
    assert set(asvspoof5.prepare(root, tmp_path, log)) == {"train", "eval"} and "no audio of the dev set" in caplog.text
    (root / "ASVspoof5_protocols/ASVspoof5.eval.track_1.tsv").unlink()
    with one_line_error("4 audio files of the eval set but no ASVspoof5.eval.track_1.tsv near them"):
        asvspoof5.prepare(root, tmp_path, log)
    shutil.rmtree(root / "flac_T")
    with one_line_error(r"no audio T_\*.flac; expected flac_T/T_\*.flac and ASVspoof5.train.tsv"):
        asvspoof5.prepare(root, tmp_path, log)
