"""Makes tests/golden/checkpoint/*.safetensors: what Transformers answers with the checkpoints of the
test data, in float64 from their float32 weights.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3 numpy safetensors
    TANDEM_TEST_DATA=shared/data python tests/golden/make_checkpoint_golden.py

    bert_xsmall_dummy   lines of text by its own vocabulary; hidden F32 [tokens, hidden], pooler F32
                        [sequences, hidden]
    keras_bert_tiny     every id, single and in pairs, its weights put into BertForPreTraining; hidden
                        too, logits F32 [tokens, vocabulary] of every token, pair_logits F32
                        [sequences, 2], losses F64 [2, 3] as in make_encoder_golden.py, of the ids
                        themselves and the pair_labels

Both hold the batch as models/encoder.h has it, batch.<tensor>, unpadded, without room behind it.
"""
import json
import os

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.numpy import save_file
from torch.nn import functional

import tensorflow_bundle

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.environ["TANDEM_TEST_DATA"], "checkpoint")

LINES = [
    "the",
    "The cat sat on the mat, and that was that.",
    "Is it as good as his? He said: 1 + 1 = 2!",
    "caf\u00e9 na\u00efve \u6771\u4eac",
    "",
    "in the beginning of the 21st century (A.D.) there was much to do with words and letters",
]
PAIRS = [("the of and", "to in was"), ("is", "for as on with that his")]


def batch_of(rows):
    """Of rows (ids, types)."""
    lengths = [len(ids) for ids, _ in rows]
    count = len(rows)
    tensors = {
        "rows": np.array([count], np.int64),
        "weight": np.ones(count, np.float32),
        "sample": np.arange(count, dtype=np.uint64),
        "ids": np.concatenate([ids for ids, _ in rows]).astype(np.uint32),
        "types": np.concatenate([types for _, types in rows]).astype(np.uint32),
        "positions": np.concatenate([np.arange(n) for n in lengths]).astype(np.uint32),
        "token_rows": np.repeat(np.arange(count), lengths).astype(np.uint32),
        "cu_seqlens": np.cumsum([0, *lengths]).astype(np.int32),
        "token_count": np.array([sum(lengths)], np.int64),
    }
    return {f"batch.{n}": t for n, t in tensors.items()}


def run(model, rows):
    """The model's answers a row."""
    with torch.no_grad():
        return [model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types]),
                      output_hidden_states=True) for ids, types in rows]


def gather(answers, get):
    return torch.cat([get(answer) for answer in answers]).float().numpy()


def hidden_of(answer):
    return answer.hidden_states[-1][0]


def make_xsmall():
    folder = os.path.join(DATA, "bert-xsmall-dummy")
    model = transformers.BertModel.from_pretrained(folder).double().eval()
    tokenizer = tokenizers.BertWordPieceTokenizer(os.path.join(folder, "vocab.txt"), lowercase=False)
    encodings = [tokenizer.encode(line) for line in LINES]
    encodings += [tokenizer.encode(*pair) for pair in PAIRS]
    rows = [(encoding.ids, encoding.type_ids) for encoding in encodings]
    answers = run(model, rows)
    return batch_of(rows) | {"hidden": gather(answers, hidden_of),
                             "pooler": gather(answers, lambda a: a.pooler_output)}


def bert_name(name):
    """TensorFlow's name of a tensor to Transformers', and whether it is to be transposed."""
    special = {"cls/predictions/output_bias": "cls.predictions.bias",
               "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
               "cls/seq_relationship/output_bias": "cls.seq_relationship.bias"}
    if name in special:
        return special[name], False
    parts = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
    path = [parts.get(part, part) for part in name.replace("layer_", "layer.").split("/")]
    if path[-1].endswith("_embeddings"):
        path.append("weight")
    return ".".join(path), name.endswith("kernel")


def make_keras():
    folder = os.path.join(DATA, "keras-bert-tiny")
    with open(os.path.join(folder, "bert_config.json")) as file:
        config = transformers.BertConfig(**json.load(file))
    model = transformers.BertForPreTraining(config)
    state = {}
    for name, tensor in tensorflow_bundle.read(os.path.join(folder, "bert_model.ckpt")).items():
        if name.startswith(("bert/", "cls/")) and "adam" not in name:
            ours, transposed = bert_name(name)
            state[ours] = torch.from_numpy(tensor.T.copy() if transposed else tensor.copy())
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"]
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and not [n for n in missing if "position_ids" not in n], missing
    model = model.double().eval()
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        size = len(file.read().split("\n"))
    assert size == config.vocab_size
    rng = np.random.default_rng(7)
    order = [i % size for i in range(2 * size)]
    rows = [(order[:16], [0] * 16), (order[16:], [0] * (2 * size - 16)), ([3], [0])]
    for length, first in ((16, 7), (9, 2), (5, 4)):
        ids = rng.integers(0, size, length).tolist()
        rows.append((ids, [0] * first + [1] * (length - first)))
    answers = run(model, rows)
    logits = gather(answers, lambda a: a.prediction_logits[0])
    scores = gather(answers, lambda a: a.seq_relationship_logits)
    out = batch_of(rows)
    out["batch.pair_labels"] = (np.arange(len(rows)) % 2).astype(np.uint32)
    out["batch.mask_positions"] = np.arange(len(logits), dtype=np.uint32)
    out["batch.mask_labels"] = out["batch.ids"].copy()
    out["batch.mask_count"] = out["batch.mask_parts"] = out["batch.token_count"].copy()
    losses = [loss_of(logits, out["batch.mask_labels"]), loss_of(scores, out["batch.pair_labels"])]
    return out | {"hidden": gather(answers, hidden_of), "logits": logits, "pair_logits": scores,
                  "losses": np.array(losses)}


def loss_of(logits, labels):
    logits, labels = torch.from_numpy(logits).double(), torch.from_numpy(labels.astype(np.int64))
    loss = functional.cross_entropy(logits, labels, reduction="sum").item()
    return [len(labels), loss, (logits.argmax(1) == labels).sum().item()]


def main():
    print("torch", torch.__version__, "transformers", transformers.__version__,
          "tokenizers", tokenizers.__version__)
    folder = os.path.join(HERE, "checkpoint")
    os.makedirs(folder, exist_ok=True)
    for name, make in (("bert_xsmall_dummy", make_xsmall), ("keras_bert_tiny", make_keras)):
        path = os.path.join(folder, f"{name}.safetensors")
        save_file(make(), path)
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
