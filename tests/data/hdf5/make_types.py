#!/usr/bin/env python3
"""Makes types.h5 and types.json with h5py 3.7 (HDF5 1.10.8): bitfields, committed datatypes, and compound types whose
fields are bitfields, arrays, strings and lists. types.json has the values that h5py reads, in the form of
values.json (make_values.py)."""
import hashlib, json, os
import h5py, numpy as np
from h5py import h5d, h5s, h5t

here = os.path.dirname(os.path.abspath(__file__))
ROWS = 23


def low_level(f, name, kind, values, chunk=None):
    dcpl = None
    if chunk:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((chunk,))
        dcpl.set_shuffle()
        dcpl.set_deflate(4)
    d = h5d.create(f.id, name, kind, h5s.create_simple(values.shape), dcpl=dcpl)
    d.write(h5s.ALL, h5s.ALL, values, mtype=kind)


numbers = np.arange(ROWS)
with h5py.File(os.path.join(here, "types.h5"), "w") as f:
    low_level(f, b"bits8", h5t.STD_B8LE, (numbers * 11 % 256).astype("u1"))
    low_level(f, b"bits16", h5t.STD_B16BE, (numbers * 3001).astype(">u2"), chunk=5)
    low_level(f, b"bits32", h5t.STD_B32LE, (numbers * 100000007 % 2**32).astype("<u4"), chunk=8)
    low_level(f, b"bits64", h5t.STD_B64LE, (numbers.astype("u8") * 0x0123456789ABCDEF).astype("<u8"))

    # Committed datatypes of numbers, h5py's bool, a bitfield and a string.
    f["real"] = np.dtype(">f4")
    f["flag"] = np.dtype("?")
    f.create_dataset("group/reals", data=numbers / 7, dtype=f["real"])
    f.create_dataset("group/flags", data=numbers % 3 == 0, dtype=f["flag"], chunks=(4,), compression="gzip")
    bits = h5t.STD_B16LE.copy()
    bits.commit(f.id, b"bits")
    low_level(f, b"group/bits", bits, (numbers * 5).astype("<u2"))
    f["label"] = h5py.string_dtype("ascii", 6)
    f.create_dataset("group/labels", data=np.array([b"n%d" % i for i in numbers], dtype="S6"), dtype=f["label"])

    # A table as PyTables writes it: bools are bitfields of 8 bits, and some columns have axes of their own.
    columns = [(b"flag", h5t.STD_B8LE), (b"wide", h5t.STD_B32BE), (b"box", h5t.array_create(h5t.STD_I16BE, (3, 2))),
               (b"name", h5t.py_create(np.dtype("S5"))), (b"spin", h5t.array_create(h5t.IEEE_F64LE, (2,))),
               (b"raw", h5t.py_create(np.dtype("V3"))), (b"masks", h5t.array_create(h5t.STD_B8LE, (4,)))]
    kind = h5t.create(h5t.COMPOUND, sum(c.get_size() for _, c in columns))
    at = 0
    for name, column in columns:
        kind.insert(name, at, column)
        at += column.get_size()
    table = np.zeros(ROWS, dtype=[("flag", "u1"), ("wide", ">u4"), ("box", ">i2", (3, 2)), ("name", "S5"), ("spin", "<f8", (2,)), ("raw", "V3"),
                                  ("masks", "u1", (4,))])
    table["flag"] = numbers % 2
    table["wide"] = numbers * 1000003
    table["box"] = np.arange(ROWS * 6).reshape(ROWS, 3, 2) - 60
    table["name"] = [b"r%d" % (i * i * 7) for i in numbers]
    table["spin"] = numbers[:, None] / np.array([3, -5])
    table["raw"] = [bytes([i, 0, 255 - i]) for i in numbers]
    table["masks"] = np.arange(ROWS * 4).reshape(ROWS, 4)
    low_level(f, b"table", kind, table)
    low_level(f, b"packed", kind, table, chunk=6)

    mixed = f.create_dataset("mixed", (ROWS,), dtype=[("text", h5py.string_dtype()), ("list", h5py.vlen_dtype(np.dtype("<i2"))), ("n", "<i4")])
    for i in range(ROWS):
        mixed[i] = ("é" * (i % 5) + str(i), np.arange(i % 4) - i, i)
    f["nested"] = np.zeros(3, dtype=[("inner", [("x", "<f4"), ("y", "<f4")]), ("n", "<i4")])

out = {}


def sha(b):
    return hashlib.sha256(b).hexdigest()


def plain(name, kind, v):
    out[name] = [kind, len(v), sha(v.astype(v.dtype.newbyteorder("<")).tobytes()), "-"]


def varying(name, items, dtype, size):
    lengths = [len(i) // size for i in items]
    out[name] = [dtype, len(items), sha(b"".join(items)), sha(np.cumsum([0] + lengths).astype("<i8").tobytes())]


with h5py.File(os.path.join(here, "types.h5")) as f:
    for name, kind in (("bits8", "u8"), ("bits16", "u16"), ("bits32", "u32"), ("bits64", "u64"), ("group/reals", "f32"), ("group/flags", "bool"),
                       ("group/bits", "u16")):
        plain("/" + name, kind, f[name][:])
    varying("/group/labels", [bytes(v) for v in f["group/labels"][:]], "u8", 1)
    for where in ("table", "packed"):
        for field, kind in (("flag", "u8"), ("wide", "u32"), ("box", "i16"), ("spin", "f64"), ("masks", "u8")):
            plain(f'/{where}["{field}"]', kind, f[where][field])
        out[f'/{where}["raw"]'] = ["u8", ROWS, sha(f[where]["raw"].tobytes()), "-"]
        varying(f'/{where}["name"]', [bytes(v) for v in f[where]["name"]], "u8", 1)
    rows = f["mixed"][:]
    varying('/mixed["text"]', [bytes(r["text"]) for r in rows], "u8", 1)
    varying('/mixed["list"]', [r["list"].astype("<i2").tobytes() for r in rows], "i16", 2)
    plain('/mixed["n"]', "i32", rows["n"])
with open(os.path.join(here, "types.json"), "w") as f:
    json.dump(out, f, indent=1)
print(len(out), "data sets")
