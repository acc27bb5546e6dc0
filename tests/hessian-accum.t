#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make
run() { hessian-accum --ctx 32 --tokens t.h5 "$@"; }

run "$model" -o h.h5
ok 'all layers, in pairs that share' py all_layers
# by transformers' arithmetic in double: the first block's attention input is the norm of the embeddings
ok 'the numbers' py numbers "$model"
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
ok 'and keep what is shared' py shared
hessian-accum h.h5 -o x.h5
ok 'the sum of one' py near h.h5 x.h5 0
# what a sum counts twice; ranges of its own make of one file others
ranged() { cp h.h5 "$1"; py set_range "$@"; }
ranged front.h5 '. 0 300'
ranged back.h5 '. 300 1000'
ranged both.h5 'f 0 300' '. 200 301'
ranged other.h5 'f 300 1000'
warns 'a file that is added to itself' \
	'h.h5: was calibrated on tokens 0 to 999 of the same text as h.h5: the sum counts them twice' hessian-accum \
	h.h5 h.h5 -o x.h5
warns 'two that have some tokens in common, among several texts' \
	'both.h5: was calibrated on tokens 300 to 300 of the same text as back.h5' hessian-accum back.h5 both.h5 -o x.h5
warns 'several of them, one warning' 'both.h5: was calibrated on tokens 200 to 299 of the same text as front.h5' \
	hessian-accum -q other.h5 front.h5 both.h5 back.h5 h.h5 -o x.h5
ok 'nothing of tokens that count once' \
	sh -c 'hessian-accum front.h5 back.h5 other.h5 -o x.h5 2>said && ! grep twice said'
ok '... nor of shards' sh -c 'hessian-accum s1.h5 s2.h5 s3.h5 -o x.h5 2>said && ! grep twice said'
run --compute-type bf16 "$model" -o bf.h5
run --compute-type bf16 -j 1 "$model" -o x.h5
ok 'bf16: the same with -j 1' py near x.h5 bf.h5 0
# an input behind at most 13 layers, each of factors within 2^-9 of theirs, and its square
ok 'bf16: near the Hessians of f32' py near h.h5 bf.h5 0.1
ok 'bf16: inputs are rounded' py bf16_inputs
run --layers '*down_proj' "$model" -o d.h5
is '--layers' "$(h5ls -r d.h5 | grep -c 'hessian.*{44, 44}')$(h5ls -r d.h5 | grep -c hessian)" 22
run --layers '!*down_proj' "$model" -o d.h5
is 'embeddings and head are not asked for by what is excluded' "$(h5ls -r d.h5 | grep -c 'lm_head\|embed')" 0
run --layers '*lm_head' "$model" -o d.h5
is 'the head, where it is asked for' "$(h5ls -r d.h5 | grep -c /lm_head/hessian)" 1

hessian-accum --ctx 16 act.h5 -o a.h5
ok 'activations' py activations
# both within (ctx + 2) 2^-24 Σ |x| |x| of the truth, where products of bf16 are exact, and rounded once more
for cpu in plain ''; do
	PTQ_CPU=$cpu hessian-accum --ctx 16 bf16.h5 -o b.h5
	ok "bf16 activations as the same in f32, kernels '$cpu'" py bf16_activations
done
for i in 1 2; do hessian-accum --ctx 16 --shard $i/2 act.h5 -o s$i.h5; done
hessian-accum s1.h5 s2.h5 -o s.h5
ok 'their shards' py near a.h5 s.h5 1e-6
ok '... to the count' py to_the_count
for m in mean_abs fourth histogram; do
	cp a.h5 lacks.h5; py lacks $m
	no "a sum of files without $m" 1 "lacks.h5: /b/$m: is missing" hessian-accum lacks.h5 -o no.h5
done
py faults
no 'a count below 0' 1 'bad-minus.h5: /a/histogram: element 5 is -1, expected a magnitude' \
	hessian-accum bad-minus.h5 -o no.h5
no 'counts of other tokens' 1 \
	'bad-many.h5: /a/histogram: has 1.09951e\+12 numbers, expected 33 for each of 70 tokens' hessian-accum \
	bad-many.h5 -o no.h5
no 'NaN in fourth' 1 'bad-nan.h5: /a/fourth: element 3 is nan' hessian-accum bad-nan.h5 -o no.h5

# keys and values as the model says, or the option; fewer bits, other inputs of what reads attention's output
msq-calib -q --kv-format int2 "$model" -o kv.h5
run "$model" -o plain-h.h5
run kv.h5 -o kv-h.h5
run --kv-format int2 "$model" -o option-h.h5
run --kv-format none kv.h5 -o none-h.h5
ok 'keys and values rounded as the model says' py near kv-h.h5 option-h.h5 0
ok '... but where the option says none' py near plain-h.h5 none-h.h5 0
ok '... which is seen behind the first attention' py after_attention
warns 'a format of keys where no model is run' 'without effect here: --kv-format .no model is run.' \
	hessian-accum --kv-format int4 act.h5 -o no-keys.h5

no 'tokens are expected' 2 '^hessian-accum: --tokens FILE is expected' hessian-accum "$model"
no 'tokens are not wanted' 2 'tokens requires a model' hessian-accum --tokens t.h5 act.h5
no 'a shard' 2 "shard: '4/3'" run --shard 4/3 "$model"
no 'a shard of nothing' 2 "shard: 'x'" run --shard x "$model"
no 'a shard of Hessians' 2 'summed whole' hessian-accum --shard 1/2 h.h5
warns 'arithmetic of what is not run' 'without effect here: --compute-type .no model is run.' \
	hessian-accum --compute-type bf16 act.h5 -o arithmetic.h5
no 'an empty shard' 1 't.h5: --shard 40/40 has no window: the file has 31' run --shard 40/40 "$model"
no 'a model among Hessians' 1 'model' hessian-accum h.h5 "$model"
no 'other layers' 1 'd.h5' hessian-accum h.h5 d.h5
no 'other models' 1 'parts|layers' hessian-accum h.h5 a.h5
no 'integers' 1 'int.h5: /a/input: is int32' hessian-accum int.h5
no 'NaN' 1 'nan.h5: /a: input 4: ' hessian-accum nan.h5
ok 'nothing is left behind' sh -c '! ls ./*.tmp 2>/dev/null | grep .'
done_testing
