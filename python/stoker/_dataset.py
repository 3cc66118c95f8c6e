"""A loader as a torch data set, for code that requires a torch.utils.data.DataLoader."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch.utils.data

from ._batch import Batch
from ._errors import StokerRuntimeError, StokerTypeError


def _is_sharded_by_accelerate() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _is_collated() -> bool:
    """Whether the iterator was requested by a DataLoader that collates items into batches."""
    caller = sys._getframe(2)
    return caller.f_globals.get("__name__") == "torch.utils.data._utils.fetch" and bool(caller.f_locals.get("auto_collation"))


class LoaderDataset(torch.utils.data.IterableDataset[Batch]):
    """Each iterator yields the batches of one epoch of the loader: `DataLoader(loader.dataset(), batch_size=None, num_workers=0)`."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Batch]:
        if torch.utils.data.get_worker_info() is not None:
            raise StokerRuntimeError("a stoker.Loader cannot be used by the workers of a DataLoader, because it has its own threads: use "
                                     "num_workers=0 for the DataLoader, and set num_workers of the stoker.Loader", "forked")
        if _is_collated():
            raise StokerTypeError("the items of this data set are whole batches: use batch_size=None for the DataLoader", "config")
        if self.loader.option("loader.world_size") > 1 and _is_sharded_by_accelerate():
            raise StokerRuntimeError("this loader already reads only the samples of its rank, and accelerate would divide its batches among the "
                                     "ranks again: use the stoker.Loader without a DataLoader, which prepare() does not change, or open it "
                                     "with launcher=\"none\"", "config")
        return iter(self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.loader.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(state)

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.Loader cannot be sent to the workers of a DataLoader: use num_workers=0")
