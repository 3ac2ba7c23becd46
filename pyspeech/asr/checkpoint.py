"""Transducer files with all that recognition needs: the model, its units, and how features are computed and normalised."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspeech import model_file
from pyspeech.asr.config import KIND, SearchConfig, TransducerConfig
from pyspeech.asr.networks import Transducer
from pyspeech.asr.registry import ENCODERS
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.text.units import units_from_json

if TYPE_CHECKING:
    from pathlib import Path

    import torch


@dataclass
class Bundle:
    """Result of `load_model`.

    model: Transducer; units: {language code: units}; fbank: FbankConfig; stats: GlobalStats or None (not normalised);
    search: SearchConfig that the recipe decoded with, the default of recognition
    """

    model: Transducer
    units: dict
    fbank: FbankConfig
    stats: GlobalStats | None
    search: SearchConfig = field(default_factory=SearchConfig)

    @property
    def frame_seconds(self) -> float:
        """Seconds from output frame to output frame of the encoder."""
        return self.fbank.frame_seconds * ENCODERS[self.model.config.encoder].subsampling


def save_model(
    folder: str | Path,
    model: Transducer,
    units: dict[str, Any],
    stats: GlobalStats | None,
    fbank_config: FbankConfig,
    search: SearchConfig | None = None,
) -> None:
    """Write `folder`/model.pt, whole or not at all; the arguments are what `load_model` gives back."""
    check_units(model, units)
    model_file.write(
        folder,
        KIND,
        model,
        transducer=model.config,
        vocabularies=model.vocabularies,
        # As text: a file holds plain data alone, and units have their own form.
        units={language: json.dumps(units[language].to_json()) for language in model.languages},
        fbank=fbank_config,
        stats=None if stats is None else stats.to_dict(),
        search=search or SearchConfig(),
    )


def load_model(folder: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """The Bundle of `folder`: model on `device`, float32, in evaluation mode.

    folder: of a model.pt, or that file. UserError for any other.
    """
    bundle = model_file.read(folder, KIND, _build)
    bundle.model.to(device).eval()
    return bundle


def read_options(folder: str | Path) -> tuple[TransducerConfig, FbankConfig]:
    """The structure of the model of `folder`, and the features that it hears; UserError as of `load_model`. No network is
    built for it."""
    return model_file.read(
        folder, KIND, lambda content: (TransducerConfig(**content["transducer"]), FbankConfig(**content["fbank"]))
    )


def _build(content):
    model = Transducer(TransducerConfig(**content["transducer"]), content["vocabularies"])
    model.load_state_dict(content["model"])
    # Languages with the same units, as in a union, share them.
    distinct = {text: units_from_json(json.loads(text)) for text in content["units"].values()}
    units = {language: distinct[text] for language, text in content["units"].items()}
    check_units(model, units)
    stats = None if content["stats"] is None else GlobalStats.from_dict(content["stats"])
    search = SearchConfig(**content.get("search", {}))  # older files have none
    search.check()
    return Bundle(model, units, FbankConfig(**content["fbank"]), stats, search)


def check_units(model: Transducer, units: dict[str, Any]) -> None:
    """UserError unless `units` {language: units} are those of the model's languages and have its numbers of symbols."""
    sizes = {language: len(entry.symbols) for language, entry in units.items()}
    if sizes != model.vocabularies:
        raise UserError(f"units of {sizes or 'no language'}: the model has vocabularies {model.vocabularies}")
