"""Dynamic quantisation of a transducer to 8-bit integers, for decoding on CPUs.

The weights of LSTM and linear layers are int8 and their inputs are quantised anew in each call, by their range in it.
So results depend a little on what is computed together: chunks of another size or another batch may change a
hypothesis.
The output layers of the heads stay as they are: a search over languages packs their weights, which are small.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle


def quantize_bundle(bundle: Bundle) -> Bundle:
    """Quantise the result of `pyspeech.asr.checkpoint.load_model`: a bundle for the recognisers, whose model is an int8 copy in
    evaluation mode on the CPU; that of `bundle` stays as it is."""
    model, kinds = copy.deepcopy(bundle.model).cpu().eval(), {torch.nn.LSTM, torch.nn.Linear}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.11: that another package is to do this one day
        # LSTMs inside of modules are replaced, one at the root would not be; subclasses are left alone.
        quantized = torch.ao.quantization.quantize_dynamic(model, kinds, torch.qint8, inplace=True)
    return dataclasses.replace(bundle, model=quantized)
