#!/usr/bin/env python3
"""Reads the files in this folder with the libraries that define their formats. Exit status 1: a value is wrong.
Libraries that are not installed are named and skipped."""
import io
import os
import struct
import sys
import tarfile

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

# The archive: member by member, and byte by byte if this Python writes the same headers as stoker.
members = [
    ("0/000000000.jpg", b"abc"),
    ("0/000000000.cls", b"7"),
    ("0/000000001.jpg", b"1" * 600),
    ("0/000000001.cls", b"-12"),
    ("k" * 96 + ".npy", b""),
    ("k" * 97 + ".npy", b"x" * 512),
    ("größe/bild.seg.png", bytes(range(256))),
    ("l" * 300 + "/m.txt", b"long"),
]
path = os.path.join(here, "samples.tar")
with tarfile.open(path) as f:
    found = [(m.name, f.extractfile(m).read(), m.mtime, m.uid, m.gid, m.mode, m.uname) for m in f]
if found != [(n, b, 0, 0, 0, 0o644, "") for n, b in members]:
    print(f"tarfile: found {found}")
    failed = 1
if sys.version_info >= (3, 11):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as f:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            f.addfile(info, io.BytesIO(data))
    if made.getvalue() != open(path, "rb").read():
        print("tarfile: writes other bytes than samples.tar")
        failed = 1

# Token files, assembled from the descriptions of the formats.
documents = [[1, 2, 3], [], [65535, 0], list(range(50))]
flat = [t for d in documents for t in d]
u16, u32 = struct.pack(f"<{len(flat)}H", *flat), struct.pack(f"<{len(flat)}I", *flat)
starts = [2 * sum(map(len, documents[:i])) for i in range(len(documents))]
index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(documents), len(documents) + 1)
index += struct.pack(f"<{len(documents)}i", *map(len, documents))
index += struct.pack(f"<{len(documents)}q", *starts)
index += struct.pack(f"<{len(documents) + 1}q", *range(len(documents) + 1))
for name, want in (
    ("llmc_u16.bin", struct.pack("<3i", 20240520, 1, len(flat)) + bytes(1012) + u16),
    ("llmc_u32.bin", struct.pack("<3i", 20240801, 7, len(flat)) + bytes(1012) + u32),
    ("raw_u16.bin", u16),
    ("megatron.bin", u16),
    ("megatron.idx", index),
):
    if open(os.path.join(here, name), "rb").read() != want:
        print(f"tokens: {name}: other bytes")
        failed = 1
sys.exit(failed)
