#!/bin/sh
# experts.t -- mixtures of experts: the Hessian of each expert and its prior, shards, codes; bad input
# Hessians are compared with a plain reference of the routing, on the inputs of routers in transformers
# (tests/ref/make.py).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

if ! has_h5py; then
	skip 'experts' 'no h5py'
	done_testing
fi


# hessians MODEL TOKENS: h.h5 has the Hessians of the model on its first TOKENS tokens

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
	ok "$m: two shards add up to the whole" py shards
	run -j 3 --memory 0 "$model" -o x.h5
	ok "$m: the same with three threads" cmp x.h5 whole.h5
	run -j 1 "$model" -o x.h5
	ok "$m: the same with one thread" cmp x.h5 whole.h5
	# two tokens, so that some experts receive none
	ctx=2
	run --limit 2 "$model" -o h.h5
	py hessians "$model" 2 >few
	ok "$m: Hessians of two tokens" test -s few
	[ $m = mixtral ] || ok "$m: some experts receive no token" grep -Eq '^[1-9][0-9]* [1-9]' few
done

# the completed Hessian S + (n - c) S̄, and c in the report; gate and up share one factorization, so only the address of
# the layer differs
for layer in model/layers/1/mlp/experts/1/gate_proj model/layers/1/mlp/experts/1/down_proj; do
	py mix $layer >want
	for o in '--group 8' '--group 8 --storage int4 --compute e4m3fn --act-mode static-tensor'; do
		# shellcheck disable=SC2086
		dpq-run $o --layers "*$layer" --hessian h.h5 "$model" -o a.h5 2>report
		# shellcheck disable=SC2086
		dpq-run -q $o --layers "*$layer" --hessian mixed.h5 "$model" -o b.h5
		ok "$layer $o: codes by the completed Hessian" py codes $layer
	done
	is "$layer: tokens and share of the prior in the report" \
		"$(grep -v "$unmade" report | awk -F'\t' 'NR == 2 { printf "%s\t%s\n", $7, $8 }')" "$(cat want)"
	gar-order --group 8 h.h5 -o a.h5; gar-order --group 8 mixed.h5 -o b.h5
	ok "$layer: order by the completed Hessian" py orders $layer
done
is 'the report has no column of experts for models without experts' \
	"$(dpq-run --compensate none "$top/tests/ref/llama-gqa.h5" -o x.h5 2>&1 | head -1 | wc -w)" 6

# One model through the tools.
ctx=37
model=$top/tests/ref/qwen2-moe.h5
py reference_tokens "$model"
hessian-accum --ctx 37 --tokens t.h5 "$model" -o h.h5 2>experts
is 'the table has the tokens of experts' "$(cut -f 1,2,6 experts | tail -2)" "/model/layers/1	5	0
all	5	0"
gar-order --group 8 h.h5 -o o.h5
echo '* storage=int8
*/experts/*/down_proj storage=e2m2
*/experts/0/* keep' >plan
dpq-run -q --group 8 --plan plan --hessian h.h5 --order o.h5 "$model" -o q.h5
is 'a plan for experts' \
	"$(tensor-stats q.h5 | awk '/experts/ { print $2 }' | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" \
	"4 e2m2 3 f32 8 int8 "
dpq-run -q --group 8 --plan plan --hessian h.h5 --reorder gar "$model" -o own.h5
ok '... --reorder gar with completed Hessians gives the same model' py same_model
dpq-run -q --group 8 --storage int8 --hessian h.h5 "$model" -o q.h5
eval-ppl --ctx 37 --tokens t.h5 --reference "$model" q.h5 >out
ok 'a quantized mixture is evaluated' awk '$1 == "kl" { exit !($2 > 0 && $2 < 0.05) }' out
exmy-pack q.h5 -o p.h5
eval-ppl --ctx 37 --tokens t.h5 p.h5 >a; eval-ppl --ctx 37 --tokens t.h5 q.h5 >b
ok '... and the same if packed' cmp a b
tensor-stats h.h5 2>/dev/null >stats
is 'a Hessian file has one row per layer' "$(grep -c /experts/ stats)" 15
is '... and no other row' "$(grep -c prior stats)" 0
tensor-diff --reference "$model" --hessian h.h5 q.h5 >changes 2>/dev/null
ok 'tensor-diff has the experts' grep -q 'experts/4/down_proj' changes
dpq-run -q --compensate none --layers '*mlp/gate' "$model" -o r.h5
is 'a router is quantized if it is named' "$(h5ls -r r.h5 | grep -c codes)" 1
run --layers '*mlp/gate' --layers '*/experts/*' "$model" -o x.h5
ok 'the Hessian of a router is the prior of gate and up' py router_hessian
# tokens are sampled one by one, with products of few rows
py bos_model "$model"
ok 'tokens are sampled' sample-tokens -q --length 40 --ctx 21 bos.h5 -o drawn.h5
ok '... the same with any number of threads' \
	sh -c 'sample-tokens -q -j 1 --length 40 --ctx 21 bos.h5 -o x.h5 && cmp x.h5 drawn.h5'

# Bad input.
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
# The same in checkpoints; experts of Mixtral have other names in checkpoints than in model files.
py folders
import() { model-import -q "$1" -o x.h5; }
no 'import: a missing weight' 1 \
	'missing: model.layers.1.mlp.experts.3.up_proj.weight: is missing, a Qwen3MoeForCausalLM needs it' \
	import missing
no 'import: an expert too many' 1 \
	'model.layers.1.mlp.experts.5.up_proj.weight: is beyond the 5 experts of config.json' import beyond
no 'import: a wrong shape' 1 'model.layers.0.mlp.experts.0.[a-z_.]*: its shape is not the \[.*12.*\] of config.json' \
	import shape
no 'import: no router' 1 'model.layers.0.block_sparse_moe.gate.weight: is missing, a MixtralForCausalLM needs it' \
	import router
no 'import: too many experts per token' 1 "'num_experts_per_tok' is 5, there are only 4 experts" import many
no 'import: experts in one tensor' 1 'is missing, a Qwen3MoeForCausalLM needs it' import fused
model-import zero -o x.h5 2>warnings
ok 'a number with a leading zero is another name' \
	grep -q 'experts.03.up_proj.weight: a Qwen3MoeForCausalLM has no such tensor' warnings
no 'a layer that no token reached' 1 'experts/0/gate_proj/count: is not positive' \
	dpq-run -q --hessian none.h5 "$model"
no '... and whose prior has no token' 1 '/model/layers/1/mlp/.*/count: is not positive' \
	dpq-run -q --hessian nothing.h5 "$model"
done_testing
