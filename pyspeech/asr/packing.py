"""Parameters of all languages in one tensor, kept between steps: a search over languages is then one operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from typing_extensions import Self


class Packing:
    """Remembers tensors built from parameters for as long as these stay as they are.

    Nothing is remembered where gradients are recorded. A copy of the module that owns it starts empty.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget; a module calls it in `train` and `_apply`, for changes that tensors keep no count of."""
        self._built = {}

    def get(self, key: Hashable, parameters: Sequence[torch.Tensor], build: Callable[[], Any]) -> Any:
        """`build()`, or what it gave the last time for `key`, unless one of `parameters` has changed since."""
        if any(parameter.requires_grad for parameter in parameters) and torch.is_grad_enabled():
            return build()
        stamp = [(parameter.data_ptr(), 0 if parameter.is_inference() else parameter._version) for parameter in parameters]
        if key not in self._built or self._built[key][0] != stamp:
            self._built[key] = stamp, build()
        return self._built[key][1]

    def __deepcopy__(self, memo: dict) -> Packing:
        return Packing()

    def __reduce__(self) -> tuple:
        return Packing, ()


class PackingModule(torch.nn.Module):
    """A module with a `_packing`, forgotten wherever its parameters may change without a trace."""

    def __init__(self) -> None:
        super().__init__()
        self._packing = Packing()

    def train(self, mode: bool = True) -> Self:
        self._packing.clear()
        return super().train(mode)

    def _apply(self, *arguments, **options):
        self._packing.clear()
        return super()._apply(*arguments, **options)
