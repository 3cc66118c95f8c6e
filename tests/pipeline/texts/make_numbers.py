"""Makes numbers.jsonl and the cases of test_jsonl_numbers.c: the values that Python's json and NumPy read from it.

Run: python make_numbers.py (NumPy 2.4). Each line of numbers.tsv:
key  dtype  axes of a sample  length (-1: they differ)  records  SHA-256 of all values  SHA-256 of all offsets (or -)
"""
import hashlib, json, pathlib, random
import numpy as np

here = pathlib.Path(__file__).parent
rng = random.Random(20261128)
lines = []
for i in range(50):
    lines.append('{"text": "t%d", "whole": %s, "real": %s, "mixed": %s, "odd": %s, "ids": %s, "pairs": [ %d , %s ], "empty": [%s], "meta": {"label": %d, "deep": {"x": [%d, 2]}}, "a.b": %d, "twice": 0, "twice": %d}' % (
        i, rng.choice(["0", "-0", "17", "-9223372036854775808", "9223372036854775807", str(i)]), repr(rng.uniform(-1, 1)),
        i if i % 7 else i + 0.5, rng.choice(["NaN", "Infinity", "-Infinity", "1e3", "-2.5E-2", "1E+2", "0.1"]),
        json.dumps([rng.randrange(-5, 70000) for _ in range(rng.randrange(0, 9))], separators=rng.choice([(", ", ": "), (",", ":")])),
        i, repr(i / 3), "" if i % 2 else "1", i % 3, i, -i, i * i))
(here / "numbers.jsonl").write_text("\n".join(lines) + "\n\n")
records = [json.loads(l) for l in lines]


def sha(a):
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


cases = []
for key in ["whole", "real", "mixed", "odd", "ids", "pairs", "empty", "meta.label", "meta.deep.x", "a.b", "twice"]:
    values = []
    for r in records:
        if key not in r:
            for part in key.split("."):
                r = r[part]
            values.append(r)
        else:
            values.append(r[key])
    flat = np.array([v for x in values for v in (x if isinstance(x, list) else [x])])
    assert flat.dtype in (np.int64, np.float64)
    kind = {"int64": "i64", "float64": "f64"}[flat.dtype.name]
    lengths = [len(v) if isinstance(v, list) else 0 for v in values]
    if not isinstance(values[0], list):
        cases.append((key, kind, 0, 0, len(values), sha(flat), "-"))
    elif len(set(lengths)) == 1:
        cases.append((key, kind, 1, lengths[0], len(values), sha(flat), "-"))
    else:
        cases.append((key, kind, 1, -1, len(values), sha(flat), sha(np.cumsum([0] + lengths).astype("<i8"))))
with open(here / "numbers.tsv", "w") as f:
    for c in cases:
        f.write("\t".join(map(str, c)) + "\n")
print(len(cases), "cases")
