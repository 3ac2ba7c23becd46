"""Options of the transducers and their sizes in parameters; it imports nothing heavy.

The defaults are the paper's (Joshi et al. 2021, section 5, and what reproduces the sizes of its Table 6).
"""
from dataclasses import dataclass, field
from typing import List

from pyspeech.errors import UserError, requirement

STRUCTURES = ("monolingual", "vanilla", "onehot", "multi_softmax")


@dataclass
class TransducerConfig:
    structure: str = "multi_softmax"  # monolingual, vanilla, onehot (both over a union of symbols) or multi_softmax
    lsp: bool = False  # a prediction network for each language (multi_softmax only)
    lid: bool = False  # language identification on the encoder (multi_softmax only)
    encoder_layers: int = 6  # LSTM
    encoder_size: int = 1024
    predictor_layers: int = 2  # LSTM, each followed by layer normalisation
    predictor_size: int = 1024
    embedding: int = 1024  # of the predictor's input symbols
    joint: int = 1024
    lid_sizes: List[int] = field(default_factory=lambda: [1000, 500])  # hidden layers of the language identification
    dropout: float = 0.0  # between LSTM layers, in training
    features: int = 640  # values of an encoder input frame

    def check(self):
        """Raise UserError for the first option that makes no sense."""
        require = requirement("transducer", self)
        require("structure", self.structure in STRUCTURES, f"one of {', '.join(STRUCTURES)}")
        for name in ("lsp", "lid"):
            require(name, not getattr(self, name) or self.structure == "multi_softmax",
                    f"false, as structure={self.structure} has one output layer; it needs structure=multi_softmax")
        for name in ("encoder_layers", "encoder_size", "predictor_layers", "predictor_size", "embedding", "joint",
                     "features"):
            require(name, getattr(self, name) >= 1, "at least 1")
        require("lid_sizes", all(size >= 1 for size in self.lid_sizes), "a list of positive numbers, or none")
        require("dropout", 0 <= self.dropout < 1, "0 to less than 1")

    def check_vocabularies(self, vocabularies):
        """Raise UserError where {language code: V} cannot be the vocabularies of this structure."""
        sizes = list(vocabularies.values())
        found = f"vocabularies {vocabularies}"
        if not sizes or min(sizes) < 2:
            raise UserError(f"{found}: expected for each language the blank and at least one symbol")
        if self.structure == "monolingual" and len(sizes) != 1:
            raise UserError(f"{found}: expected one language, as structure=monolingual")
        if self.structure in ("vanilla", "onehot") and len(set(sizes)) != 1:
            raise UserError(f"{found}: expected the size of the union for each, as structure={self.structure}")


def parameter_count(config, vocabularies):
    """Parameters of a transducer, as the paper's Table 6 counts them: without what only the pruned loss uses.

    config: TransducerConfig; vocabularies: {language code: V}, the blank included. The same number as
    `pyspeech.transducer.model.count_parameters` of the model, without building it.
    """
    languages = len(vocabularies)
    sizes = list(vocabularies.values()) if config.structure == "multi_softmax" else list(vocabularies.values())[:1]
    onehot = languages if config.structure == "onehot" else 0
    encoder = _lstm(config.features + onehot, config.encoder_size)
    encoder += (config.encoder_layers - 1) * _lstm(config.encoder_size, config.encoder_size)
    predictor = _lstm(config.embedding + onehot, config.predictor_size)
    predictor += (config.predictor_layers - 1) * _lstm(config.predictor_size, config.predictor_size)
    predictor += config.predictor_layers * 2 * config.predictor_size  # layer normalisation
    if config.lsp:
        predictor *= languages
    joint = _linear(config.encoder_size, config.joint) + _linear(config.predictor_size, config.joint)
    symbols = sum(size * config.embedding + _linear(config.joint, size) for size in sizes)
    lid = 0
    if config.lid:
        layers = [config.encoder_size, *config.lid_sizes, languages]
        lid = sum(_linear(inputs, outputs) for inputs, outputs in zip(layers, layers[1:]))
    return encoder + predictor + joint + symbols + lid


def _lstm(inputs, size):
    """Parameters of an LSTM layer: four gates with two biases each."""
    return 4 * size * (inputs + size + 2)


def _linear(inputs, outputs):
    return (inputs + 1) * outputs
