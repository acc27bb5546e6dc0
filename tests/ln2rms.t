#!/bin/sh
# ln2rms.t -- the conversion of LayerNorms to RMS norms: the logits stay the same
#
# Reference models of other kinds are refused with the reason. tests/invariant.c tests the same in double.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }

for f in "$ref"/*.h5; do
	name=$(basename "$f" .h5)
	case $name in
	hessians | checkpoints | conventions | fp4) continue ;;
	gpt2 | opt | neox-parallel | neox-serial)
		ln2rms --check "$f" -o "$name.h5" 2>said; s=$?
		ok "$name: the logits stay, $(checked)" below "$(checked)" 1e-5
		is "$name: status" $s 0 ;;
	opt-post) no "$name" 1 "/model/decoder/layers/0/self_attn_layer_norm: is a norm of the residual stream itself" \
		ln2rms "$f" -o r.h5 ;;
	*) no "$name" 1 'is an RMS norm already, expected LayerNorm' ln2rms "$f" -o r.h5 ;;
	esac
done
ok 'refused models leave no file' test ! -e r.h5

ok 'gpt2: norms, means, head' py look "$ref/gpt2.h5" gpt2.h5 transformer/wpe transformer/h ln_1,ln_2 \
	attn/c_proj,mlp/c_proj transformer/ln_f lm_head
ok 'opt: norms, means, head' py look "$ref/opt.h5" opt.h5 model/decoder/embed_positions model/decoder/layers \
	self_attn_layer_norm,final_layer_norm \
	self_attn/out_proj,fc2 model/decoder/final_layer_norm lm_head
for m in neox-parallel neox-serial; do
	ok "$m: norms, means, head" \
		py look "$ref/$m.h5" $m.h5 - gpt_neox/layers input_layernorm,post_attention_layernorm \
		attention/dense,mlp/dense_4h_to_h gpt_neox/final_layer_norm embed_out
done

# --- pipes, tokens, calibration, quantization ---
sample-tokens -q --length 320 --ctx 32 "$ref/gpt2.h5" -o tokens.h5
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" | awk '$1 == "nll" { print $2 }'; }
near() {
	awk -v a="$1" -v b="$2" -v by="$3" \
		'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d <= by * a) }'
}
ok 'the same likelihood' near "$(nll "$ref/gpt2.h5")" "$(nll gpt2.h5)" 1e-5
ok 'from pipe to pipe' sh -c 'cat "$1" | ln2rms -q --check | cat >stream' x "$ref/gpt2.h5"
is 'a stream gives the same likelihood' "$(nll - <stream)" "$(nll gpt2.h5)"
ok 'the same file with and without --check' \
	sh -c 'ln2rms -q "$1" -o plain.h5 && h5diff plain.h5 gpt2.h5' x "$ref/gpt2.h5"
ok 'the same bytes for every -j' \
	sh -c 'ln2rms -q -j 1 "$1" -o j1.h5 && ln2rms -q -j 3 "$1" -o j3.h5 && cmp j1.h5 j3.h5 && cmp j1.h5 plain.h5' \
	x "$ref/gpt2.h5"
ok 'the result can be calibrated and quantized' \
	sh -c 'hessian-accum -q --tokens tokens.h5 --ctx 32 gpt2.h5 -o h.h5 &&
		dpq-run -q --group 16 --hessian h.h5 gpt2.h5 -o q.h5'
ok '... and its biases stay' py biases
for t in bf16 f16; do
	ok "--dtype $t" sh -c "ln2rms --dtype $t --check '$ref/opt.h5' -o $t.h5 2>said"
	ok "... rounds weights once, and prints $(checked)" below "$(checked)" 0.1
done
ok '... to nearest' py nearest

# 1 + 2^-8 and a part below the resolution of float32: rounded to bf16 once it is 1 + 2^-7. Through float32 it would be
# a tie, and 1.
py small_parts "$ref"
ln2rms -q --dtype bf16 tie.h5 -o tied.h5
is '... once' "$(py first_of_head)" 1.0078125

# --- errors ---
py faults "$ref"
no 'a model that is converted already' 1 'gpt2.h5: /transformer/h/0/ln_1: is an RMS norm already' ln2rms gpt2.h5 -o r.h5
no 'a model that is quantized' 1 \
	'rtn.h5: /transformer/h/0/attn/c_attn: is quantized already, expected a plain weight: run ln2rms first' \
	sh -c 'dpq-run -q --compensate none --group 16 "$1" -o rtn.h5 && ln2rms rtn.h5 -o r.h5' x "$ref/gpt2.h5"
no 'static scales of inputs' 1 'static.h5: /transformer/h/0/mlp/c_fc/act_scale: would not fit the inputs' \
	ln2rms static.h5 -o r.h5
ok 'dynamic scales of inputs' ln2rms dynamic.h5 -o r.h5
ok '... stay' py act_attributes
rm r.h5
no 'one norm that is an RMS norm' 1 'mixed.h5: /transformer/h/1/ln_2: is an RMS norm already' ln2rms mixed.h5 -o r.h5
no 'weights that overflow' 1 'huge.h5: /transformer/h/1/mlp/c_fc: overflows f32' ln2rms huge.h5 -o r.h5
no 'a stream too far from 0 for float32' 1 \
	'far.h5: the logits differ by .* of the largest, expected at most 0.0001' ln2rms -q --check far.h5 -o r.h5
no 'no gain' 1 'no-gain.h5: /transformer/h/1/ln_2/weight: is missing' ln2rms no-gain.h5 -o r.h5
no 'no layer' 1 'no-layer.h5: /transformer/h/1/mlp/c_fc: has neither weight nor codes' ln2rms no-layer.h5 -o r.h5
no 'no configuration' 1 'no-config.h5: /config: is missing' ln2rms no-config.h5 -o r.h5
no 'no final norm' 1 'no-head.h5: /transformer/ln_f/weight: is missing' ln2rms no-head.h5 -o r.h5
no 'a shift that is NaN' 1 'nan.h5: /transformer/h/0/ln_1/bias: holds infinite' ln2rms nan.h5 -o r.h5
no 'an unknown type' 2 "dtype: 'f64' is not one of f32, f16, bf16" ln2rms --dtype f64 "$ref/gpt2.h5" -o r.h5
no 'a stream cut short' 1 'is cut short' sh -c 'head -c 30000 stream >cut; ln2rms cut -o r.h5'
ok 'errors leave no file' test ! -e r.h5
done_testing
