"""h5.py -- Python shared by several tests: files of the project's kinds, changed copies, comparisons"""

import contextlib
import json
import os
import re
import shutil
import subprocess

import h5py
import numpy as np


# Members of a reference file that only tests use.
SIDES = {"test", "tokens", "sequence", "modality", "image_span", "image_grid", "images", "position"}


# --- writing ---
def root(f, kind):
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = kind, "1"


@contextlib.contextmanager
def create(path, kind):
    """A new file of a kind, open for writing."""
    with h5py.File(path, "w") as f:
        root(f, kind)
        yield f


@contextlib.contextmanager
def copied(source, path):
    """A copy of a file, open for changes."""
    shutil.copy(source, path)
    with h5py.File(path, "r+") as f:
        yield f


def set_config(f, **changes):
    """Changes members of the configuration."""
    c = json.loads(f["config"][()])
    c.update(changes)
    del f["config"]
    f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())


def plain(source, path):
    """A copy of a reference model without the members that only tests use."""
    with copied(source, path) as f:
        for name in SIDES & set(f):
            del f[name]


def remove(path, name):
    """Removes a member of a file."""
    with h5py.File(path, "r+") as f:
        del f[name]


def set_modality(path):
    """Gives tokens two modalities, five tokens of each in turn."""
    with h5py.File(path, "r+") as f:
        f["modality"] = np.arange(len(f["tokens"]), dtype="u1") // 5 % 2


# --- reading ---
def read(path, name):
    """The numbers of a dataset."""
    with h5py.File(path) as f:
        return f[name][()]


def numbers(path):
    """Lines of a name and a number, as a dictionary."""
    with open(path) as f:
        return {name: float(x) for name, x in map(str.split, f)}


def with_rows(f, n):
    """Datasets of the model with n rows, as those of a vocabulary of n ids."""
    found = []
    f.visititems(lambda p, d: found.append(p) if isinstance(d, h5py.Dataset) and d.shape[:1] == (n,) else None)
    return [p for p in found if "test" not in p]


def layers_of(f):
    """Paths of quantized layers."""
    found = []
    f.visititems(lambda n, g: found.append(n) if isinstance(g, h5py.Group) and "codes" in g else None)
    return found


# --- for scripts ---
def formats():
    """Every format, from the list that the tools print: int2..int8, e<x>m<y> (1 <= x + y <= 7, x <= 6), mxfp4."""
    said = subprocess.run(["exmy-sweep", "--formats", "?"], stderr=subprocess.PIPE, text=True).stderr
    names = []
    listed = said.split("expected one of ")[1].split("\n")[0] + "\n"
    for name, which in re.findall(r"(\S+?)(?: \((.*?)\))?(?:, |\n)", listed):
        first, dots, last = name.partition("..")
        if dots:
            names += [f"{first[:-1]}{n}" for n in range(int(first[-1]), int(last[-1]) + 1)]
        elif which:
            pairs = ((x, y) for x in range(10) for y in range(10))
            names += [name.replace("<x>", str(x)).replace("<y>", str(y)) for x, y in pairs
                      if all(eval(part, {}, {"x": x, "y": y}) for part in which.split(", "))]
        else:
            names.append(name)
    return ",".join(names)


def attr(path, name, attribute):
    with h5py.File(path) as f:
        return str(f[name].attrs.get(attribute))


def shape(path, name):
    with h5py.File(path) as f:
        return f"{f[name].shape} {f[name].dtype}"


def same(a, b, *names):
    """Datasets of these names are equal in both files."""
    for name in names:
        x, y = read(a, name), read(b, name)
        assert x.shape == y.shape and (x == y).all(), name


def arguments(path):
    """The last command in the history, without tool and version."""
    with h5py.File(path) as f:
        return f.attrs["history"].split("\n")[0].split(" ", 2)[2]


def terminal_there():
    """Opens a terminal; fails if that is not possible."""
    os.openpty()


def sums(a, b):
    """The largest difference of Hessians and cross moments of two files, relative to the largest Hessian."""
    a, b = h5py.File(a), h5py.File(b)
    worst, seen = 0, 0

    def visit(name, d):
        nonlocal worst, seen
        if name.split("/")[-1] in ("hessian", "cross"):
            h = a[name.replace("/cross", "/hessian")][()]
            worst, seen = max(worst, abs(d[()] - h).max() / abs(h).max()), seen + 1

    b.visititems(visit)
    print("%.3g" % (worst if seen else np.nan))
