"""A GRU for training on a CPU: what torch.nn.GRU computes, in six tenths of the time.

The recurrent products of a small network take less time than what torch books for the gradient of each operation. Here both
directions of a bidirectional one make their steps together, and the gradient is written down: all of it that does not depend
on later steps is computed for all steps at once, so that a step backwards is three products and a sum.
"""

import torch


def outputs(gru: torch.nn.GRU, features: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The outputs of each direction of `gru`, the forward one first; one layer, batch_first, with biases.

    features (B, T, D), T > 0 -> (B, T, H), one or two.
    """
    named, frames = dict(gru.named_parameters()), features.transpose(0, 1)
    both = [("l0", frames), ("l0_reverse", frames.flip(0))][: 2 if gru.bidirectional else 1]
    projections = [
        torch.nn.functional.linear(inputs, named[f"weight_ih_{layer}"], named[f"bias_ih_{layer}"]) for layer, inputs in both
    ]
    weight, bias = (torch.stack([named[f"{kind}_hh_{layer}"] for layer, _ in both]) for kind in ("weight", "bias"))
    states = _Recurrence.apply(torch.stack(projections, dim=1), weight, bias)
    forward = states[:, 0].transpose(0, 1)
    return (forward, states[:, 1].flip(0).transpose(0, 1)) if gru.bidirectional else (forward,)


class _Recurrence(torch.autograd.Function):
    """projections (T, N, B, 3 H) of the inputs for the gates r and z and the candidate n, in each of N directions' own order of
    time; weight (N, 3 H, H) and bias (N, 3 H) of the states -> states (T, N, B, H)."""

    @staticmethod
    def forward(ctx, projections, weight, bias):
        steps, directions, batch, rows = projections.shape
        size = rows // 3
        states = projections.new_zeros(steps + 1, directions, batch, size)
        products, candidates = torch.empty_like(projections), torch.empty_like(states[1:])
        gates = projections.new_empty(steps, directions, batch, 2 * size)
        turned, start = weight.transpose(1, 2).contiguous(), bias[:, None].expand(directions, batch, rows)
        # Views of all steps, made at once.
        parts = (
            *(states[:-1], states[1:], products, products[..., : 2 * size], products[..., 2 * size :]),
            *(projections[..., : 2 * size], projections[..., 2 * size :], gates, *gates.chunk(2, dim=3), candidates),
        )
        for before, after, product, from_state, carried, given, given_new, both, reset, update, new in _steps(parts):
            torch.baddbmm(start, before, turned, out=product)
            torch.add(given, from_state, out=both).sigmoid_()
            torch.addcmul(given_new, reset, carried, out=new).tanh_()
            torch.lerp(new, before, update, out=after)
        ctx.save_for_backward(weight, gates, products, candidates, states)
        return states[1:]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, outputs_grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, gates, products, new, states = ctx.saved_tensors
        before, size = states[:-1], new.shape[-1]
        reset, update = gates.chunk(2, dim=3)
        to_new = (1 - update) * (1 - new * new)
        # By which the gradient of a state is multiplied for those of its products: before r, before z, and with r.
        factors = torch.stack(
            [to_new * products[..., 2 * size :] * reset * (1 - reset), (before - new) * update * (1 - update), to_new * reset],
            dim=3,
        )
        local, states_grad, state_grad = torch.empty_like(factors), torch.empty_like(new), torch.zeros_like(new[0])
        kept = torch.empty_like(state_grad)
        rows = local.flatten(3)
        parts = outputs_grad, states_grad, states_grad[:, :, :, None], factors, local, rows, update
        for given, grad, for_each, factor, part, row, share in reversed(list(_steps(parts))):
            torch.add(given, state_grad, out=grad)
            torch.mul(factor, for_each, out=part)
            torch.mul(grad, share, out=kept)
            torch.baddbmm(kept, row, weight, out=state_grad)
        by_direction = rows.transpose(0, 1).flatten(1, 2)
        weight_grad = torch.bmm(by_direction.transpose(1, 2), before.transpose(0, 1).flatten(1, 2))
        projections_grad = rows.clone()
        torch.mul(states_grad, to_new, out=projections_grad[..., 2 * size :])
        return projections_grad, weight_grad, by_direction.sum(1)


def _steps(parts):
    """For each step its views of tensors (T, ...)."""
    return zip(*(part.unbind(0) for part in parts), strict=True)
