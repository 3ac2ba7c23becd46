#!/usr/bin/env python3
"""Process time of streaming recognition with the full-size transducer on one thread, as a fraction of the audio's time.

The model has the paper's sizes, four languages and language identification, and random weights, whose posteriors are made to
look like a trained model's (steps/benchmark/transducer.py): `--rate` symbols a second. The columns on the right say what the
search did. What replacing the posteriors takes does not count. `--plain` leaves them as they are: with nearly uniform
posteriors every hypothesis puts out symbols in every frame, the worst case.

The audio is noise. float32 and int8, all decoders running to the end and stopped early.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()

from pyspeech.commands.arguments import tool_parser

VOCABULARIES = {"en-IN": 133, "hi-IN": 59, "ta-IN": 97, "gu-IN": 123}  # Joshi et al. 2021, Table 1


def main():
    parser = tool_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="of audio; default %(default)s")
    parser.add_argument("--repetitions", type=int, default=2, help="the best counts; default %(default)s")
    parser.add_argument("--beam", type=int, default=4, help="default %(default)s")
    parser.add_argument("--max-symbols", type=int, default=3, help="symbols a frame; default %(default)s")
    parser.add_argument("--chunk-frames", type=int, default=10, help="of 30 ms; default %(default)s")
    parser.add_argument("--rate", type=float, default=12.0, help="symbols a second to aim for; default %(default)s")
    parser.add_argument("--plain", action="store_true", help="the posteriors of the random weights as they are")
    options = parser.parse_args()

    import numpy as np
    import torch

    from pyspeech.asr.config import EarlyStopping, SearchConfig
    from pyspeech.asr.quantization import quantize_bundle
    from steps.benchmark.transducer import ScheduledBlank

    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples = np.random.default_rng(0).standard_normal(round(options.seconds * 16000)).astype(np.float32) * 0.1
    bundle = random_bundle(options.plain)
    search = SearchConfig(options.beam, options.max_symbols)
    quantized = quantize_bundle(bundle)
    if not options.plain:
        for one in (bundle, quantized):
            one.model.logits = ScheduledBlank(one.model.logits, options.rate * bundle.fbank.frame_seconds)
    stopping = EarlyStopping("mean_logp", tau=30, threshold=0.0)
    greedy = SearchConfig(1, search.max_symbols)
    settings = [
        ("4 languages", None, None, search),
        ("4 languages, greedy", None, None, greedy),
        ("4 languages, early stopping", None, stopping, search),
        ("1 language", "hi-IN", None, search),
    ]

    print(f"torch {torch.__version__}, one thread, {search}, chunks of {options.chunk_frames * 30} ms\n")
    print("weights  decoders                       real time factor  T_avg  symbols/s  predictor calls/s   rows/s")
    for name, one in (("float32", bundle), ("int8", quantized)):
        measure(one, name, "encoder alone", options, lambda: encode_chunks(one, samples, options.chunk_frames))
        for label, language, early, config in settings:
            measure(one, name, label, options, lambda: stream(one, samples, language, config, early, options.chunk_frames))


def random_bundle(plain):
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.config import TransducerConfig
    from pyspeech.asr.networks import Transducer
    from pyspeech.features.fbank import FbankConfig, GlobalStats
    from pyspeech.text.units import GraphemeUnits
    from steps.benchmark.transducer import sharpen

    model = Transducer(TransducerConfig(lid=True), VOCABULARIES).eval()
    if not plain:
        sharpen(model)
    units = {code: GraphemeUnits([chr(0x4E00 + number) for number in range(size // 2)]) for code, size in VOCABULARIES.items()}
    return Bundle(model, units, FbankConfig(), GlobalStats([-7.0] * 80, [2.0] * 80))


def stream(bundle, samples, language, search, stopping, chunk_frames):
    """Recognize `samples` in blocks of 0.1 s: (T_avg, symbols, predictor calls and rows a second)."""
    from pyspeech.asr.streaming import StreamingRecognizer

    rows, predict = [], bundle.model.predict
    if hasattr(bundle.model.logits, "begin"):
        bundle.model.logits.begin()
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
    return result.t_avg, symbols / len(texts) / result.seconds, len(rows) / result.seconds, sum(rows) / result.seconds


def encode_chunks(bundle, samples, chunk_frames):
    """Features and encoder alone, in chunks."""
    import torch

    from pyspeech.features.fbank import fbank, stack

    features = bundle.stats.apply(stack(fbank(samples, bundle.fbank), bundle.fbank))[None]
    state = None
    with torch.inference_mode():
        for chunk in features.split(chunk_frames, dim=1):
            _, _, state = bundle.model.encode(chunk, torch.tensor([chunk.shape[1]]), state)


def measure(bundle, weights, label, options, function):
    import time

    best = float("inf")
    for _ in range(options.repetitions):
        start, replaced = time.process_time(), getattr(bundle.model.logits, "seconds", 0.0)
        figures = function()
        replaced = getattr(bundle.model.logits, "seconds", 0.0) - replaced
        best = min(best, time.process_time() - start - replaced)
    columns = "" if figures is None else "{:7.2f}{:11.1f}{:19.1f}{:9.1f}".format(*figures)
    print(f"{weights:8s} {label:30s}{best / options.seconds:17.3f}{columns}", flush=True)


if __name__ == "__main__":
    main()
