#!/bin/sh
# hessian-accum.t -- Hessians of models and of activations, shards and sums; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make
run() { hessian-accum --ctx 32 --tokens t.h5 "$@"; }

run "$model" -o h.h5
ok 'all layers; layers with the same input share one Hessian' py all_layers
# computed in double: the input of attention in the first block is the norm of the embeddings
ok 'the values of a Hessian' py numbers "$model"
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run $how "$model" -o x.h5
	ok "the same with $how" cmp x.h5 h.h5
done
# shellcheck disable=SC2002
cat "$model" | run | hessian-accum -o x.h5
ok 'the same through pipes' py near x.h5 h.h5 0
for i in 1 2 3; do run --shard $i/3 "$model" -o s$i.h5; done
hessian-accum s1.h5 s2.h5 s3.h5 -o s.h5
ok 'three shards add up to the whole' py near h.h5 s.h5 1e-6
ok '... and shared Hessians are still shared' py shared
hessian-accum h.h5 -o x.h5
ok 'the sum of one file' py near h.h5 x.h5 0
# tokens that a sum counts twice; files with other ranges are copies of one file
ranged() { cp h.h5 "$1"; py set_range "$@"; }
ranged front.h5 '. 0 300'
ranged back.h5 '. 300 1000'
ranged both.h5 'f 0 300' '. 200 301'
ranged other.h5 'f 300 1000'
warns 'a file is added to itself' \
	'h.h5: was calibrated on tokens 0 to 999 of the same text as h.h5: the sum counts them twice' hessian-accum \
	h.h5 h.h5 -o x.h5
warns 'two files have some tokens in common, among several texts' \
	'both.h5: was calibrated on tokens 300 to 300 of the same text as back.h5' hessian-accum back.h5 both.h5 -o x.h5
warns 'several such files: one warning' 'both.h5: was calibrated on tokens 200 to 299 of the same text as front.h5' \
	hessian-accum -q other.h5 front.h5 both.h5 back.h5 h.h5 -o x.h5
ok 'no warning if each token counts once' \
	sh -c 'hessian-accum front.h5 back.h5 other.h5 -o x.h5 2>said && ! grep twice said'
ok '... nor for shards' sh -c 'hessian-accum s1.h5 s2.h5 s3.h5 -o x.h5 2>said && ! grep twice said'
run --compute-type bf16 "$model" -o bf.h5
run --compute-type bf16 -j 1 "$model" -o x.h5
ok 'bf16: the same with -j 1' py near x.h5 bf.h5 0
# an input after at most 13 layers, each with factors rounded by at most 2^-9, and its square
ok 'bf16: near the Hessians of f32' py near h.h5 bf.h5 0.1
ok 'bf16: inputs are rounded' py bf16_inputs
run --layers '*down_proj' "$model" -o d.h5
is '--layers' "$(h5ls -r d.h5 | grep -c 'hessian.*{44, 44}')$(h5ls -r d.h5 | grep -c hessian)" 22
run --layers '!*down_proj' "$model" -o d.h5
is 'excluding layers does not select embeddings and head' "$(h5ls -r d.h5 | grep -c 'lm_head\|embed')" 0
run --layers '*lm_head' "$model" -o d.h5
is 'the head, if it is selected' "$(h5ls -r d.h5 | grep -c /lm_head/hessian)" 1

hessian-accum --ctx 16 act.h5 -o a.h5
ok 'Hessians of activations' py activations
# both are within (ctx + 2) 2^-24 Σ |x| |x| of the exact sum, where products of bf16 are exact, and rounded once more
for cpu in plain ''; do
	PTQ_CPU=$cpu hessian-accum --ctx 16 bf16.h5 -o b.h5
	ok "bf16 activations give the Hessian of the same values in f32, kernels '$cpu'" py bf16_activations
done
for i in 1 2; do hessian-accum --ctx 16 --shard $i/2 act.h5 -o s$i.h5; done
hessian-accum s1.h5 s2.h5 -o s.h5
ok 'shards of activations add up' py near a.h5 s.h5 1e-6
ok '... with the same counts' py to_the_count
for m in mean_abs fourth histogram; do
	cp a.h5 lacks.h5; py lacks $m
	no "a sum of files without $m" 1 "lacks.h5: /b/$m: is missing" hessian-accum lacks.h5 -o no.h5
done
py faults
no 'a count below 0' 1 'bad-minus.h5: /a/histogram: element 5 is -1, expected a magnitude' \
	hessian-accum bad-minus.h5 -o no.h5
no 'counts of another number of tokens' 1 \
	'bad-many.h5: /a/histogram: has 1.09951e\+12 numbers, expected 33 for each of 70 tokens' hessian-accum \
	bad-many.h5 -o no.h5
no 'NaN in fourth' 1 'bad-nan.h5: /a/fourth: element 3 is nan' hessian-accum bad-nan.h5 -o no.h5

# keys and values are rounded as the model or the option specifies, which changes the inputs after attention
msq-calib -q --kv-format int2 "$model" -o kv.h5
run "$model" -o plain-h.h5
run kv.h5 -o kv-h.h5
run --kv-format int2 "$model" -o option-h.h5
run --kv-format none kv.h5 -o none-h.h5
ok 'keys and values are rounded as the model specifies' py near kv-h.h5 option-h.h5 0
ok '... --kv-format none overrides it' py near plain-h.h5 none-h.h5 0
ok '... which changes inputs only after attention' py after_attention
warns '--kv-format where no model is run' 'without effect here: --kv-format .no model is run.' \
	hessian-accum --kv-format int4 act.h5 -o no-keys.h5

no 'no --tokens' 2 '^hessian-accum: --tokens FILE is expected' hessian-accum "$model"
no '--tokens with activations' 2 'tokens requires a model' hessian-accum --tokens t.h5 act.h5
no 'a shard beyond the last' 2 "shard: '4/3'" run --shard 4/3 "$model"
no 'a shard that is not I/N' 2 "shard: 'x'" run --shard x "$model"
no 'a shard of a sum of Hessians' 2 'summed whole' hessian-accum --shard 1/2 h.h5
warns '--compute-type where no model is run' 'without effect here: --compute-type .no model is run.' \
	hessian-accum --compute-type bf16 act.h5 -o arithmetic.h5
no 'an empty shard' 1 't.h5: --shard 40/40 has no window: the file has 31' run --shard 40/40 "$model"
no 'a model among Hessians' 1 'model' hessian-accum h.h5 "$model"
no 'Hessians of other layers' 1 'd.h5' hessian-accum h.h5 d.h5
no 'Hessians of another model' 1 'parts|layers' hessian-accum h.h5 a.h5
no 'integer activations' 1 'int.h5: /a/input: is int32' hessian-accum int.h5
no 'NaN in activations' 1 'nan.h5: /a: input 4: ' hessian-accum nan.h5
ok 'no file is left' sh -c '! ls ./*.tmp 2>/dev/null | grep .'
done_testing
