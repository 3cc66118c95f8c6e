#!/usr/bin/env python3
"""Writes the steps that published models apply to a text before byte-pair encoding (normalizers, pre-tokenizers, added
tokens), and the ids that tokenizers produces, with which test_tokenize.c compares stoker's.

    pip install tokenizers
    make_token_steps.py     writes beside itself; written with tokenizers 0.23.3

tokens_cases.json has the steps, each to be inserted into tokens_gpt2.json (make_tokens.py) or
tokens_characters.json, which this program writes; "special" says whether names of special tokens in a text become
these tokens. tokens_steps.txt has the documents, each followed by a NUL; tokens_CASE.ids has a row of u16 for each:
a count and then the ids.
"""
import array
import json
import pathlib
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

here = pathlib.Path(__file__).parent
rng = random.Random(1)
texts = (here / "tokens_corpus.txt").read_bytes().decode().split("\0")[:-1]
written = json.loads((here / "tokens_gpt2.json").read_text())


def write_json(name, value):
    (here / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def write_ids(case, encode, texts):
    rows = array.array("H")
    for document in texts:
        ids = encode(document)
        rows.append(len(ids))
        rows.extend(ids)
    (here / f"tokens_{case}.ids").write_bytes(rows.tobytes())
    print(case, len(rows))


old_cl100k = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
step_documents = [
    "", " ", "a", "  leading and trailing  ", "\u2581a \u2581 b",
    "e\u0301 n\u0303 a\u0308 \u212b \u2126 \u1e9b\u0323 \ufb01 \u00bd \u2460 \u1100\u1161\u11a8 \uac00\u11a8 \u0958 \u09c7\u09be \U0001d15e \u0344 q\u0323\u0307 q\u0307\u0323",
    "Gr\u00fc\u00dfe, na\u00efve fa\u00e7ade; \u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440; \u4eca\u5929\u5929\u6c14 \u3053\u3093\u306b\u3061\u306f \uc548\ub155 \uc138\uacc4 x\u4f60y",
    "1234567 3.14 \u0663\u0664\u0665 x1 1x 12th \u00b2 \u2167",
    "It's what we've said, DON'T they? (a) [b] {c} <d>!! #x $y -- ... \u2014 \u2026",
    "<think>plan</think>\n<tool_call>{\"a\": 1}</tool_call><|endoftext|><|im_start|>user<|im_end|>",
    "a<|endoftext|>b <|endoftext|> c<|endoftext|>", "<mask> a <mask>  <mask>\n x<mask>",
    "the them bathe (the) the\u0301 the_ a the\u00e4", "abcab abc ab a cabd",
    "    four\n        eight\n   three  two\n\n\n\nend\t\ttab", "\n\n \n  \n", "line\r\nline\r\n\r\n",
    "<0x0A> \u00e4\u0308 \u0001 \ue000 \u2581<s></s><unk>", "emoji \U0001f600\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469", "\u200b\ufeff\u180e\u3000\u00a0\u2028",
    "for (int i = 0; i < n; i++) {\n    if (a[i] != b[i])\n        return a[i] < b[i] ? -1 : 1;\n}\n",
    "".join(rng.choice(["e", "a", "\u0301", "\u0323", "\u0308", " ", "\u1161", "\u1100", "\u11a8", "A\u030a"]) for _ in range(300)),
    "".join(rng.choice(["ab", "abc", "the", " ", "  ", "<think>", "<|endoftext|>", "<mask>", "1", "\n", "\ufb01"]) for _ in range(200)),
    "word " * 60,
]
(here / "tokens_steps.txt").write_bytes(b"".join(document.encode() + b"\0" for document in step_documents))


def added(name, id, special=False, normalized=False, **flags):
    return {"id": id, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized,
            "special": special, **flags}


def byte_level(add_prefix_space=False, use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


count = len(written["model"]["vocab"])
end = added("<|endoftext|>", 0, special=True)
qwen_regex = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
deepseek_regex = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
on_bytes = {
    "qwen": {"normalizer": {"type": "NFC"}, "pre_tokenizer": sequence(split(qwen_regex), byte_level()),
             "added_tokens": [end, added("<|im_start|>", count, special=True), added("<|im_end|>", count + 1, special=True)]
             + [added(name, count + 2 + i) for i, name in enumerate(["<tool_call>", "</tool_call>", "<think>", "</think>"])]},
    "deepseek": {"normalizer": {"type": "Sequence", "normalizers": []},
                 "pre_tokenizer": sequence(split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(deepseek_regex), byte_level()),
                 "added_tokens": [end, added("<think>", count, normalized=True), added("</think>", count + 1, normalized=True)]},
    "roberta": {"pre_tokenizer": byte_level(True, True),
                "added_tokens": [end, added("<s>", count, special=True, normalized=True), added("<mask>", count + 1, special=True, lstrip=True)]},
    "neox": {"normalizer": {"type": "NFC"}, "pre_tokenizer": byte_level(False, True),
             "added_tokens": [end] + [added(" " * (8 - i), count + i, normalized=True) for i in range(7)]},
    "llama3": {"pre_tokenizer": sequence(split(old_cl100k), byte_level()), "ignore_merges": True,
               "added_tokens": [end, added("<|im_start|>", count, special=True)]},
    "digits": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level(False, True)), "added_tokens": [end]},
    "behaviors": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]},
                  "pre_tokenizer": sequence({"type": "Punctuation", "behavior": "MergedWithPrevious"}, split(r"\s", "MergedWithNext"),
                                            {"type": "Digits", "individual_digits": False}, split("^.$|e+", "Contiguous"),
                                            split(r"\w+|\W", "Removed", True), byte_level(True)),
                  "added_tokens": [end, added("\ufb01", count, normalized=True, rstrip=True),
                                   added("the", written["model"]["vocab"]["the"], normalized=True, single_word=True),
                                   added("ab", count + 1), added("abc", count + 2, lstrip=True, rstrip=True)]},
    "strips": {"pre_tokenizer": byte_level(False, True),  # names in white space that another token has stripped
               "added_tokens": [end, added("  ", count, rstrip=True), added("\n", count + 1, rstrip=True), added("\t", count + 2, lstrip=True),
                                added("<think>", count + 3, rstrip=True), added(" four", count + 4),
                                added("   ", count + 5, lstrip=True, rstrip=True)]},
    "ordinary": {"pre_tokenizer": byte_level(False, True),  # names of special tokens that are also tokens of the model
                 "added_tokens": [end] + [added(name, written["model"]["vocab"][name], special=True) for name in ("1", "th", "the")]},
    "ordinary_pieces": {"pre_tokenizer": sequence(split(r"<\|[^<>]*>"), byte_level()), "ignore_merges": True, "added_tokens": [end]},
}

marked = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
marked.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
marked.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1200, show_progress=False, limit_alphabet=200, special_tokens=[
    "<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
of_characters = json.loads(marked.to_str())
of_characters["added_tokens"] = of_characters["added_tokens"][:3]
if (here / "tokens_characters.json").exists():  # training is not reproducible
    of_characters = json.loads((here / "tokens_characters.json").read_text())
write_json("tokens_characters.json", of_characters)
mark = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
three = of_characters["added_tokens"]
on_characters = {
    "mistral": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, mark]}, "pre_tokenizer": None,
                "added_tokens": three},
    "metaspace": {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False},
                  "added_tokens": three + [added("ab", len(of_characters["model"]["vocab"]))]},
    "metaspace_split": {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}, "added_tokens": three},
    "gemma": {"normalizer": mark, "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
              "added_tokens": three + [added("\n\n", len(of_characters["model"]["vocab"]))]},
    "ordinary_characters": {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
                            "added_tokens": three + [added(name, of_characters["model"]["vocab"][name], special=True) for name in ("e", "th", "1")]},
}
cases = []
for base, named in (("tokens_gpt2.json", on_bytes), ("tokens_characters.json", on_characters)):
    for name, change in named.items():
        for special in (False, True) if name in ("qwen", "roberta", "metaspace", "ordinary", "ordinary_characters") else (False,):
            full = json.loads((here / base).read_text())
            full.update({key: change.get(key) for key in ("normalizer", "pre_tokenizer", "added_tokens")})
            full["model"]["ignore_merges"] = change.get("ignore_merges", False)
            hf = Tokenizer.from_str(json.dumps(full))
            hf.encode_special_tokens = not special
            for token in full["added_tokens"]:
                token["id"] = hf.token_to_id(token["content"])
            case = name + ("_special" if special else "")
            write_ids(case, lambda text: hf.encode(text, add_special_tokens=False).ids, step_documents)
            cases.append({"name": case, "base": base, "special": special, "ignore_merges": full["model"]["ignore_merges"],
                          **{key: full[key] for key in ("normalizer", "pre_tokenizer", "added_tokens")}})
(here / "tokens_cases.json").write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")
