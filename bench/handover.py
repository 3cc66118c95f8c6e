#!/usr/bin/env python3
"""Measures what it costs to hand batches from workers to the consumer. Each round runs loadbench with num_workers 0, with two
workers, and as two processes with num_workers 0 at the same time, which is what the machine can give. Prints medians over rounds.

usage: handover.py DATA [--rounds=7] [--only=digits,...] [--build=build/release] [--seconds=0.3]

Runs under `chrt -f 60` where that is allowed. DATA is created by bench/run.
"""
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# row of the table: config and further settings
PLAN = {
    "digits, counts": ("digits", []),
    "digits, touches": ("digits", ["bench.consumer=touch"]),
    "w3, counts": ("w3", []),
    "w3, touches": ("w3", ["bench.consumer=touch"]),
    "w1, counts": ("w1", []),
    "w1, steps of 150 µs": ("w1", ["bench.step=150us"]),
    "w2-f32, steps of 4.4 ms": ("w2-f32", ["bench.step=4.4ms", "loader.batch_size=512"]),
}


def option(name, default):
    return next((a.split("=", 1)[1] for a in sys.argv[2:] if a.startswith("--%s=" % name)), default)


def start(data, config, sets):
    seconds = option("seconds", "0.3")
    command = [os.path.join(option("build", os.path.join(ROOT, "build", "release")), "loadbench"),
               os.path.join(ROOT, "configs", config + ".yaml"), "--format=json", "--set=bench.run_time=%ss" % seconds,
               "--set=bench.ramp=0.2s", "--set=bench.repeats=1", "--set=bench.cache=warm"] + ["--set=" + s for s in sets]
    if subprocess.run(["chrt", "-f", "60", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        command = ["chrt", "-f", "60"] + command
    return subprocess.Popen(command, env=dict(os.environ, STOKER_BENCH_DATA=data), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def result(process):
    out = process.communicate()[0]
    if process.returncode != 0:
        sys.exit("handover.py: loadbench failed with status %d" % process.returncode)
    return json.loads(out)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    data = os.path.abspath(sys.argv[1])
    print("%-24s %12s %12s  %-22s %-12s %s" % ("", "0 workers", "2 workers", "ratio", "CPU s/GB", "two processes"))
    for name, (config, sets) in PLAN.items():
        if not any(name.startswith(wanted) for wanted in option("only", "d,w").split(",")):
            continue
        rates, cpu, ratios, both = {0: [], 2: []}, {0: [], 2: []}, [], []
        for _ in range(int(option("rounds", "7"))):
            for workers in (0, 2):
                r = result(start(data, config, sets + ["loader.num_workers=%d" % workers]))["result"]
                rates[workers].append(r["samples_per_s"]["median"])
                cpu[workers].append(r["cpu_s_per_gb"]["median"])
            ratios.append(rates[2][-1] / rates[0][-1])
            pair = [start(data, config, sets + ["loader.num_workers=0"]) for _ in range(2)]
            both.append(sum(result(p)["result"]["samples_per_s"]["median"] for p in pair) / rates[0][-1])
        print("%-24s %12.4g %12.4g  %4.2f (%.2f to %.2f)    %.3f %.3f  %4.2f (%.2f to %.2f)" %
              (name, statistics.median(rates[0]), statistics.median(rates[2]), statistics.median(ratios), min(ratios), max(ratios),
               statistics.median(cpu[0]), statistics.median(cpu[2]), statistics.median(both), min(both), max(both)), flush=True)


main()
