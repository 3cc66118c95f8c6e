#!/usr/bin/env python3
"""Sums and additions over 150 MB arrays with NumPy and torch on one thread, with the variants of bench/bench_ops.c.

usage: bench_ops.py [--secs S] [--program build/release/bench/bench_ops]

Prints lines of "kernel LIB VARIANT GB_per_s" with the median. With --program, that program also runs, before and after, and
a table follows: GB/s of each, and stoker's share of the better peer and, for sums, of the read limit.
"""
import argparse
import re
import subprocess
import time

import numpy as np
import torch

ap = argparse.ArgumentParser()
ap.add_argument("--secs", type=float, default=0.5)
ap.add_argument("--program")
args = ap.parse_args()

torch.set_num_threads(1)
torch.set_grad_enabled(False)
ROWS, COLUMNS, SIDE = 4096, 9216, 6144
rng = np.random.default_rng(0)
memory = [rng.standard_normal((ROWS, COLUMNS), dtype=np.float32) for _ in range(3)]
n = [m for m in memory]
t = [torch.from_numpy(m) for m in memory]
ns = [m.reshape(SIDE, SIDE) for m in memory]
ts = [torch.from_numpy(m) for m in ns]
n4, t4 = n[0].reshape(-1, 4), t[0].view(-1, 4)

WAYS = [  # name, arrays read and written, NumPy, torch
    ("sum all", 1, lambda: n[0].sum(), lambda: t[0].sum()),
    ("sum axis 0", 1, lambda: n[0].sum(0), lambda: t[0].sum(0)),
    ("sum axis 1", 1, lambda: n[0].sum(1), lambda: t[0].sum(1)),
    ("sum all of .T", 1, lambda: n[0].T.sum(), lambda: t[0].t().sum()),
    ("sum axis 0 of .T", 1, lambda: n[0].T.sum(0), lambda: t[0].t().sum(0)),
    ("sum axis 1 of .T", 1, lambda: n[0].T.sum(1), lambda: t[0].t().sum(1)),
    ("sum axis 0 of [,4]", 1, lambda: n4.sum(0), lambda: t4.sum(0)),
    ("sum axis 1 of [,4]", 1, lambda: n4.sum(1), lambda: t4.sum(1)),
    ("add contiguous", 3, lambda: np.add(n[0], n[1], out=n[2]), lambda: torch.add(t[0], t[1], out=t[2])),
    ("add broadcast row", 2, lambda: np.add(n[0], n[1][:1], out=n[2]), lambda: torch.add(t[0], t[1][:1], out=t[2])),
    ("add broadcast column", 2, lambda: np.add(n[0], ns[1].reshape(-1, 1)[:ROWS], out=n[2]),
     lambda: torch.add(t[0], t[1].view(-1, 1)[:ROWS], out=t[2])),
    ("add a + b.T", 3, lambda: np.add(ns[0], ns[1].T, out=ns[2]), lambda: torch.add(ts[0], ts[1].t(), out=ts[2])),
    ("add a.T + b.T", 3, lambda: np.add(ns[0].T, ns[1].T, out=ns[2]),
     lambda: torch.add(ts[0].t(), ts[1].t(), out=ts[2])),
    ("add in place", 3, lambda: np.add(n[2], n[1], out=n[2]), lambda: t[2].add_(t[1])),
    ("add fresh", 3, lambda: n[0] + n[1], lambda: t[0] + t[1]),
    ("add fresh a.T + b.T", 3, lambda: ns[0].T + ns[1].T, lambda: ts[0].t() + ts[1].t()),
]


def measure(fn):
    fn()
    times, end = [], time.perf_counter() + args.secs
    while len(times) < 3 or time.perf_counter() < end:
        t0 = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t0)
    return sorted(times)[len(times) // 2]


def program():
    text = subprocess.run([args.program, "sum", "add"], capture_output=True, text=True, check=True).stdout
    return {m[1]: float(m[2]) for m in re.finditer(r"^(?:sum|add) (.*?)\s+1\s+\d+ passes/s\s+([\d.]+) GB/s", text, re.M)}


ours = program() if args.program else {}
theirs = {}
for name, arrays, *fns in WAYS:
    for lib, fn in zip(("numpy", "torch"), fns):
        theirs[name, lib] = arrays * memory[0].nbytes / measure(fn) / 1e9
        print("kernel %s %-22s %7.2f" % (lib, name.replace(" ", "_"), theirs[name, lib]), flush=True)
if args.program:
    again = program()
    ours = {name: max(ours[name], again[name]) for name in ours}
    print("\n%-22s %8s %8s %8s %8s %8s" % ("GB/s", "stoker", "numpy", "torch", "/better", "/limit"))
    for name, *_ in WAYS:
        best = max(theirs[name, "numpy"], theirs[name, "torch"])
        share = "%8.2f" % (ours[name] / ours["limit read"]) if name.startswith("sum") else ""
        print("%-22s %8.2f %8.2f %8.2f %8.2f %s" % (name, ours[name], theirs[name, "numpy"], theirs[name, "torch"],
                                                    ours[name] / best, share))
