"""UnitEncoder, Units and UnitSynthesizer: paths, arrays and tensors, one and many; files; the same as the commands'."""

import numpy as np
import pytest
import soundfile
import torch
from tiny_units import VOICES, make_pair
from tiny_zerospeech import VOICES as SENTENCES, sentence
from tool_harness import one_line_error

from pyspeech.audio.io import read_audio
from pyspeech.commands import speak as resynthesize, units as encode_units
from pyspeech.units.api import FORMATS, UnitEncoder, Units, UnitSynthesizer
from pyspeech.units.checkpoint import save_pair


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models ñ")
    save_pair(folder, *make_pair())
    return folder


@pytest.fixture(scope="module")
def encoder(model):
    return UnitEncoder.load(model, device="cpu")


@pytest.fixture(scope="module")
def synthesizer(model):
    return UnitSynthesizer.load(model, device="cpu")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """At the model's rate, and at another with two channels."""
    folder, rng = tmp_path_factory.mktemp("audio ñ 1"), np.random.default_rng(1)
    speech = sentence(SENTENCES["V001"], rng)[:12000]
    soundfile.write(folder / "a.wav", speech, 16000)
    soundfile.write(folder / "b.flac", np.stack([speech, 0 * speech], axis=1), 44100)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_command_writes(model, encoder, files, tmp_path, format):
    options = ["--model", model, "--format", format, "-o", tmp_path / "tool"]
    for path, units in zip(files, encoder.encode(files), strict=True):
        assert encode_units.main([str(argument) for argument in [path, *options]]) == 0
        assert units.name == path.stem
        name = "units.ark" if format == "ark" else units.name + FORMATS[format]
        units.save(tmp_path / "library" / name, format)
        assert (tmp_path / "library" / name).read_bytes() == (tmp_path / "tool" / name).read_bytes()


def test_a_table_and_endings(encoder, files, tmp_path):
    import kaldiio

    units = encoder.encode(files[0])
    units.save(tmp_path / "new" / "x.ark")
    table = kaldiio.load_scp(str(tmp_path / "new" / "x.scp"))
    assert list(table) == ["a"]
    np.testing.assert_array_equal(table["a"], units.vectors)
    with one_line_error("x.dat: format ark writes a Kaldi table; expected a path that ends in .ark"):
        units.save(tmp_path / "x.dat", "ark")
    assert not list(tmp_path.glob("x.*"))
    units.save(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text().split() == list(map(str, units.codes))
    with one_line_error("x.wav: its ending names no format; expected one of json"):
        units.save(tmp_path / "x.wav")


def same(first: Units, second: Units):
    return np.array_equal(first.codes, second.codes) and np.array_equal(first.ends, second.ends)


def test_one_and_many_paths_arrays_and_tensors(encoder, synthesizer, files):
    for path in files:
        samples, rate = read_audio(path)
        expected, spoken = encoder.encode(path), synthesizer.resynthesize(path, VOICES[1], seed=2).samples
        assert same(expected, encoder.encode(str(path))) and len(spoken) / 16000 == pytest.approx(expected.duration)
        for audio in (samples, torch.from_numpy(samples)):
            assert same(expected, encoder.encode(audio, rate))
            np.testing.assert_array_equal(synthesizer.resynthesize(audio, VOICES[1], rate, seed=2).samples, spoken)
        assert all(same(expected, units) for units in encoder.encode([path, samples], rate))
        for speech in synthesizer.resynthesize([path, samples], VOICES[1], rate, seed=2):
            np.testing.assert_array_equal(speech.samples, spoken)
    assert encoder.encode([]) == []


def test_what_units_hold(encoder, files):
    units = encoder.encode(files[0])
    assert units.duration == 0.75 and units.frame_seconds == encoder.frame_seconds == pytest.approx(0.04)
    assert units.codes.dtype == np.int64 and 0 <= units.codes.min() <= units.codes.max() < encoder.num_codes == 16
    np.testing.assert_array_equal(units.starts[1:], units.ends[:-1])
    assert units.vectors.shape == (len(units.codes), 8)


def test_speech_is_what_the_command_writes(model, synthesizer, files, tmp_path):
    options = ["--model", model, "--speaker", VOICES[0], "-o", tmp_path / "tool", "--seed", 3]
    assert resynthesize.main([str(argument) for argument in [files[1], *options]]) == 0
    speech = synthesizer.resynthesize(files[1], VOICES[0], seed=3)
    speech.save(tmp_path / "library.wav")
    assert (tmp_path / "library.wav").read_bytes() == (tmp_path / "tool" / "b.wav").read_bytes()
    speech.save(tmp_path / "library.flac")
    wav, flac = (read_audio(tmp_path / f"library.{kind}")[0] for kind in ("wav", "flac"))
    np.testing.assert_allclose(flac, wav, atol=1.01 / 32768)  # libsndfile rounds to integers in two ways
    with one_line_error("x.mp3: its ending names no format; expected one of WAV"):
        speech.save(tmp_path / "x.mp3")


def test_units_are_spoken(synthesizer, files):
    units = synthesizer.encoder.encode(files[0])
    speech = synthesizer.speak(units, VOICES[0])
    assert speech.sampling_rate == 16000 and len(speech.samples) == 12000 and speech.samples.any()
    for codes in (units.codes, units.codes.tolist(), torch.from_numpy(units.codes).int()):
        found = synthesizer.speak(codes, VOICES[0]).samples
        assert len(found) == len(units.codes) * 640
        np.testing.assert_array_equal(found[:11000], speech.samples[:11000])
    for found in synthesizer.speak([units, units], VOICES[0]):
        np.testing.assert_array_equal(found.samples, speech.samples)
    assert not np.array_equal(synthesizer.speak(units, VOICES[1]).samples, speech.samples)
    np.testing.assert_array_equal(UnitSynthesizer(*make_pair(voices=["only"])).speak(units).samples.shape, (12000,))


def test_what_does_not_fit(encoder, synthesizer, files, tmp_path):
    for kind in (UnitEncoder, UnitSynthesizer):
        with one_line_error("^model: none given, and no .* is bundled; train one with the recipe zerospeech"):
            kind.load()
        with one_line_error(f"^model {tmp_path}: no "):
            kind.load(tmp_path)
    with one_line_error("^speaker: none given; expected one of V001, "):
        synthesizer.resynthesize(files[0])
    with one_line_error("^speaker: 'S1' is not a voice of the model; expected one of V001, "):
        synthesizer.speak([1, 2], "S1")
    for codes, message in (
        ([], r"shape \(0,\)"),
        ([0.5], "float"),
        ([[1]], r"shape \(1, 1\)"),
        ([3, 16], "codes from 3 to 16; expected 0 to 15"),
        ([-1], "from -1"),
    ):
        with one_line_error(f"^units: .*{message}"):
            synthesizer.speak(codes, VOICES[0])
    with one_line_error("^units: the path a.wav; expected Units or codes: resynthesize speaks a recording"):
        synthesizer.speak("a.wav", VOICES[0])
    with one_line_error("load a file with UnitEncoder.load"):
        UnitEncoder(str(tmp_path))
    for audio in (np.zeros(0), files[0].with_name("absent.wav")):
        with one_line_error("samples|No such file"):
            encoder.encode(audio)
        with one_line_error("samples|No such file"):
            synthesizer.resynthesize(audio, VOICES[0])
