#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py - <<'PY'
import h5py, numpy as np
r = np.random.default_rng(1)
def root(f, kind): f.attrs["ptq_kind"], f.attrs["ptq_version"] = kind, "1"
with h5py.File("t.h5", "w") as f:
    root(f, "tokens")
    d = f.create_dataset("tokens", data=r.integers(3, 61, 1000).astype("i4"))
    d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
x = r.standard_normal((70, 33)).astype("f4")
with h5py.File("act.h5", "w") as f:
    root(f, "activations")
    f["a/input"], f["b/input"] = x, x.astype("f2"); f["c"] = f["a"]
b = h5py.h5t.IEEE_F16LE.copy(); b.set_fields(15, 7, 8, 0, 7); b.set_ebias(127)
bits = (x.view("u4") >> 16).astype("u2")
with h5py.File("bf16.h5", "w") as f:
    root(f, "activations"); f.create_group("a"); f.create_group("b")
    d = h5py.h5d.create(f.id, b"a/input", b, h5py.h5s.create_simple(x.shape)); d.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, b)
    f["b/input"] = (bits.astype("u4") << 16).view("f4")
with h5py.File("int.h5", "w") as f: root(f, "activations"); f["a/input"] = np.ones((4, 4), "i4")
with h5py.File("nan.h5", "w") as f: root(f, "activations"); y = x.copy(); y[3, 4] = np.nan; f["a/input"] = y
PY
cat >near.py <<'PY'
import h5py, numpy as np, sys
a, b = (h5py.File(p) for p in sys.argv[1:3])
limit, names = float(sys.argv[3]), []
def look(name, d):
    if isinstance(d, h5py.Dataset) and name != "config":
        x, y = a[name][...].astype("f8"), d[...].astype("f8"); names.append(name)
        if name.endswith("histogram") and limit: x, y = x.sum(), y.sum()	# numbers at an edge may be on its other side
        assert x.shape == y.shape and np.abs(x - y).max() <= limit * np.abs(x).max(), name
b.visititems(look)
assert names
PY
run() { hessian-accum --ctx 32 --tokens t.h5 "$@"; }

run "$model" -o h.h5
ok 'all layers, in pairs that share' py -c 'import h5py, numpy as np
f = h5py.File("h.h5"); assert f.attrs["ptq_kind"] == "hessian" and "config" in f
for i in "01":
    b = f["model/layers/" + i]; q = b["self_attn/q_proj"]
    assert q == b["self_attn/k_proj"] == b["self_attn/v_proj"] and b["mlp/up_proj"] == b["mlp/gate_proj"] and q != b["mlp/up_proj"]
    for g, n in ((q, 32), (b["self_attn/o_proj"], 32), (b["mlp/up_proj"], 32), (b["mlp/down_proj"], 44)):
        h = g["hessian"][...]
        assert h.dtype == "f4" and h.shape == (n, n) and (h == h.T).all() and np.linalg.eigvalsh(h.astype("f8")).min() > -1e-3 * h.max()
        assert g["count"][()] == 31 * 32 and g["count"].dtype == "i8"
        assert g["absmax"].shape == g["mean_abs"].shape == (n,) and (g["mean_abs"][...] <= g["absmax"][...]).all()
        assert (np.diag(h) >= g["absmax"][...] ** 2 * 0.999).all() and (np.diag(h) <= 31 * 32 * g["absmax"][...] ** 2 * 1.001).all()
assert "lm_head" not in f and "embed_tokens" not in f["model"]'
# by transformers' arithmetic in double: the first block's attention input is the norm of the embeddings
ok 'the numbers' py - "$model" <<'PY'
import h5py, numpy as np, sys
m, f = h5py.File(sys.argv[1]), h5py.File("h.h5")
ids = np.concatenate([[1], h5py.File("t.h5")["tokens"][...]])[:31 * 32]
e = m["model/embed_tokens/weight"][...].astype("f8")[ids]
x = e / np.sqrt((e ** 2).mean(1, keepdims=True) + 1e-5) * m["model/layers/0/input_layernorm/weight"][...]
g = f["model/layers/0/self_attn/q_proj"]
for name, want in (("hessian", x.T @ x), ("absmax", np.abs(x).max(0)), ("mean_abs", np.abs(x).mean(0))):
    assert np.abs(g[name][...] - want).max() < 1e-6 * np.abs(want).max(), name
PY
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run $how "$model" -o x.h5
	ok "the same with $how" cmp x.h5 h.h5
done
# shellcheck disable=SC2002
cat "$model" | run | hessian-accum -o x.h5
ok 'the same through pipes' py near.py x.h5 h.h5 0
for i in 1 2 3; do run --shard $i/3 "$model" -o s$i.h5; done
hessian-accum s1.h5 s2.h5 s3.h5 -o s.h5
ok 'three shards add up to the whole' py near.py h.h5 s.h5 1e-6
ok 'and keep what is shared' py -c 'import h5py; b = h5py.File("s.h5")["model/layers/1"]; assert b["self_attn/q_proj"] == b["self_attn/v_proj"] != b["mlp/up_proj"]'
hessian-accum h.h5 -o x.h5
ok 'the sum of one' py near.py h.h5 x.h5 0
# what a sum counts twice; ranges of its own make of one file others
ranged() { cp h.h5 "$1"; py -c 'import h5py, sys
a = h5py.File(sys.argv[1], "r+").attrs; digest = a["calibration"].split()[0]
a["calibration"] = "\n".join((digest if d == "." else d * 64) + " " + r for d, r in (l.split(" ", 1) for l in sys.argv[2:]))' "$@"; }
ranged front.h5 '. 0 300'; ranged back.h5 '. 300 1000'; ranged both.h5 'f 0 300' '. 200 301'; ranged other.h5 'f 300 1000'
warns 'a file that is added to itself' 'h.h5: was calibrated on tokens 0 to 999 of the same text as h.h5: the sum counts them twice' hessian-accum h.h5 h.h5 -o x.h5
warns 'two that have some tokens in common, among several texts' 'both.h5: was calibrated on tokens 300 to 300 of the same text as back.h5' hessian-accum back.h5 both.h5 -o x.h5
warns 'several of them, one warning' 'both.h5: was calibrated on tokens 200 to 299 of the same text as front.h5' hessian-accum -q other.h5 front.h5 both.h5 back.h5 h.h5 -o x.h5
ok 'nothing of tokens that count once' sh -c 'hessian-accum front.h5 back.h5 other.h5 -o x.h5 2>said && ! grep twice said'
ok '... nor of shards' sh -c 'hessian-accum s1.h5 s2.h5 s3.h5 -o x.h5 2>said && ! grep twice said'
run --compute-type bf16 "$model" -o bf.h5
run --compute-type bf16 -j 1 "$model" -o x.h5
ok 'bf16: the same with -j 1' py near.py x.h5 bf.h5 0
# an input behind at most 13 layers, each of factors within 2^-9 of theirs, and its square
ok 'bf16: near the Hessians of f32' py near.py h.h5 bf.h5 0.1
ok 'bf16: inputs are rounded' py -c 'import h5py, numpy as np
for p, whole in (("h.h5", False), ("bf.h5", True)):
    a = h5py.File(p)["model/layers/1/mlp/down_proj/absmax"][...].view("u4"); assert (a % 65536 == 0).all() == whole'
run --layers '*down_proj' "$model" -o d.h5
is '--layers' "$(h5ls -r d.h5 | grep -c 'hessian.*{44, 44}')$(h5ls -r d.h5 | grep -c hessian)" 22
run --layers '!*down_proj' "$model" -o d.h5
is 'embeddings and head are not asked for by what is excluded' "$(h5ls -r d.h5 | grep -c 'lm_head\|embed')" 0
run --layers '*lm_head' "$model" -o d.h5
is 'the head, where it is asked for' "$(h5ls -r d.h5 | grep -c /lm_head/hessian)" 1

hessian-accum --ctx 16 act.h5 -o a.h5
ok 'activations' py -c 'import h5py, numpy as np
x, f = h5py.File("act.h5"), h5py.File("a.h5")
for n in "ab":
    v = x[n]["input"][...].astype("f8"); assert np.abs(f[n]["hessian"][...] - v.T @ v).max() < 1e-4 and f[n]["count"][()] == 70
    assert np.allclose(f[n]["fourth"][...], (v ** 4).sum(0), rtol=1e-13, atol=0) and f[n]["fourth"].dtype == "f8"
    bins = (np.abs(v).astype("f4").view("u4") >> 17).astype(int) - (127 - 24) * 64 + 1	# 64 an octave from 2^-24 on
    assert (f[n]["histogram"][...] == np.bincount(np.clip(bins.ravel(), 0, 3073), minlength=3074)).all() and f[n]["histogram"].dtype == "i8"
assert f["a"] == f["c"]'
# both within (ctx + 2) 2^-24 Σ |x| |x| of the truth, where products of bf16 are exact, and rounded once more
for cpu in plain ''; do
	PTQ_CPU=$cpu hessian-accum --ctx 16 bf16.h5 -o b.h5
	ok "bf16 activations as the same in f32, kernels '$cpu'" py -c 'import h5py, numpy as np
f, x = h5py.File("b.h5"), abs(h5py.File("bf16.h5")["b/input"][...].astype("f8"))
a, b = f["a"], f["b"]
assert (abs(a["hessian"][...].astype("f8") - b["hessian"][...]) <= (2 * 18 + 2) * 2.0 ** -24 * (x.T @ x)).all()
assert a["count"][()] == 70 and a["hessian"][...].any()
for n in "absmax", "mean_abs", "fourth", "histogram": assert (a[n][...] == b[n][...]).all(), n'
done
for i in 1 2; do hessian-accum --ctx 16 --shard $i/2 act.h5 -o s$i.h5; done
hessian-accum s1.h5 s2.h5 -o s.h5
ok 'their shards' py near.py a.h5 s.h5 1e-6
ok '... to the count' py -c 'import h5py
a, s = h5py.File("a.h5"), h5py.File("s.h5")
for n in "ab": assert (a[n]["histogram"][...] == s[n]["histogram"][...]).all()'
for m in mean_abs fourth histogram; do
	cp a.h5 lacks.h5; py -c 'import h5py, sys; del h5py.File("lacks.h5", "r+")["b"][sys.argv[1]]' $m
	no "a sum of files without $m" 1 "lacks.h5: /b/$m: is missing" hessian-accum lacks.h5 -o no.h5
done
py -c 'import h5py
with h5py.File("a.h5") as a:
    for name, m, i, v in ("minus", "histogram", 5, -1), ("many", "histogram", 5, 1 << 40), ("nan", "fourth", 3, float("nan")):
        with h5py.File("bad-" + name + ".h5", "w") as f:
            f.attrs.update(a.attrs); a.copy("a", f); f["a"][m][i] = v'
no 'a count below 0' 1 'bad-minus.h5: /a/histogram: element 5 is -1, expected a magnitude' hessian-accum bad-minus.h5 -o no.h5
no 'counts of other tokens' 1 'bad-many.h5: /a/histogram: counts 1.09951e\+12 numbers, expected 33 for each of 70 tokens' hessian-accum bad-many.h5 -o no.h5
no 'NaN in fourth' 1 'bad-nan.h5: /a/fourth: element 3 is nan' hessian-accum bad-nan.h5 -o no.h5

# keys and values as the model says, or the option; fewer bits, other inputs of what reads attention's output
msq-calib -q --kv-format int2 "$model" -o kv.h5
run "$model" -o plain-h.h5; run kv.h5 -o kv-h.h5; run --kv-format int2 "$model" -o option-h.h5; run --kv-format none kv.h5 -o none-h.h5
ok 'keys and values rounded as the model says' py near.py kv-h.h5 option-h.h5 0
ok '... but where the option says none' py near.py plain-h.h5 none-h.h5 0
ok '... which is seen behind the first attention' py -c 'import h5py, numpy as np
a, b = h5py.File("plain-h.h5"), h5py.File("kv-h.h5"); p = "model/layers/0/self_attn/%s_proj/hessian"
assert np.array_equal(a[p % "q"], b[p % "q"]) and not np.array_equal(a[p % "o"], b[p % "o"])'
warns 'a format of keys where no model is run' 'without effect here: --kv-format .no model is run.' hessian-accum --kv-format int4 act.h5 -o no-keys.h5

no 'tokens are expected' 2 '^hessian-accum: --tokens FILE is expected' hessian-accum "$model"
no 'tokens are not wanted' 2 'goes with a model' hessian-accum --tokens t.h5 act.h5
no 'a shard' 2 "shard: '4/3'" run --shard 4/3 "$model"
no 'a shard of nothing' 2 "shard: 'x'" run --shard x "$model"
no 'a shard of Hessians' 2 'summed whole' hessian-accum --shard 1/2 h.h5
warns 'arithmetic of what is not run' 'without effect here: --compute-type .no model is run.' hessian-accum --compute-type bf16 act.h5 -o arithmetic.h5
no 'an empty shard' 1 't.h5: --shard 40/40 has no window: there are 31' run --shard 40/40 "$model"
no 'a model among Hessians' 1 'model' hessian-accum h.h5 "$model"
no 'other layers' 1 'd.h5' hessian-accum h.h5 d.h5
no 'other models' 1 'parts|layers' hessian-accum h.h5 a.h5
no 'integers' 1 'int.h5: /a/input: is int32' hessian-accum int.h5
no 'NaN' 1 'nan.h5: /a: input 4: ' hessian-accum nan.h5
ok 'nothing is left behind' sh -c '! ls ./*.tmp 2>/dev/null | grep .'
done_testing
