#!/usr/bin/env python3
"""Speech detectors on one thread, samples to decisions: the networks in torch and in ONNX Runtime, the statistical SAD, WebRTC.

The networks have the sizes of the paper and of egs/fearless's profile mini, and random weights, which does not change their
speed; --model measures a trained one instead. Each figure is process time over audio time, of the best of several
repetitions, in which the systems take turns. The audio is made up, at 8 kHz.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.commands.arguments import length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from steps.benchmark.timing import best_process_times, use_one_thread

RATE = 8000  # Hz
MINI = Path(__file__).resolve().parents[2] / "egs/fearless/conf/mini.yaml"


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("--seconds", type=length, default=300.0, help="of audio (default: 300)")
    parser.add_argument("--repetitions", type=whole_number, default=3, help="default: 3")
    parser.add_argument("--model", metavar="FILE", help="an ONNX file, in place of the networks with random weights")
    options = parser.parse_args(arguments)
    use_one_thread()

    import torch

    from steps.benchmark.parts import made_up_speech

    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples = made_up_speech(options.seconds, RATE)
    systems = {**others(samples), **(one_model(options.model) if options.model else networks())}
    times, _ = best_process_times([lambda run=run: run(samples) for run in systems.values()], options.repetitions)
    print(f"{options.seconds:g} s of audio at {RATE} Hz, one thread, process time over audio time")
    for name, elapsed in zip(systems, times, strict=True):
        print(f"{name:28s} {elapsed / options.seconds:.5f}")


def others(samples):
    """{name: a function of the samples} of what is no network."""
    import numpy as np
    import webrtcvad

    from pyspeech.sad.statistical import detect

    frames = [frame.tobytes() for frame in (samples * 32767).astype(np.int16)[: len(samples) // 80 * 80].reshape(-1, 80)]

    def webrtc(_):
        detector = webrtcvad.Vad(3)
        return [detector.is_speech(frame, RATE) for frame in frames]

    return {"WebRTC": webrtc, "statistical": lambda samples: detect(samples, RATE)}


def networks():
    """The same for networks of both sizes, in both forms; with the HMM, but for the segment RNN, which needs no smoothing."""
    import tempfile

    import yaml

    from pyspeech.sad.config import TEMPORAL_LAYERS, NetworkConfig, OperatingPoint, StftConfig
    from pyspeech.sad.networks import SadNetwork
    from pyspeech.sad.onnx_export import export_onnx
    from pyspeech.sad.onnx_network import OnnxNetwork
    from pyspeech.sad.piece_network import PieceNetwork

    mini = yaml.safe_load(MINI.read_text(encoding="utf-8"))
    found = {}
    for size, network, stft in (("paper", {}, {}), ("mini", mini["network"], mini["features"])):
        for temporal in TEMPORAL_LAYERS:
            model = SadNetwork(NetworkConfig(**{**network, "temporal": temporal}), StftConfig(**stft))
            point = OperatingPoint(smoothing="none" if temporal == "seg_rnn" else "hmm")
            with tempfile.TemporaryDirectory() as folder:
                export_onnx(model, Path(folder, "model.onnx"), {"default": point})
                exported = OnnxNetwork(Path(folder, "model.onnx"))
            for form, scorer in (("torch", PieceNetwork(model)), ("ONNX", exported)):
                found[f"{temporal}, {size}'s size, {form}"] = detector(scorer, point)
    return found


def one_model(path):
    from pyspeech.sad.onnx_network import OnnxNetwork

    exported = OnnxNetwork(path)
    return {Path(path).name: detector(exported, exported.default)}


def detector(scorer, point):
    """A function of samples that gives decisions, computed by this thread alone."""
    import numpy as np

    from pyspeech.sad.decoding import score_blocks
    from pyspeech.sad.smoothing import decide

    return lambda samples: decide(
        np.concatenate(list(score_blocks(scorer, [samples], workers=1))), point.threshold, point.smoothing
    )


if __name__ == "__main__":
    exit_after(main)
