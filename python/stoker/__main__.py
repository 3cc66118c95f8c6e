"""`python -m stoker COMMAND …`: the programs of stoker, as part of the Python package.

    bench CONFIG.yaml …                loadbench
    bench MODULE:NAME …                loadbench on any iterable of batches
    inspect, verify, prep, play …      the same as `stoker COMMAND`
"""

from __future__ import annotations

import os
import sys

from . import _bench
from ._files import program


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "bench":
        return _bench.main(given[1:])
    if given[:1] == ["--help"]:
        print("python -m stoker bench CONFIG.yaml|MODULE:NAME measures a loader or any iterable of batches (bench --help).\n"
              "All other commands are those of the stoker program:\n")
    path = program()
    sys.stdout.flush()
    os.execv(path, ["stoker", *given])


if __name__ == "__main__":
    sys.exit(main())
