"""The layout of ADD 2022: what is found wherever it lies, kept, left out, and what stops."""

import logging
import os
import shutil

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts, write_audio
from tool_harness import one_line_error

from local.add2022 import add2022
from pyspeech.errors import UserError
from pyspeech.spoof.formats import labels_of
from pyspeech.spoof.label_files import read_labels

log = logging.getLogger("test")
LETTERS = {"train": "T", "dev": "D", "adapt": "A", "eval": "E"}
FOLDERS = {"train": "ADD_train_dev/train", "dev": "ADD_train_dev/dev", "adapt": "track1adp_out", "eval": "track1_eval"}
LABELS = {
    "train": "ADD_train_dev/label/train_label.txt",
    "dev": "ADD_train_dev/label/dev_label.txt",
    "adapt": "track1adp_out/label.txt",
}


def make_corpus(root, each=14):
    for part, folder in FOLDERS.items():
        lines = []
        for number in range(each):
            name = f"ADD_{LETTERS[part]}_{number:08d}.wav"
            write_audio(root / folder / name, seed=number)
            lines.append(f"{name} {'genuine' if number % 7 == 0 else 'fake'}")
        if part in LABELS:
            (root / LABELS[part]).parent.mkdir(exist_ok=True)
            (root / LABELS[part]).write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("add") / "ADD 2022 é")


ALL = {**{part: {"genuine": 2, "fake": 12} for part in ("train", "dev", "adapt")}, "eval": {"unlabelled": 14}}


def test_official_layout(made, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        assert add2022.prepare(made, tmp_path, log) == ALL
    for part in LABELS:
        assert labels_of(read_cuts(tmp_path, part)) == read_labels(made / LABELS[part])
    first = read_cuts(tmp_path, "train")[0]
    supervision = first.supervisions[0]
    assert first.id == supervision.id == "ADD_T_00000000" and supervision.text == "genuine"
    assert (supervision.speaker, supervision.language) == ("-", "zh")
    assert supervision.custom == {"attack": "-", "condition": "-"}
    assert first.num_samples == 8000 and np.array_equal(
        first.load_audio()[0], soundfile.read(str(made / FOLDERS["train"] / "ADD_T_00000000.wav"), dtype="float32")[0]
    )
    assert all(cut.supervisions[0].text is None for cut in read_cuts(tmp_path, "eval"))
    for words in ("no label file of the eval set", "train: 2 genuine and 12 fake utterances; the release has 3012 and"):
        assert words in caplog.text
    assert not (tmp_path / "problems.txt").exists()


def test_prepared_twice_gives_the_same_bytes(made, tmp_path):
    for name in ("a", "b"):
        add2022.prepare(made, tmp_path / name, log)
    assert all(
        (tmp_path / "a" / f"{part}.jsonl.gz").read_bytes() == (tmp_path / "b" / f"{part}.jsonl.gz").read_bytes()
        for part in LETTERS
    )


@pytest.mark.parametrize(
    "moves, given",
    [
        ({}, "."),
        ({"ADD_train_dev/train": "ADD_train_dev/train/wav"}, "."),
        ({"ADD_train_dev": "some data/ADD_train_dev"}, "."),
        ({"ADD_train_dev/label": "ADD_train_dev/labels"}, "."),
        ({"track1adp_out": "ADD/track1adp_out/wavs"}, "."),
        ({"ADD_train_dev/train": "Train", "ADD_train_dev/dev": "DEV"}, "."),
        ({"track1_eval": "track1_test"}, "."),
        ({"ADD_train_dev/dev/ADD_D_00000000.wav": "ADD_train_dev/dev/a/ADD_D_00000000.wav"}, "."),
    ],
)
def test_folders_are_found_wherever_they_lie(corpus, tmp_path, moves, given):
    for source, target in moves.items():
        shutil.move(corpus / source, corpus / "moved")
        (corpus / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(corpus / "moved", corpus / target)
    assert add2022.prepare(corpus / given, tmp_path / "out", log) == ALL


@pytest.mark.parametrize("given", ["ADD_train_dev", "ADD_train_dev/train", "ADD_train_dev/dev"])
def test_given_a_folder_too_deep(made, tmp_path, given, caplog):
    counts = add2022.prepare(made / given, tmp_path, log)
    assert set(counts) == {"train", "dev"}
    assert "no audio of the adapt set; going on without it" in caplog.text


def test_links_hidden_folders_and_capitals(made, tmp_path):
    """Labels are found wherever audio is, and nowhere else."""
    corpus = tmp_path / "linked"
    corpus.mkdir()
    for name in ("ADD_train_dev", "track1adp_out", "track1_eval"):
        (corpus / name).symlink_to(made / name)
    assert add2022.prepare(corpus, tmp_path / "out", log) == ALL
    corpus = shutil.copytree(made, tmp_path / "copied")
    (corpus / LABELS["train"]).rename(corpus / "ADD_train_dev/label/Train_Label.TXT")
    (corpus / "ADD_train_dev/label/.ipynb_checkpoints").mkdir()
    shutil.copy(made / LABELS["train"], corpus / "ADD_train_dev/label/.ipynb_checkpoints/train_label-checkpoint.txt")
    assert add2022.prepare(corpus, tmp_path / "out", log) == ALL


def test_a_corpus_whose_name_is_a_set_s(made, tmp_path):
    corpus = shutil.copytree(made, tmp_path / "all/my_test")
    shutil.copytree(made, tmp_path / "all/other")
    assert add2022.prepare(corpus, tmp_path / "out", log) == ALL
    (corpus / LABELS["train"]).unlink()
    with pytest.raises(UserError, match="my_test: 14 audio files of the train set .* but no label file"):
        add2022.prepare(corpus, tmp_path / "out", log)
    shutil.rmtree(corpus / "ADD_train_dev/train")
    shutil.rmtree(corpus / "ADD_train_dev/dev")
    with pytest.raises(UserError, match="my_test: no audio in a folder train"):
        (corpus / "label").mkdir()
        add2022.prepare(corpus, tmp_path / "out", log)


def test_labels_of_the_eval_set_that_come_later(corpus, tmp_path, caplog):
    add2022.prepare(corpus, tmp_path, log)
    assert "--force --stage prepare --stop-stage prepare" in caplog.text


def rename(corpus, part, changes):
    """Rename files of a set, {file: new file}, in its folder and in its labels."""
    for name, new in changes.items():
        (corpus / FOLDERS[part] / new).parent.mkdir(exist_ok=True)
        (corpus / FOLDERS[part] / name).rename(corpus / FOLDERS[part] / new)
        if part in LABELS:
            (corpus / LABELS[part]).write_text((corpus / LABELS[part]).read_text().replace(name, new))


def test_names_with_spaces_and_marks_are_those_of_the_labels(corpus, tmp_path):
    odd = {
        "ADD_T_00000000.wav": "a  b.wav",
        "ADD_T_00000001.wav": "c .wav",
        "ADD_T_00000002.wav": "d\u3000e.wav",
        "ADD_T_00000003.wav": "f\u00a0g.wav",
        "ADD_T_00000004.wav": "h.mp3.wav",
        "ADD_T_00000005.wav": "u\u0308.wav",
    }
    rename(corpus, "train", odd)
    label_file = corpus / LABELS["train"]
    label_file.write_text(label_file.read_text().replace("u\u0308", "\u00fc"))  # composed, unlike the file
    rename(corpus, "eval", {"ADD_E_00000000.wav": "e  0 .wav"})
    assert add2022.prepare(corpus, tmp_path / "out", log) == ALL and not (tmp_path / "out/problems.txt").exists()
    names = {cut.id: cut for cut in read_cuts(tmp_path / "out", "train")}
    assert set(names) > {"a b", "c", "d e", "f g", "h.mp3", "\u00fc"}
    assert names["a b"].supervisions[0].text == "genuine"
    assert names["\u00fc"].load_audio().shape == (1, 8000)
    assert read_cuts(tmp_path / "out", "eval")[-1].id == "e 0"


def test_names_that_are_the_same_but_for_spaces(corpus, tmp_path):
    rename(corpus, "eval", {"ADD_E_00000000.wav": "a b.wav", "ADD_E_00000001.wav": "a  b.wav"})
    assert add2022.prepare(corpus, tmp_path / "out", log)["eval"] == {"unlabelled": 12}
    problems = (tmp_path / "out/problems.txt").read_text().splitlines()
    assert len(problems) == 2 and all("same name as" in line for line in problems)


def test_names_that_are_not_utf8(corpus, tmp_path, caplog):
    for part in ("train", "eval"):
        folder = os.fsencode(corpus / FOLDERS[part])
        os.rename(folder + f"/ADD_{LETTERS[part]}_00000003.wav".encode(), folder + b"/\xfc3.wav")
    counts = add2022.prepare(corpus, tmp_path / "out", log)
    assert counts["train"] == {"genuine": 2, "fake": 11} and counts["eval"] == {"unlabelled": 13}
    problems = (tmp_path / "out/problems.txt").read_text()
    assert problems.count("\\xfc3.wav: its name is not UTF-8") == 2 and "ADD_T_00000003: label without audio" in problems
    assert "track1_eval/\\xfc3.wav: its name is not UTF-8" in caplog.text


def labelled(corpus, lines, *files):
    """Add files to train and lines to its labels; {file with its last folder: (id, kind)} of those that are prepared."""
    for seed, name in enumerate(files):
        write_audio(corpus / FOLDERS["train"] / name, seed=100 + seed)
    with open(corpus / LABELS["train"], "a") as stream:
        stream.write("".join(f"{line}\n" for line in lines))
    add2022.prepare(corpus, corpus.parent / "out", log)
    return {
        "/".join(cut.recording.sources[0].source.split("/")[-2:]): (cut.id, cut.supervisions[0].text)
        for cut in read_cuts(corpus.parent / "out", "train")
        if not cut.id.startswith("ADD_T")
    }


@pytest.mark.parametrize(
    "lines, files, expected, problems",
    [
        (
            ["s1/1.wav genuine", "s2/1.wav fake"],
            ["s1/1.wav", "s2/1.wav"],
            {"s1/1.wav": ("s1/1", "genuine"), "s2/1.wav": ("s2/1", "fake")},
            0,
        ),
        (
            ["1.wav genuine", "./s2/1.wav fake"],
            ["1.wav", "s2/1.wav"],
            {"train/1.wav": ("1", "genuine"), "s2/1.wav": ("./s2/1", "fake")},
            0,
        ),
        (["elsewhere/s1/1.wav genuine"], ["s1/1.wav"], {"s1/1.wav": ("1", "genuine")}, 0),  # one of each: no question
        (["s1/1.wav genuine", "s2/1.wav fake"], ["s1/1.wav"], {"s1/1.wav": ("1", "genuine")}, 1),
        (["s1/1.wav genuine"], ["s1/1.wav", "s2/1.wav"], {"s1/1.wav": ("s1/1", "genuine")}, 1),
        (["s1/1.wav genuine", "s3/1.wav fake"], ["s1/1.wav", "s2/1.wav"], {"s1/1.wav": ("s1/1", "genuine")}, 2),
        (["1.wav fake"], ["s1/1.wav", "s2/1.wav"], {}, 3),
        (["s1/1.wav genuine", "s2/1.wav fake"], ["1.wav"], {}, 3),
        (["s1/1.wav genuine"], ["s1/1.wav", "s1/1.flac"], {}, 3),
        ([], ["s1/1.wav", "s2/1.wav"], {}, 2),
    ],
)
def test_names_that_are_the_same_in_several_folders(corpus, lines, files, expected, problems):
    assert labelled(corpus, lines, *files) == expected
    listing = corpus.parent / "out/problems.txt"
    assert len(listing.read_text().splitlines() if listing.exists() else []) == problems


def test_copies_do_not_replace_each_other(corpus, tmp_path):
    train = corpus / FOLDERS["train"]
    for seed, name in enumerate(("a b", "a_b", "a  b_")):
        write_audio(train / f"{name}.wav", channels=2, seed=seed)
    with open(corpus / LABELS["train"], "a") as stream:
        stream.write("a b.wav genuine\na_b.wav fake\na b_.wav fake\n")
    add2022.prepare(corpus, tmp_path / "out", log)
    found = {cut.id: cut for cut in read_cuts(tmp_path / "out", "train")}
    assert found["a_b"].recording.sources[0].source.endswith("/mixed/train/a_b.wav")
    for name, file in (("a b", "a b"), ("a_b", "a_b"), ("a b_", "a  b_")):
        expected = soundfile.read(str(train / f"{file}.wav"))[0].mean(axis=1)
        assert np.abs(found[name].load_audio()[0] - expected).max() < 2 / 32768


def test_samples_that_are_no_sound(corpus, tmp_path):
    noise = np.random.default_rng(0).standard_normal(8000)
    late = 0.1 * noise
    late[-1] = np.inf
    for number, (samples, subtype) in enumerate(
        (
            (np.nan * noise, "FLOAT"),
            (1e25 * noise, "FLOAT"),
            (1e300 * noise, "DOUBLE"),
            (2e4 * noise, "FLOAT"),
            (late, "FLOAT"),
        ),
        1,
    ):
        soundfile.write(str(corpus / FOLDERS["train"] / f"ADD_T_{number:08d}.wav"), samples, 16000, subtype=subtype)
    assert add2022.prepare(corpus, tmp_path / "out", log)["train"] == {"genuine": 2, "fake": 8}
    problems = (tmp_path / "out/problems.txt").read_text().splitlines()
    assert [line.split("/")[-1].split(": has samples that are not finite or beyond 1e+06")[0] for line in problems] == [
        f"ADD_T_{number:08d}.wav" for number in (1, 2, 3, 5)
    ]


def test_sets_that_are_missing_and_labels_of_the_eval_set(corpus, tmp_path, caplog):
    add2022.prepare(corpus, tmp_path / "out", log)
    shutil.rmtree(corpus / "track1adp_out")
    shutil.rmtree(corpus / "ADD_train_dev/dev")
    (corpus / "track1_eval/label.txt").write_text(
        "".join(f"ADD_E_{number:08d}.wav {'genuine' if number < 5 else 'fake'}\n" for number in range(14))
    )
    write_audio(corpus / "track2adp_out/ADD_A_00000000.wav")  # of another track
    write_audio(corpus / "track3.2/test/ADD_E_00000000.wav")
    counts = add2022.prepare(corpus, tmp_path / "out", log)
    assert counts == {"train": ALL["train"], "eval": {"genuine": 5, "fake": 9}}
    assert not (tmp_path / "out/dev.jsonl.gz").exists()  # nothing is left of an earlier run
    assert "no audio of the dev set" in caplog.text and "no audio of the adapt set" in caplog.text


def test_audio_that_is_left_out_or_mended(corpus, tmp_path, caplog):
    train, dev = corpus / FOLDERS["train"], corpus / FOLDERS["dev"]
    (train / "ADD_T_00000001.wav").write_bytes(b"")
    (train / "ADD_T_00000002.wav").write_bytes(b"RIFF, but no more")
    data = (train / "ADD_T_00000003.wav").read_bytes()
    (train / "ADD_T_00000003.wav").write_bytes(data[:2000])
    soundfile.write(str(train / "ADD_T_00000004.wav"), np.zeros(4000), 16000)
    (dev / "ADD_D_00000001.wav").unlink()
    write_audio(dev / "ADD_D_00000099.wav")
    write_audio(dev / "ADD_D_00000002.wav", channels=2, seed=3)
    write_audio(dev / "ADD_D_00000003.wav", rate=8000)
    with caplog.at_level(logging.INFO):
        counts = add2022.prepare(corpus, tmp_path / "out", log)
    assert counts["train"] == {"genuine": 2, "fake": 8} and counts["dev"] == {"genuine": 2, "fake": 11}
    problems = (tmp_path / "out/problems.txt").read_text().splitlines()
    assert len(problems) == 6 and all(str(corpus) in line for line in problems)
    for name, words in (
        ("ADD_T_00000001.wav", "empty (0 bytes)"),
        ("ADD_T_00000002.wav", "cannot be read"),
        ("ADD_T_00000003.wav", "truncated"),
        ("ADD_T_00000004.wav", "silent"),
        ("ADD_D_00000001", "label without audio in dev"),
        ("ADD_D_00000099.wav", "audio without a label"),
    ):
        assert len([line for line in problems if name in line and words in line]) == 1, name
    by_name = {cut.id: cut for cut in read_cuts(tmp_path / "out", "dev")}
    stereo = by_name["ADD_D_00000002"]
    assert "/mixed/dev/" in stereo.recording.sources[0].source and stereo.load_audio().shape == (1, 8000)
    expected = soundfile.read(str(dev / "ADD_D_00000002.wav"))[0].mean(axis=1)
    assert np.abs(stereo.load_audio()[0] - expected).max() < 2 / 32768
    assert by_name["ADD_D_00000003"].sampling_rate == 8000
    assert "1 fake at 8000 Hz, " in caplog.text and "gives the class away" in caplog.text


def test_more_than_isolated_problems_stop_unless_skipped(corpus, tmp_path):
    for number in range(1, 13):
        (corpus / FOLDERS["train"] / f"ADD_T_{number:08d}.wav").write_bytes(b"")
    with pytest.raises(UserError, match="12 of 56 utterances have problems.*skip_bad=true"):
        add2022.prepare(corpus, tmp_path / "out", log)
    with pytest.raises(UserError, match="no usable fake utterance in train.*problems.txt"):
        (corpus / FOLDERS["train"] / "ADD_T_00000013.wav").unlink()
        add2022.prepare(corpus, tmp_path / "out", log, skip_bad=True)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda root: shutil.rmtree(root / FOLDERS["train"]), "no audio in a folder train; expected ADD_train_dev/train"),
        (
            lambda root: (root / LABELS["train"]).unlink(),
            r"14 audio files of the train set .* but no label file; expected "
            "label/train_label.txt",
        ),
        (lambda root: (root / LABELS["adapt"]).unlink(), "of the adapt set .* expected label.txt"),
        (lambda root: (root / LABELS["train"]).write_text("ADD_T_00000000.wav\n"), "train_label.txt:1: 'ADD_T_0"),
        (lambda root: (root / LABELS["dev"]).write_text("ADD_D_00000000.wav bonne\n"), "dev_label.txt:1: .* is no label"),
        (
            lambda root: (root / LABELS["dev"]).write_text("a.wav fake\na.wav genuine\n"),
            "dev_label.txt:2: utterance 'a' is there twice",
        ),
        (lambda root: shutil.copy(root / LABELS["dev"], root / "dev_label.txt"), "2 label files of the dev set"),
        (lambda root: shutil.rmtree(root), "no such folder; expected one with ADD_train_dev"),
    ],
)
def test_a_corpus_that_cannot_be_used(corpus, tmp_path, change, message):
    change(corpus)
    with one_line_error(message):
        add2022.prepare(corpus, tmp_path / "out", log)


@pytest.mark.parametrize(
    "name, part",
    [
        ("train", "train"),
        ("ADD_train_dev", None),
        ("track1adp_out", "adapt"),
        ("dev_label.txt", "dev"),
        ("label", None),
        ("contest", None),
        ("Track1_Test", "eval"),
    ],
)
def test_names_of_sets(name, part):
    assert add2022.set_of(name) == part
