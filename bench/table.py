#!/usr/bin/env python3
"""Print the results of bench/run as one table.

usage: table.py OUT

Each figure is a median of loadbench's repeats; each limit the mean of the two
measurements before and after them. A ratio is only worth what the machine's
quiet was worth: the spread of the repeats stands beside it.
"""
import json
import os
import re
import sys


def limits(folder):
    """Limits in units a second with two threads; the mean of the files there are."""
    found = {}
    for name in ("limits-before.txt", "limits-after.txt"):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        for line in open(path):
            m = re.match(r"limit +(\S+) +2 +([\d.]+) +(\S+)(?: +([\d.]+) +GB/s)?", line)
            if m:
                found.setdefault((m.group(1), m.group(3)), []).append(float(m.group(2)))
    return {key: sum(v) / len(v) for key, v in found.items()}


def best(found, prefix, row_bytes=0):
    """The best of the limits whose name begins so, in rows or images a second."""
    rates = [(v, n) for (n, unit), v in found.items() if n.startswith(prefix) and unit in ("rows/s", "images/s")]
    if row_bytes:
        rates += [(v * 1e9 / row_bytes, n) for (n, unit), v in found.items() if n.startswith(prefix) and unit == "GB/s"]
    return max(rates, default=(0, "-"))


class Result:
    def __init__(self, folder, name):
        path = os.path.join(folder, name + ".json")
        self.there = os.path.exists(path) and os.path.getsize(path) > 0
        if not self.there:
            return
        j = json.load(open(path))
        self.rate = j["result"]["samples_per_s"]["median"]
        self.spread = j["result"]["samples_per_s"]["spread_percent"]
        self.moved = j["result"]["moved_bytes_per_s"]["median"]
        self.batches = j["result"]["batches_per_s"]["median"]
        self.gather = j["limit"]["gather_bytes_per_s"]["median"]
        self.share = j["limit"]["share_of_gather_percent"]["median"]
        self.cpu = j["machine"]["cpu"], j["machine"]["cores_allowed"]
        self.kernel = [f["kernel"] for f in j["data"]["fields"]][0]


def torch_rates(folder):
    path = os.path.join(folder, "torch.txt")
    rates = {}
    for line in open(path) if os.path.exists(path) else ():
        word = line.split()
        if len(word) == 5 and word[0] == "torch":
            rates[word[1].lower()] = max(float(word[3]), rates.get(word[1].lower(), 0))
    return rates


def ratio(part, whole):
    return "%.2f" % (part / whole) if whole else "-"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    folder = sys.argv[1]
    found, torch = limits(folder), torch_rates(folder)
    base = Result(folder, "w2-f32")
    rows = [("work", "samples/s", "spread", "GB/s moved", "of gather", "cached", "streaming", "against", "there", "ratio",
             "wanted", "torch", "ratio")]
    plan = [
        ("w2-f32", "w2_norm_f32_nchw", 0, 0.95),
        ("w2-bf16", None, 0, 0.95),
        ("w2-f16", None, 0, 0.95),
        ("w2-i8", "w2_gather_150KB_rows", 150528, 0.85),
        ("w2-u8", "w2_gather_150KB_rows", 150528, 0.95),
        ("w1", "w1_norm_f32_nchw_blocked", 0, 0.80),
        ("w3", "w3_gather_2KiB_rows", 2048, 0.85),
    ]
    for name, prefix, row_bytes, wanted in plan:
        r = Result(folder, name)
        if not r.there:
            continue
        others = [Result(folder, name + "." + s) for s in ("cached", "streaming")]
        if prefix:
            there, against = best(found, prefix, row_bytes)
            reached, there_text = ratio(r.rate, there), "%.0f" % there
        else: # in bytes read and written, against our own f32
            against, there = "w2-f32, bytes", base.moved if base.there else 0
            reached, there_text = ratio(r.moved, there), "%.2f GB/s" % (there / 1e9)
        peer = torch.get(name, 0)
        rows.append((name, "%.0f" % r.rate, "%.1f %%" % r.spread, "%.2f" % (r.moved / 1e9), "%.0f %%" % r.share,
                     *("%.0f" % o.rate if o.there else "-" for o in others), against, there_text, reached,
                     "%.2f" % wanted, "%.0f" % peer if peer else "-", ratio(r.rate, peer)))
    show(rows)

    rows = [("work", "0 workers", "1 worker", "2 workers", "1 : 0", "2 : 1")]
    for name in ("w1", "w2-f32", "w3"):
        r = [Result(folder, name + end) for end in (".workers0", ".workers1", "")]
        if all(x.there for x in r):
            rows.append((name, *("%.0f" % x.rate for x in r), ratio(r[1].rate, r[0].rate), ratio(r[2].rate, r[1].rate)))
    if len(rows) > 1:
        print()
        show(rows)
    r = Result(folder, "synthetic")
    if r.there:
        batch, fill = 1e6 / r.batches, 1e6 * 2 * 32768 / r.gather
        print("\nhand-over: %.2f us a batch of 32 x 1 KiB with one worker, less %.2f us for the same copies in a plain loop: "
              "%.2f us (below 10 wanted)" % (batch, fill, batch - fill))
    for name in ("w2-f32", "w1", "w3", "synthetic"):
        r = Result(folder, name)
        if r.there:
            print("\n%s, %d cores; %s" % (*r.cpu, r.kernel))
            break


def show(rows):
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))).rstrip())


if __name__ == "__main__":
    main()
