"""Options of the transducers, their loss and their decoding, and their sizes in parameters; it imports nothing heavy.

The defaults are the paper's (Joshi et al. 2021, section 5, and what reproduces the sizes of its Table 6).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspeech.asr.registry import ENCODERS, lstm_parameters
from pyspeech.errors import UserError, requirement
from pyspeech.model_file import Kind

KIND = Kind("transducer", "indic", "exp/NAME/models/SYSTEM")
MOST_HYPOTHESES = 1000  # memory of the search grows with their square
STOPPING_RULES = ("sum_logp", "mean_logp", "mean_p")
BACKENDS = ("auto", "k2", "torch")
WHOLE = 30.0  # seconds of a recording that is recognised as a whole; longer ones are cut into segments
PAUSE_KINDS = ("floor", "silence", "noise", "room", "end", "folder")  # pyspeech/asr/surroundings.py
STRUCTURES = ("monolingual", "vanilla", "onehot", "multi_softmax")


@dataclass
class TransducerConfig:
    structure: str = "multi_softmax"  # monolingual, vanilla, onehot (both over a union of symbols) or multi_softmax
    lsp: bool = False  # a prediction network for each language (multi_softmax only)
    lid: bool = False  # language identification on the encoder (multi_softmax only)
    encoder: str = "lstm"  # the paper's, or conformer (causal)
    encoder_options: dict[str, int] = field(default_factory=dict)  # of other encoders, such as {chunk: 4} of conformer
    encoder_layers: int = 6
    encoder_size: int = 1024
    predictor_layers: int = 2  # LSTM, each followed by layer normalisation
    predictor_size: int = 1024
    embedding: int = 1024  # of the predictor's input symbols
    joint: int = 1024
    lid_sizes: list[int] = field(default_factory=lambda: [1000, 500])  # hidden layers of the language identification
    dropout: float = 0.0  # between LSTM layers, and within an encoder that is none, in training
    features: int = 640  # values of an encoder input frame

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("transducer", self)
        require("structure", self.structure in STRUCTURES, f"one of {', '.join(STRUCTURES)}")
        for name in ("lsp", "lid"):
            require(
                name,
                not getattr(self, name) or self.structure == "multi_softmax",
                f"false, as structure={self.structure} has one output layer; it needs structure=multi_softmax",
            )
        for name in ("encoder_layers", "encoder_size", "predictor_layers", "predictor_size", "embedding", "joint", "features"):
            require(name, getattr(self, name) >= 1, "at least 1")
        require("encoder", self.encoder in ENCODERS, f"one of {', '.join(ENCODERS)}")
        own = ENCODERS[self.encoder].options
        expected = f"numbers from 1 on for any of {', '.join(own)}" if own else f"none, as encoder={self.encoder} has none"
        require("encoder_options", all(name in own and size >= 1 for name, size in self.encoder_options.items()), expected)
        require("lid_sizes", all(size >= 1 for size in self.lid_sizes), "a list of positive numbers, or none")
        require("dropout", 0 <= self.dropout < 1, "0 to less than 1")

    def check_vocabularies(self, vocabularies: Mapping[str, int]) -> None:
        """Raise UserError where {language code: V} cannot be the vocabularies of this structure."""
        sizes = list(vocabularies.values())
        found = f"vocabularies {vocabularies}"
        if not sizes or min(sizes) < 2:
            raise UserError(f"{found}: expected for each language the blank and at least one symbol")
        if self.structure == "monolingual" and len(sizes) != 1:
            raise UserError(f"{found}: expected one language, as structure=monolingual")
        if self.structure in ("vanilla", "onehot") and len(set(sizes)) != 1:
            raise UserError(f"{found}: expected the size of the union for each, as structure={self.structure}")


@dataclass
class LossConfig:
    """prune_range rows of the lattice a frame; simple_scale of the smoothed loss beside the pruned one, from the end of
    the warm-up on; lm_scale and am_scale, the parts of the predictor alone and of the encoder alone in the smoothed
    loss; full: the whole lattice instead of both; lid_scale: of the cross entropy of language identification beside the
    transducer's loss; backend: auto, k2 or torch.
    """

    prune_range: int = 5
    simple_scale: float = 0.5
    lm_scale: float = 0.25
    am_scale: float = 0.0
    full: bool = False
    lid_scale: float = 1.0
    backend: str = "auto"

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("loss", self)
        require("prune_range", self.prune_range >= 2, "at least 2, to emit a symbol at a frame")
        for name in ("simple_scale", "lid_scale"):
            require(name, 0 <= getattr(self, name) < math.inf, "at least 0")
        require("lm_scale", 0 <= self.lm_scale < 1, "0 to less than 1")
        rest = 1 - self.lm_scale  # what is left is the scale of the lattice itself
        require("am_scale", 0 <= self.am_scale < rest, f"0 to less than {rest:g}, for lm_scale={self.lm_scale:g}")
        require("backend", self.backend in BACKENDS, f"one of {', '.join(BACKENDS)}")


@dataclass
class DataConfig:
    """Minibatches, and what becomes of the utterances in training."""

    batch_seconds: float = 400.0  # of a minibatch, padding included
    max_utterances: int = 128  # of a minibatch
    minibatches: int = 1  # of a language each, that make a step; the paper does not say
    pooled: bool = True  # minibatches of vanilla and one-hot mix the languages (section 3); the others' never do (4)
    speeds: list[float] = field(default_factory=list)  # copies of the training data at these speeds, such as 0.9 and 1.1
    warp: float = 1.0  # utterances are heard with all frequencies up to this many times as high, or low; 1: as they are
    channel_db: float = 0.0  # gains, at either end of the spectrum, up to which utterances are heard through another line
    channel_corners: int = 2  # frequencies, from the lowest to the highest, at which these gains are drawn
    augment: bool = True  # SpecAugment
    pauses: float = 0.0  # share of utterances with a pause before them, and share with one behind: pyspeech/asr/surroundings.py
    longest_pause: float = 2.0  # seconds
    pause_kinds: list[str] = field(default_factory=lambda: list(PAUSE_KINDS))
    noise_dir: str = ""  # folder of recordings for pauses of the kind folder
    join: float = 0.0  # share of utterances that another one of their language follows, after a pause
    level_db: float = 0.0  # up to which speech is louder or softer
    stored_gb: float = 100.0  # of log-mel frames on disk, 17 h a GB; those beyond are computed in every training

    without_effect = ("stored_gb",)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("stored_gb", self.stored_gb >= 0, "at least 0")
        require("batch_seconds", self.batch_seconds > 0, "a positive number")
        for name in ("max_utterances", "minibatches"):
            require(name, getattr(self, name) >= 1, "at least 1")
        good = all(0 < speed < math.inf and speed != 1 for speed in self.speeds) and len(set(self.speeds)) == len(self.speeds)
        require("speeds", good, "positive numbers other than 1, each once")
        require("warp", 1 <= self.warp <= 3, "1 to 3")
        require("channel_corners", self.channel_corners >= 2, "at least 2")
        for name in ("pauses", "join"):
            require(name, 0 <= getattr(self, name) <= 1, "0 to 1")
        require("longest_pause", 0.05 <= self.longest_pause <= 30, "0.05 to 30 seconds")
        kinds = set(self.pause_kinds)
        good = kinds <= set(PAUSE_KINDS) and bool(kinds if self.noise_dir else kinds - {"folder"})
        require("pause_kinds", good, f"any of {', '.join(PAUSE_KINDS)}; folder alone needs noise_dir")
        require("level_db", 0 <= self.level_db <= 60, "0 (none) to 60")
        require("channel_db", 0 <= self.channel_db <= 60, "0 (none) to 60")


@dataclass
class SearchConfig:
    """Beam search (pyspeech/asr/search.py); beam=1 is the greedy search."""

    beam: int = 4  # hypotheses kept for every utterance and language
    max_symbols: int = 3  # symbols that a hypothesis may put out in one encoder frame
    prune: float = 10.0  # hypotheses whose log probability is this much below the best are dropped; .inf: none

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("search", self)
        require("beam", 1 <= self.beam <= MOST_HYPOTHESES, f"1 to {MOST_HYPOTHESES}")
        require("max_symbols", self.max_symbols >= 1, "at least 1")
        require("prune", self.prune > 0, "a positive number, or .inf")

    def changed(self, **options: int | float | None) -> "SearchConfig":
        """The same with other values of some options; None: as it is."""
        return replace(self, **{name: value for name, value in options.items() if value is not None})


@dataclass
class EarlyStopping:
    """When decoders of unlikely languages are switched off (Joshi et al. 2021, section 6.3); as given: never."""

    rule: str = "sum_logp"  # score of a language: sum_logp (equation 1), mean_logp or mean_p
    tau: float = math.inf  # encoder frames that all decoders run
    threshold: float = math.inf  # s_th: how far below the best active language's score one has to be to be switched off

    def check(self) -> None:
        if self.rule not in STOPPING_RULES:
            raise UserError(f"early stopping: rule={self.rule!r}; expected one of {', '.join(STOPPING_RULES)}")
        if not self.tau >= 0 or not self.threshold >= 0:
            raise UserError(f"early stopping: tau={self.tau}, threshold={self.threshold}; expected >= 0 or .inf")


@dataclass
class Endpointing:
    """When an utterance of a stream is over. The three rules are those of Kaldi's online decoders; .inf: never."""

    silence_before: float = 2.4  # seconds in which nothing was decoded, from the start
    silence_after: float = 1.2  # seconds since the last symbol
    longest: float = 20.0  # seconds of an utterance

    def check(self) -> None:
        if not all(seconds > 0 for seconds in (self.silence_before, self.silence_after, self.longest)):
            raise UserError(
                f"endpointing: silence_before={self.silence_before}, silence_after={self.silence_after}, "
                f"longest={self.longest}; expected seconds > 0 or .inf"
            )


def language_among(given: str, codes: Sequence[str]) -> str:
    """The one of a model's language codes that is meant: itself in any case and with - or _, or by its first part, as hi for
    hi-IN; UserError, which names them, for none and for several."""
    wanted = given.lower().replace("_", "-")
    found = [code for code in codes if code.lower() == wanted] or [
        code for code in codes if code.lower().split("-")[0] == wanted
    ]
    if len(found) == 1:
        return found[0]
    raise UserError(
        f"language {given}: " + (f"which of {', '.join(found)}?" if found else f"the model knows {', '.join(codes)}")
    )


def parameter_count(config: TransducerConfig, vocabularies: Mapping[str, int]) -> int:
    """Parameters of a transducer, as the paper's Table 6 counts them: without what only the pruned loss uses.

    config: TransducerConfig; vocabularies: {language code: V}, the blank included. Nothing is built but an encoder that does
    not know its number of parameters otherwise.
    """
    languages = len(vocabularies)
    sizes = list(vocabularies.values()) if config.structure == "multi_softmax" else list(vocabularies.values())[:1]
    onehot = languages if config.structure == "onehot" else 0
    encoder = ENCODERS[config.encoder].count_parameters(config, config.features + onehot)
    predictor = lstm_parameters(config.embedding + onehot, config.predictor_size, config.predictor_layers)
    predictor += config.predictor_layers * 2 * config.predictor_size  # layer normalisation
    if config.lsp:
        predictor *= languages
    joint = _linear(config.encoder_size, config.joint) + _linear(config.predictor_size, config.joint)
    symbols = sum(size * config.embedding + _linear(config.joint, size) for size in sizes)
    lid = 0
    if config.lid:
        layers = [config.encoder_size, *config.lid_sizes, languages]
        lid = sum(_linear(inputs, outputs) for inputs, outputs in zip(layers, layers[1:], strict=False))
    return encoder + predictor + joint + symbols + lid


def _linear(inputs, outputs):
    return (inputs + 1) * outputs
