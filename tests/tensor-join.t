#!/bin/sh
# tensor-join.t -- parts of a model quantized by several jobs, joined to the model that one job makes
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
py make "$ref"
attr() { py attr "$1" / "$2"; }
hessian-accum -q --tokens t.h5 --ctx 32 model.h5 -o h.h5
run() { dpq-run -q --hessian h.h5 --group 8 "$@"; }
run model.h5 -o whole.h5

# --- shards ---
for i in 1 2 3; do run --shard $i/3 model.h5 -o s$i.h5; done
is 'a shard has its number and the number of shards' "$(attr s2.h5 shard) $(attr s2.h5 shards)" '2 3'
is '... and the codes of its blocks' \
	"$(h5ls -r s1.h5 | grep -c codes) $(h5ls -r s2.h5 | grep -c codes) $(h5ls -r s3.h5 | grep -c codes)" '14 7 7'
tensor-join -q s1.h5 s2.h5 s3.h5 -o j.h5
ok 'joined shards equal the model of one job' py same_but_history j.h5 whole.h5
tensor-join -q s3.h5 s1.h5 s2.h5 -o k.h5
ok '... in any order, the same bytes' cmp j.h5 k.h5
is '... without attributes of shards' \
	"$(attr j.h5 shard) $(attr j.h5 shards) $(attr j.h5 model_sha256)" 'None None None'
is '... with the histories of all' \
	"$(for h in history history:input2 history:input3; do attr j.h5 $h | grep -o 'shard ./.'; done | xargs)" \
	'shard 1/3 shard 2/3 shard 3/3'
is '... and of their Hessians' "$(attr j.h5 history:input2:hessian | sed -n '1s/ .*//p')" hessian-accum
ok 'shards as streams, in files and pipes' bash -c 'dpq-run -q --hessian h.h5 --group 8 --shard 2/3 model.h5 | cat >s2
	tensor-join -q <(dpq-run -q --hessian h.h5 --group 8 --shard 3/3 model.h5) s2 s1.h5 | cat >j
	exmy-pack -q j | exmy-pack -q --unpack -o k.h5
	cat j | tensor-join -q -o l.h5'
ok '... joined, equal the model of one job' py same_but_history l.h5 whole.h5
dpq-run -q --hessian h.h5 --group 8 model.h5 | tee kept.h5 >/dev/null
tensor-join -q kept.h5 -o file.h5
tensor-join -q whole.h5 -o again.h5
ok 'a stream stored in a file becomes an ordinary file' \
	sh -c 'py same_but_history file.h5 whole.h5 && h5diff file.h5 again.h5 &&
		test "$(h5ls kept.h5 | wc -l)" -lt "$(h5ls file.h5 | wc -l)"'
hessian-accum -q --tokens t.h5 --ctx 32 model.h5 | tee kept-h.h5 >/dev/null
hessian-accum -q kept-h.h5 -o one-h.h5
hessian-accum -q --tokens t.h5 --ctx 32 model.h5 | hessian-accum -q -o two-h.h5
ok '... a stream of Hessians, too' h5diff one-h.h5 two-h.h5
ok 'eval-ppl runs the joined model' eval-ppl -q --tokens t.h5 --ctx 32 j.h5
no '... but not a shard' 1 's2.h5: is one of several shards' eval-ppl -q --tokens t.h5 --ctx 32 s2.h5
no '... or the first shard' 1 's1.h5: is one of several shards' eval-ppl -q --tokens t.h5 --ctx 32 s1.h5
for i in 1 2 3; do exmy-pack -q s$i.h5 -o p$i.h5; done
tensor-join -q p1.h5 p3.h5 p2.h5 -o j.h5; exmy-pack -q whole.h5 -o packed.h5
ok 'packed shards' py same_but_history j.h5 packed.h5
for i in 1 2; do run --resume --shard $i/2 model.h5 -o r$i.h5; done
tensor-join -q r1.h5 r2.h5 -o j.h5
ok 'shards made with --resume' py same_but_history j.h5 whole.h5
SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=2 dpq-run --hessian h.h5 --group 8 \
	--shard auto model.h5 -o auto.h5 2>said
run --shard 2/2 model.h5 -o r2.h5
ok '--shard auto' cmp auto.h5 r2.h5
is '... is printed' "$(head -1 said)" 'dpq-run: shard 2/2, by SLURM_ARRAY_TASK_ID=2, 2 tasks from 1'
run --shard 2/2 --layers '*/0/*' model.h5 -o x.h5
is 'a shard without any selected layer' \
	"$(h5ls -r x.h5 | grep -c codes) $(h5ls -r x.h5 | grep -c q_proj/weight)" '0 2'

# --- whole models ---
run --layers '*/[01]/*' model.h5 -o a.h5; run --layers '*/2/*' model.h5 -o b.h5; run --layers '*/3/*' model.h5 | cat >c
tensor-join -q a.h5 b.h5 c -o j.h5
ok 'whole models, each with other quantized layers' py same_but_history j.h5 whole.h5
run --layers '*mlp*' model.h5 -o m.h5; run --layers '!*mlp*' model.h5 -o n.h5
tensor-join -q n.h5 m.h5 model.h5 whole.h5 -o j.h5
ok '... other layers of the same blocks, an unquantized model and a completely quantized one' \
	py same_but_history j.h5 whole.h5
l=/model/layers/2/mlp
warns 'layers that are quantized in no input' \
	"7 of 28 linear layers are quantized in no input: $l/down_proj, $l/gate_proj, $l/up_proj, \.\.\.\$" \
	tensor-join a.h5 c -o j.h5
tensor-join -q model.h5 extra.h5 -o j.h5
ok 'a member that only one input has' py same_but_history j.h5 extra.h5
tensor-join -q whole.h5 -o j.h5; ok 'one input' py same_but_history j.h5 whole.h5
for l in a b; do dpq-run -q --compensate none --group 4 --layers /$l layers.h5 -o l$l.h5; done
dpq-run -q --compensate none --group 4 layers.h5 -o l.h5; tensor-join -q la.h5 lb.h5 -o j.h5
ok 'layers without a config' py same_but_history j.h5 l.h5

# --- errors ---
join() { tensor-join -q "$@" -o bad.h5; }
no 'a missing shard' 1 's1.h5: is shard 1 of 3, shard 2 is missing, expected all' join s1.h5 s3.h5
no 'a shard given twice' 1 's2.h5: is shard 2 of 3, and so is' join s1.h5 s2.h5 s2.h5 s3.h5
dpq-run -q --hessian h.h5 --group 4 --shard 2/3 model.h5 -o x.h5
no 'a shard made by another command' 1 "x.h5: was made by '.*--group 4', s1.h5 by '.*--group 8'" join s1.h5 x.h5 s3.h5
run --shard 2/3 other.h5 -o x.h5
no 'a shard of another model' 1 'x.h5: is a shard of another model than s1.h5' join s1.h5 x.h5 s3.h5
no 'a shard and a whole model' 1 'whole.h5: is not a shard' join s1.h5 s2.h5 s3.h5 whole.h5
dpq-run -q --compensate none --group 8 --layers '*/2/*' model.h5 -o x.h5
no 'a layer quantized twice, differently' 1 'x.h5: .*/2/mlp/down_proj: is quantized, but differently from b.h5' \
	join a.h5 b.h5 x.h5
no 'codes and packed codes' 1 'packed.h5: .*is quantized, but differently from whole.h5' join whole.h5 packed.h5
run --layers '*/0/*' other.h5 -o x.h5
no 'a weight of another model' 1 \
	'x.h5: /model/layers/2/mlp/up_proj: is of another model, its weight differs from a.h5' join a.h5 x.h5
for v in norm:/model/layers/2/input_layernorm/weight attribute:/model/layers/2/input_layernorm \
	embedding:/model/embed_tokens config:/config; do
	no "another ${v%%:*}" 1 "${v%%:*}.h5: ${v#*:}: is of another model" join a.h5 "${v%%:*}.h5"
done
no 'another number of blocks' 1 'three.h5: is of another model than a.h5: it has 6 parts, expected 7' join a.h5 three.h5
no 'a model that lacks a block' 1 '/model/layers/3: 7 linear layers of this block are in no input' join three.h5
no '... as a stream, which is cut short' 1 'the stream ends after 5 of 6 parts' \
	sh -c 'tensor-join -q three.h5 2>said | dpq-run -q --compensate none -o bad.h5'
py other_shape
dpq-run -q --compensate none --group 4 x.h5 -o y.h5
no 'a layer of another shape' 1 'y.h5: /a: has codes of another shape than the weight of layers.h5' \
	tensor-join -q layers.h5 y.h5 -o bad.h5
for k in t h; do no "$k.h5, which is not a model" 1 "$k.h5: holds an? '.*', expected 'model'" join a.h5 $k.h5; done
head -c 20000 c >short
no 'a stream cut short' 1 'short: (is cut short|the stream ends)' join a.h5 short
no 'shards of a file without a config' 1 'layers.h5: has no /config' \
	dpq-run -q --compensate none --shard 1/2 layers.h5 -o bad.h5
for i in 1 2 3 4; do run --shard $i/5 model.h5 -o s$i.h5; done
warns 'more shards than blocks' 'model.h5: --shard 5/5 has no block: there are 4' run --shard 5/5 model.h5 -o s5.h5
ok '... joined, equal the model of one job' sh -c 'tensor-join -q s5.h5 s1.h5 s2.h5 s3.h5 s4.h5 -o j.h5 &&
	py same_but_history j.h5 whole.h5'
is 'errors leave no file' "$(find . -name bad.h5 -o -name '.ptq*')" ''
done_testing
