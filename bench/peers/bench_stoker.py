#!/usr/bin/env python3
"""Runs loadbench on the workloads of the peers and prints the result in the same format, so that summarize.py can put all of
them into one table.

usage: bench_stoker.py DATA [--secs 3] [--runs 3] [--only W2-f32,...] [--all] [--list] [--wait S] [--loadbench PROGRAM]

Each configuration is a config of configs/; --all also tries other numbers of workers. The program is --loadbench, the
environment variable LOADBENCH, or build/release/loadbench. Needs no packages.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCKS = ["loader.order=block", "loader.block_window=1"]
# workload: config, assignments
PLAN = {
    "W1": ("w1", []),
    "W2-f32": ("w2-f32", []),
    "W2-bf16": ("w2-bf16", []),
    "W2-f16": ("w2-f16", []),
    "W2-i8": ("w2-i8", []),
    "W2-u8": ("w2-u8", []),
    "W3": ("w3", []),
    "W4-contig-row": ("w4-contig", []),
    "W4-contig-blk": ("w4-contig", BLOCKS),
    "W4-chunk-row": ("w4-chunk", []),
    "W4-chunk-blk": ("w4-chunk", BLOCKS),
    "W4-gzip-row": ("w4-gzip", ["loader.order=random"]),
    "W4-gzip-blk": ("w4-gzip", []),
    "W4-img": ("w4-img", []),
    "W5": ("w5-train", []),
    "W5-decode": ("w5-decode", []),
    "W6": ("w6", []),
}


def busy():
    """CPU seconds used so far by all programs together."""
    with open("/proc/stat") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_quiet(limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        before = busy()
        time.sleep(1)
        if busy() - before < 0.15:
            return


def measure(loadbench, data, workload, workers, secs, runs):
    config, sets = PLAN[workload]
    command = [loadbench, os.path.join(ROOT, "configs", config + ".yaml"), "--format=json", "--set=bench.limit=false",
               "--set=bench.ramp=1s", "--set=bench.run_time=%gs" % secs, "--set=bench.repeats=%d" % runs,
               "--set=loader.num_workers=%d" % workers] + ["--set=" + s for s in sets]
    out = subprocess.run(command, env=dict(os.environ, STOKER_BENCH_DATA=data), capture_output=True, text=True)
    if out.returncode:
        return None, out.stderr.strip()
    result = json.loads(out.stdout)
    return result, result["others"].get("used_processor_count", float("nan"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("data")
    ap.add_argument("--secs", type=float, default=3)
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--only", default="")
    ap.add_argument("--all", action="store_true")
    ap.add_argument("--best", action="store_true")  # each workload has only one configuration
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--wait", type=float, default=120)
    ap.add_argument("--loadbench", default=os.environ.get("LOADBENCH", os.path.join(ROOT, "build", "release", "loadbench")))
    a = ap.parse_args()
    pick = [p for p in a.only.split(",") if p]
    failed = False
    for workload in PLAN:
        for workers in (0, 1, 2) if a.all else (2,):
            name = "w%d" % workers
            if pick and not any((workload + "/" + name).startswith(p) for p in pick):
                continue
            if a.list:
                print(workload + "/" + name)
                continue
            wait_quiet(a.wait)
            result, others = measure(a.loadbench, os.path.abspath(a.data), workload, workers, a.secs, a.runs)
            if result is None:
                print("# FAILED stoker %s %s: %s" % (workload, name, others[-300:]), flush=True)
                failed = True
                continue
            r = result["result"]
            print("stoker %s %s %.1f %.1f" % (workload, name, r["samples_per_s"]["median"], r["batch_mb_per_s"]["median"]), flush=True)
            print("#   runs %s, spread %.1f %%, others %.2f cores, %.1f %% of the data in memory before%s" % (
                " ".join("%.0f" % x["samples_per_s"] for x in result["runs"]), r["samples_per_s"]["spread_percent"], others,
                result["runs"][0]["cache_before"].get("resident_percent", float("nan")),
                "" if others <= 0.15 else " NOISY"), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
