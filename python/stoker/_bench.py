"""`python -m stoker bench`: loadbench for configs and for Python iterables."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from . import _core


USAGE = """Usage: python -m stoker bench CONFIG.yaml [OPTIONS]
       python -m stoker bench MODULE:NAME [--samples=PATH|MODULE:NAME] [--against=CONFIG.yaml] [OPTIONS]

Measures the loader of a config, or any iterable of batches, with loadbench.

MODULE:NAME is an iterable (a torch DataLoader, an FFCV or DALI loader, a generator), or a function without arguments
that returns one and is called for each repeat.

  --samples=PATH|MODULE:NAME  the tensor whose first axis is the number of samples, such as image or 0.inputs, or a function
                              that takes a batch and returns that number; by default the first tensor of a batch
  --against=CONFIG.yaml       first measure the loader of this config, and compare with it
  OPTIONS                     options of loadbench: --set bench.run_time=10s, --format=json, --require, --compare

The options of loadbench:

"""


class _UsageError(Exception):
    """The command line is wrong."""

    @property
    def brief(self) -> str:
        """The text that a running loadbench prints for this error."""
        return str(self)


def _load(name: str) -> Any:
    """Imports and returns the object MODULE:NAME; NAME may contain dots."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            raise _UsageError(f"{name}: no module named {error.name}") from None
        raise
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise _UsageError(f"{name}: {module} has no {path}") from None
    return found


def _make(found: Any, name: str) -> Callable[[], Iterable[Any]]:
    """Returns a function that returns the iterable."""
    if isinstance(found, Iterable):
        return lambda: found
    if not callable(found):
        raise _UsageError(f"{name}: found {type(found).__name__}, expected an iterable or a function")
    function: Callable[[], Any] = found

    def make() -> Iterable[Any]:
        made = function()
        if not isinstance(made, Iterable) and not hasattr(made, "__getitem__"):
            raise _UsageError(f"{name}: the function returned {type(made).__name__}, expected an iterable of batches")
        return cast(Iterable[Any], made)

    return make


def _describe(batch: Any) -> str:
    if isinstance(batch, (Mapping, list, tuple)) and not batch:
        return f"is an empty {type(batch).__name__}"
    if isinstance(batch, Mapping):
        return "has " + ", ".join(map(str, batch))
    if isinstance(batch, (list, tuple)):
        return f"is a {type(batch).__name__} whose items are numbered from 0 to {len(batch) - 1}"
    return f"has the type {type(batch).__name__}"


def _counter(path: str) -> Callable[[Any], int]:
    """Returns a function that counts the samples of a batch."""
    if ":" in path:
        found = _load(path)
        if not callable(found):
            raise _UsageError(f"--samples={path}: found {type(found).__name__}, expected a function")
        function: Callable[[Any], Any] = found
        return lambda batch: int(function(batch))

    def count(batch: Any) -> int:
        value = batch
        try:
            for part in path.split("."):
                is_index = not isinstance(value, Mapping) and part.lstrip("-").isdigit()
                value = cast(Any, value)[int(part) if is_index else part]
            return int(value.shape[0]) if hasattr(value, "shape") else len(cast(Any, value))
        except (LookupError, TypeError):
            raise _UsageError(f"--samples={path}: the batch has no such tensor: it {_describe(batch)}") from None

    return count


def _against(config: str, sets: list[str], folder: str) -> str:
    """Measures the loader of a config in a separate process; returns the path of the result."""
    path = os.path.join(folder, os.path.basename(config) + ".json")
    command = [sys.executable, "-m", "stoker", "bench", config, "--format=json", *sets]
    with open(path, "wb") as out:
        ended = subprocess.run(command, stdout=out, check=False)
    if ended.returncode:
        raise _UsageError(f"--against={config}: measuring it failed")
    return path


def _take(words: list[str], option: str) -> str | None:
    """Removes an option of this program from the words and returns its value."""
    value = None
    for word in [w for w in words if w.startswith(option + "=")]:
        words.remove(word)
        value = word[len(option) + 1:]
    while option in words:
        at = words.index(option)
        if at + 1 == len(words):
            raise _UsageError(f"{option}: a value is missing")
        value = words[at + 1]
        del words[at:at + 2]
    return value


def _is_iterable_name(word: str) -> bool:
    module, colon, name = word.partition(":")
    return bool(colon) and not os.path.exists(word) and all(
        part.isidentifier() for part in module.split(".") + name.split("."))


def main(words: list[str]) -> int:
    """Runs the command; returns the exit status."""
    words = list(words)
    name = next((w for w in words if not w.startswith("-")), "")
    run = _core.loadbench
    try:
        if "--help" in words or not words:
            print(USAGE, end="", flush=True)
            return int(run([b"loadbench", b"--help"]))
        if not _is_iterable_name(name):
            return int(run([b"loadbench", *map(os.fsencode, words)]))
        samples, against = _take(words, "--samples"), _take(words, "--against")
        words.remove(name)
        sys.path.insert(0, os.getcwd())
        make = _make(_load(name), name)
        counter = _counter(samples) if samples else None
        with tempfile.TemporaryDirectory() as folder:
            if against:
                repeats = [] if any("bench.repeats" in word for word in words) else ["--set", "bench.repeats=5"]
                sets = [w for i, w in enumerate(words) if w.startswith("--set") or (i and words[i - 1] == "--set")]
                words += [f"--compare={_against(against, sets + repeats, folder)}", *repeats]
            try:
                return int(run([b"loadbench", os.fsencode(name), *map(os.fsencode, words)], make, counter))
            except _UsageError:  # already printed
                return 2
    except _UsageError as error:
        print(f"stoker bench: {error}", file=sys.stderr)
        return 2
