"""hadamard-rotate.py -- Python of tests/hadamard-rotate.t"""

import subprocess

import h5py
import numpy as np

from lib.h5 import copied, create, read


def make(ref):
    with copied(ref + "/gemma2.h5", "one-gain.h5") as f:
        for i in "01":
            for n in ("post_attention_layernorm", "post_feedforward_layernorm"):
                f[f"model/layers/{i}/{n}/weight"][...] = 0.25


def folded(ref):
    for name in "llama-tied", "gemma", "qwen2-moe", "phi3-window":
        a, b = h5py.File(f"{ref}/{name}.h5"), h5py.File(name + ".h5")
        gain = 0 if name == "gemma" else 1
        assert b.attrs["rotated"] == "hadamard" and "norm" not in b["model/norm"].attrs
        for p in ("model/norm", "model/layers/0/input_layernorm", "model/layers/0/post_attention_layernorm"):
            assert (b[p]["weight"][()] == gain).all(), (name, p)
        assert b["lm_head/weight"].id.get_offset() != b["model/embed_tokens/weight"].id.get_offset()
        assert np.array_equal(a["test/tokens"][()], b["test/tokens"][()]) and a["config"][()] == b["config"][()]
        down = b["model/layers/0/mlp/down_proj"]
        assert down.attrs["online_hadamard"] == 44 and down["weight"].shape[1] == 44, name
        for g in ("embed_tokens", "layers/0/mlp/up_proj", "layers/0/self_attn/o_proj", "layers/0/self_attn/v_proj"):
            x, y = a[f"model/{g}/weight"][()], b[f"model/{g}/weight"][()]
            assert abs(x - y).max() > 0.05, (name, g)
        e, f = a["model/embed_tokens/weight"][()].astype("f8"), b["model/embed_tokens/weight"][()].astype("f8")
        assert abs(e @ e.T - f @ f.T).max() < 1e-5 * abs(e @ e.T).max(), name  # an orthogonal matrix
    b, c = h5py.File("qwen2-moe.h5"), h5py.File("qwen2-moe, blocks.h5")
    assert (
        b["model/layers/1/mlp/experts/3/down_proj"].attrs["online_hadamard"] == 12
        and c["model/layers/1/mlp/experts/3/down_proj"].attrs["online_hadamard"] == 4
    )
    assert b["model/layers/1/mlp/shared_expert/down_proj"].attrs["online_hadamard"] == 20
    assert "online_hadamard" not in h5py.File("qwen2-moe, offline.h5")["model/layers/0/mlp/down_proj"].attrs


def stages():
    subprocess.run(
        "hessian-accum -q --tokens tokens.h5 --ctx 32 a.h5 -o ha.h5 && "
        "dpq-run -q --group 16 --layers */0/mlp/down_proj --hessian ha.h5 a.h5 -o one.h5 && "
        "dpq-run -q --group 16 --layers */0/mlp/down_proj --sequential --tokens tokens.h5 --ctx 32 a.h5 -o two.h5",
        shell=True,
        check=True,
    )
    d = "model/layers/0/mlp/down_proj/codes"
    assert np.array_equal(h5py.File("one.h5")[d][()], h5py.File("two.h5")[d][()])


def inputs_rotated(ref):
    n = 0
    for name in ("llama-gqa", "qwen2-moe"):
        for m, f in (("a", f"{ref}/{name}.h5"), ("b", name + ".h5")):
            subprocess.run(
                ["hessian-accum", "-q", "--tokens", "tokens.h5", "--ctx", "32", f, "-o", m + "h.h5"], check=True
            )
        a, b, ha, hb = (h5py.File(x) for x in (f"{ref}/{name}.h5", name + ".h5", "ah.h5", "bh.h5"))

        def see(path, g):
            nonlocal n
            if not isinstance(g, h5py.Group) or "hessian" not in g:
                return
            layer = path.removesuffix("/prior")
            x, y = (
                np.einsum("oi,ij,oj", w, h, w)
                for w, h in (
                    (f[layer]["weight"][()].astype("f8"), t[path]["hessian"][()].astype("f8"))
                    for f, t in ((a, ha), (b, hb))
                )
            )
            assert ha[path]["count"][()] == hb[path]["count"][()] and abs(x - y) < 1e-4 * x, (path, x, y)
            if layer.endswith("down_proj"):
                assert (
                    abs(ha[path]["hessian"][()] - hb[path]["hessian"][()]).max()
                    > 1e-2 * abs(ha[path]["hessian"][()]).max()
                ), path
            n += 1

        ha.visititems(see)
    assert n > 20, n


def write(path, kind="rotation", **members):
    with create(path, kind) as f:
        for k, v in members.items():
            f[k] = v.astype("f4")


def matrices():
    r = np.random.default_rng(5)

    def orthogonal(n):
        return np.linalg.qr(r.standard_normal((n, n)))[0]

    q = orthogonal(32)
    write("learned.h5", residual=q)
    write("both.h5", residual=q, value=orthogonal(8))
    write("shape.h5", residual=orthogonal(20))
    write("skew.h5", residual=q + 1e-3)
    write("nan.h5", residual=q * np.nan)
    write("value.h5", residual=q, value=np.ones((8, 8)))
    write("none.h5", value=q)


def learned(model):
    a, b, q = h5py.File(model), h5py.File("l.h5"), read("learned.h5", "residual").astype("f8")
    e = "model/embed_tokens/weight"
    v = "model/layers/0/self_attn/q_proj/weight"
    g = a["model/layers/0/input_layernorm/weight"][()].astype("f8")
    assert np.array_equal(b[e][()], (a[e][()] @ q).astype("f4")) or abs(b[e][()] - a[e][()] @ q).max() < 1e-6
    assert abs(b[v][()] - (a[v][()] * g) @ q).max() < 1e-6 and b.attrs["rotated"] == "learned"


def unmarked():
    with copied("a.h5", "unmarked.h5") as f:
        del f.attrs["rotated"]


def keys():
    a, b = h5py.File("a.h5"), h5py.File("keys.h5")
    print(b["model/layers/0/self_attn"].attrs["kv_hadamard"], "kv_hadamard" in a["model/layers/0/self_attn"].attrs)
