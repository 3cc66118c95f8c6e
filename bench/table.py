#!/usr/bin/env python3
"""Prints the results of bench/run as tables.

usage: table.py OUT

Each figure is the median of loadbench's repeats. `limit` is the fastest loop of
that kind in bench/peers/limits.c with two threads, as the mean of the runs
before and after the group of workloads; `rotated` is the same loop in
bench_convert, into the rows of four batches in rotation. Ratios are reliable
only on a quiet machine, so the tables include the spread of the repeats and the
drift of the limit.
"""
import json
import os
import re
import sys

# workload, group, name of the limit, bytes of a row if the limit is in GB/s, target ratio
PLAN = [
    ("w2-f32", "w2", "w2_norm_f32_nchw", 0, 0.95),
    ("w2-bf16", "w2", None, 0, 0.95),
    ("w2-f16", "w2", None, 0, 0.95),
    ("w2-i8", "w2", "w2_gather_150KB_rows", 150528, 0.85),
    ("w2-u8", "w2", "w2_gather_150KB_rows", 150528, 0.95),
    ("w1", "w1", "w1_norm_f32_nchw_blocked", 0, 0.80),
    ("w3", "w3", "w3_gather_2KiB_rows", 2048, 0.85),
    ("w6", "w6", "w6_windows_u16_to_i64", 0, 0.80),
    ("w6-i32", "w6", "w6_windows_u16_to_i64", 0, 0.80),
]


def read_lines(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return f.read().splitlines()


def limit(folder, group, prefix, row_bytes):
    """Rows per second (the mean of before and after) and drift in percent of the fastest loop whose name starts with `prefix`."""
    rates = []
    for when in ("before", "after"):
        found = []
        for line in read_lines(folder, "limits-%s.%s.txt" % (group, when)):
            m = re.match(r"limit +(\S+) +2 +([\d.]+) +(\S+)", line)
            if m and m.group(1).startswith(prefix):
                if m.group(3) in ("rows/s", "images/s", "windows/s"):
                    found.append(float(m.group(2)))
                elif m.group(3) == "GB/s" and row_bytes:
                    found.append(float(m.group(2)) * 1e9 / row_bytes)
        if found:
            rates.append(max(found))
    if not rates:
        return 0, 0
    mean = sum(rates) / len(rates)
    return mean, 100 * (max(rates) - min(rates)) / mean


def rotated(folder, group, prefix):
    found = []
    for line in read_lines(folder, "rotated-%s.txt" % group):
        m = re.match(r"%s (\S+) rotated +2 +([\d.]+) rows/s" % group, line)
        if m and m.group(1).startswith(prefix):
            found.append(float(m.group(2)))
    return max(found, default=0)


class Result:
    def __init__(self, folder, name):
        path = os.path.join(folder, name + ".json")
        self.there = os.path.exists(path) and os.path.getsize(path) > 0
        if not self.there:
            return
        with open(path) as f:
            j = json.load(f)
        self.rate = j["result"]["samples_per_s"]["median"]
        self.spread = j["result"]["samples_per_s"]["spread_percent"]
        self.moved = j["result"]["moved_bytes_per_s"]["median"]
        self.batches = j["result"]["batches_per_s"]["median"]
        self.gather = j["limit"]["gather_bytes_per_s"]["median"]
        self.share = j["limit"]["share_of_gather_percent"]["median"]
        self.machine = "%s, %d cores, %s" % (j["machine"]["cpu"], j["machine"]["cores_allowed"], j["machine"]["kernel"])
        self.kernel = j["data"]["fields"][0]["kernel"]


def torch_rates(folder):
    rates = {}
    for line in read_lines(folder, "torch.txt"):
        word = line.split()
        if len(word) == 5 and word[0] == "torch":
            rates[word[1].lower()] = max(float(word[3]), rates.get(word[1].lower(), 0))
    return rates


def whole(value):
    return "%.0f" % value if value else "-"


def ratio(part, other):
    return "%.2f" % (part / other) if other else "-"


def show(rows):
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))).rstrip())


def show_workloads(folder):
    torch, f32 = torch_rates(folder), Result(folder, "w2-f32")
    rows = [("work", "samples/s", "spread", "GB/s moved", "of gather", "cached", "streaming", "limit", "drift", "ratio",
             "wanted", "rotated", "ratio", "torch", "ratio")]
    for name, group, prefix, row_bytes, wanted in PLAN:
        r = Result(folder, name)
        if not r.there:
            continue
        others = [Result(folder, name + "." + s) for s in ("cached", "streaming")]
        if prefix:
            there, drift = limit(folder, group, prefix, row_bytes)
            turn = rotated(folder, group, prefix)
            against = whole(there), "%.0f %%" % drift, ratio(r.rate, there)
        else: # compares the bytes read and written with those of w2-f32
            turn = 0
            against = "w2-f32's bytes", "-", ratio(r.moved, f32.moved if f32.there else 0)
        peer = torch.get(name, 0)
        rows.append((name, whole(r.rate), "%.1f %%" % r.spread, "%.2f" % (r.moved / 1e9), "%.0f %%" % r.share,
                     *(whole(o.rate) if o.there else "-" for o in others), *against, "%.2f" % wanted, whole(turn),
                     ratio(r.rate, turn), whole(peer), ratio(r.rate, peer)))
    show(rows)


def show_workers(folder):
    rows = [("work", "0 workers", "1 worker", "2 workers", "1 : 0", "2 : 1")]
    for name in ("w1", "w2-f32", "w3"):
        r = [Result(folder, name + end) for end in (".workers0", ".workers1", "")]
        if all(x.there for x in r):
            rows.append((name, *(whole(x.rate) for x in r), ratio(r[1].rate, r[0].rate), ratio(r[2].rate, r[1].rate)))
    if len(rows) > 1:
        print()
        show(rows)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    folder = sys.argv[1]
    show_workloads(folder)
    show_workers(folder)
    r = Result(folder, "synthetic")
    if r.there:
        batch, fill = 1e6 / r.batches, 1e6 * 2 * 32768 / r.gather
        print("\nhand-over: %.2f us per batch of 32 x 1 KiB with one worker, minus %.2f us for the same copies in a plain loop:"
              " %.2f us (target: below 10)" % (batch, fill, batch - fill))
    there = [r for r in (Result(folder, p[0]) for p in PLAN) if r.there]
    if there:
        print("\n%s; %s" % (there[0].machine, there[0].kernel))


if __name__ == "__main__":
    main()
