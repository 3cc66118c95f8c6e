#!/usr/bin/env python3
"""Writes a small vocabulary in every form that stoker reads, a corpus of difficult texts, and the ids that tiktoken
and tokenizers produce, with which test_tokenize.c compares stoker's.

    pip install tiktoken tokenizers
    make_tokens.py          writes tokens_* beside itself

They were written with tiktoken 0.14.0 and tokenizers 0.23.3. tokens_corpus.txt has the documents, each followed by
a NUL; tokens_CASE.ids has a row of u16 for each: a count and then the ids.
"""
import array
import base64
import json
import pathlib
import random

import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

here = pathlib.Path(__file__).parent
root = here.parents[2]

# ---- documents ---------------------------------------------------------------------------------------------------------

rng = random.Random(1)
documents = [
    "",
    " ",
    "\n",
    "a",
    "The quick brown fox jumps over the lazy dog.",
    "It's what we've said: they'll say I'm wrong, he'd say you're right, DON'T they? IT'S 'Tis o'clock 'S 'LL.",
    "long s: it'\u017f and it'\u212a",
    "numbers 1 22 333 4444 55555 0.125 -7e-3 \u0663\u0664\u0665 \u2163 \u00bd",
    "two  spaces   three    four\tone tab\t\ttwo",
    "trailing spaces   ",
    "trailing newlines\n\n\n",
    "trailing mixture \n  ",
    "line\r\nline\r\n\r\n  indented\r\n",
    "a \n b\n\n\n c \n \n d",
    "\n\n  \n\tx",
    "punctuation!!! ... ??? --- (a) [b] {c} <d> \"e\" 'f' `g` ~h @i #j $k %l ^m &n *o",
    "path/to/file.c:123: error: expected \u2018;\u2019 before \u2018}\u2019 token\r\n//\n/**/",
    "for (int i = 0; i < n; i++) {\n    if (a[i] != b[i])\n        return a[i] < b[i] ? -1 : 1;\n}\n",
    "Gr\u00fc\u00dfe aus K\u00f6ln, \u00e0 bient\u00f4t, ma\u00f1ana, \u0141\u00f3d\u017a, \u0130stanbul, na\u00efve fa\u00e7ade",
    "e\u0301 n\u0303 a\u0308 combining, and \u1ea1\u0323 twice",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3001\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "emoji \U0001f600\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "white space of Unicode:\u00a0no-break\u2003em\u2009thin\u202fnarrow\u3000wide\u1680ogham\u2028line\u2029paragraph\u0085next",
    "not white space: \u200bzero\u200cwidth\ufeffmark\u180evowel \u180e separator\x1cfile\x1dgroup \x1e \x1f",
    "control \x01\x02\x03 \x1b[31mred\x1b[0m \x7f",
    "<|endoftext|> is text here, <|im_start|>too<|im_end|>",
    "CamelCaseWords HTTPServer iPhone McDonald XMLHttpRequest ABCdefGHI \u01c5 \u02b0\u02b1",
    "mathematics: \u2200x\u2208\u211d: \u2308x\u2309 = \u2212\u230a\u2212x\u230b, \U0001d538\U0001d539\U0001d7d8\U0001d7d9",
    "a" * 400,
    "ab" * 300 + "!" * 200 + " " * 300 + "\n" * 150 + "9" * 100,
    "\u5929" * 300,
    "".join(rng.choice("ACGT") for _ in range(1000)),
    "".join(rng.choice("aeiou bcdst\n") for _ in range(3000)),
    "".join(rng.choice("ab\u00e4\u00f6 '\n\t1.\U0001f600\u3000\r") for _ in range(3000)),
    "".join(chr(rng.choice([rng.randrange(0x20, 0x7f), rng.randrange(0xa0, 0x500), rng.randrange(0x4e00, 0x9fff)])) for _ in range(2000)),
]
for name in ("docs/internals/order.md", "src/base/yaml.c", "LICENSE"):
    documents.append((root / name).read_text()[:6000])
for document in documents:
    assert "\0" not in document
(here / "tokens_corpus.txt").write_bytes(b"".join(document.encode() + b"\0" for document in documents))

# ---- a vocabulary --------------------------------------------------------------------------------------------------------

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                              special_tokens=["<|endoftext|>"], show_progress=False)
texts = [path.read_text() for path in sorted((root / "docs").rglob("*.md"))] + documents * 3
tokenizer.train_from_iterator(texts, trainer)
written = json.loads(tokenizer.to_str())


def write_json(name, value):
    (here / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


write_json("tokens_gpt2.json", written)
llama = json.loads(json.dumps(written))
llama["model"]["ignore_merges"] = True
llama["model"]["merges"] = [" ".join(pair) if isinstance(pair, list) else pair for pair in written["model"]["merges"]]
old_cl100k = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
llama["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": old_cl100k}, "behavior": "Isolated", "invert": False},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
write_json("tokens_split.json", llama)
plain = {token: id for token, id in written["model"]["vocab"].items()}
write_json("tokens_vocab.json", plain)
merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in written["model"]["merges"]]
(here / "tokens_merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")

# The same tokens by their bytes, in the same order, without the special one.
characters = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
codes = characters + [256 + i for i in range(256 - len(characters))]
characters += [b for b in range(256) if b not in characters]
byte_of = {chr(code): byte for code, byte in zip(codes, characters)}
ordered = sorted((id, token) for token, id in plain.items() if token != "<|endoftext|>")
ranks = {bytes(byte_of[c] for c in token): rank for rank, (_, token) in enumerate(ordered)}
(here / "tokens_small.tiktoken").write_text(
    "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))

# ---- ids ----------------------------------------------------------------------------------------------------------------


def write_ids(case, encode):
    rows = array.array("H")
    for document in documents:
        ids = encode(document)
        rows.append(len(ids))
        rows.extend(ids)
    (here / f"tokens_{case}.ids").write_bytes(rows.tobytes())
    print(case, len(rows))


def by_tiktoken(pattern):
    encoding = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: encoding.encode_ordinary(text)


def by_tokenizers(name):
    hf = Tokenizer.from_file(str(here / name))
    hf.encode_special_tokens = True  # names of special tokens are encoded as text
    return lambda text: hf.encode(text, add_special_tokens=False).ids


write_ids("tiktoken_gpt2", by_tiktoken(r50k_pat_str))
write_ids("tiktoken_cl100k", by_tiktoken(r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""))
o200k = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""])
write_ids("tiktoken_o200k", by_tiktoken(o200k))
write_ids("tiktoken_none", by_tiktoken(r"(?s:.+)"))
write_ids("gpt2", by_tokenizers("tokens_gpt2.json"))
write_ids("split", by_tokenizers("tokens_split.json"))
