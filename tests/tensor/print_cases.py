#!/usr/bin/env python3
"""Writes print_cases.txt: arrays and the results of numpy.array2string (NumPy 2.4).

    python3 print_cases.py > print_cases.txt

A case is a line `case DTYPE SHAPE PRECISION THRESHOLD EDGE_ITEMS LINE_WIDTH SUPPRESS_SMALL SEPARATOR`, a line with
the elements in hex, row-major and little-endian (`arange` for 0, 1, 2, ...), the number of output lines, and these
lines. SHAPE `()` is a scalar; a space in the separator is written as `_`.
"""
import numpy as np

NAMES = {"bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
         "u64": "uint64", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
         "c128": "complex128"}
rng = np.random.default_rng(20240607)


def write(name, a, precision=8, threshold=1000, edge=3, width=75, suppress=False, sep=" ", arange=False):
    text = np.array2string(a, precision=precision, threshold=threshold, edgeitems=edge, max_line_width=width,
                           suppress_small=suppress, separator=sep).split("\n")
    shape = ",".join(map(str, a.shape)) if a.ndim else "()"
    print("case", name, shape, precision, threshold, edge, width, int(suppress), sep.replace(" ", "_"))
    print("arange" if arange else a.tobytes().hex() or "-")
    print(len(text))
    print("\n".join(text))


def random_reals(dtype, n):
    """Arrays of different kinds: few digits, many digits, wide ranges, bit patterns."""
    size = np.dtype(dtype).itemsize
    kind = rng.integers(0, 8)
    with np.errstate(all="ignore"):
        if kind == 0:
            v = rng.integers(-50, 50, n) / 4.0
        elif kind == 1:
            v = rng.normal(size=n)
        elif kind == 2:
            v = rng.normal(size=n) * 10.0 ** rng.integers(-12, 12, n)
        elif kind == 3:
            v = np.round(rng.normal(size=n) * 100, rng.integers(0, 5))
        elif kind == 4:
            v = 2.0 ** rng.integers(-140 if size > 2 else -24, 127 if size > 2 else 15, n)
        elif kind == 5:
            v = rng.choice([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 0.1, 1e5, 123456.789], n)
        elif kind == 6:
            v = np.round(rng.normal(size=n) * 10.0 ** rng.integers(0, 9), rng.integers(0, 4))
        else:
            v = np.frombuffer(rng.bytes(n * size), dtype)
        return v.astype(dtype)


def shapes():
    nd = int(rng.integers(0, 5))
    return tuple(int(x) for x in rng.integers(0 if rng.integers(0, 12) == 0 else 1, 6, nd))


# simple examples
write("f32", np.array([0.1, 0.2, 0.3], np.float32))
write("f32", np.array([[0.5, 1.5], [10.0, -2.0]], np.float32))
write("f64", np.array([1.0, np.nan, np.inf]))
write("f64", np.array([1.0, np.nan, -np.inf]))
write("f64", np.array([np.nan, np.inf]))
write("f32", np.array([1e-10, 1.2345678e10], np.float32))
write("f16", np.array([0.1, 65504, 6e-8], np.float16))
write("f64", np.array([5e-324, 1.7976931348623157e308]))
write("f64", np.array([1e100, 1.0]))
write("f64", np.array(5.0))
write("f64", np.array(-0.0))
write("bool", np.array(True))
write("bool", np.array([True, False]))
write("i64", np.array([np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max]))
write("u64", np.array([0, 2**64 - 1], np.uint64))
write("c64", np.array([1 + 2j, -0.5 - 1e-3j, np.nan + 1j], np.complex64))
write("c128", np.array([[1 + 2j, 3 - 4j], [complex(0, np.inf), -1j]]))
# powers of two, whose lower and upper neighbors are at different distances
for name, low, high in (("f16", -24, 15), ("f32", -149, 127), ("f64", -1074, 1023)):
    for start in range(low, high, 40):
        powers = np.array([2.0 ** k for k in range(start, min(start + 40, high + 1))], NAMES[name])
        write(name, powers, precision=40)
        write(name, powers[:1].reshape(()), precision=40)
# samples of all f16 bit patterns, in consecutive groups
for k in range(0, 65536, 3001):
    write("f16", np.arange(k, min(k + 6, 65536), dtype=np.uint16).view(np.float16))
# summaries and folding
for name in ("i32", "f32", "f64", "u8", "c64"):
    for shape in ((1001,), (2000,), (40, 40), (7, 8, 30), (1, 2000), (500, 3), (11, 1, 10, 10), (1000,)):
        a = np.arange(np.prod(shape)).astype(NAMES[name]).reshape(shape)
        write(name, a, arange=True)
        write(name, a, edge=int(rng.integers(1, 7)), width=int(rng.integers(20, 120)), arange=True)
        write(name, a, threshold=0, edge=2, arange=True)
for width in (1, 5, 10, 11, 12, 13, 30, 31, 32):
    write("i32", np.arange(60, dtype=np.int32).reshape(3, 20), width=width, arange=True)
    write("f64", np.arange(60, dtype=np.float64).reshape(2, 30), width=width, sep=", ", arange=True)
for sep in (",", ", ", "; ", "", "|", " - "):
    write("f32", np.arange(40, dtype=np.float32).reshape(2, 20) / 3, sep=sep)
    write("i16", np.arange(12, dtype=np.int16).reshape(2, 2, 3), sep=sep)
# random arrays
for n in range(420):
    name = rng.choice(["f16", "f32", "f64", "c64", "c128", "f32", "f64"])
    shape = shapes()
    count = int(np.prod(shape))
    if name[0] == "c":
        real = "float32" if name == "c64" else "float64"
        a = (random_reals(real, count) + np.zeros(1, NAMES[name])).reshape(shape)
        a.imag = random_reals(real, count).reshape(shape)
    else:
        a = random_reals(NAMES[name], count).reshape(shape)
    write(name, a, precision=int(rng.choice([8, 8, 8, 0, 1, 3, 12, 17])), width=int(rng.choice([75, 75, 40])),
          suppress=bool(rng.integers(0, 3) == 0), sep=str(rng.choice([" ", " ", ", "])))
for n in range(120):
    name = rng.choice(["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"])
    shape = shapes()
    count = int(np.prod(shape))
    size = np.dtype(NAMES[name]).itemsize
    a = (rng.integers(0, 2, count).astype(bool) if name == "bool" else
         np.frombuffer(rng.bytes(count * size), NAMES[name]) >> np.array(int(rng.integers(0, 8 * size)), NAMES[name]))
    write(name, a.astype(NAMES[name]).reshape(shape))
