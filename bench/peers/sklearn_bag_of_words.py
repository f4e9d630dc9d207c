"""Logistic regression by scikit-learn on the words of labelled texts, C chosen on held-out lines.

A tenth of the training lines chooses C; the model is then fitted on all of them.

usage: sklearn_bag_of_words.py TRAIN.tsv TEST.tsv     lines are label TAB text
"""
import sys

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression


def load(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t", 1) for line in file]
    return np.array([int(label) for label, _ in lines]), [text for _, text in lines]


train_y, train = load(sys.argv[1])
test_y, test = load(sys.argv[2])
words = CountVectorizer(token_pattern=r"\S+", binary=True).fit(train)
train_x, test_x = words.transform(train), words.transform(test)
held = np.arange(len(train_y)) % 10 == 0
scores = {}
for c in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
    model = LogisticRegression(C=c, max_iter=1000).fit(train_x[~held], train_y[~held])
    scores[c] = model.score(train_x[held], train_y[held])
best = max(scores, key=scores.get)
model = LogisticRegression(C=best, max_iter=1000).fit(train_x, train_y)
print(f"bag of words, C {best}: accuracy {model.score(test_x, test_y):.4f}")
