#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""activations.tsv -- the activations of transformers, in double: lines of a name, x and the result

Needs torch, transformers 5. prelu and xielu are left out: they have weights.
"""
import os
import torch
from transformers.activations import ACT2CLS, ACT2FN

# exact floats, so that only the activation rounds; points where exp(x) exceeds float; points that are clipped
points = [i / 4 for i in range(-32, 33)] + [s * x for x in (2.0**-20, 2.0**-10, 16.5, 19.75, 20.25, 30.0, 87.5, 89.0, 100.0, 1024.0) for s in (1, -1)]
x = torch.tensor(sorted(points), dtype=torch.float64)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "activations.tsv"), "w") as f:
    for name in ACT2CLS:
        if name not in ("prelu", "xielu"):
            for a, b in zip(x.tolist(), ACT2FN[name](x).tolist()): f.write(f"{name}\t{a:.17g}\t{b:.12g}\n")
