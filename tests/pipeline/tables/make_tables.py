"""Makes the tables and cases of test_tables.c: the cells that Python's csv module reads.

Run: python make_tables.py. Each line of cases.tsv:
file  column  further keys of source  dtype  records  SHA-256 of the numbers (little-endian), or for strings of
each length (8 bytes) and string
"""
import csv, hashlib, io, pathlib, random, struct

here = pathlib.Path(__file__).parent
rng = random.Random(20261128)
words = ["stoker", "Kohle, schwarz", 'a "quoted" word', "two\nlines", "naïve 日本", "", " blanks ", "semi;colon", "tab\tbed", "x" * 700, '""', "\r\n"]


def table(rows, **how):
    out = io.StringIO(newline="")
    csv.writer(out, **how).writerows(rows)
    return out.getvalue().encode()


rows = [["path", "label", "weight", "text", "class"]]
for i in range(60):
    rows.append([f"images/{i:03}.jpg", str(i * i - 100), repr(rng.uniform(-5, 5)) if i % 3 else str(i), rng.choice(words), rng.choice(["cat", "dog", "Zebra", "éclair", "ant"])])
files = {
    "unix.csv": (table(rows, lineterminator="\n"), ","),
    "dos.csv": (table(rows), ","),
    "all_quoted.csv": (table(rows, quoting=csv.QUOTE_ALL), ","),
    "tabs.tsv": (table(rows, delimiter="\t", lineterminator="\n"), "\t"),
    "semicolons.csv": (table(rows, delimiter=";", lineterminator="\n"), ";"),
    "bom.csv": (b"\xef\xbb\xbf" + table(rows[:5], lineterminator="\n"), ","),
    "no_end.csv": (b"a,b\n1,x\n\n2,\"y\"", ","),
    "blank_lines.csv": (b"\n\r\na,b\n\n1,x\n\r\n\n2,y\n\n", ","),
    "one_column.csv": (b"text\nx\n\"\"\n\"y\"\n", ","),
    "header_alone.csv": (b"a,b\n", ","),
    "numbers.csv": (b"i,f,big,mixed,word,spaced\n" + b"\n".join([
        b"0,1e3,9223372036854775807,1,nan, 5", b"-0,.5,-9223372036854775808,2.5,inf,-6 ", b"+7,-2.,1,3,-Infinity,\t7",
        b"0012,1E-2,2,4e0,NaN,8"]) + b"\n", ","),
    "no_numbers.csv": (b"hex,comma,two,huge,empty\n" + b"0x10,1_000,1 2,9223372036854775808,1\n1,2,3,4,\n", ","),
}


def numbers(cells, kind):
    return b"".join(struct.pack("<q", int(c)) if kind == "i64" else struct.pack("<d", float(c or "nan")) for c in cells)


def texts(cells):
    return b"".join(len(c).to_bytes(8, "little") + c for c in (c.encode() for c in cells))


def sha(data):
    return hashlib.sha256(data).hexdigest()


cases = []
for name, (data, delimiter) in files.items():
    (here / name).write_bytes(data)
    text = data.decode("utf-8-sig")
    lines = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if r]
    columns = lines[0]
    assert all(len(r) == len(columns) for r in lines)
    records = [dict(zip(columns, r)) for r in lines[1:]]
    keys = f'delimiter: "{delimiter}"' if name == "semicolons.csv" else ""
    for column in columns:
        cells = [r[column] for r in records]
        kind = {"label": "i64", "weight": "f64", "i": "i64", "f": "f64", "big": "i64", "mixed": "f64", "word": "f64", "spaced": "i64", "two": "u8", "empty": "f64"}.get(column, "u8")
        kind = "i64" if name in ("no_end.csv", "blank_lines.csv") and column == "a" or name == "header_alone.csv" else kind
        cases.append((name, column, keys, kind, len(cells), sha(texts(cells) if kind == "u8" else numbers(cells, kind))))
        if kind == "i64":
            cases.append((name, column, (keys + ", " if keys else "") + "dtype: f64", "f64", len(cells), sha(numbers(cells, "f64"))))
            cases.append((name, column, (keys + ", " if keys else "") + "dtype: u8", "u8", len(cells), sha(texts(cells))))
        if column == "class":
            order = sorted(set(cells), key=lambda c: c.encode())
            cases.append((name, column, (keys + ", " if keys else "") + "classes: sorted", "i64", len(cells), sha(numbers([order.index(c) for c in cells], "i64"))))
            order = ["dog", "éclair", "unused", "cat", "ant", "Zebra"]
            cases.append((name, column, (keys + ", " if keys else "") + "classes: [dog, éclair, unused, cat, ant, Zebra]", "i64", len(cells), sha(numbers([order.index(c) for c in cells], "i64"))))
with open(here / "cases.tsv", "w") as f:
    for case in cases:
        f.write("\t".join(map(str, case)) + "\n")
print(len(cases), "cases")
