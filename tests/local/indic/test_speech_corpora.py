"""FLEURS, Common Voice and CMU Indic through Lhotse's recipes, on tiny releases in their layouts."""

import logging
import shutil

import pytest
from tiny_audio import read_cuts, write_audio

from local.indic import speech_corpora
from pyspeech.errors import UserError

log = logging.getLogger("test")


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def make_fleurs(root, languages=("hi_in", "en_us")):
    for language in languages:
        for split, count in (("train", 6), ("dev", 2), ("test", 3)):
            lines = []
            for number in range(count):
                write_audio(root / language / split / f"{split}{number}.wav", seed=number)
                lines.append(
                    "\t".join(
                        [
                            str(number // 2),
                            f"{split}{number}.wav",
                            f"Raw {number}.",
                            f"text {number}",
                            "t e x t |",
                            "8000",
                            "FEMALE",
                        ]
                    )
                )
            write_lines(root / "metadata" / language / f"{split}.tsv", lines)
    return root


def make_commonvoice(root, language="ta"):
    """Each set with the columns of another release: 17, 11 and 6, the last with a byte order mark."""
    releases = (
        "client_id path sentence_id sentence sentence_domain up_votes down_votes age gender accents variant locale segment",
        "client_id path sentence up_votes down_votes age gender accents locale segment",
        "\ufeffclient_id path sentence up_votes down_votes age gender accent locale segment",
    )
    for split, count, release in zip(("train", "dev", "test"), (4, 1, 2), releases, strict=True):
        lines = ["\t".join(release.split())]
        for number in range(count):
            name = f"common_voice_{language}_{split}{number}.mp3"
            write_audio(root / language / "clips" / name.replace(".mp3", ".wav"), rate=48000)
            (root / language / "clips" / name.replace(".mp3", ".wav")).rename(root / language / "clips" / name)
            fields = {"client_id": f"speaker{number % 2}", "path": name, "sentence": f'"ஒன்று {number}'}
            lines.append("\t".join(fields.get(column, "") for column in release.lstrip("\ufeff").split()))
        write_lines(root / language / f"{split}.tsv", lines)
    return root


def make_cmu_indic(root):
    for voice, language in (("hin_ab", "hin"), ("guj_dp", "guj"), ("guj_kt", "guj")):
        lines = []
        for number in range(20):
            name = f"{language}_{number:05d}" if number < 16 else f"arctic_a{number:04d}"
            write_audio(root / f"cmu_indic_{voice}" / "wav" / f"{name}.wav", seed=number)
            lines.append(f'( {name} "sentence {language} {number}" )')
        write_lines(root / f"cmu_indic_{voice}" / "etc/txt.done.data", lines)
    return root


def test_fleurs(tmp_path, caplog):
    root = make_fleurs(tmp_path / "data/fleurs")
    (root / "hi_in/train/train1.wav").unlink()
    (root / "hi_in/train/train2.wav").write_bytes(b"")
    table = root / "metadata/en_us/train.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()
    write_lines(table, [*lines[:5], "5\ttrain5.wav\tRaw", lines[0], lines[1].replace("8000", "many")])
    out = tmp_path / "out"
    counts = speech_corpora.prepare(root.parent, out, log, kind="fleurs")
    assert counts == {"en-US": {"train": 5, "dev": 2, "test": 3}, "hi-IN": {"train": 4, "dev": 2, "test": 3}}
    assert "train1.wav" in caplog.text and "transcript without audio" in caplog.text and "train2.wav" in caplog.text
    assert "line 6: not a line of this table: '5\\ttrain5.wav\\tRaw'" in caplog.text
    assert "line 7: names the audio of line 1 again" in caplog.text and "line 8: not a line" in caplog.text
    cut = read_cuts(out, "test")[0]
    assert cut.supervisions[0].text == "text 0" and cut.supervisions[0].speaker is None
    assert cut.recording.sources[0].source == str(root / "en_us/test/test0.wav") and cut.load_audio().shape == (1, 8000)
    assert list(speech_corpora.prepare(root, out, log, kind="fleurs", languages=["hi"])) == ["hi"]
    with pytest.raises(UserError, match="no ta-IN; there are en-US, hi-IN"):
        speech_corpora.prepare(root, out, log, kind="fleurs", languages=["ta-IN"])
    (root / "metadata/en_us/dev.tsv").unlink()
    with pytest.raises(UserError, match="en_us: no usable line in its dev set .*en_us/dev.tsv: no such file"):
        speech_corpora.prepare(root, out, log, kind="fleurs", languages=["en-US"])


def test_fleurs_as_it_is_released(tmp_path):
    root = make_fleurs(tmp_path / "fleurs")
    for language in ("hi_in", "en_us"):
        for split in ("train", "dev", "test"):
            (root / language / "audio").mkdir(exist_ok=True)
            (root / language / split).rename(root / language / "audio" / split)
            (root / "metadata" / language / f"{split}.tsv").rename(root / language / f"{split}.tsv")
    shutil.rmtree(root / "metadata")
    root.rename(tmp_path / "data")
    counts = speech_corpora.prepare(tmp_path, tmp_path / "out", log, kind="fleurs", languages=["hi_in"])
    assert counts == {"hi-IN": {"train": 6, "dev": 2, "test": 3}}
    source = read_cuts(tmp_path / "out", "dev")[0].recording.sources[0].source
    assert source == str(tmp_path / "data/hi_in/audio/dev/dev0.wav")


def test_fleurs_languages_that_are_not_whole(tmp_path, caplog):
    root = make_fleurs(tmp_path / "fleurs", ("hi_in", "ta_in", "gu_in", "en_us"))
    (root / "metadata/ta_in/train.tsv").unlink()
    (root / "metadata/gu_in/dev.tsv").unlink()
    shutil.rmtree(root / "en_us/test")
    for path in sorted((root / "hi_in/train").iterdir()):
        path.rename(path.with_suffix(".WAV"))
    out = tmp_path / "out"
    assert speech_corpora.prepare(root, out, log, kind="fleurs") == {"hi-IN": {"train": 6, "dev": 2, "test": 3}}
    for name, split, why in (
        ("ta_in", "train", "no such file"),
        ("gu_in", "dev", "no such file"),
        ("en_us", "test", "transcript without audio"),
    ):
        assert any(
            f"{name}: no usable line in its {split} set" in line and why in line and "left out" in line
            for line in caplog.text.splitlines()
        ), name
    assert not (out / "problems.txt").exists()


def test_commonvoice(tmp_path):
    root = make_commonvoice(tmp_path / "cv-corpus")
    (root / "ta/clips/common_voice_ta_train0.mp3").unlink()
    lines = (root / "ta/train.tsv").read_text(encoding="utf-8").splitlines()
    write_lines(root / "ta/train.tsv", [*lines, "\t".join(lines[-1].split("\t")[:2])])
    out = tmp_path / "out"
    assert speech_corpora.prepare(root, out, log, kind="commonvoice", languages=["ta-IN"]) == {
        "ta-IN": {"train": 3, "dev": 1, "test": 2}
    }
    problems = (out / "problems.txt").read_text(encoding="utf-8").splitlines()
    assert ["transcript without audio" in line for line in problems] == [True, False]
    assert "train.tsv, line 6: not a line of this table: 'speaker1" in problems[1]
    assert [(cut.supervisions[0].speaker, cut.supervisions[0].text) for cut in read_cuts(out, "test")] == [
        ("speaker0", '"ஒன்று 0'),
        ("speaker1", '"ஒன்று 1'),
    ]
    cut = read_cuts(out, "train")[0]
    assert cut.supervisions[0].speaker == "speaker1" and cut.supervisions[0].text == '"ஒன்று 1'
    assert cut.sampling_rate == 48000 and cut.load_audio().shape == (1, 24000)


def test_commonvoice_sets_with_a_header_alone(tmp_path, caplog):
    root = make_commonvoice(tmp_path / "cv-corpus")
    write_lines(root / "ta/dev.tsv", (root / "ta/dev.tsv").read_text(encoding="utf-8").splitlines()[:1])
    assert speech_corpora.prepare(root, tmp_path / "out", log, kind="commonvoice") == {"ta": {"train": 3, "dev": 1, "test": 2}}
    assert "ta: no usable line in its dev set; it does without" in caplog.text
    write_lines(root / "ta/train.tsv", (root / "ta/train.tsv").read_text(encoding="utf-8").splitlines()[:1])
    with pytest.raises(UserError, match="ta: no usable line in its train set$"):
        speech_corpora.prepare(root, tmp_path / "out", log, kind="commonvoice", languages=["ta"])


def test_cmu_indic_voices_and_files_that_lhotse_would_stop_at(tmp_path, caplog):
    root = make_cmu_indic(tmp_path / "cmu")
    (root / "cmu_indic_guj_dp").rename(root / "cmu_indic_xyz_ab")
    for path in sorted((root / "cmu_indic_hin_ab/wav").iterdir()):
        path.rename(path.with_suffix(".WAV"))
    shutil.rmtree(root / "cmu_indic_guj_kt/wav")
    counts = speech_corpora.prepare(root, tmp_path / "out", log, kind="cmu_indic", skip_bad=True)
    assert {code: sum(by_set.values()) for code, by_set in counts.items()} == {"en-IN": 4, "hi-IN": 16}
    assert "cmu_indic_xyz_ab: not used, as its name says none of the languages" in caplog.text
    shutil.rmtree(root / "cmu_indic_hin_ab")
    with pytest.raises(UserError, match="20 of 20 utterances have problems"):
        speech_corpora.prepare(root, tmp_path / "out", log, kind="cmu_indic")


def test_cmu_indic(tmp_path):
    root = make_cmu_indic(tmp_path / "cmu")
    (root / "cmu_indic_hin_ab/wav/hin_00003.wav").write_bytes(b"")
    table = root / "cmu_indic_guj_kt/etc/txt.done.data"
    with open(table, "a", encoding="utf-8") as stream:
        stream.write(table.read_text(encoding="utf-8").splitlines()[2] + "\n( guj_00004 )\n")
    out = tmp_path / "out"
    counts = speech_corpora.prepare(root, out, log, kind="cmu_indic")
    assert {code: sum(by_set.values()) for code, by_set in counts.items()} == {"gu-IN": 32, "en-IN": 12, "hi-IN": 15}
    problems = (out / "problems.txt").read_text(encoding="utf-8")
    assert "line 21: names the audio of line 3 again" in problems and "line 22: not a line of this table" in problems
    assert all(by_set[split] >= 1 for by_set in counts.values() for split in ("train", "dev", "test"))
    gujarati = {
        split: {cut.supervisions[0].text for cut in read_cuts(out, split) if cut.supervisions[0].language == "gu-IN"}
        for split in ("train", "dev", "test")
    }
    assert not gujarati["train"] & gujarati["test"]
    assert not gujarati["train"] & gujarati["dev"] and counts["gu-IN"]["test"] == 2
    assert {cut.supervisions[0].speaker for cut in read_cuts(out, "train")} == {"hin_ab", "guj_dp", "guj_kt"}


def test_what_is_no_corpus(tmp_path):
    for kind in speech_corpora.EXPECTED:
        with pytest.raises(UserError, match=f"nothing of {kind} found"):
            speech_corpora.prepare(tmp_path, tmp_path / "out", log, kind=kind)
    with pytest.raises(UserError, match="kind=mls"):
        speech_corpora.prepare(tmp_path, tmp_path / "out", log, kind="mls")
    with pytest.raises(UserError, match="no such folder"):
        speech_corpora.prepare(tmp_path / "nowhere", tmp_path / "out", log, kind="fleurs")
