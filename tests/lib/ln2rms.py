"""ln2rms.py -- Python of tests/ln2rms.t"""

import shutil

import h5py
import numpy as np

from lib.h5 import copied


def look(before, after, position, blocks, norms, adds, end, head):
    a, b = h5py.File(before), h5py.File(after)
    embedding = next(n for n in ("transformer/wte", "model/decoder/embed_tokens", "gpt_neox/embed_in") if n in b)
    hidden = b[embedding]["weight"].shape[1]
    tables = [embedding] + [position] * (position != "-")
    paths = [f"{blocks}/{i}/{n}" for i in b[blocks] for n in norms.split(",")] + [end]
    for p in paths:
        g = b[p]
        assert (
            g.attrs["norm"] == "rms" and "bias" not in g and (g["weight"][()] == 1).all() and g["weight"].dtype == "f4"
        ), p
    for p in tables:
        assert abs(b[p]["weight"][()].mean(1)).max() < 1e-6 and abs(a[p]["weight"][()].mean(1)).max() > 1e-3, p
    for i in b[blocks]:
        for n in adds.split(","):
            g = b[f"{blocks}/{i}/{n}"]
            assert abs(g["weight"][()].mean(0)).max() < 1e-6 and abs(g["bias"][()].mean()) < 1e-6, n
    # the head by hand
    w = a[head]["weight"][()].astype("f8")
    gain, shift = (a[end][n][()].astype("f8") for n in ("weight", "bias"))
    assert (
        np.array_equal(b[head]["weight"][()], (w * gain).astype("f4"))
        and abs(b[head]["bias"][()] - w @ shift).max() < 1e-6
    )
    assert (
        b[head]["weight"].id.__hash__() != b[embedding]["weight"].id.__hash__()
        and "tied_to" not in b[head]["weight"].attrs
    )
    assert np.array_equal(b["test/tokens"][()], a["test/tokens"][()]) and b["config"][()] == a["config"][()]


def nearest():
    a, b, c = h5py.File("opt.h5"), h5py.File("bf16.h5"), h5py.File("f16.h5")
    for p in ("model/decoder/layers/0/fc1", "model/decoder/embed_tokens", "lm_head"):
        w = a[p]["weight"][()]
        bits = w.view("u4")
        near = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("u4").view("f4")
        assert (b[p]["weight"][()].astype("f4") == near).mean() > 0.9999 and (
            c[p]["weight"][()] == w.astype("f2")
        ).mean() > 0.9999, p
        assert c[p]["weight"].dtype == "f2" and a[p]["weight"].dtype == "f4"
    assert b["model/decoder/layers/0/fc1/bias"].dtype == "f4"


def small_parts(ref):
    shutil.copy(ref + "/gpt2.h5", "tie.h5")
    a = np.float32(1 + 2**-12)
    b = np.float32((1 + 2**-8) / (1 + 2**-12))
    while float(a) * float(b) <= 1 + 2**-8:
        b = np.nextafter(b, np.float32(2))
    assert 0 < float(a) * float(b) - 1 - 2**-8 < 2**-24 * 1.01 and a * b == np.float32(1 + 2**-8)
    with h5py.File("tie.h5", "r+") as f:
        f["lm_head/weight"][0, 0] = a
        f["transformer/ln_f/weight"][0] = b


def far(f):
    f["transformer/wpe/weight"][...] += 3e4


def huge(f):
    f["transformer/h/1/ln_2/weight"][...] = 3e38
    f["transformer/h/1/mlp/c_fc/weight"][...] *= 100


def faults(ref):
    def change(path, make):
        with copied(ref + "/gpt2.h5", path) as f:
            make(f)

    change("far.h5", far)

    change("huge.h5", huge)
    change(
        "static.h5",
        lambda f: (
            f["transformer/h/0/mlp/c_fc"].attrs.update(act_mode="static-tensor", act_format="int8"),
            f["transformer/h/0/mlp/c_fc"].__setitem__("act_scale", np.ones(1, "f4")),
        ),
    )
    change(
        "dynamic.h5", lambda f: f["transformer/h/0/mlp/c_fc"].attrs.update(act_mode="dynamic-token", act_format="int8")
    )
    change("mixed.h5", lambda f: f["transformer/h/1/ln_2"].attrs.__setitem__("norm", "rms"))
    change("no-gain.h5", lambda f: f.__delitem__("transformer/h/1/ln_2/weight"))
    change("no-layer.h5", lambda f: f.__delitem__("transformer/h/1/mlp/c_fc"))
    change("no-config.h5", lambda f: f.__delitem__("config"))
    change("no-head.h5", lambda f: f.__delitem__("transformer/ln_f"))
    change("nan.h5", lambda f: f["transformer/h/0/ln_1/bias"].__setitem__(0, np.nan))


def biases():
    a, b = h5py.File("gpt2.h5"), h5py.File("q.h5")
    for p in ("transformer/h/0/attn/c_attn", "transformer/h/1/mlp/c_proj", "lm_head"):
        assert np.array_equal(a[p]["bias"][()], b[p]["bias"][()])


def first_of_head():
    print(float(h5py.File("tied.h5")["lm_head/weight"][0, 0]))


def act_attributes():
    a = h5py.File("r.h5")["transformer/h/0/mlp/c_fc"].attrs
    assert a["act_mode"] == "dynamic-token" and a["act_format"] == "int8"
