#!/bin/sh
# tensor-stats.t -- statistics of weights and Hessians, compared with numpy and with results by hand
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make

tensor-stats w.h5 >a
is 'every matrix without a config, in natural order' "$(cut -f1 a | xargs)" 'layer /a9 /a10 /b all'
is 'storage, group and compute formats' \
	"$(cut -f2-4 a | xargs)" 'storage group compute f32 - none f32 - none f16 - none - - -'
is 'by hand: plus and minus one' "$(grep '^/a9' a | cut -f5- | xargs)" '2 2 32 1 1 1 1 1 1 1'
ok 'the numbers are numpy'\''s' py numbers a w.h5
tensor-stats --json w.h5 >j
ok 'JSON' py as_json
tensor-stats w.h5 -o r.h5 >x
ok '-o does not change what is printed' cmp x a
ok 'the record: one dataset per column' py record
is 'the history does not have the name of the output' "$(h5dump -a history r.h5 | grep -c -- 'json\|r.h5')" 1

# --- input channels ---
tensor-stats --channels w.h5 >x
ok '--channels: rows of each layer in natural order, by numpy' py channels x w.h5
tensor-stats --channels --layers '/a9' w.h5 >x
is '... by hand: plus and minus one' "$(tail -n +2 x | xargs)" '/a9 0 1 1 /a9 1 1 1'
dpq-run -q --compensate none --group 8 "$model" -o q.h5; tensor-stats --channels q.h5 >x
ok '... of the effective weight' py channels x q.h5
tensor-stats -q --channels w.h5 -o r.h5 >x
is '... in a file' "$(h5ls r.h5 | awk '{ print $1, $3 }' | sort | xargs)" \
	'absmax {602} channel {602} layer {602} rms {602}'

# a model: plain, quantized by each method, through pipes
tensor-stats "$model" >m
is 'layers of the architecture only' "$(py numbers m "$model") $(grep -c 'embed\|head\|norm' m)" '14 0'
tensor-stats --layers '*embed*' --layers '*/1/*q_proj' "$model" >x
is '--layers selects an embedding' \
	"$(cut -f1 x | xargs)" 'layer /model/embed_tokens /model/layers/1/self_attn/q_proj all'
dpq-run -q --compensate none --group 8 "$model" -o q.h5; tensor-stats q.h5 >x
is 'quantized: the effective weight' "$(py numbers x q.h5) $(sed -n 2p x | cut -f2-4 | xargs)" '14 uint4 8 none'
dpq-run -q --compensate none --compute e4m3fn --act-mode none --group 8 "$model" -o q.h5; tensor-stats q.h5 >x
is 'quantized for FP8 arithmetic' "$(py numbers x q.h5) $(sed -n 2p x | cut -f2-4 | xargs)" '14 uint4 8 e4m3fn'
for group in channel tensor; do
	dpq-run -q --compensate none --storage int8 --group $group "$model" | tensor-stats >x
	is "a scale per $group" "$(sed -n 2p x | cut -f2-4 | xargs)" "int8 $group none"
done
# shellcheck disable=SC2002
cat "$model" | tensor-stats | cmp - m; is 'a pipe gives what a file gives' $? 0
dpq-run -q --compensate none --layers '*/0/mlp/*' "$model" | tensor-stats -j 3 >x
dpq-run -q --compensate none --layers '*/0/mlp/*' "$model" -o q.h5; tensor-stats -j 1 q.h5 >y
ok 'a stream, with other threads: the same output' cmp x y

# statistics of Hessians
py hessians
is 'Hessians: by hand' "$(tensor-stats h.h5 | xargs)" \
	'layer tokens inputs dead square_mean square_median square_max absmax kurtosis /a 4 4 1 5.75 1.5 20 3 -'
is '... and their kurtosis, 505/4 over (23/4)²' "$(tensor-stats h-fourth.h5 | awk 'END { print $NF }')" 3.81853
sample-tokens -q --length 64 --ctx 16 "$model" -o t.h5
hessian-accum -q --tokens t.h5 --ctx 16 "$model" -o hm.h5 2>/dev/null
tensor-stats --channels hm.h5 >x
ok '... and their channels' py hessian_channels x hm.h5
no 'a negative diagonal' 1 'h-minus.h5: /a/hessian: diagonal element 1 is -1' tensor-stats h-minus.h5
no 'NaN on the diagonal' 1 'h-nan.h5: /a/hessian: diagonal element 1 is nan' tensor-stats h-nan.h5
no 'no tokens' 1 'h-none.h5: /a/count: is not positive' tensor-stats h-none.h5
no 'no Hessian selected' 1 'h.h5: holds no linear layer that --layers selects' tensor-stats --layers b h.h5

no 'NaN in a channel' 1 'nan.h5: /b/we' tensor-stats --channels nan.h5
no 'NaN' 1 'nan.h5: /b/weight: holds infinite or undefined' tensor-stats nan.h5
no 'a model without layers' 1 'none.h5: holds no linear layer$' tensor-stats none.h5
no 'no layer selected' 1 'w.h5: holds no linear layer that --layers selects' tensor-stats --layers c w.h5
no 'a file without a kind' 1 "kind.h5: has no attribute ptq_kind, expected 'model.hessian'" tensor-stats kind.h5
no 'a file of another kind' 1 "r.h5: holds a 'result', expected 'model" tensor-stats r.h5
no 'two models' 2 'one operand too many' tensor-stats w.h5 w.h5
no 'a full disk' 1 'stdout.*cannot write' sh -c 'tensor-stats w.h5 >/dev/full'
head -c 3000 w.h5 >cut.h5; no 'a file cut short' 1 'cut.h5: is cut short' tensor-stats cut.h5
no 'an error with -o' 1 'nan.h5' tensor-stats nan.h5 -o bad.h5
is '... leaves no file' "$(find . -name bad.h5 -o -name '.ptq*')" ''
done_testing
