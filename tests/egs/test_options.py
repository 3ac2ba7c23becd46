"""Every option of every recipe, given values that are negative, zero, empty, not a number, infinite or of another type.

Each is refused in one line that names the option, or stands in ACCEPTED with the reason why it makes sense. What is done
here to many values is what a command does first, see `Recipe.configure`.
"""

import dataclasses
import importlib.util
import re
import runpy
import subprocess
import sys
import typing

import pytest
from omegaconf import OmegaConf
from recipe_harness import ROOT

from pyspeech.engine import config
from pyspeech.errors import UserError

RECIPES = ("fearless", "indic", "zerospeech", "add2022")
VALUES = ("-1", "0", "", "nan", "inf", "x", "null")
VALUES_OF_LISTS = ("[-1]", "[0]", "[]", "[nan]", "[inf]", "[x]")

# {reason: {"<class of the option>.<its name>", or "<recipe>.<its name>" for those of no class: the values}}
ACCEPTED = {
    "0: off": {
        **dict.fromkeys([f"AugmentConfig.{name}" for name in ("mcadams", "music", "noise", "codec")], ["0"]),
        "AugmentConfig.reverberation": ["0"],
        **dict.fromkeys([f"CropConfig.{name}" for name in ("clean_batches", "resynthesized", "shortened", "speed")], ["0"]),
        "CropConfig.silence": ["0"],
        **dict.fromkeys([f"ContextConfig.{name}" for name in ("ilm_weight", "lm_weight")], ["0"]),
        "SearchConfig.symbol_bonus": ["0"],
        "indic.symbol_bonuses": ["[]", "[0]"],
        "DataConfig.channel_db": ["0"],
        "DataConfig.pauses_from": ["0"],
        "DatasetConfig.augment": ["0"],
        "DatasetConfig.cold_start": ["0"],
        "DatasetConfig.speed": ["0"],
        "FbankConfig.mean_frames": ["0"],
        "LossConfig.lid_scale": ["0"],
        "MfccConfig.prior_frames": ["0"],
        "NetworkConfig.lookahead": ["0"],
        "NetworkConfig.lowered": ["0"],
        "StatisticalConfig.glide_nats": ["0"],
        "StatisticalConfig.glide_share": ["0"],
        "StatisticalConfig.high_pass": ["0"],
        "StatisticalConfig.oversubtraction": ["0"],
        "StatisticalConfig.prior_nats": ["0"],
        "StatisticalConfig.voicing_against": ["0"],
        "StatisticalConfig.voicing_favour": ["0"],
        "TrainConfig.warmup_steps": ["0"],
        "TrainConfig.weight_decay": ["0"],
        **dict.fromkeys(["DetectorConfig.dropout", "InverterConfig.dropout", "TransducerConfig.dropout"], ["0"]),
        "VqVaeConfig.dropout": ["0"],
        **dict.fromkeys(["VqVaeConfig.commitment", "VqVaeConfig.jitter", "VqVaeConfig.smoothing"], ["0"]),
        "VqVaeConfig.revive_below": ["0"],
    },
    "0: no masks, or masks of no width": dict.fromkeys(
        [
            "SpecAugmentConfig.frequency_masks",
            "SpecAugmentConfig.frequency_width",
            "SpecAugmentConfig.time_fraction",
            "SpecAugmentConfig.time_masks",
            "SpecAugmentConfig.time_width",
        ],
        ["0"],
    ),
    "0: none is kept, each is read or computed again": dict.fromkeys(
        [
            "CropConfig.cache_gigabytes",
            "DataConfig.cache_gigabytes",
            "DataConfig.stored_gb",
            "DatasetConfig.cache_hours",
            "UnitDataConfig.cache_gigabytes",
        ],
        ["0"],
    ),
    "0: none of these layers": dict.fromkeys(["InverterConfig.layers", "VqVaeConfig.layers"], ["0"]),
    "0: that part of the loss has no weight, the others stay": dict.fromkeys(
        ["LossConfig.am_scale", "LossConfig.lm_scale", "LossConfig.simple_scale"], ["0"]
    ),
    "0: the codebook is made from the first batch": {"VqVaeConfig.quantise_after": ["0"]},
    "0: pieces are all as long as crop_seconds": {"UnitDataConfig.shortest_crop": ["0"]},
    "0: the training process reads itself": {"TrainConfig.num_workers": ["0"]},
    "0: pages are drawn by their size": {"CropConfig.even_pages": ["0"]},
    "dB of full scale, or as it is": {"CropConfig.level": ["-1", "0", "null", ""]},
    "0: windows are as long as the pieces of training": {"CropConfig.whole": ["0"]},
    "0: a learnt weighted sum of all layers": {"LogMelConfig.layer": ["0"]},
    "0: no tracking of noise": {"StatisticalConfig.iterations": ["0"]},
    "0: noise is removed whole": {"StatisticalConfig.min_gain": ["0"]},
    "0 seconds: a frame alone; no gap is closed, no pause filled": dict.fromkeys(
        [
            "StatisticalConfig.closing_seconds",
            "StatisticalConfig.edge_seconds",
            "StatisticalConfig.fill_seconds",
            "StatisticalConfig.phrase_seconds",
            "StatisticalConfig.smoothing_seconds",
            "StatisticalConfig.talk_seconds",
            "StatisticalConfig.voicing_seconds",
        ],
        ["0"],
    ),
    "0 seconds: no collar": {"fearless.collars": ["[0]"]},
    "0: no margin": dict.fromkeys(
        [
            "StatisticalConfig.edge_db",
            "StatisticalConfig.least_margin_db",
            "StatisticalConfig.noise_margin",
            "StatisticalConfig.speech_margin",
        ],
        ["0"],
    ),
    "negative: a level in dB, below that of the sound as it is": dict.fromkeys(
        ["StatisticalConfig.peak_residual_db", "StatisticalConfig.residual_db"], ["-1"]
    ),
    "0: a seed like others": {  # of the other recipes, `seeds` says which
        **dict.fromkeys(["fearless.train.seed", "indic.train.seed"], ["0"]),
        **dict.fromkeys(["zerospeech.seeds", "add2022.seeds"], ["[0]"]),
    },
    "0: no pauses, no joined utterances, levels as they are, no noise": dict.fromkeys(
        ["DataConfig.pauses", "DataConfig.join", "DataConfig.level_db", "DataConfig.noise"], ["0"]
    ),
    "0: languages may be switched off from the first frame on, or as soon as another is ahead": dict.fromkeys(
        ["indic.stop_after", "indic.stop_below"], ["[0]"]
    ),
    "0: false": dict.fromkeys(
        [
            "CropConfig.balanced",
            "DataConfig.augment",
            "DataConfig.pooled",
            "DetectorConfig.residual",
            "LogMelConfig.fine_tuned",
            "LogMelConfig.remove_mean",
            "LossConfig.full",
            "TrainConfig.bf16",
            "TransducerConfig.lid",
            "TransducerConfig.lsp",
            *(f"{recipe}.report" for recipe in ("fearless", "indic", "zerospeech", "add2022")),
            "fearless.skip_bad",
            "indic.skip_bad",
            "indic.cut_longer",
            "indic.steps_by_hours",
            "zerospeech.skip_bad",
            "add2022.skip_bad",
        ],
        ["0"],
    ),
    "inf: no limit (other options still bound a batch)": {
        **dict.fromkeys(["DataConfig.batch_seconds", "UnitDataConfig.batch_seconds", "DatasetConfig.cache_hours"], ["inf"]),
        **dict.fromkeys(["SearchConfig.prune", "TrainConfig.clip_norm", "DataConfig.stored_gb"], ["inf"]),
        "indic.longest": ["inf"],
    },
    "null, or nothing: off, or chosen by itself": dict.fromkeys(
        [
            "TrainConfig.bf16",
            "TrainConfig.clip_norm",
            "TrainConfig.max_epochs",
            "TrainConfig.num_workers",
            "TrainConfig.patience",
            "TrainConfig.valid_every",
        ],
        ["null", ""],
    ),
    "[]: none of these": {
        "DataConfig.speeds": ["[]"],
        "TransducerConfig.lid_sizes": ["[]"],
        "indic.freeze": ["[]"],
        "zerospeech.kmeans": ["[]"],
        "zerospeech.repeated": ["[]"],
        "add2022.repeated": ["[]"],
        "add2022.leave_out": ["[]"],
        **dict.fromkeys(["GridConfig.lengths", "GridConfig.shifts"], ["[]"]),
    },
    "which folders have recordings, the first stage says; []: none": {"fearless.real": ["[]"], "fearless.real_as": ["[]"]},
    "[]: no tags": {"indic.tags": ["[]"]},
    "a tag is any text": {"indic.tags": ["[-1]", "[0]", "[nan]", "[inf]", "[x]"]},
    "[]: all that there are": {"indic.languages": ["[]"]},
    "nothing: none is run": {"zerospeech.recogniser": [""]},
    "which languages there are, the corpus says, in the first stage": {
        "indic.languages": ["[-1]", "[0]", "[nan]", "[inf]", "[x]"],
        "zerospeech.language": list(VALUES),
        "add2022.leave_out": ["[-1]", "[0]", "[nan]", "[inf]", "[x]"],
    },
    "text for a form, which asks for no more": {
        **dict.fromkeys(["SubmissionConfig.author", "SubmissionConfig.affiliation"], [one for one in VALUES if one]),
        "SubmissionConfig.code": list(VALUES),
    },
}


def values_for(kind):
    """What is tried on an option of a type."""
    if typing.get_origin(kind) in (list, tuple):
        return VALUES + VALUES_OF_LISTS
    return VALUES + (("1.5",) if kind in (int, int | None) else ())


def name_in_table(recipe, option):
    if option.key == "train.seed":
        return f"{recipe}.{option.key}"
    owner = {"Config": recipe, "UnitTrainConfig": "TrainConfig"}.get(option.owner.__name__, option.owner.__name__)
    return f"{owner}.{option.key.rpartition('.')[2]}"


def reasons(recipe, option):
    """{value: reason} of those that are accepted for an option."""
    name = name_in_table(recipe, option)
    return {value: reason for reason, table in ACCEPTED.items() for value in table.get(name, ())}


@pytest.fixture(scope="module")
def configurations():
    """{name of a recipe: (Recipe, its configuration in profile mini)}, imported as a command imports it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPEECH_ENV", "system")
        recipes = {name: runpy.run_path(str(ROOT / "egs" / name / "run.py"), run_name="run")["recipe"] for name in RECIPES}
    return {name: (recipe, recipe.configure("mini")[0]) for name, recipe in recipes.items()}


@pytest.mark.parametrize("name", RECIPES)
def test_a_value_is_refused_in_one_line_or_accepted_for_a_reason(name, configurations):
    recipe, conf = configurations[name]
    wrong, before = [], config.flatten(conf)
    for option in config.list_options(recipe.config_class):
        listed = reasons(name, option)
        for value in values_for(option.type):
            answer = None
            try:
                config.override(conf, recipe.config_class, [f"{option.key}={value}"])
                config.checked(conf, recipe.config_class)
            except UserError as error:
                answer = str(error)
            OmegaConf.update(conf, option.key, before[option.key], merge=False)
            if (answer is None) != (value in listed):
                wrong.append(f"{option.key}={value}: {answer or 'accepted'}; listed: {listed.get(value, 'not')}")
            last = option.key.rpartition(".")[2]
            if answer is not None and ("\n" in answer or f"{last}=" not in answer and f"'{option.key}'" not in answer):
                wrong.append(f"{option.key}={value}: {answer}")
    assert not wrong, "\n".join(wrong)


def test_every_reason_is_about_an_option(configurations):
    names = {
        name_in_table(name, option)
        for name, (recipe, _) in configurations.items()
        for option in config.list_options(recipe.config_class)
    }
    assert {name for table in ACCEPTED.values() for name in table} <= names


@pytest.mark.parametrize("name", RECIPES)
def test_profiles_pass_their_checks(name, configurations):
    recipe, _ = configurations[name]
    for profile in recipe.profiles():
        conf, checked = recipe.configure(profile)
        assert isinstance(checked, recipe.config_class) and config.flatten(conf)


def unexplained(config_class):
    """Options whose help text is missing, or is no more than a few letters."""
    return [option.key for option in config.list_options(config_class) if not re.search("[a-z]{2}", option.doc.lower())]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ROOT.glob("egs/*/run.py")))
def test_every_option_has_a_help_text(name, monkeypatch):
    monkeypatch.setenv("PYSPEECH_ENV", "system")
    spec = importlib.util.spec_from_file_location(f"run_{name}", ROOT / "egs" / name / "run.py")
    assert spec and spec.loader
    run_file = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, run_file)  # comments are read from the source of a module that is loaded
    spec.loader.exec_module(run_file)
    assert not unexplained(run_file.recipe.config_class)


def test_an_option_without_a_help_text_is_found():
    @dataclasses.dataclass
    class Config:
        told: int = 1  # steps between log lines
        silent: int = 1

    assert unexplained(Config) == ["silent"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_file_is_one_page(name):
    lines = (ROOT / "egs" / name / "run.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120 and max(map(len, lines)) <= 128


@pytest.mark.parametrize("name", RECIPES)
def test_declaring_a_recipe_loads_nothing_heavy(name):
    heavy = "sorted({'torch', 'lhotse', 'numpy'} & set(sys.modules))"
    code = f"import runpy, sys; runpy.run_path('egs/{name}/run.py'); print({heavy})"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert output.stdout == "[]\n"
