#!/usr/bin/env python3
"""How the library's object files refer to each other, read with nm.

    link_rules.py BUILD_DIR [--edges FILE]

Fails on
  - circles: objects that refer to each other, directly or through others;
  - an object that refers to one in a folder that its own may not use (src/CMakeLists.txt; BUILD_DIR/folders.txt);
  - a header that declares what a folder defines which the header's folder may not use;
  - weak symbols.
Names: strong, stk_ and stki_. An optimizing compiler removes references, so only debug builds are read. Calls through tables
of functions are not seen; they are how a lower folder calls a higher one. A static inline function refers to what it calls
from each object that includes it.

--edges FILE prints why FILE is in a circle: who refers to whom, by which names.
"""
import collections
import json
import os
import re
import subprocess
import sys


def objects_of(build, root):
    """{source relative to src/: object file}; 'skip' for builds that keep nothing to read."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            source = os.path.relpath(entry["file"], os.path.join(root, "src"))
            if source.startswith(".."):
                continue
            if re.search(r"\s-flto|\s-O[123s]", entry["command"]):
                print(f"{source} is optimized: only debug builds are read")
                sys.exit(77)
            output = entry.get("output") or re.search(r"\s-o (\S+)", entry["command"])[1]
            found[source] = os.path.join(entry["directory"], output)
            if not os.path.exists(found[source]):
                sys.exit(f"{source} has not been compiled: build all first")
    # Kernels of CUDA, which are compiled by commands of their own (cmake/stoker_cuda.cmake).
    for source in ("gpu/" + name for name in os.listdir(os.path.join(root, "src/gpu")) if name.endswith(".cu")):
        path = os.path.join(build, "src/cuda", os.path.basename(source)[:-3] + ".o")
        if os.path.exists(path):
            found[source] = path
    return found


def read_objects(objects):
    """({symbol: source that defines it}, {source: names it refers to}, [(source, weak symbol)])"""
    defined, wanted, weak = {}, collections.defaultdict(set), []
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
    if not defined:
        sys.exit("nm finds no symbols")
    return defined, wanted, weak


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
    """Names of functions and objects that a header declares: outside of braces, comments and directives."""
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
    objects = objects_of(build, root)
    defined, wanted, weak = read_objects(objects)
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
    print(f"{len(objects)} objects, {len(rings)} circles of {sum(map(len, rings))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
