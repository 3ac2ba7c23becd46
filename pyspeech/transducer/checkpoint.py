"""All that recognition needs in one file: the model, its units, and how features are computed and normalised."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspeech.compat import load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.text.units import units_from_json
from pyspeech.transducer.config import TransducerConfig
from pyspeech.transducer.networks import Transducer

MODEL_FILE = "model.pt"


@dataclass
class Bundle:
    """What `load_model` gives.

    model: Transducer; units: {language code: units}; fbank: FbankConfig; stats: GlobalStats or None (not normalised)
    """

    model: Transducer
    units: dict
    fbank: FbankConfig
    stats: GlobalStats


def save_model(folder, model, units, stats, fbank_config):
    """Write `folder`/model.pt, whole or not at all; the arguments are what `load_model` gives back."""
    check_units(model, units)
    content = {
        "model": {name: value.cpu() for name, value in model.state_dict().items()},
        "transducer": asdict(model.config),
        "vocabularies": dict(model.vocabularies),
        # As text: a checkpoint holds plain data alone, and units have their own form.
        "units": {language: json.dumps(units[language].to_json()) for language in model.languages},
        "fbank": asdict(fbank_config),
        "stats": None if stats is None else stats.to_dict(),
    }
    content["transducer"]["lid_sizes"] = list(content["transducer"]["lid_sizes"])
    save_checkpoint(Path(folder) / MODEL_FILE, content)


def load_model(folder, device="cpu"):
    """The Bundle of `folder`/model.pt: model on `device`, float32, in evaluation mode. UserError for any other file."""
    path = Path(folder) / MODEL_FILE
    content = load_checkpoint(path, map_location="cpu")
    try:
        model = Transducer(TransducerConfig(**content["transducer"]), content["vocabularies"])
        model.load_state_dict(content["model"])
        # Languages with the same units, as in a union, share them.
        distinct = {text: units_from_json(json.loads(text)) for text in content["units"].values()}
        units = {language: distinct[text] for language, text in content["units"].items()}
        check_units(model, units)
        fbank = FbankConfig(**content["fbank"])
        stats = None if content["stats"] is None else GlobalStats.from_dict(content["stats"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, UserError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: not a transducer of this version ({type(error).__name__}: {reason}); "
            "train it again, or use the version of the code that made it"
        ) from error
    return Bundle(model.to(device).eval(), units, fbank, stats)


def check_units(model, units):
    """UserError unless `units` {language: units} are those of the model's languages and have its numbers of symbols."""
    sizes = {language: len(entry.symbols) for language, entry in units.items()}
    if sizes != model.vocabularies:
        raise UserError(f"units of {sizes or 'no language'}: the model has vocabularies {model.vocabularies}")
