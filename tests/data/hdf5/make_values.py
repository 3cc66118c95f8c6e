#!/usr/bin/env python3
"""Makes values.h5 with h5py 3.16 (HDF5 2.0, libver earliest): strings, lists and fields of compound types. values.json
describes what h5py reads from it: name: [dtype, samples, SHA-256 of all values, of all offsets (or "-")]."""
import hashlib, json, os
import h5py, numpy as np

here = os.path.dirname(os.path.abspath(__file__))
texts = ["cat", "dog", "", "Käse", "a longer text\nof two lines", " blanks ", "日本"] * 40
with h5py.File(os.path.join(here, "values.h5"), "w", libver=("earliest", "v108")) as f:
    f.create_dataset("string", data=texts, dtype=h5py.string_dtype())
    f.create_dataset("chunked", data=texts, dtype=h5py.string_dtype(), chunks=(16,), compression="gzip")
    f.create_dataset("labels", data=["dog", "cat", "Käse"] * 20, dtype=h5py.string_dtype())
    f["fixed"] = np.array([t.encode() for t in texts], dtype="S40")  # padded with NULs
    space = h5py.h5t.C_S1.copy(); space.set_size(8); space.set_strpad(h5py.h5t.STR_SPACEPAD)
    d = h5py.h5d.create(f.id, b"spaces", space, h5py.h5s.create_simple((4,)))
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab      ", b"        ", b"12345678", b" x      "], dtype="S8"), mtype=space)
    ragged = f.create_dataset("ragged", (50,), dtype=h5py.vlen_dtype(np.dtype("<i4")))
    for i in range(50):
        ragged[i] = np.arange(i % 7) * 1000 - i
    reals = f.create_dataset("reals", (20,), dtype=h5py.vlen_dtype(np.float64), chunks=(4,))
    for i in range(20):
        reals[i] = np.arange(i) / 3
    coded = f.create_dataset("bytes", (5,), dtype=h5py.vlen_dtype(np.uint8))
    for i in range(5):
        coded[i] = np.frombuffer(bytes(range(i * 3)), dtype=np.uint8)
    f["opaque"] = np.array([bytes([i] * 6) for i in range(9)], dtype="V6")
    table = np.zeros(30, dtype=[("x", "<f4"), ("count", ">i8"), ("name", "S4"), ("flag", "?"), ("half", "<f2")])
    table["x"] = np.arange(30) / 7; table["count"] = -np.arange(30); table["flag"] = np.arange(30) % 3 == 0; table["half"] = np.arange(30) / 2
    f["table"] = table
    f.create_dataset("group/packed", data=table, chunks=(7,), compression="gzip")

out = {}


def sha(b):
    return hashlib.sha256(b).hexdigest()


def varying(name, items, dtype, size):
    lengths = [len(i) // size for i in items]
    out[name] = [dtype, len(items), sha(b"".join(items)), sha(np.cumsum([0] + lengths).astype("<i8").tobytes())]


with h5py.File(os.path.join(here, "values.h5")) as f:
    for name in ("string", "chunked", "fixed", "labels"):
        varying("/" + name, [bytes(v) for v in f[name][:]], "u8", 1)
    varying("/spaces", [bytes(v).rstrip(b" ") for v in f["spaces"][:]], "u8", 1)
    varying("/ragged", [v.astype("<i4").tobytes() for v in f["ragged"][:]], "i32", 4)
    varying("/reals", [v.astype("<f8").tobytes() for v in f["reals"][:]], "f64", 8)
    varying("/bytes", [v.tobytes() for v in f["bytes"][:]], "u8", 1)
    out["/opaque"] = ["u8", 9, sha(f["opaque"][:].tobytes()), "-"]
    for where in ("table", "group/packed"):
        for field, kind in (("x", "f32"), ("count", "i64"), ("flag", "bool"), ("half", "f16")):
            v = f[where][field]
            out[f'/{where}["{field}"]'] = [kind, len(v), sha(v.astype(v.dtype.newbyteorder("<")).tobytes()), "-"]
with open(os.path.join(here, "values.json"), "w") as f:
    json.dump(out, f, indent=1)
print(len(out), "data sets")
