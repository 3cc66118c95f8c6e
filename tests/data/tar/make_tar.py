#!/usr/bin/env python3
"""Makes the sparse archives of this folder with GNU tar (those in the repository are from 1.34), and
sparse-solaris.tar without it.

many.bin: 27 blocks of 512 bytes at 512 * (3 k + 1), k = 0 to 26; byte i of block k is (7 k + i) % 251 + 1; all others
of its 42,000 bytes are 0. hole.bin: 5,000 zeros. text.txt: "text". links.tar also has hard links and other members; see
the end.

Extracts the archives with libarchive (`pip install libarchive-c`) and compares, if that is installed."""
import os, subprocess, sys, tarfile, tempfile

here = os.path.dirname(os.path.abspath(__file__))
many = bytearray(42000)
for k in range(27):
    many[512 * (3 * k + 1):512 * (3 * k + 2)] = bytes((7 * k + i) % 251 + 1 for i in range(512))
files = {"many.bin": bytes(many), "hole.bin": bytes(5000), "text.txt": b"text"}

def tar(name, *options, members=tuple(files)):
    subprocess.run(["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-b1", "-c",
                    "-f", os.path.join(here, name), *options, *members], check=True)

def pax(key, value):
    body = b" " + key + b"=" + value + b"\n"
    n = len(body)
    while len(str(n)) + len(body) != n:
        n = len(str(n)) + len(body)
    return str(n).encode() + body

def block(name, kind, data):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, data in files.items():
        with open(name, "wb") as f: # with real holes
            f.truncate(len(data))
            for at in range(0, len(data), 512):
                if any(data[at:at + 512]):
                    f.seek(at); f.write(data[at:at + 512])
    raw = ["--sparse", "--hole-detection=raw"]
    tar("sparse-gnu.tar", "--format=gnu", *raw)
    for version in ("0.0", "0.1", "1.0"):
        tar(f"sparse-{version}.tar", "--format=pax", "--sparse-version=" + version,
            "--pax-option=delete=atime,delete=ctime", *raw)
    # Solaris: the ends of holes and of data, alternating; the archive also stores the bytes of the holes
    ends, hole = [], True
    for k in range(27):
        ends += [512 * (3 * k + 1), 512 * (3 * k + 2)]
    ends.append(len(many))
    noise = bytearray(b"?" * len(many)) # readers must not use the bytes stored for the holes
    for k in range(27):
        noise[512 * (3 * k + 1):512 * (3 * k + 2)] = many[512 * (3 * k + 1):512 * (3 * k + 2)]
    with open(os.path.join(here, "sparse-solaris.tar"), "wb") as f:
        f.write(block("x", b"x", pax(b"SUN.holesdata", b" " + " ".join(map(str, ends)).encode())))
        f.write(block("many.bin", b"0", bytes(noise)))
        f.write(block("text.txt", b"0", b"text") + bytes(1024))
    os.mkdir("d")
    os.rename("many.bin", "README") # links may also point to a member without an extension
    os.link("README", "d/a.bin"); os.link("text.txt", "d/b.txt"); os.symlink("text.txt", "d/c.txt"); os.mkfifo("d/p.txt")
    tar("links.tar", "--format=gnu", "--label=A volume", *raw, "--exclude=hole.bin", members=("README", "text.txt", "d"))

try:
    import libarchive
except ImportError:
    sys.exit("not checked: no libarchive")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name in sorted(os.listdir(here)):
        if name.startswith("sparse-"):
            libarchive.extract_file(os.path.join(here, name))
            assert open("many.bin", "rb").read() == files["many.bin"], name
