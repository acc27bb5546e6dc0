#!/bin/sh
# shards.t -- shards: their attributes, which sums are refused, the order of a sum, --shard auto
#
# --shard auto is tested with the environments of several launchers.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
model=$top/tests/ref/llama-gqa.h5
py make "$model"
run() { hessian-accum -q --tokens t.h5 --ctx 32 "$@"; }
attr() { py attr "$1" / "$2"; }
for i in 1 2 3; do run --shard $i/3 "$model" -o s$i.h5; done
run "$model" -o whole.h5

# --- attributes of a shard ---
is 'its number and the number of shards' "$(attr s2.h5 shard) $(attr s2.h5 shards)" '2 3'
pieces() { py pieces "$1"; }
is 'the digest of the model' "$(attr s2.h5 model_sha256)" "$(pieces "$model")"
is 'the digest of the tokens' "$(attr s2.h5 tokens_sha256)" "$(pieces t.h5)"
is 'a complete result has only the digest of the model' \
	"$(attr whole.h5 shard) $(attr whole.h5 shards) $(attr whole.h5 model_sha256)" "None None $(pieces "$model")"
# a file of more than one chunk
head -c 40000000 /dev/zero >zeros
py large
hessian-accum -q --shard 1/9 large.h5 -o large-1.h5
is 'the digest of large activations, in chunks' "$(attr large-1.h5 model_sha256)" "$(pieces large.h5)"
rm -f zeros large.h5

# --- sums ---
hessian-accum -q s1.h5 s2.h5 s3.h5 -o a.h5
for order in '3 2 1' '2 3 1'; do
	# shellcheck disable=SC2046
	hessian-accum -q $(printf 's%s.h5 ' $order) -o b.h5
	ok "the same bytes of the sum in the order $order" cmp a.h5 b.h5
done
ok 'a shard from a pipe' sh -c 'cat s1.h5 | hessian-accum -q s3.h5 - s2.h5 -o b.h5 && cmp a.h5 b.h5'
is 'the sum has no attributes of shards' \
	"$(attr a.h5 shard) $(attr a.h5 shards) $(attr a.h5 model_sha256) $(attr a.h5 tokens_sha256)" \
	"None None $(pieces "$model") $(pieces t.h5)"
ok '... and can be added to others' hessian-accum -q a.h5 whole.h5 -o b.h5
is 'histories are in the order of the shards' \
	"$(attr b.h5 history | grep -o 'shard ./.')$(attr a.h5 history:input2 |
	grep -o 'shard ./.')$(attr a.h5 history:input3 | grep -o 'shard ./.')" 'shard 1/3shard 2/3shard 3/3'
sum() { hessian-accum -q "$@" -o bad.h5; }
no 'a missing shard' 1 's1.h5: is shard 1 of 3, shard 2 is missing, expected all' sum s1.h5 s3.h5
no 'the last shard is missing' 1 's1.h5: is shard 1 of 3, shard 3 is missing' sum s2.h5 s1.h5
no 'only one shard' 1 's2.h5: is shard 2 of 3, shard 1 is missing' sum s2.h5
no 'a shard given twice, another missing' 1 's2.h5: is shard 2 of 3, and so is ' sum s1.h5 s2.h5 s2.h5
no 'a shard given twice, none missing' 1 'is shard 1 of 3, and so is ' sum s1.h5 s1.h5 s2.h5 s3.h5
run --shard 2/2 "$model" -o half.h5
no 'shards of two numbers of shards' 1 'half.h5: is shard 2 of 2, s1.h5 is shard 1 of 3' sum s1.h5 half.h5 s3.h5
no 'a shard and a complete result' 1 'whole.h5: is not a shard, s1.h5 is one' sum s1.h5 s2.h5 s3.h5 whole.h5
no 'a complete result and a shard' 1 's1.h5: is a shard, whole.h5 is not' sum whole.h5 s1.h5
hessian-accum -q --tokens t.h5 --ctx 16 --shard 2/3 "$model" -o x.h5
no 'another --ctx' 1 "x.h5: was made by '.* --ctx 16', s1.h5 by '.* --ctx 32'" sum s1.h5 x.h5 s3.h5
run --convention bos --shard 2/3 "$model" -o x.h5
no 'another convention' 1 "x.h5: was made by '.*--convention bos', s1.h5 by" sum s1.h5 x.h5 s3.h5
hessian-accum -q --tokens other-tokens.h5 --ctx 32 --shard 2/3 "$model" -o x.h5
no 'other tokens' 1 'x.h5: is a shard of other tokens than s1.h5' sum s1.h5 x.h5 s3.h5
run --shard 2/3 other-model.h5 -o x.h5
no 'another model that differs in one number' 1 'x.h5: is a shard of another model than s1.h5' sum s1.h5 x.h5 s3.h5
run --shard 2/3 - <"$model" -o x.h5
ok 'a model from a file on standard input' sh -c 'hessian-accum -q s1.h5 x.h5 s3.h5 -o b.h5 && cmp a.h5 b.h5'
# shellcheck disable=SC2002
cat "$model" | run --shard 2/3 -o x.h5
no 'a shard without the digest of its model' 1 'x.h5: has no attribute model_sha256, s1.h5 has' sum s1.h5 x.h5 s3.h5
for v in 0 1.5 4 -1; do
	py "shard($v)"
	no "shard $v of 3" 1 'x.h5: /: attributes shard and shards are' sum x.h5 s2.h5 s3.h5
done
for i in 1 2; do hessian-accum -q --ctx 16 --shard $i/2 act.h5 -o a$i.h5; done
ok 'shards of activations' \
	sh -c 'hessian-accum -q a1.h5 a2.h5 -o x.h5 && hessian-accum -q a2.h5 a1.h5 -o y.h5 && cmp x.h5 y.h5'
no '... one of them missing' 1 'is shard 1 of 2, shard 2 is missing' sum a1.h5
is 'refused sums leave no file' "$(ls bad.h5 2>/dev/null)" ''

# --- auto ---
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP \
	SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE
A=SLURM_ARRAY_TASK_ C=OMPI_COMM_WORLD_
auto() { env "$@" hessian-accum --tokens t.h5 --ctx 32 --shard auto "$model" -o x.h5; }
# chooses NAME I/N VARIABLES...
chooses() {
	what=$1 shard=$2; shift 2
	rm -f x.h5
	said=$(auto "$@" 2>&1)
	is "auto: $what" \
		"$(echo "$said" | grep -o "^hessian-accum: shard [0-9/]*, by ")" "hessian-accum: shard $shard, by "
}
chooses 'an array' 2/3 ${A}ID=2 ${A}COUNT=3 ${A}MIN=1 ${A}MAX=3 ${A}STEP=1
run --shard 2/3 "$model" -o y.h5
ok '... has the same bytes as --shard 2/3' cmp x.h5 y.h5
chooses 'an array from 0' 1/3 ${A}ID=0 ${A}COUNT=3 ${A}MIN=0
chooses 'an array with a step' 3/3 ${A}ID=14 ${A}COUNT=3 ${A}MIN=10 ${A}MAX=14 ${A}STEP=2
chooses 'an array of one' 1/1 ${A}ID=7 ${A}COUNT=1 ${A}MIN=7 ${A}MAX=7 ${A}STEP=1
chooses 'processes of srun' 3/4 SLURM_PROCID=2 SLURM_NTASKS=4
chooses 'Open MPI' 4/4 ${C}RANK=3 ${C}SIZE=4
chooses 'PMI' 1/2 PMI_RANK=0 PMI_SIZE=2
chooses 'an array has precedence over processes' 2/3 \
	${A}ID=2 ${A}COUNT=3 ${A}MIN=1 ${A}MAX=3 SLURM_PROCID=0 SLURM_NTASKS=8
chooses 'srun and PMI that agree' 3/4 SLURM_PROCID=2 SLURM_NTASKS=4 PMI_RANK=2 PMI_SIZE=4
is '-q prints nothing' \
	"$(env PMI_RANK=0 PMI_SIZE=2 hessian-accum -q --tokens t.h5 --ctx 32 --shard auto "$model" -o x.h5 2>&1)" ''
env PMI_RANK=0 PMI_SIZE=2 hessian-accum -q --tokens t.h5 --ctx 32 "$model" -o x.h5
ok 'without --shard the result is complete' cmp x.h5 whole.h5
rm -f x.h5
no 'auto: no launcher' 2 'no launcher gives a rank and a size' auto A=1
no 'auto: a size without a rank' 2 'SLURM_NTASKS is set, SLURM_PROCID is not' auto SLURM_NTASKS=4
no 'auto: a rank without a size' 2 'PMI_RANK is set, PMI_SIZE is not' auto PMI_RANK=1
no 'auto: an array without its first number' 2 "${A}ID is set, ${A}MIN is not" auto ${A}ID=2 ${A}COUNT=3
no 'auto: an array without its size' 2 "${A}ID is set, ${A}COUNT is not" auto ${A}ID=2 ${A}MIN=1
no 'auto: an array with gaps' 2 'the array has gaps: 3 tasks from 1 to 7; .*--array=1-3' \
	auto ${A}ID=1 ${A}COUNT=3 ${A}MIN=1 ${A}MAX=7 ${A}STEP=1
no 'auto: ... without its last number' 2 "${A}ID is 7, expected one of 3 numbers" \
	auto ${A}ID=7 ${A}COUNT=3 ${A}MIN=1
no 'auto: a number between the steps' 2 "${A}ID is 11" auto ${A}ID=11 ${A}COUNT=3 ${A}MIN=10 ${A}MAX=14 ${A}STEP=2
no 'auto: a number before the first' 2 "${A}ID is 0" auto ${A}ID=0 ${A}COUNT=3 ${A}MIN=1 ${A}MAX=3
no 'auto: a step of 0' 2 "${A}STEP is 0" auto ${A}ID=1 ${A}COUNT=3 ${A}MIN=1 ${A}STEP=0
no 'auto: a rank beyond the size' 2 'SLURM_PROCID is 4, expected one of 4' auto SLURM_PROCID=4 SLURM_NTASKS=4
no 'auto: no tasks' 2 'PMI_SIZE is 0' auto PMI_RANK=0 PMI_SIZE=0
no 'auto: too many' 2 'PMI_SIZE is 99999999' auto PMI_RANK=0 PMI_SIZE=99999999
for v in '' x -1 1.0 ' 1' 99999999999999999999; do
	no "auto: rank '$v'" 2 "PMI_RANK is '$v', expected a whole number" auto PMI_RANK="$v" PMI_SIZE=2
done
no 'auto: a malformed variable of another launcher' 2 'PMI_RANK is' \
	auto SLURM_PROCID=0 SLURM_NTASKS=2 PMI_RANK=x PMI_SIZE=2
no 'auto: launchers that disagree' 2 "SLURM_PROCID gives 1/4, ${C}RANK gives 3/4" \
	auto SLURM_PROCID=0 SLURM_NTASKS=4 ${C}RANK=2 ${C}SIZE=4
no 'auto: processes of a task of an array' 2 "${A}ID gives 2/3, SLURM_PROCID gives 3/8" \
	auto ${A}ID=2 ${A}COUNT=3 ${A}MIN=1 SLURM_PROCID=2 SLURM_NTASKS=8
no 'a word that begins with auto' 2 "shard: 'automatic' is not" run --shard automatic "$model"
is 'these errors leave no file' "$(ls x.h5 2>/dev/null)" ''
# --- shards of a model quantized with other Hessians or orders, and one shard in place of the complete result ---
hessian-accum -q --tokens other-tokens.h5 --ctx 32 "$model" -o other-hessian.h5
gar-order -q --group 8 whole.h5 -o order.h5; gar-order -q --order full whole.h5 -o other-order.h5
quantized() { dpq-run -q --group 8 "$@" "$model"; }
quantized --hessian whole.h5 --order order.h5 --shard 1/2 -o q1.h5
quantized --hessian other-hessian.h5 --order order.h5 --shard 2/2 -o q2.h5
quantized --hessian whole.h5 --order other-order.h5 --shard 2/2 -o q3.h5
no 'shards with other Hessians' 1 'q2.h5: is a shard of other Hessians than q1.h5 .attribute hessian_sha256' \
	tensor-join -q q1.h5 q2.h5 -o q.h5
no 'shards with another order' 1 'q3.h5: is a shard of another order than q1.h5 .attribute order_sha256' \
	tensor-join -q q1.h5 q3.h5 -o q.h5
no 'one shard in place of the model' 1 'q1.h5: is one of several shards, expected a whole model' \
	eval-ppl -q --tokens t.h5 --ctx 32 q1.h5
warns 'gar-order: one shard in place of the Hessian' \
	's1.h5: is shard 1 of 3, a part of the calibration: hessian-accum' \
	gar-order s1.h5 -o o1.h5
cp "$model" m.h5
for t in 'dpq-run --group 8' smooth-scale 'awq-scale --group 8' 'fbq-run --rank 1 --steps 1 --group 8' \
	'tensor-diff -r m.h5'; do
	# shellcheck disable=SC2086
	warns "... ${t%% *}, too" 's1.h5: is shard 1 of 3, a part of the calibration: hessian-accum' \
		$t --hessian s1.h5 "$model" -o q.h5
done
dpq-run -q --compensate none --group 8 m.h5 -o rtn.h5
plan-bits -r m.h5 --by layer --hessian s1.h5 --tokens t.h5 --ctx 32 --target-bits 64 rtn.h5 2>said >x
ok '... plan-bits, too' grep -q 's1.h5: is shard 1 of 3, a part of the calibration' said
no 'one shard of a model to sample from' 1 'q1.h5: is one of several shards, expected a whole model' \
	sample-tokens -q --length 8 q1.h5 -o x.h5
no '... to calibrate on' 1 'q1.h5: is one of several shards, expected a whole model' \
	hessian-accum -q --tokens t.h5 --ctx 32 q1.h5 -o x.h5
done_testing
