"""Generates _options.py and _transforms.py in the package from the library's tables: options as typed keyword arguments, and
transforms as functions.

    python3 make_options.py FOLDER-OF-THE-PACKAGE"""

import json
import os
import re
import sys

folder = sys.argv[1]
sys.path.insert(0, folder)
import _core  # noqa: E402

FIELD, SOURCE = "dataset.fields.NAME", "dataset.fields.NAME.source"
TYPES = {"int": "SupportsInt", "size": "SupportsInt | str", "time": "Seconds", "bool": "bool", "real": "SupportsFloat",
         "text": "str | os.PathLike[str]", "node": "Any"}
HEAD = '"""Generated from the tables of the library by make_options.py; do not edit."""\n\nfrom __future__ import annotations\n'


def value_type(option):
    words = option.get("words") or []
    literal = "Literal[" + ", ".join(json.dumps(word) for word in words) + "]" if words else ""
    if option["type"] == "enum":
        return literal or "str"
    known = "DType" if option["name"] == "dtype" else TYPES[option["type"]]
    return known if option["type"] == "bool" or not words else f"{known} | {literal}"


def describe(option):
    unit, default = option.get("unit"), option.get("default")
    return option["help"] + (f" (default: {default}{' ' + unit if unit and default.isdigit() else ''})" if default else "")


def options_of(tables, match):
    out = {}
    for table in tables:
        if match(table["section"]):
            for option in table["options"]:
                out.setdefault(option["name"], option)
    return out


def dictionary(name, doc, options):
    lines = [f'\n\nclass {name}(TypedDict, total=False):\n    """{doc}"""\n']
    lines += [f'    {key}: {value_type(option)} | None\n    """{describe(option)}."""' for key, option in options.items()]
    return "\n".join(lines)


def names(name, options):
    return f"{name}: frozenset[str] = frozenset({sorted(options)!r})"


def transform(name, examples):
    """Returns the source of a transform's function. The first parameter of its examples may be positional when others are given by keyword."""
    first = next((m.group(1) for e in examples if (m := re.match(r"\{(\w+):", e))), "")
    usage = ", ".join(f"`{name}: {example}`" for example in examples)
    return (f'\n\ndef {name}(*value: Any, **parameters: Any) -> Transform:\n    """In a config: {usage}."""\n'
            f'    return make("{name}", "{first}", value, parameters)')


def write(name, parts):
    path = os.path.join(folder, name)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")
    os.replace(path + ".tmp", path)


tables = json.loads(_core.options_tables())
loader = options_of(tables, lambda section: section == "loader")
field = options_of(tables, lambda section: section == FIELD)
source = options_of(tables, lambda section: section == SOURCE or section.startswith(SOURCE + " "))
write("_options.py", [
    HEAD, "import os\nfrom datetime import timedelta\nfrom typing import Any, Literal, SupportsFloat, SupportsInt, TypedDict\n\n"
    "Seconds = SupportsFloat | str | timedelta\nDType = Any\n",
    names("LOADER", loader), names("FIELD", field), names("SOURCE", source),
    dictionary("LoaderOptions", "Options of a loader.", loader),
    dictionary("FieldOptions", "Options of a field and of its source.",
               {name: option for name, option in {**source, **field}.items() if name != "path"})])
transforms = _core.transforms()
write("_transforms.py", [
    HEAD, "from typing import Any\n\nfrom ._calls import Transform, make\n",
    f"__all__ = {[name for name, *_ in transforms]!r}", *(transform(name, examples) for name, *examples in transforms)])
