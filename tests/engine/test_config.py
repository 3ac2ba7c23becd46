"""Configuration of recipes: merging, types, errors that name what was meant, documentation from the source."""

import enum
import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyspeech.engine import config
from pyspeech.engine.records import config_changes
from pyspeech.errors import UserError, requirement


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class OptimiserConfig:
    lr: float = 1e-3  # learning rate
    betas: tuple[float, float] = (0.9, 0.999)


@dataclass
class TrainConfig:
    # updates of the
    # weights
    steps: int = 10
    # fmt: off
    amp: bool = False           # half precision,
                                # where it helps
    # fmt: on
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)

    def check(self):
        requirement("training", self)("steps", self.steps >= 0, "0 or more")


@dataclass
class Config:
    corpus: str = "mini"
    limit: int | None = None
    note: str | None = field(default=None, metadata={"help": "for the reader"})
    rate: int | None = None
    folder: Path = Path("data")
    colour: Colour = Colour.RED
    anything: list = field(default_factory=list)
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    weights: dict[str, float] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)


def make(*overrides, profile=None):
    conf = config.to_dataclass(config.resolve(Config, profile, overrides), Config)
    config.check(conf)
    return conf


def error(*overrides, profile=None):
    with pytest.raises(UserError) as caught:
        make(*overrides, profile=profile)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults_profile_and_overrides_merge_in_this_order(tmp_path):
    profile = tmp_path / "small.yaml"
    profile.write_text("corpus: /data/é b\ntrain:\n  steps: 5\n  optimiser: {lr: 2e-3}\n", encoding="utf-8")
    assert make() == Config()
    conf = make("train.optimiser.lr=5e-4", "limit=3", profile=profile)
    assert conf.corpus == "/data/é b" and conf.limit == 3
    assert conf.train == TrainConfig(steps=5, optimiser=OptimiserConfig(lr=5e-4))
    assert make("limit=3", "limit=4").limit == 4


def test_an_empty_profile_is_the_defaults(tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing here\n", encoding="utf-8")
    assert make(profile=tmp_path / "empty.yaml") == Config()


def test_values_have_the_declared_types():
    conf = make(
        "folder=a b/c", "colour=BLUE", "sizes=[3,4]", "weights.x=1", "train.optimiser.betas=[0.5,0.6]", "train.amp=true"
    )
    assert conf.folder == Path("a b/c") and conf.colour is Colour.BLUE and conf.sizes == [3, 4]
    assert conf.weights == {"x": 1.0} and conf.train.optimiser.betas == (0.5, 0.6) and conf.train.amp is True
    assert isinstance(make("train.optimiser.lr=1").train.optimiser.lr, float)


@pytest.mark.parametrize("text", ["007", "1e3", "a: b", "[1]", "on", "x=y", "", " ", "null", "{"])
def test_text_stays_as_typed(text):
    assert make(f"corpus={text}").corpus == text


def test_references_to_other_options_and_the_characters_of_one():
    conf = make("corpus=at ${train.steps}", r"note=do\${a}l$lar")
    assert (conf.corpus, conf.note) == (f"at {Config().train.steps}", "do${a}l$lar")


def test_null_is_none_where_none_is_allowed():
    assert make("note=null", "limit=null") == Config()
    assert make("note=007").note == "007"


def test_names_of_a_dictionary_may_have_dots():
    """As those of stages do, train_mc0.8."""
    assert make("weights.a.b=2", "weights.c=1", "weights.a.b=3").weights == {"a.b": 3.0, "c": 1.0}


@pytest.mark.parametrize(
    "override, message",
    [
        ("train.stepps=1", "no option 'train.stepps'; did you mean 'train.steps'? (options: --help)"),
        ("lr=1", "no option 'lr'; did you mean 'train.optimiser.lr'? (options: --help)"),
        (
            "training.optimiser.lrr=1",
            "no option 'training.optimiser.lrr'; did you mean 'train.optimiser.lr'? (options: --help)",
        ),
        ("zzzzzz=1", "no option 'zzzzzz' (options: --help)"),
        ("corpus.x=1", "no option 'corpus.x'; did you mean 'corpus'? (options: --help)"),
        ("train.optimiser=1", "'train.optimiser' is a group of options: set one of train.optimiser.lr, train.optimiser.betas"),
        ("train.optimiser.lr=fast", "option 'train.optimiser.lr' takes a number, got 'fast'"),
        ("train.optimiser.lr=", "option 'train.optimiser.lr' takes a number, got nothing"),
        ("train.steps=1.5", "option 'train.steps' takes a whole number, got 1.5"),
        ("train.amp=maybe", "option 'train.amp' takes true or false, got 'maybe'"),
        ("train.amp=-1", "option 'train.amp' takes true or false, got -1"),
        ("limit=x", "option 'limit' takes a whole number or null, got 'x'"),
        ("colour=PINK", "option 'colour' takes one of RED, BLUE, got 'PINK'"),
        ("sizes=3", "option 'sizes' takes a list in brackets, each a whole number, got 3"),
        ("sizes=[1,x]", "option 'sizes' takes a list in brackets, each a whole number, got [1, 'x']"),
        ("anything=1", "option 'anything' takes a list in brackets, got 1"),
        ("sizes=[1,", "option 'sizes' takes a list in brackets, each a whole number, got '[1,'"),
        ("weights=3", "option 'weights' takes {NAME: VALUE} in braces, each value a number, got 3"),
        ("weights={x: heavy}", "option 'weights' takes {NAME: VALUE} in braces, each value a number, got {'x': 'heavy'}"),
        ("weights.x=heavy", "option 'weights.x' takes a number, got 'heavy'"),
        ("weights.x.y=heavy", "option 'weights.x.y' takes a number, got 'heavy'"),
        ("train.steps=-1", "train.steps=-1: expected 0 or more"),
        ("corpus=do${a}llar", f"option 'corpus': Interpolation key 'a' not found; {config.REFERENCE}"),
        ("corpus=${x:1}", f"option 'corpus': Unsupported interpolation type x; {config.REFERENCE}"),
        ("corpus=${", f"option 'corpus' takes text, got '${{' (no viable alternative at input '${{'); {config.REFERENCE}"),
        ("train", "'train' is not an option: write key=value (options: --help; a stage: --stage train)"),
    ],
)
def test_errors_say_what_was_meant(override, message):
    assert error(override) == message


def test_errors_of_a_profile_name_the_file(tmp_path):
    profile = tmp_path / "bad.yaml"
    for text, message in [
        ("train: {stepps: 1}", f"no option 'train.stepps' (in {profile}); did you mean 'train.steps'? (options: --help)"),
        ("train: {steps: x}", f"option 'train.steps' (in {profile}) takes a whole number, got 'x'"),
        (
            "train: 3",
            f"'train' (in {profile}) is a group of options: set one of train.steps, train.amp, "
            "train.optimiser.lr, train.optimiser.betas",
        ),
        ("- 1", f"{profile} holds a list, expected options such as 'train: {{lr: 0.001}}'"),
    ]:
        profile.write_text(text, encoding="utf-8")
        assert error(profile=profile) == message
    for text in ("train: [1", "limit: 1\nlimit: 2\n", "a:\n\tb: 1"):
        profile.write_text(text, encoding="utf-8")
        assert error(profile=profile).startswith(f"{profile} is not a readable YAML file: ")
    assert error(profile=tmp_path / "none.yaml").startswith(f"{tmp_path / 'none.yaml'} is not a readable YAML file")


def test_an_option_without_default_is_asked_for():
    @dataclass
    class Needy:
        corpus: str

    with pytest.raises(UserError, match="option 'corpus' has no default: give corpus="):
        config.to_dataclass(config.resolve(Needy), Needy)


def test_documentation_comes_from_metadata_and_comments():
    docs = {option.key: option.doc for option in config.list_options(Config)}
    assert docs["note"] == "for the reader"
    assert docs["train.steps"] == "updates of the weights"
    assert docs["train.amp"] == "half precision, where it helps"
    assert docs["train.optimiser.lr"] == "learning rate"
    assert docs["corpus"] == docs["train.optimiser.betas"] == ""
    assert list(docs)[:2] == ["corpus", "limit"]  # the order of the source


def test_flatten_and_below():
    leaves = config.flatten(config.resolve(Config, None, ["weights.x=2"]))
    assert leaves["folder"] == "data" and leaves["colour"] == "RED" and leaves["weights.x"] == 2.0
    assert config.below(leaves, ["train.optimiser", "limit"]) == {
        "limit": None,
        "train.optimiser.lr": 0.001,
        "train.optimiser.betas": [0.9, 0.999],
    }
    assert config.below(leaves, ["train.o"]) == {}  # no prefix of a name


@pytest.mark.parametrize(
    "leaves, message",
    [
        ({"a": math.nan}, "option 'a' takes a number, got nan"),
        ({"b.c": [1.0, math.nan]}, "option 'b.c' takes a number, got nan"),
        ({"a": "caf\udce9"}, "a=caf\udce9: not UTF-8"),
        ({"a": ["x", "caf\udce9"]}, 'caf\udce9"]: not UTF-8'),
        ({"a.\udce9": 1}, "a.\udce9=1: not UTF-8"),
    ],
)
def test_what_no_record_can_hold(leaves, message):
    with pytest.raises(UserError) as caught:
        config.check_recordable(leaves)
    assert message in str(caught.value)


def test_what_a_record_can_hold():
    config.check_recordable({"a": math.inf, "b": None, "c": "nan", "d": ["é", -math.inf, True], "e": {}})


def test_config_changes():
    defaults = {"a": 1, "b": 2, "c": math.nan}
    assert config_changes(defaults, dict(defaults), defaults, defaults) == []
    assert config_changes({"a": 1}, {"a": 3}, {"a": 3}, defaults) == ["a 1 -> 3"]
    assert config_changes({"a": None}, {"a": "null"}, {"a": "null"}, defaults) == ["a null -> null"]
    assert config_changes({}, {"b": 2}, {"b": 2}, defaults) == []  # a program that gained an option
    assert config_changes({}, {"b": 5}, {"b": 5}, defaults) == ["b is new: 5"]
    assert config_changes({"b": 5}, {}, {"b": 5}, defaults) == []  # not declared any more
    assert config_changes({"b": 5}, {}, {}, defaults) == ["b 5 -> no longer there"]
    assert config_changes({"b": 2}, {}, {}, defaults) == []  # a program that lost an option: as without it
