#!/usr/bin/env python3
"""Computes NumPy's statistics of the arrays that test_stats_tally.c also generates, and compares torch's observers with
them if torch is installed.

    stats_golden.py > stats_golden.h
"""
import math
from fractions import Fraction

import numpy as np

try:
    import torch
except ImportError:
    torch = None

MASK = (1 << 64) - 1


def words(n):
    out, state = [], 1
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        out.append(state)
    return out


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def values(dtype, n, offset, scale, strange):
    w = words(n)
    if dtype[0] in "iu":
        bits = int(dtype[1:])
        v = [x >> (64 - bits) for x in w]
        if dtype[0] == "i":
            v = [x - (1 << bits) if x >> (bits - 1) else x for x in v]
        return np.array(v, dtype={"u": "uint", "i": "int"}[dtype[0]] + str(bits))
    # The cube of a uniform number: many small values and few large ones.
    v = np.array([(((x >> 33) % 20001) - 10000) / 8192.0 for x in w])
    v = v * v * v * scale + offset
    v = bf16(v) if dtype == "bf16" else v.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
    if strange:
        v[5::97] = np.nan
        v[6::97] = np.inf
        v[7::97] = -np.inf
        v[8::97] = 0
    return v


def exact(v):
    if v.dtype.kind in "iu":
        v = [int(x) for x in v]
        mean = Fraction(sum(v), len(v))
        return float(mean), math.sqrt(Fraction(sum(x * x for x in v), len(v)) - mean * mean)
    f = [Fraction(float(x)) for x in v]
    mean = sum(f) / len(f)
    var = sum((x - mean) ** 2 for x in f) / len(f)
    # square root of a fraction that may not fit in a double
    shift = (var.numerator.bit_length() - var.denominator.bit_length()) // 2
    return float(mean), math.ldexp(math.sqrt(var / Fraction(4) ** shift), shift) if var else 0.0


def parameters(low, high, qtype, symmetric):
    qmin, qmax = (-128, 127) if qtype == "int8" else (0, 255)
    low, high = np.float32(min(low, 0)), np.float32(max(high, 0))
    tiny = np.float32(2.0**-23)
    if symmetric:
        return max(np.float32(max(-low, high) / np.float32((qmax - qmin) / 2)), tiny), 128 if qtype == "uint8" else 0
    scale = max(np.float32((high - low) / np.float32(qmax - qmin)), tiny)
    return scale, int(np.clip(qmin - np.rint(low / scale), qmin, qmax))


def error(v, counts, low, high, qtype, symmetric):
    qmin, qmax = (-128, 127) if qtype == "int8" else (0, 255)
    scale, zero = parameters(low, high, qtype, symmetric)
    q = np.clip(np.rint(v.astype(np.float32) * (np.float32(1) / scale)).astype(np.float64) + zero, qmin, qmax)
    return float(np.sum(counts * (v - (q - zero) * float(scale)) ** 2))


def mse(v, qtype, symmetric):
    """The search described in docs/reference/statistics.md, on the values themselves."""
    v, counts = np.unique(v.astype(np.float64), return_counts=True)
    low, high = min(v[0], 0), max(v[-1], 0)
    if symmetric:
        high = max(-low, high)
        low = -high
    best = [error(v, counts, low, high, qtype, symmetric), low, high]

    def attempt(l, h):
        e = error(v, counts, l, h, qtype, symmetric)
        if e < best[0]:
            best[:] = [e, l, h]

    def shrink(lows, highs):
        fl, fh = best[1:]
        wide, narrow, before = 1.0, 2 ** (-1 / 16), best[0]
        for j in range(1, 160):
            f = 2 ** (-j / 16)
            attempt(fl * f if lows else fl, fh * f if highs else fh)
            if best[0] < before:
                before, wide, narrow = best[0], 2 ** (-(j - 1) / 16), 2 ** (-(j + 1) / 16)
        for i in range(1, 32):
            f = wide + (narrow - wide) * (i / 32)
            attempt(fl * f if lows else fl, fh * f if highs else fh)

    shrink(True, True)
    if not symmetric:
        shrink(False, True)
        shrink(True, False)
    return best[1], best[2], best[0] / counts.sum()


def percentile(v, p, symmetric):
    v = v.astype(np.float64)
    if symmetric:
        t = np.percentile(np.abs(v), p)
        return -t, t
    rest = (100 - p) / 2
    return np.percentile(v, rest), np.percentile(v, 100 - rest)


def ask_torch(v, low, high, qtype, symmetric):
    """MinMaxObserver must give the same parameters."""
    if torch is None:
        return
    from torch.ao.quantization.observer import MinMaxObserver

    o = MinMaxObserver(
        dtype=torch.qint8 if qtype == "int8" else torch.quint8,
        qscheme=torch.per_tensor_symmetric if symmetric else torch.per_tensor_affine,
        eps=2.0**-23,
    )
    o(torch.from_numpy(v.astype(np.float32)))
    scale, zero = o.calculate_qparams()
    ours = parameters(low, high, qtype, symmetric)
    assert np.float32(scale.item()) == ours[0] and zero.item() == ours[1], (scale, zero, ours)


def number(x):
    return float(x).hex()


#        dtype, rows, outer, channels, inner, offset, scale, strange
CASES = [
    ("u8", 37, 5, 3, 1, 0, 0, 0),
    ("u8", 3, 1, 1, 20000, 0, 0, 0),
    ("i8", 41, 1, 3, 7, 0, 0, 0),
    ("u16", 9, 1, 1, 333, 0, 0, 0),
    ("i16", 19, 4, 4, 3, 0, 0, 0),
    ("u32", 11, 1, 2, 400, 0, 0, 0),
    ("i32", 5000, 1, 1, 1, 0, 0, 0),
    ("u64", 11, 7, 3, 1, 0, 0, 0),
    ("i64", 100, 1, 1, 13, 0, 0, 0),
    ("f16", 40, 1, 3, 25, 3, 10, 1),
    ("f16", 4, 300, 1, 1, 0, 100, 0),
    ("bf16", 30, 9, 3, 1, -1, 50, 1),
    ("f32", 50, 1, 1, 101, 0.5, 2, 0),
    ("f32", 3, 1, 1, 9000, -7, 3, 1),
    ("f32", 60, 33, 3, 1, 0, 1, 1),
    ("f32", 7, 1, 5, 4099, 0, 1e20, 0),
    ("f32", 20, 1, 3, 49, 16777216, 64, 0),
    ("f64", 12, 1, 1, 1000, 1e9, 1e-3, 0),
    ("f64", 9, 1, 1, 800, 0, 1e300, 1),
    ("f64", 9, 1, 3, 50, 0, 1e-300, 0),
    ("f64", 5, 1, 1, 1000, 1e300, 1e290, 0),
]
EXACT = {"u8", "i8", "u16", "i16", "f16", "bf16"}


def main():
    print("/* stats_golden.h: made by stats_golden.py (NumPy %s%s). */" % (
        np.__version__, ", torch %s" % torch.__version__.split("+")[0] if torch else ""))
    print("#include \"stats_make.h\"\n\n/* clang-format off */")
    print("static const golden_numbers numbers[] = {")
    cases, n, quants, histograms = [], 0, [], []
    for dtype, rows, outer, channels, inner, offset, scale, strange in CASES:
        v = values(dtype, rows * outer * channels * inner, offset, scale, strange)
        a = v.reshape(rows, outer, channels, inner)
        first = n
        for c in list(range(channels)) + [-1]:
            x = a.ravel() if c < 0 else a[:, :, c, :].ravel()
            finite = x[np.isfinite(x)]
            mean, std = exact(finite)
            print("    {%d, %d, {%d, %d}, %d, %s, %s, %s, %s}," % (
                finite.size, np.isnan(x).sum(), (x == -np.inf).sum(), (x == np.inf).sum(), (finite == 0).sum(),
                number(mean), number(std), number(finite.min()), number(finite.max())))
            n += 1
        x = a.ravel()
        finite = x[np.isfinite(x)]
        q = len(quants)
        if abs(finite.astype(np.float64)).max() < 1e30:
            for qtype in ("int8", "uint8"):
                for symmetric in (1, 0):
                    for method in ("minmax", "percentile", "mse"):
                        low, high = float(finite.min()), float(finite.max())
                        if method == "minmax":
                            ask_torch(finite, low, high, qtype, symmetric)
                        elif method == "percentile":
                            low, high = percentile(finite, 99.5, symmetric)
                        else:
                            low, high, _ = mse(finite, qtype, symmetric)
                        s, z = parameters(low, high, qtype, symmetric)
                        u, counts = np.unique(finite.astype(np.float64), return_counts=True)
                        e = error(u, counts, low, high, qtype, symmetric) / finite.size
                        quants.append("    {\"%s\", %d, \"%s\", %s, %d, %s, %s, %s}," % (
                            qtype, symmetric, method, number(s), z, number(low), number(high), number(e)))
        if dtype in EXACT:
            counts, _ = np.histogram(finite.astype(np.float64), bins=10, range=(float(finite.min()), float(finite.max())))
            histograms.append("    {%s}," % ", ".join(map(str, counts)))
        cases.append("    {\"%s\", %d, %d, %d, %d, %s, %s, %d, %d, %d, %d, %d}," % (
            dtype, rows, outer, channels, inner, number(offset), number(scale), strange, first, q, len(quants) - q,
            len(histograms) - 1 if dtype in EXACT else -1))
    print("};")
    print("static const golden_quant quants[] = {\n%s\n};" % "\n".join(quants))
    print("static const int64_t histograms[][10] = {\n%s\n};" % "\n".join(histograms))
    print("static const golden_case cases[] = {\n%s\n};" % "\n".join(cases))


main()
