"""Hugging Face's tokenizers on the lines of a text: bytes a second, encode_batch_fast.

    huggingface_tokenize.py VOCAB TEXT [THREADS]"""
import json
import os
import sys
import time

vocab, path = sys.argv[1:3]
os.environ["RAYON_NUM_THREADS"] = sys.argv[3] if len(sys.argv) > 3 else "1"
from tokenizers import BertWordPieceTokenizer  # noqa: E402  (reads the variable when it is loaded)

tokenizer = BertWordPieceTokenizer(vocab, lowercase="uncased" in vocab or "chinese" in vocab)
with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
    lines = file.read().split("\n")
if lines[-1] == "":
    lines.pop()
best = None
for _ in range(2):
    start = time.perf_counter()
    encodings = tokenizer._tokenizer.encode_batch_fast(lines, add_special_tokens=False)
    seconds = time.perf_counter() - start
    best = seconds if best is None else min(best, seconds)
print(json.dumps({"tokens": sum(len(encoding.ids) for encoding in encodings),
                  "bytes_per_second": os.path.getsize(path) / best}))
