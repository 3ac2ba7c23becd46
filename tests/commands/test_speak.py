"""utils/resynthesize.py as its user meets it: every kind of file in one run, voices, what is never overwritten, mistakes."""

import numpy as np
import pytest
import soundfile
from tiny_units import VOICES, make_pair
from tiny_zerospeech import sentence
from tool_harness import BAD, run_tool, write_awkward_audio

from pyspeech.audio.io import read_audio
from pyspeech.audio.level import rms
from pyspeech.commands import speak as tool
from pyspeech.errors import UserError
from pyspeech.units.checkpoint import save_model, save_pair
from pyspeech.units.resynthesis import resynthesize


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models ñ")
    pair = make_pair()
    save_pair(folder / "pair", *pair)
    save_pair(folder / "single", *make_pair(voices=["only"]))
    save_model(folder / "plain", pair[0].model, pair[0].speakers, pair[0].features)
    return folder


@pytest.fixture
def audio(tmp_path):
    path = tmp_path / "a b.wav"
    soundfile.write(path, sentence((150, 1.1), np.random.default_rng(1))[:8000], 16000)
    return path


def run(*arguments):
    return tool.main([str(argument) for argument in arguments])


def test_every_kind_of_file_in_one_run(models, tmp_path):
    folder, output = tmp_path / "awkward ñ", tmp_path / "new" / "spoken"
    folder.mkdir()
    seconds = write_awkward_audio(folder, 0.3 * sentence((150, 1.1), np.random.default_rng(0)))
    done = run_tool("resynthesize", folder, "--model", models / "pair", "--speaker", VOICES[1], "-o", output)
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (
        len(errors) == 4
        and all(name in line for name, line in zip(BAD, errors, strict=False))
        and "3 of 8 recordings" in errors[3]
    )
    assert f"s of audio in the voice of {VOICES[1]}; computed in" in done.stderr and "real-time factor" in done.stderr
    assert {path.stem for path in output.iterdir()} == set(seconds)
    for stem, length in seconds.items():
        information = soundfile.info(str(output / f"{stem}.wav"))
        assert (information.samplerate, information.channels, information.subtype) == (16000, 1, "PCM_16")
        assert information.duration == pytest.approx(length, abs=0.01)
        made, given = (read_audio(path / f"{stem}.wav", 16000)[0] for path in (output, folder))
        assert rms(made) == pytest.approx(rms(given), rel=0.01, abs=1e-4)


def test_what_the_library_gives(models, audio, tmp_path):
    assert run(audio, "--model", models / "pair", "--speaker", VOICES[0], "-o", tmp_path / "out", "--seed", 3) == 0
    made, _ = soundfile.read(str(tmp_path / "out" / "a b.wav"))
    expected = resynthesize(*make_pair(), read_audio(audio)[0], VOICES[0], seed=3)
    np.testing.assert_allclose(made, expected, atol=1.01 / 32768)


def test_a_single_voice_needs_no_name(models, audio, tmp_path):
    assert run(audio, "--model", models / "single", "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / "a b.wav").is_file()


def test_recordings_are_not_overwritten(models, audio, tmp_path, monkeypatch):
    before = audio.read_bytes()
    for output in (tmp_path, tmp_path / "sub" / ".."):
        with pytest.raises(UserError, match="is one of the recordings; choose another folder"):
            run(audio, "--model", models / "single", "-o", output)
    assert audio.read_bytes() == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--model", "{models}/single", "--seed", "9" * 23], "--seed 99999999999999999999999: expected less than 2**63"),
        (["--model", "{models}/pair"], "--speaker: not given; the voices of {models}/pair are V001, Žluťoučký 2"),
        (["--model", "{models}/pair", "--speaker", "S1"], "--speaker: 'S1'; the voices of {models}/pair are V001, Žluťoučký 2"),
        (["--model", "{models}/plain"], "--model {models}/plain: no vqvae/model.pt with inverter/model.pt in it"),
        (["--model", "{models}"], "choose one of {models}/pair, {models}/single"),
    ],
)
def test_mistakes_are_one_line(models, audio, tmp_path, arguments, message):
    with pytest.raises(UserError) as error:
        run(audio, *(text.format(models=models) for text in arguments), "-o", tmp_path / "out")
    assert message.format(models=models) in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()
