"""Monolingual transducers seeded by a multilingual one (Joshi et al. 2021, section 6.1, Table 3).

The shared parameters and those of the language stay, all others are dropped:

    multi_softmax       the language's head (and prediction network): the logits stay as they are
    vanilla, onehot     the language's rows of the union's output layer and embedding: the logits of its symbols stay as
                        they are, so its probabilities are the old ones, renormalised over its symbols
    onehot              the language's input is constant, so its weights become part of the bias: exact up to rounding
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from pyspeech.asr.networks import Transducer
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.text.units import Units

# The parameters of which there may be one for each head: list, index, rest of the name.
PER_HEAD = re.compile(
    r"(predictor\.embeddings|predictor\.networks|joint\.outputs|simple_am_outputs|simple_lm_outputs)"
    r"\.(\d+)\.(.+)"
)


def to_monolingual(model: Transducer, language: str, symbols: Sequence[int] | None = None) -> Transducer:
    """A monolingual Transducer for `language` with the parameters that `model` has for it, on the same device.

    symbols: for vanilla and onehot, the numbers of the language's symbols in the union, in the language's order, the
    blank first (see `symbols_in_union`); None for other structures.
    Raises UserError for an unknown language, or where symbols are missing, not wanted or out of range.
    """
    config = model.config
    union = config.structure in ("vanilla", "onehot")
    head = model.head_of(language)
    size = model.vocabularies[language]
    if union != (symbols is not None):
        raise UserError(
            f"finetuning from structure={config.structure}: expected "
            + ("the numbers of the language's symbols in the union" if union else "no list of symbols")
        )
    if union:
        _check_symbols(symbols, size)
        size = len(symbols)  # pyright: ignore[reportArgumentType]
    parameters = _parameters_of_head(model, head)
    if union:
        _select_symbols(parameters, symbols)
    if config.structure == "onehot":
        weight, bias = model.encoder.input_layer
        _fold_onehot(parameters, f"encoder.{weight}", f"encoder.{bias}", config.features, head)
        _fold_onehot(
            parameters,
            "predictor.networks.0.lstms.0.weight_ih_l0",
            "predictor.networks.0.lstms.0.bias_ih_l0",
            config.embedding,
            head,
        )
    seeded = Transducer(replace(config, structure="monolingual", lsp=False, lid=False), {language: size})
    seeded.to(next(model.parameters())).load_state_dict(parameters)
    return seeded.train(model.training)


def symbols_in_union(union: Units, units: Units) -> list[int]:
    """Numbers in `union` of every symbol of a language's `units`, in order; UserError where one is missing."""
    numbers = {symbol: number for number, symbol in enumerate(union.symbols)}
    missing = [symbol for symbol in units.symbols if symbol not in numbers]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(units.symbols)} symbols are not in the union (first: {missing[0]!r}); "
            "the units must be those that the union was made of"
        )
    return [numbers[symbol] for symbol in units.symbols]


def _check_symbols(symbols, size):
    if len(symbols) < 2 or symbols[0] != 0 or len(set(symbols)) != len(symbols):
        raise UserError(f"symbols {list(symbols)[:5]}...: expected the blank, 0, and then other symbols, each once")
    if min(symbols) < 0 or max(symbols) >= size:
        raise UserError(f"symbols up to {max(symbols)}: the union has symbols 0 to {size - 1}")


def _parameters_of_head(model, head):
    """State of a model of one head: the shared parameters, and those of `head` as the first of their list."""
    parameters = {}
    counts = {}
    for name in model.state_dict():
        match = PER_HEAD.match(name)
        if match:
            counts[match[1]] = max(counts.get(match[1], 0), int(match[2]) + 1)
    for name, value in model.state_dict().items():
        match = PER_HEAD.match(name)
        if match is None:
            if not name.startswith("lid."):
                parameters[name] = value
        elif int(match[2]) == (head if counts[match[1]] > 1 else 0):
            parameters[f"{match[1]}.0.{match[3]}"] = value
    return parameters


def _select_symbols(parameters, symbols):
    """Keep the rows of `symbols` of what has a row for each symbol."""
    for name in parameters:
        match = PER_HEAD.match(name)
        if match and match[1] != "predictor.networks":
            index = torch.tensor(symbols, device=parameters[name].device)
            parameters[name] = parameters[name].index_select(0, index)


def _fold_onehot(parameters, weight, bias, inputs, language):
    """Make the input `language` of those behind the first `inputs`, which is always 1, part of the bias."""
    parameters[bias] = parameters[bias] + parameters[weight][:, inputs + language]
    parameters[weight] = parameters[weight][:, :inputs]
