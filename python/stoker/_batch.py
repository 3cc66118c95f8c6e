"""Batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _core
from ._errors import StokerTypeError

if TYPE_CHECKING:
    import torch


class Batch(_core.Batch, Mapping[str, Any]):
    """A mapping from names to tensors, in the library that the loader's option `to` selects. `Loader.names` lists the names.

    A field `text` whose rows vary in length has two tensors, `text.values` and `text.offsets`. The tensors are in a slot of the loader,
    and you may write to them. The slot is reused after the batch and all tensors that share its memory have been deleted.

    Attributes:
        indices: int64 [rows], the sample (or window) number of each row.
        mask: bool [rows], false for padding.
        sources: int32 [rows], the data set of each row.
        rows, valid_rows, epoch, step, global_step, last_of_epoch
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def to(self, device: Any, non_blocking: bool = False, **options: Any) -> Batch:
        """Returns the batch on another torch device, by calling Tensor.to on each of its tensors."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking, **options))

    def pin_memory(self, device: Any = None) -> Batch:
        """Returns a copy in page-locked memory, or the batch itself if it is already there (pin_memory=True of the loader)."""
        if not len(self) or self._pinned():
            return self
        return self._map(lambda tensor: tensor.pin_memory(*(() if device is None else (device,))))

    def _pinned(self) -> bool:
        try:
            return bool(self.tensor(next(iter(self))).is_pinned)
        except ValueError:  # made by to()
            return False

    def _map(self, function: Any) -> Batch:
        values = {name: function(self._torch(name)) for name in self}
        more = {name: _own(getattr(self, name)) for name in ("indices", "mask", "sources")}
        made: Batch = self._with_values(values, more)
        return made

    def _torch(self, name: str) -> torch.Tensor:
        value = self[name]
        if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
            raise StokerTypeError("this method moves torch tensors; with to=\"jax\", use jax.device_put(batch, device)", "unsupported")
        if hasattr(value, "to"):
            return cast("torch.Tensor", value)
        return self.tensor(name).torch()

    def __repr__(self) -> str:
        names = ", ".join(self)
        return f"<stoker.Batch epoch {self.epoch} step {self.step}: {self.rows} rows of {names}>"


def _own(value: Any) -> Any:
    """Returns a copy of the value, which does not hold a slot."""
    return value.clone() if hasattr(value, "clone") else value.copy()


_core.set_hook("batch", Batch)
