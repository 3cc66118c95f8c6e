#!/usr/bin/env python3
"""Tokenizing speed on one processor: compares stoker's bench_tokenize with tiktoken and tokenizers, on the same texts, with the same ids.

    pip install tiktoken tokenizers
    bench_tokenize.py BENCH_TOKENIZE TEXTS VOCABULARY.tiktoken [TOKENIZER.json]     TEXTS: documents, each terminated by a NUL

Times are CPU times of the process, the best of three rounds. The ids are compared by their sum.
"""
import base64
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tiktoken
from tokenizers import Tokenizer

program, texts, vocabulary = sys.argv[1:4]
documents = [text.decode() for text in open(texts, "rb").read().split(b"\0")[:-1]]
total = os.path.getsize(texts)
ranks = {}
for line in open(vocabulary):
    token, rank = line.split()
    ranks[base64.b64decode(token)] = int(rank)
PATTERNS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
}


def measure(name, encode):
    best, tokens, checked = 1e9, 0, 0
    for _ in range(3):
        begin = time.process_time()
        rows = [encode(text) for text in documents]
        best = min(best, time.process_time() - begin)
    for ids in rows:
        tokens += len(ids)
        for id in ids:
            checked = (checked * 31 + id) & 0xFFFFFFFFFFFFFFFF
    print(f"{name:22} {total / best * 1e-6:.1f} MB/s of a processor, {tokens} tokens ({checked:016x})", flush=True)


for split, pattern in PATTERNS.items():
    result = subprocess.run([program, texts, vocabulary, split], capture_output=True, text=True, check=True)
    print(f"{'stoker ' + split:22} {result.stdout.strip()}", flush=True)
    encoding = tiktoken.Encoding("given", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    measure(f"tiktoken {split}", encoding.encode_ordinary)
if len(sys.argv) > 4:
    result = subprocess.run([program, texts, sys.argv[4]], capture_output=True, text=True, check=True)
    print(f"{'stoker json':22} {result.stdout.strip()}", flush=True)
    hf = Tokenizer.from_file(sys.argv[4])
    measure("tokenizers json", lambda text: hf.encode(text, add_special_tokens=False).ids)
