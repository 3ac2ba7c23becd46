#!/usr/bin/env python3
"""Process time of streaming recognition with the full-size transducer on one thread, as a fraction of the audio's time.

The model has the paper's sizes, four languages and language identification, with random weights, which cost what trained
ones cost as long as the search has the same to do. Therefore the output layers are made as peaked as trained ones, and the
blank's bias is set so that the best hypotheses have about as many symbols a second as speech has letters; the rate is
printed, and so is the worst case, a bias that makes every hypothesis put out all symbols that it may in every frame.
The audio is noise. float32 and int8, all decoders running to the end and stopped early.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment  # noqa: E402

ensure_environment()

VOCABULARIES = {"en-IN": 133, "hi-IN": 59, "ta-IN": 97, "gu-IN": 123}  # Joshi et al. 2021, Table 1
PEAKEDNESS = 12.0  # factor on the random output weights: the best symbol is then often as sure as a trained model's


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="of audio; default %(default)s")
    parser.add_argument("--repetitions", type=int, default=2, help="the best counts; default %(default)s")
    parser.add_argument("--beam", type=int, default=4, help="default %(default)s")
    parser.add_argument("--max-symbols", type=int, default=3, help="symbols a frame; default %(default)s")
    parser.add_argument("--chunk-frames", type=int, default=10, help="of 30 ms; default %(default)s")
    parser.add_argument("--rate", type=float, default=12.0, help="symbols a second to aim for; default %(default)s")
    parser.add_argument("--worst", action="store_true", help="the worst case too, which takes minutes")
    options = parser.parse_args()

    import numpy as np
    import torch
    from pyspeech.transducer.decoding_config import EarlyStopping, SearchConfig
    from pyspeech.transducer.quantization import quantize_bundle

    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples = np.random.default_rng(0).standard_normal(round(options.seconds * 16000)).astype(np.float32) * 0.1
    bundle = random_bundle()
    search = SearchConfig(options.beam, options.max_symbols)
    set_rate(bundle, samples, search, options.rate)
    quantized = quantize_bundle(bundle)
    stopping = EarlyStopping("mean_logp", tau=30, threshold=0.0)
    settings = [("4 languages", None, None, search), ("4 languages, greedy", None, None, SearchConfig(1, search.max_symbols)),
                ("4 languages, early stopping", None, stopping, search), ("1 language", "hi-IN", None, search)]

    print(f"torch {torch.__version__}, one thread, {search}, chunks of {options.chunk_frames * 30} ms\n")
    print("weights  decoders                       real time factor  T_avg  symbols/s  predictor rows/s")
    for name, one in (("float32", bundle), ("int8", quantized)):
        measure(name, "encoder alone", options, lambda: encode_chunks(one, samples, options.chunk_frames))
        for label, language, early, config in settings:
            measure(name, label, options, lambda: stream(one, samples, language, config, early, options.chunk_frames))
    if options.worst:
        for name, one in (("float32", bundle), ("int8", quantized)):
            set_blank(one.model, -1e9)
            measure(name, "4 languages, worst case", options,
                    lambda: stream(one, samples, None, search, None, options.chunk_frames))


def random_bundle():
    import torch
    from pyspeech.features.fbank import FbankConfig, GlobalStats
    from pyspeech.text.units import GraphemeUnits
    from pyspeech.transducer.checkpoint import Bundle
    from pyspeech.transducer.config import TransducerConfig
    from pyspeech.transducer.model import Transducer

    model = Transducer(TransducerConfig(lid=True), VOCABULARIES).eval()
    with torch.no_grad():
        for layer in model.joint.outputs:
            layer.weight.mul_(PEAKEDNESS)
    units = {code: GraphemeUnits([chr(0x4E00 + number) for number in range(size // 2)]) for code, size in VOCABULARIES.items()}
    return Bundle(model, units, FbankConfig(), GlobalStats([-7.0] * 80, [2.0] * 80))


def set_rate(bundle, samples, search, rate):
    """Set the blank's bias so that greedy hypotheses have about `rate` symbols a second, by bisection."""
    low, high = -20.0, 40.0
    for _ in range(10):
        middle = (low + high) / 2
        set_blank(bundle.model, middle)
        if stream(bundle, samples[:48000], None, type(search)(1, search.max_symbols), None, 100)[1] > rate:
            low = middle
        else:
            high = middle


def set_blank(model, bias):
    import torch

    with torch.no_grad():
        for layer in model.joint.outputs:
            layer.bias[0] = bias


def stream(bundle, samples, language, search, stopping, chunk_frames):
    """Recognize `samples` in blocks of 0.1 s: (T_avg, symbols a second of all decoders' best, predictor rows a second)."""
    from pyspeech.transducer.streaming import StreamingRecognizer

    rows, predict = [0], bundle.model.predict
    bundle.model.predict = lambda tokens, heads, state: rows.append(len(tokens)) or predict(tokens, heads, state)
    try:
        recognizer = StreamingRecognizer(bundle, language, search, stopping, chunk_frames=chunk_frames)
        for start in range(0, len(samples), 1600):
            recognizer.add(samples[start : start + 1600])
        result = recognizer.finish()
    finally:
        del bundle.model.predict
    texts = list(result.by_language.values()) or [result.text]
    symbols = sum(len(text.replace(" ", "")) for text in texts)
    return result.t_avg, symbols / len(texts) / result.seconds, sum(rows) / result.seconds


def encode_chunks(bundle, samples, chunk_frames):
    """Features and encoder alone, in chunks."""
    import torch
    from pyspeech.features.fbank import fbank, stack

    features = bundle.stats.apply(stack(fbank(samples, bundle.fbank), bundle.fbank))[None]
    state = None
    with torch.inference_mode():
        for chunk in features.split(chunk_frames, dim=1):
            _, _, state = bundle.model.encode(chunk, torch.tensor([chunk.shape[1]]), state)


def measure(weights, label, options, function):
    import time

    best = float("inf")
    for _ in range(options.repetitions):
        start = time.process_time()
        figures = function()
        best = min(best, time.process_time() - start)
    columns = "" if figures is None else "{:9.2f}{:11.1f}{:18.1f}".format(*figures)
    print(f"{weights:8s} {label:30s}{best / options.seconds:17.3f}{columns}", flush=True)


if __name__ == "__main__":
    main()
