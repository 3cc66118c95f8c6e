#!/usr/bin/env python3
"""The cost of features for training: random crops, token windows, mixtures, the digest. Each is compared with the same work
without it, with the limit or with the peers, in pairs a few seconds apart whose order alternates (medians of the pairs'
ratios; paired.py says why).

usage: training.py DATA [--rounds=7] [--only=ROW,...] [--build=build/release] [--torch=PYTHON] [--ffcv=PYTHON]

DATA is created by bench/peers/make_data.py. PYTHON: an interpreter with the peers' packages.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

import formats
from formats import DATA, ROOT, loader, option, peer, program

ROUNDS = int(option("rounds", "7"))
WORK = tempfile.TemporaryDirectory()


def rate(config, *sets, seconds=0.7):
    return lambda: loader(config, *sets, seconds=seconds)[0]


def windows():
    """Token windows per second of the plain loop with two threads."""
    tool = os.path.join(WORK.name, "limits")
    if not os.path.exists(tool):
        subprocess.run(["gcc", "-O3", "-march=native", "-pthread", os.path.join(ROOT, "bench", "peers", "limits.c"), "-o", tool], check=True)
    out = subprocess.run([tool, DATA, "w6"], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"w6_windows_u16_to_i64 +2 +([\d.]+)", out).group(1))


def crops():
    return program("bench_jpeg", "w5/jpeg", "1", "2", pattern=r"^jpeg crop, libjpeg +2 +([\d.]+)")


def parts(path, count):
    """Divides the rows of an .npy file into `count` files, if these do not exist; returns their names."""
    import numpy

    folder = os.path.join(DATA, "mixture", os.path.basename(os.path.dirname(path)))
    names = [os.path.join(folder, "%d-%s" % (d, os.path.basename(path))) for d in range(count)]
    if not all(map(os.path.exists, names)):
        os.makedirs(folder, exist_ok=True)
        rows = numpy.load(path, mmap_mode="r")
        for d, name in enumerate(names):
            numpy.save(name, rows[len(rows) * d // count:len(rows) * (d + 1) // count])
    return names


def variant(config, count, text):
    """Writes a config; returns its name for loadbench."""
    path = os.path.join(WORK.name, "%s-%s" % (config, count))
    open(path + ".yaml", "w").write(text)
    return os.path.relpath(path, os.path.join(ROOT, "configs"))


def split(config, count):
    """The text of a config, the text of its fields, and the parts of each of its files."""
    text = open(os.path.join(ROOT, "configs", config + ".yaml")).read()
    fields = re.search(r"^dataset:\n((?:  .*\n|\n)*)", text, re.M).group(1).rstrip("\n")
    return text, fields, {path: parts(path.replace("${STOKER_BENCH_DATA}", DATA), count) for path in re.findall(r"path: (\S+)", fields)}


def mixture(config, count):
    """`config` with its rows divided among `count` data sets of equal weight."""
    text, fields, files = split(config, count)
    entries = ""
    for d in range(count):
        its = re.sub(r"path: (\S+)", lambda m: "path: " + files[m.group(1)][d], fields)
        entries += "  - name: d%d\n%s\n" % (d, re.sub("^", "  ", its, flags=re.M))
    return variant(config, count, re.sub(r"^dataset:\n((?:  .*\n|\n)*)", lambda _: "datasets:\n" + entries + "\n", text, flags=re.M))


def shards(config, count):
    """The same files as the shards of one data set. (A single large file would be in larger pages of the page cache.)"""
    text, _, files = split(config, count)
    return variant(config, "shards", re.sub(r"path: (\S+)", lambda m: "path: [" + ", ".join(files[m.group(1)]) + "]", text))


CROP = "dataset.fields.image.transforms.0={random_crop: 200}"
TRAIN = rate("w5-train", seconds=2)
# name and measurement, and the name and measurement that it is compared with
ROWS = [
    ("w5-train", TRAIN, "crop limit", crops),
    ("w5-train", TRAIN, "torch cv2", lambda: peer("torch", "bench_torch.py", "W5/cv2_ring_nw2")),
    ("w5-train", TRAIN, "turbojpeg", lambda: peer("torch", "bench_jpeg.py", "W5/turbojpeg_t2")),
    ("w5-train", TRAIN, "ffcv jpeg", lambda: peer("ffcv", "bench_ffcv.py", "W5/jpg_fused_w2")),
    ("w5-train", TRAIN, "ffcv raw", lambda: peer("ffcv", "bench_ffcv.py", "W5/raw_fused_w2")),
    ("w2 pad+crop+flip", rate("w2-augment"), "w2", rate("w2-f32")),
    ("w2 flip", rate("w2-augment", "dataset.fields.image.transforms=[{random_horizontal_flip: 0.5}, {normalize: imagenet}]"), "w2", rate("w2-f32")),
    ("w2 crop200+flip", rate("w2-augment", CROP), "crop200", rate("w2-f32", "dataset.fields.image.transforms=[{center_crop: 200}, {normalize: imagenet}]")),
    ("w6", rate("w6"), "limit", windows),
    ("w6 i32", rate("w6-i32"), "limit", windows),
    ("w6 i32", rate("w6-i32"), "w6", rate("w6")),
    ("w1 digest", rate("w1", "loader.digest=order"), "w1", rate("w1")),
    ("w3 digest", rate("w3", "loader.digest=order"), "w3", rate("w3")),
    ("w1 of 8", lambda: rate(mixture("w1", 8))(), "8 shards", lambda: rate(shards("w1", 8))()),
    ("w3 of 8", lambda: rate(mixture("w3", 8))(), "8 shards", lambda: rate(shards("w3", 8))()),
]


def main():
    only = option("only", "")
    print("%-18s %10s   %-12s %10s   ratio (lowest to highest)" % ("work", "samples/s", "compared to", "samples/s"))
    for name, work, other, beside in ROWS:
        if only and name not in only.split(","):
            continue
        pairs = []
        for i in range(ROUNDS):
            if i % 2:
                a = work()
                b = beside()
            else:
                b = beside()
                a = work()
            if not b:
                break
            pairs.append((a, b))
        if not pairs:
            continue
        ratios = [a / b for a, b in pairs]
        print("%-18s %10.0f   %-12s %10.0f   %.2f (%.2f to %.2f)" % (name, statistics.median(a for a, _ in pairs), other,
              statistics.median(b for _, b in pairs), statistics.median(ratios), min(ratios), max(ratios)), flush=True)


if __name__ == "__main__":
    main()
