#!/usr/bin/env python3
"""Measures the workloads W1 to W3 alternately with the plain loops that limit them, in short pieces, for machines whose memory
bandwidth drifts because it is shared: it drifts much less within seconds than within minutes. Each round runs the limit, the
loader, and the limit again; its ratio is the loader's rate divided by the mean of the two limits. Prints medians over rounds.

usage: paired.py DATA [--rounds=9] [--only=w2-f32,...] [--build=build/release] [--torch=PYTHON]

`limit`: the fastest plain loop of that kind, into one buffer per thread; `rotated`: into the rows of four batches in
rotation, like a ring. DATA is created by bench/run.
"""
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# workload: group and loop of bench_convert, torch's fastest configuration (bench/peers)
PLAN = {
    "w2-f32": ("w2", "w2_norm_f32_nchw_blocked_nt", "W2-f32/ring_compile_nw2"),
    "w2-bf16": ("w2", "w2_norm_bf16_nchw_blocked", "W2-bf16/ring_compile_nw2"),
    "w2-f16": ("w2", "w2_norm_bf16_nchw_blocked", None),
    "w2-i8": ("w2", "w2_gather_150KB_rows_nontemporal", "W2-i8/ring_compile_nw2"),
    "w2-u8": ("w2", "w2_gather_150KB_rows_nontemporal", "W2-u8/threads2_eager"),
    "w1": ("w1", "w1_norm_f32_nchw_blocked", "W1/reuse_tall_nw0"),
    "w3": ("w3", "w3_gather_2KiB_rows_prefetch", "W3/loop_index_select"),
}


def option(name, default):
    for a in sys.argv[2:]:
        if a.startswith("--%s=" % name):
            return a.split("=", 1)[1]
    return default


def limits(build, data, group, loop):
    """Rows per second of the loop and of its rotated form."""
    out = subprocess.run([os.path.join(build, "bench", "bench_convert"), group, "--threads=2", "--rounds=1", "--only=" + loop],
                         cwd=data, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^%s (\S+)( rotated)? +2 +([\d.]+) rows/s" % group, out, re.M)
    plain = [float(rate) for name, rotated, rate in found if not rotated]
    rotated = [float(rate) for name, rotated, rate in found if rotated]
    return max(plain), max(rotated)


def loader(build, data, workload, *sets):
    out = subprocess.run([os.path.join(build, "loadbench"), os.path.join(ROOT, "configs", workload + ".yaml"), "--format=json",
                          "--set=bench.run_time=0.7s", "--set=bench.ramp=0.3s", "--set=bench.repeats=1",
                          "--set=bench.cache=warm"] + ["--set=" + s for s in sets],
                         env=dict(os.environ, STOKER_BENCH_DATA=data), capture_output=True, text=True, check=True).stdout
    return json.loads(out)["result"]["samples_per_s"]["median"]


def torch_rate(python, data, configuration):
    out = subprocess.run([python, "bench_torch.py", data, "--secs", "1", "--runs", "1", "--child", configuration],
                         cwd=os.path.join(ROOT, "bench", "peers"), capture_output=True, text=True).stdout
    found = re.findall(r"^RESULT (.*)$", out, re.M)
    return json.loads(found[0])[0] if found else None


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    data = os.path.abspath(sys.argv[1])
    build = os.path.abspath(option("build", os.path.join(ROOT, "build", "release")))
    python = option("torch", None)
    print("workload    rows/s    limit  ratio  (lowest to highest)  rotated  ratio" + ("    torch  ratio" if python else ""))
    for w in option("only", ",".join(PLAN)).split(","):
        group, loop, configuration = PLAN[w]
        rates, plain, rotated, ratios, rotated_ratios, peers, peer_ratios = [], [], [], [], [], [], []
        for i in range(int(option("rounds", "9"))):
            before = limits(build, data, group, loop)
            rate = loader(build, data, w)
            after = limits(build, data, group, loop)
            rates.append(rate)
            plain.append((before[0] + after[0]) / 2)
            rotated.append((before[1] + after[1]) / 2)
            ratios.append(rate / plain[-1])
            rotated_ratios.append(rate / rotated[-1])
            if python and configuration and i < 5:
                peer = torch_rate(python, data, configuration)
                if peer:
                    peers.append(peer)
                    peer_ratios.append(loader(build, data, w) / peer)
        line = "%-8s %9.0f %8.0f  %5.2f  (%4.2f to %4.2f)       %8.0f  %5.2f" % (
            w, statistics.median(rates), statistics.median(plain), statistics.median(ratios), min(ratios), max(ratios),
            statistics.median(rotated), statistics.median(rotated_ratios))
        if peers:
            line += " %8.0f  %5.2f" % (statistics.median(peers), statistics.median(peer_ratios))
        print(line, flush=True)
    print()
    for w in ("w1", "w2-f32", "w3"):
        one = {0: [], 2: []}
        for i in range(int(option("rounds", "9"))):
            single = loader(build, data, w, "loader.num_workers=1")
            for workers in one:
                one[workers].append(loader(build, data, w, "loader.num_workers=%d" % workers) / single)
        print("%-8s 1 worker / 0 workers: %.2f   2 workers / 1 worker: %.2f" % (w, 1 / statistics.median(one[0]), statistics.median(one[2])),
              flush=True)


if __name__ == "__main__":
    main()
