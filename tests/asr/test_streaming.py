"""Recognition of whole utterances and of streams: chunks, batches, languages, endpoints, int8."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from pyspeech.asr.checkpoint import Bundle
from pyspeech.asr.config import EarlyStopping, Endpointing, SearchConfig, TransducerConfig
from pyspeech.asr.early_stopping import run
from pyspeech.asr.networks import Transducer
from pyspeech.asr.quantization import quantize_bundle
from pyspeech.asr.recognizer import recognize
from pyspeech.asr.streaming import StreamingRecognizer, is_endpoint
from pyspeech.errors import UserError
from pyspeech.features.fbank import FbankConfig, GlobalStats
from pyspeech.text.units import GraphemeUnits

TEXTS = {"hi-IN": ["कमल नदी"], "gu-IN": ["કમળ નદી પણ"], "en-IN": ["some more letters"]}
RATE = 8000


def make_bundle(seed=0, blank=1.0, dtype=torch.float64, **options):
    """A small random model; what it says is nonsense, but depends on the audio."""
    options = {"lid": options.get("structure", "multi_softmax") == "multi_softmax", **options}
    sizes = {"encoder_layers": 2, "encoder_size": 12, "predictor_size": 10, "embedding": 6, "joint": 11, "lid_sizes": [7]}
    config = TransducerConfig(**sizes, features=FbankConfig().dim, **options)
    units = {code: GraphemeUnits.build(texts, language=code) for code, texts in TEXTS.items()}
    if config.structure in ("vanilla", "onehot"):
        units = dict.fromkeys(units, GraphemeUnits.union(units))
    elif config.structure == "monolingual":
        units = {"hi-IN": units["hi-IN"]}
    torch.manual_seed(seed)
    model = Transducer(config, {code: len(item) for code, item in units.items()}).to(dtype).eval()
    for projection in (model.joint.encoder, model.joint.predictor):
        torch.nn.init.normal_(projection.weight, std=1.5)
    for layer in model.joint.outputs:
        torch.nn.init.normal_(layer.weight, std=3)
        torch.nn.init.constant_(layer.bias[:1], blank)
    if model.lid is not None:
        torch.nn.init.normal_(model.lid.layers[-1].weight, std=2)
    return Bundle(model, units, FbankConfig(sampling_rate=RATE), GlobalStats([-8.0] * 80, [3.0] * 80))


def make_audio(seed, seconds):
    """Noise whose loudness and colour change, so that the model has something to tell apart."""
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE)
    noise = rng.standard_normal(count + 8)
    smooth = np.convolve(noise, np.ones(8) / 8, mode="valid")[:count]
    mixture = np.repeat(rng.random(count // 800 + 1), 800)[:count]
    loudness = np.repeat(10 ** rng.uniform(-3, 0, count // 1000 + 1), 1000)[:count]
    return ((mixture * noise[:count] + (1 - mixture) * smooth) * loudness * 0.1).astype(np.float32)


def assert_same(one, other):
    assert (one.text, one.language) == (other.text, other.language)
    assert [item.text for item in one.nbest] == [item.text for item in other.nbest]
    np.testing.assert_allclose([item.score for item in one.nbest], [item.score for item in other.nbest], atol=1e-8)
    assert len(one.words) == len(other.words)
    for word, same in zip(one.words, other.words, strict=True):
        assert dataclasses.astuple(word) == pytest.approx(dataclasses.astuple(same))
    assert one.by_language == other.by_language
    assert one.lid == pytest.approx(other.lid)
    assert (one.confidence, one.t_avg, one.seconds) == pytest.approx((other.confidence, other.t_avg, other.seconds))


def stream(bundle, samples, block, **options):
    recognizer = StreamingRecognizer(bundle, **options)
    for start in range(0, len(samples), block):
        results = recognizer.add(samples[start : start + block])
        assert len(results) == 1 and not results[0].final
    return recognizer.finish()


@pytest.mark.parametrize(
    "block, chunk_frames, language, stopping",
    [
        (80, 10, None, None),
        (777, 1, None, EarlyStopping("mean_p", 20, 0.01)),
        (8000, 3, "gu-IN", None),
        (10**6, 7, None, EarlyStopping("sum_logp", 5, 0.5)),
        (2400, 1000, "hi-IN", None),
    ],
)
def test_any_blocks_and_chunks_equal_the_whole(block, chunk_frames, language, stopping):
    bundle = make_bundle()
    options = {"language": language, "early_stopping": stopping}
    for seed, seconds in ((0, 1.51), (1, 0.07)):
        samples = make_audio(seed, seconds)
        (whole,) = recognize(bundle, [samples], **options)
        assert whole.final and whole.seconds == pytest.approx(seconds, abs=0.04)
        assert seconds < 1 or len(set(whole.text)) > 3
        assert_same(stream(bundle, samples, block, chunk_frames=chunk_frames, **options), whole)


@pytest.mark.parametrize("structure", ["multi_softmax", "vanilla", "onehot", "monolingual"])
def test_a_batch_equals_each_alone_in_the_order_given(structure, monkeypatch):
    monkeypatch.setattr("pyspeech.asr.recognizer.BATCH", 3)
    monkeypatch.setattr("pyspeech.asr.recognizer.BLOCK", 25)
    bundle = make_bundle(1, structure=structure)
    language = "hi-IN" if structure == "onehot" else None
    utterances = [make_audio(seed, seconds) for seed, seconds in enumerate((0.5, 1.0, 0.0, 0.7, 0.01))]
    together = recognize(bundle, utterances, language)
    for samples, result in zip(utterances, together, strict=True):
        assert_same(result, recognize(bundle, [samples], language)[0])
    assert [result.seconds for result in together] == pytest.approx([0.48, 0.99, 0.0, 0.69, 0.03])
    assert together[2].text == "" and together[2].words == [] and together[2].confidence == 0.0
    assert recognize(bundle, []) == []


def test_the_language_chosen_has_the_output_of_its_decoder_alone():
    bundle = make_bundle(2)
    samples = make_audio(2, 1.2)
    (free,) = recognize(bundle, [samples])
    assert free.language == max(free.lid, key=free.lid.get) and sum(free.lid.values()) == pytest.approx(1)
    assert free.t_avg == 3.0 and list(free.by_language) == list(TEXTS)
    for language in TEXTS:
        (given,) = recognize(bundle, [samples], language)
        assert given.language == language and given.t_avg == 1.0 and given.text == free.by_language[language]
        assert given.text == given.nbest[0].text == " ".join(word.text for word in given.words)
        times = [time for word in given.words for time in (word.start, word.end)]
        assert all(0 <= word.start < word.end <= given.seconds + 1e-9 for word in given.words)
        assert all(0 < word.confidence <= 1 for word in given.words)
        assert times[::2] == sorted(times[::2])


def test_early_stopping_never_changes_the_output_of_the_language_chosen():
    bundle = make_bundle(3)
    utterances = [make_audio(seed, 1.2) for seed in range(3)]
    full = recognize(bundle, utterances, early_stopping=EarlyStopping("mean_p", math.inf, 0.0))
    stopped = 0
    for options in (("sum_logp", 5, 1.0), ("mean_logp", 10, 0.1), ("mean_p", 0, 0.0)):
        config = EarlyStopping(*options)
        for all_run, result in zip(full, recognize(bundle, utterances, early_stopping=config), strict=True):
            ((language, t_avg),) = run([all_run.lid_log_posteriors], config)
            assert result.language == list(TEXTS)[language] and result.t_avg == pytest.approx(t_avg)
            assert result.text == all_run.by_language[result.language]
            stopped += result.t_avg < 3
    assert stopped > 4 and all(result.t_avg == 3 for result in full)


@pytest.mark.parametrize("language", TEXTS)
def test_vanilla_tells_the_language_by_script(language):
    bundle = make_bundle(4, structure="vanilla")
    units, (layer,) = bundle.units[language], bundle.model.joint.outputs
    with torch.no_grad():
        layer.bias[units.encode(TEXTS[language][0])] += 50  # it says nothing else
    (result,) = recognize(bundle, [make_audio(0, 0.5)])
    assert result.text and result.language == language and result.lid == {}


def test_a_monolingual_model_needs_no_language():
    result = recognize(make_bundle(structure="monolingual"), [make_audio(0, 0.5)])[0]
    assert result.text and result.language == "hi-IN" and result.t_avg == 1.0


def test_endpoint_rules():
    def decide(seconds, last=None, **options):
        last = None if last is None else round(last * 100) - 1
        return is_endpoint(round(seconds * 100), last, Endpointing(**options), 0.01)

    assert [decide(seconds) for seconds in (1.0, 2.39, 2.40)] == [False, False, True]
    assert [decide(5.0, last) for last in (3.0, 4.19, 4.20, 4.22, 5.0)] == [True, True, True, False, False]
    assert [decide(seconds, seconds - 0.5) for seconds in (19.99, 20.0, 21.0)] == [False, True, True]
    assert not decide(100.0, silence_before=math.inf, longest=math.inf)
    for options in ({"silence_before": 0}, {"silence_after": -1}, {"longest": math.nan}):
        with pytest.raises(UserError, match="endpointing: "):
            Endpointing(**options).check()


def test_endpoints_in_a_stream():
    """A model that says nothing: utterances of 2.4 s; one that talks all the time: of the longest length allowed."""
    samples = make_audio(5, 5.0)
    search = SearchConfig(beam=2, max_symbols=1)
    for blank, endpointing, length, block in (
        (1e4, Endpointing(), 2.4, 1000),
        (1e4, Endpointing(), 2.4, 10**6),
        (-1e4, Endpointing(longest=1.5), 1.5, 3000),
    ):
        bundle, finals = make_bundle(5, blank), []
        recognizer = StreamingRecognizer(bundle, search=search, endpointing=endpointing)
        for start in range(0, len(samples), block):
            *over, running = recognizer.add(samples[start : start + block])
            assert not running.final and all(result.final for result in over)
            finals += over
        finals.append(recognizer.finish())
        assert [result.start for result in finals] == pytest.approx(np.arange(len(finals)) * length)
        assert [result.seconds for result in finals[:-1]] == pytest.approx([length] * (len(finals) - 1))
        assert sum(result.seconds for result in finals) == pytest.approx(5.0, abs=0.04)
        words = [word for result in finals for word in result.words]
        assert bool(words) == (blank < 0)
        assert all(one.start <= other.start for one, other in zip(words, words[1:], strict=False))


def test_a_finished_recognizer_is_as_new():
    bundle = make_bundle(6)
    recognizer, samples = StreamingRecognizer(bundle), make_audio(6, 0.6)
    for _ in range(2):
        recognizer.add(samples)
        assert_same(recognizer.finish(), recognize(bundle, [samples])[0])
    assert recognizer.finish().text == ""


def test_int8_recognizes_and_leaves_the_model_alone():
    bundle = make_bundle(7, dtype=torch.float32)
    samples = make_audio(7, 1.0)
    (before,) = recognize(bundle, [samples])
    quantized = quantize_bundle(bundle)
    modules = [type(module).__module__ for module in quantized.model.modules()]
    assert sum("quantized" in name for name in modules) >= 8  # encoder, predictor, projections, language identification
    assert "quantized" in type(quantized.model.encoder.lstm).__module__
    (result,) = recognize(quantized, [samples])
    assert result.text and result.lid == pytest.approx(before.lid, abs=0.1)
    assert stream(quantized, samples, 1000).seconds == result.seconds
    features = torch.randn(1, 50, bundle.fbank.dim)
    with torch.inference_mode():
        exact, rounded = (one.model.encode(features, torch.tensor([50]))[0] for one in (bundle, quantized))
    assert 0 < (exact - rounded).abs().max() < 0.1 * exact.abs().max()
    assert_same(recognize(bundle, [samples])[0], before)


def test_errors_name_the_languages():
    with pytest.raises(UserError, match="cannot tell the language; give one of hi-IN, gu-IN, en-IN"):
        recognize(make_bundle(lid=False), [make_audio(0, 0.1)])
    with pytest.raises(UserError, match="give one of"):
        recognize(make_bundle(structure="onehot"), [make_audio(0, 0.1)])
    with pytest.raises(UserError, match="ta-IN"):
        recognize(make_bundle(), [make_audio(0, 0.1)], "ta-IN")
    with pytest.raises(UserError, match="chunk_frames"):
        StreamingRecognizer(make_bundle(), chunk_frames=0)
    with pytest.raises(UserError, match="^search option beam=0: expected"):
        recognize(make_bundle(), [make_audio(0, 0.1)], search=SearchConfig(beam=0))
