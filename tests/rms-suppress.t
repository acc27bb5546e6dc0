#!/bin/sh
# rms-suppress.t -- split columns: the channels of MQuant's eq. 13, measured again in numpy; the model computes the same
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

# GPT-2's inner width is 128, so the Hadamard matrix is Sylvester's. One layer has two outlier channels, another one.
ln2rms -q "$ref/gpt2.h5" | hadamard-rotate -q -o plain.h5
py make
sample-tokens -q --length 640 --ctx 32 model.h5 -o tokens.h5
rms-suppress --check model.h5 -o split.h5 2>said; s=$?
is 'status' $s 0
ok "the logits differ only by rounding to f16, $(checked)" below "$(checked)" 4.9e-4
grep c_proj said >table
ok 'both sides of eq. 13, and the split columns' py look split.h5 16
rms-suppress --bits 8 --check model.h5 -o eight.h5 2>said
ok "--bits 8: the logits differ little, $(checked)" below "$(checked)" 0.05
grep c_proj said >table; ok '... and the largest code is 127' py look eight.h5 8
ok 'the same likelihood' near "$(nll split.h5)" "$(nll model.h5)" 1e-4
ok 'a stream: the same likelihood' near "$(rms-suppress -q <model.h5 | cat | nll)" "$(nll split.h5)" 0
ok 'the same bytes for every -j' \
	sh -c 'rms-suppress -q -j 1 model.h5 -o 1.h5 && rms-suppress -q -j 3 model.h5 -o 3.h5 && cmp 1.h5 3.h5'
is 'bits per weight: split columns of 16 bits in 128 channels, and an index' \
	"$(tensor-stats split.h5 | awk '/h.0.mlp.c_proj/ { print $7 }')" 32.2656

# Columns that are f16 already are not rounded.
py half
rms-suppress --check half.h5 -o r.h5 2>said; rm r.h5
ok "columns in f16: the logits stay the same, $(checked)" below "$(checked)" 1e-6

# --- quantized ---
hessian-accum -q --tokens tokens.h5 --ctx 32 split.h5 -o h.h5
py damaged
ok 'the same product as with the whole weight' near "$(nll split.h5)" "$(nll whole.h5)" 1e-6
for way in '--compensate none' '--hessian h.h5' '--hessian h.h5 --compute e4m3fn --recipe paper' \
	'--sequential --tokens tokens.h5 --ctx 32 --reorder gar'; do
	# shellcheck disable=SC2086
	ok "dpq-run $way" dpq-run -q --group 32 $way split.h5 -o q.h5
	ok '... leaves split columns 0 in the codes' py zeros
	ok '... and their products count' near "$(nll q.h5)" "$(nll model.h5)" 0.1
done
ok 'static scales come from the other channels only' py static_scales
for m in 0 1; do
	py of_modality tokens.h5 $m $m-tokens.h5
	msq-calib -q --act-format int8 --act-mode static-modality --clip 95 --ctx 32 --tokens $m-tokens.h5 split.h5 \
		-o $m.h5
done
ok '... for either modality' py swapped 0.h5 1.h5
ok 'the other columns are compensated without split columns' sh -c '
	dpq-run -q --group 32 --hessian h.h5 --layers "*c_proj" split.h5 -o a.h5 &&
	dpq-run -q --group 32 --hessian bare-h.h5 --layers "*c_proj" bare.h5 -o b.h5 &&
	for l in 0/mlp/c_proj 1/mlp/c_proj; do
		h5diff a.h5 b.h5 "/transformer/h/$l/codes" && h5diff a.h5 b.h5 "/transformer/h/$l/scale" || exit
	done'
dpq-run -q --compensate none --storage int8 --group channel --act-format int8 eight.h5 --act-mode dynamic-token -o q8.h5
exmy-pack -q q8.h5 -o p8.h5
ok 'packed, with rounded inputs and columns of 8 bits' near "$(nll p8.h5)" "$(nll q8.h5)" 1e-6
ok '... near the model' near "$(nll q8.h5)" "$(nll model.h5)" 0.02
is 'a split model does not differ from the whole model' \
	"$(tensor-diff --reference whole.h5 split.h5 | awk '/h.0.mlp.c_proj/ { print $3 }')" 0

# --- errors ---
py faults
run() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$1" -o r.h5; }
no 'weights without an index' 1 'no-index.h5: /transformer/h/0/mlp/c_proj/split_weight: is present, but no' \
	run no-index.h5
no 'an index without weights' 1 'no-weight.h5: /transformer/h/0/mlp/c_proj/split_index: is present, but no' \
	run no-weight.h5
no 'a column beyond the layer' 1 'split_index: holds 128 at 1, expected columns below 128, ascending' run beyond.h5
no 'an empty index' 1 'split_index: is empty, expected columns, or no such member' run empty.h5
no 'a column twice' 1 'split_index: holds 5 at 1, expected' run twice.h5
no 'more columns than weights' 1 'split_weight: has shape' run three.h5
no 'NaN in split columns' 1 'split_weight: holds infinite' run nan.h5
no 'int8 without scales' 1 'split_weight: is int8, expected f32, f16 or bf16' run unscaled.h5
no 'scales of columns that are not int8' 1 'split_weight: is f16, expected int8' run scaled.h5
no 'negative scales' 1 'split_scale: holds -1, expected positive scales' run minus.h5
no 'split columns in the head' 1 'head.h5: /lm_head: split_weight is only allowed in layers of blocks' run head.h5
no 'a channel beyond f16' 1 \
	'huge.h5: /transformer/h/0/mlp/c_proj: a split channel overflows f16; --bits 8' rms-suppress \
	-q huge.h5 -o r.h5
no 'a model that is split already' 1 'split.h5: /transformer/h/0/mlp/c_proj: has split columns already' \
	rms-suppress -q split.h5 -o r.h5
no 'a model that is quantized' 1 \
	'q.h5: /transformer/h/0/mlp/c_proj: is quantized already, expected a plain weight: run rms-suppress first' \
	rms-suppress -q q.h5 -o r.h5
no 'a model without online Hadamards' 1 \
	'llama-gqa.h5: holds no layer with an online Hadamard; hadamard-rotate makes them' rms-suppress \
	-q "$ref/llama-gqa.h5" -o r.h5
no 'no selected layer with an online Hadamard' 1 'holds no layer with an online Hadamard' \
	rms-suppress -q --layers '*c_fc' model.h5 -o r.h5
no 'other bits' 2 "bits: '4' is not one of 16, 8" rms-suppress --bits 4 model.h5 -o r.h5
py unrotated
no 'a rotation after rms-suppress' 1 'c_proj: has split columns, expected a layer before rms-suppress' \
	hadamard-rotate -q u.h5 -o r.h5
ok 'errors leave no file' test ! -e r.h5
py spread
rms-suppress spread.h5 -o none.h5 2>said
is 'a model without outliers: no split column' "$(awk '/c_proj/ { printf "%s ", $5 }' said)" '0 0 '
ok '... and no change' h5diff --exclude-attribute / spread.h5 none.h5
done_testing
