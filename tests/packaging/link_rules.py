#!/usr/bin/env python3
"""Checks how the library's object files refer to each other, as nm shows it.

    link_rules.py BUILD_DIR [--edges FILE]

Reports
  - cycles: objects that refer to each other, directly or through others;
  - an object that refers to one in a folder that its own may not use (src/CMakeLists.txt; BUILD_DIR/folders.txt);
  - a header that declares a function or object of a folder that the header's folder may not use;
  - weak symbols;
  - a name that only tests use, unless UNUSED gives a reason (public names are allowed);
  - a function that only its own file and no test uses: it should be static.
Only strong names that start with stk_ or stki_ count. Only debug builds are read, because an optimizing compiler removes
references. Calls through tables of functions, by which lower folders call higher ones, do not appear. A static inline
function counts as a reference from each object that includes it.

--edges FILE prints why FILE is in a cycle: which objects refer to which, by which names."""
import collections
import json
import os
import re
import subprocess
import sys

# Names that only tests use, and why they cannot be defined in the tests.
UNUSED = {
    "stki_cuda_context_active": "asks the driver through the table that only cuda_*.c see",
    "stki_hdf5_reader_counts": "counters of a reader whose struct is its own file's",
}


def objects_of(build, root):
    """Returns ({source relative to src/: object file}, [objects of tools and python], [of tests and bench]).

        Exits with 77 for builds that cannot be read."""
    found, tools, others = {}, [], []
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            source = os.path.relpath(entry["file"], os.path.join(root, "src"))
            output = entry.get("output") or re.search(r"\s-o (\S+)", entry["command"])[1]
            output = os.path.join(entry["directory"], output)
            if source.startswith(".."):
                (tools if source.startswith(("../tools/", "../python/")) else others).append(output)
                continue
            if re.search(r"\s-flto|\s-O[123s]", entry["command"]):
                print(f"{source} is optimized: only debug builds are read")
                sys.exit(77)
            found[source] = output
            if not os.path.exists(found[source]):
                sys.exit(f"{source} has not been compiled: build all first")
    # CUDA kernels, which cmake/stoker_cuda.cmake compiles by separate commands.
    for source in ("gpu/" + name for name in os.listdir(os.path.join(root, "src/gpu")) if name.endswith(".cu")):
        path = os.path.join(build, "src/cuda", os.path.basename(source)[:-3] + ".o")
        if os.path.exists(path):
            found[source] = path
    return found, tools, others


def read_objects(objects):
    """Returns ({symbol: source that defines it}, {source: names it refers to}, [(source, weak symbol)], names of
    functions)."""
    defined, wanted, weak, functions = {}, collections.defaultdict(set), [], set()
    source_of = {os.path.realpath(path): source for source, path in objects.items()}
    text = subprocess.run(["nm", "-A", "-P", "-g", *objects.values()], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in text.splitlines():
        path, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        source = source_of[os.path.realpath(path)]
        if not re.match(r"stki?_", name):
            continue
        if kind in "wWvV":
            weak.append((source, name))
        elif kind == "U":
            wanted[source].add(name)
        else:
            defined[name] = source
            if kind == "T":
                functions.add(name)
    if not defined:
        sys.exit("nm finds no symbols")
    return defined, wanted, weak, functions


def all_sources(root):
    """The text of src/, including files that this build does not compile."""
    text = []
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith((".c", ".h", ".cu")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text.append(file.read())
    return "\n".join(text)


def references(objects):
    """The names that objects refer to; objects that do not exist are skipped."""
    built = [path for path in objects if os.path.exists(path)]
    text = subprocess.run(["nm", "-P", "-u", *built], check=True, stdout=subprocess.PIPE, text=True).stdout if built else ""
    return {line.split()[0] for line in text.splitlines() if re.match(r"stki?_", line)}


def without_comments(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def public_names(root):
    folder = os.path.join(root, "include/stoker")
    return set(re.findall(r"\bstk_\w+", " ".join(without_comments(os.path.join(folder, name)) for name in os.listdir(folder))))


def python_names(root):
    """The names that the Python extension uses; not every build compiles it."""
    folder = os.path.join(root, "python/core")
    files = [name for name in os.listdir(folder) if name.endswith((".c", ".h"))] if os.path.isdir(folder) else []
    return set(re.findall(r"\bstki?_\w+", " ".join(without_comments(os.path.join(folder, name)) for name in files)))


def unused_names(root, defined, functions, wanted, tools, others):
    """Reports names that no other object of the product refers to."""
    used = set().union(*wanted.values(), references(tools), public_names(root), python_names(root))
    tested = references(others) if all(map(os.path.exists, others)) else None
    for name, source in sorted(defined.items()):
        if name in used or name in UNUSED or not source.endswith(".c"):
            continue
        if len(re.findall(rf"\b{name}\b", without_comments(os.path.join(root, "src", source)))) < 2:
            yield f"{source}: nothing in the product uses {name}"
        elif tested is not None and name in functions and name not in tested:
            yield f"{source}: {name} is used here alone, and not static"


def circles(edges):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, found, counter = {}, {}, [], [], [0]
    sys.setrecursionlimit(10000)

    def visit(node):
        index[node] = low[node] = counter[0]
        counter[0] += 1
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            members, stack[at:] = stack[at:], []
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def read_folders(build):
    with open(os.path.join(build, "folders.txt"), encoding="utf-8") as file:
        return {line.split()[0]: set(line.split()) for line in file}


def declared_in(path):
    """The functions and objects that a header declares: names outside of braces, comments and directives."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#(.*\\\n)*.*$", "", text, flags=re.M)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    for statement in text.split(";"):
        if not re.match(r"\s*(typedef|static)\b", statement):
            name = re.search(r"\b(stki?_\w+)\s*\(", statement) or re.search(r"\bextern\b.*?\b(stki?_\w+)\s*(\[|$)", statement, re.S)
            if name:
                yield name[1]


def main():
    build = sys.argv[1]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    objects, tools, others = objects_of(build, root)
    defined, wanted, weak, functions = read_objects(objects)
    folders = read_folders(build)
    why = collections.defaultdict(list)
    edges = {source: set() for source in objects}
    found = []

    for source, names in wanted.items():
        for name in names:
            if defined.get(name, source) != source:
                edges[source].add(defined[name])
                why[source, defined[name]].append(name)
    for source, target in sorted(why):
        if os.path.dirname(target) not in folders[os.path.dirname(source)]:
            found.append(f"{source} -> {target}")
    rings = circles(edges)
    found += [" ".join(members) for members in rings]
    found += [f"{source}: weak {name}" for source, name in weak]
    found += unused_names(root, defined, functions, wanted, tools, others)
    text = all_sources(root)
    found += [f"UNUSED has {name}, which does not exist" for name in UNUSED if not re.search(rf"\b{name}\b", text)]
    for folder in folders:
        for header in sorted(os.listdir(os.path.join(root, "src", folder))):
            if header.endswith(".h"):
                for name in sorted(set(declared_in(os.path.join(root, "src", folder, header)))):
                    home = os.path.dirname(defined.get(name, folder + "/"))
                    if home not in folders[folder]:
                        found.append(f"{folder}/{header}: {name} is in {home}")

    if "--edges" in sys.argv:
        file = sys.argv[sys.argv.index("--edges") + 1]
        for members in rings:
            if any(member.endswith(file) for member in members):
                for (source, target), names in sorted(why.items()):
                    if source in members and target in members:
                        print(f"{source} -> {target}: {' '.join(sorted(names))}")
        return 0
    for finding in found:
        print(finding, file=sys.stderr)
    print(f"{len(objects)} objects, {len(rings)} cycles of {sum(map(len, rings))} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
