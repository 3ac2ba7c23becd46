"""utils/detect_speech.py as its user meets it: every kind of file in one run, formats, errors, and the options."""

import json
import os
import re
import subprocess

import numpy as np
import pytest
import soundfile
from tool_harness import interrupted_at_standard_input, run_tool, tool_command

from pyspeech import SpeechDetector
from pyspeech.audio.io import read_audio, stream_audio
from pyspeech.commands import detect as detect_speech
from pyspeech.errors import UserError
from pyspeech.model_file import newest_model
from pyspeech.sad.config import KIND
from pyspeech.sad.detector import load_detector
from pyspeech.sad.formats import FORMATS, read_hypothesis
from pyspeech.sad.scoring import score_files
from pyspeech.sad.segments import segments_to_frames, tidy

RATE = 8000
BURSTS = [(4.0, 6.5), (9.0, 10.5), (14.0, 18.0)]  # seconds, of the 20 s of `voice`


def voice(rate=RATE):
    """20 s of noise with three bursts that are like speech: harmonics of a pitch that glides as fast as that of voices, 4
    syllables a second."""
    time = np.arange(20 * rate) / rate
    pitch = 120 + 20 * np.sin(2 * np.pi * 2.5 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    harmonics = sum(np.sin(n * phase) / n for n in range(1, 25))
    syllables = (0.5 - 0.5 * np.cos(2 * np.pi * 4 * time)) ** 0.5
    inside = np.zeros(len(time))
    for start, end in BURSTS:
        inside[round(start * rate) : round(end * rate)] = 1
    noise = np.random.default_rng(1).standard_normal(len(time))
    return (0.1 * harmonics * syllables * inside + 0.003 * noise).astype(np.float32)


def run(*arguments, **options):
    """The tool with the statistical system, which takes made-up voices for speech."""
    return run_tool("detect_speech", "--system", "statistical", *arguments, **options)


GAINS = (1e-4, 1e-2, 1, 10)
NOISE_SECONDS = (1, 3, 10, 60)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """A folder with every awkward file, and what one run of the tool over it leaves: (folder, outputs, the process)."""
    folder = tmp_path_factory.mktemp("audio ñ 1")
    random, time = np.random.default_rng(0), np.arange(10 * RATE) / RATE
    signals = {
        "silence": np.zeros(10 * RATE),
        "one": np.ones(1),
        "tone": 0.3 * np.sin(2 * np.pi * 440 * time),
        "constant": np.full(10 * RATE, 0.5),
        "no samples": np.zeros(0),
        **{f"noise {length}": 0.1 * random.standard_normal(length * RATE) for length in NOISE_SECONDS},
        **{f"gain {gain:g}": gain * voice() for gain in GAINS},
    }
    for name, samples in signals.items():
        soundfile.write(folder / f"{name}.wav", samples, RATE, subtype="FLOAT")
    soundfile.write(folder / "pcm.wav", voice(), RATE)
    (folder / "truncated.wav").write_bytes((folder / "pcm.wav").read_bytes()[: 44 + 2 * 12 * RATE])
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("This is a letter, not a recording.\n")
    stereo = np.stack([voice(44100), np.zeros(20 * 44100)], axis=1)
    soundfile.write(folder / "día stereo 44.flac", stereo, 44100)
    soundfile.write(folder / "96k.wav", voice(96000), 96000, subtype="PCM_U8")
    soundfile.write(folder / "lossy.mp3", voice(16000), 16000)
    output = tmp_path_factory.mktemp("labels") / "new" / "folder"
    done = run(folder, "-o", output, "--format", "json", "--scores")
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in output.iterdir()}
    return folder, found, done


def test_a_closed_standard_output_is_no_traceback(tmp_path):
    command = ["bash", "-c", 'exec "$@" >&-', "-", *tool_command("detect_speech", write_bursts(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYSPEECH_ENV": "system"})
    assert done.returncode == 0 and "1 recording" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_bad_files_are_named_and_nothing_else_is_lost(edges):
    folder, found, done = edges
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    bad = ["empty.wav: is empty (0 bytes)", "no samples.wav: holds no samples", "text.wav: cannot be read as audio"]
    assert all(message in line for message, line in zip(bad, errors, strict=False)) and "3 of 20 recordings" in errors[3]
    assert set(found) == {path.stem for path in folder.iterdir()} - {"empty", "no samples", "text"}
    assert "truncated.wav: truncated or damaged: 12.00 s of audio, its header says 20.00 s" in done.stderr
    assert "17 recordings: " in done.stderr and "real-time factor" in done.stderr


@pytest.mark.parametrize("name", ["silence", "one", "tone", "constant", *(f"noise {length}" for length in NOISE_SECONDS)])
def test_no_speech_where_there_is_none(edges, name):
    assert edges[1][name]["speech"] == []


@pytest.mark.parametrize("name", ["gain 1", "truncated", "día stereo 44", "96k", "lossy", "pcm"])
def test_speech_is_found_in_every_kind_of_file(edges, name):
    record = edges[1][name]
    frames = round(record["duration"] / 0.01)
    truth, guess = segments_to_frames(BURSTS, frames), segments_to_frames(np.reshape(record["speech"], (-1, 2)), frames)
    assert abs(record["duration"] - (12 if name == "truncated" else 20)) < 0.1
    assert (truth & guess).sum() > 0.9 * truth.sum() and (guess & ~truth).sum() < 0.3 * truth.sum()
    assert abs(len(record["scores"]) - frames) <= 5 and record["frame_shift"] == 0.01


@pytest.mark.parametrize("gain", GAINS)
def test_gain_does_not_matter(edges, gain):
    assert edges[1][f"gain {gain:g}"]["speech"] == edges[1]["gain 1"]["speech"]


def test_one_call_gives_what_the_tool_gives(edges):
    folder, found, _ = edges
    detect = load_detector("statistical")
    speech = detect(folder / "pcm.wav").segments
    assert np.round(speech, 3).tolist() == found["pcm"]["speech"]
    assert len(tidy(speech, 20, min_speech=2.0)) < len(speech)


def test_formats_options_and_screen(edges, tmp_path):
    folder, found, _ = edges
    done = run(folder / "pcm.wav")
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["SPEAKER", "pcm"]] * len(found["pcm"]["speech"])
    table = tmp_path / "wav.scp"
    table.write_text("".join(f"{name} {folder}/{name}.wav\n" for name in ("pcm", "truncated")))
    done = run(table, "--format", "audacity", "--min-speech", "2", "--pad", "0.25")
    blocks = done.stdout.split("# ")[1:]
    assert [block.splitlines()[0] for block in blocks] == ["pcm", "truncated"]
    times = [tuple(map(float, line.split("\t")[:2])) for line in blocks[0].splitlines()[1:]]
    expected = tidy(np.array(found["pcm"]["speech"]), 20.0, min_speech=2, pad=0.25)
    assert times == [tuple(np.round(pair, 3)) for pair in expected] and len(times) == 2


def test_hypotheses_can_be_scored(edges, tmp_path):
    folder, found, _ = edges
    assert run(folder / "pcm.wav", folder / "silence.wav", "--format", "fearless", "-o", tmp_path).returncode == 0
    assert np.abs(read_hypothesis(tmp_path / "pcm.txt") - found["pcm"]["speech"]).max() <= 0.0051
    assert len(read_hypothesis(tmp_path / "silence.txt")) == 0


def test_channel_standard_input_and_threshold(edges, tmp_path):
    folder, found, _ = edges
    stereo, other = folder / "día stereo 44.flac", tmp_path / "x.wav"
    soundfile.write(other, np.stack([np.zeros(20 * RATE), voice()], axis=1), RATE)
    done = run(other, "--channel", "1")
    assert done.returncode == 0 and done.stdout.count("SPEAKER x 2 ") == len(found["pcm"]["speech"])
    done = run(stereo, "--channel", "1", "--format", "json")
    assert json.loads(done.stdout)["speech"] == [] and done.returncode == 0
    done = run(stereo, "--channel", "2")
    assert done.returncode == 1 and done.stderr == f"error: {stereo}: no channel 2; the file has 2, counted from 0\n"
    with open(folder / "pcm.wav", "rb") as stream:
        done = run("-", "--format", "json", "--threshold", "1000", stdin=stream)
    assert json.loads(done.stdout) == {"recording": "stdin", "duration": 20.0, "speech": []}


def test_low_threshold(edges):
    """It finds more in a recording of speech, and nothing in one of noise; 0 is the default."""
    folder, found, _ = edges
    spoken = {}
    for threshold in ("-1000", "-10", "0"):
        done = run(folder / "noise 60.wav", folder / "pcm.wav", "--format", "csv", f"--threshold={threshold}")
        assert done.returncode == 0 and "noise" not in done.stdout
        spoken[threshold] = load_detector("statistical", threshold=float(threshold))(folder / "pcm.wav").segments
        assert len(spoken[threshold]) == done.stdout.count("pcm")
    assert np.round(spoken["0"], 3).tolist() == found["pcm"]["speech"]
    lengths = [np.diff(speech).sum() for speech in spoken.values()]
    assert lengths[0] >= lengths[1] >= lengths[2] and lengths[0] > lengths[2]
    with pytest.raises(UserError, match="threshold nan"):
        load_detector("statistical", threshold=float("nan"))
    for threshold in (float("nan"), -0.1, 7.0):
        for name in ("threshold", "peak"):
            with pytest.raises(UserError, match=f"{name} {threshold:g}: expected 0 to 1"):
                load_detector(**{name: threshold})


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["absent.wav"], "absent.wav: no such file or folder"),
        (["--scores", "pcm.wav"], "--scores"),
        (["--model", "x", "pcm.wav"], "--model"),
        (["--system", "seg_rnn", "--model", "nowhere", "pcm.wav"], "nowhere"),
        (["-o", "pcm.wav", "pcm.wav"], "-o "),
    ],
)
def test_errors_are_one_line(edges, arguments, message):
    inside = [str(edges[0] / word) if word in ("pcm.wav", "absent.wav", "nowhere") else word for word in arguments]
    done = run(*inside)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and message in done.stderr


def test_names_that_differ_by_a_space(tmp_path):
    """They would be one recording where spaces separate columns."""
    for name in ("my call", "my_call"):
        soundfile.write(tmp_path / f"{name}.wav", voice(), RATE)
    for format in ("rttm", "segments"):
        done = run(tmp_path, "--format", format, "-o", tmp_path / "out")
        assert done.returncode == 1 and done.stderr == (
            f"error: {tmp_path}/my_call.wav: would have the name 'my_call' in --format {format}, and so would "
            f"{tmp_path}/my call.wav; rename one, or choose a format that keeps spaces\n"
        )
    assert not (tmp_path / "out").exists()
    done = run(tmp_path, "--format", "csv")
    assert done.returncode == 0 and {line.split(",")[0] for line in done.stdout.splitlines()[1:]} == {"my call", "my_call"}


def test_what_is_detected_can_be_scored(edges, tmp_path):
    """Whatever the format, on the screen or in files, by the names that detection gives."""
    folder, found, _ = edges
    (tmp_path / "a").mkdir()
    for name in ("a/pcm", "pcm", "my call"):
        soundfile.write(tmp_path / f"{name}.wav", voice(), RATE)
    scores = []
    for format in ("rttm", "segments", "fearless"):
        run(tmp_path / "a", tmp_path / "pcm.wav", tmp_path / "my call.wav", "--format", format, "-o", tmp_path / format)
        shown = run(tmp_path / "a", tmp_path / "pcm.wav", tmp_path / "my call.wav", "--format", format)
        (tmp_path / f"{format}.all").write_text(shown.stdout)
        for hypothesis in (tmp_path / format, tmp_path / f"{format}.all"):
            scores.append(score_files(tmp_path / "rttm", hypothesis, audio=tmp_path)["files"])
    assert all(sorted(files) == ["a_pcm", "my call", f"{tmp_path.name}_pcm"] for files in scores)
    assert max(score["dcf"] for files in scores for score in files.values()) < 0.003  # two decimals in fearless


def test_interrupted(edges, interrupt, capsys):
    interrupt("pyspeech.sad.detector.decided_segments")
    assert detect_speech.main([str(edges[0] / "pcm.wav"), str(edges[0] / "silence.wav")]) == 130
    output = capsys.readouterr()
    assert "interrupted; 1 of 2 recordings are processed" in output.err and "pcm" in output.out


def test_ctrl_c_ends_a_stream_that_stalls(edges):
    """Decided and printed is what a file of so many samples gives."""
    raw = soundfile.read(edges[0] / "pcm.wav", dtype="int16")[0][: 17 * RATE].tobytes()  # within the last burst
    options = ("--system", "statistical", "--stream", "--raw", "--rate", RATE, "-")
    output, messages, status = interrupted_at_standard_input(tool_command("detect_speech", *options), raw)
    with open(edges[0] / "part.raw", "w+b") as stream:
        stream.write(raw)
        stream.seek(0)
        whole = run_tool("detect_speech", *options, stdin=stream)
    os.unlink(edges[0] / "part.raw")
    assert status == 0 and output == whole.stdout and output.count("\n") == len(BURSTS)
    assert "1 recording: 17.00 s of audio" in messages and whole.returncode == 0


def test_help_lists_what_there_is():
    done = run("--help")
    assert done.returncode == 0 and all(name in done.stdout for name in (*FORMATS, "seg_rnn", "--min-silence"))


def test_streaming_equals_whole(edges):
    """The blocks in which a file is read do not show in the result."""
    from pyspeech.sad.statistical import StatisticalConfig, detect, detect_stream

    samples = np.concatenate(list(stream_audio(edges[0] / "96k.wav", RATE)))
    whole = detect(samples, RATE, StatisticalConfig())
    parts = detect_stream(stream_audio(edges[0] / "96k.wav", RATE, block_seconds=0.77), StatisticalConfig())
    assert np.array_equal(whole.decisions, parts.decisions)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The folder of a small, untrained segment RNN."""
    import torch

    from pyspeech.sad.checkpoint import save_model
    from pyspeech.sad.config import NetworkConfig, StftConfig
    from pyspeech.sad.networks import SadNetwork

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("network")
    save_model(folder, SadNetwork(NetworkConfig(channels=[2, 2, 4, 4], rnn_size=8), StftConfig()))
    return folder


def test_network_from_a_file_is_the_network_on_its_samples(edges, network):
    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.decoding import score_samples

    path = edges[0] / "día stereo 44.flac"
    scores = score_samples(load_model(network), read_audio(path, RATE)[0])
    middle = float(np.median(scores))
    found = load_detector("seg_rnn", network, threshold=middle)(path)
    assert np.abs(found.scores - scores).max() < 1e-5 and found.duration == 20.0 and found.frame_shift == 0.01
    called = segments_to_frames(found.segments - found.frame_offset, len(scores))
    inside = np.arange(len(scores)) < len(scores) - 2  # the times of the last two lie behind the end
    clear = (np.abs(scores - middle) > 1e-5) & inside
    assert np.array_equal(called[clear], (scores > middle)[clear]) and 0 < called.mean() < 1


def test_a_network_on_a_device_that_is_not_there(edges, network, monkeypatch):
    monkeypatch.setattr("pyspeech.compat._gpus", lambda: ([], "a reason"))
    found = [SpeechDetector(network, device=device).detect(edges[0] / "pcm.wav").scores for device in ("auto", "cpu")]
    assert np.array_equal(*found)
    with pytest.raises(UserError, match="device cuda: no GPU that torch can use .a reason.; use cpu or auto"):
        SpeechDetector(network, device="cuda")
    for arguments in (["--model", network], ["--stream", "--model", network]):
        done = run_tool("detect_speech", *arguments, "--device", "cuda", edges[0] / "pcm.wav")
        assert done.returncode == 1 and done.stderr.startswith("error: device cuda: no GPU that torch can use")


@pytest.mark.parametrize("blocks", [0.05, 0.77, 20.0])
def test_perfect_scores_give_the_labels(network, tmp_path, monkeypatch, blocks):
    """Frames are scored by their labels as samples come in: the segments are the labels, to half the shift of the frames."""
    from pyspeech.sad.config import StftConfig
    from pyspeech.sad.dataset import frame_targets

    def score_stream(model, parts):
        stft, before = model.stft.config, 0
        scores = []
        for part in parts:
            begun, before = stft.num_frames(before), before + len(part)
            scores.append(frame_targets(np.array(BURSTS), begun, stft.num_frames(before) - begun, stft))
        return np.concatenate(scores).astype(float)

    monkeypatch.setattr("pyspeech.sad.decoding.score_stream", score_stream)
    monkeypatch.setattr(
        "pyspeech.sad.detector.stream_audio", lambda *where, **options: stream_audio(*where, block_seconds=blocks, **options)
    )
    found = load_detector("seg_rnn", network)(write_bursts(tmp_path))
    assert found.frame_offset == StftConfig().frame_offset == 0.02
    assert np.abs(found.segments - BURSTS).max() <= 0.005 + 1e-9


def test_tuned_threshold_and_smoothing_are_used(edges, network, tmp_path):
    from pyspeech.sad.checkpoint import load_model, save_model

    path = edges[0] / "pcm.wav"
    for threshold, smoothing, expected in ((0.0, "median", [[0, 20]]), (1.0, "hmm", [])):
        save_model(tmp_path, load_model(network), threshold, smoothing)
        assert load_detector("seg_rnn", tmp_path)(path).segments.tolist() == expected


def test_finding_networks(network, tmp_path):
    with pytest.raises(UserError, match="no trained cnn in .* the recipe fearless"):
        newest_model(tmp_path, "cnn", KIND)
    for age, name in enumerate(["newest", "older", "oldest"]):
        folder = tmp_path / name / "models" / "cnn"
        folder.mkdir(parents=True)
        (folder / "model.pt").touch()
        os.utime(folder / "model.pt", (1e9 - age, 1e9 - age))
    (tmp_path / "unfinished" / "models" / "cnn").mkdir(parents=True)
    assert newest_model(tmp_path, "cnn", KIND) == tmp_path / "newest" / "models" / "cnn"
    with pytest.raises(UserError, match="holds a seg_rnn network, not cnn"):
        load_detector("cnn", network)
    with pytest.raises(UserError, match="expected one of shipped, causal, statistical, statistical_plain, cnn"):
        load_detector("hmm")


def test_a_model_may_be_named_by_its_file(network, tmp_path):
    found = [load_detector("seg_rnn", path)(write_bursts(tmp_path)) for path in (network, network / "model.pt")]
    assert np.array_equal(found[0].scores, found[1].scores)
    (tmp_path / "other.pt").touch()
    with pytest.raises(UserError, match="other.pt: is no model.pt; expected a SAD network"):
        load_detector("seg_rnn", tmp_path / "other.pt")


def write_bursts(folder, gains=(1.0,)):
    soundfile.write(folder / "bursts.wav", voice()[:, None] * gains, RATE, subtype="PCM_16")
    return folder / "bursts.wav"


def test_errors_name_the_file(network, tmp_path, monkeypatch):
    samples = voice()
    samples[5000] = 1e15
    soundfile.write(tmp_path / "loud.wav", samples, RATE, subtype="FLOAT")
    with pytest.raises(UserError, match=f"^{tmp_path}/loud.wav: statistical SAD: the sample at 0.625 s"):
        load_detector("statistical")(tmp_path / "loud.wav")
    monkeypatch.setattr("pyspeech.sad.decoding.score_stream", lambda *arguments: np.full(5, np.nan))
    with pytest.raises(UserError, match=f"^{tmp_path}/loud.wav: 5 of 5 scores are NaN"):
        load_detector("seg_rnn", network)(tmp_path / "loud.wav")
    with pytest.raises(UserError, match=f"^{tmp_path}/absent.wav: cannot be read"):
        load_detector("statistical")(tmp_path / "absent.wav")


def test_channels_that_cancel_each_other_are_said_to(tmp_path, caplog):
    path = write_bursts(tmp_path, (1.0, -1.0))
    detect = load_detector("statistical")
    assert len(detect(path).segments) == 0
    assert f"{path}: its channels cancel each other when mixed; choose one of them (--channel)" in caplog.text
    caplog.clear()
    assert len(detect(path, channel=1).segments) and not caplog.records
    soundfile.write(tmp_path / "mono.wav", np.zeros(RATE), RATE)
    detect(tmp_path / "mono.wav")
    assert [record.message for record in caplog.records] == [f"{tmp_path}/mono.wav: silent"]


def test_antiphase_with_a_little_noise_is_said_to_cancel(tmp_path, caplog):
    noise = 0.003 * np.random.default_rng(0).standard_normal((20 * RATE, 2))
    soundfile.write(tmp_path / "a.wav", voice()[:, None] * (1.0, -1.0) + noise, RATE, subtype="PCM_16")
    assert len(load_detector("statistical")(tmp_path / "a.wav").segments) == 0
    assert "its channels cancel each other when mixed" in caplog.text


def test_every_channel_by_itself(tmp_path):
    """RTTM tells channels by number, others by name; a mono recording keeps its own; each is what --channel finds."""
    soundfile.write(tmp_path / "pair.wav", np.stack([voice(), 0.3 * voice()[::-1]], axis=1), RATE)
    soundfile.write(tmp_path / "mono.wav", voice(), RATE)
    done = run(tmp_path / "pair.wav", tmp_path / "mono.wav", "--channel", "all")
    apart = [run(tmp_path / "pair.wav", "--channel", channel).stdout for channel in "01"]
    assert done.returncode == 0 and done.stdout == "".join(apart) + run(tmp_path / "mono.wav").stdout
    assert all(f"SPEAKER pair {channel} " in text for channel, text in enumerate(apart, 1))
    assert run(tmp_path, "--channel", "all", "--format", "lhotse", "-o", tmp_path / "out").returncode == 0
    files = {path.name: list(map(json.loads, path.read_text().splitlines())) for path in (tmp_path / "out").iterdir()}
    assert files.keys() == {"mono.jsonl", "pair_ch0.jsonl", "pair_ch1.jsonl"}
    every = [entry for entries in files.values() for entry in entries]
    assert len({entry["id"] for entry in every}) == len(every) and {entry["recording_id"] for entry in every} == {
        "pair",
        "mono",
    }
    done = run("-", "--channel", "all", stdin=None)
    assert done.returncode == 1 and "error: --channel all: standard input cannot be read a second time" in done.stderr


def test_output_named_as_a_file(edges, tmp_path):
    folder, found, _ = edges
    target = tmp_path / "x.TextGrid"
    assert run(folder / "pcm.wav", "-o", target).returncode == 0
    assert target.read_text().startswith('File type = "ooTextFile"') and target.read_text().count('"speech"') > 1
    assert run(folder / "pcm.wav", "-o", tmp_path / "y.txt", "--format", "rttm", "--scores").returncode == 0
    assert (tmp_path / "y.txt").read_text().startswith("SPEAKER pcm 1") and len(np.load(tmp_path / "y.npy"))
    done = run(folder / "pcm.wav", folder / "tone.wav", "-o", tmp_path / "z.TextGrid")
    assert done.returncode == 1 and done.stderr == (
        f"error: -o {tmp_path}/z.TextGrid: a file for 2 recordings; expected a folder, such as labels/\n"
    )
    done = run(folder / "pcm.wav", "-o", tmp_path / "x.foo")
    assert done.returncode == 1 and done.stderr == (
        f"error: -o {tmp_path}/x.foo: its ending names no format; expected one of .rttm, .txt, .segments, "
        f".labels.txt, .json, .TextGrid, .csv, .jsonl, or a folder such as {tmp_path}/x.foo/\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"x.TextGrid", "y.txt", "y.npy"}
    (tmp_path / "old.csv").mkdir()  # a folder is one whatever its name is
    assert run(folder / "pcm.wav", "-o", tmp_path / "old.csv").returncode == 0
    assert [path.name for path in (tmp_path / "old.csv").iterdir()] == ["pcm.rttm"]


def test_several_processes_give_what_one_gives(edges, tmp_path):
    """In the order of the input, with each error."""
    folder, _, done = edges
    for options in (["--format", "csv"], ["--format", "audacity"]):
        one, two = (run(folder, *options, "--jobs", jobs) for jobs in (1, 3))
        assert one.stdout == two.stdout and one.returncode == two.returncode == 1
        # What libmpg123 says of damaged MP3 it writes itself, in pieces, between the lines of other processes.
        lines = [re.findall(r"(?:warning|error): [/\d].*", run.stderr) for run in (one, two)]
        assert sorted(lines[0]) == sorted(lines[1]) and "17 recordings: " in two.stderr
    assert run(folder / "pcm.wav", folder / "96k.wav", "--jobs", "2", "-o", tmp_path / "out").returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"pcm.rttm", "96k.rttm"}


def test_several_processes_with_the_bundled_network(edges):
    folder, _, _ = edges
    one, two = (
        run_tool("detect_speech", folder / "pcm.wav", folder / "96k.wav", "--threshold", "0.01", "--jobs", jobs)
        for jobs in (1, 2)
    )
    assert one.stdout == two.stdout and one.stdout.count("SPEAKER") > 1 and one.returncode == two.returncode == 0


def test_segments_as_files(edges, tmp_path):
    """The samples of each segment, at the rate of the recording, named as the formats for Kaldi name them."""
    folder, _, _ = edges
    options = ["--max-speech", "1", "--pad-before", "0.2", "--pad-after", "0", "--format", "segments"]
    done = run(folder / "96k.wav", *options, "--cut", tmp_path / "parts")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [path.stem for path in sorted((tmp_path / "parts").iterdir())] == [line[0] for line in lines] and len(lines) > 5
    whole, rate = soundfile.read(folder / "96k.wav")
    for name, _, start, end in lines:
        part, found_rate = soundfile.read(tmp_path / "parts" / f"{name}.wav")
        expected = whole[round(float(start) * rate) : round(float(end) * rate)]
        assert found_rate == rate == 96000 and len(part) == len(expected) and np.abs(part - expected).max() < 1e-4
        assert float(end) - float(start) <= 1.0
    done = run("-", "--cut", tmp_path / "more")
    assert done.stderr == "error: --cut: standard input cannot be read a second time; write it to a file first\n"


def test_scores_as_csv(edges, tmp_path):
    folder, found, _ = edges
    assert run(folder / "pcm.wav", "-o", tmp_path, "--scores", "--score-format", "csv").returncode == 0
    header, *lines = (tmp_path / "pcm.scores.csv").read_text().splitlines()
    times, scores = np.array([line.split(",") for line in lines], float).T
    assert header == "start,score" and np.abs(times - 0.01 * np.arange(len(times))).max() < 1e-9
    np.testing.assert_allclose(scores, found["pcm"]["scores"], rtol=1e-4, atol=1e-3)


def test_samples_without_a_header(edges, tmp_path):
    folder, found, _ = edges
    for encoding, subtype in (("s16", "PCM_16"), ("mulaw", "ULAW")):
        soundfile.write(tmp_path / "pcm.raw", voice(), RATE, format="RAW", subtype=subtype)
        done = run(tmp_path / "pcm.raw", "--raw", "--encoding", encoding, "--rate", RATE, "--format", "json")
        (speech,) = (json.loads(done.stdout)["speech"],)
        assert np.abs(np.array(speech) - found["pcm"]["speech"]).max() < (0.1 if encoding == "mulaw" else 0.001)
        with open(tmp_path / "pcm.raw", "rb") as stream:
            done = run("-", "--raw", "--encoding", encoding, "--rate", RATE, "--format", "json", stdin=stream)
        assert json.loads(done.stdout)["speech"] == speech
    done = run(tmp_path / "pcm.raw", "--rate", RATE)
    assert done.returncode == 1 and done.stderr.startswith("error: --rate 8000: is for raw samples; add --raw")
    for options in (["--stream"], []):
        with open(tmp_path / "pcm.raw", "rb") as stream:
            done = run("-", *options, stdin=stream)
        assert done.returncode == 1 and "does not start as an audio file of a known kind; raw samples need --raw" in done.stderr


def test_hysteresis(tmp_path):
    """A stretch of speech stays where it scores above the peak somewhere."""
    path = write_bursts(tmp_path)
    low = load_detector(threshold=0.01)(path)
    frames = (low.segments / low.frame_shift).round().astype(int)
    tops = [float(low.scores[max(0, start - 2) : end].max()) for start, end in frames]
    peak = sorted(tops)[len(tops) // 2]
    done = run_tool("detect_speech", path, "--threshold", "0.01", "--min-silence", "0", "--peak", peak)
    kept = load_detector(threshold=0.01, min_silence=0.0, peak=peak)(path)
    assert done.stdout.count("SPEAKER") == len(kept.segments) and len(kept.segments) < len(low.segments) > 1
    for error in (["--system", "statistical", "--peak", "0.5"], ["--threshold", "0.01", "--pad", "-1"]):
        assert run_tool("detect_speech", path, *error).returncode != 0
