#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch on a step of FBQuant: prints rows `row<TAB>column<TAB>value`.

    peer-fbquant.py THREADS RUNS

Each row is one step of Adam in float32, for a layer of 4096 x 4096 with a branch of rank 128 and 4 bits in
groups of 128 with the range of each group, W_F = Q(W - B A).detach() + B A:

fbquant-literal   the loss of the paper, ((W - W_F) @ H * (W - W_F)).sum(), with autograd
fbquant-formula   algorithm 1 of the paper without autograd: G = -2 Δ H, ∂B = G Aᵀ, ∂A = Bᵀ G
fbquant-step      by hand: Δ once, A H, ∂B = -2 Δ (A H)ᵀ and ∂A = -2 (Bᵀ Δ) H, written into the gradients, with
                  preallocated buffers and torch.optim.Adam(fused=True), or foreach if that is not available
"""
import statistics
import sys
import time

import torch

N, RANK, GROUP, TOP = 4096, 128, 128, 15
torch.set_num_threads(int(sys.argv[1]))
runs = int(sys.argv[2])
torch.manual_seed(1)
w, x = torch.randn(N, N) * 0.02, torch.randn(2 * N, N)
h = x.T @ x / (2 * N)
h /= h.diagonal().mean()
del x


def quantize(p):
    """Range, codes and values of groups, as a user writes them."""
    g = p.view(N, -1, GROUP)
    low, high = g.amin(2, True).clamp(max=0), g.amax(2, True).clamp(min=0)
    scale = (high - low).clamp(min=1e-30) / TOP
    zero = (-low / scale).round()
    return (((g / scale).round() + zero).clamp(0, TOP) - zero).mul(scale).view(N, N)


def branch():
    a, b = torch.randn(RANK, N) / N**0.5, torch.zeros(N, RANK)
    return a.requires_grad_(), b.requires_grad_()


def adam(parameters):
    try:
        return torch.optim.Adam(parameters, lr=1e-3, fused=True)
    except RuntimeError:
        return torch.optim.Adam(parameters, lr=1e-3, foreach=True)


def literal():
    a, b = branch()
    steps = torch.optim.Adam([a, b], lr=1e-3)

    def step():
        steps.zero_grad()
        product = b @ a
        delta = w - (quantize(w - product).detach() + product)
        (delta @ h * delta).sum().backward()
        steps.step()
    return step


def formula():
    a, b = branch()
    steps = adam([a, b])

    @torch.no_grad()
    def step():
        product = b @ a
        g = -2 * (w - (quantize(w - product) + product)) @ h
        a.grad, b.grad = b.T @ g, g @ a.T
        steps.step()
    return step


def by_hand():
    a, b = branch()
    a.grad, b.grad = torch.zeros_like(a), torch.zeros_like(b)
    steps = adam([a, b])
    p, t, ah, c = torch.empty(N, N), torch.empty(N, N), torch.empty(RANK, N), torch.empty(RANK, N)
    g, u = p.view(N, -1, GROUP), t.view(N, -1, GROUP)

    @torch.no_grad()
    def step():
        torch.addmm(w, b, a, alpha=-1, out=p)
        low, high = torch.aminmax(g, dim=2, keepdim=True)
        scale = (high.clamp_(min=0) - low.clamp_(max=0)).clamp_(min=1e-30).div_(TOP)
        zero = (-low / scale).round_()
        torch.div(g, scale, out=u)
        u.round_().add_(zero).clamp_(0, TOP).sub_(zero)
        g.addcmul_(u, scale, value=-1)
        torch.mm(a, h, out=ah)
        torch.mm(p, ah.T, out=b.grad).mul_(-2)
        torch.mm(b.T, p, out=c)
        torch.mm(c, h, out=a.grad).mul_(-2)
        steps.step()
    return step


for name, make in ("literal", literal), ("formula", formula), ("step", by_hand):
    step, seconds = make(), []
    step()
    for _ in range(runs):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(f"fbquant-{name}\tpeer\t{statistics.median(seconds):.5g}")
    print(f"fbquant-{name}\tpeer_is\ttorch {torch.__version__.split('+')[0]}, median of {runs}", flush=True)
