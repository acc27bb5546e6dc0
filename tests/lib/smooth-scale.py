"""smooth-scale.py -- Python of tests/smooth-scale.t"""

import json
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


def factors(before, after, path):
    """The factor of each row of a layer, weights and biases, after / before."""
    a, b = (h5py.File(f)[path] for f in (before, after))
    x, y = (np.c_[g["weight"][()], g["bias"][()] if "bias" in g else g["weight"][()][:, :0]] for g in (a, b))
    f = (x.astype("f8") * y).sum(1) / (x.astype("f8") ** 2).sum(1)
    assert abs(y - x * f[:, None]).max() < 1e-6 * abs(y).max()
    return f


def same_others(before, after, changed):
    a, b = h5py.File(before), h5py.File(after)
    paths = []
    a["/"].visititems(lambda p, o: paths.append(p) if isinstance(o, h5py.Dataset) else None)
    differ = {p.rsplit("/", 2)[1] for p in paths if not np.array_equal(a[p][()], b[p][()])}
    assert differ == set(changed), differ


def paired(before, after):
    c = json.loads(h5py.File(before)["config"][()])
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    assert heads > kv > 1
    for i in range(c["num_hidden_layers"]):
        p = f"model/layers/{i}/self_attn/"
        k, q = factors(before, after, p + "k_proj").reshape(kv, 2, -1), factors(before, after, p + "q_proj")
        assert abs(k[:, 0] / k[:, 1] - 1).max() < 1e-5 and k.std() > 0.01
        assert abs(q.reshape(kv, heads // kv, -1) * k.reshape(kv, 1, -1) - 1).max() < 1e-5
    same_others(before, after, ["q_proj", "k_proj"])


def single(before, after):
    f = factors(before, after, "transformer/h/1/attn/c_attn").reshape(3, -1)
    assert abs(f[0] * f[1] - 1).max() < 1e-5 and f[1].std() > 0.01 and (f[2] == 1).all()
    assert len(set(f[1].round(6))) == f.shape[1]
    same_others(before, after, ["c_attn"])


def part_paired(before, after):
    c = json.loads(h5py.File(before)["config"][()])
    d = c["hidden_size"] // c["num_attention_heads"]
    r = int(d * c["rope_parameters"]["partial_rotary_factor"])
    k = factors(before, after, "gpt_neox/layers/1/attention/k_proj").reshape(-1, d)
    assert 0 < r < d and abs(k[:, : r // 2] / k[:, r // 2 : r] - 1).max() < 1e-5
    assert (abs(k[:, r:, None] / k[:, None, r:] - 1) + np.eye(d - r) > 1e-5).all()


def close(a, b):
    a, b = h5py.File(a), h5py.File(b)
    for i in range(2):
        for name in "q_proj", "k_proj":
            x, y = (f[f"model/layers/{i}/self_attn/{name}/weight"][()] for f in (a, b))
            assert abs(x - y).max() < 1e-5 * abs(x).max()


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


def random_factors(ref, name, after):
    a, b = h5py.File(f"{ref}/{name}.h5"), h5py.File(after)
    w = lambda f, p: f[p]["weight"][()].astype("f8")
    heads, kv, d = 4, 2, a["model/layers/0/self_attn/v_proj/weight"].shape[0] // 2
    logs = []
    for i in range(2):
        p = f"model/layers/{i}/"
        before, middle = (w(a, p + n) / w(b, p + n) for n in ("input_layernorm", "post_attention_layernorm"))
        value, up = (w(a, p + n) / w(b, p + n) * s for n, s in (("self_attn/v_proj", before), ("mlp/up_proj", middle)))
        value, up = np.median(value, 1), np.median(up, 1)
        spread = value.reshape(kv, 1, d).repeat(heads // kv, 1).ravel()
        want = {
            "self_attn/q_proj": before,
            "self_attn/k_proj": before,
            "self_attn/v_proj": before / value[:, None],
            "self_attn/o_proj": spread,
            "mlp/gate_proj": middle,
            "mlp/up_proj": middle / up[:, None],
            "mlp/down_proj": up,
        }
        for n, s in want.items():
            x = w(a, p + n) * s
            assert abs(w(b, p + n) - x).max() <= 2e-6 * abs(x).max(), n
        logs += [np.log2(s) for s in (before, middle, value, up)]
    for p in "model/norm", "model/embed_tokens", "lm_head":
        assert np.array_equal(a[p]["weight"][()], b[p]["weight"][()]), p
    assert len({tuple(x[:8]) for x in logs}) == len(logs)  # each norm and layer has its own
    x = np.concatenate(logs)
    assert x.min() > -1e-6 and x.max() < 0.5 + 1e-6
    # uniform: mean 1/4 and variance 1/48, within four standard errors; fourth central moment 1/1280
    n = len(x)
    assert abs(x.mean() - 0.25) < 4 * (1 / 48 / n) ** 0.5
    assert abs(x.var() - 1 / 48) < 4 * ((1 / 1280 - 1 / 48**2) / n) ** 0.5


GRID = 4, 16  # columns, levels


def block_weights(f):
    found = []
    f.visititems(
        lambda p, o: found.append(p) if p.endswith("/weight") and o.ndim == 2 and any(c.isdigit() for c in p) else None
    )
    return found


def levels(w):
    """The levels of each group of a weight: from its smallest to its largest number. [out, groups, levels]"""
    v = w.reshape(len(w), -1, GRID[0]).astype("f8")
    low, high = v.min(2, keepdims=True), v.max(2, keepdims=True)
    return (low + (high - low) / (GRID[1] - 1) * np.arange(GRID[1])).astype("f4")


def on_grid(source, path):
    """Rounds the weights of the blocks to the nearest level of their group."""
    with copied(source, path) as f:
        for p in block_weights(f):
            w = f[p][()]
            grid = levels(w)
            i = abs(w.reshape(*grid.shape[:2], -1, 1) - grid[:, :, None]).argmin(3)
            f[p][...] = np.take_along_axis(grid, i, 2).reshape(w.shape)


def still(name, *end):
    """The share of weights on the grid of on_grid(); with `end` the layers of which any is."""
    kept, count, layers = 0, 0, set()
    with h5py.File(name + "-grid.h5") as a, h5py.File(name + "-off.h5") as b:
        for p in block_weights(a):
            grid, w = levels(a[p][()]), b[p][()]
            same = (w.reshape(*grid.shape[:2], -1, 1) == grid[:, :, None]).any(3)
            kept, count = kept + same.sum(), count + same.size
            if same.any():
                layers.add("/".join(p.split("/")[-3:-1]))
    print(",".join(sorted(layers)) if end else kept / count)
