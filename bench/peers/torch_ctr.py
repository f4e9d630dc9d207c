"""DeepFM and DCN-v2 in PyTorch, ids ready in memory: rows per second of training steps in fp32.

39 fields, dim 16, MLP 3x400, 3 crosses, batch 4096, Adam, 1 M table rows; the faster of sparse and dense
Adam on the tables, eager and (with --compile) compiled.

usage: torch_ctr.py {deepfm|dcn_v2|logistic_regression} [--threads N] [--compile]
"""
import argparse
import time

import torch
from torch import nn

FIELDS, DIM, BATCH, ROWS = 39, 16, 4096, 1_000_000


class Model(nn.Module):
    def __init__(self, kind, sparse):
        super().__init__()
        self.kind = kind
        self.first = nn.Embedding(ROWS, 1, sparse=sparse)
        if kind == "logistic_regression":
            self.bias = nn.Parameter(torch.zeros(1))
            return
        self.embedding = nn.Embedding(ROWS, DIM, sparse=sparse)
        width = FIELDS * DIM
        layers, last = [], width
        for _ in range(3):
            layers += [nn.Linear(last, 400), nn.ReLU()]
            last = 400
        self.mlp = nn.Sequential(*layers, nn.Linear(last, 1))
        if kind == "dcn_v2":
            self.crosses = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
            self.cross_out = nn.Linear(width, 1)

    def forward(self, ids):
        if self.kind == "logistic_regression":
            return self.first(ids).sum(1).squeeze(1) + self.bias
        e = self.embedding(ids)
        x0 = e.flatten(1)
        out = self.mlp(x0).squeeze(1)
        if self.kind == "deepfm":
            s = e.sum(1)
            return out + self.first(ids).sum(1).squeeze(1) + 0.5 * (s * s - (e * e).sum(1)).sum(1)
        x = x0
        for cross in self.crosses:
            x = x0 * cross(x) + x
        return out + self.cross_out(x).squeeze(1)


def measure(kind, sparse, compiled):
    torch.manual_seed(0)
    model = Model(kind, sparse)
    tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
    used = [p for p in tables if kind != "dcn_v2" or p.shape[1] > 1]
    known = {id(p) for p in tables}
    dense = [p for p in model.parameters() if id(p) not in known]
    optimizers = [(torch.optim.SparseAdam if sparse else torch.optim.Adam)(used),
                  torch.optim.Adam(dense)]
    step_model = torch.compile(model) if compiled else model
    batches = [torch.randint(0, ROWS, (BATCH, FIELDS)) for _ in range(4)]
    labels = torch.randint(0, 2, (BATCH,)).float()
    loss_of = nn.BCEWithLogitsLoss()

    def step(i):
        for o in optimizers:
            o.zero_grad(set_to_none=True)
        loss_of(step_model(batches[i % 4]), labels).backward()
        for o in optimizers:
            o.step()

    for i in range(3):
        step(i)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < 6:
        step(steps)
        steps += 1
    return steps * BATCH / (time.perf_counter() - start)


parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["deepfm", "dcn_v2", "logistic_regression"])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--compile", action="store_true")
arguments = parser.parse_args()
torch.set_num_threads(arguments.threads)
rates = {s: measure(arguments.kind, s, arguments.compile) for s in (True, False)}
print(f"PyTorch {torch.__version__} {arguments.kind}, {arguments.threads} thread(s): "
      f"{max(rates.values()):.0f} rows/s (sparse Adam {rates[True]:.0f}, dense {rates[False]:.0f})")
