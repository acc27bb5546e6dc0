#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""llama.cpp on the tokens of eval-ppl: prints rows `row<TAB>column<TAB>value`.

    peer-llama.py ROW MODEL.gguf TEXT CTX THREADS RUNS

Ids are the bytes of TEXT. Batches have 2048 tokens, in windows of CTX and steps
of 512, the defaults of llama.cpp's perplexity tool. Logits are computed for every
token. Values are tokens per second of the decoding alone: loading, softmax and
logarithms are not counted.
"""
import ctypes
import os
import sys
import time

import llama_cpp as l

row, path, text, ctx, threads, runs = *sys.argv[1:4], *map(int, sys.argv[4:7])
BATCH = max(2048, ctx)
quiet = l.llama_log_callback(lambda level, message, data: None)
l.llama_log_set(quiet, ctypes.c_void_p(0))
l.llama_backend_init()
model = l.llama_load_model_from_file(path.encode(), l.llama_model_default_params())
assert model, f"{path}: cannot be loaded"
p = l.llama_context_default_params()
p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max, p.n_threads, p.n_threads_batch = BATCH, BATCH, 512, BATCH // ctx, threads, threads
context = l.llama_new_context_with_model(model, p)
assert context, f"{path}: no context of {BATCH} tokens"
ids = open(text, "rb").read()
batches = [ids[i:i + BATCH] for i in range(0, len(ids) - BATCH + 1, BATCH)]
batch = l.llama_batch_init(BATCH, 0, 1)


def decode(part):
    batch.n_tokens = len(part)
    for i, token in enumerate(part):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i % ctx, 1, i // ctx, 1
    l.llama_memory_clear(l.llama_get_memory(context), True)
    start = time.perf_counter()
    assert l.llama_decode(context, batch) == 0, "llama_decode failed"
    l.llama_synchronize(context)
    return time.perf_counter() - start


decode(batches[0][:ctx])        # allocates
rates = sorted(BATCH / decode(batches[i % len(batches)]) for i in range(runs))
print(f"{row}\tpeer\t{(rates[(runs - 1) // 2] + rates[runs // 2]) / 2:.5g}")
print(f"{row}\tpeer_is\tllama.cpp (llama_cpp_python {l.__version__}), {os.path.basename(path)}, median of {runs}")
