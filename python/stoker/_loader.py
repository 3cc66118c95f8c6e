"""The loader."""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _config, _core, _errors, _frameworks, _options
from ._batch import Batch
from ._options import LoaderOptions

if TYPE_CHECKING:
    from typing import Unpack

    from ._dataset import LoaderDataset

_core.set_hook("error", _errors.make)
_core.set_hook("key_error", _errors.StokerKeyError)
_core.set_hook("raised", _errors.keep)
_open: weakref.WeakSet[Loader] = weakref.WeakSet()


class FieldInfo(NamedTuple):
    """A field of a loader. shape: of a full batch; None: the axis varies. kernel: how rows are converted."""

    name: str
    source_dtype: str
    dtype: str
    shape: tuple[int | None, ...]
    layout: str
    kernel: str
    access: str


class DatasetInfo(NamedTuple):
    """A data set of a loader. first: its first sample number, as in batch.indices; positions: its positions in an epoch."""

    name: str
    weight: float
    samples: int
    first: int
    positions: int


def source(config: Any, options: Mapping[str, Any]) -> tuple[bytes | None, bytes | None, list[str]]:
    """Returns the path of a config file or the text of a config. If the text does not include the options, also returns them as assignments."""
    _config.check(options)
    if isinstance(config, str) and ("\n" in config or "{" in config):
        return None, config.encode("utf-8", "surrogateescape"), _config.sets_of(options)
    if isinstance(config, (str, os.PathLike)):
        return os.fsencode(config), None, _config.sets_of(options)
    whole = isinstance(config, Mapping) and _config.is_config(config)
    return None, _config.config_of(config, options).encode("utf-8", "surrogateescape"), _config.sets_of(options) if whole else []


def _field_name(path: bytes) -> str:
    """Returns a name for the field if `path` is not a config but a file or folder of samples, such as "image" for images.npy."""
    if path.lower().endswith((b".yaml", b".yml")):
        return ""
    try:
        members = _core.open_file(os.fsdecode(path)).members()
    except _errors.StokerError:
        return ""
    stem = members[0].name or os.path.basename(os.fsdecode(path)).split(".")[0].rstrip("s")
    return stem if stem.isidentifier() else "x"


def _device(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options, with a torch.device converted to a string; "cuda" is torch's current device if torch is in use."""
    torch = sys.modules.get("torch")
    if torch is not None and type(options.get("device")).__module__ == "torch":
        options = {**options, "device": str(options["device"])}
    if options.get("device") == "cuda" and torch is not None and torch.cuda.is_initialized():
        return {**options, "device": f"cuda:{torch.cuda.current_device()}"}
    return {**options}


def _distributed() -> tuple[int, int] | None:
    """Returns the rank and the number of ranks of torch.distributed; None if it is not in use or has only one rank."""
    torch = sys.modules.get("torch.distributed")
    if torch is None or not torch.is_available() or not torch.is_initialized() or torch.get_world_size() == 1:
        return None
    return torch.get_rank(), torch.get_world_size()


def _ranks(options: Mapping[str, Any]) -> list[str]:
    """Returns the ranks of torch.distributed as defaults for launcher: auto, because not every launcher sets the variables that the library
    reads."""
    ranks = _distributed()
    if ranks is None or any(options.get(name) is not None for name in ("rank", "world_size")):
        return []
    return [f"loader.rank?={ranks[0]}", f"loader.world_size?={ranks[1]}"]


class Loader(_core.Loader):
    """Delivers the batches of a data set in a defined order. Threads prepare them ahead of time.

    config: one of
        - the path of a YAML file, or YAML text (a str with a line break or a brace);
        - a dict with the sections `dataset` and `loader`, as in the file;
        - a mapping of names to `Field` (or paths), or a list of `Dataset`, which are mixed.
    to: the type of tensors in batches: "torch", "numpy", "jax"; None: `stoker.Tensor`.
    copy: batches are copies, which do not hold a slot of the loader.
    restart: after a `break`, the next `for` starts the following epoch, as with a DataLoader, for example for validation in
        Lightning. A position set by load_state_dict or seek is kept.
    sets: assignments that override the config, such as "loader.batch_size=256".
    base_dir: the folder to which relative paths in a config given as a string or dict refer; None: the working directory.
    options: options of the section `loader`, which override the config: batch_size=256, shuffle=True, num_workers=8.

    `for batch in loader` runs to the end of the epoch. After a `break`, the next loop continues at the same position. Only the newest
    iterator of a loader is valid. `len(loader)` is the number of batches per epoch. Without `num_epochs`, the number of epochs is unlimited.

    Threads: several threads may call next; calls are serialized. A forked child cannot use the loader.

    Raises: StokerError and the matching built-in exception: ValueError, FileNotFoundError, MemoryError, OSError.
    """

    def __init__(self, config: str | os.PathLike[str] | Mapping[str, Any] | Sequence[_config.Dataset], *, to: str | None = None,
                 copy: bool = False, restart: bool = False, sets: Sequence[str] = (), base_dir: str | os.PathLike[str] | None = None,
                 **options: Unpack[LoaderOptions]) -> None:
        number = _frameworks.prepare(to)
        lists, others = _config.lists_of(_device(options))
        path, text, assignments = source(config, others)
        _config.check_sets(sets)
        ranks = _ranks(others)
        defaults = [*ranks, "loader.num_epochs?=0"]
        every = [*defaults, *assignments, *sets]
        try:
            super().__init__(path, text, None if base_dir is None else os.fsencode(base_dir),
                             tuple(one.encode("utf-8", "surrogateescape") for one in every), *lists.values(), len(ranks))
        except (_errors.StokerValueError, _errors.StokerOSError) as error:
            if path and (name := _field_name(path)):
                raise _errors.StokerValueError(f"{os.fsdecode(path)}: this is not a YAML config; to read this file, use "
                                               f"{{'{name}': {os.fsdecode(path)!r}}}", "config", os.fsdecode(path)) from error
            if not isinstance(config, str) and str(error).startswith("text:1: "):  # the text was generated, so its line numbers mean nothing to the user
                error.args = (str(error).removeprefix("text:1: "),)
                error.file, error.record, error.offset = "", -1, -1
            raise
        self._options: dict[str, Any] | None = None
        self._arguments = {"config": os.fsdecode(path) if path else (text or b"").decode("utf-8", "surrogateescape"),
                           "sets": every[len(defaults):], "base_dir": None if base_dir is None else os.fsdecode(base_dir), "to": to,
                           "copy": copy, "restart": restart,
                           **{name: list(values) for name, values in lists.items() if values is not None}}
        known = self.options
        plan = known["plan"]
        device = plan.get("device")
        self._is_alone = plan["ranks"]["source"] == "alone" and known["loader"]["launcher"] != "none"
        timeout = known["loader"]["timeout_ns"]
        self._configure(-1 if timeout == "infinite" else timeout, number, copy, restart, device,
                        device is None and plan["pinned_slots"] > 0, self._hints(), self._is_alone)
        _open.add(self)
        self._warned = 0
        self._warn()

    def _hints(self) -> dict[str, str]:
        """Returns, for each field with several tensors, the message of the error that is raised if the field itself is requested."""
        hints: dict[str, list[str]] = {}
        for name in self.names:
            field, _, part = name.rpartition(".")
            if field and part in ("values", "offsets", "shapes") and field not in self.names:
                hints.setdefault(field, []).append(name)
        return {field: f"{field}: its rows vary in length; use " + ", ".join(f'"{name}"' for name in names)
                for field, names in hints.items()}

    # ---- batches ----

    if TYPE_CHECKING:
        def next(self, timeout: float | None = None) -> Batch | None: ...

    def _check_ranks(self) -> None:
        if self._is_alone and (ranks := _distributed()) is not None:
            raise _errors.StokerRuntimeError(f"torch.distributed has {ranks[1]} ranks, but this loader was opened before they were known and "
                                             "would read all samples on each rank: open it after init_process_group (in Lightning, in "
                                             "train_dataloader of the model or data module), or with launcher=\"none\" if each rank "
                                             "should read all samples", "config")

    def __iter__(self) -> Iterator[Batch]:
        self._check_ranks()
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        raise _errors.StokerTypeError("a stoker.Loader delivers batches in order and cannot be indexed: iterate over it, or if a torch "
                                      "DataLoader is required, use DataLoader(loader.dataset(), batch_size=None)", "unsupported")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _options.LOADER:
            raise AttributeError(f"'{name}' of an open loader cannot be changed: pass {name}=… to stoker.Loader")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """The number of batches per epoch."""
        return self.steps_per_epoch

    def dataset(self) -> LoaderDataset:
        """Returns this loader as a torch.utils.data.IterableDataset of whole batches, for code that requires a DataLoader:
        `DataLoader(loader.dataset(), batch_size=None, num_workers=0)`. The loader itself is faster and works wherever an iterable
        is enough."""
        from ._dataset import LoaderDataset
        return LoaderDataset(self)

    # ---- positions ----

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch that was returned: a dict of strings and numbers for torch.save, JSON or pickle."""
        state: dict[str, Any] = json.loads(self._state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a position returned by state_dict, possibly in another process, or with a different number of workers, ranks or prefetched
        batches.

        Raises ValueError (status "mismatch") if data, order, seed, batch or transforms differ (resume="force" accepts that)."""
        if not isinstance(state, Mapping) or "stoker_state" not in state:
            found = ", ".join(map(str, state)) or "an empty one" if isinstance(state, Mapping) else type(state).__name__
            raise _errors.StokerValueError(f"not a state_dict() of a stoker.Loader, which has the key stoker_state: found {found}", "bad_arg")
        self._restore(json.dumps(_config.plain(state)).encode())
        self._warn()

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return int(self.state_dict()["epoch"])

    def config(self) -> dict[str, Any]:
        """Returns the arguments of this loader, which can be pickled: `Loader(**config)` opens an equal loader, also in another process."""
        return dict(self._arguments)

    # ---- queries ----

    @property
    def options(self) -> dict[str, Any]:
        """All effective options and the values derived from them, as in `loadbench --format=json`."""
        options = self._options
        if options is None:
            options = self._options = json.loads(self._options_json())
        return options

    def option(self, name: str) -> Any:
        """Returns an effective option: one of the section `loader`, such as option("prefetch"), or by its full name, such as
        option("plan.slots"). Sizes are in bytes, times in ns."""
        for full in (name,) if "." in name else ("loader." + name, name):
            try:
                return json.loads(self._option(full))
            except _errors.StokerFileNotFoundError:
                pass
        known = [*self.options["loader"], *self.options, *(f"{section}.{key}" for section, keys in self.options.items()
                                                            if isinstance(keys, dict) for key in keys)]
        raise _errors.StokerKeyError(f"there is no option '{name}'" + _config.nearest(name, known), "not_found")

    @property
    def notes(self) -> list[str]:
        """Differences from what was requested ("prefetch lowered from 8 to 5: …") and other notable facts, one sentence each."""
        return [note for note, _ in self._notes()]

    def _warn(self) -> None:
        """Issues a warning for each new note that is not a mere fact, attributed to the caller's caller."""
        notes = self._notes()
        new, self._warned = notes[self._warned:], len(notes)
        for note, is_fact in new:
            if not is_fact:
                warnings.warn(note, stacklevel=3)

    @property
    def fields(self) -> list[FieldInfo]:
        """Dtypes, shapes and layouts of the fields."""
        return [FieldInfo(*field) for field in self._fields()]

    @property
    def datasets(self) -> list[DatasetInfo]:
        """The data sets that are mixed, or the only one."""
        return [DatasetInfo(*dataset) for dataset in self._datasets()]

    def classes(self, field: str = "label") -> list[str] | None:
        """Returns the class names of a label field, ordered by class number. None: the classes have no names."""
        names = [info.name for info in self.fields]
        if field not in names:
            raise _errors.StokerKeyError(f"there is no field '{field}', only {', '.join(names)}", "not_found")
        return self._classes(names.index(field))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The class numbers by name, as in torchvision's ImageFolder, of the field `label` or of the only field with class names."""
        named = {info.name: names for info in self.fields if (names := self.classes(info.name)) is not None}
        if "label" in named:
            chosen = named["label"]
        elif len(named) == 1:
            chosen = next(iter(named.values()))
        else:
            raise AttributeError(f"{len(named)} fields have class names: use classes(field)")
        return {name: i for i, name in enumerate(chosen)}

    @property
    def stats(self) -> dict[str, int]:
        """Counters since open: times in ns summed over the workers, bytes, batches (stk_loader_stats in loader.h)."""
        return self._stats()

    @property
    def failures(self) -> dict[str, int]:
        """The number of samples that were skipped or replaced, by reason: {"corrupt": 3}."""
        return self._failures()

    def origins(self, batch: Batch, field: str | None = None) -> list[tuple[str, int]]:
        """Returns the origin of each row of a batch: (path of the file, index of the sample in it). The index is 0 if samples are files.

        field: the field to look up; None: the first one. Takes about a microsecond per row."""
        names = [info.name for info in self.fields]
        if field is not None and field not in names:
            raise _errors.StokerKeyError(f"there is no field '{field}', only {', '.join(names)}", "not_found")
        return batch._origins(0 if field is None else names.index(field))

    def preview(self, field: str | None = None, images: int = 16) -> bytes:
        """Returns a PNG with the first images of the first batch, read with a separate loader, so that the position of this one does not change.

        field: the field with the images; None: the first one with images."""
        if images < 1:
            raise ValueError(f"images: found {images}, expected 1 or more")
        given = self.config()
        given.update(to=None, copy=False, sets=[*given["sets"], "loader.num_workers=0", "loader.prefetch=1", "loader.device=cpu"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this loader has already warned
            loader = Loader(**given)
        with loader:
            batch = next(iter(loader))
            names = [field] if field else [name for name in batch if batch[name].ndim in (3, 4)]
            if not names:
                raise ValueError("no field contains images (rows with two or three axes)")
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "preview.png")
                _core.preview(batch[names[0]], images, path)
                with open(path, "rb") as file:
                    return file.read()

    # ---- the end ----

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<stoker.Loader of {', '.join(self.names)}: samples: {self.samples}, batches per epoch: {len(self)}>"


@atexit.register
def _close_all() -> None:
    """Closes all loaders before the interpreter ends, because their workers may call Python functions."""
    for loader in list(_open):
        try:
            loader.close()
        except _errors.StokerError:
            pass
