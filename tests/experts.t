#!/bin/sh
# Mixtures of experts through the tools: the Hessian of each expert and its prior against a plain reference of the
# routing on the routers' inputs that transformers had (tests/ref/make.py), sums of shards, codes, what is refused.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

if ! py -c 'import h5py, numpy' 2>/dev/null; then
	skip 'experts' 'no h5py'
	done_testing
fi

cat >common.py <<'PY'
import h5py, json, sys
import numpy as np

def tokens(name, ids):
    with h5py.File(name, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        d = f.create_dataset("tokens", data=np.asarray(ids, "i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = -1, 0, 61

class Experts:
    """Of a block of a reference: inputs of the layers of each expert, plainly, of the first tokens of the text."""
    def __init__(self, model, block, tokens):
        c = json.loads(model["config"][()])
        at = f"test/router/{block}/"
        self.x, chosen = model[at + "input"][:tokens].astype("f8"), model[at + "choice"][:tokens]
        self.mixtral = c["model_type"] == "mixtral"
        self.path = f"model/layers/{block}/" + ("block_sparse_moe" if self.mixtral else "mlp")
        self.names = ("w1", "w3", "w2") if self.mixtral else ("gate_proj", "up_proj", "down_proj")
        w = lambda name: model[self.path + "/" + name + "/weight"][...].astype("f8")
        logits = self.x @ w("gate").T
        k = c["num_experts_per_tok"]
        choice = np.sort(np.argsort(-logits, 1, kind="stable")[:, :k])
        assert (choice == chosen).all()          # the routing of transformers
        self.inner, self.rows = [], []
        for e in range(logits.shape[1]):
            gate, up = (self.x @ w(f"experts/{e}/{n}").T for n in self.names[:2])
            self.inner.append(gate / (1 + np.exp(-gate)) * up)
            self.rows.append((choice == e).any(1))
    def inputs(self, e, name):
        """Of all tokens, and which of them reach it."""
        return (self.inner[e] if name == self.names[2] else self.x), self.rows[e]

def near(got, want, what, by=2e-5):
    assert got.shape == want.shape and np.abs(got - want).max() <= by * np.abs(want).max() + 1e-30, (what, np.abs(got - want).max())

def same_counts(x, y, what):
    """
    Sums of other rows round otherwise: by some 2^-20 of a number, which crosses an edge of bins 1/64 to 1/128 wide once
    in 2^12 times, small differences of large numbers more often. One may do so however few there are.
    """
    assert x.sum() == y.sum() and np.abs((x - y).cumsum()).max() <= 1 + 1e-3 * x.sum(), (what, np.abs((x - y).cumsum()).max(), x.sum())

def check(g, x, what):
    near(g["hessian"][...].astype("f8"), x.T @ x, what)
    near(g["absmax"][...].astype("f8"), np.abs(x).max(0, initial=0), what)
    near(g["mean_abs"][...].astype("f8"), np.abs(x).mean(0) if len(x) else np.zeros(x.shape[1]), what)
    assert g["count"][()] == len(x) and g["count"].dtype == "i8", what
PY

# hessians MODEL TOKENS: what stands in h.h5 of the model calibrated on so many first tokens
cat >hessians.py <<'PY'
from common import *
model, n = h5py.File(sys.argv[1]), int(sys.argv[2])
f = h5py.File("h.h5")
few = none = 0
for block in model["test/router"]:
    experts = Experts(model, block, n)
    priors = set()
    for e in range(len(experts.rows)):
        for name in experts.names:
            x, rows = experts.inputs(e, name)
            g = f[f"{experts.path}/experts/{e}/{name}"]
            check(g, x[rows], (block, e, name))
            least = x.shape[1]
            assert ("prior" in g) == (rows.sum() < least), (block, e, name)
            if "prior" in g:
                few += 1
                none += rows.sum() == 0
                down = name == experts.names[2]
                check(g["prior"], x[:least] if down else x, ("prior", block, e, name))
                if not down: priors.add(h5py.h5o.get_info(g["prior"].id).addr)
        a, b = (f[f"{experts.path}/experts/{e}/{name}"] for name in experts.names[:2])
        assert a == b
    assert len(priors) <= 1         # stored once
    assert "gate" not in f[experts.path] and "shared_expert_gate" not in f[experts.path]
    if "shared_expert" in f[experts.path]:
        g = f[experts.path + "/shared_expert/gate_proj"]
        assert g == f[experts.path + "/shared_expert/up_proj"]
        check(g, experts.x, "shared")
        if priors: assert priors == {h5py.h5o.get_info(g.id).addr}
print(few, none)
PY

for m in mixtral qwen2-moe qwen3-moe; do
	model=$top/tests/ref/$m.h5
	py - "$model" <<'PY'
from common import *
tokens("t.h5", h5py.File(sys.argv[1])["test/tokens"][...].ravel())
PY
	run() { hessian-accum -q --ctx "$ctx" --tokens t.h5 "$@"; }
	ctx=37
	run "$model" -o h.h5
	ok "$m: Hessians of the layers of each expert" py hessians.py "$model" 74
	cp h.h5 whole.h5
	for i in 1 2; do run --shard $i/2 "$model" -o s$i.h5; done
	hessian-accum s1.h5 s2.h5 -o h.h5
	ok "$m: two shards add up to them" py - <<'PY'
from common import *
a, b = h5py.File("whole.h5"), h5py.File("h.h5")
names = []
a.visit(lambda n: names.append(n))
others = []
b.visit(lambda n: others.append(n))
assert names == others
for n in names:
    if isinstance(a[n], h5py.Dataset) and n != "config" and "down_proj/prior" not in n and "w2/prior" not in n:
        x, y = b[n][...].astype("f8"), a[n][...].astype("f8")
        if n.endswith("histogram"): same_counts(x, y, n)
        else: near(x, y, n, 1e-5)
PY
	run -j 3 --memory 0 "$model" -o x.h5
	ok "$m: the same by three threads" cmp x.h5 whole.h5
	run -j 1 "$model" -o x.h5
	ok "$m: the same by one" cmp x.h5 whole.h5
	# two tokens, so that experts are left that none reaches
	ctx=2
	run --limit 2 "$model" -o h.h5
	py hessians.py "$model" 2 >few
	ok "$m: of two tokens" test -s few
	[ $m = mixtral ] || ok "$m: some experts are reached by none" grep -Eq '^[1-9][0-9]* [1-9]' few
done

# S + (n - c) S̄, and c of the report; gate and up have one factor, so nothing but the address tells
cat >mixed.py <<'PY'
from common import *
h, layer = h5py.File("h.h5"), sys.argv[1]
def dense(name, hessian, absmax, count, out):
    with h5py.File(out, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "hessian", "1"
        f[name + "/hessian"], f[name + "/absmax"], f[name + "/count"] = hessian.astype("f4"), absmax, np.int64(count)
g = h[layer]; p = g["prior"]; n, c = len(g["absmax"]), g["count"][()]
assert c < n
s = g["hessian"][...].astype("f8") + (n - c) / p["count"][()] * p["hessian"][...].astype("f8")
dense(layer, s, np.maximum(g["absmax"][...], p["absmax"][...]), n, "mixed.h5")
print(c, "%.6g" % (1 - c / n), sep="\t")
PY
for layer in model/layers/1/mlp/experts/1/gate_proj model/layers/1/mlp/experts/1/down_proj; do
	py mixed.py $layer >want
	for o in '--group 8' '--group 8 --storage int4 --compute e4m3fn --act-mode static-tensor'; do
		# shellcheck disable=SC2086
		dpq-run $o --layers "*$layer" --hessian h.h5 "$model" -o a.h5 2>report
		# shellcheck disable=SC2086
		dpq-run -q $o --layers "*$layer" --hessian mixed.h5 "$model" -o b.h5
		ok "$layer $o: the codes of the mixed Hessian" py - $layer <<'PY'
from common import *
a, b = (h5py.File(p)[sys.argv[1]] for p in ("a.h5", "b.h5"))
assert sorted(a) == sorted(b) and "codes" in a
for n in a: assert (a[n][...] == b[n][...]).all(), n
PY
	done
	is "$layer: told in the report" "$(grep -v "$unmade" report | awk -F'\t' 'NR == 2 { printf "%s\t%s\n", $7, $8 }')" "$(cat want)"
	gar-order --group 8 h.h5 -o a.h5; gar-order --group 8 mixed.h5 -o b.h5
	ok "$layer: its order" py -c 'import h5py, sys
a, b = (h5py.File(p)[sys.argv[1] + "/order"][...] for p in ("a.h5", "b.h5")); assert (a == b).all()' $layer
done
is 'a column more for models with experts only' "$(dpq-run --compensate none "$top/tests/ref/llama-gqa.h5" -o x.h5 2>&1 | head -1 | wc -w)" 6

# The way of a model through the tools.
ctx=37
model=$top/tests/ref/qwen2-moe.h5
py - "$model" <<'PY'
from common import *
tokens("t.h5", h5py.File(sys.argv[1])["test/tokens"][...].ravel())
PY
hessian-accum --ctx 37 --tokens t.h5 "$model" -o h.h5 2>experts
is 'tokens of experts are told' "$(cut -f 1,2,6 experts | tail -2)" "/model/layers/1	5	0
all	5	0"
gar-order --group 8 h.h5 -o o.h5
echo '* storage=int8
*/experts/*/down_proj storage=e2m2
*/experts/0/* keep' >plan
dpq-run -q --group 8 --plan plan --hessian h.h5 --order o.h5 "$model" -o q.h5
is 'a plan by experts' "$(tensor-stats q.h5 | awk '/experts/ { print $2 }' | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" \
	"4 e2m2 3 f32 8 int8 "
dpq-run -q --group 8 --plan plan --hessian h.h5 --reorder gar "$model" -o own.h5
ok '... in the order of Hessians with priors mixed in' py -c 'import h5py
a, b = (h5py.File(n)["model"] for n in ("q.h5", "own.h5")); n = []; a.visititems(lambda p, o: n.append((o[()] == b[p][()]).all()) if isinstance(o, h5py.Dataset) else None); assert all(n) and len(n) > 20, n'
dpq-run -q --group 8 --storage int8 --hessian h.h5 "$model" -o q.h5
eval-ppl --ctx 37 --tokens t.h5 --reference "$model" q.h5 >out
ok 'a quantized mixture evaluates' awk '$1 == "kl" { exit !($2 > 0 && $2 < 0.05) }' out
exmy-pack q.h5 -o p.h5
eval-ppl --ctx 37 --tokens t.h5 p.h5 >a; eval-ppl --ctx 37 --tokens t.h5 q.h5 >b
ok 'and packed' cmp a b
tensor-stats h.h5 2>/dev/null >stats
is 'a Hessian file has a row a layer' "$(grep -c /experts/ stats)" 15
is 'and no other' "$(grep -c prior stats)" 0
tensor-diff --reference "$model" --hessian h.h5 q.h5 >changes 2>/dev/null
ok 'differences' grep -q 'experts/4/down_proj' changes
dpq-run -q --compensate none --layers '*mlp/gate' "$model" -o r.h5
is 'a router, where it is named' "$(h5ls -r r.h5 | grep -c codes)" 1
run --layers '*mlp/gate' --layers '*/experts/*' "$model" -o x.h5
ok 'its Hessian is the prior of gate and up' py -c 'import h5py
f = h5py.File("x.h5")["model/layers/1/mlp"]; assert f["gate"] == f["experts/0/gate_proj/prior"]'
# ids drawn one by one from the model, by the products of few rows
py - "$model" <<'PY'
import h5py, json, shutil, sys
shutil.copy(sys.argv[1], "bos.h5")
with h5py.File("bos.h5", "r+") as f:
    c = json.loads(f["config"][()]); c["bos_token_id"] = 1
    del f["config"]; f["config"] = json.dumps(c)
PY
ok 'tokens are drawn' sample-tokens -q --length 40 --ctx 21 bos.h5 -o drawn.h5
ok 'by any number of threads' sh -c 'sample-tokens -q -j 1 --length 40 --ctx 21 bos.h5 -o x.h5 && cmp x.h5 drawn.h5'

# What is refused.
cat >break.py <<'PY'
from common import *
import shutil
def broken(name, change, model=sys.argv[1]):
    shutil.copy(model, name + ".h5")
    with h5py.File(name + ".h5", "r+") as f: change(f)
def config(**more):
    def change(f):
        c = json.loads(f["config"][()]) | more
        del f["config"]; f["config"] = json.dumps(c)
    return change
at = "model/layers/1/mlp/"
def shape(f): del f[at + "experts/2/up_proj/weight"]; f[at + "experts/2/up_proj/weight"] = np.ones((3, 32), "f4")
def gone(name):
    def change(f): del f[at + name]
    return change
broken("shape", shape)
broken("missing", gone("experts/4"))
broken("router", gone("gate"))
broken("switch", gone("shared_expert_gate"))
broken("fewer", config(num_experts=4))
broken("more", config(num_experts=6))
def beyond(f): f[at + "experts/5/down_proj/weight"] = f[at + "experts/4/down_proj/weight"][...]
broken("beyond", beyond)
broken("chosen", config(num_experts_per_tok=6))
broken("dense", config(mlp_only_layers=[1]))
broken("sparse", config(mlp_only_layers=None))
broken("size", config(moe_intermediate_size=13))
broken("text", config(mlp_only_layers=["1"]))
broken("list", config(mlp_only_layers=1))
broken("step", config(decoder_sparse_step=0))
broken("huge", config(num_experts=65536, num_hidden_layers=65536, layer_types=None))
def count(layer, n, prior):
    def change(f):
        f[layer + "/count"][...] = n
        if not prior: del f[layer + "/prior"]
    return change
broken("none", count(at + "experts/0/gate_proj", 0, False), "h.h5")
broken("nothing", count(at + "experts/0/gate_proj/prior", 0, True), "h.h5")
PY
py break.py "$model"
refused() { no "$1" 1 "$2" eval-ppl --ctx 37 --tokens t.h5 "$1.h5"; }
refused shape '/model/layers/1/mlp/experts/2/up_proj/weight: .*3'
refused missing '/model/layers/1/mlp/experts/4/gate_proj: has neither weight nor codes'
refused router '/model/layers/1/mlp/gate: has neither weight nor codes'
refused switch '/model/layers/1/mlp/shared_expert_gate: has neither'
refused fewer '/model/layers/1/mlp/(experts/4|gate).*'
refused beyond '/model/layers/1/mlp/experts/5/down_proj: stands beyond the 5 experts of config.json'
refused more '/model/layers/1/mlp/(experts/5|gate).*'
refused chosen "'num_experts_per_tok' is 6, there are only 5 experts"
refused dense '/model/layers/0/mlp/.*: has neither weight nor codes'
refused sparse '/model/layers/0/mlp/.*: has neither weight nor codes'
refused size 'up_proj|gate_proj'
refused text "'mlp_only_layers' must hold whole numbers"
refused list "'mlp_only_layers' must be a list of blocks"
refused step "'decoder_sparse_step' must be a whole number from 1"
refused huge '65536 blocks of 65536 experts are too many'
for f in missing dense; do
	no "hessian-accum: $f" 1 'has neither weight nor codes: no linear layer' hessian-accum --ctx 37 --tokens t.h5 $f.h5
	no "dpq-run: $f" 1 'has neither weight nor codes: no linear layer' dpq-run -q --compensate none $f.h5
done
# The same of a checkpoint; experts of Mixtral have other names there and here.
cat >folders.py <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from checkpoints import *
def folder(name, base, change=lambda t: None, **changes):
    row = Row(base, **changes)
    change(row.tensors)
    row.write(name)
at = "model.layers.1.mlp.experts."
def add(name, *shape):
    def change(t): t[name] = tensor(name, *shape)
    return change
folder("good", QWEN3MOE)
folder("missing", QWEN3MOE, drop=[at + "3.up_proj.weight"])
folder("beyond", QWEN3MOE, add(at + "5.up_proj.weight", 12, 16))
folder("shape", QWEN3MOE, of=dict(moe_intermediate_size=13))
folder("zero", QWEN3MOE, add(at + "03.up_proj.weight", 12, 16))
folder("router", MIXTRAL, drop=["model.layers.0.block_sparse_moe.gate.weight"])
folder("many", MIXTRAL, num_experts_per_tok=5)
folder("fused", QWEN3MOE, lambda t: [t.pop(n) for n in [n for n in t if at in n]] and add(at + "down_proj", 5, 12)(t))
PY
py -B folders.py "$top/tests/ref"
import() { model-import -q "$1" -o x.h5; }
no 'missing' 1 'missing: model.layers.1.mlp.experts.3.up_proj.weight: is missing, a Qwen3MoeForCausalLM needs it' import missing
no 'beyond' 1 'model.layers.1.mlp.experts.5.up_proj.weight: stands beyond the 5 experts of config.json' import beyond
no 'shape' 1 'model.layers.0.mlp.experts.0.[a-z_.]*: its shape is not the \[.*12.*\] of config.json' import shape
no 'no router' 1 'model.layers.0.block_sparse_moe.gate.weight: is missing, a MixtralForCausalLM needs it' import router
no 'too many a token' 1 "'num_experts_per_tok' is 5, there are only 4 experts" import many
no 'experts in one tensor' 1 'is missing, a Qwen3MoeForCausalLM needs it' import fused
model-import zero -o x.h5 2>warnings
ok 'a number with a zero in front is another name' grep -q 'experts.03.up_proj.weight: a Qwen3MoeForCausalLM has no such tensor' warnings
no 'a layer that no token reached' 1 'experts/0/gate_proj/count: says that no token was seen' dpq-run -q --hessian none.h5 "$model"
no 'nor its prior' 1 '/model/layers/1/mlp/.*/count: says that no token was seen' dpq-run -q --hessian nothing.h5 "$model"
done_testing
