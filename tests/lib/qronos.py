"""qronos.py -- Python of tests/qronos.t"""

import importlib

import h5py
import numpy as np

from lib.h5 import copied, layers_of, read

make = importlib.import_module("lib.cross").make
moments = importlib.import_module("lib.qep-correct").moments
spoil = importlib.import_module("lib.qep-correct").spoil


def same_inputs(source, path):
    """The cross moments of a model with itself: those of equal inputs are the Hessian."""
    with copied(source, path) as f:
        found = []
        f.visititems(lambda n, d: found.append(n) if n.endswith("/cross") else None)
        for n in found:
            f[n][...] = f[n[:-5] + "hessian"][...]


def same_codes(a, b):
    x, y = h5py.File(a), h5py.File(b)
    assert layers_of(x) == layers_of(y) and layers_of(x)
    for n in layers_of(x):
        assert set(x[n]) == set(y[n])
        for member in x[n]:
            assert (x[n][member][...] == y[n][member][...]).all(), (n, member)


def grid_of(name):
    if name.startswith("uint"):
        return np.arange(2.0 ** int(name[4:]))
    if name.startswith("int"):
        top = 2 ** (int(name[3:]) - 1) - 1
        return np.arange(-top, top + 1.0)
    assert name == "e2m1"
    half = [0, 1, 2, 3, 4, 6, 8, 12]
    return np.array(half + [-v for v in half])


def groups_of(g, columns):
    if "group_index" in g:
        return g["group_index"][...]
    return np.arange(columns) // (g.attrs["group"] or columns)


def nearest(x, scale, zero, grid):
    """The nearest numbers of the grid, their values, and whether x is near to a tie."""
    grid = np.unique(grid)
    far = np.abs((grid[None] - zero[:, None]) * scale[:, None] - x[:, None])
    at, two = grid[far.argmin(1)], np.sort(far, 1)
    return at, (at - zero) * scale, two[:, 1] - two[:, 0] < 1e-4 * scale


def qronos(w, s, g, damp, order, scale, zero, group, grid):
    """Numbers of the grid by the definition, and the rows with a number near a tie, whose further codes may differ."""
    w, order = w.astype("f8"), [c for c in order if s[c, c] > 0]
    ridge = damp * np.diag(s)[order].mean()
    p = np.ix_(order, order)
    w, s, g = w[:, order], s[p], g[p]
    scale, zero = scale[:, group[order]], zero[:, group[order]]
    code, doubt = np.zeros(w.shape), np.zeros(len(w), bool)
    rest = slice(1, None)
    first = (w @ g[:, 0] - w[:, rest] @ s[rest, 0]) / s[0, 0]
    code[:, 0], value, near = nearest(first, scale[:, 0], zero[:, 0], grid)
    doubt |= near
    n = len(s)
    inverse = np.linalg.inv(s[rest, rest] + ridge * np.eye(n - 1))
    left = (w @ (g + ridge * np.eye(n))[:, rest] - np.outer(value, s[0, rest])) @ inverse
    u = np.linalg.cholesky(inverse).T  # upper, u.T @ u = inverse
    for i in range(n - 1):
        code[:, i + 1], value, near = nearest(left[:, i], scale[:, i + 1], zero[:, i + 1], grid)
        doubt |= near
        left[:, i:] -= np.outer((left[:, i] - value) / u[i, i], u[i, i:])
    return code, doubt, order


def definition(model, hessian, order, out, gptq, damp):
    m, h, o, q = h5py.File(model), h5py.File(hessian), h5py.File(out), h5py.File(gptq)
    rows = doubtful = other = 0
    for name in layers_of(o):
        g = o[name]
        grid = grid_of(g.attrs["storage"])
        w, codes = m[name + "/weight"][...], grid[g["codes"][...].astype(int)]
        scale = g["scale"][...].astype("f8")
        zero = g["zero"][...].astype("f8") if "zero" in g else np.zeros(scale.shape)
        s, cross = moments(h, name)
        want, doubt, columns = qronos(w, s, cross, float(damp), read(order, name + "/order"), scale, zero,
                                      groups_of(g, w.shape[1]), grid)
        wrong = (want != codes[:, columns]).any(1)
        assert not (wrong & ~doubt).any(), (name, wrong.sum())
        rows, doubtful = rows + len(w), doubtful + doubt.sum()
        other += (g["codes"][...] != q[name + "/codes"][...]).any(1).sum()
    assert rows and doubtful < rows / 20 and other > rows / 4, (rows, doubtful, other)


def same_rows(qep, out, order):
    x, y = h5py.File(qep), h5py.File(out)
    rows = equal = differ = 0
    for name in layers_of(y):
        a, b = x[name], y[name]
        first = read(order, name + "/order")[0]
        group = groups_of(b, b["codes"].shape[1])[first]
        agree = (a["codes"][:, first] == b["codes"][:, first]) & (a["scale"][:, group] == b["scale"][:, group])
        same = (a["codes"][...] == b["codes"][...]).all(1) & (a["scale"][...] == b["scale"][...]).all(1)
        assert same[agree].all(), (name, (~same[agree]).sum(), agree.sum())
        rows, equal, differ = rows + len(agree), equal + agree.sum(), differ + (~same).sum()
    assert equal > rows / 2 and differ, (rows, equal, differ)


def plan(qronos, gptq, planned):
    x, y, z = h5py.File(qronos), h5py.File(gptq), h5py.File(planned)
    for name in layers_of(z):
        want = y if name.endswith("down_proj") else x
        assert (want[name]["codes"][...] == z[name]["codes"][...]).all(), name
    assert any((x[n]["codes"][...] != y[n]["codes"][...]).any() for n in layers_of(x))


def indefinite(source, path):
    """A Hessian whose least eigenvalue is some -2e-7 of the mean diagonal, as of sums in float."""
    with copied(source, path) as f:
        s = f["model/layers/0/self_attn/q_proj/hessian"]
        v, u = np.linalg.eigh(s[...].astype("f8"))
        v[0] = -2e-7 * v.mean()
        s[...] = (u * v @ u.T).astype("f4")
