"""Opening, inspecting and verifying files without a loader."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, NoReturn

from . import _core, _errors


class _Open:
    """The base class of open files and their members; its instances are true even if they are empty."""

    def __bool__(self) -> bool:
        return True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy
        array = self.numpy()
        return numpy.asarray(array, dtype) if copy is None else numpy.array(array, dtype, copy=copy)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a stoker.{type(self).__name__} cannot be pickled or copied: pass the path, and open it in the other process")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a stoker.{type(self).__name__} has no attribute '{name}': use its numpy()")


class Member(_Open):
    """An array, or a sequence of samples, in an open file.

    `member[5]` is a copy of a sample as a NumPy array (a NumPy scalar if a sample is a number). `member[a:b]`, and every other index that
    NumPy supports, returns a read-only NumPy array, which is a view of the file if it is mapped. `len(member)` is the number of samples.
    """

    def __init__(self, member: _core.Member) -> None:
        self._member = member
        self.name: str = member.name
        self.shape: tuple[int | None, ...] = member.shape
        self.ndim = len(self.shape)
        self.dtype: str = member.dtype
        self.layout: str = member.layout

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a scalar")
        return len(self._member)

    def __contains__(self, value: Any) -> bool:
        return value in self.numpy()

    def __getitem__(self, index: Any) -> Any:
        if self.ndim and not isinstance(index, bool) and getattr(index, "ndim", 0) == 0:  # not an array of indices
            try:
                number = operator.index(index)
            except TypeError:
                pass
            else:
                return self.sample(number).numpy()[()]
        return self.numpy()[index]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def sample(self, index: int) -> _core.Tensor:
        """Returns a copy of a sample as a Tensor."""
        return self._member.sample(index)

    def tensor(self) -> _core.Tensor:
        """Returns the whole array as a read-only Tensor."""
        return self._member.tensor()

    def numpy(self) -> Any:
        """Returns the whole array as a read-only NumPy array."""
        tensor = self.tensor()
        try:
            return tensor.numpy()
        except BufferError:  # the opposite byte order
            return tensor.clone().numpy()

    def classes(self) -> list[str] | None:
        """Returns the class names, ordered by class number, or None if the classes have no names."""
        return self._member.classes()

    def __repr__(self) -> str:
        return f"<stoker.Member {self.name!r}: {self.dtype} {self.shape}, {self.layout}>"


class File(_Open, Mapping[str, Member]):
    """An open file or folder of any format that loaders read: a mapping from names to members.

    The leading slash of HDF5 names may be omitted. A file with a single array has one member, named "", and behaves like that member:
    `file[5]`, `file[2:4]`, `file.shape`, `len(file)`, `5 in file`, `for sample in file`, `numpy.asarray(file)`. Only keys(), values() and
    items() are those of the mapping. A file is true, even if it is empty.

    close(), or the end of `with stoker.open(path) as file`, releases the file. Members and arrays obtained from it remain valid.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        self._file = _core.open_file(path)
        self.format: str = self._file.format
        self._members = {member.name: Member(member) for member in self._file.members()}

    @property
    def _array(self) -> Member | None:
        """The member of a file whose only member has no name."""
        return self._members.get("") if len(self._members) == 1 else None

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):
            return (self._array or self._refuse(f"member {name!r}"))[name]
        for one in (name, "/" + name, name.removeprefix("/")):
            if one in self._members:
                return self._members[one]
        return self._refuse(f"member {name!r}")

    def __contains__(self, name: Any) -> bool:
        return super().__contains__(name) if isinstance(name, str) or not self._array else name in self._array

    def _refuse(self, what: str) -> NoReturn:
        if self._array:
            raise _errors.StokerKeyError(f"{self.path} has no {what}; it has a single array without a name: use file[5] or file.numpy()", "not_found",
                                         self.path)
        names = ", ".join(map(repr, list(self._members)[:20])) + (", …" if len(self._members) > 20 else "")
        known = f"its members are {names}" if names else "it has no members"
        raise _errors.StokerKeyError(f"{self.path} has no {what}; {known}", "not_found", self.path)

    def __getattr__(self, name: str) -> Any:
        """The attributes of a file with a single array are those of its member."""
        if name in ("_file", "_members"):
            raise _errors.StokerRuntimeError(f"{self.path} is closed", "closed", self.path)
        if name.startswith("_") or not self._array:
            raise AttributeError(f"a stoker.File has no attribute '{name}'")
        return getattr(self._array, name)

    def numpy(self) -> Any:
        """Returns the array of a file with a single array as a read-only NumPy array."""
        return (self._array or self._refuse("array without a name")).numpy()

    def keys(self) -> KeysView[str]:
        return self._members.keys()

    def values(self) -> ValuesView[Member]:
        return self._members.values()

    def items(self) -> ItemsView[str, Member]:
        return self._members.items()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array or self._members)

    def __len__(self) -> int:
        return len(self._array or self._members)

    def sample_name(self, index: int) -> str | None:
        """Returns the path of a sample's file, relative to the folder, if samples are files; otherwise None."""
        return self._file.sample_name(index)

    def close(self) -> None:
        """Releases the file. Members and arrays obtained from it remain valid."""
        self.__dict__.pop("_file", None)
        self.__dict__.pop("_members", None)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if "_file" not in self.__dict__:
            return f"<stoker.File {self.path}: closed>"
        what = f"{self.dtype} {self.shape}" if self._array else f"{len(self)} member{'' if len(self) == 1 else 's'}"
        return f"<stoker.File {self.path}: {self.format}, {what}>"


def open_file(path: str | os.PathLike[str]) -> File:
    """Opens a file or folder of any format that loaders read: `stoker.open("x.h5")["/image"][5]`."""
    return File(path)


def program() -> str:
    """Returns the path of the `stoker` program: $STOKER_HELPER, or the program in the package."""
    named = os.environ.get("STOKER_HELPER")
    path = named or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "stoker")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist: " + ("it is the value of STOKER_HELPER" if named else
                                                              "the package was installed without its program"))
    return path


def _run(arguments: Sequence[str], accepted: Sequence[int]) -> dict[str, Any]:
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, errors="surrogateescape", check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if "error" in answer:
        raise _errors.make(answer["error"]["class"], answer["error"]["message"], arguments[-1], -1, -1, "", "")
    if done.returncode not in accepted or not answer:
        raise _errors.StokerValueError(done.stderr.strip() or f"stoker {arguments[0]} exited with status {done.returncode}", "corrupt")
    print(done.stderr, end="", file=sys.stderr)
    return answer


def _argument(path: str | os.PathLike[str]) -> str:
    """Returns the path in a form that the program cannot mistake for an option."""
    name = os.fsdecode(path)
    return os.path.abspath(name) if name.startswith("-") else name


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the contents of a file, as printed by `stoker inspect --json`: members, dtypes, shapes, offsets. Runs in a separate process, so that
    a damaged file cannot crash this one. Raises StokerError if the file cannot be read."""
    return _run(["inspect", "--json", _argument(path)], (0,))


def verify(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads and checks all records of a file, like `stoker verify --json`. Bad records are listed in the result and raise no exception.
    Raises StokerError if the file cannot be opened."""
    return _run(["verify", "--json", _argument(path)], (0, 1))
