"""smooth-scale.py -- Python of tests/smooth-scale.t"""

import shutil

import h5py
import numpy as np

from lib.h5 import copied


def look(ref, name, norm, readers, offset, alpha, after):
    a, b, h = h5py.File(f"{ref}/{name}.h5"), h5py.File(after), h5py.File(f"{name}-h.h5")
    readers, alpha = readers.split(","), float(alpha)
    w = np.concatenate([a[r]["weight"][()] for r in readers]).astype("f8")
    x = h[readers[0]]["absmax"][()].astype("f8")
    s = x**alpha / abs(w).max(0) ** (1 - alpha)
    assert (s != 1).any()
    for r in readers:
        want = a[r]["weight"][()].astype("f8") * s
        assert abs(b[r]["weight"][()] - want).max() <= 2**-24 * abs(want).max() and b[r]["weight"].dtype == "f4", r
    for m in set(a[norm]) & {"weight", "bias"}:
        o = float(offset) if m == "weight" else 0
        want = (a[norm][m][()].astype("f8") + o) / s - o
        assert abs(b[norm][m][()] - want).max() <= 2**-23 * (abs(want) + 1).max(), m


def stays():
    a, b = h5py.File("link.h5"), h5py.File("linked.h5")
    for p in ("model/layers/0/self_attn/o_proj", "model/layers/0/mlp/down_proj", "model/norm", "model/embed_tokens"):
        assert np.array_equal(a[p]["weight"][()], b[p]["weight"][()]), p
    assert len({h5py.h5o.get_info(b[p].id).addr for p in ("lm_head/weight", "model/embed_tokens/weight")}) == 1


def inputs(ref):
    a, before, after = h5py.File(ref + "/opt.h5"), h5py.File("opt-h.h5"), h5py.File("after.h5")
    p = "model/decoder/layers/1/fc1"
    x, y, w = (
        before[p]["absmax"][()].astype("f8"),
        after[p]["absmax"][()].astype("f8"),
        abs(a[p]["weight"][()].astype("f8")).max(0),
    )
    s = (x / w) ** 0.5
    assert abs(y * s - x).max() < 1e-4 * x.max() and abs(y / x - 1).max() > 0.1


def modalities():
    LEAVES = "hessian", "count", "absmax", "mean_abs", "fourth", "histogram"
    for name in "two.h5", "one.h5":
        shutil.copy("llama-gqa-h.h5", name)
    with h5py.File("llama-gqa-h.h5") as a, h5py.File("more-h.h5") as b, h5py.File("two.h5", "r+") as two, h5py.File(
        "one.h5", "r+"
    ) as one:
        groups, larger = [], set()
        a.visititems(lambda p, o: groups.append(p) if isinstance(o, h5py.Group) and "hessian" in o else None)
        for p in groups:  # a hard link is visited once
            x, y = ({n: f[p][n][()] for n in LEAVES} for f in (a, b))
            part = float(y["count"]) / float(x["count"] + y["count"])
            both = {n: x[n] + y[n] for n in LEAVES} | {
                "absmax": np.maximum(x["absmax"], y["absmax"]),
                "mean_abs": ((1 - part) * x["mean_abs"].astype("f8") + part * y["mean_abs"].astype("f8")).astype("f4"),
            }
            larger |= set(np.sign(x["absmax"] - y["absmax"]))
            for n in LEAVES:
                for f, v in (two, np.stack((x[n], y[n]))), (one, both[n]):
                    del f[p][n]
                    f[p][n] = v
    assert {-1, 1} <= larger  # the largest inputs come from both modalities


def damaged():
    with copied("llama-gqa-h.h5", "no-absmax.h5") as f:
        del f["model/layers/0/self_attn/k_proj/absmax"]
    with copied("llama-gqa-h.h5", "none.h5") as f:
        del f["model"]
    with copied("llama-gqa-h.h5", "narrow.h5") as f:
        g = f["model/layers/0/self_attn/q_proj"]
        for m in "hessian", "absmax", "mean_abs":
            a = g[m][()]
            del g[m]
            g[m] = a[:8, :8] if a.ndim == 2 else a[:8]


def linked(source):
    with copied(source, "link.h5") as f:
        del f["lm_head/weight"]
        f["lm_head/weight"] = f["model/embed_tokens/weight"]
