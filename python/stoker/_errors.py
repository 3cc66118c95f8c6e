"""Exceptions. Each is both a StokerError and the matching built-in exception, so that generic code can catch it."""

from __future__ import annotations

from collections import deque
from typing import Any


class StokerError(Exception):
    """An error reported by stoker.

    Attributes:
        status: the kind of error, as a word: "corrupt", "timeout", "mismatch", …
        file: the file with the error, or "".
        record: the index of the sample in its field, or the line of a config; -1: none.
        offset: bytes from the beginning of the file, or the column in a config; -1: none.
        found, expected: what was found and what was expected, or "".
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
    """A config, an argument or a file is invalid."""


class StokerTypeError(StokerError, TypeError):
    """An argument has the wrong type, or an option does not exist."""


class StokerKeyError(StokerError, KeyError):
    """A field, member or option of that name does not exist."""

    def __str__(self) -> str:  # KeyError quotes its message
        return Exception.__str__(self)


class StokerFileNotFoundError(StokerError, FileNotFoundError):
    """A file, or a named part of a file, does not exist."""


class StokerTimeoutError(StokerError, TimeoutError):
    """No batch was ready within the timeout; the next call continues to wait for it."""


class StokerMemoryError(StokerError, MemoryError):
    """Out of memory."""


class StokerOSError(StokerError, OSError):
    """A system call failed."""


class StokerRuntimeError(StokerError, RuntimeError):
    """The loader cannot do this in its current state: closed, cancelled, at its end, or without a free slot."""


_CLASSES: dict[str, type[StokerError]] = {
    **dict.fromkeys(("end", "again", "device", "busy", "closed", "forked", "empty", "cancelled"), StokerRuntimeError),
    "not_found": StokerFileNotFoundError,
    "timeout": StokerTimeoutError,
    "memory": StokerMemoryError,
    "io": StokerOSError,
    "resource": StokerOSError,
}


def make(status: str, message: str, file: str, record: int, offset: int, found: str, expected: str) -> StokerError:
    error = _CLASSES.get(status, StokerValueError)(message, status, file, record, offset, found, expected)
    if status in ("bad_value", "memory"):
        error.__cause__ = next((cause for text, cause in reversed(_raised) if text in message), None)
    return error


#: The latest exceptions raised by Python transforms, with the start of their text, which the error message quotes.
_raised: deque[tuple[str, BaseException]] = deque(maxlen=32)


def keep(error: BaseException, text: str) -> None:
    """Keeps an exception of a transform as the cause of the error that `next` will raise. Clears the local variables of its frames,
    because they refer to the sample's memory."""
    import traceback
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            waiting += [one.__cause__, one.__context__]
    _raised.append((text[:200], error))
