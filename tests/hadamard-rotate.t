#!/bin/sh
# hadamard-rotate.t -- rotation: every reference model computes the same as before, or is refused with the reason
# tests/invariant.c has the same in double. The tools keep the online Hadamard of down projections.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }
rotated() {	# rotated NAME FILE OPTION...
	what=$1 file=$2; shift 2
	hadamard-rotate --check --seed 7 "$@" "$file" -o "$what.h5" 2>said
	ok "$what: the logits are unchanged, $(checked)" below "$(checked)" 1e-5
}

for f in "$ref"/*.h5; do
	name=$(basename "$f" .h5)
	case $name in
	hessians | checkpoints | conventions | fp4) continue ;;
	gpt2 | opt | neox-parallel | neox-serial)
		no "$name" 1 'is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms' \
			hadamard-rotate -q "$f" -o r.h5
		ln2rms -q "$f" -o rms.h5
		rotated "$name" rms.h5 ;;
	gemma2 | gemma3) no "$name" 1 \
		'/model/layers/0/post_attention_layernorm: is after a residual branch and has a gain for each' \
		hadamard-rotate -q "$f" -o r.h5 ;;
	opt-post) no "$name" 1 'is a norm of the residual stream itself' hadamard-rotate -q "$f" -o r.h5 ;;
	*) rotated "$name" "$f" ;;
	esac
done
ok 'refused models leave no result' test ! -e r.h5
for m in qwen2-moe phi3-long; do
	rotated "$m, blocks" "$ref/$m.h5" --block 4
	rotated "$m, offline" "$ref/$m.h5" --offline
done
py make "$ref"
rotated 'gemma2, one gain behind each branch' one-gain.h5

# --- changed members ---
ok 'norms are folded, heads are untied, other members are unchanged' py folded "$ref"
model=$ref/llama-gqa.h5
ok 'the same seed gives the same bytes, for every -j' \
	sh -c 'hadamard-rotate -q --seed 7 -j 1 "$1" -o a.h5 && hadamard-rotate -q --seed 7 -j 3 "$1" -o b.h5 &&
		cmp a.h5 b.h5 && h5diff a.h5 llama-gqa.h5' x "$model"
ok 'another seed gives another model' \
	sh -c 'hadamard-rotate -q --seed 8 "$1" -o b.h5; ! h5diff -q a.h5 b.h5 /model/embed_tokens/weight' x "$model"

# --- the tools keep the online Hadamard ---
sample-tokens -q --length 640 --ctx 32 "$model" -o tokens.h5
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" | awk '$1 == "nll" { print $2 }'; }
near() {
	awk -v a="$1" -v b="$2" -v by="$3" \
		'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d <= by * a) }'
}
ok 'the same likelihood' near "$(nll a.h5)" "$(nll "$model")" 1e-5
hadamard-rotate -q --seed 7 --keys "$model" -o keys.h5
is '--keys: the order of the Hadamard matrix of keys' "$(py keys)" '8 False'
ok '... and the same likelihood' near "$(nll keys.h5)" "$(nll "$model")" 1e-5
ok '... but another one with rounded keys' \
	sh -c 'test "$1" != "$2"' x "$(nll --kv-format int4 a.h5)" "$(nll --kv-format int4 keys.h5)"
ok 'a stream: the same likelihood' near "$(hadamard-rotate -q --seed 7 <"$model" | cat | nll)" "$(nll "$model")" 1e-5
for m in "$model" a.h5; do sample-tokens -q --temperature 0 --length 62 --ctx 32 "$m" -o "greedy-$(basename "$m")"; done
ok 'the same greedy tokens' h5diff greedy-llama-gqa.h5 greedy-a.h5 /tokens
down=model/layers/0/mlp/down_proj
for c in 'dpq-run -q --compensate none --group 16' 'dpq-run -q --compensate none --storage e2m2 --group channel' \
	'dpq-run -q --group 16 --sequential --tokens tokens.h5 --ctx 32'; do
	ok "$c" $c a.h5 -o q.h5
	is '... keeps the online Hadamard' "$(py attr q.h5 "$down" online_hadamard)" 44
	ok '... and the model applies it' near "$(nll q.h5)" "$(nll "$model")" 0.2
done
dpq-run -q --compensate none --storage e2m2 --group channel a.h5 -o q.h5
exmy-pack q.h5 -o p.h5
is 'packed words keep it' "$(py attr p.h5 "$down" online_hadamard)" 44
is '... with the same results' "$(nll p.h5)" "$(nll q.h5)"
ok '... unpacked: the same file' sh -c 'exmy-pack --unpack p.h5 -o u.h5 && h5diff --exclude-attribute / u.h5 q.h5'
model-export -q -o merged a.h5 && model-import -q merged -o merged.h5
ok 'tensor-diff: a model with an online Hadamard, and the same one without: no difference but of rounding' sh -c '
	tensor-diff -q -r a.h5 merged.h5 | awk "NR > 1 { bad += \$4 > 1e-12 } END { exit bad || NR < 10 }"'
hessian-accum -q --tokens tokens.h5 --ctx 32 a.h5 -o online.h5
no '... but with Hessians, which are of the inputs after it' 1 \
	'down_proj: has another online Hadamard than in a.h5, and the Hessian fits only one' \
	tensor-diff -q -r a.h5 --hessian online.h5 --force-basis merged.h5
ok '--sequential calibrates on the inputs after the online Hadamard' py stages
# outputs are the same up to a rotation: tr(W S Wᵀ) is unchanged, of every layer and of priors of experts
ok 'Hessians are of the inputs after the online Hadamard' py inputs_rotated "$ref"

# --- a rotation from a file ---
py matrices
rotated 'a learned rotation' "$model" --load both.h5 2>/dev/null
ok 'a learned rotation of the stream' hadamard-rotate -q --load learned.h5 "$model" -o l.h5
ok '... is applied' py learned "$model"
warns '--seed with --load' 'without effect here: --seed .--load.' \
	hadamard-rotate --seed 1 --load learned.h5 "$model" -o l.h5
no 'a rotation of another width' 1 'shape.h5: /residual: has shape' hadamard-rotate -q --load shape.h5 "$model" -o r.h5
no 'a rotation that is not orthogonal' 1 \
	'skew.h5: /residual: is not orthogonal: an element of Q Qᵀ - I is .*, expected at most 1e-05' \
	hadamard-rotate -q --load skew.h5 "$model" -o r.h5
no 'a rotation with NaN' 1 'nan.h5: /residual: ' hadamard-rotate -q --load nan.h5 "$model" -o r.h5
no 'a rotation of values that is not orthogonal' 1 'value.h5: /value: is not orthogonal' \
	hadamard-rotate -q --load value.h5 "$model" -o r.h5
no 'no rotation of the residual stream' 1 'none.h5: /residual: is missing' hadamard-rotate -q --load none.h5 "$model" \
	-o r.h5
no 'a model in place of a rotation' 1 "holds a 'model', expected 'rotation'" hadamard-rotate -q --load "$model" \
	"$model" -o r.h5

# --- bad input ---
no 'a rotated model' 1 'a.h5: is rotated already .hadamard., expected a model before rotation' \
	hadamard-rotate -q a.h5 -o r.h5
no 'a quantized model' 1 \
	'rtn.h5: /model/layers/0/self_attn/q_proj: is quantized already, .* weight: run hadamard-rotate first' \
	sh -c 'dpq-run -q --compensate none --group 16 "$1" -o rtn.h5; hadamard-rotate -q rtn.h5 -o r.h5' x "$model"
py unmarked
no 'a layer that has an online Hadamard' 1 \
	'unmarked.h5: /model/layers/0/mlp/down_proj: has an online Hadamard already' hadamard-rotate \
	-q unmarked.h5 -o r.h5
no 'blocks that do not divide' 1 'inputs of down projections: 44 channels cannot be divided into blocks of 16' \
	hadamard-rotate -q --block 16 "$model" -o r.h5
no 'blocks without a matrix' 1 'the residual stream: no Hadamard matrix of order 3 is known, use blocks of 24' \
	hadamard-rotate -q --block 3 "$ref/phi3-window.h5" -o r.h5
warns 'a width without a matrix' 'values of a head: no Hadamard matrix of order 10 .*blocks of 2' \
	hadamard-rotate "$ref/qwen3-window.h5" -o warned.h5
numbers='0 1 -1 x 1.5'
for v in $numbers; do no "--block $v" 2 '--block' hadamard-rotate --block=$v "$model" -o r.h5; done
ok 'no result was written' test ! -e r.h5
done_testing
