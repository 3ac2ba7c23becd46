"""Monolingual models from multilingual ones: the same output right after the conversion."""

import pytest
import torch
from tiny_asr import SMALL, UNION, VOCABULARIES, count_parameters

from pyspeech.asr.config import TransducerConfig, parameter_count
from pyspeech.asr.finetune import symbols_in_union, to_monolingual
from pyspeech.asr.networks import Transducer
from pyspeech.errors import UserError
from pyspeech.text.units import GraphemeUnits

SYMBOLS = {"en-IN": [0, 1, 2, 3, 10, 11, 12], "hi-IN": [0, 5, 4, 14, 13], "ta-IN": [0, 6, 7, 8, 9, 15, 16, 17, 18]}
MULTI_SOFTMAX = [{}, {"lsp": True}, {"lid": True}, {"lsp": True, "lid": True}]


def make_model(structure, vocabularies):
    torch.manual_seed(0)
    model = Transducer(TransducerConfig(**SMALL, **structure), vocabularies).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def lattice(model, features, tokens, language):
    """Logits (B, T, S + 1, V) of references and those of the pruned loss, (B, T, V) and (B, S + 1, V)."""
    head = model.head_of(language)
    languages = None
    if model.config.structure == "onehot":
        languages = torch.full((len(features),), model.languages.index(language))
    encoded, _, _ = model.encode(features, torch.full((len(features),), features.shape[1]), languages=languages)
    predicted, hidden = model.predict_sequence(tokens, head)
    logits = model.head_logits(model.project_encoded(encoded)[:, :, None], predicted[:, None], head)
    return logits, model.simple_am(encoded, head), model.simple_lm(hidden, head)


@pytest.mark.parametrize("structure", MULTI_SOFTMAX)
@pytest.mark.parametrize("language", VOCABULARIES)
def test_from_multi_softmax_exactly(structure, language):
    model = make_model(structure, VOCABULARIES)
    seeded = to_monolingual(model, language)
    assert seeded.vocabularies == {language: VOCABULARIES[language]} and seeded.lid is None and not seeded.training
    assert count_parameters(seeded) == parameter_count(seeded.config, seeded.vocabularies)
    features, tokens = torch.randn(2, 9, 16).double(), torch.randint(VOCABULARIES[language], (2, 4))
    for before, after in zip(
        lattice(model, features, tokens, language), lattice(seeded, features, tokens, language), strict=True
    ):
        assert torch.equal(before, after)


@pytest.mark.parametrize("structure", ["vanilla", "onehot"])
@pytest.mark.parametrize("language", VOCABULARIES)
def test_from_a_union_up_to_renormalisation(structure, language):
    model = make_model({"structure": structure}, dict.fromkeys(VOCABULARIES, UNION))
    symbols = torch.tensor(SYMBOLS[language])
    seeded = to_monolingual(model, language, SYMBOLS[language])
    assert seeded.config.structure == "monolingual" and seeded.vocabularies == {language: len(symbols)}
    features, tokens = torch.randn(2, 9, 16).double(), torch.randint(len(symbols), (2, 4))
    old, new = lattice(model, features, symbols[tokens], language), lattice(seeded, features, tokens, language)
    for before, after in zip(old, new, strict=True):
        torch.testing.assert_close(before[..., symbols], after, rtol=0, atol=1e-12)
    renormalised = old[0].log_softmax(-1)[..., symbols].log_softmax(-1)
    torch.testing.assert_close(renormalised, new[0].log_softmax(-1), rtol=0, atol=1e-12)


def test_the_seed_is_a_copy_that_trains_alone():
    model = make_model({}, VOCABULARIES).float().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    seeded = to_monolingual(model, "hi-IN")
    assert seeded.training and {value.dtype for value in seeded.state_dict().values()} == {torch.float32}
    logits = lattice(seeded, torch.randn(1, 5, 16), torch.tensor([[1, 2]]), "hi-IN")
    sum(part.sum() for part in logits).backward()
    with torch.no_grad():
        for parameter in seeded.parameters():
            assert parameter.grad is not None
            parameter.add_(1.0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_from_a_monolingual_model():
    model = make_model({"structure": "monolingual"}, {"hi-IN": 5})
    seeded = to_monolingual(model, "hi-IN")
    assert all(torch.equal(value, seeded.state_dict()[name]) for name, value in model.state_dict().items())


def test_symbols_of_a_language_in_the_union():
    units = [GraphemeUnits.build([text], language=code) for code, text in (("fr-FR", "çab"), ("en-IN", "xab"))]
    union = GraphemeUnits.union(units)
    symbols = symbols_in_union(union, units[1])
    assert symbols[0] == 0 and [union.symbols[number] for number in symbols] == units[1].symbols
    with pytest.raises(UserError, match="2 of 3 symbols are not in the union .first: 'z'"):
        symbols_in_union(union, GraphemeUnits.build(["z"], language="xx"))


@pytest.mark.parametrize(
    "structure, symbols, message",
    [
        ("vanilla", None, "expected the numbers of the language's symbols"),
        ("multi_softmax", [0, 1], "expected no list of symbols"),
        ("vanilla", [1, 2], "expected the blank, 0"),
        ("vanilla", [0, 2, 2], "each once"),
        ("onehot", [0, 19], "symbols up to 19: the union has symbols 0 to 18"),
        ("onehot", [0, -1], "the union has symbols 0 to 18"),
    ],
)
def test_wrong_symbols(structure, symbols, message):
    vocabularies = VOCABULARIES if structure == "multi_softmax" else dict.fromkeys(VOCABULARIES, UNION)
    with pytest.raises(UserError, match=message):
        to_monolingual(make_model({"structure": structure}, vocabularies), "hi-IN", symbols)


def test_unknown_language():
    with pytest.raises(UserError, match="language fr: the model knows"):
        to_monolingual(make_model({}, VOCABULARIES), "fr")
