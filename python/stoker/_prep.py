"""Preparation jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _config, _core
from ._loader import source


def prep(job: str | os.PathLike[str] | Mapping[str, Any], *, progress: Callable[[dict[str, Any]], Any] | None = None,
         interval: float = 0.2, sets: Sequence[str] = (), base_dir: str | os.PathLike[str] | None = None, dry_run: bool = False,
         task: int = 0, tasks: int = 0, merge: bool = False, no_merge: bool = False, force: bool = False, restart: bool = False,
         no_space_check: bool = False) -> dict[str, Any]:
    """Runs a preparation job, like `stoker prep`. job: the path of a job file, its text, or a dict with its sections.

    progress: called every `interval` seconds with a dict: phase, rows, row_total, bytes_in, bytes_out, elapsed and waits in seconds,
        all for the current phase. In the last call, the phase is "done", and rows, bytes_out and elapsed are totals of the
        whole job. If `progress` raises an exception, the job stops, and prep raises that exception.
    dry_run: writes nothing and returns the plan: positions, pieces, output_bytes, output_exists, …
    The other arguments are the options of `stoker prep`.

    Returns a dict: complete, rows, skipped, files, bytes, manifest_path, skipped_path, stats_path, notes, …
    Ctrl-C stops the job quickly; the same call resumes it.
    Raises: StokerError, as loaders do; status "busy": another process is using the work folder.
    """
    if isinstance(job, Mapping):
        path, text = None, _config.text_of(job).encode("utf-8", "surrogateescape")
    else:
        path, text, _ = source(job, {})
    _config.check_sets(sets)
    return _core.prep(path, text,
                      None if base_dir is None else os.fsencode(base_dir), tuple(one.encode("utf-8", "surrogateescape") for one in sets), progress, interval,
                      dry_run, task, tasks, merge, no_merge, force, restart, no_space_check)
