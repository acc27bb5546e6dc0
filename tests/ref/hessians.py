#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hessians of the linear layers of the models of make.py, compared with the inputs of these layers in transformers.

hessians.h5 has, for each layer, the diagonal of H = sum of x x^T, and u_k^T H u_k for FORMS vectors
u_k[j] = cos((k + 1) (j + 1)), which depend on every entry of H. tests/hessian-models.t runs `hessians.py FOLDER`,
which prints one line per model and names layers that only one side has.
"""
import contextlib
import subprocess
import sys

import numpy as np

FORMS = 4


def summary(h):
    n = len(h)
    u = np.cos(np.outer(np.arange(1, FORMS + 1), np.arange(1, n + 1)))
    return np.concatenate([np.diag(h), np.einsum("ki,ij,kj->k", u, h, u)])


@contextlib.contextmanager
def inputs(model):
    """What each linear layer of the model is fed until the end of the block, by its name."""
    import torch
    from transformers.pytorch_utils import Conv1D

    x = {}
    hooks = [m.register_forward_pre_hook(lambda m, args, name=name: x.__setitem__(name, args[0].detach()))
             for name, m in model.named_modules() if isinstance(m, (torch.nn.Linear, Conv1D))]
    yield x
    for hook in hooks:
        hook.remove()


def write(f, model, x):
    """Layers that are fed the same tensor share a dataset."""
    seen = {}
    for name, t in sorted(x.items()):
        path = f"{model}/{name.replace('.', '/')}"
        if t.data_ptr() in seen:
            f[path] = seen[t.data_ptr()]
            continue
        v = t.double().flatten(0, -2).numpy()
        seen[t.data_ptr()] = f.create_dataset(path, data=summary(v.T @ v).astype("f4"), track_times=False)


def datasets(group, end, path=""):
    """By path, along every hard link. end: of the names that are wanted, left off."""
    import h5py

    found = {}
    for key, d in group.items():
        if isinstance(d, h5py.Group):
            found |= datasets(d, end, f"{path}/{key}")
        elif f"{path}/{key}".endswith(end):
            found[f"{path}/{key}".removesuffix(end)] = d[...]
    return found


def compare(folder, model, want):
    """The largest difference relative to a layer's largest number, and the layers that only one has."""
    import h5py

    with h5py.File(f"{folder}/{model}.h5") as f, h5py.File("tokens.h5", "w") as t:
        ids = f["test/tokens"][...]
        t.attrs["ptq_kind"], t.attrs["ptq_version"] = "tokens", "1"
        d = t.create_dataset("tokens", data=ids.ravel())
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = -1, 0, 61
    done = subprocess.run(["hessian-accum", "-q", "--ctx", str(ids.shape[1]), "--tokens", "tokens.h5", "--layers", "*",
                           f"{folder}/{model}.h5", "-o", "hessian.h5"], stderr=subprocess.PIPE)
    if done.returncode:
        return done.stderr.decode(errors="replace").strip()
    with h5py.File("hessian.h5") as f:
        got = {n: h for n, h in datasets(f, "/hessian").items() if not n.endswith("/prior") and h.any()}
    if got.keys() != want.keys():
        return f"layers differ: {sorted(got.keys() ^ want.keys())}"
    worst = max(np.abs(summary(got[n].astype("f8")) - want[n]).max() / np.abs(want[n]).max() for n in want)
    return "same" if worst < 1e-5 else f"differs by {worst:.2g}"


def main():
    import h5py

    folder = sys.argv[1]
    with h5py.File(folder + "/hessians.h5") as f:
        for model in f:
            print(model, compare(folder, model, datasets(f[model], "")), sep="\t")


if __name__ == "__main__":
    main()
