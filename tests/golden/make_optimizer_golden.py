"""Makes the reference file of the optimizers, tests/golden/optimizer/updates.safetensors.

    pip install torch numpy safetensors
    python tests/golden/make_optimizer_golden.py

A written-out loop of LAMB (You et al., 2020) and PyTorch's own AdamW run in float64 for STEPS steps
over a few tensors, from float32 values and float32 gradients that both sides start from. Gradients
are scaled down to a global norm of CLIP_NORM where theirs is larger. Biases are not decayed; LAMB
then takes a ratio of 1, as apex and Google's code do. The file holds

    options                      F64: learning rate, beta1, beta2, eps, weight decay, clip norm
    init.<tensor>                F32
    gradients.<tensor>           F32, [STEPS, ...]
    norms                        F64 [STEPS]: global norms before clipping
    <rule>.<tensor>.value        F64, after the last step, as are
    <rule>.<tensor>.moment1, .moment2
"""
import os

import numpy as np
import torch
from safetensors.numpy import save_file

STEPS = 20
LEARNING_RATE, BETA1, BETA2, EPS, WEIGHT_DECAY, CLIP_NORM = 0.02, 0.9, 0.98, 1e-6, 0.05, 6.0
SHAPES = {"dense.weight": (24, 17), "dense.bias": (24,), "logit.weight": (1, 24), "zero.weight": (5,)}


def decays(name):
    return name.endswith(".weight")


def clipped(gradients):
    norm = torch.sqrt(sum((g ** 2).sum() for g in gradients.values()))
    scale = CLIP_NORM / norm if norm > CLIP_NORM else 1.0
    return norm, {name: g * scale for name, g in gradients.items()}


def lamb_step(w, g, m, v, step, weight_decay):
    m.mul_(BETA1).add_((1 - BETA1) * g)
    v.mul_(BETA2).add_((1 - BETA2) * g ** 2)
    u = (m / (1 - BETA1 ** step)) / ((v / (1 - BETA2 ** step)).sqrt() + EPS) + weight_decay * w
    ratio = 1.0
    if weight_decay > 0 and w.norm() > 0 and u.norm() > 0:
        ratio = w.norm() / u.norm()
    w.sub_(LEARNING_RATE * ratio * u)


def run_lamb(start, gradients):
    out = {}
    values = {n: torch.from_numpy(w).double() for n, w in start.items()}
    moments = {n: (torch.zeros_like(w), torch.zeros_like(w)) for n, w in values.items()}
    for step in range(1, STEPS + 1):
        _, now = clipped({n: torch.from_numpy(g[step - 1]).double() for n, g in gradients.items()})
        for name, w in values.items():
            lamb_step(w, now[name], *moments[name], step, WEIGHT_DECAY if decays(name) else 0.0)
    for name, w in values.items():
        out |= {f"lamb.{name}.value": w.numpy(), f"lamb.{name}.moment1": moments[name][0].numpy(),
                f"lamb.{name}.moment2": moments[name][1].numpy()}
    return out


def run_adamw(start, gradients):
    out, norms = {}, []
    values = {n: torch.from_numpy(w).double().requires_grad_() for n, w in start.items()}
    groups = [{"params": [w], "weight_decay": WEIGHT_DECAY if decays(n) else 0.0}
              for n, w in values.items()]
    adamw = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=(BETA1, BETA2), eps=EPS)
    for step in range(STEPS):
        norm, now = clipped({n: torch.from_numpy(g[step]).double() for n, g in gradients.items()})
        norms.append(norm.item())
        for name, w in values.items():
            w.grad = now[name]
        adamw.step()
    for name, w in values.items():
        state = adamw.state[w]
        out |= {f"adamw.{name}.value": w.detach().numpy(),
                f"adamw.{name}.moment1": state["exp_avg"].numpy(),
                f"adamw.{name}.moment2": state["exp_avg_sq"].numpy()}
    return out, np.array(norms)


def main():
    rng = np.random.default_rng(11)
    start = {n: (0.3 * rng.standard_normal(s)).astype(np.float32) for n, s in SHAPES.items()}
    start["zero.weight"][:] = 0
    # Sizes of gradients that differ by step, so that clipping is on in some steps only.
    sizes = np.exp(0.6 * rng.standard_normal(STEPS)) * 0.25
    gradients = {n: (sizes.reshape(-1, *[1] * len(s)) * rng.standard_normal((STEPS, *s)))
                 .astype(np.float32) for n, s in SHAPES.items()}
    adamw, norms = run_adamw(start, gradients)
    assert 5 <= (norms > CLIP_NORM).sum() <= 15, norms
    options = [LEARNING_RATE, BETA1, BETA2, EPS, WEIGHT_DECAY, CLIP_NORM]
    out = {"options": np.array(options), "norms": norms, **adamw, **run_lamb(start, gradients)}
    out |= {f"init.{n}": w for n, w in start.items()}
    out |= {f"gradients.{n}": g for n, g in gradients.items()}
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizer")
    os.makedirs(folder, exist_ok=True)
    save_file({n: np.ascontiguousarray(a) for n, a in sorted(out.items())},
              os.path.join(folder, "updates.safetensors"))


if __name__ == "__main__":
    main()
