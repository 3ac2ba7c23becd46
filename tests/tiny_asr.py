"""Sizes of a small transducer, and vocabularies of three languages, for tests of what does not depend on them; a small model
that was not trained, in a file, and a sound that it says something about."""

import numpy as np
import torch

from pyspeech.asr.checkpoint import save_model
from pyspeech.asr.config import TransducerConfig
from pyspeech.asr.networks import Transducer
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.text.units import GraphemeUnits

SMALL = {
    "encoder_layers": 2,
    "encoder_size": 24,
    "predictor_size": 20,
    "embedding": 12,
    "joint": 28,
    "features": 16,
    "lid_sizes": [10, 6],
}
VOCABULARIES = {"en-IN": 7, "hi-IN": 5, "ta-IN": 9}
UNION = 19  # symbols of all of them
GRAPHEMES = {"en-IN": "abcde", "hi-IN": "कखगघ", "ta-IN": "அஆஇஈ"}
CONFIG = {
    "encoder_layers": 1,
    "encoder_size": 12,
    "predictor_layers": 1,
    "predictor_size": 8,
    "embedding": 6,
    "joint": 10,
    "lid_sizes": [6],
}


def babble(seconds, rate=16000, seed=0):
    """Noise that gets louder and softer, its spectrum changing: what a random model says something about."""
    random = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    tone = np.sin(2 * np.pi * np.cumsum(300 + 200 * np.sin(2 * np.pi * 0.9 * time)) / rate)
    loudness = np.clip(np.sin(2 * np.pi * 0.4 * time), 0, 1) + 0.01
    return (0.3 * loudness * (tone + 0.3 * random.standard_normal(len(time)))).astype(np.float32)


def save_random_model(folder, structure, lid=False, languages=GRAPHEMES, search=None, fbank=None, **options):
    """A model that was not trained but speaks, now and then; search, fbank: their configs; options: of TransducerConfig."""
    torch.manual_seed(3)
    units = {code: GraphemeUnits.build([GRAPHEMES[code]], language=code) for code in languages}
    if structure in ("vanilla", "onehot"):
        units = dict.fromkeys(units, GraphemeUnits.union(list(units.values())))
    config = TransducerConfig(structure=structure, lid=lid, **{**CONFIG, **options})
    model = Transducer(config, {code: entry.size for code, entry in units.items()})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.7 * torch.randn_like(parameter))
        for layer in model.joint.outputs:
            layer.bias[0] += 4  # blank: it does not speak in every frame
    save_model(folder, model, units, GlobalStats([-8.0] * 80, [3.0] * 80), fbank or FbankConfig(), search)
    return folder


def count_parameters(model: torch.nn.Module) -> int:
    """Parameters as the paper's Table 6 counts them: without the outputs that only the pruned loss uses."""
    return sum(parameter.numel() for name, parameter in model.named_parameters() if not name.startswith("simple_"))
