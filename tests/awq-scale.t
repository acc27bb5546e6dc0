#!/bin/sh
# Scales and limits of AWQ: every reference model computes what it did, ratios and losses are those of a search in
# float64,
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
l=model/layers/1
ok 'llama: norms, and down behind a gate' py search "$ref" llama-gqa 4 16 llama-gqa.said llama-gqa.h5 \
	$l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj \
	$l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'llama: heads that share values are not scaled' sh -c '! grep o_proj llama-gqa.said'
l=model/decoder/layers/0
ok 'opt: values, and a ReLU' \
	py search "$ref" opt 4 16 opt.said opt.h5 "$l/self_attn/out_proj<$l/self_attn/v_proj" "$l/fc2<$l/fc1" \
	$l/self_attn_layer_norm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj $l/final_layer_norm=$l/fc1
l=transformer/h/0
ok 'gpt2: values in a layer with queries and keys, and no GELU' py search "$ref" gpt2 4 16 gpt2.said gpt2.h5 \
	$l/ln_1=$l/attn/c_attn "$l/attn/c_proj<$l/attn/c_attn" $l/ln_2=$l/mlp/c_fc
ok '... not scaled' sh -c '! grep mlp/c_proj gpt2.said'
awq-scale --storage uint3 --group 8 --clip no --hessian gemma-h.h5 "$ref/gemma.h5" -o gemma3bit.h5 2>gemma3bit.said
l=model/layers/0
ok 'gemma: a gain of one more; 3 bits' py search "$ref" gemma 3 8 gemma3bit.said gemma3bit.h5 \
	$l/input_layernorm=$l/self_attn/q_proj,$l/self_attn/k_proj,$l/self_attn/v_proj \
	$l/post_attention_layernorm=$l/mlp/gate_proj,$l/mlp/up_proj "$l/mlp/down_proj<$l/mlp/up_proj"
ok 'experts: each for itself, and no router' \
	sh -c 'grep -q "/1/mlp/experts/3/down_proj" qwen2-moe.said &&
		! grep -e "mlp/gate	" -e shared_expert_gate qwen2-moe.said'
# few tokens: most experts' Hessians and means are mixed with their prior's; of those that share inputs the most seen
# decides
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
ok 'weights are clipped at steps of 1/20, but for queries and keys' py clipped llama-gqa.h5 clipped.h5 clipped.said
awq-scale -q --group 16 --hessian gpt2-h.h5 "$ref/gpt2.h5" -o clipped-gpt2.h5
ok '... also where they are rows of one layer with values' py rows_of_values
awq-scale --check --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5 2>said; s=$?
is 'a check of clipped weights only prints' $s 0
ok '... how far the model is away' sh -c 'awk -v x="$1" "BEGIN { exit !(x > 1e-3) }"' x "$(checked)"

# --- what follows: tr(E H Eᵀ) of the calibration is not above that of the model as it was, and dpq-run has the same
# numbers ---
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 llama-gqa.h5 -o after-h.h5
dpq-run --compensate none --scale-search minmax --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" \
	-o q0.h5 2>before
dpq-run --compensate none --scale-search minmax --group 16 --hessian after-h.h5 llama-gqa.h5 -o q1.h5 2>after
ok 'losses are those that dpq-run finds, on Hessians of the scaled model' py no_worse llama-gqa.said
# the divisor of a tensor follows from both ends of its range: layers whose largest magnitude is negative tell
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
	ok "$name: no input loses more than before" py no_input_worse "$ref" "$name"
done

# --- the rest ---
ok 'the same bytes for every -j' \
	sh -c 'awq-scale -q -j 1 --group 16 --hessian gpt2-h.h5 "$1" -o j1.h5 &&
		awq-scale -q -j 3 --group 16 --hessian gpt2-h.h5 "$1" -o j3.h5 && cmp j1.h5 j3.h5' x "$ref/gpt2.h5"
ok 'a stream' \
	sh -c 'cat "$1" | awq-scale -q --group 16 --hessian gpt2-h.h5 | cat >stream &&
		awq-scale -q --group 16 --hessian gpt2-h.h5 <"$1" -o r.h5 && h5diff r.h5 j1.h5' x "$ref/gpt2.h5"
hadamard-rotate -q "$ref/llama-tied.h5" -o rotated.h5
hessian-accum -q --tokens llama-tied-t.h5 --ctx 32 rotated.h5 -o rotated-h.h5
awq-scale --group 16 --clip no --check --hessian rotated-h.h5 rotated.h5 -o x.h5 2>said
ok "a rotated model's logits stay, $(checked)" below "$(checked)" 1e-5
ok '... and its down projections, behind online Hadamards' sh -c '! grep down_proj said && grep -q up_proj said'
hessian-accum -q --layers '*q_proj' --layers '*down_proj' --tokens llama-gqa-t.h5 --ctx 32 "$ref/llama-gqa.h5" \
	-o few-h.h5
awq-scale --group 16 --check --clip no --hessian few-h.h5 "$ref/llama-gqa.h5" -o few.h5 2>said
is 'Hessians of few layers' "$(grep -c '^/' said)" 4
ok "... others follow, $(checked)" below "$(checked)" 1e-5
awq-scale -q --dtype bf16 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o half.h5
ok 'bf16' py bf16
warns 'a storage with its own scales' '--scale-dtype .*a storage with its own' \
	awq-scale --storage mxfp4 --scale-dtype e8m0 --group 16 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o x.h5

# --- what is refused ---
rm -f r.h5
g=$ref/llama-gqa.h5
py one_input
no 'no Hessians' 2 '--hessian FILE is expected' awq-scale "$g" -o r.h5
no 'Hessians of no layer' 1 'none.h5: holds no Hessian of a layer' awq-scale --hessian none.h5 "$g" -o r.h5
no 'no means' 1 'without.h5: /model/layers/0/self_attn/q_proj/mean_abs: is missing, expected a file of hessian-accum' \
	awq-scale --hessian without.h5 "$g" -o r.h5
no 'another width' 1 'narrow.h5: /model/layers/0/self_attn/q_proj' awq-scale --hessian narrow.h5 "$g" -o r.h5
no 'a Hessian that is not symmetric' 1 'crooked.h5: /model/layers/0/self_attn/q_proj/hessian: is not symmetric' \
	awq-scale --hessian crooked.h5 "$g" -o r.h5
no 'a scale for a tensor' 2 '--group: is tensor, expected a number or channel' \
	awq-scale --group tensor --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a format that is none' 2 'storage' awq-scale --storage int99 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'scales of another type' 2 '--scale-dtype: mxfp4 has scales in e8m0' \
	awq-scale --storage mxfp4 --scale-dtype f16 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a model that is quantized' 1 'is quantized already' \
	sh -c 'awq-scale -q --hessian llama-gqa-h.h5 q0.h5 -o r.h5' x "$g"
no '... though nothing is clipped, and no ratio may be better' 1 'is quantized already' \
	awq-scale -q --clip no --hessian llama-gqa-h.h5 q0.h5 -o r.h5
py faults "$g"
no 'a weight that is none' 1 'nan.h5: /model/layers/1/mlp/down_proj/weight: holds infinite or undefined numbers' \
	awq-scale -q --hessian llama-gqa-h.h5 nan.h5 -o r.h5
msq-calib -q --act-format int8 --tokens llama-gqa-t.h5 --ctx 32 "$g" -o static.h5
no 'static scales of inputs' 1 'act_scale: would not fit the inputs' \
	awq-scale -q --hessian llama-gqa-h.h5 static.h5 -o r.h5
ok 'nothing of that is there' test ! -e r.h5
done_testing
