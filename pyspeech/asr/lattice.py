"""Sum over the alignments of an RNN transducer (Graves 2012, section 2.4-2.5), by k2 or in torch alone.

A lattice has the nodes (s, t), s of S symbols emitted and t of T frames left behind. `px[s, t]` is the log probability
of emitting symbol s at frame t, which leads to (s + 1, t), and `py[s, t]` that of blank, which leads to (s, t + 1);
several symbols may follow each other at one frame. With alpha[0, 0] = 0 and terms of negative index left out,

    alpha[s, t] = log(exp(alpha[s - 1, t] + px[s - 1, t]) + exp(alpha[s, t - 1] + py[s, t - 1]))

and alpha[S, T] is the log probability of the reference. Two backends compute it and its gradient, the occupation
probabilities of the arcs: "k2", the C++ and CUDA recursion of k2.mutual_information_recursion, and "torch", which walks
the anti-diagonals n = s + t, T + S steps for the whole batch, with the backward recursion as a second batch beside the
forward one. Both work in float64: in float32 a sum over a long utterance loses the digits that its gradient is made of.
"""

import functools
import logging

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pyspeech.asr.config import BACKENDS
from pyspeech.errors import UserError


def backend_name(backend: str = "auto", device: torch.device | str = "cpu") -> str:
    """ "k2" or "torch": what computes the lattice on `device` where `backend` ("auto", "k2" or "torch") is asked for.

    "auto" is k2 where it is installed and built for that device. Raises UserError where "k2" is asked for and is not.
    """
    if backend not in BACKENDS:
        raise UserError(f"transducer loss: unknown backend '{backend}'; choose one of {', '.join(BACKENDS)}")
    if backend == "torch":
        return "torch"
    problem = _k2_problem(torch.device(device).type)
    if problem and backend == "k2":
        raise UserError(f"transducer loss: backend=k2, but {problem}; use backend=auto or backend=torch")
    return "torch" if problem else "k2"


@functools.cache
def _k2_problem(device_type):
    """Why k2 cannot compute on this type of device, or ""."""
    try:
        import k2  # pyright: ignore[reportMissingImports]
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "k2":
            return "k2 is not installed"
        return f"k2 does not load ({str(error).splitlines()[0][:160]})"
    if device_type == "cuda" and not k2.with_cuda:
        return "this k2 is built for CPUs alone"
    return "" if device_type in ("cpu", "cuda") else f"k2 does not compute on {device_type}"


@functools.cache
def _announce(name, reason):
    """Say which backend computes, once a process for each."""
    logging.getLogger(__name__).info("transducer loss computed by %s%s", name, f" ({reason})" if reason else "")


def log_likelihood(
    px: torch.Tensor, py: torch.Tensor, lengths: torch.Tensor, token_lengths: torch.Tensor, backend: str = "auto"
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log probability of each reference, summed over its alignments, and the probability that a path takes each arc.

    px (B, S, T) and py (B, S + 1, T) are log probabilities, -inf where an arc is missing; what lies beyond lengths (B,)
    frames, 1..T, or token_lengths (B,) symbols, 0..S, is never looked at. Returns float64 (B,), -inf where no path is
    left, with a gradient for px and py, and the occupation of px and of py, float64 and without a gradient.
    """
    return _Lattice.apply(px, py, lengths, token_lengths, backend)


class _Lattice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, px, py, lengths, token_lengths, backend):
        name = backend_name(backend, px.device)
        _announce(name, _k2_problem(px.device.type) if backend == "auto" else "as asked")
        totals, px_occupation, py_occupation = _solve(name, px, py, lengths, token_lengths)
        ctx.dtypes = px.dtype, py.dtype
        ctx.save_for_backward(px_occupation, py_occupation)
        ctx.mark_non_differentiable(px_occupation, py_occupation)
        return totals, px_occupation, py_occupation

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, *_):
        px_grad, py_grad = (saved * grad[:, None, None] for saved in ctx.saved_tensors)
        return px_grad.to(ctx.dtypes[0]), py_grad.to(ctx.dtypes[1]), None, None, None


def _solve(name, px, py, lengths, token_lengths):
    """Totals (B,), and the occupation of px and py, in float64, by the backend of that name."""
    lengths, token_lengths = (n.to(device=px.device, dtype=torch.int64) for n in (lengths, token_lengths))
    # At the end of the last frame a path is over: an extra column of missing arcs lets no symbol follow.
    frame = torch.arange(px.shape[2] + 1, device=px.device)
    px = functional.pad(px.double(), (0, 1), value=-torch.inf)
    px = px.masked_fill(frame >= lengths[:, None, None], -torch.inf)
    solve = _solve_k2 if name == "k2" else _solve_torch
    totals, px_occupation, py_occupation = solve(px, py.double(), lengths, token_lengths)
    return totals, px_occupation[:, :, :-1], py_occupation


def _solve_k2(px, py, lengths, token_lengths):
    """px (B, S, T + 1), py (B, S + 1, T), float64."""
    import k2  # pyright: ignore[reportMissingImports]

    zeros = torch.zeros_like(lengths)
    boundary = torch.stack([zeros, zeros, token_lengths, lengths], dim=1)
    totals, occupations = k2.mutual_information_recursion(px, py, boundary, return_grad=True)
    return totals, *occupations


def _solve_torch(px, py, lengths, token_lengths):
    """What `_solve_k2` returns, by `_walk` over each lattice and over the same one read from its end."""
    reversed_px = _reverse(px, token_lengths, lengths + 1)
    reversed_py = _reverse(py, token_lengths + 1, lengths)
    alpha, beta = _walk(torch.cat([px, reversed_px]), torch.cat([py, reversed_py])).chunk(2)
    beta = _reverse(beta, token_lengths + 1, lengths + 1)
    totals = alpha[torch.arange(len(alpha), device=alpha.device), token_lengths, lengths]
    px_occupation = torch.exp(alpha[:, :-1] + px + beta[:, 1:] - totals[:, None, None])
    py_occupation = torch.exp(alpha[:, :, :-1] + py + beta[:, :, 1:] - totals[:, None, None])
    return totals, px_occupation, py_occupation


def _walk(px, py):
    """alpha (N, S + 1, T + 1) of px (N, S, T + 1) and py (N, S + 1, T), a strided view of its diagonals."""
    count, rows, columns = py.shape[0], py.shape[1], px.shape[2]
    steps = rows + columns - 2
    # Into diagonal n, row s: px from (s - 1, n - s), py from (s, n - s - 1). Column 0 stands for row -1, empty.
    px_diagonals = _diagonals(functional.pad(px, (0, 0, 1, 0), value=-torch.inf))[1:]
    py_diagonals = _diagonals(py)
    alpha = px.new_full((steps + 1, count, rows + 1), -torch.inf)
    alpha[0, :, 1] = 0
    above, same = alpha[:, :, :-1].unbind(), alpha[:, :, 1:].unbind()
    for step, (emitted, waited) in enumerate(zip(px_diagonals.unbind(), py_diagonals.unbind(), strict=True)):
        torch.logaddexp(emitted.add_(above[step]), waited.add_(same[step]), out=same[step + 1])
    diagonal, item = alpha.stride(0), alpha.stride(1)
    return alpha.as_strided((count, rows, columns), (item, diagonal + 1, diagonal), 1)


def _diagonals(grid):
    """out[n, b, s] = grid[b, s, n - s], -inf outside: (B, R, C) -> (R + C - 1, B, R), a copy of its own.

    Rows are padded by as many columns as there are rows, so that a diagonal that leaves the grid reads padding.
    """
    batch, rows, columns = grid.shape
    width = columns + rows
    padded = functional.pad(grid, (0, rows), value=-torch.inf)
    shape = (columns + rows - 1, batch, rows)
    return padded.as_strided(shape, (1, rows * width, width - 1)).contiguous()


def _reverse(grid, rows, columns):
    """out[b, i, j] = grid[b, rows[b] - 1 - i, columns[b] - 1 - j] where both indices are >= 0, else -inf."""
    row = rows[:, None] - 1 - torch.arange(grid.shape[1], device=grid.device)
    column = columns[:, None] - 1 - torch.arange(grid.shape[2], device=grid.device)
    index = row.clamp(min=0)[:, :, None] * grid.shape[2] + column.clamp(min=0)[:, None, :]
    out = grid.reshape(len(grid), -1).gather(1, index.flatten(1)).view(grid.shape)
    return out.masked_fill_((row < 0)[:, :, None] | (column < 0)[:, None, :], -torch.inf)
