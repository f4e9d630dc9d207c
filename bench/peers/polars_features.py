"""Criteo TSV to hashed columns with polars: read, then hash the 39 feature columns.

usage: POLARS_MAX_THREADS=1 polars_features.py FILE.tsv
"""
import sys
import time

import polars as pl

best = 0.0
for _ in range(3):
    start = time.perf_counter()
    frame = pl.read_csv(sys.argv[1], separator="\t", has_header=False, infer_schema=False)
    columns = frame.columns
    hashed = frame.select(
        [pl.col(columns[0])] + [pl.col(c).hash() % 100000 for c in columns[1:]]
    )
    assert hashed.height == frame.height
    best = max(best, frame.height / (time.perf_counter() - start))
print(f"polars {pl.__version__}: {best:.0f} rows/s with {pl.thread_pool_size()} thread(s)")
