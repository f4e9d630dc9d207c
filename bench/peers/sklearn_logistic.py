"""Logistic regression by scikit-learn on the columns as tandem hashes them, C chosen on held-out rows.

The hashing is written here a second time from docs/FORMATS.md. A part of the training rows (every
tenth) chooses C; the model is then fitted on all of them and scored on the test rows.

usage: sklearn_logistic.py TRAIN.tsv[.gz] TEST.tsv|csv[.gz] [BUCKETS]
"""
import gzip
import math
import sys

import numpy as np
import xxhash
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

NAMES = [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)]
BUCKETS = int(sys.argv[3]) if len(sys.argv) > 3 else 100000


def row_of(name, value):
    if value == "":
        return 1
    if name[0] == "I":
        x = float(value)
        value = str(int(math.log(x) ** 2) if x > 2 else int(x))
    salt = xxhash.xxh3_64_intdigest(name.encode(), seed=0)
    return 4 + (xxhash.xxh3_64_intdigest(value.encode(), seed=salt) * BUCKETS >> 64)


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        lines = file.read().splitlines()
    separator = "\t" if "\t" in lines[0] else ","
    if not lines[0].split(separator)[0].isdigit():
        lines = lines[1:]
    labels, columns = [], []
    for line in lines:
        cells = line.split(separator)
        labels.append(int(cells[0]))
        columns.append([f * (BUCKETS + 4) + row_of(n, c)
                        for f, (n, c) in enumerate(zip(NAMES, cells[1:]))])
    columns = np.array(columns)
    rows = np.repeat(np.arange(len(lines)), len(NAMES))
    ones = np.ones(rows.size, dtype=np.float32)
    shape = (len(lines), len(NAMES) * (BUCKETS + 4))
    return csr_matrix((ones, (rows, columns.ravel())), shape=shape), np.array(labels)


train_x, train_y = load(sys.argv[1])
test_x, test_y = load(sys.argv[2])
held = np.arange(len(train_y)) % 10 == 0
scores = {}
for c in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
    model = LogisticRegression(C=c, max_iter=500).fit(train_x[~held], train_y[~held])
    scores[c] = roc_auc_score(train_y[held], model.predict_proba(train_x[held])[:, 1])
best = max(scores, key=scores.get)
model = LogisticRegression(C=best, max_iter=500).fit(train_x, train_y)
p = model.predict_proba(test_x)[:, 1]
print(f"C {best}: auc {roc_auc_score(test_y, p):.5f}, logloss {log_loss(test_y, p):.5f}, "
      f"{len(train_y)} training rows, {len(test_y)} test rows")
