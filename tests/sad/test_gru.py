"""The GRU of training: outputs and gradients of torch's."""

import pytest
import torch

from pyspeech.sad import gru


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("batch, steps", [(1, 1), (3, 7), (2, 60)])
def test_outputs_and_gradients_are_those_of_torch(batch, steps, bidirectional):
    torch.manual_seed(0)
    layer = torch.nn.GRU(5, 6, batch_first=True, bidirectional=bidirectional).double()
    features = torch.randn(batch, steps, 5, dtype=torch.double, requires_grad=True)
    weights = torch.randn(batch, steps, 12 if bidirectional else 6, dtype=torch.double)
    found = []
    for outputs in (layer(features)[0], torch.cat(gru.outputs(layer, features), dim=2)):
        grads = torch.autograd.grad((outputs * weights).square().sum(), [features, *layer.parameters()])
        found.append([outputs.detach(), *grads])
    for expected, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)
