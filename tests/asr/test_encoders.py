"""What every encoder has to do, streams against the whole above all; the Conformer; an encoder that a test adds."""

import dataclasses
import runpy

import numpy as np
import pytest
import torch
from recipe_harness import ROOT
from tiny_asr import SMALL, VOCABULARIES, babble, count_parameters, save_random_model
from tiny_training import descend

from pyspeech.asr import recognizer
from pyspeech.asr.api import Recognizer
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import Endpointing, LossConfig, TransducerConfig, parameter_count
from pyspeech.asr.conformer import ConformerEncoder
from pyspeech.asr.finetune import to_monolingual
from pyspeech.asr.networks import Transducer
from pyspeech.asr.quantization import quantize_bundle
from pyspeech.asr.registry import ENCODERS, EncoderEntry
from pyspeech.asr.streaming import StreamingRecognizer
from pyspeech.asr.training import TransducerTraining, compute_loss
from pyspeech.compat import autocast, load_checkpoint, save_checkpoint
from pyspeech.engine import config
from pyspeech.errors import UserError
from tests.asr.test_finetune import SYMBOLS, lattice
from tests.asr.test_networks import KINDS, make_model
from tests.asr.test_streaming import assert_same, make_audio, make_bundle, stream
from tests.asr.test_training import SIZES, make_batch

OPTIONS = {"heads": 3, "chunk": 4, "left": 6, "kernel": 3, "expansion": 2}
CONFORMER = {"encoder": "conformer", "encoder_options": OPTIONS}


class Pairs(torch.nn.Module):
    """An encoder of two frames at a time: its state is the frame that waits for the next one, and how many of it count."""

    input_layer = ("embed.weight", "embed.bias")

    def __init__(self, config, inputs, power):
        super().__init__()
        self.embed, self.power = torch.nn.Linear(inputs, config.encoder_size), power

    def start(self, inputs):
        return inputs[:, :0], torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)

    def forward(self, inputs, lengths, state, last):
        inputs, counts = torch.cat([state[0], inputs], dim=1), state[1] + lengths
        total = inputs.shape[1] if last else inputs.shape[1] // 2 * 2
        now, counts = counts.clamp(max=total), (counts - total).clamp(min=0)
        inside = torch.arange(total) < now[:, None]
        frames = torch.tanh(self.embed(inputs[:, :total])) ** self.power
        frames = frames.masked_fill(~inside[:, :, None], 0.0)
        frames = torch.nn.functional.pad(frames, (0, 0, 0, total % 2)).unflatten(1, (-1, 2)).sum(dim=2)
        return frames, (now + 1) // 2, (inputs[:, total:], counts)


@pytest.fixture(autouse=True)
def pairs(monkeypatch):
    monkeypatch.setitem(ENCODERS, "pairs", EncoderEntry(f"{__name__}:Pairs", {"power": 1}, subsampling=2))


@pytest.fixture(params=["lstm", "conformer", "pairs"])
def encoder(request):
    """Options of a TransducerConfig."""
    return CONFORMER if request.param == "conformer" else {"encoder": request.param}


def languages_of(model, rows):
    return torch.arange(rows) % 3 if model.config.structure == "onehot" else None


def encode_in_chunks(model, features, lengths, sizes):
    """The frames that count of each row, which come chunk by chunk."""
    state, start, found = None, 0, [[] for _ in features]
    for index, chunk in enumerate(features.split(sizes, dim=1)):
        counts, last = (lengths - start).clamp(0, chunk.shape[1]), index == len(sizes) - 1
        encoded, counts, state = model.encode(chunk, counts, state, languages_of(model, len(features)), last)
        for row, count in enumerate(counts.tolist()):
            found[row].append(encoded[row, :count])
        start += chunk.shape[1]
    return [torch.cat(pieces) for pieces in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@torch.no_grad()
def test_chunks_of_any_sizes_equal_the_whole(encoder, kind, dtype, tolerance):
    model = make_model(kind, dtype=dtype, **encoder)
    features, lengths = torch.randn(4, 50, 16, dtype=dtype), torch.tensor([50, 13, 0, 41])
    for row, length in enumerate(lengths):
        features[row, length:] = float("nan")
    whole = encode_in_chunks(model, features, lengths, [50])
    step = ENCODERS[encoder["encoder"]].subsampling
    assert [len(frames) for frames in whole] == [-(-length // step) for length in lengths.tolist()]
    for sizes in ([1] * 50, [10] * 5, [0, 3, 40, 0, 7], [49, 1, 0]):
        for one, other in zip(encode_in_chunks(model, features, lengths, sizes), whole, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@torch.no_grad()
def test_a_padded_batch_equals_each_alone(encoder):
    model = make_model("lid", **encoder)
    features, lengths = torch.randn(3, 20, 16, dtype=torch.float64), torch.tensor([20, 7, 13])
    for row, frames in enumerate(encode_in_chunks(model, features, lengths, [20])):
        (alone,) = encode_in_chunks(model, features[row : row + 1, : lengths[row]], lengths[row : row + 1], [int(lengths[row])])
        torch.testing.assert_close(frames, alone, rtol=0, atol=1e-10)


@torch.no_grad()
def test_a_frame_of_the_conformer_sees_its_chunk_and_a_limited_past():
    model = make_model("monolingual", **CONFORMER)  # two blocks of 6 frames (attention) and then 2 (convolution)
    features, lengths = torch.randn(1, 60, 16, dtype=torch.float64), torch.tensor([60])
    before = model.encode(features, lengths)[0][0]
    features[0, 30] += 1
    changed = (model.encode(features, lengths)[0][0] - before).abs().amax(dim=1) > 1e-12
    assert changed[28:32].all() and not changed[:28].any()  # its chunk: frames 28 to 31
    assert changed[32:36].all() and not changed[30 + 2 * (6 + 3 + 2) + 1 :].any()


def test_the_conformer_holds_frames_back_until_their_chunk_is_complete():
    model = make_model("monolingual", **CONFORMER)
    features, state, counts = torch.randn(1, 11, 16, dtype=torch.float64), None, []
    for frame in features.split(1, dim=1):
        _, lengths, state = model.encode(frame, torch.tensor([1]), state, last=False)
        counts.append(lengths.item())
    assert counts == [0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0]
    assert model.encode(features[:, :0], torch.tensor([0]), state)[1].item() == 3


@pytest.mark.parametrize("chunk", [4, 3, 1])
@torch.no_grad()
def test_attention_and_convolution_frame_by_frame(chunk):
    """A block of the Conformer against its equations, with loops in place of masks; trained with chunks of up to 4."""
    model = make_model("monolingual", encoder_layers=1, **CONFORMER)
    model.encoder.chunk = chunk
    encoder, features = model.encoder, torch.randn(1, 23, 16, dtype=torch.float64)
    block, frames = encoder.blocks[0], encoder.embed(features[0])
    frames = frames + block.feed_forward[0](frames) / 2
    attention, normed = block.attention, block.attention.norm(frames)
    query, (key, value) = attention.query(normed), attention.memory(normed).chunk(2, dim=1)
    attended = torch.zeros_like(query)
    for now in range(23):
        begin = now // chunk * chunk
        seen = range(max(0, begin - 6), min(23, begin + chunk))
        for head in range(3):
            part = slice(8 * head, 8 * head + 8)
            scores = [query[now, part] @ key[other, part] / 8**0.5 + attention.bias[now - other + 3, head] for other in seen]
            for weight, other in zip(torch.stack(scores).softmax(0), seen, strict=True):
                attended[now, part] += weight * value[other, part]
    frames = frames + attention.leave(attended)
    convolution = block.convolution
    gate, opening = convolution.enter(convolution.norm(frames)).chunk(2, dim=1)
    gated, weight = gate * torch.sigmoid(opening), convolution.depthwise.weight[:, 0]
    convolved = [
        convolution.depthwise.bias + sum(weight[:, 2 - back] * gated[now - back] for back in range(min(3, now + 1)))
        for now in range(23)
    ]
    convolved = convolution.inner_norm(torch.stack(convolved))
    frames = frames + convolution.leave(convolved * torch.sigmoid(convolved))
    expected = block.norm(frames + block.feed_forward[1](frames) / 2)
    torch.testing.assert_close(model.encode(features, torch.tensor([23]))[0][0], expected, rtol=0, atol=1e-10)


def test_chunks_differ_from_step_to_step_in_training_alone():
    model = make_model("monolingual", **CONFORMER)
    features, lengths = torch.randn(1, 20, 16, dtype=torch.float64), torch.tensor([20])
    outputs = {mode: {model.train(mode).encode(features, lengths)[0].sum().item() for _ in range(40)} for mode in (True, False)}
    assert len(outputs[False]) == 1 and len(outputs[True]) == 4  # chunks of 1 to 4


def test_every_parameter_learns_and_the_loss_falls(encoder):
    """lid: the heads of language identification learn on it too. A tenth of the loss is gone in 30 steps."""
    torch.manual_seed(3)
    model = Transducer(TransducerConfig(**{**SMALL, "lid": True, **encoder}), SIZES).double()
    training, batch = TransducerTraining(model, LossConfig(), warmup_batches=4), make_batch([0, 0, 1, 2])
    losses, values = descend(training, compute_loss, batch, 30, lr=0.01)
    assert losses[-1] < 0.9 * losses[5] and {"lid", "lid_accuracy"} <= set(values)
    training.zero_grad(set_to_none=True)
    training(batch)[0].backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    assert [name for name, parameter in model.encoder.named_parameters() if not parameter.grad.abs().sum() > 0] == []


def test_training_in_bf16(encoder):
    torch.manual_seed(3)
    model = Transducer(TransducerConfig(**{**SMALL, "lid": True, **encoder}), SIZES)
    training, batch = TransducerTraining(model, LossConfig(), warmup_batches=4).eval(), make_batch([0, 0, 1, 2])
    batch["features"] = batch["features"].float()
    with autocast("cpu"):
        rounded = training(batch)[0]
    rounded.backward()
    assert rounded.item() == pytest.approx(training(batch)[0].item(), rel=0.02)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("structure", ["multi_softmax", "vanilla", "onehot", "monolingual"])
def test_streams_are_recognised_as_the_whole(encoder, structure, monkeypatch):
    monkeypatch.setattr(recognizer, "BATCH", 3)
    monkeypatch.setattr(recognizer, "BLOCK", 25)  # utterances end within blocks, and chunks within these
    bundle, language = make_bundle(1, structure=structure, **encoder), "hi-IN" if structure == "onehot" else None
    utterances = [make_audio(seed, seconds) for seed, seconds in enumerate((0.5, 1.0, 0.0, 0.7, 0.01))]
    results = recognizer.recognize(bundle, utterances, language)
    assert any(result.text for result in results) and results[2].seconds == 0
    for samples, result in zip(utterances, results, strict=True):
        assert result.seconds == pytest.approx(len(samples) / 8000, abs=0.06)
        for block, chunk_frames in ((700, 1), (4000, 10)):
            assert_same(stream(bundle, samples, block, chunk_frames=chunk_frames, language=language), result)


def test_no_frame_of_a_stream_is_lost_at_its_endpoints(encoder):
    stream = StreamingRecognizer(make_bundle(5, 1e4, **encoder), endpointing=Endpointing(silence_before=1.0))
    samples = make_audio(5, 5.0)
    *finals, running = stream.add(samples)
    assert len(finals) == 4 and not any(result.text for result in finals)
    starts = [result.start for result in [*finals, running]]
    assert starts == pytest.approx([0, *np.cumsum([result.seconds for result in finals])])
    assert starts[-1] + stream.finish().seconds == pytest.approx(5.0, abs=0.06)


def test_recognition_with_8_bit_integers(encoder):
    bundle = make_bundle(7, dtype=torch.float32, **encoder)
    quantized = quantize_bundle(bundle)
    samples = make_audio(7, 1.0)
    (result,) = recognizer.recognize(quantized, [samples])
    assert result.text and stream(quantized, samples, 1000).seconds == result.seconds
    assert any("quantized" in type(module).__module__ for module in quantized.model.encoder.modules())


@pytest.mark.parametrize("language", VOCABULARIES)
def test_a_constant_language_becomes_part_of_the_bias(encoder, language):
    model, symbols = make_model("onehot", **encoder), torch.tensor(SYMBOLS[language])
    seeded = to_monolingual(model, language, SYMBOLS[language])
    features, tokens = torch.randn(2, 9, 16).double(), torch.randint(len(symbols), (2, 4))
    old, new = lattice(model, features, symbols[tokens], language), lattice(seeded, features, tokens, language)
    for before, after in zip(old, new, strict=True):
        torch.testing.assert_close(before[..., symbols], after, rtol=0, atol=1e-12)


def test_the_file_of_a_model_and_the_recogniser_of_it(encoder, tmp_path):
    folder = save_random_model(tmp_path / "model", "multi_softmax", lid=True, **encoder)
    content = load_checkpoint(folder / "model.pt")["transducer"]
    assert content["encoder"] == encoder["encoder"]
    assert content["encoder_options"] == {**ENCODERS[encoder["encoder"]].options, **encoder.get("encoder_options", {})}
    found = Recognizer.load(folder, device="cpu", min_silence=0.3, vad=False)
    samples = babble(3)
    transcript = found.transcribe(samples, found.sampling_rate)
    *_, (last, seconds) = found.segments([samples[:10000], samples[10000:]])
    assert transcript.text and transcript.duration == seconds == 3.0 and last.final
    bundle = load_model(folder)
    assert parameter_count(bundle.model.config, bundle.model.vocabularies) == count_parameters(bundle.model)


def test_a_file_of_a_model_from_before_there_was_a_choice(tmp_path):
    folder = save_random_model(tmp_path / "model", "multi_softmax")
    content, expected = load_checkpoint(folder / "model.pt"), load_model(folder).model.state_dict()
    del content["transducer"]["encoder"], content["transducer"]["encoder_options"]
    save_checkpoint(folder / "model.pt", content)
    model = load_model(folder).model
    assert model.config.encoder == "lstm"
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert sorted(name for name, _ in model.encoder.named_parameters())[0] == "lstm.bias_hh_l0"


def test_an_encoder_that_is_added_is_an_option_of_the_recipe(monkeypatch):
    monkeypatch.setenv("PYSPEECH_ENV", "system")
    recipe = runpy.run_path(str(ROOT / "egs" / "indic" / "run.py"), run_name="run")["recipe"]
    conf = recipe.configure("quick")[0]
    config.override(conf, recipe.config_class, ["model.encoder=pairs", "model.encoder_options.power=3"])
    checked = config.checked(conf, recipe.config_class)
    model = Transducer(dataclasses.replace(checked.model, lid=True), VOCABULARIES)
    assert isinstance(model.encoder, Pairs) and model.encoder.power == 3


@pytest.mark.parametrize(
    "options, message",
    [
        ({"encoder": "gru"}, "encoder=gru: expected one of lstm, conformer"),
        ({"encoder_options": {"chunk": 3}}, "expected none, as encoder=lstm has none"),
        ({"encoder": "conformer", "encoder_options": {"chunks": 3}}, "from 1 on for any of heads, chunk, left"),
        ({"encoder": "conformer", "encoder_options": {"left": 0}}, "expected numbers from 1 on"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(UserError, match=message):
        TransducerConfig(**options).check()


def test_the_conformer_without_rows_or_frames():
    encoder = ConformerEncoder(TransducerConfig(encoder_size=6), 4, **OPTIONS)
    for shape in ((0, 5, 4), (2, 0, 4)):
        inputs = torch.zeros(shape)
        encoded, lengths, _ = encoder(inputs, torch.zeros(shape[0], dtype=torch.int64), encoder.start(inputs), True)
        assert encoded.shape == (*shape[:2], 6) and lengths.tolist() == [0] * shape[0]
