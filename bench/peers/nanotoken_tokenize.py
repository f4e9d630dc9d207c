"""nanotoken on the lines of a text, one thread or more: bytes a second with its word cache cold and
warm, and the hash of all ids (FNV-1a over 32-bit ids). Two forms, of which the better one counts:
a list of Python strings, and the file read in Rust.

    nanotoken_tokenize.py VOCAB TEXT [THREADS]"""
import json
import os
import statistics
import sys
import time

vocab, path = sys.argv[1:3]
threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
os.environ["RAYON_NUM_THREADS"] = str(threads)
import nanotoken  # noqa: E402  (reads the variable when it is loaded)

uncased = "uncased" in vocab or "chinese" in vocab
tokenizer = nanotoken.Tokenizer.from_vocab(vocab, lowercase=uncased)
size = os.path.getsize(path)
with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
    lines = file.read().split("\n")
if lines[-1] == "":
    lines.pop()
source = nanotoken.TextFileSource([path], separator="\n")


def strings():
    return tokenizer.encode_batch(lines, add_special_tokens=False)


def files():
    return tokenizer.encode_files(source, add_special_tokens=False)


def seconds(encode, cold):
    times = []
    for _ in range(9):
        if cold:
            tokenizer.clear_cache()
        start = time.perf_counter()
        encode()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


result = {"tokens": int(len(strings().ids))}
for name, cold in (("cold", True), ("warm", False)):
    best = min(seconds(encode, cold) for encode in (strings, files))
    result[name + "_bytes_per_second"] = size / best
print(json.dumps(result))
