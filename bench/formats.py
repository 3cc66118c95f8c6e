#!/usr/bin/env python3
"""The cost of each format: compares the loader on the workloads W4 and W5 with the same samples in .npy, with the codecs alone
and with other libraries, in pairs a few seconds apart (medians of the pairs' ratios; paired.py says why).

usage: formats.py DATA [--rounds=5] [--only=ROW,...] [--build=build/release] [--torch=PYTHON] [--ffcv=PYTHON]

DATA is created by bench/peers/make_data.py (w2, w4, w5) and then bench_make. PYTHON: an interpreter with the peers' packages.
"""
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def option(name, default):
    for a in sys.argv[2:]:
        if a.startswith("--%s=" % name):
            return a.split("=", 1)[1]
    return default


if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
DATA = os.path.abspath(sys.argv[1])
BUILD = os.path.abspath(option("build", os.path.join(ROOT, "build", "release")))
ROUNDS = int(option("rounds", "5"))


def loader(config, *sets, seconds=0.7):
    """Samples per second, and CPU seconds per GB delivered."""
    out = subprocess.run([os.path.join(BUILD, "loadbench"), os.path.join(ROOT, "configs", config + ".yaml"), "--format=json",
                          "--set=bench.run_time=%gs" % seconds, "--set=bench.ramp=0.3s", "--set=bench.repeats=1",
                          "--set=bench.limit=false"] + ["--set=" + s for s in sets],
                         env=dict(os.environ, STOKER_BENCH_DATA=DATA), capture_output=True, text=True)
    if out.returncode:
        sys.exit("loadbench %s: %s" % (config, out.stderr))
    result = json.loads(out.stdout)["result"]
    return result["samples_per_s"]["median"], result["cpu_s_per_gb"]["median"]


def program(name, *args, pattern):
    """The number that `pattern` matches in the output of a bench program."""
    out = subprocess.run([os.path.join(BUILD, "bench", name)] + list(args), cwd=DATA, capture_output=True, text=True)
    found = re.search(pattern, out.stdout, re.M)
    if not found:
        sys.exit("%s %s: no line like %s in\n%s%s" % (name, " ".join(args), pattern, out.stdout, out.stderr))
    return float(found.group(1))


def peer(python, script, configuration):
    """Samples per second of a configuration of bench/peers; None if PYTHON was not given."""
    python = option(python, None)
    if not python:
        return None
    out = subprocess.run([python, script, DATA, "--secs", "1", "--runs", "1", "--child", configuration],
                         cwd=os.path.join(ROOT, "bench", "peers"), capture_output=True, text=True).stdout
    found = re.findall(r"^RESULT (.*)$", out, re.M)
    return json.loads(found[0])[0] if found else None


def npy(*sets):
    return lambda: loader("w4-npy", *sets)[0]


X = "dataset.fields.x.path=" + os.path.join(DATA, "w4", "x.")
FFCV = os.path.join(DATA, "ffcv", "w2.beton")  # written by FFCV when it is first measured
BLOCKS = ("loader.order=block", "loader.block_window=1")
MIXED = ("loader.order=block", "loader.block_window=auto")

# name, config and assignments of the loader, and the measurements that it is compared with, each in the same round
ROWS = [
    ("w4-contig rows", ("w4-contig",), [("npy", npy())]),
    ("w4-contig blocks", ("w4-contig",) + BLOCKS, [("npy", npy(*BLOCKS))]),
    ("w4-chunk rows", ("w4-chunk",), [("npy", npy())]),
    ("w4-gzip blocks", ("w4-gzip",), [("inflate", lambda: program("bench_hdf5", "limit", "w4/gzip.h5", pattern=r"^limit gzip +2 +([\d.]+)")),
                                      ("h5py", lambda: peer("torch", "bench_h5py.py", "W4-gzip-blk/raw_t2")),
                                      ("mapped", lambda: peer("torch", "bench_h5py.py", "W4-gzip-blk/raw_map_deflate_t2"))]),
    ("w4-gzip mixed", ("w4-gzip",) + MIXED, [("blocks", lambda: loader("w4-gzip")[0])]),
    ("w4-img", ("w4-img",), [("inflate", lambda: program("bench_hdf5", "limit", "w4/img.h5", pattern=r"^limit img +2 +([\d.]+)")),
                             ("h5py", lambda: peer("torch", "bench_h5py.py", "W4-img/raw_t2")),
                             ("mapped", lambda: peer("torch", "bench_h5py.py", "W4-img/raw_map_deflate_t2"))]),
    ("npz stored", ("w4-npy", X + "npz"), [("npy", npy())]),
    ("safetensors", ("w4-npy", X + "safetensors"), [("npy", npy())]),
    ("pt", ("w4-npy", X + "pt"), [("npy", npy())]),
    ("beton raw", ("beton-raw",), [("npy", lambda: loader("w2-u8")[0])]),
    ("beton of ffcv", ("beton-raw", "dataset.fields.image.path=" + FFCV, "dataset.fields.label.path=" + FFCV),
     [("ffcv", lambda: peer("ffcv", "bench_ffcv.py", "W2-u8/w2"))]),
    ("w5-decode", ("w5-decode",), [("libjpeg", lambda: program("bench_jpeg", "w5/jpeg", "1", "2", pattern=r"^jpeg whole, libjpeg +2 +([\d.]+)")),
                                   ("turbojpeg", lambda: peer("torch", "bench_jpeg.py", "W5-decode/turbojpeg_t2")),
                                   ("simplejpeg", lambda: peer("torch", "bench_jpeg.py", "W5-decode/simplejpeg_t2"))]),
    ("beton jpeg", ("beton-jpeg",), [("libjpeg", lambda: program("bench_jpeg", "w5/jpeg", "1", "2", pattern=r"^jpeg whole, libjpeg +2 +([\d.]+)"))]),
    ("w5", ("w5",), [("crop", lambda: program("bench_jpeg", "w5/jpeg", "1", "2", pattern=r"^jpeg crop, libjpeg +2 +([\d.]+)")),
                     ("turbojpeg", lambda: peer("torch", "bench_jpeg.py", "W5/turbojpeg_t2"))]),
    ("w5 fast", ("w5", "dataset.fields.image.source.decode=fast"), [("w5", lambda: loader("w5", seconds=2)[0])]),
]


def main():
    only = option("only", "")
    print("%-18s %10s %9s   %s" % ("work", "samples/s", "CPU s/GB", "compared with, ratio (lowest to highest)"))
    for name, work, others in ROWS:
        if (only and name not in only.split(",")) or (name == "beton of ffcv" and not peer("ffcv", "bench_ffcv.py", "W2-u8/w2")):
            continue
        seconds = 2 if "w5" in name or "jpeg" in name else 0.7
        rates, cpu, found = [], [], {other: ([], []) for other, _ in others}
        for _ in range(ROUNDS):
            for other, measure in others:
                value = measure()
                rate, seconds_a_gb = loader(*work, seconds=seconds)
                rates.append(rate)
                cpu.append(seconds_a_gb)
                if value:
                    found[other][0].append(value)
                    found[other][1].append(rate / value)
        line = "%-18s %10.0f %9.3f" % (name, statistics.median(rates), statistics.median(cpu))
        for other, (values, ratios) in found.items():
            if ratios:
                line += "   %s %.0f: %.2f (%.2f to %.2f)" % (other, statistics.median(values), statistics.median(ratios),
                                                           min(ratios), max(ratios))
        print(line, flush=True)
    for name, work in (("w4-gzip", "w4-gzip"), ("w4-img", "w4-img"), ("w5-decode", "w5-decode")):
        if not only or name in only.split(","):
            ratios = [loader(work)[0] / loader(work, "loader.num_workers=1")[0] for _ in range(ROUNDS)]
            print("%-18s 2 workers / 1 worker: %.2f" % (name, statistics.median(ratios)), flush=True)


if __name__ == "__main__":
    main()
