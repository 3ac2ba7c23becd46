"""Dynamic quantisation of a transducer to 8-bit integers, for decoding on CPUs.

The weights of LSTM and linear layers are int8 and their inputs are quantised anew in each call, by their range in it. So
results depend a little on what is computed together: chunks of another size or another batch may change a hypothesis.
The output layers of the heads stay as they are: a search over languages packs their weights, which are small.
"""
import warnings

import torch


def quantize(model):
    """An int8 copy of a Transducer, in evaluation mode on the CPU, for `BeamSearch` and the recognisers alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a package of its own is going to do this one day
        # LSTMs inside of modules are replaced, one at the root would not be; types are compared exactly.
        return torch.ao.quantization.quantize_dynamic(model.cpu().eval(), {torch.nn.LSTM, torch.nn.Linear}, torch.qint8)
