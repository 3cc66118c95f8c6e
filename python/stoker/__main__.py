"""`python -m stoker COMMAND …`: the programs that came with the package.

    bench CONFIG …                     loadbench
    inspect, verify, prep, play …      as `stoker COMMAND`
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._files import program


def main(arguments: list[str] | None = None) -> NoReturn:
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "bench":
        name, rest = "loadbench", given[1:]
    else:
        name, rest = "stoker", given
    path = program(name)
    sys.stdout.flush()
    os.execv(path, [name, *rest])


if __name__ == "__main__":
    main()
