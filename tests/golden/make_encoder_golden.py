"""Makes the reference files of the encoder, tests/golden/encoder/*.safetensors.

    pip install torch==2.15.0 numpy safetensors
    python tests/golden/make_encoder_golden.py

Where transformers==5.24.0 is installed too, each case that one of its classes can hold is compared
with that class first, in float64: hidden states, losses, every gradient.

Everything is computed in float64 by encoder_reference.py from float32 weights that both sides start
from, without dropout. A file holds

    (metadata) model, head  the recipe's section `model`, and what is asked of the encoder
    sizes                   I64: S, T, P, vocabulary, max_length, classes
    batch.<tensor>          the tensors of models/encoder.h; in curve.safetensors [steps, …]
    init.<parameter>        F32
    hidden                  F32 [tokens, hidden], behind the last layer
    logits                  F32 of the head: [mask_count, vocabulary], [sequences or tokens, classes]
    losses                  F64 [2, 3]: weight sum, loss sum, correct sum of loss 0 and loss 1
    grad.<parameter>        F32, of the sum of both losses, each divided by its weight sum

and curve.safetensors, in place of what comes behind init, the learning rates and the losses, F64
[steps] and [steps, 2, 3], each before its update: AdamW (0.9, 0.999, eps 1e-6), decay 0.01 of
matrices, gradients clipped to CLIP_NORM.

References are rounded to float32 in the file: a hundredth of what tests allow. Whatever lies behind
the valid sequences, tokens and predictions is NaN or no id: nothing may read it.
"""
import json
import os

import numpy as np
import torch
from safetensors.numpy import save_file

import encoder_reference as reference
from encoder_reference import NO_LABEL

CLS, SEP, MASK, FIRST_WORD, VOCABULARY = 2, 3, 4, 5, 67
LENGTHS = [24, 1, 13, 7, 24, 2, 17]
SEQUENCES, TOKENS, PREDICTIONS, MAX_LENGTH = 9, 96, 20, 24
STEPS, WARMUP, LEARNING_RATE, DECAY, EPS, CLIP_NORM = 50, 10, 5e-3, 0.01, 1e-6, 1.0

# head, pairs, classes, options; the seed is the place in the list
CASES = {
    "bert_post": ("masked", True, 0, {"layers": 2, "intermediate": 48, "max_positions": 26}),
    "megatron_pre": ("masked", True, 0, {"layers": 3, "intermediate": 40, "norm": "pre"}),
    "modern": ("masked", False, 0, {
        "layers": 3, "intermediate": 24, "norm": "pre", "embedding_norm": True, "norm_eps": 1e-5,
        "positions": "rotary", "rotary_theta": 160000.0, "local_rotary_theta": 100.0,
        "local_window": 4, "global_every": 2, "types": False, "gated": True, "bias": False}),
    "gelu_tanh": ("masked", False, 0, {"layers": 1, "types": False, "activation": "gelu_tanh"}),
    "classes": ("classes", False, 5, {"layers": 1, "intermediate": 40}),
    "labels": ("labels", False, 3, {
        "layers": 1, "intermediate": 40, "norm": "pre", "embedding_norm": True, "pooler": False}),
    "regression": ("regression", False, 1, {
        "layers": 1, "intermediate": 24, "positions": "rotary", "gated": True,
        "activation": "gelu_tanh"}),
    "token_classes": ("token_classes", False, 9, {
        "layers": 2, "intermediate": 20, "local_window": 3, "global_every": 2, "bias": False}),
}


def options_of(case):
    return reference.DEFAULTS | {"hidden": 32, "heads": 4} | case[3]


def inputs_of(case, max_length):
    return {"vocabulary": VOCABULARY, "max_length": max_length, "head": case[0], "pairs": case[1],
            "classes": case[2]}


def draw_weights(rng, shapes):
    """Large enough that attention is not flat and every path counts."""
    weights = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            scale = 0.6 if name.startswith("embeddings") else 1.2 / np.sqrt(shape[1])
            weights[name] = rng.standard_normal(shape) * scale
        else:
            weights[name] = rng.standard_normal(shape) * 0.2
            if name.endswith("norm.weight"):
                weights[name] += 1
    return {n: w.astype(np.float32) for n, w in weights.items()}


# ---- batches -------------------------------------------------------------------------------------


def draw_sequence(rng, length, paired):
    """Ids and types: words count on by a step, and the second segment of a pair goes on with it or,
    where the label is 1, begins anew with another."""
    def words(count, first, step):
        return [FIRST_WORD + (first + step * i) % (VOCABULARY - FIRST_WORD) for i in range(count)]

    first, step = int(rng.integers(0, 60)), int(rng.integers(1, 4))
    label = int(rng.integers(0, 2))
    if length < 3:
        return [CLS, SEP][:length], [0] * length, label
    if not paired or length < 6:
        return [CLS, *words(length - 2, first, step), SEP], [0] * length, label
    count = int(rng.integers(1, length - 4))
    rest = length - 3 - count
    if label == 1:
        second = words(rest, int(rng.integers(0, 60)), step % 3 + 1)
    else:
        second = words(rest, first + step * count, step)
    ids = [CLS, *words(count, first, step), SEP, *second, SEP]
    return ids, [0] * (count + 2) + [1] * (rest + 1), label


def mask_tokens(rng, ids, limit):
    """Masks in place some 15 % of the words; where they stood, and which."""
    words = np.flatnonzero(ids >= FIRST_WORD)
    chosen = np.sort(rng.permutation(words)[:min(limit, max(1, round(0.15 * len(words))))])
    labels = ids[chosen].copy()
    draws = rng.random(len(chosen))
    ids[chosen[draws < 0.8]] = MASK
    for at in chosen[draws > 0.9]:
        ids[at] = rng.integers(FIRST_WORD, VOCABULARY)
    return chosen, labels


def draw_labels(rng, head, classes, lengths):
    sequences, tokens = len(lengths), sum(lengths)
    if head == "classes":
        labels = rng.integers(0, classes, sequences)
        labels[2] = NO_LABEL
        return labels.astype(np.uint32)
    if head == "labels":
        return (rng.random((sequences, classes)) < 0.4).astype(np.float32)
    if head == "regression":
        return rng.standard_normal(sequences).astype(np.float32)
    labels = rng.integers(0, classes, tokens)
    labels[rng.random(tokens) < 0.3] = NO_LABEL
    return labels.astype(np.uint32)


def padded(values, size, dtype):
    """Behind the values comes what nothing may read."""
    values = np.asarray(values, dtype)
    rest = np.full((size - len(values), *values.shape[1:]), np.array(-1).astype(dtype), dtype)
    if values.dtype == np.float32:
        rest[:] = np.nan
    return np.concatenate([values, rest])


def draw_batch(rng, case, lengths, sizes):
    """Tensors by name, as models/encoder.h has them."""
    head, pairs, classes, _ = case
    sequences, tokens, predictions = sizes
    rows = [draw_sequence(rng, n, pairs or rng.random() < 0.5) for n in lengths]
    ids = np.array([i for row in rows for i in row[0]])
    ends = np.cumsum([0, *lengths])
    weights = np.ones(len(lengths))
    if head in ("classes", "labels", "regression"):
        weights[rng.random(len(lengths)) < 0.4] = 2.5
    weights = np.concatenate([weights, np.zeros(sequences - len(lengths))])
    batch = {
        "rows": np.array([len(lengths)], np.int64),
        "weight": weights.astype(np.float32),
        "sample": (3 << 32) + np.arange(sequences, dtype=np.uint64),
        "types": padded([t for row in rows for t in row[1]], tokens, np.uint32),
        "positions": padded([i for n in lengths for i in range(n)], tokens, np.uint32),
        "token_rows": padded(np.repeat(np.arange(len(lengths)), lengths), tokens, np.uint32),
        "cu_seqlens": padded(ends, sequences + 1, np.int32),
        "token_count": np.array([ends[-1]], np.int64),
    }
    if head == "masked":
        positions, labels = mask_tokens(rng, ids, predictions)
        batch["mask_positions"] = padded(positions, predictions, np.uint32)
        batch["mask_labels"] = padded(labels, predictions, np.uint32)
        batch["mask_count"] = batch["mask_parts"] = np.array([len(positions)], np.int64)
    else:
        labels = draw_labels(rng, head, classes, lengths)
        size = tokens if head == "token_classes" else sequences
        batch["labels"] = padded(labels, size, labels.dtype)
    if pairs:
        batch["pair_labels"] = padded([row[2] for row in rows], sequences, np.uint32)
    batch["ids"] = padded(ids, tokens, np.uint32)
    return batch


def valid_part(batch):
    """The batch as encoder_reference.py takes it."""
    rows, tokens = int(batch["rows"][0]), int(batch["token_count"][0])
    ends = batch["cu_seqlens"][:rows + 1].tolist()
    counts = {"weight": rows, "pair_labels": rows, "labels": rows, "ids": tokens, "types": tokens,
              "positions": tokens}
    if "mask_count" in batch:
        counts["mask_positions"] = counts["mask_labels"] = int(batch["mask_count"][0])
    if "labels" in batch and len(batch["labels"]) == len(batch["ids"]):
        counts["labels"] = tokens
    out = {"spans": list(zip(ends, ends[1:]))}
    for name, count in counts.items():
        if name in batch:
            values = torch.from_numpy(batch[name][:count].copy())
            out[name] = values.double() if values.is_floating_point() else values.long()
    return out


# ---- files ---------------------------------------------------------------------------------------


def loss_table(losses):
    table = np.zeros((2, 3))
    for i, parts in enumerate(losses):
        table[i] = [float(part.detach()) for part in parts]
    return table


def start(name, sizes, max_length):
    """Encoder, its random stream, and what every file begins with."""
    case = CASES[name]
    rng = np.random.default_rng(list(CASES).index(name) + 20)
    options = options_of(case)
    weights = draw_weights(rng, reference.shapes_of(options, inputs_of(case, max_length)))
    if case[0] != "masked":
        sizes = (*sizes[:2], 0)
    out = {"sizes": np.array([*sizes, VOCABULARY, max_length, case[2]], np.int64)}
    out |= {f"init.{n}": w for n, w in weights.items()}
    return reference.Encoder(options, weights), rng, out


def make_case(name):
    head = CASES[name][0]
    sizes = (SEQUENCES, TOKENS, PREDICTIONS)
    encoder, rng, out = start(name, sizes, MAX_LENGTH)
    batch = draw_batch(rng, CASES[name], LENGTHS, sizes)
    hidden, logits, losses = reference.losses_of(encoder, head, valid_part(batch))
    reference.total_loss(losses).backward()
    out |= {f"batch.{n}": t for n, t in batch.items()}
    out["hidden"] = hidden.detach().float().numpy()
    out["logits"] = logits.detach().float().numpy()
    out["losses"] = loss_table(losses)
    for n, w in encoder.weights.items():
        out[f"grad.{n}"] = w.grad.float().numpy()
    compare(name, encoder, batch, hidden, losses)
    return out


def make_curve(name):
    sizes, max_length = (8, 80, 16), 16
    encoder, rng, out = start(name, sizes, max_length)
    parameters = list(encoder.weights.values())
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in parameters if w.ndim > 1], "weight_decay": DECAY},
         {"params": [w for w in parameters if w.ndim == 1], "weight_decay": 0.0}],
        betas=(0.9, 0.999), eps=EPS)
    batches, tables, rates = [], [], []
    for step in range(1, STEPS + 1):
        lengths = rng.integers(2, max_length + 1, int(rng.integers(4, 6))).tolist()
        batch = draw_batch(rng, CASES[name], lengths, sizes)
        rates.append(LEARNING_RATE * min(1.0, step / WARMUP))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.zero_grad()
        _, _, losses = reference.losses_of(encoder, CASES[name][0], valid_part(batch))
        reference.total_loss(losses).backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        optimizer.step()
        batches.append(batch)
        tables.append(loss_table(losses))
    out |= {f"batch.{n}": np.stack([b[n] for b in batches]) for n in batches[0]}
    out["learning_rates"] = np.array(rates)
    out["losses"] = np.stack(tables)
    return out


def compare(name, encoder, batch, hidden, losses):
    """With Transformers, where that is there and has such a class."""
    try:
        import encoder_transformers
    except ImportError as error:
        print(f"{name}: not compared ({error})")
        return
    print(f"{name}: {encoder_transformers.compare(CASES[name][0], encoder, batch, hidden, losses)}")


def save(folder, name, case, tensors):
    path = os.path.join(folder, f"{name}.safetensors")
    model = options_of(case) | {"dropout": 0.0, "attention_dropout": 0.0}
    metadata = {"model": json.dumps(model), "head": case[0]}
    save_file(tensors, path, metadata)
    print(path, os.path.getsize(path))


def main():
    print("torch", torch.__version__, "numpy", np.__version__)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encoder")
    os.makedirs(folder, exist_ok=True)
    for name, case in CASES.items():
        save(folder, name, case, make_case(name))
    save(folder, "curve", CASES["bert_post"], make_curve("bert_post"))


if __name__ == "__main__":
    main()
