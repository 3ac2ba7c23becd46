"""The transducers: sizes of the paper, causality, chunks against the whole, heads together against alone, the file."""

import copy
import dataclasses
import threading
from pathlib import Path

import pytest
import torch
from tiny_asr import SMALL, UNION, VOCABULARIES, count_parameters

from pyspeech.asr.checkpoint import load_model, save_model
from pyspeech.asr.config import TransducerConfig, parameter_count
from pyspeech.asr.encoder import run_lstm
from pyspeech.asr.networks import Transducer
from pyspeech.asr.packing import Packing
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.text.units import GraphemeUnits
from steps.asr.tables import PAPER_TABLE_1

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "monolingual": ({"structure": "monolingual"}, {"hi-IN": 5}),
    "vanilla": ({"structure": "vanilla"}, dict.fromkeys(VOCABULARIES, UNION)),
    "onehot": ({"structure": "onehot"}, dict.fromkeys(VOCABULARIES, UNION)),
    "multi_softmax": ({}, VOCABULARIES),
    "lsp": ({"lsp": True}, VOCABULARIES),
    "lid": ({"lid": True}, VOCABULARIES),
    "lsp_lid": ({"lsp": True, "lid": True}, VOCABULARIES),
}


def make_model(kind, seed=0, dtype=torch.float64, **options):
    """A small untrained model in evaluation mode, with no parameter at its special starting value."""
    torch.manual_seed(seed)
    structure, vocabularies = KINDS[kind]
    model = Transducer(TransducerConfig(**{**SMALL, **structure, **options}), vocabularies).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def encode(model, features, state=None):
    languages = torch.arange(len(features)) % 3 if model.config.structure == "onehot" else None
    return model.encode(features, torch.full((len(features),), features.shape[1]), state, languages)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_sizes_of_the_paper():
    """Table 6: as printed for monolingual, multi-softmax and LSP, within 0.01 for LID; the others fit a union of 608."""

    def millions(structure, vocabularies=PAPER_TABLE_1):
        return parameter_count(TransducerConfig(**structure), vocabularies) / 1e6

    mono = millions({"structure": "monolingual"}, {"en-IN": PAPER_TABLE_1["en-IN"]})
    assert [f"{one:.2f}" for one in (mono, millions({}), millions({"lsp": True}))] == ["67.98", "68.55", "118.94"]
    assert abs(millions({"lid": True}) - 70.08) < 0.01
    for union, printed in ((409, ["68.54", "68.58"]), (608, ["68.95", "68.98"])):
        pooled = dict.fromkeys(PAPER_TABLE_1, union)
        assert [f"{millions({'structure': kind}, pooled):.2f}" for kind in ("vanilla", "onehot")] == printed


def test_counts_without_building_equal_those_of_models(kind):
    for options in ({}, {"encoder_layers": 1, "predictor_layers": 3, "lid_sizes": [], "embedding": 5}):
        model = make_model(kind, **options)
        assert parameter_count(model.config, model.vocabularies) == count_parameters(model)
    assert sum(parameter.numel() for parameter in model.parameters()) > count_parameters(model)  # the pruned loss's


def test_a_model_of_the_paper_has_its_size():
    model = Transducer(TransducerConfig(lid=True), PAPER_TABLE_1)
    assert count_parameters(model) == 70076524


def test_encoder_against_a_plain_lstm():
    """Two layers, one frame at a time, from the textbook's equations; then mean 0 and variance 1 in each frame."""
    model = make_model("monolingual")
    features = torch.randn(2, 7, 16, dtype=torch.float64)
    lstm, outputs = model.encoder.lstm, features
    for layer in range(2):
        weight = {name: getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        hidden = cell = torch.zeros(2, 24, dtype=torch.float64)
        frames = []
        for frame in outputs.unbind(1):
            gates = frame @ weight["weight_ih"].t() + weight["bias_ih"]
            gates = gates + hidden @ weight["weight_hh"].t() + weight["bias_hh"]
            enter, forget, new, leave = gates.chunk(4, dim=1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            frames.append(hidden)
        outputs = torch.stack(frames, dim=1)
    outputs = outputs - outputs.mean(dim=2, keepdim=True)
    outputs = outputs / (outputs.square().mean(dim=2, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(encode(model, features)[0], outputs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_chunks_equal_the_whole(kind, dtype, tolerance):
    model = make_model(kind, dtype=dtype)
    features = torch.randn(3, 50, 16, dtype=dtype)
    with torch.no_grad():
        whole, _, last = encode(model, features)
        for sizes in ([1] * 50, [10] * 5, [0, 3, 40, 0, 7]):
            state, pieces = None, []
            for chunk in features.split(sizes, dim=1):
                encoded, _, state = encode(model, chunk, state)
                pieces.append(encoded)
            torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=0, atol=tolerance)
            torch.testing.assert_close(state, last, rtol=tolerance, atol=tolerance)


def test_frames_depend_on_the_past_alone(kind):
    model = make_model(kind)
    features = torch.randn(3, 20, 16, dtype=torch.float64)
    changed = features.clone()
    changed[:, 12:] = float("nan")  # as what lies behind an utterance's end
    before, after = encode(model, features)[0], encode(model, changed)[0]
    torch.testing.assert_close(before[:, :12], after[:, :12], rtol=0, atol=0)
    assert after[:, 12].isnan().all()


def test_no_utterances_and_no_frames(kind):
    model = make_model(kind)
    assert encode(model, torch.zeros(0, 4, 16, dtype=torch.float64))[0].shape == (0, 4, 24)
    assert encode(model, torch.zeros(2, 0, 16, dtype=torch.float64))[0].shape == (2, 0, 24)
    assert model.predict_sequence(torch.zeros(2, 0, dtype=torch.int64), 0)[0].shape == (2, 1, 28)
    nothing = torch.zeros(0, dtype=torch.int64)
    projected, state = model.predict(nothing, nothing, model.predictor_start(0))
    assert projected.shape == (0, 28) and [part.shape for part in state] == [(2, 0, 20)] * 2


def test_prediction_by_steps_equals_that_of_sequences(kind):
    """Rows of all heads mixed, one symbol at a time, against each head's whole sequence."""
    model = make_model(kind)
    heads = torch.arange(7) % model.num_heads
    tokens = torch.stack([torch.randint(model.vocabulary_sizes[head], (6,)) for head in heads])
    state, steps = model.predictor_start(7), []
    with torch.no_grad():
        for symbols in torch.nn.functional.pad(tokens, (1, 0)).unbind(1):
            projected, state = model.predict(symbols, heads, state)
            steps.append(projected)
    for row, head in enumerate(heads.tolist()):
        expected, hidden = model.predict_sequence(tokens[row : row + 1], head)
        assert hidden.shape == (1, 7, 20)
        torch.testing.assert_close(torch.stack(steps, dim=1)[row], expected[0], rtol=0, atol=1e-12)


def test_rows_of_a_state_can_be_picked(kind):
    model = make_model(kind)
    heads, tokens = torch.arange(4) % model.num_heads, torch.tensor([1, 2, 3, 4])
    _, state = model.predict(tokens, heads, model.predictor_start(4))
    rows = torch.tensor([2, 2, 0])
    picked, _ = model.predict(tokens[rows], heads[rows], tuple(part.index_select(1, rows) for part in state))
    everything, _ = model.predict(tokens, heads, state)
    torch.testing.assert_close(picked, everything[rows], rtol=0, atol=1e-12)


def test_heads_together_equal_each_alone(kind):
    model = make_model(kind)
    encoded, predicted = torch.randn(2, model.num_heads, 5, 28, dtype=torch.float64)
    with torch.no_grad():
        together = model.logits(encoded, predicted)
        assert together.shape == (model.num_heads, 5, max(model.vocabulary_sizes))
        for head, size in enumerate(model.vocabulary_sizes):
            alone = model.head_logits(encoded[head], predicted[head], head)
            torch.testing.assert_close(together[head, :, :size], alone, rtol=0, atol=1e-12)
            assert (together[head, :, size:] == -1e30).all()
            torch.testing.assert_close(
                model.logits(encoded[head : head + 1], predicted[head : head + 1], [head])[0],
                together[head],
                rtol=0,
                atol=1e-12,
            )
        assert (together.log_softmax(dim=2).exp().sum(dim=2) - 1).abs().max() < 1e-12


def test_joint_against_its_equation():
    model = make_model("multi_softmax")
    encoded, predicted = torch.randn(4, 24, dtype=torch.float64), torch.randn(4, 20, dtype=torch.float64)
    joint = model.joint
    hidden = torch.tanh(
        encoded @ joint.encoder.weight.t() + joint.encoder.bias + predicted @ joint.predictor.weight.t() + joint.predictor.bias
    )
    expected = hidden @ joint.outputs[2].weight.t() + joint.outputs[2].bias
    logits = model.head_logits(model.project_encoded(encoded), joint.predictor(predicted), 2)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


def search_step(model):
    """What a search asks of the packed parameters."""
    heads = torch.arange(model.num_heads)
    projected, _ = model.predict(torch.ones_like(heads), heads, model.predictor_start(model.num_heads))
    return model.logits(projected[:, None], projected[:, None])


@pytest.mark.parametrize("change", ["training", "loading", "in place", "type", "replaced", "behind its back"])
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_packed_parameters_follow_the_parameters(change, context):
    model, other = make_model("lsp"), make_model("lsp", seed=1)
    with context():
        before = search_step(model)
    if change == "training":
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        search_step(model).clamp(min=-10).sum().backward()
        optimizer.step()
        model.eval()
    elif change == "loading":
        model.load_state_dict(other.state_dict())
    elif change == "in place":
        with torch.no_grad():
            model.joint.outputs[1].weight.mul_(2)
            model.predictor.embeddings[1].weight.mul_(2)
    elif change == "type":
        model.float().double()
    elif change == "replaced":
        model.joint.outputs[1].weight = torch.nn.Parameter(other.joint.outputs[1].weight.detach().clone())
    else:
        model.joint.outputs[1].weight.data.mul_(2)
        model.eval()
    fresh = Transducer(model.config, model.vocabularies).double().eval()
    fresh.load_state_dict(model.state_dict())
    with context():
        after = search_step(model)
        torch.testing.assert_close(after, search_step(fresh), rtol=0, atol=1e-12)
        assert change == "type" or not torch.allclose(after, before)


def test_packed_parameters_are_kept_and_not_copied(monkeypatch):
    get, built = Packing.get, []
    monkeypatch.setattr(
        Packing, "get", lambda self, key, parameters, build: get(self, key, parameters, lambda: built.append(key) or build())
    )
    model = make_model("multi_softmax")
    with torch.inference_mode():
        search_step(model)
        first = len(built)
        search_step(model)
        assert len(built) == first > 0
        search_step(copy.deepcopy(model))
        assert len(built) == 2 * first
    search_step(model).sum().backward()  # with gradients nothing of that is used
    assert model.joint.outputs[2].weight.grad is not None


def test_only_the_language_of_the_minibatch_is_updated():
    """Section 4: shared and language specific parameters alone; 4.2: the LID's loss reaches the encoder alone."""
    model = make_model("lsp_lid").train()
    encoded, _, _ = encode(model, torch.randn(2, 9, 16, dtype=torch.float64))
    predicted, hidden = model.predict_sequence(torch.randint(5, (2, 4)), 1)
    loss = model.head_logits(model.project_encoded(encoded)[:, :, None], predicted[:, None], 1).sum()
    (loss + model.simple_am(encoded, 1).sum() + model.simple_lm(hidden, 1).sum()).backward()
    touched = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    lists = ("predictor.embeddings", "predictor.networks", "joint.outputs", "simple_am_outputs", "simple_lm_outputs")
    own = tuple(f"{part}.1." for part in lists)
    expected = {
        name
        for name, _ in model.named_parameters()
        if not name.startswith("lid.") and (not name.startswith(lists) or name.startswith(own))
    }
    assert touched == expected
    model.zero_grad(set_to_none=True)
    encoded, _, _ = encode(model, torch.randn(2, 9, 16, dtype=torch.float64))
    model.lid_log_posteriors(encoded)[..., 0].sum().backward()
    touched = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert touched == {"encoder", "lid"}


def test_lid_posteriors():
    model = make_model("lid")
    posteriors = model.lid_log_posteriors(torch.randn(2, 5, 24, dtype=torch.float64)).exp()
    assert posteriors.shape == (2, 5, 3)
    torch.testing.assert_close(posteriors.sum(dim=2), torch.ones(2, 5, dtype=torch.float64))
    with pytest.raises(UserError, match="no language identification"):
        make_model("multi_softmax").lid_log_posteriors(torch.randn(2, 5, 24))


def test_onehot_tells_the_language():
    model = make_model("onehot")
    features, lengths = torch.randn(1, 5, 16, dtype=torch.float64), torch.tensor([5])
    first, second = (model.encode(features, lengths, languages=torch.tensor([index]))[0] for index in (0, 1))
    assert not torch.allclose(first, second)
    tokens = torch.tensor([[1, 2]])
    assert not torch.allclose(model.predict_sequence(tokens, 0)[0], model.predict_sequence(tokens, 1)[0])
    with pytest.raises(UserError, match="has to be told the language: one of en-IN"):
        model.encode(features, lengths)


def test_dropout_between_layers_in_training_alone():
    model = make_model("monolingual", dropout=0.5)
    features, tokens = torch.randn(1, 5, 16, dtype=torch.float64), torch.tensor([[1, 2]])
    for forward in (lambda: encode(model, features)[0], lambda: model.predict_sequence(tokens, 0)[0]):
        assert torch.equal(forward(), forward())
        model.train()
        assert not torch.allclose(forward(), forward())
        model.eval()


def test_the_switch_of_onednn_goes_back_with_many_threads():
    before = torch.backends.mkldnn.enabled
    lstm = torch.nn.LSTM(4, 4, batch_first=True).eval()
    steps = lambda: [run_lstm(lstm, torch.zeros(1, 1, 4), (torch.zeros(1, 1, 4),) * 2) for _ in range(50)]  # noqa: E731
    threads = [threading.Thread(target=steps) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.backends.mkldnn.enabled == before


def bundle_parts(kind):
    """A model, units of its sizes, and statistics."""
    graphemes = {"en-IN": "abc", "hi-IN": "कख", "ta-IN": "அஆஇஈ"}
    units = {code: GraphemeUnits.build([text], language=code) for code, text in graphemes.items()}
    if kind in ("vanilla", "onehot"):
        union = GraphemeUnits.union(list(units.values()))
        units = dict.fromkeys(units, union)
    model = make_model(kind, dtype=torch.float32)
    return model, {code: units[code] for code in model.languages}, GlobalStats([1.0, 2.0], [3.0, 4.0])


def test_the_file_gives_back_what_was_saved(kind, tmp_path):
    model, units, stats = bundle_parts(kind)
    save_model(tmp_path, model, units, stats, FbankConfig(num_bins=40))
    bundle = load_model(tmp_path)
    assert dataclasses.asdict(bundle.model.config) == dataclasses.asdict(model.config) and not bundle.model.training
    assert bundle.model.vocabularies == model.vocabularies and bundle.model.languages == model.languages
    for name, value in bundle.model.state_dict().items():
        assert torch.equal(value, model.state_dict()[name])
    assert list(bundle.units) == list(units)
    assert all(bundle.units[code].symbols == units[code].symbols for code in units)
    assert bundle.fbank == FbankConfig(num_bins=40) and bundle.stats.to_dict() == stats.to_dict()
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_a_file_without_statistics(tmp_path):
    model, units, _ = bundle_parts("lid")
    save_model(tmp_path, model, units, None, FbankConfig())
    assert load_model(tmp_path).stats is None


def test_units_that_are_not_the_models(tmp_path):
    model, units, stats = bundle_parts("multi_softmax")
    with pytest.raises(UserError, match="the model has vocabularies"):
        save_model(tmp_path, model, {**units, "hi-IN": units["ta-IN"]}, stats, FbankConfig())
    save_model(tmp_path, model, units, stats, FbankConfig())
    content = torch.load(tmp_path / "model.pt")
    torch.save({**content, "vocabularies": {**model.vocabularies, "hi-IN": 7}}, tmp_path / "model.pt")
    with pytest.raises(UserError) as caught:
        load_model(tmp_path)
    assert "no transducer of this version" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options, vocabularies, message",
    [
        ({"structure": "bilingual"}, {"a": 3}, "structure=bilingual: expected one of monolingual"),
        ({"structure": "vanilla", "lid": True}, {"a": 3}, "lid=true: expected false"),
        ({"structure": "onehot", "lsp": True}, {"a": 3}, "lsp=true: expected false"),
        ({"dropout": 1.0}, {"a": 3}, "dropout=1.0"),
        ({"joint": 0}, {"a": 3}, "joint=0: expected at least 1"),
        ({"structure": "monolingual"}, {"a": 3, "b": 3}, "expected one language"),
        ({"structure": "vanilla"}, {"a": 3, "b": 5}, "expected the size of the union"),
        ({}, {}, "expected for each language"),
        ({}, {"a": 1}, "expected for each language"),
    ],
)
def test_options_that_make_no_sense(options, vocabularies, message):
    with pytest.raises(UserError, match=message):
        Transducer(TransducerConfig(**{**SMALL, **options}), vocabularies)


def test_unknown_languages_and_features_of_another_size():
    model = make_model("lid")
    assert model.head_of("ta-IN") == 2 and make_model("vanilla").head_of("ta-IN") == 0
    with pytest.raises(UserError, match="language fr: the model knows en-IN, hi-IN, ta-IN"):
        model.head_of("fr")
    with pytest.raises(UserError, match="features of 17 values a frame: the model expects 16"):
        encode(model, torch.zeros(1, 2, 17, dtype=torch.float64))
