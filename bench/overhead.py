#!/usr/bin/env python3
"""Measures the overhead of loadbench and the repeatability of its results, with samples of a synthetic source, which are in
memory, and a consumer that only counts them.

usage: overhead.py [--build=build/release] [--runs=7] [--seconds=2] [--workers=0]

Each run is a separate process with one repeat. Prints loadbench's own time per batch (the elapsed time outside of calls to
the loader, the consumer and releases), the cost of reading the clock, and how much the runs differ. Exit status 1:
loadbench's own time is at least 1 us per batch, or the middle half of the runs differs by more than 2 %. Run nothing
else at the same time.
"""
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def option(name, default):
    for a in sys.argv[1:]:
        if a.startswith("--%s=" % name):
            return a.split("=", 1)[1]
    return default


def run(loadbench, seconds, workers):
    out = subprocess.run([loadbench, os.path.join(ROOT, "configs", "synthetic.yaml"), "--format=json",
                          "--set=bench.run_time=%ss" % seconds, "--set=bench.ramp=0.5s", "--set=bench.repeats=1",
                          "--set=bench.limit=false", "--set=loader.num_workers=%s" % workers],
                         capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def main():
    if any(a in ("-h", "--help") or not a.startswith("--") for a in sys.argv[1:]):
        sys.exit(__doc__)
    loadbench = os.path.join(os.path.abspath(option("build", os.path.join(ROOT, "build", "release"))), "loadbench")
    seconds, workers, runs = option("seconds", "2"), option("workers", "0"), int(option("runs", "7"))
    results = [run(loadbench, seconds, workers) for _ in range(runs)]
    rates = sorted(j["result"]["samples_per_s"]["median"] for j in results)
    own = statistics.median(j["runs"][0]["own_ns"] / j["runs"][0]["batch_count"] for j in results)
    batch = statistics.median(j["runs"][0]["elapsed_ns"] / j["runs"][0]["batch_count"] for j in results)
    clock = statistics.median(j["timer"]["reading_ns"] for j in results)
    quarter = len(rates) // 4
    middle = rates[quarter:len(rates) - quarter]
    apart, whole = 100 * (middle[-1] / middle[0] - 1), 100 * (rates[-1] / rates[0] - 1)
    states = [j["runs"][0]["steady"]["state"] for j in results]
    print("clock          %.0f ns per reading, four readings per batch; resolution %d ns" %
          (clock, min(j["timer"]["resolution_ns"] for j in results)))
    print("loadbench      %.0f ns of overhead per batch, of %.2f us in total (%s workers)" % (own, batch / 1e3, workers))
    print("runs           %d of %s s: median %.0f samples/s, the middle half within %.2f %%, all within %.2f %%; steady: %s" %
          (runs, seconds, statistics.median(rates), apart, whole, ", ".join("%d %s" % (states.count(s), s) for s in sorted(set(states)))))
    print("allocations    %d while measured" % max(j["runs"][0]["usage"]["allocation_count"] for j in results))
    return 1 if own >= 1000 or apart > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
