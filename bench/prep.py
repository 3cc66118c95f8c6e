#!/usr/bin/env python3
"""Compares preparation jobs with their limits (decoding and resizing alone, cp with fsync) and with other tools (h5repack, FFCV's
writer), a few seconds apart. Prints medians of the rounds' ratios (paired.py says why).

usage: prep.py DATA [--rounds=5] [--only=ROW,...] [--build=build/release] [--out=DATA/prep] [--threads=2] [--ffcv=PYTHON]

DATA is created by bench/peers/make_data.py (w2, w4, w5) and then bench_make. PYTHON: an interpreter with FFCV.
    jpeg-beton   a folder of JPEGs to a .beton, longer side 256, raw; compared with a loader that decodes and resizes the same (loadbench)
    ffcv-beton   the same, compared with FFCV's DatasetWriter
    keep-tar, keep-beton   the original files of the folder; compared with cp of the files, synced, and of one file of the same size
    npy-copy     an .npy to an .npy; compared with cp and fsync
    npy-int8     float32 to int8 with a calibration pass; compared with reading it twice and writing a quarter with dd and fsync
    h5-repack    HDF5 to chunks of 16 rows at gzip level 1; compared with h5repack
"""
import glob
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

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
OUT = os.path.abspath(option("out", os.path.join(DATA, "prep")))
ROUNDS, THREADS = int(option("rounds", "5")), int(option("threads", "2"))
ONLY, FFCV = option("only", None), option("ffcv", None)
JPEGS = os.path.join(DATA, "w5", "jpeg")
IMAGES = "image: {path: %s, source: {name: image}, ragged: true, transforms: [{resize: {longer: 256}}]}" % JPEGS

FFCV_WRITER = """
import glob, sys
from PIL import Image
from ffcv.writer import DatasetWriter
from ffcv.fields import RGBImageField
files = sorted(glob.glob(sys.argv[1] + '/**/*.jpg', recursive=True))
class Data:
    def __len__(self): return len(files)
    def __getitem__(self, i): return (Image.open(files[i]).convert('RGB'),)
DatasetWriter(sys.argv[2], {'image': RGBImageField(write_mode='raw', max_resolution=256)}, num_workers=int(sys.argv[3])).from_indexed_dataset(Data())
"""


def run(argv, **more):
    """Seconds, CPU seconds of the child processes, and the output."""
    subprocess.run(["sync"])
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, **more)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(argv), done.stderr))
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def job(fields, output):
    """Seconds, CPU seconds, rows and bytes of a job. Removes the output of earlier rounds first, because freeing its blocks takes time."""
    for old in glob.glob(os.path.splitext(re.match(r"path: ([^,]+)", output)[1])[0] + ".*"):
        os.remove(old)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("dataset: {fields: {%s}}\nprep: {num_workers: %d}\noutput: {%s}\n" % (fields, THREADS, output))
        f.flush()
        out = run([os.path.join(BUILD, "bench", "bench_prep"), f.name])[2]
    found = re.match(r"seconds (\S+) cpu (\S+) rows (\S+) bytes (\S+)", out)
    return float(found[1]), float(found[2]), int(found[3]), int(found[4])


def decode_alone():
    """Samples per second of the loader by itself."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("dataset: {fields: {%s}}\nloader: {batch_size: 16, num_workers: %d}\n" % (IMAGES, THREADS) +
                "bench: {run_time: 2s, ramp: 0.3s, repeats: 1, limit: false}\n")
        f.flush()
        out = run([os.path.join(BUILD, "loadbench"), f.name, "--format=json"])[2]
    return json.loads(out)["result"]["samples_per_s"]["median"]


def copy(path, share=1):
    """Seconds to copy a file with fsync; share < 1: only that fraction of it."""
    to, count = os.path.join(OUT, "copied"), int(os.path.getsize(path) * share)
    seconds = run(["dd", "if=" + path, "of=" + to, "bs=4M", "conv=fsync", "iflag=count_bytes", "count=%d" % count]
                  if share < 1 else ["sh", "-c", "cp '%s' '%s' && sync '%s'" % (path, to, to)])[0]
    os.remove(to)
    return seconds


def path(name):
    return os.path.join(OUT, name)


def jpeg_beton():
    alone = decode_alone()
    seconds, _, rows, _ = job(IMAGES, "path: " + path("raw.beton"))
    return rows / seconds / alone, "%.0f samples/s, alone %.0f" % (rows / seconds, alone)


def ffcv_beton():
    theirs = run([FFCV, "-c", FFCV_WRITER, JPEGS, path("ffcv.beton"), str(THREADS)])
    ours = job(IMAGES, "path: " + path("raw.beton"))
    return theirs[0] / ours[0], "%.2f s and %.2f CPU s, theirs %.2f s and %.2f CPU s" % (ours[:2] + theirs[:2])


def copy_folder(folder):
    """Seconds to copy the files of the folder with cp -r and a sync at the end."""
    to = os.path.join(OUT, "copied")
    seconds = run(["sh", "-c", "cp -r '%s' '%s' && sync -f '%s'" % (folder, to, to)])[0]
    shutil.rmtree(to)
    return seconds


def keep(name):
    seconds, _, _, size = job("image: {path: %s, source: {name: image, decode: none}}" % JPEGS, "path: " + path(name))
    one, files = copy(path(name)), copy_folder(JPEGS)
    return files / seconds, "%.2f s, cp of the files %.2f s, of one file of %.0f MB %.2f s" % (seconds, files, size / 1e6, one)


def npy_copy():
    source = os.path.join(DATA, "w2", "images.npy")
    seconds, alone = job("x: {path: %s}" % source, "path: " + path("copy.npy"))[0], copy(source)
    return alone / seconds, "%.2f s, cp %.2f s" % (seconds, alone)


def npy_int8():
    source = path("floats.npy")
    if not os.path.exists(source):
        job("x: {path: %s, dtype: f32}" % os.path.join(DATA, "w2", "images.npy"), "path: " + source)
    seconds = job("x: {path: %s, transforms: [{quantize: {calibrate: minmax}}]}" % source, "path: " + path("int8.npy"))[0]
    read = run(["dd", "if=" + source, "of=/dev/null", "bs=4M"])[0]
    write = copy(source, 0.25)
    return (2 * read + write) / seconds, "%.2f s, reading twice %.2f s, writing %.2f s" % (seconds, 2 * read, write)


def h5_repack():
    source = os.path.join(DATA, "w4", "gzip.h5")
    theirs = run(["h5repack", "-l", "x:CHUNK=16", "-f", "x:GZIP=1", source, path("theirs.h5")])[0]
    seconds = job("x: {path: %s, source: {name: x}}" % source, "path: %s, chunk_rows: 16, level: 1" % path("ours.h5"))[0]
    return theirs / seconds, "%.2f s, h5repack %.2f s" % (seconds, theirs)


ROWS = {"jpeg-beton": jpeg_beton, "ffcv-beton": ffcv_beton, "keep-tar": lambda: keep("keep.tar"),
        "keep-beton": lambda: keep("keep.beton"), "npy-copy": npy_copy, "npy-int8": npy_int8, "h5-repack": h5_repack}
os.makedirs(OUT, exist_ok=True)
for name, row in ROWS.items():
    if (ONLY and name not in ONLY.split(",")) or (name == "ffcv-beton" and not FFCV):
        continue
    ratios = []
    for _ in range(ROUNDS):
        ratio, text = row()
        ratios.append(ratio)
        print("    %-10s %.2f  %s" % (name, ratio, text), flush=True)
    print("%-10s median %.2f  (%.2f to %.2f)" % (name, statistics.median(ratios), min(ratios), max(ratios)), flush=True)
