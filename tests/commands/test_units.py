"""utils/encode_units.py as its user meets it: every kind of file in one run, formats, where units go, mistakes."""

import itertools
import json
import sys
import warnings

import numpy as np
import pytest
import soundfile
from tiny_units import make_pair
from tiny_zerospeech import VOICES, sentence
from tool_harness import BAD, as_new, run_tool, write_awkward_audio

from pyspeech import compat
from pyspeech.audio.io import read_audio
from pyspeech.commands import score_bitrate, units as encode_units
from pyspeech.errors import UserError
from pyspeech.units.checkpoint import save_model, save_pair
from pyspeech.units.encoding import encode
from pyspeech.units.features_files import open_features, read_features


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models ñ")
    pair = make_pair()
    save_pair(folder / "pair", *pair)
    save_model(folder / "plain", pair[0].model, pair[0].speakers, pair[0].features)
    return folder


@pytest.fixture(scope="module")
def audio(tmp_path_factory):
    """A folder of two good files."""
    folder = tmp_path_factory.mktemp("audio ñ 1")
    rng = np.random.default_rng(1)
    for name in ("a", "b c"):
        soundfile.write(folder / f"{name}.wav", sentence(VOICES["V001"], rng)[:12000], 16000)
    return folder


def codes_of(path):
    return encode(make_pair()[0], read_audio(path, 16000)[0])


def run(*arguments):
    return encode_units.main([str(argument) for argument in arguments])


def test_every_kind_of_file_in_one_run(models, tmp_path):
    folder, output = tmp_path / "awkward ñ", tmp_path / "new" / "units"
    folder.mkdir()
    seconds = write_awkward_audio(folder, sentence(VOICES["V002"], np.random.default_rng(0)))
    done = run_tool("encode_units", folder, "--model", models / "plain", "-o", output, "--device", "cpu")
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (
        len(errors) == 4
        and all(name in line for name, line in zip(BAD, errors, strict=False))
        and "3 of 8 recordings" in errors[3]
    )
    assert "5 recordings" in done.stderr.splitlines()[-2] and "real-time factor" in done.stderr
    found = {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in output.iterdir()
    }
    assert set(found) == set(seconds)
    for stem, (*units, summary) in found.items():
        assert summary == {
            "recording": stem,
            "seconds": pytest.approx(seconds[stem], abs=1e-3),
            "units": len(units),
            "distinct": len({unit["code"] for unit in units}),
            "codes": 16,
        }
        assert units[0]["start"] == 0 and units[-1]["end"] == summary["seconds"] and len(units) >= 1
        assert all(first["end"] == second["start"] for first, second in zip(units, units[1:], strict=False))
        assert [unit["code"] for unit in units] == codes_of(folder / f"{stem}.wav")[0].tolist()
        assert all(unit["recording"] == stem for unit in units)


@pytest.mark.parametrize("format", ["text", "onehot", "vectors"])
def test_formats_in_files(models, audio, tmp_path, format):
    assert run(audio, "--model", models / "pair", "--format", format, "-o", tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b c.txt"}
    for name in ("a", "b c"):
        codes, vectors = codes_of(audio / f"{name}.wav")
        path = tmp_path / f"{name}.txt"
        if format == "text":
            assert path.read_text() == " ".join(map(str, codes)) + "\n"
        else:
            rows = np.loadtxt(path, dtype=np.float32)
            np.testing.assert_array_equal(rows, np.eye(16)[codes] if format == "onehot" else vectors)
            assert len(read_features(path).values) == len(codes)  # the reader of the challenge's files takes it


def test_a_table_of_all(models, audio, tmp_path):
    import kaldiio

    (tmp_path / "wav.scp").write_text(f"first {audio}/a.wav\nžluť {audio}/b c.wav\n", encoding="utf-8")
    output = tmp_path / "units ñ 1"
    arguments = [tmp_path / "wav.scp", "--model", models / "pair", "--format", "ark", "-o", output]
    assert run(*arguments) == 0
    assert {path.name for path in output.iterdir()} == {"units.ark", "units.scp"}
    table = kaldiio.load_scp(str(output / "units.scp"))
    assert list(table) == ["first", "žluť"]
    for name, file in (("first", "a"), ("žluť", "b c")):
        vectors = codes_of(audio / f"{file}.wav")[1]
        assert table[name].dtype == np.float32
        np.testing.assert_array_equal(table[name], vectors)
        np.testing.assert_array_equal(open_features(output / "units.scp")(name).values, vectors)
    before = (output / "units.ark").read_bytes()
    (tmp_path / "wav.scp").write_text(f"bad /nowhere.wav\nlast {audio}/a.wav\n", encoding="utf-8")
    assert run(*arguments) == 1 and list(kaldiio.load_scp(str(output / "units.scp"))) == ["last"]
    (tmp_path / "wav.scp").write_text("bad /nowhere.wav\n", encoding="utf-8")
    with pytest.raises(UserError, match="no table, as no recording could be encoded"):
        run(*arguments)
    assert list(kaldiio.load_scp(str(output / "units.scp"))) == ["last"] and (output / "units.ark").read_bytes() != before


def test_a_table_of_some_is_not_left(models, audio, tmp_path, interrupt):
    calls = interrupt("pyspeech.units.encoding.encode_blocks")
    (tmp_path / "wav.scp").write_text(f"a {audio}/a.wav\nb {audio}/a.wav\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "wav.scp", "--model", models / "plain", "--format", "ark", "-o", tmp_path / "o")
    assert len(calls) == 2 and list((tmp_path / "o").iterdir()) == []


def test_what_has_no_place_in_a_table(models, audio, tmp_path):
    for arguments, message in (
        ([], "--format ark: expected -o DIR"),
        (["-o", tmp_path], "^'b c' cannot be the name of an utterance in a Kaldi table"),
    ):
        with pytest.raises(UserError, match=message):
            run(audio, "--model", models / "plain", "--format", "ark", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_on_the_screen(models, audio, capsys):
    model = models / "plain"
    assert run(audio, "--model", model, "--format", "text") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "a\t" + " ".join(map(str, codes_of(audio / "a.wav")[0])) and second.startswith("b c\t")
    run(audio, "--model", model, "--format", "onehot")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# a" and "# b c" in lines and set(lines[1].split()) == {"0", "1"} and len(lines[1].split()) == 16
    run(audio / "a.wav", "--model", model, "--format", "onehot")
    lines = capsys.readouterr().out.splitlines()
    assert (
        np.array(" ".join(lines).split(), int).reshape(-1, 16).argmax(axis=1).tolist() == codes_of(audio / "a.wav")[0].tolist()
    )
    run(audio, "--model", model)
    assert [json.loads(line)["recording"] for line in capsys.readouterr().out.splitlines()].count("b c") > 5


def test_text_for_language_models(models, audio, tmp_path, capsys):
    """Runs of one code are one unit, and their lengths give the codes again."""
    arguments = [audio, "--model", models / "plain", "--merge"]
    assert run(*arguments, "--format", "text") == 0
    text = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    run(*arguments, "-o", tmp_path / "units")
    for name in ("a", "b c"):
        codes = codes_of(audio / f"{name}.wav")[0].tolist()
        assert text[name].split() == [str(code) for code, _ in itertools.groupby(codes)]
        *units, summary = map(json.loads, (tmp_path / "units" / f"{name}.jsonl").read_text().splitlines())
        assert [(unit["code"], unit["frames"]) for unit in units] == [
            (code, len(list(group))) for code, group in itertools.groupby(codes)
        ]
        assert units[0]["start"] == 0 and units[-1]["end"] == summary["seconds"] and summary["units"] == len(units)
        assert open_features(tmp_path / "units")(name).values[:, 0].tolist() == codes
    with pytest.raises(UserError, match="--merge --format onehot: expected json or text"):
        run(*arguments, "--format", "onehot")


def test_scorers_take_what_is_written(models, audio, tmp_path, capsys):
    """One line of codes is no single vector: as many bits as of one-hot vectors."""
    (tmp_path / "list").write_text("a 0.75\nb c 0.75\n")
    found = []
    for format in ("text", "onehot", "json"):
        run(audio, "--model", models / "plain", "--format", format, "-o", tmp_path / format)
        capsys.readouterr()
        score_bitrate.main(["--features", str(tmp_path / format), "--filelist", str(tmp_path / "list")])
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2] and " 0.00 bit/s" not in found[0]


def test_a_channel(models, tmp_path):
    rng = np.random.default_rng(2)
    both = np.stack([sentence(VOICES[name], rng)[:8000] for name in VOICES], axis=1)
    soundfile.write(tmp_path / "two.wav", both, 16000, subtype="FLOAT")
    assert run(tmp_path / "two.wav", "--model", models / "plain", "--format", "text", "-o", tmp_path, "--channel", 1) == 0
    codes = encode(make_pair()[0], both[:, 1].astype(np.float32))[0]
    assert (tmp_path / "two.txt").read_text().split() == list(map(str, codes))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["--model", "{models}"],
            "--model {models}: no model.pt or vqvae/model.pt with inverter/model.pt in it; "
            "choose one of {models}/pair, {models}/plain",
        ),
        (["--model", "{models}/pair/inverter"], "/pair/inverter/model.pt: holds a model of kind inverter; expected vqvae"),
        (["--model", "/nowhere"], "--model /nowhere: no such file or folder"),
        (["/nowhere.wav", "--model", "{models}/plain"], "/nowhere.wav: no such file or folder"),
    ],
)
def test_mistakes_are_one_line(models, audio, arguments, message):
    with pytest.raises(UserError) as error:
        run(audio, *(text.format(models=models) for text in arguments))
    assert message.format(models=models) in str(error.value) and "\n" not in str(error.value)


def test_no_gpu(models, audio, monkeypatch):
    monkeypatch.delenv("PYSPEECH_DEVICE")
    monkeypatch.setattr("torch.cuda.is_available", lambda: warnings.warn("a reason"))
    monkeypatch.setitem(sys.modules, "pyspeech.compat", as_new(compat))
    with pytest.raises(UserError, match="--device cuda: no GPU that torch can use .a reason.; use cpu or auto"):
        run(audio, "--model", models / "plain", "--device", "cuda")
    assert run(audio / "a.wav", "--model", models / "plain", "--device", "auto") == 0


def test_interrupted(models, audio, interrupt, capsys):
    calls = interrupt("pyspeech.units.encoding.encode_blocks")
    assert run(audio, "--model", models / "plain") == 130 and len(calls) == 2
    assert "interrupted; 1 of 2 recordings are encoded" in capsys.readouterr().err
