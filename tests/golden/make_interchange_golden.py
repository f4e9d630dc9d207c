"""Makes tests/golden/interchange/: small folders as Transformers writes them, each with what its class
answers, computed in float64 (answers.safetensors).

    pip install torch==2.15.0 transformers==5.24.0 numpy safetensors
    python tests/golden/make_interchange_golden.py

Answers hold a batch as models/encoder.h has it, batch.ids, batch.types and batch.cu_seqlens, the last
hidden states "hidden" [tokens, H], "pooler" [sequences, H] where the class has one, and "logits" of
the head: of tokens [tokens, n] or of sequences [sequences, n]; F32.
"""
import os
import shutil

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interchange")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("abcdefgh") + \
    ["##" + c for c in "abcdefgh"] + ["cab", "bead", "##ed", "fa", "."]
LENGTHS = [9, 1, 12, 5]
SIZES = dict(vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=20, max_position_embeddings=12, pad_token_id=0,
             initializer_range=0.2)
MODERN = SIZES | dict(num_hidden_layers=4, local_attention=6, global_attn_every_n_layers=3,
                      cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3)

CASES = {
    "bert_pretraining": lambda: transformers.BertForPreTraining(transformers.BertConfig(**SIZES)),
    "bert_masked": lambda: transformers.BertForMaskedLM(
        transformers.BertConfig(**SIZES, hidden_act="gelu_new", layer_norm_eps=1e-5)),
    "bert_classes": lambda: transformers.BertForSequenceClassification(
        transformers.BertConfig(**SIZES, num_labels=3)),
    "bert_tokens": lambda: transformers.BertForTokenClassification(
        transformers.BertConfig(**SIZES, num_labels=5)),
    "megatron_masked": lambda: transformers.MegatronBertForMaskedLM(
        transformers.MegatronBertConfig(**SIZES)),
    "modern_masked": lambda: transformers.ModernBertForMaskedLM(
        transformers.ModernBertConfig(**MODERN)),
}


def randomize(model):
    """Weights that all matter: biases and norms too."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.2 + name.lower().endswith("norm.weight"))


def batch(vocabulary, lengths, types):
    generator = np.random.default_rng(3)
    count = sum(lengths)
    ends = np.cumsum([0] + lengths).astype(np.int32)
    segments = np.zeros(count, np.uint32)
    for begin, end in zip(ends, ends[1:]):
        segments[begin + (end - begin) // 2:end] = types
    return {"ids": generator.integers(0, vocabulary, count).astype(np.uint32), "types": segments,
            "cu_seqlens": ends}


def answer(model, lengths=LENGTHS):
    """What the class says, each sequence alone, so that nothing is padded."""
    has_types = getattr(model.config, "type_vocab_size", 0) > 0
    answers = batch(model.config.vocab_size, lengths, int(has_types))
    model = model.double().eval()
    parts = {"hidden": [], "pooler": [], "logits": []}
    for begin, end in zip(answers["cu_seqlens"], answers["cu_seqlens"][1:]):
        def row(name):
            return torch.from_numpy(answers[name][begin:end].astype(np.int64))[None]
        arguments = {"input_ids": row("ids")} | ({"token_type_ids": row("types")} if has_types else {})
        with torch.no_grad():
            base = model.base_model(**arguments)
            output = model(**arguments)
        parts["hidden"].append(base.last_hidden_state[0])
        if getattr(base, "pooler_output", None) is not None:
            parts["pooler"].append(base.pooler_output)
        for name in ("logits", "prediction_logits"):
            if getattr(output, name, None) is not None:
                logits = getattr(output, name)
                parts["logits"].append(logits[0] if logits.dim() == 3 else logits)
    return {f"batch.{name}": value for name, value in answers.items()} | {
        name: torch.cat(values).float().numpy() for name, values in parts.items() if values}


def make_folder(name, make):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(7)
    model = make()
    randomize(model)
    model.save_pretrained(folder)
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(TOKENS) + "\n")
    save_file(answer(model), os.path.join(folder, "answers.safetensors"))


def make_sharded():
    """bert_masked in several files."""
    model = transformers.BertForMaskedLM.from_pretrained(os.path.join(HERE, "bert_masked"))
    folder = os.path.join(HERE, "bert_sharded")
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size="8KB")


def main():
    os.makedirs(HERE, exist_ok=True)
    for name, make in CASES.items():
        make_folder(name, make)
    make_sharded()


if __name__ == "__main__":
    main()
