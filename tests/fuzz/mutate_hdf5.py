#!/usr/bin/env python3
"""Damages the structure of HDF5 files and runs the programs on them.

    mutate_hdf5.py BUILD_DIR COUNT [--seed N] [--jobs N] [--seconds N] [--keep DIR] SEED_FILE...

Each of COUNT files is a seed file with 1 to 3 changes in its metadata: numbers after a signature become limits,
lengths, other addresses or random bits, or bytes are copied over others; most checksums are corrected afterwards.
`stoker inspect`, `stoker verify` and `stoker prep --dry-run` run on each file, and fail if they end with a signal
or use more than 10 s of CPU time. Then `stoker prep` runs with a libhdf5 that aborts when it opens a file
(tests/cli/bad_hdf5.c). If it does not abort, stoker read the file without libhdf5, and any other signal is a
failure. If it aborts, the job runs again with the real libhdf5, and signals are only counted. Prints the counts;
the exit status is 1 if anything failed. --keep saves the files that failed.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

SIGNATURES = [b"TREE", b"SNOD", b"HEAP", b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD",
              b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"GCOL", b"\x89HDF\r\n\x1a\n"]
LIMIT_S = 10
MASK = 0xFFFFFFFF


def rotate(x, by):
    return (x << by | x >> (32 - by)) & MASK


def lookup3(data):
    """Bob Jenkins' lookup3, the checksum of metadata in newer files."""
    a = b = c = (0xDEADBEEF + len(data)) & MASK
    if not data:
        return c
    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<3I", data, at)
        a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
        a = (a - c) & MASK; a ^= rotate(c, 4); c = (c + b) & MASK
        b = (b - a) & MASK; b ^= rotate(a, 6); a = (a + c) & MASK
        c = (c - b) & MASK; c ^= rotate(b, 8); b = (b + a) & MASK
        a = (a - c) & MASK; a ^= rotate(c, 16); c = (c + b) & MASK
        b = (b - a) & MASK; b ^= rotate(a, 19); a = (a + c) & MASK
        c = (c - b) & MASK; c ^= rotate(b, 4); b = (b + a) & MASK
        at += 12
    x, y, z = struct.unpack("<3I", (data[at:] + bytes(12))[:12])
    a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
    c ^= b; c = (c - rotate(b, 14)) & MASK
    a ^= c; a = (a - rotate(c, 11)) & MASK
    b ^= a; b = (b - rotate(a, 25)) & MASK
    c ^= b; c = (c - rotate(b, 16)) & MASK
    a ^= c; a = (a - rotate(c, 4)) & MASK
    b ^= a; b = (b - rotate(a, 14)) & MASK
    c ^= b; c = (c - rotate(b, 24)) & MASK
    return c


def summed(data, at):
    """The number of bytes, starting at a signature, that the following checksum covers; None if it is not known."""
    mark = bytes(data[at:at + 4])
    if mark in (b"BTHD", b"FRHP", b"FAHD"):
        return {b"BTHD": 34, b"FRHP": 142, b"FAHD": 24}[mark]
    if mark == b"OHDR" and at + 40 < len(data):
        flags = data[at + 5]
        wide = 1 << (flags & 3)
        head = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0) + wide
        return head + int.from_bytes(data[at + head - wide:at + head], "little")
    if mark == b"\x89HDF" and data[at + 8] >= 2:
        return 44
    return None


def places_of(data):
    """The offsets of structures: signatures, and object headers without one, which old groups refer to."""
    places = []
    for signature in SIGNATURES:
        at = data.find(signature)
        while at >= 0:
            places.append(at)
            at = data.find(signature, at + 1)
    for at in [p for p in places if data[p:p + 4] == b"SNOD"]:
        for i in range(min(int.from_bytes(data[at + 6:at + 8], "little"), 64)):
            header = int.from_bytes(data[at + 16 + 40 * i:at + 24 + 40 * i], "little")
            if header + 16 < len(data) and data[header] == 1:
                places.append(header)
    return places


def mutate(data, seed):
    rng = random.Random(seed)
    out = bytearray(data)
    places = places_of(data)
    touched = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = rng.choice(places)
        reach = rng.choice([24, 64, 256, 600])
        at = min(place + rng.randrange(reach), len(out) - 9)
        kind = rng.randrange(6)
        wide = rng.choice([1, 2, 4, 8])
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            limits = [0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1, len(out), len(out) - 1]
            out[at:at + wide] = (rng.choice(limits) & (256**wide - 1)).to_bytes(wide, "little")
        elif kind == 3:  # an address of another structure, usually aligned
            at = place + rng.randrange(0, reach, 8)
            if at + 8 <= len(out):
                out[at:at + 8] = rng.choice(places).to_bytes(8, "little")
        elif kind == 4:  # copy one piece over another
            length = rng.choice([8, 16, 40, 120])
            other = rng.choice(places) + rng.randrange(0, 64, 8)
            piece = out[other:other + length]
            out[at:at + len(piece)] = piece
            del out[len(data):]
        else:
            number = int.from_bytes(out[at:at + wide], "little") + rng.choice([-8, -1, 1, 8, 40])
            out[at:at + wide] = (number & (256**wide - 1)).to_bytes(wide, "little")
        touched.append(at)
    if rng.random() < 0.9:
        for place in places:
            count = summed(out, place)
            if count and any(place <= at < place + count for at in touched) and place + count + 4 <= len(out):
                out[place + count:place + count + 4] = lookup3(bytes(out[place:place + count])).to_bytes(4, "little")
    return bytes(out)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (2 * LIMIT_S, 2 * LIMIT_S))


def run(words, preload=None, timeout=600):
    """The exit status (negative: a signal; None: timeout), the seconds of CPU time, and the output. The timeout
    exists because on a busy machine a second of CPU time takes longer."""
    env = dict(os.environ)
    if preload:
        env.update(LD_PRELOAD=preload, BAD_HDF5_DOES="crash")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, timeout=timeout,
                              stdin=subprocess.DEVNULL, errors="replace", check=False, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return None, timeout, ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def one(task):
    build, number, seed_file, seed, members = task
    stoker, bad = os.path.join(build, "stoker"), os.path.join(build, "tests", "libbad_hdf5.so")
    counts, failures = collections.Counter(), []
    with open(seed_file, "rb") as f:
        data = mutate(f.read(), f"{seed} {number}")
    folder = tempfile.mkdtemp(prefix="mutate_hdf5.")
    path, job = os.path.join(folder, "x.h5"), os.path.join(folder, "job.yaml")
    with open(path, "wb") as f:
        f.write(data)
    with open(job, "w") as f:
        f.write(f"dataset: {{fields: {{x: {{path: x.h5, source: {{name: {members[number % len(members)]}}}}}}}}}\noutput: {{path: out.npy}}\n")
    counts["files"] = 1
    for name, words in (("inspect", ["inspect", path, "--json"]), ("verify", ["verify", path, "--json", "--threads=1"]),
                        ("dry run", ["prep", job, "--dry-run"])):
        code, seconds, said = run([stoker, *words])
        if code is None or code < 0 or code > 2:
            failures.append(f"{name}: ended with {code}")
        if seconds > LIMIT_S:
            failures.append(f"{name}: {seconds:.1f} s")
        counts["slowest, ms"] = max(counts["slowest, ms"], int(seconds * 1000))
        counts[f"{name}: libhdf5 crashed"] += "libhdf5 crashed" in said
        counts[f"{name}: libhdf5 did not end"] += "did not finish within" in said
    load = [stoker, "prep", job, "--quiet", "--force", "--no-space-check"]
    code, seconds, _ = run(load, bad, 60)
    if code == -6:  # libhdf5 was called
        counts["loader: with libhdf5"] = 1
        code, seconds, _ = run(load, None, 60)
        counts["loader: signals in libhdf5"] += code is not None and code < 0
    else:
        counts["loader: alone"] = 1
        # a timeout is not a failure: the file may declare 2^40 rows, which are then written
        if code is not None and code < 0:
            failures.append(f"loader, alone: ended with {code}")
    shutil.rmtree(folder)
    return number, data if failures else None, failures, counts


def members_of(stoker, path):
    import json
    listing = json.loads(run([stoker, "inspect", path, "--json"])[2])
    return [m["name"] for m in listing["members"] if "error" not in m and m.get("shape")] or ["/x"]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("build")
    args.add_argument("count", type=int)
    args.add_argument("files", nargs="+")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--jobs", type=int, default=os.cpu_count())
    args.add_argument("--seconds", type=float, default=float("inf"), help="begin no file after this time")
    args.add_argument("--keep", help="folder for files that fail")
    a = args.parse_args()
    stoker = os.path.join(a.build, "stoker")
    members = {f: members_of(stoker, f) for f in a.files}
    total, failed, slowest, began = collections.Counter(), 0, 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(a.jobs) as pool:
        waiting, number = set(), 0
        while number < a.count or waiting:
            while number < a.count and len(waiting) < 2 * a.jobs and time.monotonic() - began < a.seconds:
                f = a.files[number % len(a.files)]
                waiting.add(pool.submit(one, (a.build, number, f, a.seed, members[f])))
                number += 1
            if not waiting:
                break
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for result in done:
                n, data, failures, counts = result.result()
                slowest = max(slowest, counts.pop("slowest, ms"))
                total.update(counts)
                failed += bool(failures)
                for failure in failures:
                    print(f"file {n} of {a.files[n % len(a.files)]}: {failure}", flush=True)
                if data is not None and a.keep:
                    os.makedirs(a.keep, exist_ok=True)
                    with open(os.path.join(a.keep, f"{a.seed}-{n}.h5"), "wb") as out:
                        out.write(data)
    for key, value in sorted(total.items()):
        print(f"{key}: {value}")
    print(f"slowest: {slowest / 1000:.2f} s of CPU time")
    print(f"failures: {failed}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
