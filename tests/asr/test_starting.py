"""A transducer that begins with another one's weights: what both have computes as before, whatever else they have."""

import pytest
import torch
from tiny_asr import SMALL

from pyspeech.asr.config import TransducerConfig
from pyspeech.asr.finetune import symbols_in_union, to_monolingual
from pyspeech.asr.networks import Transducer
from pyspeech.asr.starting import freeze, take_weights
from pyspeech.errors import UserError
from pyspeech.text.units import GraphemeUnits
from tests.asr.test_finetune import lattice

LETTERS = {"en-IN": "abc", "hi-IN": "कखग", "sa-IN": "कखगघङ", "ta-IN": "அஆ"}
STRUCTURES = [{"structure": "monolingual"}, {"structure": "vanilla"}, {"structure": "onehot"}, {}, {"lsp": True}, {"lid": True}]


def make(languages, seed=0, structure=None, letters=LETTERS, **options):
    """(model, units) with random weights."""
    structure = structure or {}
    units = {code: GraphemeUnits.build([letters[code]], language=code) for code in languages}
    if structure.get("structure") in ("vanilla", "onehot"):
        units = dict.fromkeys(units, GraphemeUnits.union(units))
    torch.manual_seed(seed)
    config = TransducerConfig(**{**SMALL, **structure, **options})
    model = Transducer(config, {code: entry.size for code, entry in units.items()}).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, units


def texts(language, units):
    """Three texts of letters of a language, as symbols (3, 3)."""
    first, second = LETTERS[language][:2]
    words = [f"{first}{second} {first}", f"{second}{first} {second}", f"{first}{first} {first}"]
    return torch.tensor([units[language].encode(text) for text in words])


def logits(pair, language, known=None):
    """Logits of `texts`, and those of the pruned loss, over the symbols that `known` units have, in their order."""
    model, units = pair
    columns = symbols_in_union(units[language], known or units[language])
    torch.manual_seed(5)
    features = torch.randn(3, 7, SMALL["features"]).double()
    return [part[..., columns] for part in lattice(model, features, texts(language, units), language)]


def assert_equal(one, other):
    for before, after in zip(one, other, strict=True):
        torch.testing.assert_close(after, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_all_of_a_model_of_the_same_kind(structure):
    languages = ["hi-IN"] if structure.get("structure") == "monolingual" else ["en-IN", "hi-IN", "ta-IN"]
    source, model = make(languages, 1, structure), make(languages, 2, structure)
    report = take_weights(*model, *source)
    for name, tensor in source[0].state_dict().items():
        assert torch.equal(model[0].state_dict()[name], tensor), name
    assert report.taken == report.total and not report.left
    assert next(report.lines()).startswith("100.0 %")


@pytest.mark.parametrize("structure", STRUCTURES[1:], ids=str)
def test_languages_that_both_have_in_another_order(structure):
    """And a new one, and new symbols of the old."""
    source = make(["en-IN", "hi-IN", "ta-IN"], 1, structure)
    more = {**LETTERS, "hi-IN": "कखगचछ"}
    model = make(["ta-IN", "sa-IN", "hi-IN"], 2, structure, more)
    report = take_weights(*model, *source)
    old = {language: GraphemeUnits.build([LETTERS[language]]) for language in LETTERS}
    for language in ("ta-IN", "hi-IN"):
        assert_equal(logits(source, language, old[language]), logits(model, language, old[language]))
    assert 0.5 * report.total < report.taken < report.total
    if structure.get("lid"):
        source_lid, lid = (pair[0].lid.layers[-1] for pair in (source, model))
        assert torch.equal(lid.weight[[0, 2]], source_lid.weight[[2, 1]]) and torch.equal(lid.bias[2], source_lid.bias[1])
        assert report.left == {"lid": "in part"}


@pytest.mark.parametrize("structure", [{}, {"lsp": True}, {"lid": True}], ids=str)
def test_one_language_of_several_as_in_finetuning(structure):
    source, model = make(["en-IN", "hi-IN"], 1, structure), make(["hi-IN"], 2, {"structure": "monolingual"})
    report = take_weights(*model, *source)
    expected = to_monolingual(source[0], "hi-IN")
    for name, tensor in expected.state_dict().items():
        assert torch.equal(model[0].state_dict()[name], tensor), name
    assert not report.left


def test_a_new_language_takes_letters_of_one_with_its_script():
    source, model = make(["en-IN", "hi-IN"], 1), make(["sa-IN", "ta-IN"], 2)
    before = {name: tensor.clone() for name, tensor in model[0].state_dict().items()}
    report = take_weights(*model, *source)
    assert report.symbols == {"sa-IN": (7, 11, ["hi-IN"]), "ta-IN": (1, 5, ["en-IN"])}
    hindi, sanskrit = source[1]["hi-IN"], model[1]["sa-IN"]
    rows = symbols_in_union(sanskrit, hindi)
    for name in ("predictor.embeddings.{}.weight", "joint.outputs.{}.bias", "simple_am_outputs.{}.weight"):
        theirs, ours = source[0].state_dict()[name.format(1)], model[0].state_dict()[name.format(0)]
        assert torch.equal(ours[rows], theirs)
        new = [row for row in range(sanskrit.size) if row not in rows]
        assert torch.equal(ours[new], before[name.format(0)][new])
    lines = list(report.lines())
    assert "symbols of sa-IN: 7 of 11 known, from hi-IN" in lines and not lines[-1].startswith("new")


def test_what_does_not_fit_is_named():
    source = make(["hi-IN"], 1, predictor_size=9)
    model = make(["hi-IN"], 2, {"lid": True})
    before = {name: tensor.clone() for name, tensor in model[0].state_dict().items()}
    report = take_weights(*model, *source)
    for name, tensor in source[0].encoder.state_dict().items():
        assert torch.equal(model[0].encoder.state_dict()[name], tensor)
    for name in (
        "predictor.networks.0.norms.0.weight",
        "joint.predictor.weight",
        "simple_lm_outputs.0.weight",
        "lid.layers.0.bias",
    ):
        assert torch.equal(model[0].state_dict()[name], before[name])
    assert list(report.lines())[-1] == (
        "new: predictor.networks (80 x 12, there 36 x 12), joint.predictor (28 x 20, there 28 x 9), "
        "lid (the other has none), simple_lm_outputs.0 (7 x 20, there 7 x 9)"
    )


def test_frozen_parts_stay_as_they_are():
    source, model = make(["hi-IN"], 1), make(["sa-IN"], 2)
    report = take_weights(*model, *source)
    network = model[0].train()
    freeze(network, ["encoder", "predictor", "joint"], report)
    sum(part.sum() for part in logits(model, "sa-IN")).backward()
    frozen = {name for name, parameter in network.named_parameters() if parameter.grad is None}
    assert frozen == {
        name
        for name, _ in network.named_parameters()
        if name.startswith(("encoder.", "predictor.networks.", "joint.encoder.", "joint.predictor."))
    }


@pytest.mark.parametrize(
    "part, options, message",
    [
        ("encoder", {"encoder_size": 30}, r"freeze=encoder: encoder is new \(120 x 16, there 96 x 16\); expected parts whose"),
        ("predictor", {"predictor_layers": 3}, r"freeze=predictor: predictor.networks is new \(the other has none\)"),
        ("lid", {}, "freeze=lid: the system has no language identification"),
    ],
)
def test_new_parts_are_not_frozen(part, options, message):
    source, model = make(["hi-IN"], 1), make(["hi-IN"], 2, **options)
    with pytest.raises(UserError, match=message):
        freeze(model[0], [part], take_weights(*model, *source))
