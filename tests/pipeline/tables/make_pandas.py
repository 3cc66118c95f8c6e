"""Makes the tables and cases of test_tables_pandas.c: the values that pandas reads (pandas 3.1, NumPy 2.4).

Run: python make_pandas.py. Each line of pandas.tsv:
file  keys of source  dtype  columns (0: one axis)  records  SHA-256 of the values, little-endian, in C order
"""
import fnmatch, hashlib, io, pathlib
import numpy as np, pandas as pd

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(20261128)
frame = pd.DataFrame({"a": rng.integers(-9, 9, 40), "b": rng.normal(size=40).round(3), "x1": range(40), "x2": rng.integers(0, 2, 40)})
frame.to_csv(here / "pandas_index.csv")  # an index without a name
frame.to_csv(here / "pandas_plain.csv", header=False, index=False)
words = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
with open(here / "pandas_missing.csv", "w") as f:
    f.write("n,r,t,all,q,own\n")
    for i, w in enumerate(words * 2):
        n, r = (w, str(i)) if i % 2 else (str(i * 3), w)
        f.write(f'{n},{r}{"" if r in words else ".5"},{"word" if i % 3 else w},{words[i % 19]},"{n}",{"?" if i % 5 == 0 else i}\n')

cases = []


def case(name, keys, values):
    values = np.ascontiguousarray(values)
    kind = {"int64": "i64", "float64": "f64"}[values.dtype.name]
    cases.append((name, keys, kind, values.shape[1] if values.ndim == 2 else 0, values.shape[0], hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()))


def pick(table, columns):
    names = []
    for c in columns:
        names += [n for n in map(str, table.columns) if fnmatch.fnmatchcase(n, c) and n not in names]
    table.columns = [str(c) for c in table.columns]
    return table[names].to_numpy()  # in the dtype of numpy.result_type


t = pd.read_csv(here / "pandas_index.csv")
case("pandas_index.csv", 'name: "Unnamed: 0"', t["Unnamed: 0"].to_numpy())
case("pandas_index.csv", "name: b", t["b"].to_numpy())
for columns in (["a", "b"], ["x2", "a"], ["x*"], ["b", "*"], ["a", "x?", "a"], ["Unnamed*", "b"]):
    case("pandas_index.csv", f"columns: {columns}", pick(pd.read_csv(here / "pandas_index.csv"), columns))
t = pd.read_csv(here / "pandas_plain.csv", header=None)
case("pandas_plain.csv", 'header: false, name: "0"', t[0].to_numpy())
case("pandas_plain.csv", 'header: false, name: "1"', t[1].to_numpy())
for columns in (["3", "0"], ["*"]):
    case("pandas_plain.csv", f"header: false, columns: {columns}", pick(pd.read_csv(here / "pandas_plain.csv", header=None), columns))
t = pd.read_csv(here / "pandas_missing.csv")
for name in ("n", "r", "all", "q"):
    case("pandas_missing.csv", f"name: {name}", t[name].astype("float64").to_numpy())
case("pandas_missing.csv", "name: n, missing: -1", t["n"].fillna(-1).astype("int64").to_numpy())
case("pandas_missing.csv", "name: q, missing: 7, dtype: float64", t["q"].fillna(7).to_numpy())
case("pandas_missing.csv", "name: n, missing: 0.5", t["n"].fillna(0.5).to_numpy())
case("pandas_missing.csv", "name: r, missing: 2", t["r"].fillna(2).to_numpy())
case("pandas_missing.csv", "columns: [n, r, q]", t[["n", "r", "q"]].to_numpy())
case("pandas_missing.csv", "columns: [q, n], missing: -5", t[["q", "n"]].fillna(-5).astype("int64").to_numpy())
t = pd.read_csv(here / "pandas_missing.csv", keep_default_na=False, na_values=["?"])
case("pandas_missing.csv", 'name: own, missing_words: ["?"]', t["own"].to_numpy())
case("pandas_missing.csv", 'name: own, missing_words: ["?"], missing: 99', t["own"].fillna(99).astype("int64").to_numpy())
with open(here / "pandas.tsv", "w") as f:
    for c in cases:
        f.write("\t".join(map(str, c)) + "\n")
print(len(cases), "cases")
