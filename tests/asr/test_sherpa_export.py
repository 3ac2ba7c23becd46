"""Transducers for sherpa-onnx: exported networks in a plain version of its search, and in it where it is installed."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from tiny_asr import babble, save_random_model

from pyspeech import Recognizer
from pyspeech.asr import sherpa_export
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import SearchConfig
from pyspeech.asr.sherpa_export import check_exportable, export_sherpa, features_difference, largest_difference, token_names
from pyspeech.asr.sherpa_graphs import BINS, FrontEnd, band_weights, chunk_frames, input_config
from pyspeech.commands import export_onnx
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats, fbank, stack
from pyspeech.features.mel import mel_filters
from pyspeech.text.units import GraphemeUnits

RATE = 16000
GREEDY = SearchConfig(beam=1, max_symbols=10, prune=np.inf)  # sherpa-onnx's
MODELS = {
    "multi_softmax": ("multi_softmax", {"lid": True}, {}),
    "several layers": ("multi_softmax", {"encoder_layers": 2, "predictor_layers": 2, "lsp": True}, {"mean_frames": 70}),
    "vanilla": ("vanilla", {}, {"stack": 4, "stack_shift": 4}),
    "onehot": ("onehot", {}, {"stack_shift": 6, "mean_frames": 300}),
}


def make_model(folder, name, kind="nemo"):
    structure, options, features = MODELS[name]
    config = FbankConfig(kind=kind, **features)
    return load_model(save_random_model(folder, structure, fbank=config, features=config.dim, **options))


class PlainSearch:
    """What sherpa-onnx does with the files of a folder, from its source: one stream."""

    def __init__(self, folder):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        networks = (
            onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options) for name in ("encoder", "decoder", "joiner")
        )
        self.encoder, self.decoder, self.joiner = networks
        self.meta = self.encoder.get_modelmeta().custom_metadata_map
        self.blank = int(self.meta["vocab_size"])
        self.names = [line.split()[0] for line in (folder / "tokens.txt").read_text(encoding="utf-8").splitlines()]
        assert self.names[self.blank] == "<blk>" == self.names[-1] and self.meta["normalize_type"] == "NA"

    def start(self):
        shapes = [
            [1, *(int(self.meta[f"cache_last_{kind}_dim{number}"]) for number in (1, 2, 3))] for kind in ("channel", "time")
        ]
        return [*(np.zeros(shape, np.float32) for shape in shapes), np.zeros(1, np.int64)]

    def encode(self, chunks, caches):
        """(B, N, C) and caches -> frames (B, J, T), caches."""
        inputs = [chunks, np.full(len(chunks), chunks.shape[2]), *caches]
        names = [item.name for item in self.encoder.get_inputs()]
        encoded, lengths, *caches = self.encoder.run(None, dict(zip(names, inputs, strict=True)))
        assert (lengths == encoded.shape[2]).all()
        return encoded, caches

    def predict(self, symbol, states):
        names = [item.name for item in self.decoder.get_inputs()]
        inputs = [np.array([[symbol]], np.int32), np.ones(1, np.int32), *states]
        output, _, *states = self.decoder.run(None, dict(zip(names, inputs, strict=True)))
        return output, states

    def text(self, frames):
        """frames (F, N) of log-mel: the text, and the frame of each symbol."""
        caches, encoded, window = self.start(), [], int(self.meta["window_size"])
        for start in range(0, len(frames) - window, int(self.meta["chunk_shift"])):
            chunk, caches = self.encode(frames[start : start + window].T[None], caches)
            encoded.append(chunk)
        zeros = np.zeros((int(self.meta["pred_rnn_layers"]), 1, int(self.meta["pred_hidden"])), np.float32)
        predicted, states = self.predict(self.blank, [zeros, zeros])
        symbols, times = [], []
        first, second = (item.name for item in self.joiner.get_inputs())
        for time, frame in enumerate(np.concatenate(encoded, axis=2)[0].T):
            for _ in range(10):
                logits = self.joiner.run(None, {first: frame[None, :, None], second: predicted})[0]
                symbol = int(logits.reshape(-1).argmax())
                if symbol == self.blank:
                    break
                symbols.append(symbol)
                times.append(time)
                predicted, states = self.predict(symbol, states)
        return "".join(self.names[symbol] for symbol in symbols).replace("\u2581", " ").strip(), times


def heard(samples, config):
    """The samples of the whole chunks that sherpa-onnx decodes: it waits for a frame more."""
    size = chunk_frames(config)
    count = (config.log_mel_frames(len(samples)) - 1) // size * size
    return samples[: config.window + (count - 1) * config.shift]


@pytest.mark.parametrize("name", MODELS)
def test_texts_are_ours(tmp_path, name):
    bundle = make_model(tmp_path, name)
    export_sherpa(bundle, "hi-IN", tmp_path / "out")
    assert largest_difference(bundle, "hi-IN", tmp_path / "out") < 1e-4
    plain, ours = PlainSearch(tmp_path / "out"), Recognizer(bundle, "hi-IN", GREEDY, vad=False)
    found = set()
    for seed in range(2):
        samples = babble(2.8, seed=seed)
        text, times = plain.text(fbank(samples, input_config(bundle.fbank)).numpy())
        expected = ours.transcribe((heard(samples, bundle.fbank), RATE))
        assert text == expected.text
        found.add(text)
        frames = {round(word.start / bundle.frame_seconds) for word in expected.words}
        assert frames <= set(times) and times == sorted(times)
    assert found != {""}


@pytest.mark.parametrize("name", ["several layers", "onehot"])
def test_streams_in_a_batch_are_those_alone(tmp_path, name):
    """One of them two chunks ahead, as when it began earlier."""
    bundle = make_model(tmp_path, name)
    export_sherpa(bundle, "ta-IN", tmp_path / "out")
    plain, size = PlainSearch(tmp_path / "out"), chunk_frames(bundle.fbank)
    chunks = [
        fbank(babble(3, seed=seed), input_config(bundle.fbank)).numpy()[: 4 * size].reshape(4, size, -1).transpose(0, 2, 1)
        for seed in range(2)
    ]
    alone, states = [], []
    for one in chunks:
        caches, outputs, after = plain.start(), [], []
        for chunk in one:
            encoded, caches = plain.encode(chunk[None], caches)
            outputs.append(encoded)
            after.append(caches)
        alone.append(outputs)
        states.append(after)
    caches = [np.concatenate(parts) for parts in zip(states[0][1], plain.start(), strict=True)]
    for step in range(2):
        encoded, caches = plain.encode(np.stack([chunks[0][2 + step], chunks[1][step]]), caches)
        np.testing.assert_allclose(encoded[:1], alone[0][2 + step], atol=1e-5)
        np.testing.assert_allclose(encoded[1:], alone[1][step], atol=1e-5)


@pytest.mark.parametrize("features", [{}, {"mean_frames": 50}, {"stack": 3, "stack_shift": 3}, {"stack": 1, "stack_shift": 1}])
def test_the_front_end_is_ours(features):
    config, stats = FbankConfig(kind="nemo", **features), GlobalStats(np.linspace(-9, -5, 80).tolist(), [2.0] * 80)
    assert features_difference(config, stats) < 1e-4
    assert features_difference(replace(config, kind="kaldi"), None) < 1e-4


def test_another_normalisation_is_noticed(monkeypatch):
    """As in a version whose features do what the exported networks do not."""
    monkeypatch.setattr(sherpa_export, "stack", lambda frames, config: stack(frames, config) + 0.01)
    assert features_difference(FbankConfig(), None) == pytest.approx(0.01, abs=1e-3)


@pytest.mark.parametrize("rate", [16000, 8000])
def test_kaldis_features_of_sherpas(rate):
    """Loud sounds: energies within a tenth, but for the lowest bins; bins that 8 kHz audio lacks are not there."""
    config = FbankConfig(sampling_rate=rate)
    weights = band_weights(rate, 80)
    assert weights.shape == (BINS, 80) and (weights >= 0).all()
    time = np.arange(3 * RATE) / RATE
    rng = np.random.default_rng(0)
    tones = sum(np.sin(2 * np.pi * tone * time + rng.uniform(0, 6)) for tone in np.arange(130, 3900, 130))
    samples = torch.from_numpy((0.01 * tones + 0.01 * rng.standard_normal(len(time))).astype(np.float32))
    low = samples if rate == RATE else torch.from_numpy(resampled(samples.numpy()))
    expected = fbank(low, config)
    front_end = FrontEnd(FbankConfig(sampling_rate=rate, stack=1, stack_shift=1), None)
    made = front_end(fbank(samples, input_config(config))[None], torch.zeros(1, 1, 80), torch.tensor([0]))[0][0]
    count = min(len(made), len(expected))
    wrong = (made[:count] - expected[:count]).abs().mean(dim=0)
    assert wrong[4:74].mean() < 0.1 and wrong[4:74].max() < 0.6


def resampled(samples):
    import soxr

    return soxr.resample(samples, RATE, RATE // 2)


def test_as_many_bins_as_have_a_point():
    assert (mel_filters("nemo", RATE, 512, BINS).sum(dim=0) > 0).all()
    assert not (mel_filters("nemo", RATE, 512, BINS + 1).sum(dim=0) > 0).all()


def test_names_of_symbols(tmp_path):
    bundle = make_model(tmp_path, "multi_softmax")
    assert token_names(bundle.units["hi-IN"]) == [*"कखगघ", *("\u2581" + letter for letter in "कखगघ"), "<blk>"]
    assert token_names(GraphemeUnits("-B"))[:4] == ["-", "B", "\u2581-", "\u2581B"]


@pytest.mark.parametrize("kind, bonus", [("nemo", 0.0), ("nemo", 0.6), ("kaldi", 0.0)])
def test_in_sherpa_onnx(tmp_path, kind, bonus):
    """The same texts from its own features, streamed, and times of symbols; from kaldi's features, a text. Its penalty of the
    blank is a bonus for symbols."""
    sherpa_onnx = pytest.importorskip("sherpa_onnx")
    bundle = make_model(tmp_path, "vanilla", kind)
    export_sherpa(bundle, "hi-IN", tmp_path / "out")
    files = {name: str(tmp_path / "out" / f"{name}.onnx") for name in ("encoder", "decoder", "joiner")}
    tokens = str(tmp_path / "out" / "tokens.txt")
    recognizer = sherpa_onnx.OnlineRecognizer.from_transducer(
        tokens=tokens, **files, num_threads=1, snip_edges=True, blank_penalty=bonus
    )
    texts, ours = [], Recognizer(bundle, "hi-IN", GREEDY.changed(symbol_bonus=bonus), vad=False)
    for seed in range(2):
        samples, stream = babble(3, seed=seed), recognizer.create_stream()
        for block in np.array_split(samples, 9):
            stream.accept_waveform(RATE, block)
            while recognizer.is_ready(stream):
                recognizer.decode_streams([stream])
        texts.append((recognizer.get_result(stream).strip(), ours.transcribe((heard(samples, bundle.fbank), RATE)).text))
    assert all(theirs == text for theirs, text in texts) or kind == "kaldi"
    assert any(theirs for theirs, _ in texts)


@pytest.mark.parametrize(
    "features, options, message",
    [
        (
            {},
            {"encoder": "conformer"},
            "encoder=conformer: cannot be exported to sherpa-onnx; expected a model with encoder=lstm",
        ),
        (
            {"shift_ms": 20},
            {},
            "features of 25 ms each 20 ms: .*; expected a model with features.window_ms=25 features.shift_ms=10",
        ),
        ({"sampling_rate": 22050}, {}, "features at 22050 Hz: .*; expected a model with features.sampling_rate=16000 or 8000"),
        ({"sampling_rate": 8000, "kind": "nemo"}, {}, "features at 8000 Hz: .*features.sampling_rate=16000$"),
    ],
)
def test_models_that_it_cannot_take(tmp_path, features, options, message):
    bundle = load_model(save_random_model(tmp_path, "vanilla", fbank=FbankConfig(**features), **options))
    with pytest.raises(UserError, match=message):
        check_exportable(bundle)


def test_the_tool(tmp_path, capsys):
    folder = save_random_model(tmp_path / "model", "multi_softmax")
    export_onnx.main([str(folder), "--format", "sherpa-onnx"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines[:3]] == [
        str(folder / "sherpa-onnx" / code) for code in ("en-IN", "hi-IN", "ta-IN")
    ]
    assert "train with features.kind=nemo" in lines[3]
    files = ["decoder.onnx", "encoder.onnx", "joiner.onnx", "tokens.txt"]
    assert sorted(path.name for path in (folder / "sherpa-onnx" / "ta-IN").iterdir()) == files
    export_onnx.main([str(folder), "--format", "sherpa-onnx", "--language", "hi", "-o", str(tmp_path / "hindi")])
    assert sorted(path.name for path in (tmp_path / "hindi").iterdir()) == files
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'hindi'}: ")


def test_misuse_of_the_tool(tmp_path, monkeypatch):
    folder = str(save_random_model(tmp_path / "model", "multi_softmax"))
    with pytest.raises(UserError, match="-o hindi.onnx: expected the name of a folder"):
        export_onnx.main([str(folder), "--format", "sherpa-onnx", "-o", "hindi.onnx"])
    with pytest.raises(UserError, match="a transducer cannot be exported with --format onnx; add --format sherpa-onnx"):
        export_onnx.main([folder])
    with pytest.raises(UserError, match="language fr: the model knows en-IN, hi-IN, ta-IN"):
        export_onnx.main([folder, "--format", "sherpa-onnx", "--language", "fr"])
    monkeypatch.setattr(export_onnx, "LARGEST_LOGITS", 0)
    with pytest.raises(UserError, match="logits differ .*; do not use it"):
        export_onnx.main([folder, "--format", "sherpa-onnx", "--language", "hi"])
