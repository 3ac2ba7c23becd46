"""The public names: instant, the same from both places, and detectors that need no torch."""

import json
import multiprocessing
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tool_harness import ENVIRONMENT, run_tool

import pyspeech
import pyspeech.asr
import pyspeech.sad
import pyspeech.spoof
import pyspeech.units
from pyspeech import FakeDetector, SpeechDetector, anonymize
from pyspeech.errors import UserError
from pyspeech.sad.formats import FORMATS
from pyspeech.spoof.mcadams import anonymize as anonymize_samples

RATE = 16000


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """(path, samples (N,) float32) of three bursts of buzz in noise."""
    rng = np.random.default_rng(3)
    times = np.arange(6 * RATE) / RATE
    buzz = np.sign(np.sin(2 * np.pi * 130 * times)) * np.sin(2 * np.pi * 700 * times)
    samples = 0.2 * buzz * (np.sin(2 * np.pi * 0.5 * times) > 0) + 1e-3 * rng.standard_normal(len(times))
    path = tmp_path_factory.mktemp("api") / "a call.wav"
    soundfile.write(path, samples.astype(np.float32), RATE, subtype="FLOAT")
    return path, samples.astype(np.float32)


def run_python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, **options)


def test_importing_is_instant_and_names_are_the_same_everywhere():
    heavy = "[name for name in ('numpy', 'torch', 'scipy', 'soundfile') if name in sys.modules]"
    done = run_python(f"import sys, pyspeech, pyspeech.sad, pyspeech.asr; print({heavy}, 'SpeechDetector' in dir(pyspeech))")
    assert done.stdout == "[] True\n", done.stderr
    for package in (pyspeech.sad, pyspeech.spoof, pyspeech.asr, pyspeech.units):
        for name in package.__all__:
            assert getattr(package, name) is getattr(pyspeech, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        pyspeech.Nothing  # noqa: B018


def test_the_names_of_the_documentation_are_importable():
    sections = (Path(__file__).resolve().parents[1] / "docs/api.md").read_text(encoding="utf-8").partition("## Audio\n")[0]
    names = [name for members in re.findall(r"members: \[(.*)\]", sections) for name in members.split(", ")]
    assert len(names) > 10 and set(names) <= set(pyspeech.__all__)


def test_bundled_detectors_need_no_torch(recording):
    code = """if True:
        import sys
        sys.modules.update(dict.fromkeys(["torch", "lhotse", "omegaconf", "tqdm", "yaml", "kaldiio"]))
        from pyspeech import FakeDetector, SpeechDetector, anonymize
        path = sys.argv[1]
        score = FakeDetector(force=True).score(path)
        print(len(SpeechDetector().detect(path).segments) >= 0, score.decision in ("genuine", "fake"))
        print(anonymize(path).samples.shape)
    """
    done = subprocess.run([sys.executable, "-c", code, recording[0]], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout == f"True True\n(1, {6 * RATE})\n", done.stderr


def test_help_and_all_names_without_torch():
    code = """if True:
        import pydoc, sys
        sys.modules["torch"] = None
        from pyspeech import *
        import pyspeech
        text = pydoc.render_doc(pyspeech, renderer=pydoc.plaintext)
        print("rnnt_loss" in globals(), "class SpeechDetector" in text, Recognizer.__name__)
    """
    done = run_python(code)
    assert done.stdout == "False True Recognizer\n", done.stderr
    assert "rnnt_loss" in pyspeech.__all__


def test_what_needs_torch_names_its_extra(tmp_path):
    code = """if True:
        import sys
        sys.modules["torch"] = None
        import pyspeech
        for make in (
            lambda: pyspeech.rnnt_loss,
            lambda: pyspeech.Recognizer.load(sys.argv[1]),
            lambda: pyspeech.UnitEncoder.load(sys.argv[1]),
            lambda: pyspeech.FakeDetector(device="cuda"),
        ):
            try:
                make()
            except pyspeech.UserError as error:
                print(error)
    """
    (tmp_path / "model.pt").write_bytes(b"")
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout == 4 * "torch is required, but not installed: pip install '.[torch]' in the folder of pyspeech\n", (
        done.stderr
    )


def test_path_array_and_tensor_are_alike(recording):
    import torch

    path, samples = recording
    stereo = np.stack([samples, samples])
    for method in (SpeechDetector(point="words", threshold=0.01).detect, FakeDetector(force=True).score):
        one = method(path)
        many = method([path, samples, torch.from_numpy(samples), stereo], RATE)
        assert len(many) == 4
        for other in (many[0], method(samples, sampling_rate=RATE), *many[1:]):
            for field in ("segments", "scores", "score", "windows"):
                if hasattr(one, field):
                    np.testing.assert_allclose(getattr(other, field), getattr(one, field), atol=1e-5)
        assert one.name == "a call" and many[1].name == "recording 2"
        coarse = torch.from_numpy(samples).bfloat16()  # NumPy has no such type
        assert method(coarse, np.array(RATE)).duration == method((coarse, np.array(RATE))).duration == one.duration


def test_what_is_found_saves_itself_as_the_tools_write_it(recording, tmp_path):
    path, _ = recording
    speech = SpeechDetector().detect(path)
    for name, (_, ending) in FORMATS.items():
        speech.save(tmp_path / f"x{ending}", name)
        done = run_tool("detect_speech", path, "--format", name)
        assert (tmp_path / f"x{ending}").read_text() == done.stdout
    for ending, name in ((".TextGrid", "textgrid"), (".labels.txt", "audacity"), (".txt", "fearless")):
        speech.save(tmp_path / f"by ending{ending}")
        speech.save(tmp_path / "by format", name)
        assert (tmp_path / f"by ending{ending}").read_text() == (tmp_path / "by format").read_text()
    score = FakeDetector(force=True).score(path)
    for name in ("text", "json", "csv", "scores"):
        score.save(tmp_path / "y", name)
        assert (tmp_path / "y").read_text() == run_tool("detect_fake", path, "--force", "--format", name).stdout
    score.save(tmp_path / "y.json", prior=0.9)
    assert json.loads((tmp_path / "y.json").read_text())[0]["p_genuine"] == score.p_genuine(0.9) > score.p_genuine()


def test_a_stream_takes_samples_of_any_rate_and_type(recording):
    """Times do not depend on the rate; a sample that is no number counts as 0; other shapes are refused."""
    _, samples = recording
    detector = SpeechDetector(threshold=0.02)
    assert detector.sampling_rate != RATE
    expected = detector.detect(samples, RATE)
    for whole in (samples, (samples * 32768).astype(np.int16)):
        stream = detector.stream(sampling_rate=RATE)
        found = [stream.add(block) for block in np.array_split(whole, 50)]
        np.testing.assert_allclose(np.concatenate([*found, stream.finish()]), expected.segments, atol=0.021)
        assert stream.seconds == len(samples) / RATE
    with_bad = samples.copy()
    with_bad[1000] = np.nan
    stream = detector.stream(RATE)
    found = np.concatenate([stream.add(with_bad), stream.finish()])
    assert abs(np.diff(found).sum() - np.diff(expected.segments).sum()) < 0.2
    for shape in ((1, 160), (160, 2)):
        with pytest.raises(UserError, match=r"stream: float64 of shape .*; expected floats .*, \(N,\)"):
            detector.stream(RATE).add(np.zeros(shape))
    with pytest.raises(UserError, match="sampling_rate=0"):
        detector.stream(0)


@pytest.mark.parametrize("options", [{}, {"system": "statistical"}])
def test_a_detector_can_be_sent_to_another_process(recording, options):
    path, _ = recording
    detector = SpeechDetector(threshold=0.02, max_speech=1.0, **options)
    copy = pickle.loads(pickle.dumps(detector))
    found, again = detector.detect(path), copy.detect(path)
    np.testing.assert_array_equal(again.segments, found.segments)
    np.testing.assert_array_equal(again.scores, found.scores)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (far,) = pool.map(detector.detect, [path])
    np.testing.assert_array_equal(far.segments, found.segments)


def test_a_detector_of_fakes_can_be_sent_to_another_process(recording):
    path, _ = recording
    detector = FakeDetector(force=True, prior=0.9)
    assert pickle.loads(pickle.dumps(detector)).score(path) == detector.score(path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(detector.score, [path]) == [detector.score(path)]


def test_a_file_that_cannot_be_read_is_named_once(tmp_path):
    for system in (None, "statistical"):
        with pytest.raises(UserError) as error:
            SpeechDetector(system=system).detect(tmp_path / "absent.wav")
        assert str(error.value) == f"{tmp_path / 'absent.wav'}: cannot be read: No such file or directory"


def test_segments_have_no_more_than_their_greatest_length(recording):
    _, samples = recording
    for system in (None, "statistical"):
        detector = SpeechDetector(system=system, threshold=-1000 if system else 0.0, max_speech=0.5)
        segments = detector.detect(samples, RATE).segments
        assert len(segments) > 1 and np.diff(segments).max() <= 0.5


@pytest.mark.parametrize("option", ["min_silence", "min_speech", "pad", "pad_before", "pad_after", "max_speech"])
def test_seconds_are_not_negative(option):
    for value in (-0.1, float("inf")):
        with pytest.raises(UserError, match=f"{option} {value:g}: expected seconds, 0 or more"):
            SpeechDetector(**{option: value})
    with pytest.raises(UserError, match="max_speech 0.01: expected at least 0.1 s, or 0"):
        SpeechDetector(max_speech=0.01)


def test_errors_are_one_line(recording, tmp_path):
    path, samples = recording
    for audio, message in (
        (tmp_path / "absent.wav", "absent.wav"),
        (np.zeros(0), "holds no samples"),
        ("", "recording: an empty path"),
        ({}, "expected a path"),
        (np.zeros((2, 2, 2)), "expected floats"),
    ):
        for method in (SpeechDetector().detect, FakeDetector().score):
            with pytest.raises(UserError, match=message) as error:
                method(audio)
            assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="system 'no'"):
        SpeechDetector(system="no")
    with pytest.raises(UserError, match="a call.wav: is no model.pt"):
        SpeechDetector(model=path)
    with pytest.raises(UserError, match="threshold True: expected a number"):
        SpeechDetector(threshold=True)
    for detector in (SpeechDetector, FakeDetector):
        with pytest.raises(UserError, match="device tpu: no such device"):
            detector(device="tpu")
    with pytest.raises(UserError, match="unknown format 'mp3'"):
        SpeechDetector().detect(path).save(tmp_path / "x", "mp3")
    with pytest.raises(UserError, match="McAdams coefficient -1"):
        anonymize(samples, -1, RATE)


def test_anonymize_and_its_file(recording, tmp_path):
    path, samples = recording
    sound = anonymize(path, 0.7)
    np.testing.assert_allclose(sound.samples[0], anonymize_samples(samples, 0.7, RATE), atol=1e-6)
    assert np.array_equal(anonymize(samples, 0.7, RATE).samples, anonymize_samples(samples, 0.7, RATE))
    integers = (samples * 32768).astype(np.int16)
    floats = anonymize(integers / np.float32(32768), 0.7, RATE).samples
    np.testing.assert_allclose(anonymize(integers, 0.7, RATE).samples, floats, atol=1e-6)
    file, array = anonymize([path, samples], 0.7, RATE)
    np.testing.assert_array_equal(file.samples, sound.samples)
    np.testing.assert_allclose(array.samples, sound.samples[0], atol=1e-6)
    for wrong in (np.zeros(0), np.zeros((2, 2, 2)), {}):
        with pytest.raises(UserError, match="^recording: "):
            anonymize(wrong)
    sound.save(tmp_path / "x.flac")
    assert soundfile.info(tmp_path / "x.flac").frames == len(samples)
    nine = anonymize(np.tile(samples, (9, 1)), 0.7, RATE)
    with pytest.raises(UserError, match=r"nine.flac: FLAC cannot hold 9 channels at \d+ Hz .*; expected .wav"):
        nine.save(tmp_path / "nine.flac")
    assert not list(tmp_path.glob("*nine*"))


def test_streaming_finds_the_same(recording):
    path, samples = recording
    detector = SpeechDetector(threshold=0.02)
    stream = detector.stream()
    import soxr

    found = [stream.add(block) for block in np.array_split(soxr.resample(samples, RATE, stream.sampling_rate), 7)]
    np.testing.assert_allclose(np.concatenate([*found, stream.finish()]), detector.detect(path).segments, atol=0.021)
