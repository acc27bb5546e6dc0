#!/bin/sh
# Scales and limits of AWQ: every reference model computes what it did, ratios and losses are those of a search in float64,
# and rounding to nearest loses no more than before.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }

for name in llama-gqa llama-tied gpt2 opt opt-post neox-parallel gemma gemma2 qwen2-moe mixtral; do
	sample-tokens -q --length 320 --ctx 32 "$ref/$name.h5" -o "$name-t.h5"
	hessian-accum -q --tokens "$name-t.h5" --ctx 32 "$ref/$name.h5" -o "$name-h.h5"
	awq-scale --group 16 --clip no --check --hessian "$name-h.h5" "$ref/$name.h5" -o "$name.h5" 2>said; s=$?
	ok "$name: the logits stay, $(checked)" below "$(checked)" 1e-5
	is "$name: status" $s 0
	cp said "$name.said"
done

# the search by its equations, on the files: NAME STORAGE GROUP, norm=readers or layer<source
cat >search.py <<'PY'
import h5py, numpy as np, sys
ref, name, bits, group, said, after, *inputs = sys.argv[1:]
bits, group = int(bits), int(group)
a, b, h = h5py.File(f"{ref}/{name}.h5"), h5py.File(after), h5py.File(f"{name}-h.h5")
rows = {l.split("\t")[0]: [float(x) for x in l.split("\t")[1:]] for l in open(said) if l.startswith("/")}
def nearest(v):                                         # asymmetric, min-max
    q = np.zeros(v.shape)
    for g in range(0, v.shape[1], group):
        w = v[:, g:g + group]
        low, high = np.minimum(w.min(1, keepdims=True), 0), np.maximum(w.max(1, keepdims=True), 0)
        top = 2 ** bits - 1; s = ((high - low) / top).astype("f4").astype("f8"); s[s == 0] = 1
        z = np.rint(-low * top / np.where(high > low, high - low, 1))
        q[:, g:g + group] = (np.clip(np.rint(w / s) + z, 0, top) - z) * s
    return q
def weight(f, p): return f[p]["weight"][()].astype("f8")
def inputs_of(p):                                       # H and mean |x|; with the prior of an expert that few tokens reached, of in tokens
    g = h[p]; H, x = (g[m][()].astype("f8") for m in ("hessian", "mean_abs")); c, n = float(g["count"][()]), len(x)
    if c >= n or "prior" not in g: return H, x
    g = g["prior"]
    return H + (n - c) * g["hessian"][()] / float(g["count"][()]), (c * x + (n - c) * g["mean_abs"][()]) / n
def loss(p, s):
    v = (weight(a, p) * s).astype("f4").astype("f8"); e = (v - nearest(v)) / s
    return np.sum(e @ inputs_of(p)[0] * e)
def factors(x, r):
    s = np.maximum(x ** r, 1e-4); return s / np.sqrt(s.max() * s.min())
want, used = {}, []
for i in inputs:
    source, readers = (i.split("=") if "=" in i else i.split("<")[::-1])
    readers = readers.split(",")
    x = inputs_of(max(readers, key=lambda p: h[p]["count"][()]))[1]
    all_ = np.array([[loss(p, factors(x, r / 20)) for p in readers] for r in range(20)])
    best = all_.sum(1).argmin()
    used.append(best)
    s = factors(x, best / 20)
    for k, p in enumerate(readers):
        W = weight(a, p); whole = np.sum(W @ inputs_of(p)[0] * W)
        got = rows["/" + p]
        assert got[0] == best / 20, (p, got, best)
        assert abs(got[1] * whole / all_[0, k] - 1) < 1e-4 and abs(got[2] * whole / all_[best, k] - 1) < 1e-4, (p, got)
        want[p] = want.get(p, W) * s
    if "<" in i:
        n = len(s); W = want.get(source, weight(a, source)).copy(); W[-n:] /= s[:, None]; want[source] = W
        if "bias" in a[source]:
            c = a[source]["bias"][()].astype("f8"); c[-n:] /= s
            assert abs(b[source]["bias"][()] - c).max() <= 2 ** -23 * abs(c).max(), source
    else:
        for m in set(a[source]) & {"weight", "bias"}:
            o = float(name.startswith("gemma") and m == "weight"); c = (a[source][m][()].astype("f8") + o) / s - o
            assert abs(b[source][m][()] - c).max() <= 2 ** -23 * (abs(c) + 1).max(), (source, m)
assert max(used) > 0, used                              # or there is nothing to see
for p, W in want.items(): assert abs(b[p]["weight"][()] - W).max() <= 2 ** -23 * abs(W).max(), p
PY
l=model/layers/1
ok 'llama: norms, and down behind a gate' py search.py "$ref" llama-gqa 4 16 llama-gqa.said llama-gqa.h5 \
	$l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj $l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'llama: heads that share values are not scaled' sh -c '! grep o_proj llama-gqa.said'
l=model/decoder/layers/0
ok 'opt: values, and a ReLU' py search.py "$ref" opt 4 16 opt.said opt.h5 "$l/self_attn/out_proj<$l/self_attn/v_proj" "$l/fc2<$l/fc1" \
	$l/self_attn_layer_norm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj $l/final_layer_norm=$l/fc1
l=transformer/h/0
ok 'gpt2: values in a layer with queries and keys, and no GELU' py search.py "$ref" gpt2 4 16 gpt2.said gpt2.h5 $l/ln_1=$l/attn/c_attn "$l/attn/c_proj<$l/attn/c_attn" $l/ln_2=$l/mlp/c_fc
ok '... not scaled' sh -c '! grep mlp/c_proj gpt2.said'
awq-scale --storage uint3 --group 8 --clip no --hessian gemma-h.h5 "$ref/gemma.h5" -o gemma3bit.h5 2>gemma3bit.said
l=model/layers/0
ok 'gemma: a gain of one more; 3 bits' py search.py "$ref" gemma 3 8 gemma3bit.said gemma3bit.h5 $l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj \
	$l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'experts: each for itself, and no router' sh -c 'grep -q "/1/mlp/experts/3/down_proj" qwen2-moe.said && ! grep -e "mlp/gate	" -e shared_expert_gate qwen2-moe.said'
# few tokens: most experts' Hessians and means are mixed with their prior's; of those that share inputs the most seen decides
few() {	# few NAME BLOCK NORM EXPERTS GATE UP DOWN
	sample-tokens -q --length 33 --ctx 32 "$ref/$1.h5" -o few-t.h5
	hessian-accum -q --tokens few-t.h5 --ctx 32 "$ref/$1.h5" -o few/$1-h.h5
	awq-scale --group 16 --clip no --hessian few/$1-h.h5 "$ref/$1.h5" -o few/$1.h5 2>few/$1.said
	readers=$(for w in "$5" "$6"; do for e in $(seq 0 $(($4 - 1))); do printf ',%s' "$2/experts/$e/$w"; done; done)
	sources=$(for e in $(seq 0 $(($4 - 1))); do echo "$2/experts/$e/$7<$2/experts/$e/$6"; done)
	# shellcheck disable=SC2086
	ok "$1: experts with a prior" sh -c 'cd few && /usr/bin/python3 ../search.py "$@"' x "$ref" "$1" 4 16 "$1.said" "$1.h5" "$3=${readers#,}" $sources
}
mkdir few
few mixtral model/layers/0/block_sparse_moe model/layers/0/post_attention_layernorm 4 w1 w3 w2
few qwen3-moe model/layers/1/mlp model/layers/1/post_attention_layernorm 6 gate_proj up_proj down_proj

# --- clipping ---
cat >clip.py <<'PY'
import h5py, numpy as np, sys
scaled, clipped, said = h5py.File(sys.argv[1]), h5py.File(sys.argv[2]), sys.argv[3]
group, seen = 16, 0
rows = {l.split("\t")[0]: [float(x) for x in l.split("\t")[1:]] for l in open(said) if l.startswith("/")}
assert len(rows) == 14, rows
for p, (ratio, nearest, better, best, share) in rows.items():
    v, w = scaled[p]["weight"][()], clipped[p]["weight"][()]
    if p.endswith(("q_proj", "k_proj")):
        assert np.array_equal(v, w) and share == 0 and best == better; continue
    n = 0
    for g in range(0, v.shape[1], group):
        x, y = v[:, g:g + group], w[:, g:g + group]
        top, most = abs(x).max(1), abs(y).max(1)
        i = np.rint(20 * (1 - most / top))
        assert (abs(1 - most / top - i / 20) < 1e-6).all() and (i < 10).all(), p
        assert np.array_equal(np.clip(x, -most[:, None], most[:, None]), y), p
        n += (i > 0).sum()
    groups = v.shape[0] * -(-v.shape[1] // group)
    assert abs(n / groups - share) < 1e-5, (p, n / groups, share); seen += n
assert seen > 100, seen
PY
awq-scale --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o clipped.h5 2>clipped.said
ok 'weights are clipped at steps of 1/20, but for queries and keys' py clip.py llama-gqa.h5 clipped.h5 clipped.said
awq-scale -q --group 16 --hessian gpt2-h.h5 "$ref/gpt2.h5" -o clipped-gpt2.h5
ok '... also where they are rows of one layer with values' py -c '
import h5py, numpy as np
a, b = h5py.File("gpt2.h5"), h5py.File("clipped-gpt2.h5")
x, y = (f["transformer/h/0/attn/c_attn/weight"][()] for f in (a, b)); n = len(x) // 3
assert np.array_equal(x[:2 * n], y[:2 * n]) and (abs(y[2 * n:]) < abs(x[2 * n:])).sum() > 20'
awq-scale --check --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5 2>said; s=$?
is 'a check of clipped weights only prints' $s 0
ok '... how far the model is away' sh -c 'awk -v x="$1" "BEGIN { exit !(x > 1e-3) }"' x "$(checked)"

# --- what follows: tr(E H Eᵀ) of the calibration is not above that of the model as it was, and dpq-run has the same numbers ---
cat >no-worse.py <<'PY'
import sys
def table(f, column):
    rows = [l.rstrip("\n").split("\t") for l in open(f) if l[:1] in "/l"]
    return {r[0]: float(r[rows[0].index(column)]) for r in rows[1:]}
old, new = (table(f, "error") for f in ("before", "after"))
near, best = (table(sys.argv[1], c) for c in ("nearest", "scaled"))
assert len(near) == 12
for p in near:                                          # rows of up_proj are scaled, too: they weigh otherwise there
    assert abs(old[p] / near[p] - 1) < 1e-4 and ("up_proj" in p or abs(new[p] / best[p] - 1) < 1e-4), (p, old[p], near[p], new[p], best[p])
PY
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 llama-gqa.h5 -o after-h.h5
dpq-run --compensate none --scale-search minmax --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o q0.h5 2>before
dpq-run --compensate none --scale-search minmax --group 16 --hessian after-h.h5 llama-gqa.h5 -o q1.h5 2>after
ok 'losses are those that dpq-run finds, on Hessians of the scaled model' py no-worse.py llama-gqa.said
# the divisor of a tensor follows from both ends of its range: layers whose largest magnitude is negative tell
for format in nvfp4 'uint4 --scale-dtype e4m3fn'; do
	# shellcheck disable=SC2086
	{
		awq-scale --storage $format --group 16 --clip no --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o divided.h5 2>divided.said
		hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 divided.h5 -o after-h.h5
		dpq-run --compensate none --scale-search minmax --storage $format --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5 2>before
		dpq-run --compensate none --scale-search minmax --storage $format --group 16 --hessian after-h.h5 divided.h5 -o x.h5 2>after
	}
	ok "... $format" py no-worse.py divided.said
done
for name in llama-gqa opt gemma qwen2-moe; do
	ok "$name: no input loses more than before" py -c '
import sys, h5py, numpy as np
ref, name = sys.argv[1:]
a, h = h5py.File(f"{ref}/{name}.h5"), h5py.File(f"{name}-h.h5")
sums = {}
for l in open(f"{name}.said"):
    if l[0] != "/": continue
    p, r, x, y = l.split("\t"); W = a[p]["weight"][()].astype("f8"); whole = np.sum(W @ h[p]["hessian"][()] * W)
    key = p.rsplit("/", 1)[0] + (p.rsplit("/", 1)[1] if "down" in p or "o_proj" in p or "fc2" in p or "out_proj" in p else "")
    if "expert" in p: continue                          # whose Hessians have a prior
    t = sums.setdefault(key, [0, 0]); t[0] += float(x) * whole; t[1] += float(y) * whole
assert len(sums) >= 3
for k, (x, y) in sums.items(): assert y <= x * (1 + 1e-6), (k, x, y)' "$ref" "$name"
done

# --- the rest ---
ok 'the same bytes for every -j' sh -c 'awq-scale -q -j 1 --group 16 --hessian gpt2-h.h5 "$1" -o j1.h5 && awq-scale -q -j 3 --group 16 --hessian gpt2-h.h5 "$1" -o j3.h5 && cmp j1.h5 j3.h5' x "$ref/gpt2.h5"
ok 'a stream' sh -c 'cat "$1" | awq-scale -q --group 16 --hessian gpt2-h.h5 | cat >stream && awq-scale -q --group 16 --hessian gpt2-h.h5 <"$1" -o r.h5 && h5diff r.h5 j1.h5' x "$ref/gpt2.h5"
hadamard-rotate -q "$ref/llama-tied.h5" -o rotated.h5
hessian-accum -q --tokens llama-tied-t.h5 --ctx 32 rotated.h5 -o rotated-h.h5
awq-scale --group 16 --clip no --check --hessian rotated-h.h5 rotated.h5 -o x.h5 2>said
ok "a rotated model's logits stay, $(checked)" below "$(checked)" 1e-5
ok '... and its down projections, behind online Hadamards' sh -c '! grep down_proj said && grep -q up_proj said'
hessian-accum -q --layers '*q_proj' --layers '*down_proj' --tokens llama-gqa-t.h5 --ctx 32 "$ref/llama-gqa.h5" -o few-h.h5
awq-scale --group 16 --check --clip no --hessian few-h.h5 "$ref/llama-gqa.h5" -o few.h5 2>said
is 'Hessians of few layers' "$(grep -c '^/' said)" 4
ok "... others follow, $(checked)" below "$(checked)" 1e-5
awq-scale -q --dtype bf16 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o half.h5
ok 'bf16' py -c '
import h5py
f = h5py.File("half.h5")["model/layers/0/mlp/up_proj/weight"]
assert f.id.get_type().get_size() == 2'
warns 'a storage with its own scales' '--scale-dtype .*a storage with its own' awq-scale --storage mxfp4 --scale-dtype e8m0 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5

# --- what is refused ---
rm -f r.h5
g=$ref/llama-gqa.h5
py - <<'PY'
import h5py, shutil
def changed(name, change):
    shutil.copy("llama-gqa-h.h5", name)
    with h5py.File(name, "r+") as f: change(f)
q = "model/layers/0/self_attn/q_proj"
def narrow(f):
    for m in "hessian", "absmax", "mean_abs":
        a = f[q][m][()]; del f[q][m]; f[q][m] = a[:8, :8] if a.ndim == 2 else a[:8]
def crooked(f):
    a = f[q]["hessian"][()]; a[3, 5] += 1e6; del f[q]["hessian"]; f[q]["hessian"] = a
def without(f): del f[q]["mean_abs"]
def none(f): del f["model"]
for change in narrow, crooked, without, none: changed(change.__name__ + ".h5", change)
PY
no 'no Hessians' 2 '--hessian FILE is expected' awq-scale "$g" -o r.h5
no 'Hessians of no layer' 1 'none.h5: holds no Hessian of a layer' awq-scale --hessian none.h5 "$g" -o r.h5
no 'no means' 1 'without.h5: /model/layers/0/self_attn/q_proj/mean_abs: is missing, expected what hessian-accum makes' awq-scale --hessian without.h5 "$g" -o r.h5
no 'another width' 1 'narrow.h5: /model/layers/0/self_attn/q_proj' awq-scale --hessian narrow.h5 "$g" -o r.h5
no 'a Hessian that is not symmetric' 1 'crooked.h5: /model/layers/0/self_attn/q_proj/hessian: is not symmetric' awq-scale --hessian crooked.h5 "$g" -o r.h5
no 'a scale for a tensor' 2 '--group: tensor' awq-scale --group tensor --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a format that is none' 2 'storage' awq-scale --storage int99 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'scales of another type' 2 '--scale-dtype: mxfp4 has scales in e8m0' awq-scale --storage mxfp4 --scale-dtype f16 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a model that is quantized' 1 'is quantized already' sh -c 'awq-scale -q --hessian llama-gqa-h.h5 q0.h5 -o r.h5' x "$g"
no '... though nothing is clipped, and no ratio may be better' 1 'is quantized already' awq-scale -q --clip no --hessian llama-gqa-h.h5 q0.h5 -o r.h5
py -c 'import h5py, shutil, sys
shutil.copy(sys.argv[1], "nan.h5")
with h5py.File("nan.h5", "r+") as f: f["model/layers/1/mlp/down_proj/weight"][2, 3] = float("nan")' "$g"
no 'a weight that is none' 1 'nan.h5: /model/layers/1/mlp/down_proj/weight: holds infinite or undefined numbers' awq-scale -q --hessian llama-gqa-h.h5 nan.h5 -o r.h5
msq-calib -q --act-format int8 --tokens llama-gqa-t.h5 --ctx 32 "$g" -o static.h5
no 'static scales of inputs' 1 'act_scale: is of the inputs as they are' awq-scale -q --hessian llama-gqa-h.h5 static.h5 -o r.h5
ok 'nothing of that is there' test ! -e r.h5
done_testing
