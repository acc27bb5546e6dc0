#!/bin/sh
# awq-scale.t -- scales and clipping of AWQ
# Every reference model computes the same as before. Ratios and losses equal those of a search in float64. The loss of
# round-to-nearest does not rise.
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
	ok "$name: the logits are unchanged, $(checked)" below "$(checked)" 1e-5
	is "$name: status" $s 0
	cp said "$name.said"
done

# py search FOLDER NAME BITS GROUP REPORT MODEL LAYERS...: the equations of the search; norm=readers or layer<source
l=model/layers/1
ok 'llama: norms, and the layer after a gated product' py search "$ref" llama-gqa 4 16 llama-gqa.said llama-gqa.h5 \
	$l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj \
	$l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'llama: values that several heads share are not scaled' sh -c '! grep o_proj llama-gqa.said'
l=model/decoder/layers/0
ok 'opt: values, and the layer after a ReLU' \
	py search "$ref" opt 4 16 opt.said opt.h5 "$l/self_attn/out_proj<$l/self_attn/v_proj" "$l/fc2<$l/fc1" \
	$l/self_attn_layer_norm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj $l/final_layer_norm=$l/fc1
l=transformer/h/0
ok 'gpt2: values in one layer with queries and keys' py search "$ref" gpt2 4 16 gpt2.said gpt2.h5 \
	$l/ln_1=$l/attn/c_attn "$l/attn/c_proj<$l/attn/c_attn" $l/ln_2=$l/mlp/c_fc
ok '... the layer after a GELU is not scaled' sh -c '! grep mlp/c_proj gpt2.said'
awq-scale --storage uint3 --group 8 --clip no --hessian gemma-h.h5 "$ref/gemma.h5" -o gemma3bit.h5 2>gemma3bit.said
l=model/layers/0
ok 'gemma: gains of 1 + weight; 3 bits' py search "$ref" gemma 3 8 gemma3bit.said gemma3bit.h5 \
	$l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj \
	$l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'experts are scaled one by one, routers are not' \
	sh -c 'grep -q "/1/mlp/experts/3/down_proj" qwen2-moe.said &&
		! grep -e "mlp/gate	" -e shared_expert_gate qwen2-moe.said'
# few tokens: the Hessians and means of most experts are completed by their prior; among layers with the same inputs the
# one with the most tokens decides
few() {	# few NAME BLOCK NORM EXPERTS GATE UP DOWN
	sample-tokens -q --length 33 --ctx 32 "$ref/$1.h5" -o few-t.h5
	hessian-accum -q --tokens few-t.h5 --ctx 32 "$ref/$1.h5" -o few/$1-h.h5
	awq-scale --group 16 --clip no --hessian few/$1-h.h5 "$ref/$1.h5" -o few/$1.h5 2>few/$1.said
	readers=$(for w in "$5" "$6"; do for e in $(seq 0 $(($4 - 1))); do printf ',%s' "$2/experts/$e/$w"; done; done)
	sources=$(for e in $(seq 0 $(($4 - 1))); do echo "$2/experts/$e/$7<$2/experts/$e/$6"; done)
	# shellcheck disable=SC2086
	ok "$1: experts with a prior" \
		sh -c 'cd few && py search "$@"' x "$ref" "$1" 4 16 "$1.said" "$1.h5" "$3=${readers#,}" $sources
}
mkdir few
few mixtral model/layers/0/block_sparse_moe model/layers/0/post_attention_layernorm 4 w1 w3 w2
few qwen3-moe model/layers/1/mlp model/layers/1/post_attention_layernorm 6 gate_proj up_proj down_proj

# --- clipping ---
awq-scale --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o clipped.h5 2>clipped.said
ok 'weights are clipped in steps of 1/20, except queries and keys' py clipped llama-gqa.h5 clipped.h5 clipped.said
awq-scale -q --group 16 --hessian gpt2-h.h5 "$ref/gpt2.h5" -o clipped-gpt2.h5
ok '... also if they are rows of one layer with values' py rows_of_values
awq-scale --check --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5 2>said; s=$?
is 'the check of a clipped model succeeds' $s 0
ok '... and prints how much the logits change' sh -c 'awk -v x="$1" "BEGIN { exit !(x > 1e-3) }"' x "$(checked)"

# --- effect on dpq-run: tr(E H Eᵀ) is not above that of the original model, and dpq-run prints the same losses ---
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 llama-gqa.h5 -o after-h.h5
dpq-run --compensate none --scale-search minmax --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" \
	-o q0.h5 2>before
dpq-run --compensate none --scale-search minmax --group 16 --hessian after-h.h5 llama-gqa.h5 -o q1.h5 2>after
ok 'losses equal those of dpq-run on Hessians of the scaled model' py no_worse llama-gqa.said
# the divisor of a tensor depends on both ends of its range: layers whose largest magnitude is negative show that
for format in nvfp4 'uint4 --scale-dtype e4m3fn'; do
	# shellcheck disable=SC2086
	{
		awq-scale --storage $format --group 16 --clip no --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" \
			-o divided.h5 2>divided.said
		hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 divided.h5 -o after-h.h5
		dpq-run --compensate none --scale-search minmax --storage $format --group 16 --hessian llama-gqa-h.h5 \
			"$ref/llama-gqa.h5" -o x.h5 2>before
		dpq-run --compensate none --scale-search minmax --storage $format --group 16 --hessian after-h.h5 \
			divided.h5 -o x.h5 2>after
	}
	ok "... $format" py no_worse divided.said
done
for name in llama-gqa opt gemma qwen2-moe; do
	ok "$name: no group of layers with one input has more loss than before" py no_input_worse "$ref" "$name"
done

# --- threads, streams, rotated models, some layers, dtypes ---
ok 'the same bytes for every -j' \
	sh -c 'awq-scale -q -j 1 --group 16 --hessian gpt2-h.h5 "$1" -o j1.h5 &&
		awq-scale -q -j 3 --group 16 --hessian gpt2-h.h5 "$1" -o j3.h5 && cmp j1.h5 j3.h5' x "$ref/gpt2.h5"
ok 'a stream gives the same model' \
	sh -c 'cat "$1" | awq-scale -q --group 16 --hessian gpt2-h.h5 | cat >stream &&
		awq-scale -q --group 16 --hessian gpt2-h.h5 <"$1" -o r.h5 && h5diff r.h5 j1.h5' x "$ref/gpt2.h5"
hadamard-rotate -q "$ref/llama-tied.h5" -o rotated.h5
hessian-accum -q --tokens llama-tied-t.h5 --ctx 32 rotated.h5 -o rotated-h.h5
awq-scale --group 16 --clip no --check --hessian rotated-h.h5 rotated.h5 -o x.h5 2>said
ok "a rotated model: the logits are unchanged, $(checked)" below "$(checked)" 1e-5
ok '... down projections after online Hadamards are not scaled' sh -c '! grep down_proj said && grep -q up_proj said'
hessian-accum -q --layers '*q_proj' --layers '*down_proj' --tokens llama-gqa-t.h5 --ctx 32 "$ref/llama-gqa.h5" \
	-o few-h.h5
awq-scale --group 16 --check --clip no --hessian few-h.h5 "$ref/llama-gqa.h5" -o few.h5 2>said
is 'Hessians of some layers: only these are in the table' "$(grep -c '^/' said)" 4
ok "... the logits are unchanged, $(checked)" below "$(checked)" 1e-5
awq-scale -q --dtype bf16 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o half.h5
ok 'bf16' py bf16
warns '--scale-dtype of a storage format that has its own scale type' '--scale-dtype .*a storage with its own' \
	awq-scale --storage mxfp4 --scale-dtype e8m0 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5

# --- bad input ---
rm -f r.h5
g=$ref/llama-gqa.h5
py one_input
no 'no Hessians' 2 '--hessian FILE is needed' awq-scale "$g" -o r.h5
no 'Hessians of no layer' 1 'none.h5: holds no Hessian of a layer' awq-scale --hessian none.h5 "$g" -o r.h5
no 'Hessians without means' 1 \
	'without.h5: /model/layers/0/self_attn/q_proj/mean_abs: is missing, expected a file of hessian-accum' \
	awq-scale --hessian without.h5 "$g" -o r.h5
no 'a narrower Hessian' 1 'narrow.h5: /model/layers/0/self_attn/q_proj' awq-scale --hessian narrow.h5 "$g" -o r.h5
no 'a Hessian that is not symmetric' 1 'crooked.h5: /model/layers/0/self_attn/q_proj/hessian: is not symmetric' \
	awq-scale --hessian crooked.h5 "$g" -o r.h5
no 'one scale for a whole tensor' 2 '--group: is tensor, expected a number or channel' \
	awq-scale --group tensor --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'an unknown storage format' 2 'storage' awq-scale --storage int99 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a scale type that the storage format does not have' 2 '--scale-dtype: mxfp4 has scales in e8m0' \
	awq-scale --storage mxfp4 --scale-dtype f16 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a scale type in units of a second scale' 2 "--scale-dtype: 'u8' is not one of" \
	awq-scale --scale-dtype u8 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a quantized model' 1 'is quantized already' \
	sh -c 'awq-scale -q --hessian llama-gqa-h.h5 q0.h5 -o r.h5' x "$g"
no '... also without clipping, where no ratio can be better' 1 'is quantized already' \
	awq-scale -q --clip no --hessian llama-gqa-h.h5 q0.h5 -o r.h5
py faults "$g"
no 'a weight that is NaN' 1 'nan.h5: /model/layers/1/mlp/down_proj/weight: holds infinite or undefined numbers' \
	awq-scale -q --hessian llama-gqa-h.h5 nan.h5 -o r.h5
msq-calib -q --act-format int8 --tokens llama-gqa-t.h5 --ctx 32 "$g" -o static.h5
no 'static activation scales' 1 'act_scale: would not fit the inputs' \
	awq-scale -q --hessian llama-gqa-h.h5 static.h5 -o r.h5
ok 'no result was written' test ! -e r.h5
done_testing
