#!/bin/sh
# Mixtures of experts through the tools: the Hessian of each expert and its prior against a plain reference of the
# routing on the routers' inputs that transformers had (tests/ref/make.py), sums of shards, codes, what is refused.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

if ! py 'h5py.File' 2>/dev/null; then
	skip 'experts' 'no h5py'
	done_testing
fi


# hessians MODEL TOKENS: what stands in h.h5 of the model calibrated on so many first tokens

for m in mixtral qwen2-moe qwen3-moe; do
	model=$top/tests/ref/$m.h5
	py reference_tokens "$model"
	run() { hessian-accum -q --ctx "$ctx" --tokens t.h5 "$@"; }
	ctx=37
	run "$model" -o h.h5
	ok "$m: Hessians of the layers of each expert" py hessians "$model" 74
	cp h.h5 whole.h5
	for i in 1 2; do run --shard $i/2 "$model" -o s$i.h5; done
	hessian-accum s1.h5 s2.h5 -o h.h5
	ok "$m: two shards add up to them" py shards
	run -j 3 --memory 0 "$model" -o x.h5
	ok "$m: the same by three threads" cmp x.h5 whole.h5
	run -j 1 "$model" -o x.h5
	ok "$m: the same by one" cmp x.h5 whole.h5
	# two tokens, so that experts are left that none reaches
	ctx=2
	run --limit 2 "$model" -o h.h5
	py hessians "$model" 2 >few
	ok "$m: of two tokens" test -s few
	[ $m = mixtral ] || ok "$m: some experts are reached by none" grep -Eq '^[1-9][0-9]* [1-9]' few
done

# S + (n - c) S̄, and c of the report; gate and up have one factor, so nothing but the address tells
for layer in model/layers/1/mlp/experts/1/gate_proj model/layers/1/mlp/experts/1/down_proj; do
	py mix $layer >want
	for o in '--group 8' '--group 8 --storage int4 --compute e4m3fn --act-mode static-tensor'; do
		# shellcheck disable=SC2086
		dpq-run $o --layers "*$layer" --hessian h.h5 "$model" -o a.h5 2>report
		# shellcheck disable=SC2086
		dpq-run -q $o --layers "*$layer" --hessian mixed.h5 "$model" -o b.h5
		ok "$layer $o: the codes of the mixed Hessian" py codes $layer
	done
	is "$layer: told in the report" \
		"$(grep -v "$unmade" report | awk -F'\t' 'NR == 2 { printf "%s\t%s\n", $7, $8 }')" "$(cat want)"
	gar-order --group 8 h.h5 -o a.h5; gar-order --group 8 mixed.h5 -o b.h5
	ok "$layer: its order" py orders $layer
done
is 'a column more for models with experts only' \
	"$(dpq-run --compensate none "$top/tests/ref/llama-gqa.h5" -o x.h5 2>&1 | head -1 | wc -w)" 6

# The way of a model through the tools.
ctx=37
model=$top/tests/ref/qwen2-moe.h5
py reference_tokens "$model"
hessian-accum --ctx 37 --tokens t.h5 "$model" -o h.h5 2>experts
is 'tokens of experts are told' "$(cut -f 1,2,6 experts | tail -2)" "/model/layers/1	5	0
all	5	0"
gar-order --group 8 h.h5 -o o.h5
echo '* storage=int8
*/experts/*/down_proj storage=e2m2
*/experts/0/* keep' >plan
dpq-run -q --group 8 --plan plan --hessian h.h5 --order o.h5 "$model" -o q.h5
is 'a plan by experts' \
	"$(tensor-stats q.h5 | awk '/experts/ { print $2 }' | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" \
	"4 e2m2 3 f32 8 int8 "
dpq-run -q --group 8 --plan plan --hessian h.h5 --reorder gar "$model" -o own.h5
ok '... in the order of Hessians with priors mixed in' py same_model
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
ok 'its Hessian is the prior of gate and up' py router_hessian
# ids drawn one by one from the model, by the products of few rows
py bos_model "$model"
ok 'tokens are drawn' sample-tokens -q --length 40 --ctx 21 bos.h5 -o drawn.h5
ok 'by any number of threads' sh -c 'sample-tokens -q -j 1 --length 40 --ctx 21 bos.h5 -o x.h5 && cmp x.h5 drawn.h5'

# What is refused.
py faults "$model"
refused() { no "$1" 1 "$2" eval-ppl --ctx 37 --tokens t.h5 "$1.h5"; }
refused shape '/model/layers/1/mlp/experts/2/up_proj/weight: .*3'
refused missing '/model/layers/1/mlp/experts/4/gate_proj: has neither weight nor codes'
refused router '/model/layers/1/mlp/gate: has neither weight nor codes'
refused switch '/model/layers/1/mlp/shared_expert_gate: has neither'
refused fewer '/model/layers/1/mlp/(experts/4|gate).*'
refused beyond '/model/layers/1/mlp/experts/5/down_proj: is beyond the 5 experts of config.json'
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
	no "hessian-accum: $f" 1 'has neither weight nor codes: not a linear layer' \
		hessian-accum --ctx 37 --tokens t.h5 $f.h5
	no "dpq-run: $f" 1 'has neither weight nor codes: not a linear layer' dpq-run -q --compensate none $f.h5
done
# The same of a checkpoint; experts of Mixtral have other names there and here.
py folders
import() { model-import -q "$1" -o x.h5; }
no 'missing' 1 'missing: model.layers.1.mlp.experts.3.up_proj.weight: is missing, a Qwen3MoeForCausalLM needs it' \
	import missing
no 'beyond' 1 'model.layers.1.mlp.experts.5.up_proj.weight: is beyond the 5 experts of config.json' import beyond
no 'shape' 1 'model.layers.0.mlp.experts.0.[a-z_.]*: its shape is not the \[.*12.*\] of config.json' import shape
no 'no router' 1 'model.layers.0.block_sparse_moe.gate.weight: is missing, a MixtralForCausalLM needs it' import router
no 'too many a token' 1 "'num_experts_per_tok' is 5, there are only 4 experts" import many
no 'experts in one tensor' 1 'is missing, a Qwen3MoeForCausalLM needs it' import fused
model-import zero -o x.h5 2>warnings
ok 'a number with a zero in front is another name' \
	grep -q 'experts.03.up_proj.weight: a Qwen3MoeForCausalLM has no such tensor' warnings
no 'a layer that no token reached' 1 'experts/0/gate_proj/count: is not positive' \
	dpq-run -q --hessian none.h5 "$model"
no 'nor its prior' 1 '/model/layers/1/mlp/.*/count: is not positive' \
	dpq-run -q --hessian nothing.h5 "$model"
done_testing
