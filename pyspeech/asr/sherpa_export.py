"""Export of a transducer's head for sherpa-onnx: encoder.onnx, decoder.onnx, joiner.onnx and tokens.txt in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import pyspeech
from pyspeech.asr.sherpa_graphs import RATE, Decoder, Encoder, FrontEnd, Joiner, blank_last, chunk_frames, input_config
from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank, stack
from pyspeech.files import atomic_write
from pyspeech.model_file import trace, write_graph
from pyspeech.text.graphemes import BLANK, WORD_START, GraphemeUnits

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.features.config import FbankConfig
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.text.units import Units

CHUNKS = 4  # of noise, that exported networks are compared with ours on
WORD = "\u2581"  # starts a word in tokens.txt
ENCODER_INPUTS = ("audio_signal", "length", "cache_last_channel", "cache_last_time", "cache_last_channel_len")
DECODER_INPUTS = ("targets", "target_length", "states.1", "states.2")
JOINER_INPUTS = ("encoder_outputs", "decoder_outputs")


def check_exportable(bundle: Bundle) -> None:
    """Raise UserError for a model that sherpa-onnx's interface cannot take."""
    config, fbank = bundle.model.config, bundle.fbank
    if config.encoder != "lstm":
        raise UserError(f"encoder={config.encoder}: cannot be exported to sherpa-onnx; expected a model with encoder=lstm")
    if (fbank.window_ms, fbank.shift_ms) != (25, 10):
        raise UserError(
            f"features of {fbank.window_ms} ms each {fbank.shift_ms} ms: sherpa-onnx has 25 ms each 10 ms; expected a model "
            "with features.window_ms=25 features.shift_ms=10"
        )
    rates = (RATE,) if fbank.kind == "nemo" else (RATE, RATE // 2)
    if fbank.sampling_rate not in rates:
        raise UserError(
            f"features at {fbank.sampling_rate} Hz: sherpa-onnx has {RATE} Hz; expected a model with "
            f"features.sampling_rate={' or '.join(map(str, rates))}"
        )


def export_sherpa(bundle: Bundle, language: str, folder: str | Path) -> None:
    """Write one language of a model into `folder`, which is made where it is missing.

    Args:
        bundle: A model on the CPU that `check_exportable` takes.
        language: Code, one of the model's.
        folder: Of encoder.onnx, decoder.onnx, joiner.onnx and tokens.txt.
    """
    check_exportable(bundle)
    head, number = bundle.model.head_of(language), bundle.model.languages.index(language)
    encoder = Encoder(bundle.model, FrontEnd(bundle.fbank, bundle.stats), number).eval()
    metadata = encoder_metadata(bundle, encoder, language)
    _write(Path(folder, "encoder.onnx"), _encoder_graph(encoder, bundle), metadata)
    _write(Path(folder, "decoder.onnx"), _decoder_graph(Decoder(bundle.model, head).eval(), bundle), {})
    _write(Path(folder, "joiner.onnx"), _joiner_graph(Joiner(bundle.model, head).eval(), bundle), {})
    with atomic_write(Path(folder, "tokens.txt")) as stream:
        stream.writelines(f"{name} {number}\n" for number, name in enumerate(token_names(bundle.units[language])))


def largest_difference(bundle: Bundle, language: str, folder: str | Path) -> float:
    """Compare the logits of exported networks with the model's, for noise and the first symbols of the head.

    Returns the largest difference. What converts features of another kind is in both; stacking and normalisation are
    compared by themselves.
    """
    encoder, decoder, joiner = (_session(Path(folder, f"{name}.onnx")) for name in ("encoder", "decoder", "joiner"))
    model, head, front_end = bundle.model, bundle.model.head_of(language), FrontEnd(bundle.fbank, bundle.stats)
    generator = torch.Generator().manual_seed(0)
    size = chunk_frames(bundle.fbank)
    bins = input_config(bundle.fbank).num_bins
    frames = torch.randn(1, CHUNKS * size, bins, generator=generator) - 8
    caches = [cache.numpy() for cache in Encoder(model, front_end, 0).caches(1)]
    before, features, encoded = torch.from_numpy(caches[1][:, 0]), [], []
    for number, chunk in enumerate(frames.split(size, dim=1)):
        made, before = front_end(chunk, before, torch.tensor([number * size]))
        features.append(made)
        signal = chunk.transpose(1, 2).contiguous().numpy()
        inputs = dict(zip(ENCODER_INPUTS, (signal, np.array([size]), *caches), strict=True))
        outputs, _, *caches = encoder.run(None, inputs)
        encoded.append(outputs)
    tokens = torch.arange(1, min(6, model.vocabulary_sizes[head]))
    states = [state.numpy() for state in model.predictor_start(1)]
    predicted = []
    for symbol in (model.vocabulary_sizes[head] - 1, *(tokens - 1).tolist()):
        inputs = (np.array([[symbol]], np.int32), np.ones(1, np.int32), *states)
        output, _, *states = decoder.run(None, dict(zip(DECODER_INPUTS, inputs, strict=True)))
        predicted.append(output)
    pairs = [(frame, symbol) for frame in np.concatenate(encoded, axis=2)[0].T for symbol in predicted]
    logits = [joiner.run(None, dict(zip(JOINER_INPUTS, (one[None, :, None], two), strict=True)))[0][0, 0] for one, two in pairs]
    with torch.inference_mode():
        features = torch.cat(features, dim=1)
        number = torch.tensor([model.languages.index(language)])
        ours, *_ = model.encode(features, torch.tensor([features.shape[1]]), None, number)
        after = model.predict_sequence(tokens[None], head)[0]
        expected = model.head_logits(model.project_encoded(ours)[0, :, None], after, head)
    difference = np.abs(np.concatenate(logits) - blank_last(expected.flatten(0, 1).T).T.numpy()).max()
    return max(float(difference), features_difference(bundle.fbank, bundle.stats))


def _session(path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors, not the warnings of shapes that are unknown beforehand
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def features_difference(config: FbankConfig, stats: GlobalStats | None) -> float:
    """Compare the features of an exported model with ours, both with kind "nemo": the largest difference, for noise."""
    config = replace(config, kind="nemo", sampling_rate=RATE)
    size, front_end = chunk_frames(config), FrontEnd(config, stats)
    count = CHUNKS * size * config.shift + config.window - config.shift
    noise = torch.randn(count, generator=torch.Generator().manual_seed(0)) * torch.linspace(-8, 0, count).exp()
    before, difference = torch.zeros(1, front_end.rows, config.num_bins), 0.0
    expected = stack(fbank(noise, config), config)
    expected = expected if stats is None else stats.apply(expected)
    parts = zip(fbank(noise, input_config(config)).split(size), expected.split(size // config.stack_shift), strict=True)
    for number, (frames, ours) in enumerate(parts):
        theirs, before = front_end(frames[None], before, torch.tensor([number * size]))
        difference = max(difference, float((theirs[0] - ours).abs().max()))
    return difference


def token_names(units: Units) -> list[str]:
    """Names of the symbols as sherpa-onnx writes texts of them, the blank last."""
    names = units.symbols[1:]
    if isinstance(units, GraphemeUnits):
        names = [WORD + name[len(WORD_START) :] if len(name) > 1 else name for name in names]
    return [*names, BLANK]


def encoder_metadata(bundle: Bundle, encoder: Encoder, language: str) -> dict[str, Any]:
    """Give what sherpa-onnx reads beside the graph; it adds the blank to `vocab_size` itself."""
    config, chunk = bundle.model.config, chunk_frames(bundle.fbank)
    channel, time, _ = encoder.caches(1)
    dims = {
        f"cache_last_{name}_dim{number}": size
        for name, cache in (("channel", channel), ("time", time))
        for number, size in enumerate(cache.shape[1:], 1)
    }
    return {
        "model_type": "EncDecRNNTModel",
        "model_author": f"pyspeech {pyspeech.__version__}",
        "version": 1,
        "language": language,
        "comment": f"pyspeech transducer, {config.structure}; log-mel features of kind {bundle.fbank.kind}",
        "vocab_size": bundle.units[language].size - 1,
        "window_size": chunk,
        "chunk_shift": chunk,
        "subsampling_factor": bundle.fbank.stack_shift,
        "normalize_type": "NA",
        "pred_rnn_layers": config.predictor_layers,
        "pred_hidden": config.predictor_size,
        **dims,
    }


# Traced with two streams: what one stream has could become a constant.
def _encoder_graph(encoder, bundle):
    chunk, bins = chunk_frames(bundle.fbank), input_config(bundle.fbank).num_bins
    inputs = (torch.randn(2, bins, chunk), torch.tensor([chunk, chunk]), *encoder.caches(2))
    outputs = ("outputs", "encoded_lengths", *(f"{name}_next" for name in ENCODER_INPUTS[2:]))
    return _traced(encoder, inputs, ENCODER_INPUTS, outputs, dict.fromkeys([*ENCODER_INPUTS, *outputs], 0))


def _decoder_graph(decoder, bundle):
    states = bundle.model.predictor_start(2)
    inputs = (torch.ones(2, 1, dtype=torch.int32), torch.ones(2, dtype=torch.int32), *states)
    outputs = ("outputs", "prednet_lengths", "states.1_next", "states.2_next")
    batch = {name: 1 if name.startswith("states") else 0 for name in (*DECODER_INPUTS, *outputs)}
    return _traced(decoder, inputs, DECODER_INPUTS, outputs, batch)


def _joiner_graph(joiner, bundle):
    inputs = tuple(torch.randn(2, bundle.model.config.joint, 1) for _ in JOINER_INPUTS)
    return _traced(joiner, inputs, JOINER_INPUTS, ("outputs",), dict.fromkeys([*JOINER_INPUTS, "outputs"], 0))


def _traced(network, inputs, input_names, output_names, batch):
    """The graph of a network as ONNX; batch: {name of an input or output: its dimension of streams}."""
    axes = {name: {dimension: "B"} for name, dimension in batch.items()}
    return trace(network, dict(zip(input_names, inputs, strict=True)), output_names, axes)


def _write(path, graph, metadata):
    write_graph(path, graph, {name: str(value) for name, value in metadata.items()})
