"""Segment RNN (Heitkaemper et al. 2020, section 3, Figure 5): a GRU over short overlapping segments.

T frames are cut into M segments of L frames, S frames apart. The same bidirectional GRU and classifier see every segment
by itself, and the output at a segment's last frame stands for the whole segment. A frame counts as speech where any
segment that contains it does (`any_segment`).

`last_outputs` computes the GRU's part without cutting segments out. Three things make it exact and fast: a frame's input
projection is the same in all the segments that contain it, so it is computed once; a segment's first step starts from
h = 0 and needs no recurrent product; and the backward direction, read at the last frame, has made a single step. Steps 2 to
L are one matrix product each over the segments of the whole batch, on strided views.
"""

from typing import TypeVar

import torch
from torch.nn import functional

Count = TypeVar("Count", int, torch.Tensor)


def num_segments(num_frames: Count, length: int, shift: int) -> Count:
    """Segments that cover `num_frames` frames (a number or a tensor of numbers > 0); the last may reach over the end."""
    beyond_first = num_frames - length + shift - 1
    return 1 + (beyond_first.clamp(min=0) if torch.is_tensor(beyond_first) else max(0, beyond_first)) // shift


def last_outputs(features: torch.Tensor, gru: torch.nn.GRU, length: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the GRU's outputs at the segments' last frames, forward and backward direction: two of (B, M, H).

    features: (B, T, D), T > 0, continued with zeros. gru: one layer, bidirectional, batch_first.
    """
    batch, num_frames, size = features.shape
    count = num_segments(num_frames, length, shift)
    # All utterances in one row of frames, each padded to a multiple of the shift, so that one strided view gives the n-th
    # frames of all segments. The few segments that reach from one utterance into the next are dropped at the end.
    padded_count = count - 1 + (length + shift - 1) // shift  # no division of a negative number: ONNX rounds that up
    frames = _pad_frames(features, padded_count * shift).reshape(1, -1, size)
    frames = _pad_frames(frames, frames.shape[1] + length)[0]
    total = batch * padded_count

    def unfold_batch(states):  # (H, total) -> (B, M, H)
        return states.reshape(-1, batch, padded_count)[:, :, :count].permute(1, 2, 0)

    forward = _forward_direction(frames, gru, length, shift, total)
    backward = _backward_direction(frames[length - 1 :: shift][:total], gru)
    return unfold_batch(forward), unfold_batch(backward)


def any_segment(scores: torch.Tensor, length: int, shift: int, num_frames: int) -> torch.Tensor:
    """Segment scores (B, M), all > 0 -> frame scores (B, num_frames): the maximum over the segments with that frame."""
    batch, count = scores.shape
    # Every score at its segment's first frame; the zeros between lose against any score.
    spread = functional.pad(scores[:, :, None], (0, shift - 1)).reshape(batch, 1, count * shift)
    spread = functional.pad(spread, (length - 1, num_frames))
    return functional.max_pool1d(spread, length, stride=1)[:, 0, :num_frames]


def _pad_frames(features, num_frames):
    return functional.pad(features, (0, 0, 0, num_frames - features.shape[1]))


def _forward_direction(frames, gru, length, shift, count):
    """State after `length` steps from frames 0, shift, ... (count - 1) * shift: frames (N, D) -> (H, count).

    States are columns: the gates are then contiguous blocks of rows, which halves the time on a CPU.
    """
    rows = 2 * gru.hidden_size
    projections = _project(frames, gru.weight_ih_l0, gru.bias_ih_l0, gru.bias_hh_l0[:rows])
    recurrent = (gru.weight_hh_l0, gru.bias_hh_l0[rows:, None])
    if torch.is_grad_enabled() and not torch._C._get_tracing_state():  # an export has no use for the gradient
        return _Recurrence.apply(*projections, *recurrent, length, shift, count)
    return _recur(*projections, *recurrent, length, shift, count)


def _recur(gate_projection, candidate_projection, weight, candidate_bias, length, shift, count, keep=None):
    """The steps of `_forward_direction`. keep: called with (step, reset and update gates, recurrent part of the candidate,
    candidate, new state) of each."""
    size = len(candidate_projection)
    span = (count - 1) * shift + 1
    state = None
    for step in range(length):
        gate_input = gate_projection[:, step : step + span : shift]
        candidate_input = candidate_projection[:, step : step + span : shift]
        if state is None:
            gates, candidate = torch.sigmoid(gate_input), candidate_bias
        else:
            gates = torch.addmm(gate_input, weight[: 2 * size], state).sigmoid_()
            candidate = torch.addmm(candidate_bias, weight[2 * size :], state)
        reset, update = gates[:size], gates[size:]
        new = torch.addcmul(candidate_input, reset, candidate).tanh_()
        state = new - update * new if state is None else new + update * (state - new)
        if keep is not None:
            keep(step, gates, candidate, new, state)
    return state


class _Recurrence(torch.autograd.Function):
    """`_recur` with its gradient by hand: what autograd does, but the inputs' gradients are summed in place instead of in a
    whole tensor of zeros for every step, and the weights' is one product over all steps."""

    @staticmethod
    def forward(ctx, gate_projection, candidate_projection, weight, candidate_bias, length, shift, count):
        size, like = len(candidate_projection), candidate_projection
        gates, candidates, news, states = (like.new_empty(length, rows, count) for rows in (2 * size, size, size, size))

        def keep(step, *values):
            for stored, value in zip((gates, candidates, news, states), values, strict=True):
                stored[step] = value

        state = _recur(gate_projection, candidate_projection, weight, candidate_bias, length, shift, count, keep)
        ctx.save_for_backward(weight, gates, candidates, news, states)
        ctx.shape = gate_projection.shape[1], length, shift, count
        return state

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, state_grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, gates, candidates, news, states = ctx.saved_tensors
        num_frames, length, shift, count = ctx.shape
        size, span = weight.shape[1], (count - 1) * shift + 1
        input_grad = weight.new_zeros(3 * size, num_frames)  # of the reset and update gates and the candidate
        weight_grad = torch.zeros_like(weight)
        bias_grad = weight.new_zeros(size, 1)
        local = weight.new_empty(3 * size, count)  # gradients before the activations
        for step in reversed(range(length)):
            reset, update, new = gates[step, :size], gates[step, size:], news[step]
            before = states[step - 1] if step else torch.zeros_like(new)
            candidate_grad = state_grad * (1 - update) * (1 - new * new)
            local[:size] = candidate_grad * candidates[step] * reset * (1 - reset)
            local[size : 2 * size] = state_grad * (before - new) * update * (1 - update)
            local[2 * size :] = candidate_grad
            input_grad[:, step : step + span : shift] += local
            local[2 * size :] *= reset
            bias_grad += local[2 * size :].sum(1, keepdim=True)
            if step:
                weight_grad.addmm_(local, before.t())
                state_grad = torch.addmm(state_grad * update, weight.t(), local)
        return input_grad[: 2 * size], input_grad[2 * size :], weight_grad, bias_grad, None, None, None


def _backward_direction(last_frames, gru):
    """A single step from h = 0, where the recurrent products are their biases: (count, D) -> (H, count)."""
    size = gru.hidden_size
    # The product with h = 0 keeps the weight in the graph: distributed training wants a gradient for every parameter.
    recurrent = torch.mv(gru.weight_hh_l0_reverse, last_frames.new_zeros(size)) + gru.bias_hh_l0_reverse
    gates, candidate = _project(last_frames, gru.weight_ih_l0_reverse, gru.bias_ih_l0_reverse, recurrent[: 2 * size])
    reset, update = gates.sigmoid_().chunk(2)
    new = torch.addcmul(candidate, reset, recurrent[2 * size :, None]).tanh_()
    return new - update * new


def _project(frames, weight, bias, gate_bias):
    """The inputs' part of both gates (2 H, N), with `gate_bias` added, and of the candidate (H, N)."""
    gate_rows = len(gate_bias)
    gates = torch.addmm((bias[:gate_rows] + gate_bias)[:, None], weight[:gate_rows], frames.t())
    return gates, torch.addmm(bias[gate_rows:, None], weight[gate_rows:], frames.t())
