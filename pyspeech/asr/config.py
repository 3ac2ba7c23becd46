"""Options of the transducers, their loss and their decoding, and their sizes in parameters; it imports nothing heavy.

The defaults are the paper's (Joshi et al. 2021, section 5, and what reproduces the sizes of its Table 6).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

from pyspeech.asr.registry import ENCODERS, lstm_parameters
from pyspeech.errors import UserError, folder_or, requirement
from pyspeech.model_file import Kind

KIND = Kind("transducer", "indic", "exp/NAME/models/SYSTEM")
MOST_HYPOTHESES = 1000  # memory of the search grows with their square
STOPPING_RULES = ("sum_logp", "mean_logp", "mean_p")
BACKENDS = ("auto", "k2", "torch")
WHOLE = 30.0  # seconds of a recording that is recognised as a whole; longer ones are cut into segments
PAUSE_KINDS = ("floor", "silence", "noise", "room", "end", "folder")  # pyspeech/asr/surroundings.py
HOTWORDS_SCORE = 0.5  # bonus in log probability for each symbol of a hotword; of letters, pieces of words need more
LM_ORDER, LM_WEIGHT = 6, 0.3  # n-grams of symbols; weight of their log probability in the search
STRUCTURES = ("monolingual", "vanilla", "onehot", "multi_softmax")
UNION = ("vanilla", "onehot")  # those with one output layer for all languages
FREEZABLE = ("encoder", "predictor", "joint", "lid")  # pyspeech/asr/starting.py


@dataclass
class TransducerConfig:
    # monolingual, vanilla or onehot (one output for all languages), or multi_softmax; set per system
    structure: str = "multi_softmax"
    lsp: bool = False  # use one prediction network per language (multi_softmax only); set per system
    lid: bool = False  # add language identification on the encoder (multi_softmax only); set per system
    encoder: str = "lstm"  # lstm (the paper) or conformer (causal)
    encoder_options: dict[str, int] = field(default_factory=dict)  # options of the encoder, e.g. {chunk: 4} for conformer
    encoder_layers: int = 6  # encoder layers
    encoder_size: int = 1024  # outputs of an encoder layer
    predictor_layers: int = 2  # LSTM layers of the prediction network, each with layer normalisation
    predictor_size: int = 1024  # outputs of a prediction network layer
    embedding: int = 1024  # size of the symbol embeddings of the prediction network
    joint: int = 1024  # size of the joint network
    lid_sizes: list[int] = field(default_factory=lambda: [1000, 500])  # hidden layer sizes of the language identification
    dropout: float = 0.0  # dropout between LSTM layers and within other encoders, 0 to less than 1
    features: int = 640  # values per encoder input frame; set by the recipe

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
        """Raise UserError if the vocabularies {language code: size} do not fit this structure."""
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
    """Options of the transducer loss (pyspeech/asr/loss.py)."""

    prune_range: int = 5  # symbol positions computed per frame by the pruned loss, at least 2
    simple_scale: float = 0.5  # weight of the smoothed loss beside the pruned one, after the warm-up
    lm_scale: float = 0.25  # share of the predictor alone in the smoothed loss, 0 to less than 1
    am_scale: float = 0.0  # share of the encoder alone in the smoothed loss, 0 to less than 1 - lm_scale
    full: bool = False  # compute the full lattice instead of the smoothed and pruned losses
    lid_scale: float = 1.0  # weight of the language identification loss
    backend: str = "auto"  # auto (k2 if installed), k2 or torch

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
    """Minibatches and data augmentation."""

    batch_seconds: float = 400.0  # seconds of audio per minibatch, padding included
    max_utterances: int = 128  # utterances per minibatch at most
    minibatches: int = 1  # minibatches per step, each of one language unless pooled; the paper does not say
    pooled: bool = True  # mix languages within minibatches of vanilla and onehot (section 3); other systems never do
    speeds: list[float] = field(default_factory=list)  # add copies of the training data at these speeds, e.g. [0.9, 1.1]
    warp: float = 1.0  # scale all frequencies by up to this factor, up or down, 1 to 3 (vocal tract length); 1: off
    channel_db: float = 0.0  # random channel gain of up to this many dB, 0 to 60; 0: off
    channel_corners: int = 2  # frequencies at which the channel gain is drawn, at least 2
    augment: bool = True  # apply SpecAugment
    pauses: float = 0.0  # share of utterances with a pause before them, and with one behind them (surroundings.py)
    pauses_from: float = 0.0  # share of the training in which utterances stay as they are, as first words come sooner so
    longest_pause: float = 2.0  # seconds a pause lasts at most
    pause_kinds: list[str] = field(default_factory=lambda: list(PAUSE_KINDS))  # what pauses hold, each kind as often
    noise_dir: str = folder_or("none", what="noise recordings, such as musan/noise")  # for pauses of the kind folder, and noise
    join: float = 0.0  # share of utterances that another one of their language follows, after a pause
    level_db: float = 0.0  # make speech louder or softer by up to this many dB
    noise: float = 0.0  # share of utterances with noise under them: white, of a room or from noise_dir
    snr_db: list[float] = field(default_factory=lambda: [5.0, 40.0])  # lowest and highest dB from that noise up to the speech
    stored_gb: float = 100.0  # gigabytes of features stored on disk, about 17 h of audio each; the rest is computed in training
    cache_gigabytes: float = 2.0  # gigabytes of audio kept in memory, of what is not stored, or is heard with pauses or noise

    without_effect = ("stored_gb", "cache_gigabytes")

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("stored_gb", self.stored_gb >= 0, "at least 0")
        require("cache_gigabytes", 0 <= self.cache_gigabytes < math.inf, "at least 0")
        require("batch_seconds", self.batch_seconds > 0, "a positive number")
        for name in ("max_utterances", "minibatches"):
            require(name, getattr(self, name) >= 1, "at least 1")
        good = all(0 < speed < math.inf and speed != 1 for speed in self.speeds) and len(set(self.speeds)) == len(self.speeds)
        require("speeds", good, "positive numbers other than 1, each once")
        require("warp", 1 <= self.warp <= 3, "1 to 3")
        require("channel_corners", self.channel_corners >= 2, "at least 2")
        for name in ("pauses", "join", "noise"):
            require(name, 0 <= getattr(self, name) <= 1, "0 to 1")
        require("pauses_from", 0 <= self.pauses_from <= 1, "0 to 1")
        require("longest_pause", 0.05 <= self.longest_pause <= 30, "0.05 to 30 seconds")
        kinds = set(self.pause_kinds)
        good = kinds <= set(PAUSE_KINDS) and bool(kinds if self.noise_dir != "none" else kinds - {"folder"})
        require("pause_kinds", good, f"any of {', '.join(PAUSE_KINDS)}; folder alone needs noise_dir")
        require("level_db", 0 <= self.level_db <= 60, "0 (none) to 60")
        good = len(self.snr_db) == 2 and -20 <= self.snr_db[0] <= self.snr_db[1] <= 100
        require("snr_db", good, "two numbers of -20 to 100, the lower one first")
        require("channel_db", 0 <= self.channel_db <= 60, "0 (none) to 60")


@dataclass
class SearchConfig:
    """Beam search (pyspeech/asr/search.py); beam=1 is the greedy search."""

    beam: int = 4  # hypotheses kept per utterance and language, 1 to 1000; 1: greedy search
    max_symbols: int = 3  # symbols that a hypothesis may emit per encoder frame
    prune: float = 10.0  # drop hypotheses whose log probability is this far below the best; .inf: none
    symbol_bonus: float = 0.0  # added to the log probability for each symbol, against deletions

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("search", self)
        whole = isinstance(self.beam, Integral) and 1 <= self.beam <= MOST_HYPOTHESES
        require("beam", whole, f"a whole number, 1 to {MOST_HYPOTHESES}")
        require("max_symbols", isinstance(self.max_symbols, Integral) and self.max_symbols >= 1, "a whole number, at least 1")
        require("prune", self.prune > 0, "a positive number, or .inf")
        require("symbol_bonus", 0 <= self.symbol_bonus < math.inf, "at least 0")

    def changed(self, **options: int | float | None) -> "SearchConfig":
        """The same with other values of some options; None: as it is."""
        return replace(self, **{name: value for name, value in options.items() if value is not None})


@dataclass
class ContextWeights:
    """Weights of hotwords and language models in the search (pyspeech/asr/fusion.py)."""

    hotwords_score: float = HOTWORDS_SCORE  # bonus in log probability for each symbol of a phrase without its own
    lm_weight: float = LM_WEIGHT  # weight of the log probability of the language model
    ilm_weight: float = 0.0  # weight of the transducer's own language model, which is subtracted

    def check_weights(self, lm: bool, group: str = "") -> None:
        """Raise UserError for the first that makes no sense; lm: whether there is a language model; group: of the options."""
        require = requirement(group, self)
        require("hotwords_score", 0 < self.hotwords_score < math.inf, "a number above 0")
        for name in ("lm_weight", "ilm_weight"):
            require(name, 0 <= getattr(self, name) < math.inf, "at least 0")
        require("ilm_weight", not self.ilm_weight or lm, "0 without lm")


@dataclass
class ContextConfig(ContextWeights):
    """Hotwords and language models of a recipe (pyspeech/asr/context.py)."""

    hotwords: str = folder_or("none", what="hotwords: a text file with a phrase a line", file=True)  # phrases to prefer
    # n-gram language models: train (estimated from the training transcripts) or a folder of CODE.arpa, all.arpa for vanilla
    lm: str = folder_or("none", "train", what="ARPA files CODE.arpa over the symbols of the model")
    lm_order: int = LM_ORDER  # longest n-grams of lm=train, in symbols

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        self.check_weights(self.lm != "none", "context")
        requirement("context", self)("lm_order", self.lm_order >= 1, "at least 1")


@dataclass
class EarlyStopping:
    """Early stopping of decoders of unlikely languages (Joshi et al. 2021, section 6.3); by default none stops."""

    rule: str = "sum_logp"  # score of a language: sum_logp (equation 1), mean_logp or mean_p
    tau: float = math.inf  # encoder frames during which all decoders run
    threshold: float = math.inf  # s_th: switch off languages whose score is this far below the best active one

    def check(self) -> None:
        if self.rule not in STOPPING_RULES:
            raise UserError(f"early stopping: rule={self.rule!r}; expected one of {', '.join(STOPPING_RULES)}")
        if not self.tau >= 0 or not self.threshold >= 0:
            raise UserError(f"early stopping: tau={self.tau}, threshold={self.threshold}; expected >= 0 or .inf")


@dataclass
class Endpointing:
    """Endpoint rules of a stream, as in Kaldi's online decoders (there 1.2 s); .inf switches a rule off."""

    silence_before: float = 2.4  # seconds without a symbol from the start
    silence_after: float = 0.8  # seconds without a symbol after the last one
    longest: float = 20.0  # longest utterance in seconds

    def check(self) -> None:
        if not all(seconds > 0 for seconds in (self.silence_before, self.silence_after, self.longest)):
            raise UserError(
                f"endpointing: silence_before={self.silence_before}, silence_after={self.silence_after}, "
                f"longest={self.longest}; expected seconds > 0 or .inf"
            )


def language_among(given: str, codes: Sequence[str]) -> str:
    """The one of a model's language codes that is meant: itself in any case and with - or _, or by its first part, as hi for
    hi-IN; UserError, which names them, for none and for several."""
    wanted = str(given).lower().replace("_", "-")
    found = [code for code in codes if code.lower() == wanted] or [
        code for code in codes if code.lower().split("-")[0] == wanted
    ]
    if len(found) == 1:
        return found[0]
    raise UserError(
        f"language {given}: " + (f"which of {', '.join(found)}?" if found else f"the model knows {', '.join(codes)}")
    )


def parameter_count(config: TransducerConfig, vocabularies: Mapping[str, int]) -> int:
    """Count the parameters of a transducer as Table 6 of the paper does: without those that only the pruned loss uses.

    config: TransducerConfig; vocabularies: {language code: V}, the blank included. No network is built, except an
    encoder whose parameters cannot be counted otherwise.
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
