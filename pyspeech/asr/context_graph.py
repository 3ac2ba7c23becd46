"""Automata over output symbols with back-off, which score hypotheses of the search: hotwords and n-gram language models.

A node has arcs, each with a symbol, a value and the node that it leads to. A symbol without an arc at a node has the value
at the node's back-off node plus the node's weight, and leads to where it leads from there. The root backs off to itself;
there a symbol without an arc has the value 0 and leads to the root. Both an n-gram model (values: log probabilities,
weights: back-off weights) and an Aho-Corasick automaton (values: bonuses, weights: what is given back) have this form.

The search needs the values of all V symbols at a node. They are computed once for each node that it meets, for many nodes at
a time, and kept in a table with the rows that the symbols lead to, so that a step of the search is a lookup in tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import torch

TABLE_BYTES = 1 << 27  # of the rows kept for one graph; those of further nodes are computed each time
LEAST_ROWS = 256

Arc = tuple[int, int, float, int]  # node, symbol, value, node that it leads to


class ContextGraph:
    """Nodes 0 to N - 1 over symbols 0 to V - 1; symbol 0 is the blank, which has no arcs.

    Attributes:
        size: V.
        start: Node at which an utterance begins.
        pending: (N,) float64, what a hypothesis that ends at a node has to give back.
    """

    def __init__(
        self,
        size: int,
        start: int,
        first: torch.Tensor,
        symbols: torch.Tensor,
        values: torch.Tensor,
        targets: torch.Tensor,
        back: torch.Tensor,
        weights: torch.Tensor,
        pending: torch.Tensor,
    ) -> None:
        """Arcs first[n] to first[n + 1] - 1 are those of node n: symbols, values and targets, (A,) each.

        first is (N + 1,), back, weights and pending are (N,); values, weights and pending are float64, the rest int64.
        `build` makes a graph from lists.
        """
        self.size, self.start = size, start
        self.first, self.symbols, self.values, self.targets = first, symbols, values, targets
        self.back, self.weights, self.pending = back, weights, pending
        self._lock = threading.Lock()
        self._table = _Table(len(back), size, back.device)

    @classmethod
    def build(
        cls,
        size: int,
        arcs: Iterable[Arc],
        back: Sequence[int],
        weights: Sequence[float],
        pending: Sequence[float] | None = None,
        start: int = 0,
    ) -> ContextGraph:
        """Make a graph; back, weights, pending: an entry for each node, pending: 0 where None."""
        columns = list(zip(*arcs, strict=True)) or [()] * 4
        nodes, symbols, targets = (np.array(columns[place], dtype=np.int64) for place in (0, 1, 3))
        values, order = np.array(columns[2], dtype=np.float64), np.argsort(nodes, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=len(back)))]).astype(np.int64)
        return cls(
            size,
            start,
            *map(torch.from_numpy, (first, symbols[order], values[order], targets[order])),
            back=torch.tensor(back, dtype=torch.int64),
            weights=torch.tensor(weights, dtype=torch.float64),
            pending=torch.tensor([0.0] * len(back) if pending is None else pending, dtype=torch.float64),
        )

    @classmethod
    def empty(cls, size: int) -> ContextGraph:
        """A graph that says nothing: one node, all values 0."""
        return cls.build(size, [], [0], [0.0])

    @classmethod
    def join(cls, graphs: Sequence[ContextGraph]) -> tuple[ContextGraph, list[int]]:
        """One graph with the nodes of several, and the start node of each in it."""
        nodes = np.cumsum([0] + [len(graph.back) for graph in graphs])[:-1].tolist()
        arcs = np.cumsum([0] + [len(graph.symbols) for graph in graphs]).tolist()
        first = [graph.first[:-1] + offset for graph, offset in zip(graphs, arcs[:-1], strict=True)]
        shifted = {
            name: torch.cat([getattr(graph, name) + offset for graph, offset in zip(graphs, nodes, strict=True)])
            for name in ("targets", "back")
        }
        same = {
            name: torch.cat([getattr(graph, name) for graph in graphs]) for name in ("symbols", "values", "weights", "pending")
        }
        first = torch.cat([*first, first[0].new_tensor(arcs[-1:])])
        starts = [graph.start + offset for graph, offset in zip(graphs, nodes, strict=True)]
        return cls(max(graph.size for graph in graphs), starts[0], first, **shifted, **same), starts

    def scaled(self, weight: float) -> ContextGraph:
        """The graph whose values are weight times those of this one."""
        arcs = self.first, self.symbols, weight * self.values, self.targets
        return ContextGraph(self.size, self.start, *arcs, self.back, weight * self.weights, weight * self.pending)

    def to(self, device: torch.device) -> ContextGraph:
        """The same graph on a device; itself where it is there already."""
        if self.back.device == device:
            return self
        return ContextGraph(self.size, self.start, *(part.to(device) for part in self._tensors()))

    def __reduce__(self) -> tuple:
        return ContextGraph, (self.size, self.start, *self._tensors())

    def _tensors(self):
        return self.first, self.symbols, self.values, self.targets, self.back, self.weights, self.pending

    @torch.inference_mode()
    def step(self, nodes: torch.Tensor, symbols: torch.Tensor) -> torch.Tensor:
        """Nodes (R,) that symbols (R,) lead to from nodes (R,)."""
        return self._expanded(nodes)[1].gather(1, symbols[:, None])[:, 0]

    @torch.inference_mode()
    def begin(self, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """States of nodes (..., R), for `advance`, and the values (..., R, V) there.

        A state is a row of the table, or -1 - node where that has none.
        """
        return self._settled(-1 - nodes)

    @torch.inference_mode()
    def advance(self, states: torch.Tensor, symbols: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """States that symbols (R,) lead to from states (..., R), and the values (..., R, V) there."""
        table = self._table
        if table.full:
            nodes = self.nodes_of(states)
            return self._settled(-1 - self.step(nodes.flatten(), symbols.expand_as(nodes).flatten()).reshape(nodes.shape))
        found = table.next[states, symbols]
        if not found.numel() or int(found.min()) >= 0:
            return found, table.values[found]
        found, values = self._settled(found)
        table.next[states, symbols] = found
        return found, values

    def nodes_of(self, states: torch.Tensor) -> torch.Tensor:
        """Nodes of states of any shape."""
        return torch.where(states < 0, -1 - states, self._table.nodes[states.clamp(min=0)])

    def _settled(self, states):
        """States that are rows, as far as the table has room for these, and the values there. Rows never change but in `next`,
        where another thread would write the same, so that others may read them."""
        table, missing = self._table, states < 0
        if bool(missing.any()):
            nodes = -1 - states[missing]
            with self._lock:
                new = nodes[table.rows_of[nodes] < 0].unique()
                if len(new):
                    table.add(new, *self._expanded(new))
                rows = table.rows_of[nodes]
            states = states.clone()
            states[missing] = torch.where(rows < 0, -1 - nodes, rows)
            if bool((rows < 0).any()):
                return states, self._expanded(self.nodes_of(states).flatten())[0].reshape(*states.shape, self.size)
        return states, table.values[states]

    def _expanded(self, nodes):
        """Values (R, V) and targets (R, V) of all symbols at nodes (R,), from the root to the nodes themselves."""
        chain = [nodes]
        while not torch.equal(self.back[chain[-1]], chain[-1]):
            chain.append(self.back[chain[-1]])
        values = self.values.new_zeros(len(nodes), self.size)
        targets = chain[-1][:, None].repeat(1, self.size)
        for level in reversed(chain):
            values += self.weights[level, None]
            counts = self.first[level + 1] - self.first[level]
            rows = torch.repeat_interleave(torch.arange(len(level), device=level.device), counts)
            before = (counts.cumsum(0) - counts)[rows]
            arcs = self.first[level][rows] + torch.arange(len(rows), device=level.device) - before
            values[rows, self.symbols[arcs]] = self.values[arcs]
            targets[rows, self.symbols[arcs]] = self.targets[arcs]
        values[:, 0] = 0
        return values, targets


class _Table:
    """Rows of the nodes met so far, of which `count` are used: their nodes, values, and next states by symbol. rows_of (N,): of
    each node, -1 without. full: no more rows are taken."""

    def __init__(self, nodes, size, device):
        self.rows_of = torch.full((nodes,), -1, dtype=torch.int64, device=device)
        self.nodes = torch.zeros(1, dtype=torch.int64, device=device)
        self.values = torch.zeros(1, size, dtype=torch.float64, device=device)
        self.next = torch.zeros(1, size, dtype=torch.int64, device=device)
        self.count, self.most, self.full = 0, TABLE_BYTES // (16 * size), False

    def add(self, nodes, values, targets):
        """Take rows for new nodes, as long as there is room."""
        self.full = self.full or self.count + len(nodes) > self.most
        if self.full:
            return
        if self.count + len(nodes) > len(self.values):
            rows = min(max(self.count + len(nodes), 2 * len(self.values), LEAST_ROWS), self.most)
            self.nodes, self.values, self.next = (_grown(part, rows) for part in (self.nodes, self.values, self.next))
        rows, known = torch.arange(self.count, self.count + len(nodes), device=nodes.device), self.rows_of[targets]
        self.nodes[rows], self.values[rows], self.next[rows] = nodes, values, torch.where(known < 0, -1 - targets, known)
        self.rows_of[nodes] = rows  # last: whoever finds a row finds it filled
        self.count += len(nodes)


def _grown(table, rows):
    return torch.cat([table, table.new_zeros(rows - len(table), *table.shape[1:])])
