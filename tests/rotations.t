#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# Layers whose inputs and outputs are rotated (input_signs, online_hadamard, output_hadamard, output_signs), made here
# of a model without: in float64 from Ŵ = R_out W R_inᵀ.
model=$top/tests/ref/llama-gqa.h5
cat >rotate.py <<'PY'
import h5py, numpy as np, shutil, sys
source, to = sys.argv[1:]
shutil.copyfile(source, to)
rng = np.random.default_rng(7)
def hadamard(n):			# Sylvester's: all orders here are powers of two
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.kron(np.array([[1, 1], [1, -1]]), h)
    return h / np.sqrt(n)
def power(n):				# the largest power of two that divides it
    return n & -n
def rotation(n, order):			# x becomes x @ this
    signs = rng.choice([-1, 1], n).astype("i1")
    h = np.kron(np.eye(n // order), hadamard(order)) if order else np.eye(n)
    return signs, signs[:, None] * h
with h5py.File(to, "r+") as f:
    layers = f["model/layers"]
    for block in layers.values():
        for n, (group, names) in enumerate([("self_attn", ("q_proj", "k_proj", "v_proj")), ("self_attn", ("o_proj",)),
                ("mlp", ("gate_proj", "up_proj")), ("mlp", ("down_proj",))]):
            width = block[group][names[0]]["weight"].shape[1]
            order = power(width) if n != 2 else 0		# of gate and up signs alone
            signs, before = rotation(width, order)
            for name in names:
                g = block[group][name]
                w = g["weight"][()].astype("f8")
                if name == "v_proj":				# outputs as they are, beside rotated ones
                    out = np.eye(len(w))
                else:
                    m = power(len(w)) if name != "k_proj" else 0
                    g["output_signs"], out = rotation(len(w), m)
                    if m:
                        g.attrs["output_hadamard"] = m
                g["input_signs"] = signs
                if order:
                    g.attrs["online_hadamard"] = order
                del g["weight"]
                g["weight"] = (out.T @ w @ before).astype("f4")
PY
cat >dense.py <<'PY'
# The layer of a quantized file as a matrix in float64, and tr(E Eᵀ)/tr(W Wᵀ) against the model before.
import h5py, numpy as np, sys
exec(open("rotate.py").read().split("with h5py")[0].split("shutil.copyfile(source, to)")[1])
def matrix(signs, order, n):
    h = np.kron(np.eye(n // order), hadamard(order)) if order else np.eye(n)
    return (signs if signs is not None else np.ones(n))[:, None] * h
a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
path = sys.argv[3]
w, g = a[path + "/weight"][()].astype("f8"), b[path]
scale = g["scale"][()].astype("f8")
group = g.attrs["group"] or w.shape[1]
q = (g["codes"][()] - np.repeat(g["zero"][()].astype("f8"), group, 1)) * np.repeat(scale, group, 1)
get = lambda name: g[name][()] if name in g else None
out = matrix(get("output_signs"), g.attrs.get("output_hadamard", 0), w.shape[0])
into = matrix(get("input_signs"), g.attrs.get("online_hadamard", 0), w.shape[1])
e = w - out @ q @ into.T
print("%.9g" % ((e * e).sum() / (w * w).sum()))
PY
py rotate.py "$model" rotated.h5
py - <<'PY'
import h5py, numpy as np
with h5py.File("tokens.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
    d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 640).astype("i4"))
    d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
PY
up=/model/layers/0/mlp/up_proj
nll() { eval-ppl --tokens tokens.h5 --ctx 32 "$@" | sed -n 's/^nll[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }

# A logit of this model errs by some 1e-6 where weights are rounded to float again; so does a mean likelihood.
ok 'the forward pass undoes the rotations' near "$(nll rotated.h5)" "$(nll "$model")" 2e-6
divergence=$(eval-ppl --tokens tokens.h5 --ctx 32 --reference "$model" rotated.h5 | sed -n 's/^kl_max[[:space:]]*//p')
ok '... at every token' awk -v kl="$divergence" 'BEGIN { exit !(kl != "" && kl < 1e-9) }'
ok '... in bf16 as well as the model before' near "$(nll --compute-type bf16 rotated.h5)" "$(nll "$model")" 0.01
ok '... token by token' sh -c "sample-tokens --length 62 --ctx 32 --temperature 0 '$model' -o a.h5
	sample-tokens --length 62 --ctx 32 --temperature 0 rotated.h5 -o b.h5; h5diff a.h5 b.h5 /tokens"
cp rotated.h5 unsigned.h5
py -c "import h5py; del h5py.File('unsigned.h5', 'r+')['$up/output_signs']"
ok '... and they matter' sh -c "! awk 'BEGIN { d = $(nll unsigned.h5) - $(nll "$model"); exit !(d < 1e-3 && -d < 1e-3) }'"

# --- tools that keep them ---
dpq-run -q --compensate none --storage uint4 --group 4 rotated.h5 -o q.h5
for layer in self_attn/q_proj self_attn/v_proj self_attn/k_proj mlp/up_proj mlp/down_proj; do
	path=model/layers/1/$layer
	ok "$layer: tensor-diff's error is that of the matrix without rotations" near \
		"$(tensor-diff --reference rotated.h5 --layers "/$path" q.h5 | awk -v p="/$path" '$1 == p { print $4 }')" \
		"$(py dense.py "$model" q.h5 "$path")" 1e-6
done
exmy-pack q.h5 -o p.h5
ok 'packed: the same likelihoods' near "$(nll p.h5)" "$(nll q.h5)" 1e-6
exmy-pack --unpack p.h5 -o u.h5
ok 'unpacked: the file before' h5diff --exclude-attribute / q.h5 u.h5
for i in 1 2; do dpq-run -q --compensate none --storage uint4 --group 4 --shard $i/2 rotated.h5 -o part$i.h5; done
tensor-join -q part1.h5 part2.h5 -o j.h5
ok 'joined of shards: the same' h5diff --exclude-attribute / q.h5 j.h5
bits() { tensor-stats --layers "$up" "$1" | awk -v p="$up" '$1 == p { for (i = 1; i <= NF; i++) if (at[i] == "bits") print $i } NR == 1 { for (i = 1; i <= NF; i++) at[i] = $i }'; }
dpq-run -q --compensate none --storage uint4 --group 4 "$model" -o plain.h5
ok 'a sign is a bit' near "$(bits q.h5)" \
	"$(awk -v b="$(bits plain.h5)" -v m="$(py -c "import h5py; a, b = h5py.File('$model')['$up/weight'].shape; print((a + b) / a / b)")" 'BEGIN { print b + m }')" 1e-4
hessian-accum -q --tokens tokens.h5 --ctx 32 rotated.h5 -o h.h5
ok 'GPTQ sees the inputs that the weight multiplies' sh -c "dpq-run -q --hessian h.h5 --storage uint4 --group 4 rotated.h5 |
	tensor-diff -q --hessian h.h5 --reference rotated.h5 >solved; tensor-diff -q --hessian h.h5 --reference rotated.h5 q.h5 >nearest
	awk '\$1 == \"all\" { print \$NF }' solved nearest | { read -r a; read -r b; awk -v a=\"\$a\" -v b=\"\$b\" 'BEGIN { exit !(a > 0 && a < b) }'; }"
fbq-run -q --rank 2 --hessian h.h5 rotated.h5 -o f.h5
ok 'a branch lies between the rotations' near "$(nll f.h5)" "$(nll rotated.h5)" 0.2

# --- and those that cannot take them ---
for tool in 'smooth-scale --hessian h.h5' 'awq-scale --hessian h.h5'; do
	# shellcheck disable=SC2086
	no "$tool" 1 "rotated.h5: /model/layers/0/[a-z_/]*: has input_signs, expected a layer without" $tool -q rotated.h5 -o r.h5
done
outputs() {	# TOOL FILE LAYER: signs of outputs alone, all 1
	cp "$top/tests/ref/$2" outputs.h5
	py -c "import h5py, numpy as np; g = h5py.File('outputs.h5', 'r+')['$3']; g['output_signs'] = np.ones(g['weight'].shape[0], 'i1')"
	no "$1" 1 "outputs.h5: $3: has output_signs, expected a layer without" "$1" -q outputs.h5 -o r.h5
}
outputs ln2rms gpt2.h5 /transformer/h/0/mlp/c_fc
outputs hadamard-rotate llama-gqa.h5 "$up"
no rms-suppress 1 'rotated.h5: .*/[a-z]*_proj: has input_signs, expected a layer with an online Hadamard alone' \
	rms-suppress -q rotated.h5 -o r.h5
no 'tensor-diff of models that are rotated otherwise' 1 "q.h5: /model/layers/0/.*: is rotated otherwise than in .*llama-gqa.h5" \
	tensor-diff --force-basis --reference "$model" q.h5
no 'fbq-run --reference, likewise' 1 'llama-gqa.h5: /model/layers/0/.*: reads its input otherwise than that of q.h5: .*other signs' \
	fbq-run -q --force-basis --method lowrank --rank 2 --reference "$model" q.h5 -o r.h5
change() { cp rotated.h5 "$1"; py -c "import h5py; g = h5py.File('$1', 'r+')['$up']; $2"; }
change zero.h5 'g["input_signs"][3] = 0'
change other.h5 'g["input_signs"][3] *= -1'
change order.h5 'g.attrs["output_hadamard"] = 3'
change short.h5 's = g["output_signs"][:-1]; del g["output_signs"]; g["output_signs"] = s'
change table.h5 'g.file["model/embed_tokens/output_signs"] = g["output_signs"][()][:1].repeat(61)'
no 'a sign of 0' 1 "zero.h5: $up/input_signs: holds 0 at 3, expected 1 or -1" \
	eval-ppl --tokens tokens.h5 --ctx 32 zero.h5
no 'signs of one of two layers' 1 "other.h5: $up/input_signs: differ from those of .*gate_proj, which has the same input" \
	eval-ppl --tokens tokens.h5 --ctx 32 other.h5
no 'an order that does not divide the rows' 1 "order.h5: $up: attribute output_hadamard is 3, expected the order .* rows" \
	eval-ppl --tokens tokens.h5 --ctx 32 order.h5
no 'signs that are too few' 1 "short.h5: $up/output_signs" eval-ppl --tokens tokens.h5 --ctx 32 short.h5
no 'embeddings' 1 'table.h5: /model/embed_tokens: output_signs is of layers of blocks' \
	eval-ppl --tokens tokens.h5 --ctx 32 table.h5
done_testing
