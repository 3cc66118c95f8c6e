#!/usr/bin/env python3
"""RGB images resized on one thread by Pillow (or Pillow-SIMD, whichever this Python has) and OpenCV, 500x375 to 224x224.

usage: bench_resize.py [--secs S] [--program build/release/bench/bench_resize] [--size H W OUT_H OUT_W]

Needs numpy and pillow, and opencv-python-headless for the cv2 lines. A pass resizes 64 images, eight different ones in rotation, as in
bench_resize; the median pass and the fastest tenth are printed. With --program, that program runs before and after, so
that all figures are from one run. cv2 linear does not antialias: it uses only four pixels per output pixel. It is
included for comparison.
"""
import argparse
import subprocess
import time

import numpy as np
import PIL
from PIL import Image

try:
    import cv2
    cv2.setNumThreads(1)
except ImportError:
    cv2 = None

ap = argparse.ArgumentParser()
ap.add_argument("--secs", type=float, default=2)
ap.add_argument("--program")
ap.add_argument("--size", type=int, nargs=4, default=[375, 500, 224, 224])
args = ap.parse_args()
H, W, OH, OW = args.size

rng = np.random.default_rng(7)
ramp = np.arange(W, dtype=np.uint16)[None, :, None] // 3
arrays = [((ramp + rng.integers(0, 64, (H, W, 3), dtype=np.uint16)) & 255).astype(np.uint8) for _ in range(8)]
arrays *= 8
images = [Image.fromarray(a) for a in arrays[:8]] * 8
settle = np.ones(64 << 20, np.uint8)


def program():
    if args.program:
        subprocess.run([args.program, "21", *map(str, args.size)], check=True)


def measure(name, fn, items):
    times, cpu, end = [], 1e9, time.perf_counter() + args.secs
    for item in items:
        fn(item)
    while len(times) < 5 or time.perf_counter() < end:
        settle[::64].sum()
        c0, t0 = time.thread_time(), time.perf_counter()
        for item in items:
            fn(item)
        times.append(time.perf_counter() - t0)
        cpu = min(cpu, time.thread_time() - c0)
    times.sort()
    print(f"peer   {name:<46} 1 {64 / times[len(times) // 2]:12.0f} images/s   best tenth {64 / times[len(times) // 10]:12.0f}   "
          f"cpu, best pass {cpu / 64 * 1e6:8.1f} us/image",
          flush=True)


program()
kind = "Pillow-SIMD" if "post" in PIL.__version__ else "Pillow"
for what, resample in (("bilinear", Image.BILINEAR), ("lanczos", Image.LANCZOS)):
    measure(f"{kind} {PIL.__version__} {what}", lambda im: im.resize((OW, OH), resample), images)
if cv2:
    out = np.empty((OH, OW, 3), np.uint8)
    for what, flag in (("area", cv2.INTER_AREA), ("linear (no antialias)", cv2.INTER_LINEAR)):
        measure(f"cv2 {cv2.__version__} {what}", lambda a: cv2.resize(a, (OW, OH), dst=out, interpolation=flag), arrays)
program()
