"""Conversion to torch, NumPy and JAX tensors. Each library is imported on first use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from . import _core, _errors

NAMES = {None: 0, "torch": 1, "numpy": 2, "jax": 3}

_prepared: set[str] = set()
_prepare_lock = threading.Lock()  # an import lets other threads run

#: Dtypes without a buffer format, which NumPy gets from ml_dtypes.
_BITS = frozenset(("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def current_streams(index: int) -> list[tuple[int, int]]:
    """Returns torch's current stream on GPU `index`; -1: on every GPU that torch uses. Empty: torch is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    if index >= 0:
        return [(index, torch.cuda.current_stream(index).cuda_stream)]
    has_context = getattr(getattr(torch, "_C", None), "_cuda_hasPrimaryContext", None)
    used = (range(torch.cuda.device_count()) if has_context is None else
            [i for i in range(torch.cuda.device_count()) if has_context(i)])
    return [(i, torch.cuda.current_stream(i).cuda_stream) for i in used]


def _torch_import() -> Any:
    """Returns torch's function that converts a capsule to a tensor."""
    import torch
    import torch.utils.dlpack
    return getattr(torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack)


def to_torch(tensor: Any) -> Any:
    import torch
    if tensor.readonly:  # torch has no read-only tensors
        tensor = tensor.clone()
    if tensor.dtype.startswith("float8"):  # some versions of torch do not accept these with DLPack
        return _torch_import()(tensor._bits()._capsule(False)).view(getattr(torch, tensor.dtype))
    return _torch_import()(tensor._capsule(False))


def to_numpy(tensor: Any) -> Any:
    import numpy
    if tensor.dtype not in _BITS:
        return numpy.asarray(memoryview(tensor))
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"NumPy has no {tensor.dtype}: pip install ml_dtypes") from error
    return numpy.asarray(memoryview(tensor._bits())).view(numpy.dtype(getattr(ml_dtypes, tensor.dtype)))


def _register_with_jax() -> None:
    """Registers batches as pytrees, so that jax.jit, device_put and tree.map accept them. The results are dicts, not batches."""
    import jax

    from ._batch import Batch

    def leaves(batch: Batch) -> tuple[list[Any], tuple[str, ...]]:
        return [batch[name] for name in batch], tuple(batch)

    def unflatten(names: tuple[str, ...], values: Iterable[Any]) -> Any:
        return dict(zip(names, values))

    def with_keys(batch: Batch) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
        return [(jax.tree_util.DictKey(name), batch[name]) for name in batch], tuple(batch)

    jax.tree_util.register_pytree_with_keys(Batch, with_keys, unflatten, leaves)


def to_jax(tensor: Any) -> Any:
    import jax
    if tensor.readonly:
        tensor = tensor.clone()
    return jax.dlpack.from_dlpack(tensor)


def prepare(to: str | None) -> int:
    """Imports the library that `to` names, so that opening a loader fails if the library is missing. Returns its number in _core."""
    if to not in NAMES:
        raise _errors.StokerValueError(f"to: found {to!r}, expected 'torch', 'numpy', 'jax' or None", "config")
    if to == "torch":
        _core.set_hook("to_torch", _torch_import())
    elif to is not None:
        __import__(to)
        if to == "jax":
            with _prepare_lock:
                if "jax" not in _prepared:
                    import jax.dlpack  # noqa: F401
                    _register_with_jax()
                    _prepared.add("jax")
    return NAMES[to]


_core.set_hook("streams", current_streams)
_core.set_hook("torch", to_torch)
_core.set_hook("numpy", to_numpy)
_core.set_hook("jax", to_jax)
