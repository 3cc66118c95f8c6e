#!/usr/bin/env python3
"""Checks that code depends on the kind of row layout (src/plan/row_layout.h) or row maker (src/pipeline/row_maker.h)
only in the files that implement it.

Reports
  - the name of a layout or maker outside of the file that defines it, the header that declares it, the files that choose
    one, and calls of one maker by another;
  - a comparison of the layout or maker of a plan;
  - a maker's struct in a plan, or the padding of padded rows, used outside of the files of that maker or layout;
  - the extent of a tensor used outside of the files that iterate over the list of tensors."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAN = r"\b(?:plan|plans\[[^\]]+\]|each|inner|labels|sample|image|f32|whole)(?:->|\.)"
# Patterns, and the files (of src/) that may match them.
RULES = [
    (r"\bstki_(?:fixed|ragged|padded|image)_rows\b", r"plan/(?:rows_\w+\.c|row_layout\.h|plan\.c)"),
    (r"\bstki_make_(?:plain|placed|erased|resampled|image|copied|one_hot|window|mixed|paired)\b",
     r"pipeline/(?:make_\w+\.c|row_maker\.h|row_makers\.c)"),
    (r"(?:->|\.)(?:rows|maker|under)\s*[=!]=\s*[&\w]*stki_", r"nowhere"),
    (PLAN + r"(?:one_hot|erase|mix)\.", r"plan/late_\w+\.c|pipeline/(?:make_\w+|partners)\.c"),
    (PLAN + r"pad\b", r"plan/rows_padded\.c"),
    (r"\bSTKI_(?:PER_ROW|PER_ENTRY|PER_PADDED_ENTRY|OFFSETS|LENGTHS)\b",
     r"plan/(?:row\w+\.[ch]|plan\.h|late_mix\.c)|pipeline/(?:slot|batch|feed)\.c"),
]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)


def main():
    found, seen = [], [0] * len(RULES)
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            source = os.path.relpath(path, os.path.join(ROOT, "src"))
            if not name.endswith((".c", ".h")):
                continue
            with open(path, encoding="utf-8") as file:
                lines = without_comments(file.read()).splitlines()
            for number, line in enumerate(lines, 1):
                for i, (pattern, allowed) in enumerate(RULES):
                    if not re.search(pattern, line):
                        continue
                    seen[i] += 1
                    if not re.fullmatch(allowed, source):
                        found.append(f"src/{source}:{number}: {line.strip()}")
    # A rule that matches nothing, for example because a name has changed, must be reported.
    found += [f"nothing matches {pattern}" for i, (pattern, allowed) in enumerate(RULES) if not seen[i] and allowed != "nowhere"]
    for finding in found:
        print(finding, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
