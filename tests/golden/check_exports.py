"""Loads exported folders in Transformers: by hand, behind the test that writes them.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3
    TANDEM_EXPORTS=/tmp/exports build/dev/tests/check_export_huggingface
    python tests/golden/check_exports.py /tmp/exports

Each must load into the class that its config.json names, with no weight missing, left over or of another
shape, answer finite numbers, and tokenize as its tokenizer.json does.
"""
import json
import os
import sys

import tokenizers
import torch
import transformers

LINES = ["a ab.", "CAB  \u00e1bc abcab", "[MASK] b", ""]


def check_weights(folder, name):
    model, told = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    # A model without head was trained without pooler; Transformers' class has one.
    wanted = {"pooler.dense.weight", "pooler.dense.bias"} if name == "BertModel" else set()
    assert set(told["missing_keys"]) == wanted, told
    for key in ("unexpected_keys", "mismatched_keys"):
        assert not told[key], told
    return model.eval()


def check_answers(model, tokenizer):
    inputs = tokenizer(LINES, padding=True, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**inputs)
    for output in outputs.to_tuple():
        assert torch.isfinite(output).all()
    return [tuple(output.shape) for output in outputs.to_tuple()]


def check_tokens(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    exact = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    for line in LINES:
        assert tokenizer(line)["input_ids"] == exact.encode(line).ids, line
    assert tokenizer("a", "b")["input_ids"] == exact.encode("a", "b").ids
    return tokenizer


def main():
    base = sys.argv[1]
    for name in sorted(os.listdir(base)):
        folder = os.path.join(base, name)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        model = check_weights(folder, config["architectures"][0])
        tokenizer = check_tokens(folder)
        shapes = check_answers(model, tokenizer)
        if "id2label" in config:
            assert {int(k): v for k, v in config["id2label"].items()} == model.config.id2label
        print(f"{name}: {type(model).__name__}, {type(tokenizer).__name__}, {shapes}")


if __name__ == "__main__":
    main()
