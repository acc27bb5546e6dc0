#!/bin/sh
# Rotated models: every reference model computes what it did, or is refused with the reason (the same in double:
# tests/invariant.c); the Hadamard before down projections goes wherever the layer goes.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }
rotated() {	# rotated NAME FILE OPTION...
	what=$1 file=$2; shift 2
	hadamard-rotate --check --seed 7 "$@" "$file" -o "$what.h5" 2>said
	ok "$what: the logits stay, $(checked)" below "$(checked)" 1e-5
}

for f in "$ref"/*.h5; do
	name=$(basename "$f" .h5)
	case $name in
	hessians | checkpoints | conventions | fp4) continue ;;
	gpt2 | opt | neox-parallel | neox-serial)
		no "$name" 1 'is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms' hadamard-rotate -q "$f" -o r.h5
		ln2rms -q "$f" -o rms.h5
		rotated "$name" rms.h5 ;;
	gemma2 | gemma3) no "$name" 1 '/model/layers/0/post_attention_layernorm: stands behind a branch and has another gain for each' hadamard-rotate -q "$f" -o r.h5 ;;
	opt-post) no "$name" 1 'is a norm of the residual stream itself' hadamard-rotate -q "$f" -o r.h5 ;;
	*) rotated "$name" "$f" ;;
	esac
done
ok 'nothing of what was refused is there' test ! -e r.h5
for m in qwen2-moe phi3-long; do
	rotated "$m, blocks" "$ref/$m.h5" --block 4
	rotated "$m, offline" "$ref/$m.h5" --offline
done
py - "$ref" <<'PY'
import h5py, shutil, sys
shutil.copy(sys.argv[1] + "/gemma2.h5", "one-gain.h5")
with h5py.File("one-gain.h5", "r+") as f:
    for i in "01":
        for n in ("post_attention_layernorm", "post_feedforward_layernorm"): f[f"model/layers/{i}/{n}/weight"][...] = 0.25
PY
rotated 'gemma2, one gain behind each branch' one-gain.h5

# --- what was changed ---
ok 'norms are folded, heads free, the rest as it was' py - "$ref" <<'PY'
import h5py, numpy as np, sys
for name in "llama-tied", "gemma", "qwen2-moe", "phi3-window":
    a, b = h5py.File(f"{sys.argv[1]}/{name}.h5"), h5py.File(name + ".h5")
    gain = 0 if name == "gemma" else 1
    assert b.attrs["rotated"] == "hadamard" and "norm" not in b["model/norm"].attrs
    for p in ("model/norm", "model/layers/0/input_layernorm", "model/layers/0/post_attention_layernorm"): assert (b[p]["weight"][()] == gain).all(), (name, p)
    assert b["lm_head/weight"].id.get_offset() != b["model/embed_tokens/weight"].id.get_offset()
    assert np.array_equal(a["test/tokens"][()], b["test/tokens"][()]) and a["config"][()] == b["config"][()]
    down = b["model/layers/0/mlp/down_proj"]
    assert down.attrs["online_hadamard"] == 44 and down["weight"].shape[1] == 44, name
    for g in ("embed_tokens", "layers/0/mlp/up_proj", "layers/0/self_attn/o_proj", "layers/0/self_attn/v_proj"):
        x, y = a[f"model/{g}/weight"][()], b[f"model/{g}/weight"][()]
        assert abs(x - y).max() > 0.05, (name, g)
    e, f = a["model/embed_tokens/weight"][()].astype("f8"), b["model/embed_tokens/weight"][()].astype("f8")
    assert abs(e @ e.T - f @ f.T).max() < 1e-5 * abs(e @ e.T).max(), name	# an orthogonal matrix
b, c = h5py.File("qwen2-moe.h5"), h5py.File("qwen2-moe, blocks.h5")
assert b["model/layers/1/mlp/experts/3/down_proj"].attrs["online_hadamard"] == 12 and c["model/layers/1/mlp/experts/3/down_proj"].attrs["online_hadamard"] == 4
assert b["model/layers/1/mlp/shared_expert/down_proj"].attrs["online_hadamard"] == 20
assert "online_hadamard" not in h5py.File("qwen2-moe, offline.h5")["model/layers/0/mlp/down_proj"].attrs
PY
model=$ref/llama-gqa.h5
ok 'the same seed gives the same bytes, for every -j' sh -c 'hadamard-rotate -q --seed 7 -j 1 "$1" -o a.h5 && hadamard-rotate -q --seed 7 -j 3 "$1" -o b.h5 && cmp a.h5 b.h5 && h5diff a.h5 llama-gqa.h5' x "$model"
ok 'another seed gives another model' sh -c 'hadamard-rotate -q --seed 8 "$1" -o b.h5; ! h5diff -q a.h5 b.h5 /model/embed_tokens/weight' x "$model"

# --- the online Hadamard goes along ---
sample-tokens -q --length 640 --ctx 32 "$model" -o tokens.h5
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" | awk '$1 == "nll" { print $2 }'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d <= by * a) }'; }
ok 'the same likelihood' near "$(nll a.h5)" "$(nll "$model")" 1e-5
hadamard-rotate -q --seed 7 --keys "$model" -o keys.h5
is '--keys: what the forward pass does' "$(py -c 'import h5py; a, b = h5py.File("a.h5"), h5py.File("keys.h5"); print(b["model/layers/0/self_attn"].attrs["kv_hadamard"], "kv_hadamard" in a["model/layers/0/self_attn"].attrs)')" '8 False'
ok '... and the same likelihood' near "$(nll keys.h5)" "$(nll "$model")" 1e-5
ok '... other ones with rounded keys' sh -c 'test "$1" != "$2"' x "$(nll --kv-format int4 a.h5)" "$(nll --kv-format int4 keys.h5)"
ok 'a stream' near "$(hadamard-rotate -q --seed 7 <"$model" | cat | nll)" "$(nll "$model")" 1e-5
for m in "$model" a.h5; do sample-tokens -q --temperature 0 --length 62 --ctx 32 "$m" -o "greedy-$(basename "$m")"; done
ok 'the same greedy tokens' h5diff greedy-llama-gqa.h5 greedy-a.h5 /tokens
down=model/layers/0/mlp/down_proj
for c in 'dpq-run -q --compensate none --group 16' 'dpq-run -q --compensate none --storage e2m2 --group channel' 'dpq-run -q --group 16 --sequential --tokens tokens.h5 --ctx 32'; do
	ok "$c" $c a.h5 -o q.h5
	is '... keeps it' "$(py -c "import h5py; print(h5py.File('q.h5')['$down'].attrs['online_hadamard'])")" 44
	ok '... and it is used' near "$(nll q.h5)" "$(nll "$model")" 0.2
done
dpq-run -q --compensate none --storage e2m2 --group channel a.h5 -o q.h5
exmy-pack q.h5 -o p.h5
is 'packed too' "$(py -c "import h5py; print(h5py.File('p.h5')['$down'].attrs['online_hadamard'])")" 44
is '... the same numbers' "$(nll p.h5)" "$(nll q.h5)"
ok '... unpacked the same file' sh -c 'exmy-pack --unpack p.h5 -o u.h5 && h5diff --exclude-attribute / u.h5 q.h5'
ok 'stages of --sequential see what the model multiplies' py - <<'PY'
import subprocess as s, h5py, numpy as np
s.run("hessian-accum -q --tokens tokens.h5 --ctx 32 a.h5 -o ha.h5 && dpq-run -q --group 16 --layers */0/mlp/down_proj --hessian ha.h5 a.h5 -o one.h5 && "
    "dpq-run -q --group 16 --layers */0/mlp/down_proj --sequential --tokens tokens.h5 --ctx 32 a.h5 -o two.h5", shell=True, check=True)
d = "model/layers/0/mlp/down_proj/codes"
assert np.array_equal(h5py.File("one.h5")[d][()], h5py.File("two.h5")[d][()])
PY
# y is the same, up to a rotation of y: tr(W S Wᵀ) stays, of every layer and of experts' priors
ok 'Hessians are of the inputs behind it' py - "$ref" <<'PY'
import subprocess as s, h5py, numpy as np, sys
n = 0
for name in ("llama-gqa", "qwen2-moe"):
    for m, f in (("a", f"{sys.argv[1]}/{name}.h5"), ("b", name + ".h5")): s.run(["hessian-accum", "-q", "--tokens", "tokens.h5", "--ctx", "32", f, "-o", m + "h.h5"], check=True)
    a, b, ha, hb = (h5py.File(x) for x in (f"{sys.argv[1]}/{name}.h5", name + ".h5", "ah.h5", "bh.h5"))
    def see(path, g):
        global n
        if not isinstance(g, h5py.Group) or "hessian" not in g: return
        layer = path.removesuffix("/prior")
        x, y = (np.einsum("oi,ij,oj", w, h, w) for w, h in ((f[layer]["weight"][()].astype("f8"), t[path]["hessian"][()].astype("f8")) for f, t in ((a, ha), (b, hb))))
        assert ha[path]["count"][()] == hb[path]["count"][()] and abs(x - y) < 1e-4 * x, (path, x, y)
        if layer.endswith("down_proj"): assert abs(ha[path]["hessian"][()] - hb[path]["hessian"][()]).max() > 1e-2 * abs(ha[path]["hessian"][()]).max(), path
        n += 1
    ha.visititems(see)
assert n > 20, n
PY

# --- a rotation from elsewhere ---
py - <<'PY'
import h5py, numpy as np
r = np.random.default_rng(5)
def orthogonal(n): return np.linalg.qr(r.standard_normal((n, n)))[0]
def write(path, kind="rotation", **members):
    with h5py.File(path, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = kind, "1"
        for k, v in members.items(): f[k] = v.astype("f4")
q = orthogonal(32)
write("learned.h5", residual=q); write("both.h5", residual=q, value=orthogonal(8)); write("shape.h5", residual=orthogonal(20))
write("skew.h5", residual=q + 1e-3); write("nan.h5", residual=q * np.nan); write("value.h5", residual=q, value=np.ones((8, 8))); write("none.h5", value=q)
PY
rotated 'a learned rotation' "$model" --load both.h5 2>/dev/null
ok 'a learned rotation of the stream' hadamard-rotate -q --load learned.h5 "$model" -o l.h5
ok '... is it' py - "$model" <<'PY'
import h5py, numpy as np, sys
a, b, q = h5py.File(sys.argv[1]), h5py.File("l.h5"), h5py.File("learned.h5")["residual"][()].astype("f8")
e = "model/embed_tokens/weight"; v = "model/layers/0/self_attn/q_proj/weight"; g = a["model/layers/0/input_layernorm/weight"][()].astype("f8")
assert np.array_equal(b[e][()], (a[e][()] @ q).astype("f4")) or abs(b[e][()] - a[e][()] @ q).max() < 1e-6
assert abs(b[v][()] - (a[v][()] * g) @ q).max() < 1e-6 and b.attrs["rotated"] == "learned"
PY
warns 'a seed of nothing' 'without effect here: --seed .--load.' hadamard-rotate --seed 1 --load learned.h5 "$model" -o l.h5
no 'of another width' 1 'shape.h5: /residual: has shape' hadamard-rotate -q --load shape.h5 "$model" -o r.h5
no 'not orthogonal' 1 'skew.h5: /residual: is not orthogonal: a number of Q Qᵀ - I is .*, expected at most 1e-05' hadamard-rotate -q --load skew.h5 "$model" -o r.h5
no 'no numbers' 1 'nan.h5: /residual: ' hadamard-rotate -q --load nan.h5 "$model" -o r.h5
no 'values not orthogonal' 1 'value.h5: /value: is not orthogonal' hadamard-rotate -q --load value.h5 "$model" -o r.h5
no 'none of the stream' 1 'none.h5: /residual: is missing' hadamard-rotate -q --load none.h5 "$model" -o r.h5
no 'a model in its place' 1 "holds a 'model', expected 'rotation'" hadamard-rotate -q --load "$model" "$model" -o r.h5

# --- what is refused ---
no 'a model that is rotated' 1 'a.h5: is rotated already .hadamard., expected a model as it was before' hadamard-rotate -q a.h5 -o r.h5
no 'a model that is quantized' 1 'rtn.h5: /model/layers/0/self_attn/q_proj: is quantized already, expected a plain weight: hadamard-rotate goes first' \
	sh -c 'dpq-run -q --compensate none --group 16 "$1" -o rtn.h5; hadamard-rotate -q rtn.h5 -o r.h5' x "$model"
py - "$model" <<'PY'
import h5py, shutil, sys
shutil.copy("a.h5", "unmarked.h5")
with h5py.File("unmarked.h5", "r+") as f: del f.attrs["rotated"]
PY
no 'a layer behind an online Hadamard' 1 'unmarked.h5: /model/layers/0/mlp/down_proj: is behind an online Hadamard already' hadamard-rotate -q unmarked.h5 -o r.h5
no 'blocks that do not divide' 1 'inputs of down projections: 44 channels are not divided by blocks of 16' hadamard-rotate -q --block 16 "$model" -o r.h5
no 'blocks without a matrix' 1 'the residual stream: no Hadamard matrix of order 3 is known, blocks of 24 are' hadamard-rotate -q --block 3 "$ref/phi3-window.h5" -o r.h5
warns 'a width without a matrix' 'values of a head: no Hadamard matrix of order 10 .*blocks of 2' hadamard-rotate "$ref/qwen3-window.h5" -o warned.h5
numbers='0 1 -1 x 1.5'
for v in $numbers; do no "--block $v" 2 '--block' hadamard-rotate --block=$v "$model" -o r.h5; done
ok 'nothing of that is there' test ! -e r.h5
done_testing
