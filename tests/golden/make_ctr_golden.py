"""Makes the reference files of the CTR models, tests/golden/ctr/*.safetensors.

    pip install torch numpy safetensors
    python tests/golden/make_ctr_golden.py

Everything is computed in float64 by PyTorch's autograd from written-out formulas, from float32
weights and inputs that both sides start from. A file holds

    fields.rows, fields.dims    table rows and embedding_dim of each field
    batch.*                     batches: ids [steps, fields, batch], dense, label, weight, rows
    init.<parameter>            F32
    logits, loss, grad.*        of the first batch, F64; sparse gradients as whole tables
    train.loss, final.*         the loss of each batch before its update by Adam, the weights after

Rows behind the valid ones hold NaN and ids of no row: nothing may read them. No pre-activation of
a ReLU comes nearer to zero than KINK.
"""
import os

import numpy as np
import torch
from safetensors.numpy import save_file

BATCH = 37
VALID = [33, 37, 20, 37, 1, 37, 36, 37, 5, 37]
STEPS = len(VALID)
BUCKETS = [1, 3, 10, 20, 50, 100, 6]
DENSE = 3
UNITS = [16, 8]
CROSSES = 2
KINK = 1e-4
LEARNING_RATE, BETA1, BETA2, EPS = 1e-2, 0.9, 0.999, 1e-8

ROWS = [buckets + 4 for buckets in BUCKETS]
FIELDS = [f"C{i + 1}" for i in range(len(BUCKETS))]


def linear(weights, name, x, bias=True):
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if bias else y


def embeddings(weights, name, ids):
    # Row 0 is padding: a zero vector without a gradient.
    return [torch.nn.functional.embedding(ids[f], weights[f"{name}.{field}.weight"], padding_idx=0)
            for f, field in enumerate(FIELDS)]


def mlp(weights, x, kinks):
    for i in range(len(UNITS)):
        z = linear(weights, f"mlp.{i}", x)
        kinks.append(z.abs().min().item())
        x = torch.relu(z)
    return linear(weights, "mlp.logit", x)[:, 0]


def logistic_regression(weights, ids, dense, kinks):
    first = sum(embeddings(weights, "first_order", ids))[:, 0]
    return first + linear(weights, "linear", dense, bias=False)[:, 0] + weights["logit.bias"]


def deepfm(weights, ids, dense, kinks):
    first = sum(embeddings(weights, "first_order", ids))[:, 0]
    first = first + linear(weights, "linear", dense, bias=False)[:, 0]
    vectors = embeddings(weights, "embedding", ids)
    pairs = sum((vectors[i] * vectors[j]).sum(1)
                for i in range(len(vectors)) for j in range(i + 1, len(vectors)))
    return first + pairs + mlp(weights, torch.cat([*vectors, dense], 1), kinks)


def dcn_v2(weights, ids, dense, kinks):
    x0 = torch.cat([*embeddings(weights, "embedding", ids), dense], 1)
    x = x0
    for i in range(CROSSES):
        x = x0 * linear(weights, f"cross.{i}", x) + x
    crossed = linear(weights, "cross.logit", x, bias=False)[:, 0]
    return crossed + mlp(weights, x0, kinks)


def shapes_of(model, dims):
    """(name, shape, sparse) of every parameter."""
    width = sum(dims) + DENSE
    out = []
    if model is not dcn_v2:
        out += [(f"first_order.{f}.weight", (r, 1), True) for f, r in zip(FIELDS, ROWS)]
        out += [("linear.weight", (1, DENSE), False)]
    if model is logistic_regression:
        return out + [("logit.bias", (1,), False)]
    out += [(f"embedding.{f}.weight", (r, d), True) for f, r, d in zip(FIELDS, ROWS, dims)]
    if model is dcn_v2:
        for i in range(CROSSES):
            out += [(f"cross.{i}.weight", (width, width), False),
                    (f"cross.{i}.bias", (width,), False)]
        out += [("cross.logit.weight", (1, width), False)]
    for i, (before, units) in enumerate(zip([width, *UNITS], UNITS)):
        out += [(f"mlp.{i}.weight", (units, before), False), (f"mlp.{i}.bias", (units,), False)]
    return out + [("mlp.logit.weight", (1, UNITS[-1]), False), ("mlp.logit.bias", (1,), False)]


def draw_weights(rng, parameters):
    weights = {}
    for name, shape, sparse in parameters:
        scale = 0.3 if sparse or len(shape) == 1 else 1.0 / np.sqrt(shape[1])
        weights[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
        if sparse:
            weights[name][0] = 0
    return weights


def draw_batch(rng):
    # A third of the ids is one of two common values, so that ids repeat; 0 to 3 occur too.
    ids = np.stack([np.where(rng.random(BATCH) < 0.35, rng.integers(0, 2, BATCH) + 3,
                             rng.integers(0, rows, BATCH)) for rows in ROWS])
    return {"ids": ids.astype(np.uint32),
            "dense": rng.standard_normal((BATCH, DENSE)).astype(np.float32),
            "label": (rng.random(BATCH) < 0.4).astype(np.float32),
            "weight": np.where(rng.random(BATCH) < 0.2, 2.5, 1.0).astype(np.float32)}


def loss_of(model, weights, batch, valid):
    kinks = [np.inf]
    ids = torch.from_numpy(batch["ids"][:, :valid].astype(np.int64))
    dense, label, weight = (torch.from_numpy(batch[k][:valid]).double()
                            for k in ("dense", "label", "weight"))
    logits = model(weights, ids, dense, kinks)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, label, reduction="none")
    return logits, (weight * losses).sum() / weight.sum(), min(kinks)


def draw_smooth_batch(rng, model, weights, valid):
    while True:
        batch = draw_batch(rng)
        with torch.no_grad():
            _, _, kink = loss_of(model, weights, batch, valid)
        if kink > KINK:
            break
    for name in ("dense", "label", "weight"):
        batch[name][valid:] = np.nan
    batch["ids"][:, valid:] = 0xffffffff
    return batch


def adam(weights, moments, batch, valid, step, parameters):
    """Dense: every element. Sparse: the rows whose ids the batch holds, 0 apart. t is global."""
    for name, _, sparse in parameters:
        w, g = weights[name].data, weights[name].grad
        if sparse:
            field = FIELDS.index(name.split(".")[1])
            used = np.unique(batch["ids"][field, :valid])
            index = torch.from_numpy(used[used != 0].astype(np.int64))
        else:
            index = slice(None)
        m, v = moments[name]
        m[index] = BETA1 * m[index] + (1 - BETA1) * g[index]
        v[index] = BETA2 * v[index] + (1 - BETA2) * g[index] ** 2
        m_hat = m[index] / (1 - BETA1 ** step)
        v_hat = v[index] / (1 - BETA2 ** step)
        w[index] -= LEARNING_RATE * m_hat / (v_hat.sqrt() + EPS)


def make(model, dims, seed):
    rng = np.random.default_rng(seed)
    parameters = shapes_of(model, dims)
    start = draw_weights(rng, parameters)
    out = {"fields.rows": np.array(ROWS, np.int64), "fields.dims": np.array(dims, np.int64),
           "batch.rows": np.array(VALID, np.int64)}
    out |= {f"init.{name}": w for name, w in start.items()}
    weights = {n: torch.from_numpy(w).double().requires_grad_() for n, w in start.items()}
    moments = {n: (torch.zeros_like(w.data), torch.zeros_like(w.data)) for n, w in weights.items()}
    batches, curve = [], []
    for step, valid in enumerate(VALID, 1):
        batch = draw_smooth_batch(rng, model, weights, valid)
        batches.append(batch)
        for w in weights.values():
            w.grad = None
        logits, loss, _ = loss_of(model, weights, batch, valid)
        loss.backward()
        curve.append(loss.item())
        if step == 1:
            out["logits"] = logits.detach().numpy()
            out["loss"] = np.array([loss.item()])
            out |= {f"grad.{n}": w.grad.numpy().copy() for n, w in weights.items()}
        adam(weights, moments, batch, valid, step, parameters)
    out |= {f"batch.{k}": np.stack([b[k] for b in batches]) for k in batches[0]}
    out |= {f"final.{n}": w.detach().numpy() for n, w in weights.items()}
    out["train.loss"] = np.array(curve)
    return out


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ctr")
    os.makedirs(folder, exist_ok=True)
    cases = [(logistic_regression, [4] * len(BUCKETS), 11),
             (deepfm, [4] * len(BUCKETS), 12),
             (dcn_v2, [4, 1, 8, 2, 4, 8, 3], 13)]
    for model, dims, seed in cases:
        path = os.path.join(folder, f"{model.__name__}.safetensors")
        save_file(make(model, dims, seed), path)
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
