#!/bin/sh
# Channels taken out: those that eq. 13 of MQuant names, measured again in numpy; the model computes what it did, and
# solvers leave the columns alone.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" | awk '$1 == "nll" { print $2 }'; }
near() {
	awk -v a="$1" -v b="$2" -v by="$3" \
		'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d <= by * a) }'
}

# GPT-2's inner width is 128, so that the Hadamard is Sylvester's. Two channels stand out in one layer, one in another.
ln2rms -q "$ref/gpt2.h5" | hadamard-rotate -q -o plain.h5
py make
sample-tokens -q --length 640 --ctx 32 model.h5 -o tokens.h5
rms-suppress --check model.h5 -o split.h5 2>said; s=$?
is 'status' $s 0
ok "the logits stay but for rounding to f16, $(checked)" below "$(checked)" 4.9e-4
grep c_proj said >table
ok 'both sides of eq. 13, and what was taken out' py look split.h5 16
rms-suppress --bits 8 --check model.h5 -o eight.h5 2>said
ok "8 bits, $(checked)" below "$(checked)" 0.05
grep c_proj said >table; ok '... of which the largest is 127' py look eight.h5 8
ok 'the same likelihood' near "$(nll split.h5)" "$(nll model.h5)" 1e-4
ok 'the same of a stream' near "$(rms-suppress -q <model.h5 | cat | nll)" "$(nll split.h5)" 0
ok 'the same bytes for every -j' \
	sh -c 'rms-suppress -q -j 1 model.h5 -o 1.h5 && rms-suppress -q -j 3 model.h5 -o 3.h5 && cmp 1.h5 3.h5'
is 'bits a weight: 16 of 128 channels each, and an index' \
	"$(tensor-stats split.h5 | awk '/h.0.mlp.c_proj/ { print $7 }')" 32.2656

# Of columns that are f16 already nothing is rounded.
py half
rms-suppress --check half.h5 -o r.h5 2>said; rm r.h5
ok "without rounding the logits stay, $(checked)" below "$(checked)" 1e-6

# --- quantized ---
hessian-accum -q --tokens tokens.h5 --ctx 32 split.h5 -o h.h5
py damaged
ok 'the product is that of the whole weight' near "$(nll split.h5)" "$(nll whole.h5)" 1e-6
for way in '--compensate none' '--hessian h.h5' '--hessian h.h5 --compute e4m3fn --recipe paper' \
	'--sequential --tokens tokens.h5 --ctx 32 --reorder gar'; do
	# shellcheck disable=SC2086
	ok "dpq-run $way" dpq-run -q --group 32 $way split.h5 -o q.h5
	ok '... leaves them 0' py zeros
	ok '... and they count' near "$(nll q.h5)" "$(nll model.h5)" 0.1
done
ok 'static scales of inputs are those of the other channels' py static_scales
for m in 0 1; do
	py of_modality tokens.h5 $m $m-tokens.h5
	msq-calib -q --act-format int8 --act-mode static-modality --clip 95 --ctx 32 --tokens $m-tokens.h5 split.h5 \
		-o $m.h5
done
ok 'of either modality' py swapped 0.h5 1.h5
ok 'the others are compensated without them' sh -c '
	dpq-run -q --group 32 --hessian h.h5 --layers "*c_proj" split.h5 -o a.h5 &&
	dpq-run -q --group 32 --hessian bare-h.h5 --layers "*c_proj" bare.h5 -o b.h5 &&
	for l in 0/mlp/c_proj 1/mlp/c_proj; do
		h5diff a.h5 b.h5 "/transformer/h/$l/codes" && h5diff a.h5 b.h5 "/transformer/h/$l/scale" || exit
	done'
dpq-run -q --compensate none --storage int8 --group channel --act-format int8 eight.h5 --act-mode dynamic-token -o q8.h5
exmy-pack -q q8.h5 -o p8.h5
ok 'packed, with rounded inputs and columns of 8 bits' near "$(nll p8.h5)" "$(nll q8.h5)" 1e-6
ok '... near the model' near "$(nll q8.h5)" "$(nll model.h5)" 0.02
is 'a model against itself, split' \
	"$(tensor-diff --reference whole.h5 split.h5 | awk '/h.0.mlp.c_proj/ { print $3 }')" 0

# --- what is refused ---
py faults
run() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$1" -o r.h5; }
no 'weights without an index' 1 'no-index.h5: /transformer/h/0/mlp/c_proj/split_weight: is present, but no' \
	run no-index.h5
no 'an index without weights' 1 'no-weight.h5: /transformer/h/0/mlp/c_proj/split_index: is present, but no' \
	run no-weight.h5
no 'a column beyond the layer' 1 'split_index: holds 128 at 1, expected columns below 128, ascending' run beyond.h5
no 'no columns' 1 'split_index: is empty, expected columns, or no such member' run empty.h5
no 'a column twice' 1 'split_index: holds 5 at 1, expected' run twice.h5
no 'more columns than weights' 1 'split_weight: has shape' run three.h5
no 'no numbers' 1 'split_weight: holds infinite' run nan.h5
no 'int8 without scales' 1 'split_weight: is int8, expected f32, f16 or bf16' run unscaled.h5
no 'scales of no int8' 1 'split_weight: is f16, expected int8' run scaled.h5
no 'negative scales' 1 'split_scale: holds -1, expected positive scales' run minus.h5
no 'columns of the head' 1 'head.h5: /lm_head: split_weight is only allowed in layers of blocks' run head.h5
no 'a channel beyond f16' 1 \
	'huge.h5: /transformer/h/0/mlp/c_proj: a split channel overflows f16; --bits 8' rms-suppress \
	-q huge.h5 -o r.h5
no 'a model that was split' 1 'split.h5: /transformer/h/0/mlp/c_proj: has split columns already' \
	rms-suppress -q split.h5 -o r.h5
no 'a model that is quantized' 1 \
	'q.h5: /transformer/h/0/mlp/c_proj: is quantized already, expected a plain weight: run rms-suppress first' \
	rms-suppress -q q.h5 -o r.h5
no 'a model without online Hadamards' 1 \
	'llama-gqa.h5: holds no layer with an online Hadamard; hadamard-rotate makes them' rms-suppress \
	-q "$ref/llama-gqa.h5" -o r.h5
no 'none that is selected' 1 'holds no layer with an online Hadamard' \
	rms-suppress -q --layers '*c_fc' model.h5 -o r.h5
no 'other bits' 2 "bits: '4' is not one of 16, 8" rms-suppress --bits 4 model.h5 -o r.h5
py unrotated
no 'a rotation behind it' 1 'c_proj: has split columns, expected a layer before rms-suppress' \
	hadamard-rotate -q u.h5 -o r.h5
ok 'nothing of that is there' test ! -e r.h5
py spread
rms-suppress spread.h5 -o none.h5 2>said
is 'nothing to take out' "$(awk '/c_proj/ { printf "%s ", $5 }' said)" '0 0 '
ok '... leaves all as it was' h5diff --exclude-attribute / spread.h5 none.h5
done_testing
