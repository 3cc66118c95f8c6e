"""Configs as Python objects. All of them are converted to the text of a config file, so that one parser checks them."""

from __future__ import annotations

import difflib
import json
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from . import _errors, _options
from ._calls import dtype_name, name_of
from ._options import FieldOptions

if TYPE_CHECKING:
    from typing import Unpack

_TORCH = {
    "batch_sampler": "select the samples with indices and weights",
    "collate_fn": "rows are written directly into the batch; for rows of different lengths, use ragged or pad of a Field",
    "generator": "seed determines the order and the random transforms",
    "multiprocessing_context": "workers are threads",
    "persistent_workers": "workers are threads that run until the loader is closed",
    "pin_memory_device": "use pin_memory=True, which pins memory for the GPU of this process",
    "prefetch_factor": "use prefetch, the total number of batches",
    "sampler": "select the samples with indices and weights",
    "worker_init_fn": "seed determines the random transforms",
}
"""Options of torch's DataLoader that a loader does not have, and what to use instead of each."""


def _refuse(name: str, known: Iterable[str], what: str, others: Iterable[str], other: str) -> TypeError:
    hint = f"; it is an option of {other}" if name in others else nearest(name, known)
    return _errors.StokerTypeError(f"{what} has no option '{name}'{hint}", "config")


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the most similar known name, or ""."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


class Field:
    """A field of a data set, for `Loader({"image": Field("train", layout="nchw")})`.

    path: a file, a folder, a pattern, or a list of these, which are read in order. Relative paths are relative to the loader's base_dir.
    options: those of a field (dtype, layout, transforms, pad, ragged, views, …) and those of its `source`, which describe how the files
    are read (name, window, classes, …). An option that both have (dtype, layout) applies to the batch; for the file, use
    `source={"layout": "nchw"}`.
    """

    def __init__(self, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
                 **options: Unpack[FieldOptions]) -> None:
        given: dict[str, Any] = dict(options)
        if isinstance(path, type) or hasattr(path, "__array__") or hasattr(path, "__getitem__") and not isinstance(path, (str, Sequence)):
            raise _errors.StokerTypeError(f"found {type(path).__name__}, expected the path of a file or folder, or a list of them: arrays are "
                                          "not accepted; save the array as .npy", "unsupported")
        if path is not None:
            given["path"] = path
        self.options: dict[str, Any] = {}
        source: dict[str, Any] = {}
        for name, value in given.items():
            if name == "transforms" and (callable(value) or isinstance(value, Mapping)):
                value = [value]
            if name in _options.FIELD:
                self.options[name] = value
            elif name in _options.SOURCE:
                source[name] = value
            else:
                raise _refuse(name, _options.FIELD | _options.SOURCE, "a field", _options.LOADER, "stoker.Loader")
        if source:
            self.options["source"] = {**source, **self.options.get("source", {})}

    def __repr__(self) -> str:
        return f"Field({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


class Dataset:
    """One of several data sets that a loader mixes: `Loader([Dataset({...}, name="a", weight=2), Dataset({...})])`.

    fields: as for a Loader, with the same names in all data sets. options: name, weight, indices, manifest, pair, …
    """

    def __init__(self, fields: Mapping[str, Field | str | os.PathLike[str]], **options: Any) -> None:
        if not isinstance(fields, Mapping):
            raise _errors.StokerTypeError(f"found {fields!r}, expected a mapping of names to stoker.Field or paths", "config")
        self.fields, self.options = fields, options


def _numbers(value: Any) -> Any:
    """Returns a scalar or array of NumPy, torch or another library as a number or list, and None for other objects."""
    if isinstance(value, type):
        return None
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return value.tolist()
    if hasattr(value, "__index__"):
        return int(value)
    if hasattr(value, "__float__"):
        return float(value)
    return None


def plain(value: Any, name: str = "") -> Any:
    """Converts the value to JSON types. name: the key, for errors."""
    if value is None or isinstance(value, (bool, int, str)):
        return value if not isinstance(value, str) else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"inf": ".inf", "-inf": "-.inf"}.get(str(value), ".nan")
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds()!r}s"
    if isinstance(value, Field):
        return plain(value.options, name)
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{name}.{key}" if name else str(key)) for key, item in value.items()}
    if (numbers := _numbers(value)) is not None:
        return numbers
    if (dtype := dtype_name(value)) is not None:
        return dtype
    if isinstance(value, (Iterable, Sequence)) and not isinstance(value, (bytes, bytearray)):
        return [plain(item, name) for item in value]
    if callable(value):
        return {"call": name_of(value)}
    raise _errors.StokerTypeError(f"{name + ': ' if name else ''}found {type(value).__name__}, expected a string, a number, a list or a mapping",
                                  "config")


def text_of(value: Any, name: str = "") -> str:
    """Returns the value as config text, with dollar signs escaped."""
    return json.dumps(plain(value, name), ensure_ascii=False).replace("$", "$$")


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(field if isinstance(field, (Field, Mapping)) else Field(field), name) for name, field in fields.items()}


def is_config(config: Mapping[str, Any]) -> bool:
    """Whether the mapping has the sections of a config (otherwise, it maps names to fields)."""
    return any(isinstance(config.get(section), (Mapping, list)) for section in ("dataset", "datasets"))


def config_of(config: Any, options: Mapping[str, Any]) -> str:
    """Returns the config text for a dict with the sections of a config, for a mapping of fields, or for a list of data sets. For the
    last two, the text includes the options."""
    if isinstance(config, Mapping) and is_config(config):
        return text_of(config)
    loader = {name: value for name, value in options.items() if value is not None}
    if isinstance(config, Mapping):
        return text_of({"dataset": {"fields": _fields(config)}, "loader": loader})
    datasets = []
    if not isinstance(config, (list, tuple)):
        raise _errors.StokerTypeError("expected a path, a string, a mapping of names to stoker.Field or paths, or a list of stoker.Dataset; found "
                                      f"{type(config).__name__}: arrays and data sets of other libraries are not accepted; save the data as .npy",
                                      "unsupported")
    for dataset in config:
        if not isinstance(dataset, Dataset):
            raise _errors.StokerTypeError(f"every item of the list must be a stoker.Dataset, found {type(dataset).__name__}",
                                          "unsupported")
        datasets.append({**plain(dataset.options), "fields": _fields(dataset.fields)})
    return text_of({"datasets": datasets, "loader": loader})


def check(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _TORCH:
            raise _errors.StokerTypeError(f"a loader does not have torch's option '{name}': {_TORCH[name]}", "config")
        if name not in _options.LOADER:
            raise _refuse(name, _options.LOADER, "a loader", _options.FIELD | _options.SOURCE, "stoker.Field")


def check_sets(sets: Any) -> None:
    if not isinstance(sets, (list, tuple)) or not all(isinstance(one, str) for one in sets):
        raise _errors.StokerTypeError(f"sets: found {sets!r}, expected a list of assignments: sets=[\"loader.batch_size=256\"]", "config")


def lists_of(options: Mapping[str, Any]) -> tuple[dict[str, array[Any] | None], dict[str, Any]]:
    """Separates indices and weights that are lists of numbers, which may be too long for a config, from the other options."""
    lists: dict[str, array[Any] | None] = {"indices": None, "weights": None}
    others = dict(options)
    for name, code in (("indices", "q"), ("weights", "d")):
        value = others.get(name)
        if value is None or isinstance(value, (str, bytes, os.PathLike, Mapping)):
            continue
        numbers = plain(value)
        if not isinstance(numbers, list) or not numbers:
            continue
        if name == "indices" and isinstance(numbers[0], bool):
            raise _errors.StokerTypeError("loader.indices: found booleans, expected sample numbers, such as numpy.flatnonzero(mask)", "config")
        try:
            lists[name] = array(code, numbers)
        except (TypeError, OverflowError) as error:
            raise _errors.StokerTypeError(f"loader.{name}: expected a list of numbers: {error}", "config") from None
        others[name] = None if name == "indices" else []
    return lists, others


def sets_of(options: Mapping[str, Any]) -> list[str]:
    return [f"loader.{name}={text_of(value, f'loader.{name}')}" for name, value in options.items() if value is not None]
