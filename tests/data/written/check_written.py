#!/usr/bin/env python3
"""Reads the files beside it with the libraries that their formats come from. Exit 1: a value is wrong; libraries that are
not installed are named and left out."""
import os
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
images = [struct.unpack("f", struct.pack("f", i / 7))[0] for i in range(24)]
images = [struct.unpack("f", struct.pack("f", x))[0] for x in images]
expected = {
    "train/images": ("float32", [2, 3, 4], None),
    "labels": ("int64", [2], [-5, 1 << 40]),
    "größe": ("uint16", [2], [1, 65535]),
    "flags": ("bool", [2], [True, False]),
    "half": ("bfloat16", [2], [1.0, -3.140625]),
    "none": ("float32", [0, 2], []),
    "number": ("float64", [], 0.1),
}
failed = 0


def check(library, name, dtype, shape, values):
    global failed
    want_dtype, want_shape, want = expected[name]
    want = want if want is not None else None
    if dtype != want_dtype or list(shape) != want_shape or (want is not None and values != want):
        print(f"{library}: {name}: found {dtype} {list(shape)} {values}")
        failed = 1
    if name == "train/images":
        flat = [x for a in values for b in a for x in b]
        if any(abs(x - i / 7) > 1e-6 for i, x in enumerate(flat)):
            print(f"{library}: {name}: wrong values")
            failed = 1


def whole(library, names):
    global failed
    if set(names) != set(expected) - ({"half"} if library == "numpy" else set()):
        print(f"{library}: found {sorted(names)}")
        failed = 1


try:
    import numpy

    with numpy.load(os.path.join(here, "arrays.npz"), allow_pickle=False) as f:
        whole("numpy", f.files)
        for n in f.files:
            check("numpy", n, str(f[n].dtype), f[n].shape, f[n].tolist())
except ImportError:
    print("numpy is not installed")
try:
    import torch

    for mmap in (False, True):
        f = torch.load(os.path.join(here, "arrays.pt"), weights_only=True, mmap=mmap)
        whole("torch", f)
        for n, t in f.items():
            check("torch", n, str(t.dtype).replace("torch.", ""), t.shape, t.tolist())
            if not t.is_contiguous() or t.data_ptr() % 64 and t.numel():
                print(f"torch: {n}: at {t.data_ptr() % 64} of 64")
                failed = failed or not t.is_contiguous()
except ImportError:
    print("torch is not installed")
try:
    import safetensors.torch

    f = safetensors.torch.load_file(os.path.join(here, "arrays.safetensors"))
    whole("safetensors", f)
    for n, t in f.items():
        check("safetensors", n, str(t.dtype).replace("torch.", ""), t.shape, t.tolist())
except ImportError:
    print("safetensors is not installed")
sys.exit(failed)
