"""A few steps of training on one batch, for tests of losses."""

import torch


def descend(model, compute_loss, batch, steps, lr):
    """Adam on compute_loss(model, batch) -> (loss, values): the losses of all steps, and the values of the last."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr), []
    for _ in range(steps):
        loss, values = compute_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, values
