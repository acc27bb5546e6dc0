#!/bin/sh
# cross.t -- hessian-accum --pair: cross moments of the inputs of two models, compared with plain float64; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
llama=llama-gqa.h5 moe='mixtral qwen2-moe qwen3-moe' images='llava-clip qwen2-vl qwen2.5-vl idefics3'

# copies of reference models, with a basis
py make "$top/tests/ref" llama-gqa gpt2 neox-parallel opt gemma2 $moe
py images "$top/tests/ref/vision" $images
run() { hessian-accum -q --ctx 32 --tokens t.h5 "$@"; }
dpq-run -q --compensate none --storage int3 --group 8 $llama -o q.h5

run --pair $llama --layers '*' q.h5 -o c.h5
ok 'every layer: sums of inputs of two plain float64 forward passes' py sums $llama q.h5
run --layers '*' q.h5 -o h.h5
ok 'the other members are those without --pair' py others c.h5 h.h5
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run $how --pair $llama --layers '*' q.h5 -o x.h5
	ok "the same with $how" cmp x.h5 c.h5
done
# shellcheck disable=SC2002
cat q.h5 | run --pair $llama --layers '*' -o x.h5
ok 'the same from a pipe' py same_sums x.h5 c.h5 0
run --pair q.h5 --layers '*' $llama -o t-c.h5
ok 'the models in the other order: the transposes' py transposed c.h5 t-c.h5
run --pair $llama --layers '*down_proj' q.h5 -o d.h5
is '--layers' "$(h5ls -r d.h5 | grep -c /cross)$(h5ls -r d.h5 | grep -c /hessian)" 22

# A model with itself: cross is the Hessian. With every second gain of norms doubled: inputs D x, cross D Σ x xᵀ
for m in llama-gqa gpt2 neox-parallel opt gemma2 qwen2-moe mixtral; do
	rm -f simple.h5 larger.h5; py gains $m.h5 /0/
	for type in f32 bf16; do
		rm -f self.h5 cross.h5 larger-h.h5
		run --compute-type $type --pair $m.h5 --layers '*' $m.h5 -o self.h5
		ok "$m with itself in $type: cross is the Hessian" py itself self.h5
		run --compute-type $type --pair larger.h5 --layers '*' simple.h5 -o cross.h5
		run --compute-type $type --layers '*' larger.h5 -o larger-h.h5
		ok "$m with larger inputs in $type: cross has larger rows" py larger
	done
done

# shards and sums
for i in 1 2 3; do run --shard $i/3 --pair $llama --layers '*' q.h5 -o s$i.h5; done
hessian-accum -q s3.h5 s1.h5 s2.h5 -o s.h5
ok 'three shards add up to the whole' py same_sums c.h5 s.h5 1e-6
run --limit 480 --pair $llama --layers '*' q.h5 -o one.h5
run --skip 480 --pair $llama --layers '*' q.h5 -o two.h5
hessian-accum -q one.h5 two.h5 -o sum.h5
ok 'two files add up' py added one.h5 two.h5 sum.h5
run --random-windows 3 --pair $llama --layers '*' $llama -o self.h5
ok 'random windows' py itself self.h5
no 'a sum of a file with cross moments and one without' 1 \
	'two-h.h5: /model/layers/0/mlp/down_proj/cross: is missing, and another of the files has it' \
	sh -c 'hessian-accum -q --ctx 32 --tokens t.h5 --skip 480 --layers "*" q.h5 -o two-h.h5 &&
		hessian-accum -q one.h5 two-h.h5 -o no.h5'
no '... in the other order' 1 'one.h5: /model/layers/0/mlp/down_proj/cross: is in this file, and not in all others' \
	hessian-accum -q two-h.h5 one.h5 -o no.h5
dpq-run -q --compensate none --storage int2 $llama -o other.h5
run --skip 480 --pair other.h5 --layers '*' q.h5 -o other-pair.h5
no 'a sum of files of different pairs' 1 'other-pair.h5: is of another model than one.h5 .attribute pair_sha256' \
	hessian-accum -q one.h5 other-pair.h5 -o no.h5
run --shard 2/3 --pair other.h5 --layers '*' q.h5 -o s2.h5
no 'a shard of another pair' 1 's2.h5: is a shard of another pair than s1.h5 .attribute pair_sha256' \
	hessian-accum -q s1.h5 s2.h5 s3.h5 -o no.h5
is 'the history names the pair' "$(py attr c.h5 / history:pair | sed -n 1p)" "$(py attr $llama / history | sed -n 1p)"

# experts: the rows of an expert are the tokens that the router of the operand sends to it
for m in mixtral qwen2-moe qwen3-moe; do
	py experts_model $m.h5
	hessian-accum -q --ctx 37 --tokens ref.h5 --pair $m.h5 moved.h5 -o e.h5
	ok "$m: experts by the router of the operand, with their priors" py experts $m.h5 74
	hessian-accum -q -j 1 --ctx 37 --tokens ref.h5 --pair $m.h5 moved.h5 -o x.h5
	ok "$m: the same with one thread" cmp x.h5 e.h5
	hessian-accum -q --ctx 2 --limit 2 --tokens ref.h5 --pair $m.h5 moved.h5 -o e.h5
	ok "$m: of two tokens" py experts $m.h5 2
done

# images: of two modalities, and those of the encoder and the projector
for m in $images; do
	rm -f self.h5
	hessian-accum -q --ctx 128 --tokens $m-t.h5 --pair $m.h5 --layers '*' $m.h5 -o self.h5
	ok "$m with itself: cross is the Hessian" py itself self.h5 visual
	for part in model/ vis; do
		rm -f simple.h5 larger.h5 cross.h5 larger-h.h5; py gains $m.h5 "^$part.*/0/"
		hessian-accum -q --ctx 128 --tokens $m-t.h5 --pair larger.h5 --layers '*' simple.h5 -o cross.h5
		hessian-accum -q --ctx 128 --tokens $m-t.h5 --layers '*' larger.h5 -o larger-h.h5
		ok "$m with larger inputs in $part: cross has larger rows" py larger "$part"
	done
done

no 'without a model' 2 'pair requires a model; h.h5 is of kind hessian' hessian-accum --pair $llama h.h5
no 'a pair that is no model' 1  "h.h5: holds a 'hessian', expected 'model'" run --pair h.h5 q.h5 -o no.h5
no 'a pair of another model' 1 'gpt2.h5: /config: is a model of other sizes than q.h5' \
	run --force-basis --pair gpt2.h5 q.h5 -o no.h5
py based gpt2 other-basis.h5 $llama
no 'a pair of another basis' 1 'other-basis.h5: .*basis' run --pair other-basis.h5 q.h5 -o no.h5
cp $llama cut.h5; py remove cut.h5 model/layers/1
warns 'a quantized pair' 'q.h5: /model/layers/0/.*: is quantized; --pair expects the unquantized model' \
	run --pair q.h5 --layers '*' $llama -o t-c.h5
no 'a pair that lacks a block' 1 'cut.h5: is of another model than q.h5: it has 4 parts, expected 5' \
	run --pair cut.h5 q.h5 -o no.h5
ok 'no file is left' sh -c '! ls ./*.tmp no.h5 2>/dev/null | grep .'
done_testing
