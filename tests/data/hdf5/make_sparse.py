#!/usr/bin/env python3
"""Makes small files with data sets much larger than the files, with h5py 3.7 (HDF5 1.10.8): sparse.h5 (2^40 rows, of
which a single chunk of 4 was written), sparse-v110.h5 (the same with newer structures), sparse-rows.h5 (long rows),
broken.h5 (2^26 rows in a chunk that cannot be decompressed)."""
import os
import h5py, numpy as np

here = os.path.dirname(os.path.abspath(__file__))
ROWS, AT = 1 << 40, 1 << 39
table = np.dtype([("n", "i4"), ("name", "S3"), ("pair", "f4", (2,))])


def sparse(f, name, dtype, value, **more):
    f.create_dataset(name, (ROWS,), dtype, chunks=(4,), maxshape=(None,), **more)[AT] = value


with h5py.File(os.path.join(here, "sparse.h5"), "w") as f:
    sparse(f, "texts", h5py.string_dtype(), "far")
    sparse(f, "lists", h5py.vlen_dtype("i4"), [1, 2, 3])
    sparse(f, "fixed", "S5", b"far")
    sparse(f, "scaled", "i4", 7, scaleoffset=0)
    sparse(f, "table", table, (7, b"abc", [1, 2]))
with h5py.File(os.path.join(here, "sparse-v110.h5"), "w", libver=("v110", "v110")) as f:
    f.create_dataset("rows", (ROWS, 6), "i4", chunks=(4, 4), maxshape=(None, None))[AT, 1] = 7
    f.create_dataset("columns", (6, ROWS), "i4", chunks=(4, 4), maxshape=(None, None))[1, AT] = 7
    f["source"] = np.arange(4, dtype="i4")
    layout = h5py.VirtualLayout((ROWS,), "i4")
    layout[AT:AT + 4] = h5py.VirtualSource(".", "source", (4,))
    f.create_virtual_dataset("virtual", layout)
with h5py.File(os.path.join(here, "sparse-rows.h5"), "w") as f:
    f.create_dataset("wide", (4, 1 << 22), "i4", chunks=(2, 16), scaleoffset=0, fillvalue=3)[1, 1 << 20] = 7
    f.create_dataset("large", (16, 1 << 27), "u1", chunks=(16, 16))[1, 1000] = 7
with h5py.File(os.path.join(here, "broken.h5"), "w") as f:
    for name, dtype in (("numbers", "u1"), ("fixed", "S2"), ("texts", h5py.string_dtype()), ("table", table)):
        d = f.create_dataset(name, (1 << 26,), dtype, chunks=(1 << 26,), maxshape=(None,), compression="gzip")
        d.id.write_direct_chunk((0,), b"no deflate stream")
