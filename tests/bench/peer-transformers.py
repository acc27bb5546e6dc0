#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""transformers on the tokens of eval-ppl: prints rows `row<TAB>column<TAB>value`.

    peer-transformers.py ROW FOLDER TEXT CTX THREADS RUNS

Ids are the bytes of TEXT. Windows of CTX run one at a time and, if there are four, four at once; the faster way counts.
The model runs in the type of its weights. Values are tokens per second of the forward pass and of the likelihoods of
all tokens; loading is not counted.
"""
import os
import sys
import time

import torch
import transformers

row, folder, text, ctx, threads, runs = *sys.argv[1:4], *map(int, sys.argv[4:7])
transformers.logging.set_verbosity_error()
torch.set_num_threads(threads)
torch.set_grad_enabled(False)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
ids = torch.tensor(list(open(text, "rb").read()))
best = 0, 0
for batch in 1, 4:
    windows = ids[:len(ids) // (batch * ctx) * batch * ctx].view(-1, batch, ctx)
    if not len(windows):
        continue
    rates = []
    for i in range(runs + 1):       # the first does not count
        x = windows[i % len(windows)]
        start = time.perf_counter()
        logits = model(x).logits[:, :-1].float()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="none")
        rates.append(batch * ctx / (time.perf_counter() - start))
    rates = sorted(rates[1:])
    best = max(best, ((rates[(runs - 1) // 2] + rates[runs // 2]) / 2, batch))
print(f"{row}\tpeer\t{best[0]:.5g}")
print(f"{row}\tpeer_is\ttransformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, "
      f"{os.path.basename(folder)}, batch {best[1]}, median of {runs}")
