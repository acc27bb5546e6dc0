#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""HF tokenizers on the text of `tokenize`: prints rows `row<TAB>column<TAB>value`.

    peer-tokenizers.py ROW TOKENIZER.json TEXT RUNS

Values are seconds to read the tokenizer and encode the text, without the start of
Python.
"""
import sys
import time

import tokenizers

row, path, text, runs = *sys.argv[1:4], int(sys.argv[4])
text = open(text, encoding="utf-8", errors="replace", newline="").read()
seconds = []
for _ in range(runs):
    start = time.perf_counter()
    n = len(tokenizers.Tokenizer.from_file(path).encode(text, add_special_tokens=False).ids)
    seconds.append(time.perf_counter() - start)
seconds.sort()
print(f"{row}\tpeer\t{(seconds[(runs - 1) // 2] + seconds[runs // 2]) / 2:.5g}")
print(f"{row}\tpeer_is\ttokenizers {tokenizers.__version__}, median of {runs}")
print(f"tokenizers: {n} ids", file=sys.stderr)
