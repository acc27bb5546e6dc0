"""rotations.py -- Python of tests/rotations.t"""

import shutil

import h5py
import numpy as np
from ptqtools import Layer

from lib.h5 import copied, create


def hadamard(n):  # Sylvester's: all orders here are powers of two
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.kron(np.array([[1, 1], [1, -1]]), h)
    return h / np.sqrt(n)


def power(n):  # the largest power of two that divides it
    return n & -n


def rotate(source, to):
    shutil.copyfile(source, to)
    rng = np.random.default_rng(7)

    def rotation(n, order):  # x becomes x @ this
        signs = rng.choice([-1, 1], n).astype("i1")
        h = np.kron(np.eye(n // order), hadamard(order)) if order else np.eye(n)
        return signs, signs[:, None] * h

    with h5py.File(to, "r+") as f:
        layers = f["model/layers"]
        for block in layers.values():
            for n, (group, names) in enumerate(
                [
                    ("self_attn", ("q_proj", "k_proj", "v_proj")),
                    ("self_attn", ("o_proj",)),
                    ("mlp", ("gate_proj", "up_proj")),
                    ("mlp", ("down_proj",)),
                ]
            ):
                width = block[group][names[0]]["weight"].shape[1]
                order = power(width) if n != 2 else 0  # gate and up have only signs
                signs, before = rotation(width, order)
                for name in names:
                    g = block[group][name]
                    w = g["weight"][()].astype("f8")
                    if name == "v_proj":  # unrotated outputs, next to rotated ones
                        out = np.eye(len(w))
                    else:
                        m = power(len(w)) if name != "k_proj" else 0
                        g["output_signs"], out = rotation(len(w), m)
                        if m:
                            g.attrs["output_hadamard"] = m
                    g["input_signs"] = signs
                    if order:
                        g.attrs["online_hadamard"] = order
                    del g["weight"]
                    g["weight"] = (out.T @ w @ before).astype("f4")


def dense(before, after, path):
    """tr(E Eᵀ)/tr(W Wᵀ) of a layer of a quantized file, as a matrix in float64, relative to the plain model."""

    def matrix(signs, order, n):
        h = np.kron(np.eye(n // order), hadamard(order)) if order else np.eye(n)
        return (signs if signs is not None else np.ones(n))[:, None] * h

    a, b = h5py.File(before), h5py.File(after)
    w, g = a[path + "/weight"][()].astype("f8"), b[path]
    q = Layer(g.id).weight.astype("f8")
    get = lambda name: g[name][()] if name in g else None
    out = matrix(get("output_signs"), g.attrs.get("output_hadamard", 0), w.shape[0])
    into = matrix(get("input_signs"), g.attrs.get("online_hadamard", 0), w.shape[1])
    e = w - out @ q @ into.T
    print("%.9g" % ((e * e).sum() / (w * w).sum()))


def make():
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 640).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def signs(model, path):
    """Bits per weight of one sign for each row and each column."""
    m, n = h5py.File(model)[path + "/weight"].shape
    return (m + n) / m / n


def ones(source, target, path):
    """Signs of the outputs of a layer, all 1."""
    with copied(source, target) as f:
        f[path + "/output_signs"] = np.ones(f[path + "/weight"].shape[0], "i1")


def faults(path):
    with copied("rotated.h5", "zero.h5") as f:
        f[path + "/input_signs"][3] = 0
    with copied("rotated.h5", "other.h5") as f:
        f[path + "/input_signs"][3] *= -1
    with copied("rotated.h5", "order.h5") as f:
        f[path].attrs["output_hadamard"] = 3
    with copied("rotated.h5", "short.h5") as f:
        s = f[path + "/output_signs"][:-1]
        del f[path + "/output_signs"]
        f[path + "/output_signs"] = s
    with copied("rotated.h5", "table.h5") as f:
        f["model/embed_tokens/output_signs"] = f[path + "/output_signs"][:1].repeat(61)
