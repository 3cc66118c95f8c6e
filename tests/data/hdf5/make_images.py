#!/usr/bin/env python3
"""Makes images.h5 with h5py: twelve copies of voc-mask.png, as rows of uint8, as opaque values and as lists.

    pip install h5py numpy"""
import pathlib

import h5py
import numpy as np

here = pathlib.Path(__file__).parent
mask = (here.parent / "voc-mask.png").read_bytes()
padded = mask.ljust(900, b"\0")
with h5py.File(here / "images.h5", "w", libver="earliest", track_order=False) as f:
    f["rows"] = np.frombuffer(padded * 12, np.uint8).reshape(12, 900)
    f["opaque"] = np.array([np.void(padded)] * 12)
    vlen = f.create_dataset("vlen", (12,), dtype=h5py.vlen_dtype(np.uint8))
    for i in range(12):
        vlen[i] = np.frombuffer(mask, np.uint8)
