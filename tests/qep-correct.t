#!/bin/sh
# qep-correct.t -- weights corrected by cross moments, compared with plain float64; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make "$top/tests/ref" llama-gqa gpt2 neox-serial opt mixtral qwen2-moe
m=llama-gqa.h5
for name in llama-gqa gpt2 neox-serial opt mixtral qwen2-moe; do
	dpq-run -q --compensate none --storage int3 --group 8 $name.h5 -o q.h5
	hessian-accum -q --tokens t.h5 --ctx 32 --pair $name.h5 q.h5 -o $name-c.h5
done
run() { qep-correct -q --hessian llama-gqa-c.h5 "$@"; }

# corrected MODEL ALPHA DAMP LAYERS OPTION...: the layers are those of the equation, all others are unchanged
corrected() {
	name=$1 alpha=$2 damp=$3 layers=$4; shift 4
	qep-correct -q --hessian $name-c.h5 "$@" $name.h5 -o out.h5
	ok "$name $*: the equation in float64" py equation $name.h5 $name-c.h5 out.h5 $alpha $damp "$layers"
}
corrected llama-gqa .5 1 'q_proj k_proj v_proj o_proj gate_proj up_proj'
cp out.h5 plain.h5
corrected llama-gqa .5 1 'q_proj k_proj v_proj o_proj gate_proj up_proj down_proj' --skip none
corrected llama-gqa 1 .01 'k_proj v_proj o_proj gate_proj up_proj down_proj' --alpha 1 --damp 0.01 --skip '*/q_proj'
corrected llama-gqa .25 .1 'o_proj up_proj' --alpha 0.25 --damp 0.1 --layers '*/o_proj' --layers '*/up_proj'
corrected gpt2 .5 1 'c_attn attn/c_proj c_fc'
corrected neox-serial .5 1 'q_proj k_proj v_proj dense dense_h_to_4h'
corrected opt .5 1 'q_proj k_proj v_proj out_proj fc1'
corrected mixtral .5 1 'q_proj k_proj v_proj o_proj w1 w3'
corrected qwen2-moe .5 1 'q_proj k_proj v_proj o_proj gate_proj up_proj'
# priors: with two windows, most experts have fewer tokens than inputs
dpq-run -q --compensate none --storage int3 --group 8 mixtral.h5 -o q.h5
hessian-accum -q --tokens t.h5 --ctx 24 --limit 24 --pair mixtral.h5 q.h5 -o mixtral-c.h5
ok 'experts with few tokens have a prior' sh -c 'h5ls -r mixtral-c.h5 | grep -q experts/0/w2/prior/cross'
corrected mixtral 1 .1 'q_proj k_proj v_proj o_proj w1 w2 w3' --alpha 1 --damp 0.1 --skip none
# a dead channel
py dead llama-gqa-c.h5 llama-gqa-dead-c.h5; cp $m llama-gqa-dead.h5
corrected llama-gqa-dead 1 .5 'q_proj k_proj v_proj o_proj gate_proj up_proj down_proj' --alpha 1 --damp 0.5 \
	--skip none
ok '... its weights are 0' py is_dead out.h5
run --alpha 1 --damp 1e-6 $m -o out.h5
ok 'alpha 1 and no damping: the least-squares weight W G H^-1' py least_squares $m llama-gqa-c.h5 out.h5
run --alpha 0 $m -o out.h5
ok 'alpha 0: the weights of the model' py same_weights $m out.h5

for how in '-j 1' '-j 3'; do
	# shellcheck disable=SC2086
	run $how $m -o x.h5
	ok "the same with $how" cmp x.h5 plain.h5
done
# shellcheck disable=SC2002
cat $m | run | cat >x.h5; tensor-join -q x.h5 -o y.h5
ok 'the same through pipes' py same_weights plain.h5 y.h5
for type in f16 bf16; do
	run --dtype $type $m -o x.h5
	ok "weights in $type are those of f32, rounded" py rounded plain.h5 x.h5 $type
done
qep-correct --hessian llama-gqa-c.h5 $m -o x.h5 2>report
is 'a row for each corrected layer, and one of all' \
	"$(grep -c '^/model.*proj' report) $(tail -1 report | cut -c 1-3)" '12 all'
is 'the basis is that of the model' "$(py attr x.h5 / basis)" "$(py attr $m / basis)"
is 'the history names the Hessians' "$(py attr x.h5 / history:hessian | sed -n 1p)" \
	"$(py attr llama-gqa-c.h5 / history | sed -n 1p)"
is 'tokens of the Hessians count as calibration' \
	"$(py attr x.h5 / calibration)" "$(py attr llama-gqa-c.h5 / calibration)"
ok 'a solver takes the result with the same Hessians' dpq-run -q --hessian llama-gqa-c.h5 --group 8 x.h5 -o y.h5

no 'without --hessian' 2 '^qep-correct: --hessian FILE with cross moments is needed' qep-correct $m
dpq-run -q --compensate none --group 8 $m -o q.h5
no 'a quantized model' 1 'q.h5: /model/layers/0/mlp/gate_proj: is quantized already' run q.h5 -o no.h5
hessian-accum -q --tokens t.h5 --ctx 32 $m -o h.h5
no 'Hessians without cross moments' 1 'h.h5: /model/layers/0/self_attn/q_proj/cross: is missing, expected .*--pair' \
	qep-correct -q --hessian h.h5 $m -o no.h5
cp llama-gqa-c.h5 lacks.h5; py remove lacks.h5 model/layers/1/self_attn/o_proj
no 'a layer without a Hessian, before anything is written' 1 \
	'lacks.h5: /model/layers/1/self_attn/o_proj/hessian: is missing' qep-correct -q --hessian lacks.h5 $m
py spoil llama-gqa-c.h5 nan.h5
no 'cross moments that are not finite' 1 'nan.h5: /model/layers/1/self_attn/o_proj/cross: holds a number that is not' \
	qep-correct -q --hessian nan.h5 $m -o no.h5
no 'Hessians of another model' 1 'gpt2-c.h5.*basis|basis.*gpt2-c.h5' qep-correct -q --hessian gpt2-c.h5 $m -o no.h5
hadamard-rotate -q $m | rms-suppress -q -o split.h5
hessian-accum -q --tokens t.h5 --ctx 32 --pair split.h5 split.h5 -o split-c.h5
run $m -o once.h5
for twice in 'qep-correct' 'dpq-run --group 8 --qep 0.5' 'dpq-run --group 8 --solver qronos'; do
	# shellcheck disable=SC2086
	no "corrected twice: $twice" 1 'once.h5: .*/0/.*: is corrected for .* already \(qep-correct\)' \
		$twice -q --hessian llama-gqa-c.h5 once.h5 -o no.h5
done
smooth-scale -q --random 1 once.h5 -o smooth.h5
no '... after another filter' 1 'smooth.h5: .*: is corrected for' run --hessian llama-gqa-c.h5 --force-basis smooth.h5
dpq-run -q --compensate none --group 8 once.h5 -o once-q.h5
warns 'the corrected model as --pair' 'once.h5: /model/layers/0/.*: is corrected by qep-correct; --pair expects' \
	hessian-accum --tokens t.h5 --ctx 32 --pair once.h5 once-q.h5 -o x.h5
no 'split columns' 1 'split.h5: /model/layers/0/mlp/down_proj: has split columns' \
	qep-correct -q --skip none --layers '*down_proj' --hessian split-c.h5 split.h5 -o no.h5
no 'no layer is left' 1 '--skip leaves out all that are selected' run --layers '*/down_proj' $m -o no.h5
warns 'a pattern of --layers that matches nothing' "--layers '\\*/q' matches no layer" \
	qep-correct --hessian llama-gqa-c.h5 --layers '*/q_proj' --layers '*/q' $m -o x.h5
warns 'a pattern of --skip that matches nothing' '--skip matches no layer' run --skip '*/nothing' $m -o x.h5
no 'alpha above 1' 2 'alpha' run --alpha 1.5 $m
ok 'no file is left' sh -c '! ls ./*.tmp no.h5 2>/dev/null | grep .'
done_testing
