#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch on the work of `kernels`: prints rows `row<TAB>column<TAB>value`.

    peer-torch.py THREADS

GPTQ is that of its paper (Frantar et al. 2022, algorithm 1) and of public code:
float32, the inverse of the damped Hessian by Cholesky, blocks of 128 columns. The
parameters of a group come from its weights when its first column is reached, by
range or by the search of 80 smaller ranges for the smallest Σ|ŵ - w|^2.4.
Products are in bf16, and of 8-bit codes with inputs that are rounded to 8 bits
during the product (dynamic quantization).
Hadamard products are those of QuaRot's public code: a sum and a difference of the whole matrix for each
power of two, then a product with the small factor (its signs have no effect here).
Hessians are Xᵀ X over windows of 2048 tokens, counted as n² k operations as in `kernels`.
"""
import sys
import time

import torch

BITS, GROUP, BLOCK, STEPS, NORM = 4, 128, 128, 80, 2.4
TOP = 2**BITS - 1


def quantize(w, scale, zero):
    return scale * (torch.clamp(torch.round(w / scale) + zero, 0, TOP) - zero)


def parameters(w, search):
    """Scale and zero [rows, 1] of a group of weights [rows, columns]."""
    nought = torch.zeros(len(w))
    low, high = torch.minimum(w.min(1)[0], nought), torch.maximum(w.max(1)[0], nought)
    empty = (low == 0) & (high == 0)
    low[empty], high[empty] = -1, 1
    scale = (high - low) / TOP
    zero = torch.round(-low / scale)
    if search:
        best = torch.full([len(w)], float("inf"))
        for i in range(STEPS):
            p = 1 - i / 100
            shrunk = (p * high - p * low) / TOP
            error = (quantize(w, shrunk[:, None], torch.round(-p * low / shrunk)[:, None]) - w).abs_().pow_(NORM).sum(1)
            better = error < best
            best[better] = error[better]
            scale[better] = shrunk[better]
            zero[better] = torch.round(-p * low / shrunk)[better]
    return scale[:, None], zero[:, None]


def gptq(w, h, search):
    w, h = w.clone(), h.clone()
    n = w.shape[1]
    quantized = torch.zeros_like(w)
    diagonal = torch.arange(n)
    h[diagonal, diagonal] += 0.01 * torch.mean(torch.diag(h))
    u = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(h)), upper=True)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        block, errors, inner = w[:, begin:end].clone(), torch.zeros(len(w), end - begin), u[begin:end, begin:end]
        for i in range(end - begin):
            if (begin + i) % GROUP == 0:
                scale, zero = parameters(w[:, begin + i:begin + i + GROUP], search)
            q = quantize(block[:, i:i + 1], scale, zero)[:, 0]
            quantized[:, begin + i] = q
            error = (block[:, i] - q) / inner[i, i]
            block[:, i:] -= error[:, None] @ inner[i, i:][None, :]
            errors[:, i] = error
        w[:, end:] -= errors @ u[begin:end, end:]
    return quantized


def hadamard(x, small):
    """x H/√n of rows x; small: signs [order, order]."""
    m, n = x.shape
    order = len(small)
    y = x.view(m * order, n // order, 1)
    while y.shape[1] > 1:
        y = torch.stack((y[:, ::2] + y[:, 1::2], y[:, ::2] - y[:, 1::2]), 2).view(m * order, y.shape[1] // 2, -1)
    y = y.view(m, order, n // order)
    return (small @ y if order > 1 else y).view(m, n) / n**0.5


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def timed(runs, call):
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def report(row, value, runs):
    print(f"{row}\tpeer\t{value:.5g}\n{row}\tpeer_is\ttorch {torch.__version__.split('+')[0]}, median of {runs}", flush=True)


torch.set_num_threads(int(sys.argv[1]))
torch.set_grad_enabled(False)
torch.manual_seed(1)

SIZES = (512, 2304, 768), (512, 4096, 768), (2048, 4096, 4096)
for m, n, k in SIZES:
    rows, w = torch.randn(m, k).bfloat16(), torch.randn(n, k).bfloat16()
    torch.nn.functional.linear(rows, w)
    report(f"bf16-{m}x{n}x{k}", 2e-9 * m * n * k / timed(25, lambda: torch.nn.functional.linear(rows, w)), 25)

try:
    for m, n, k in SIZES:
        layer, rows = torch.nn.Sequential(torch.nn.Linear(k, n, bias=False)), torch.randn(m, k)
        integers = torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear}, torch.qint8)
        integers(rows)
        report(f"w8a8-{m}x{n}x{k}", 2e-9 * m * n * k / timed(25, lambda: integers(rows)), 25)
except (AttributeError, RuntimeError) as e:
    print(f"torch: no dynamic quantization: {e}", file=sys.stderr)

for n, order, m in (4096, 1, 11008), (18944, 148, 3584):
    rows, small = torch.randn(m, n), torch.randint(2, (order, order)).float() * 2 - 1
    hadamard(rows, small)
    report(f"hadamard-{n}x{m}", 1e3 * timed(3, lambda: hadamard(rows, small)), 3)

x = torch.randn(2048, 4096)
h = torch.zeros(4096, 4096)


def accumulate():
    global h
    h += x.T @ x


accumulate()
report("hessian-f32", 4096**2 * 2048 / timed(5, accumulate) * 1e-9, 5)
x16 = x.bfloat16()
try:
    x16.T @ x16
    report("hessian-bf16", 4096**2 * 2048 / timed(5, lambda: (x16.T @ x16).float()) * 1e-9, 5)
except RuntimeError as e:
    print(f"torch: no product of bf16: {e}", file=sys.stderr)
h /= 2048
for m, runs, slow in (4096, 3, 1), (11008, 1, 1):
    w = torch.randn(m, 4096) * 0.02
    report(f"gptq-{m}x4096", timed(runs, lambda: gptq(w, h, False)), runs)
    report(f"gptq-mse-{m}x4096", timed(slow, lambda: gptq(w, h, True)), slow)
