#!/bin/sh
# eval-compare.t -- two methods over draws: against numpy, against eval-ppl --paired, by hand; bad records
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make
run() { eval-ppl -q --tokens t.h5 --ctx 20 --convention bos "$@"; }
# by hand: two draws of three windows, differences 1 2 3 and 2 4 6 (tests/two_way.c)
eval-compare hand-1.h5 hand-2.h5 zero.h5 zero.h5 >a
is 'the columns' "$(head -1 a | xargs)" 'number mean se df se_draws se_windows quantile separated draws windows'
is 'without a reference two numbers' "$(cut -f1 a | xargs)" 'number nll nll_delta'
is 'by hand: Δ = 3, A = 6, B = 4.5, R = 0.5' "$(sed -n 3p a | cut -f2-6,8- | xargs)" \
	'3 1.29099 2.16216 1 0.866025 no 2 3'
is 'one draw has no verdict' "$(eval-compare hand-1.h5 zero.h5 | sed -n 3p | xargs)" \
	'nll_delta 2 0.57735 - - 0.57735 - - 1 3'
is 'a method and itself: no difference, no verdict' "$(eval-compare hand-?.h5 hand-?.h5 | sed -n 3p | xargs)" \
	'nll_delta 0 0 - 0 0 - - 2 3'
is 'another confidence' "$(eval-compare --confidence 0.5 hand-1.h5 hand-2.h5 zero.h5 zero.h5 | sed -n 3p | cut -f8)" yes

# real records: five draws of a method and of its base; windows of unequal lengths
ok 'calibrated draws' sh -c 'for k in 1 2 3 4 5; do
	hessian-accum -q --tokens c.h5 --ctx 20 --convention bos --limit 200 --random-windows $k "$1" -o h.h5 || exit
	for o in none full; do
		dpq-run -q --group 8 --storage uint3 --reorder $o --hessian h.h5 "$1" 2>/dev/null |
			eval-ppl -q --tokens t.h5 --ctx 20 --convention sliding --reference "$1" -o $o-$k.h5 \
				>$o-$k.tsv || exit
	done
done' sh "$model"
eval-compare full-?.h5 none-?.h5 >a
warns 'draws in another order' \
	'full-1.h5 and none-2.h5 have calibration windows of different seeds \(1 and 2\)' \
	eval-compare full-1.h5 full-2.h5 none-2.h5 none-1.h5
is 'all numbers' "$(cut -f1 a | xargs)" 'number nll nll_rise kl nll_delta kl_delta'
ok '... are those of numpy' py numbers
is '... windows of unequal numbers of targets' "$(py lengths)" '19 1'
is '... a verdict on differences only' \
	"$(cut -f8 a | sed 's/yes\|no/verdict/' | xargs)" 'separated - verdict - verdict verdict'
for o in full none; do cp $o-1.h5 $o-copy.h5; done
ok 'copies of a draw' sh -c 'eval-compare full-1.h5 full-2.h5 full-copy.h5 none-1.h5 none-2.h5 none-copy.h5 2>said >x'
is '... are found, and have no verdict' "$(grep -c 'draws 1 and 3 (full-1.h5, full-copy.h5) do not differ' said) \
$(cut -f8 x | xargs)" '1 separated - - - - -'
ok '... of one side' sh -c 'eval-compare full-1.h5 full-2.h5 none-1.h5 none-copy.h5 2>said >x'
is '... have no verdict, either' "$(grep -c 'draws 1 and 2 (none-1.h5, none-copy.h5) do not differ' said) \
$(cut -f8 x | xargs)" '1 separated - - - - -'
py generated
is '... and equal answers' "$(eval-compare gen-?.h5 base-1.h5 base-1.h5 2>said | sed -n '$p' | cut -f8)" no
py generated calibrated
is '... of calibrated models, which are generated' \
	"$(eval-compare gen-?.h5 gen-?.h5 2>said >x; grep -c 'draws 1 and 2 (gen-1.h5, gen-2.h5) do not differ' said)" 1
for k in 1 2; do	# no draw changes a model that is not calibrated
	for s in 2 3; do
		dpq-run -q --group 8 --storage uint$s --compensate none "$model" |
			run --reference "$model" -o rtn$s-$k.h5 >x
	done
done
is 'equal numbers without a calibration: a verdict' \
	"$(eval-compare rtn2-?.h5 rtn3-?.h5 2>said | sed -n '$p' | cut -f8) $(grep -c . said)" 'yes 0'
py inherited
is '... with the calibration of the model that both start from' \
	"$(eval-compare of-1.h5 of-2.h5 of-rtn.h5 of-rtn.h5 2>said | cut -f8 | xargs) $(grep -c . said)" \
	'separated - no - no no 0'
is '... not if they have no other' "$(eval-compare of-rtn.h5 of-rtn.h5 of-rtn.h5 of-rtn.h5 2>&1 >x |
	grep -c 'do not differ')" 1
eval-compare --json full-?.h5 none-?.h5 >j
ok 'JSON' py as_json
eval-compare full-?.h5 none-?.h5 -o r.h5 >x
ok '-o does not change what is printed' cmp x a
ok 'the result' py result
dpq-run -q --group 8 --storage uint3 --reorder full --hessian h.h5 "$model" 2>/dev/null |
	eval-ppl -q --tokens t.h5 --ctx 20 --convention sliding --reference "$model" --paired none-5.h5 >p
eval-compare full-5.h5 none-5.h5 >x
ok 'one draw: mean and se of eval-ppl --paired' awk -F '\t' 'NR == FNR { v[$1] = $2; next }
	function far(a, b) { return (a - b) ^ 2 > 1e-6 * b ^ 2 }
	$1 ~ /delta/ && (far($2, v["paired_" $1]) || far($3, v["paired_" $1 "_se_windows"])) { exit 1 }' p x

# records of questions, which count as windows
eval-compare right-?.h5 base-?.h5 >a
is 'questions: the numbers' "$(cut -f1 a | xargs)" 'number acc acc_norm acc_delta acc_norm_delta'
ok '... are those of numpy' py questions_as
eval-compare --tasks 'arc*' right-?.h5 base-?.h5 >a
ok 'questions of some tasks' py questions_as right base arc
eval-compare --tasks '!arc*' base-?.h5 right-?.h5 >a
ok '... without others, names of variable length' py questions_as base right piqa
warns 'a pattern without a task' "right-1.h5: --tasks 'boolq' matches no task" \
	eval-compare --tasks boolq --tasks piqa right-?.h5 base-?.h5
no '... and no other pattern' 1 'right-1.h5: has no question of a task that --tasks selects' \
	eval-compare --tasks boolq right-1.h5 base-1.h5
no '... of a text' 1 'hand-1.h5: is of a text, but --tasks needs records of questions' \
	eval-compare --tasks piqa hand-1.h5 zero.h5
no '... unknown tasks' 1 'less.h5: /question/task: is missing, expected a dataset' \
	eval-compare --tasks piqa less.h5 less.h5
no '... too few' 1 'few-tasks.h5: /question/task: is not 40 texts' eval-compare --tasks piqa few-tasks.h5 few-tasks.h5
no '... numbers' 1 'numbers.h5: /question/task: is not 40 texts' eval-compare --tasks piqa numbers.h5 numbers.h5
printf '{"task": "a", "context": "%s", "choices": [" a", " the end", " dog"], "gold": 1}\n' \
	I We They A The Once >q.jsonl
model-import -q "$top/data/prose" -o prose.h5
for format in int2 int3; do
	dpq-run -q --group 32 --storage $format --compensate none prose.h5 -o $format.h5
	eval-choice -q --questions q.jsonl --reference prose.h5 $format.h5 -o $format.choice >x
done
eval-choice -q --questions q.jsonl --reference prose.h5 --paired int2.choice int3.h5 >p
eval-compare int3.choice int2.choice >x
ok '... one draw: mean and se of eval-choice --paired' awk -F '\t' '
	NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i }
	NR == FNR { if ($1 == "all") for (i = 1; i <= NF; i++) v[name[i]] = $i; next }
	function far(a, b) { return (a - b) ^ 2 > 1e-8 * b ^ 2 + 1e-14 }
	$1 ~ /delta/ { n++; if (far($2, v["paired_" $1]) || far($3, v["paired_" $1 "_se"])) exit 1 }
	END { exit n < 5 }' p x
eval-choice -q --questions q.jsonl --reference int2.h5 int3.h5 -o another.choice >x
eval-choice -q --questions q.jsonl int3.h5 -o plain.choice >x
no '... another reference' 1 'log_likelihood_of_reference: is of another reference: choice 0' \
	eval-compare int3.choice another.choice
no '... none' 1 'plain.choice: /question/agreement: is missing, unlike in int3.choice' \
	eval-compare int3.choice plain.choice
no '... other questions' 1 'others.h5: has other questions than right-1.h5' eval-compare right-1.h5 others.h5
no '... fewer' 1 'less.h5: has 39 questions, right-1.h5 has 40: expected records with the same --limit' \
	eval-compare right-1.h5 less.h5
no '... of unknown questions' 1 'unknown.h5: attribute questions_sha256 is missing' eval-compare right-1.h5 unknown.h5
eval-choice -q --questions q.jsonl --reference prose.h5 --bos yes int2.h5 -o bos.choice >x
warns '... asked in another way' 'bos.choice was made with --bos yes, and int3.choice with --bos auto' \
	eval-compare int3.choice bos.choice
warns '... also by --paired' 'int2.choice was made with --bos auto, and q.jsonl with --bos yes' \
	eval-choice --questions q.jsonl --reference prose.h5 --bos yes --paired int2.choice int3.h5
warns '... in another arithmetic' \
	'int2.choice was made with --bos auto, and q.jsonl with --bos auto --compute-type bf16' \
	eval-choice --questions q.jsonl --compute-type bf16 --paired int2.choice int3.h5
no '... and a text' 1 'right-1.h5: is of questions, unlike hand-1.h5: expected records of one tool' \
	eval-compare hand-1.h5 right-1.h5
no '... and the other way round' 1 'hand-1.h5: is of no questions, unlike right-1.h5' eval-compare right-1.h5 hand-1.h5
no 'not a record' 1 'r.h5: is not a record of eval-ppl, eval-choice or eval-generate' eval-compare r.h5 r.h5
cp hand-1.h5 kept.h5
no '-o names a record that is read' 1 'kept.h5: is an input \(result\), the result would destroy it' \
	eval-compare kept.h5 zero.h5 -o kept.h5
ok '... which stays' cmp kept.h5 hand-1.h5

no 'an odd number of records' 2 '3 records, expected those of a method' eval-compare hand-1.h5 hand-2.h5 zero.h5
no 'no record' 2 '0 records' eval-compare
no 'other targets' 1 'other.h5: /target: differs from that of hand-1.h5' eval-compare hand-1.h5 other.h5
no 'other windows' 1 'moved.h5: /window: differs from that of hand-1.h5' eval-compare hand-1.h5 moved.h5
no 'fewer targets' 1 'short.h5: /target: has 5 targets, hand-1.h5 has 6: expected records with the same --ctx' \
	eval-compare hand-1.h5 short.h5
no 'windows in another order' 1 'back.h5: /window: target 2 has 0, expected windows in their order' \
	eval-compare back.h5 hand-1.h5
no 'a record of version 1.0' 1 'old.h5: /window' eval-compare old.h5 hand-1.h5
run "$model" -o plain.h5 >x
run "$model" --reference "$model" -o itself.h5 >x
no 'a record without a reference' 1 'plain.h5: /nll_of_reference: is missing, unlike in itself.h5' \
	eval-compare itself.h5 plain.h5
no '... and the other way round' 1 'itself.h5: /nll_of_reference: is present, unlike in plain.h5' \
	eval-compare plain.h5 itself.h5
py another
no 'another reference' 1 'another.h5: /nll_of_reference: is of another reference: target 0' \
	eval-compare itself.h5 another.h5
py not_finite
for r in nll_of_target:plain kl:itself; do
	no "${r%:*} that is not finite" 1 "nan-${r#*:}.h5: /${r%:*}: number 1 is nan, expected a finite one" \
		eval-compare nan-${r#*:}.h5 ${r#*:}.h5
done
no '... in eval-ppl --paired' 1 'nan-plain.h5: /nll_of_target: number 1 is nan' run "$model" --paired nan-plain.h5
no 'a model' 1 "llama-gqa.h5: .*'model'.*'result'" eval-compare "$model" "$model"
no 'a confidence of 1' 2 '--confidence' eval-compare --confidence 1 hand-1.h5 zero.h5

done_testing
