"""A transducer that begins with the weights of another one, which may have other languages, symbols, structure and sizes.

    tensors         those of the same name and shape are taken as they are
    output layers   the rows of symbols that both have, and of embeddings: of the language's own output layer first, then of
                    those that share the most symbols with it
    networks        of languages (lsp): by the language; a shared one stands for each
    inputs          the columns of features and embeddings; those of languages (onehot) by the language
    LID             its last layer by the language

What is left has the values that a new network has, and is named in the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from pyspeech.asr.config import UNION
from pyspeech.asr.finetune import PER_HEAD
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.asr.networks import Transducer

SHOWN = 6  # parts that a line names
# Parts that can be frozen: all but what has a row for each symbol, of which some may be new.
PARTS = {
    "encoder": ("encoder",),
    "predictor": ("predictor.networks",),
    "joint": ("joint.encoder", "joint.predictor"),
    "lid": ("lid",),
}


@dataclass
class Report:
    """Account of what `take_weights` took.

    symbols: {output layer: (of its symbols how many, of which output layers they are)}. taken, total: numbers of parameters.
    left: {part: why}, of tensors that have new values, or some.
    """

    symbols: dict[str, tuple[int, int, list[str]]] = field(default_factory=dict)
    taken: int = 0
    total: int = 0
    left: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Lines for a log."""
        yield f"{100 * self.taken / self.total:.1f} % of {self.total} parameters are taken"
        for name, (known, count, places) in self.symbols.items():
            yield f"symbols of {name}: {known} of {count} known" + (f", from {', '.join(places)}" if places else "")
        if self.left:
            shown = [f"{name} ({why})" for name, why in list(self.left.items())[:SHOWN]]
            more = len(self.left) - len(shown)
            yield "new: " + ", ".join(shown) + (f" and {more} more" if more else "")


@torch.no_grad()
def take_weights(model: Transducer, units: Mapping[str, Any], source: Transducer, source_units: Mapping[str, Any]) -> Report:
    """Copy the weights of `source` that fit into `model`, in place.

    Args:
        model: A new Transducer.
        units: {language code: units} of it, which have `symbols`; of a structure with one output layer the union's.
        source: The Transducer to begin with.
        source_units: As `units`, of `source`.

    Returns:
        What was taken, and what was not.
    """
    report, own = Report(), source.state_dict()
    layers, theirs = _layers(model, units), _layers(source, source_units)
    rows = [_known_rows(name, symbols, theirs) for name, symbols in layers]
    for (name, symbols), known in zip(layers, rows, strict=True):
        places = [theirs[layer][0] for layer in dict.fromkeys(layer for layer, _ in known.values())]
        report.symbols[name] = (len(known), len(symbols), places)
    for name, tensor in model.state_dict().items():
        report.total += tensor.numel()
        match = PER_HEAD.match(name)
        table = bool(match) and match[1] != "predictor.networks"  # with a row for each symbol
        if match and table:
            pairs = _rows_of_tables(own, match[1], match[3], rows[int(match[2])], tensor)
        elif match:
            pairs = _network(own, model, source, int(match[2]), match[3], tensor)
        elif name.startswith("lid.") and name.split(".")[2] == str(len(model.config.lid_sizes)):
            pairs = _language_rows(own.get(name), model, source, tensor)
        else:
            pairs = _inputs(own.get(name), model, source, tensor, name == f"encoder.{model.encoder.input_layer[0]}")
        took = 0
        for target, values in pairs:
            target.copy_(values)
            took += target.numel()
        report.taken += took
        if took == 0 if table else took < tensor.numel():
            report.left.setdefault(_part(name), _why(own.get(name), tensor, took))
    return report


def freeze(model: Transducer, parts: Sequence[str], report: Report) -> None:
    """Keep parts of a model, names of PARTS, as they are in training; UserError for one that has new weights."""
    for part in parts:
        new = [name for name in report.left if any(_within(name, place) for place in PARTS[part])]
        if new or part == "lid" and model.lid is None:
            why = f"{new[0]} is new ({report.left[new[0]]})" if new else "the system has no language identification"
            raise UserError(f"freeze={part}: {why}; expected parts whose weights all come from start_from")
        for place in PARTS[part]:
            model.get_submodule(place).requires_grad_(False)


def _within(name, place):
    return name == place or name.startswith(f"{place}.") or place.startswith(f"{name}.")


def _part(name):
    """The module that a line names for a tensor: encoder.lstm.weight_ih_l0 -> encoder, joint.encoder.bias -> joint.encoder."""
    words = name.split(".")
    return words[0] if words[0] in ("encoder", "lid") else ".".join(words[:2])


def _why(theirs, tensor, took):
    if theirs is None:
        return "the other has none"
    if took or theirs.shape == tensor.shape:
        return "in part" if took else "of other languages"
    return f"{' x '.join(map(str, tensor.shape))}, there {' x '.join(map(str, theirs.shape))}"


def _layers(model, units):
    """[(name, symbols), ...] of the output layers: languages, or "union"."""
    if model.config.structure in UNION:
        return [("union", units[model.languages[0]].symbols)]
    return [(language, units[language].symbols) for language in model.languages]


def _known_rows(name, symbols, theirs):
    """{row: (output layer of the other model, its row)} of the symbols that one of `theirs` has."""
    numbers = [{symbol: row for row, symbol in enumerate(other)} for _, other in theirs]
    shared = [len(set(symbols) & known.keys()) for known in numbers]
    order = sorted(range(len(theirs)), key=lambda layer: (theirs[layer][0] != name, -shared[layer]))
    found = {}
    for row, symbol in enumerate(symbols):
        layer = next((layer for layer in order if symbol in numbers[layer]), None)
        if layer is not None:
            found[row] = layer, numbers[layer][symbol]
    return found


def _rows_of_tables(own, table, rest, known, tensor):
    """(part of the tensor, its values) for each row that is known."""
    for row, (layer, other) in known.items():
        values = own.get(f"{table}.{layer}.{rest}")
        if values is not None and values.shape[1:] == tensor.shape[1:]:
            yield tensor[row], values[other]


def _network(own, model, source, head, rest, tensor):
    """The same for a tensor of the prediction network of a head, or the one of all."""
    layer = 0
    if source.config.lsp:
        languages = model.languages if model.config.lsp else model.languages[:1] if len(model.languages) == 1 else []
        if not languages or languages[head] not in source.languages:
            return
        layer = source.languages.index(languages[head])
    values = own.get(f"predictor.networks.{layer}.{rest}")
    yield from _inputs(values, model, source, tensor, rest == "lstms.0.weight_ih_l0")


def _inputs(values, model, source, tensor, multiplies_inputs):
    """The same for a tensor of one place; multiplies_inputs: its last columns are of the languages, where these are inputs."""
    if values is None:
        return
    ours, theirs = (one.num_heads if multiplies_inputs and one.config.structure == "onehot" else 0 for one in (model, source))
    if tensor.dim() == 0 or not (ours or theirs):
        if values.shape == tensor.shape:
            yield tensor, values
        return
    width = tensor.shape[1] - ours
    if tensor.shape[0] != values.shape[0] or width != values.shape[1] - theirs:
        return
    yield tensor[:, :width], values[:, :width]
    for column, language in enumerate(model.languages[:ours]):
        if language in source.languages[:theirs]:
            yield tensor[:, width + column], values[:, width + source.languages.index(language)]


def _language_rows(values, model, source, tensor):
    """The same for the last layer of the language identification."""
    if values is None or values.shape[1:] != tensor.shape[1:] or len(source.languages) != len(values):
        return
    for row, language in enumerate(model.languages):
        if language in source.languages:
            yield tensor[row], values[source.languages.index(language)]
