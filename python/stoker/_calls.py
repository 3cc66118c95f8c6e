"""Transforms: steps of a config, and functions in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from . import _core, _errors

Function = TypeVar("Function", bound=Callable[..., Any])
_names: dict[Callable[..., Any], str] = {}


class Transform(dict[str, Any]):
    """A step of a field's list of transforms, as in a config: {"random_crop": {"size": 224, "padding": 8}}."""


def make(name: str, first: str, value: tuple[Any, ...], parameters: dict[str, Any]) -> Transform:
    if len(value) > 1:
        raise TypeError(f"{name}() takes one positional argument, found {len(value)}: use keyword arguments")
    if value and parameters:
        if not first or first in parameters:
            raise TypeError(f"{name}() takes either a positional argument or keyword arguments")
        return Transform({name: {first: value[0], **parameters}})
    return Transform({name: value[0] if value else parameters})


def dtype_name(value: Any) -> str | None:
    """Returns the name of a dtype of NumPy, ml_dtypes, torch or JAX, and None for other objects."""
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    if isinstance(value, type) or type(value).__name__.endswith(("DType", "dtype")) or hasattr(value, "itemsize"):
        try:
            import numpy
            return str(numpy.dtype(value).name)
        except (ImportError, TypeError):
            return None
    return None


def transform(function: Function | None = None, *, name: str | None = None, dtype: Any = None,
              shape: tuple[int, ...] | Callable[[tuple[int, ...]], tuple[int, ...]] | None = None) -> Any:
    """A decorator that makes a function a transform: `transforms=[function, …]` of a Field, or `call: NAME` in a config.

        @stoker.transform(dtype="float32")
        def noise(image, random):
            return image + random.normal(size=image.shape)

    The function gets a sample as a read-only NumPy array, which is valid only during the call, and a numpy.random.Generator seeded for
    that sample, and returns an array. A function with a single parameter gets no generator, which is faster. The function must be pure,
    and it must be the first in a list of transforms. Workers call it one at a time, because of Python's GIL.

    name: the transform's name in configs; None: the function's name. dtype, shape: those of the result, where shape may be a function of
    the sample's shape; None: those of the sample. If the shape of samples varies, results must have the largest shape.
    """
    _refuse_modules(function)
    if function is None:
        return lambda function: transform(function, name=name, dtype=dtype, shape=shape)
    result = dtype_name(dtype) or dtype

    def form(given: str, axes: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return result or given, tuple(shape(axes) if callable(shape) else shape if shape is not None else axes)

    chosen = name or getattr(function, "__name__", "function").replace("<lambda>", "function")
    taken = set(_names.values()) - {_names.get(function)}
    while name is None and chosen in taken:
        chosen = f"{chosen}_{len(_names)}"
    _core.register(chosen, _runner(function), form)
    _names[function] = chosen
    return function


def _refuse_modules(function: Any) -> None:
    """Rejects torchvision transforms and torch modules, which take PIL images or tensors, and stoker functions passed without being called."""
    if getattr(function, "__module__", "") == f"{__package__}._transforms":
        raise _errors.StokerTypeError(f"transforms: found the function stoker.{function.__name__}, expected its result: "
                                      f"stoker.{function.__name__}(…)", "config")
    if not type(function).__module__.startswith(("torchvision.", "torch.")):
        return
    name = type(function).__name__
    own = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    raise _errors.StokerTypeError(f"transforms: found {name}, which takes PIL images or torch tensors: use "
                                  + (f"stoker.{own}" if own in (known for known, *_ in _core.transforms()) else "a transform of stoker")
                                  + ", or a function that takes and returns a NumPy array", "unsupported")


def _draws(function: Callable[..., Any]) -> bool:
    """Whether the function takes a generator in addition to the sample."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a C function
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(places) > 1 or any(p.kind == p.VAR_POSITIONAL for p in parameters)


def _runner(function: Callable[..., Any]) -> Callable[[Any, Any, int, int], None]:
    import numpy
    generator, bits, copyto, draws = numpy.random.Generator, numpy.random.PCG64, numpy.copyto, _draws(function)

    def run(source: Any, target: Any, draw: int, sample: int) -> None:
        made = numpy.asarray(function(source.numpy(), generator(bits(draw))) if draws else function(source.numpy()))
        if made.shape != target.shape:
            raise ValueError(f"the function returned shape {made.shape}, expected {target.shape}; pass shape=… to stoker.transform")
        copyto(target.numpy(), made, casting="same_kind")

    return run


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function that is used as a transform; registers the function if necessary."""
    if function not in _names:
        transform(function)
    return _names[function]
