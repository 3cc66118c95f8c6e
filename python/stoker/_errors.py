"""Exceptions. Each is a StokerError and the built-in exception that fits, so that code that knows nothing of stoker catches it."""

from __future__ import annotations

from typing import Any


class StokerError(Exception):
    """An error of stoker.

    Attributes:
        status: what went wrong, a word: "corrupt", "timeout", "mismatch", …
        file: the file that it is about, or "".
        record: the number of the sample in its field, or the line of a config; -1: none.
        offset: bytes from the beginning of the file, or the column in a config; -1: none.
        found, expected: what was there and what should have been, or "".
    """

    status: str
    file: str
    record: int
    offset: int
    found: str
    expected: str

    def __init__(self, message: str, status: str = "", file: str = "", record: int = -1, offset: int = -1, found: str = "",
                 expected: str = "") -> None:
        super().__init__(message)
        self.status, self.file, self.record, self.offset = status, file, record, offset
        self.found, self.expected = found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.file, self.record, self.offset, self.found, self.expected)


class StokerValueError(StokerError, ValueError):
    """A config, an argument or a file that is wrong."""


class StokerFileNotFoundError(StokerError, FileNotFoundError):
    """A file, or a part of one that was named, is not there."""


class StokerTimeoutError(StokerError, TimeoutError):
    """No batch came within the time allowed; the loader goes on."""


class StokerMemoryError(StokerError, MemoryError):
    """Out of memory."""


class StokerOSError(StokerError, OSError):
    """The operating system refused."""


class StokerRuntimeError(StokerError, RuntimeError):
    """The loader is in a state in which it cannot do that: closed, cancelled, at its end, without a free slot."""


_CLASSES: dict[str, type[StokerError]] = {
    **dict.fromkeys(("end", "again", "device", "busy", "closed", "forked", "empty", "cancelled"), StokerRuntimeError),
    "not_found": StokerFileNotFoundError,
    "timeout": StokerTimeoutError,
    "memory": StokerMemoryError,
    "io": StokerOSError,
    "resource": StokerOSError,
}


def make(status: str, message: str, file: str, record: int, offset: int, found: str, expected: str) -> StokerError:
    return _CLASSES.get(status, StokerValueError)(message, status, file, record, offset, found, expected)
