"""Makes the files and cases of test_texts.c: what Python reads from text files and lines of JSON.

Run: python make_texts.py. Each line of cases.tsv:
file  keys of source  samples  SHA-256 of all samples, each as its length (8 bytes, little-endian) and its bytes
"""
import hashlib, json, pathlib, random, re

here = pathlib.Path(__file__).parent
rng = random.Random(20261128)
words = ["stoker", "Kohle", "Ofen", "naïve", "日本", "a\tb", "😀", "x" * 300, "", " ", "\\", '"q"']


def line():
    return " ".join(rng.choice(words) for _ in range(rng.randrange(0, 12)))


files = {}
files["plain.txt"] = "\n".join(line() for _ in range(40)).encode() + b"\n"
files["no_end.txt"] = b"one\ntwo\n\n\nthree"
files["crlf.txt"] = b"\r\n".join(line().encode() for _ in range(20)) + b"\r\n\r\n\r\nlast\r"
files["mixed_ends.txt"] = b"a\r\nb\nc\r\r\n\rd\n\n \t\r\n \n e \n f\t \n\n\n"
files["bom.txt"] = b"\xef\xbb\xbffirst\nsecond\n\nthird\n"
files["bom_alone.txt"] = b"\xef\xbb\xbf"
files["empty.txt"] = b""
files["newlines.txt"] = b"\n\n\n"
files["blank.txt"] = b"  \n\t\n"
files["bytes.txt"] = bytes(range(128, 256)) + b"\n\x00\x00\n\x80\n"
files["documents.txt"] = ("<|endoftext|>".join([line(), "", line() + "\n" + line(), "<|endoftext", "|>", line()]) + "<|endoftext|>").encode()
files["overlap.txt"] = b"a\n\n\nb\n\n\n\n\nc\n\n"
files["one_document.txt"] = b"no separator at all"
files["separators.txt"] = b"--------"
texts = [line() + rng.choice(["", "\n", "\r\n", "\u2028", "\x00", "\x1f", "/"]) + line() for _ in range(60)]
rows = []
for i, t in enumerate(texts):
    record = {"id": i, "text": t, "meta": {"text": "not this", "list": [1, 2.5e-3, None, True, "]}"], "deep": [[[{}]]]}}
    if i % 3 == 0:
        record = {"meta": record["meta"], "text": t, "id": -i}
    rows.append(json.dumps(record, ensure_ascii=i % 2 == 0, separators=[(",", ":"), (", ", ": "), (" ,\t", " : ")][i % 3]))
files["many.jsonl"] = "\n".join(rows).encode() + b"\n"
files["odd.jsonl"] = b"\r\n".join([
    b'{"text": "\\ud83d\\ude00\\u00e9\\u0000\\b\\f\\n\\r\\t\\/\\\\\\""}', b"", b'  {"text":"first","text":"last"}  ', b"\t",
    b'{"\\u0074ext": "by an escaped key"}', b'{"text": ""}', b'{"a":[],"text":"x","b":-0.0e+5}'])
files["key.jsonl"] = b'{"content":"c1","text":1}\n{"content":"c2"}\n'


def lines(data):
    parts = data.split(b"\n")
    ended, rest = parts[:-1], parts[-1]
    return [p[:-1] if p.endswith(b"\r") else p for p in ended] + ([rest] if rest else [])


def paragraphs(data):
    out, now = [], []
    for p in data.split(b"\n"):
        if p.strip(b" \t\r"):
            now.append(p)
        elif now:
            out.append(b"\n".join(now).rstrip(b" \t\r\n"))
            now = []
    return out + ([b"\n".join(now).rstrip(b" \t\r\n")] if now else [])


def documents(data, separator):
    return [p for p in data.split(separator) if p]


def values(data, key):
    return [json.loads(p)[key].encode() for p in data.split(b"\n") if p.strip(b" \t\r")]


cases = []
for name, data in files.items():
    (here / name).write_bytes(data)
    if name.endswith(".jsonl"):
        cases.append((name, "key: content" if name == "key.jsonl" else "", values(data, "content" if name == "key.jsonl" else "text")))
        continue
    data = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    cases.append((name, "", lines(data)))
    cases.append((name, "unit: paragraph", paragraphs(data)))
    cases.append((name, "unit: file", [data]))
    for separator in ["<|endoftext|>", "\n\n", "--", "a"]:
        cases.append((name, "separator: " + json.dumps(separator), documents(data, separator.encode())))
with open(here / "cases.tsv", "w") as f:
    for name, keys, samples in cases:
        digest = hashlib.sha256(b"".join(len(s).to_bytes(8, "little") + s for s in samples)).hexdigest()
        f.write(f"{name}\t{keys}\t{len(samples)}\t{digest}\n")
print(len(cases), "cases")
