"""Logistic regression on a Criteo TSV with Vowpal Wabbit: one pass over text, progressive logloss.

usage: vw_logistic.py FILE.tsv
"""
import os
import sys
import tempfile
import time

import vowpalwabbit


def convert(tsv, out):
    rows = 0
    with open(tsv) as source, open(out, "w") as target:
        for line in source:
            cells = line.rstrip("\n").split("\t")
            features = " ".join(f"|{i} {c}" for i, c in enumerate(cells[1:]) if c)
            target.write(f"{'1' if cells[0] == '1' else '-1'} {features}\n")
            rows += 1
    return rows


with tempfile.TemporaryDirectory() as folder:
    data = os.path.join(folder, "data.vw")
    rows = convert(sys.argv[1], data)
    with open(data, "rb") as warm:
        while warm.read(1 << 24):
            pass
    start = time.perf_counter()
    workspace = vowpalwabbit.Workspace(f"-d {data} --loss_function logistic -b 22 --quiet")
    seconds = time.perf_counter() - start
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()
    print(f"Vowpal Wabbit {vowpalwabbit.__version__}: {rows / seconds:.0f} rows/s, "
          f"progressive logloss {loss:.5f}")
    workspace.finish()
