#!/bin/sh
# plan.t -- dpq-run --plan: the lines of a plan are options of the layers that they match
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make
cat part0 part1 >plain.stream
hessian-accum -q --tokens tokens.h5 --ctx 50 "$model" -o hess.h5
gar-order --group 16 hess.h5 -o order.h5
plan() { printf '%s\n' "$@" >plan; }
same() { py same_layers "$@"; }
history() { py attr "$1" / history | head -n 1; }
run() { dpq-run -q --plan plan "$@" -o out.h5; }

# one line for all layers has the effect of the option
for pair in 'group=32|--group 32' 'storage=int5 group=channel|--storage int5 --group channel' \
	'group=tensor|--group tensor' \
	'compensate=none|--compensate none' 'compute=e4m3fn round-first=yes|--compute e4m3fn --round-first yes' \
	'recipe=inc compute=e4m3ieee|--recipe inc --compute e4m3ieee' 'static-groups=yes|--static-groups' \
	'damp=0.5|--damp 0.5' \
	'scale-search=minmax ties=away storage=e2m1|--scale-search minmax --ties away --storage e2m1' \
	"compute=e4m3fn top=200 saturate=300 scale8=channel pow2-scale=no|\
--compute e4m3fn --top 200 --saturate 300 --scale8 channel --pow2-scale no" \
	'act-format=int8 act-mode=dynamic-token|--act-format int8 --act-mode dynamic-token'; do
	plan "* ${pair%|*}"
	# shellcheck disable=SC2086
	dpq-run -q --hessian hess.h5 --group 16 ${pair#*|} "$model" -o option.h5
	run --hessian hess.h5 --group 16 "$model"
	ok "* ${pair%|*}: as ${pair#*|}" same option.h5 out.h5
done
plan '* static-groups=no group=64'
dpq-run -q --hessian hess.h5 "$model" --group 64 -o option.h5
run --hessian hess.h5 --static-groups "$model"
ok 'a line that turns a flag off' same option.h5 out.h5

# other settings for other layers: each as in a separate run
plan '# all but two kinds' '*	 compensate=none' \
	'*/down_proj  storage=uint8 group=channel compensate=both # as it is' '' \
	'/model/layers/1/*/v_proj compute=e4m3fn compensate=storage' '*/o_proj keep' \
	'*/layers/1/*/o_proj storage=nf4 damp=0.1 compensate=both'
run --hessian hess.h5 --group 32 "$model"
dpq-run -q --hessian hess.h5 --compensate none --group 32 "$model" -o rtn.h5
dpq-run -q --hessian hess.h5 --storage uint8 --group channel "$model" -o down.h5
dpq-run -q --hessian hess.h5 --group 32 --compute e4m3fn --compensate storage "$model" -o v.h5
dpq-run -q --hessian hess.h5 --group 32 --storage nf4 --damp 0.1 "$model" -o o.h5
ok 'the first line' same rtn.h5 out.h5 '*[qk]_proj' '*/gate_proj' '*/up_proj' '*/layers/0/*/v_proj'
ok 'a line for some layers' same down.h5 out.h5 '*/down_proj'
ok 'a line for one layer' same v.h5 out.h5 'model/layers/1/*/v_proj'
ok 'keep' same "$model" out.h5 'model/layers/0/*/o_proj'
ok 'a later line overrides keep' same o.h5 out.h5 'model/layers/1/*/o_proj'
is 'the plan in the history' "$(history out.h5 | sed 's/.*--group/--group/')" \
	"--group 32 plan:'* compensate=none; */down_proj storage=uint8 group=channel compensate=both; \
/model/layers/1/*/v_proj compute=e4m3fn compensate=storage; */o_proj keep; \
*/layers/1/*/o_proj storage=nf4 damp=0.1 compensate=both'"
dpq-run -q --plan plan --hessian hess.h5 --group 32 -j 3 "$model" -o three.h5
ok 'the same bytes with other threads' cmp out.h5 three.h5
dpq-run -q --plan plan --hessian hess.h5 --group 32 <"$model" | exmy-pack -q | exmy-pack -q --unpack -o stream.h5
ok 'a stream' same out.h5 stream.h5
ok 'eval-ppl runs the result' eval-ppl -q --tokens tokens.h5 --ctx 50 out.h5

# order of lines: the last one counts
plan '*/down_proj group=16' '* group=32'
run --hessian hess.h5 "$model"
dpq-run -q --hessian hess.h5 --group 32 "$model" -o option.h5
ok 'a later line overrides an earlier one' same option.h5 out.h5
warns '... with a warning' 'plan:1: without effect here: group' \
	dpq-run --plan plan --hessian hess.h5 "$model" -o out.h5
plan '* compensate=none damp=0.2'
warns 'an option of a line without effect' 'plan:1: without effect here: damp' dpq-run --plan plan "$model" -o out.h5
plan '*/down_proj compensate=both'
run --compensate none --damp 0.3 --hessian hess.h5 "$model"
is 'an option of the command line with effect only through a line: no warning, in the history' "$(history out.h5)" \
	"dpq-run $(cat "$top/VERSION") --reorder gar --compensate none --damp 0.3 plan:'*/down_proj compensate=both'"
dpq-run -q --hessian hess.h5 --damp 0.3 "$model" -o option.h5
ok '... and it is used there' same option.h5 out.h5 '*/down_proj'
plan '*/down_proj compensate=none'
warns 'an option without effect anywhere' 'without effect here: --round-first \(--compute none\)' \
	dpq-run --plan plan --hessian hess.h5 --round-first yes "$model" -o out.h5
warns 'e4m3, a format that resembles FP8' 'plan:1: --storage: e4m3 is FPE2M2' \
	sh -c 'echo "* storage=e4m3" >plan; dpq-run --plan plan --compensate none "$0" -o out.h5' "$model"

# other inputs of a layer: the groups of its order, its Hessian
plan '*/down_proj group=64 compensate=none'
ok 'an order of other groups for a layer without an order' run --hessian hess.h5 --order order.h5 --group 16 "$model"
plan '*/down_proj group=64'
no 'an order of other groups' 1 'order.h5: was made with --group 16, /model/layers/0/mlp/down_proj has --group 64' \
	run --hessian hess.h5 --order order.h5 --group 16 "$model"
plan '*/down_proj compensate=both'
no 'one layer that needs a Hessian' 2 '--hessian FILE is needed .*: /model/layers/0/mlp/down_proj' \
	run --compensate none "$model"
plan '* keep' '*/up_proj compensate=none'
ok 'no Hessian for kept layers' run "$model"
ok '... which are unchanged' same "$model" out.h5 '*/down_proj' '*/self_attn/*'

# models without a configuration
plan 'a group=8' 'b group=24'
run --compensate none plain.h5
dpq-run -q --compensate none --group 8 plain.h5 -o a.h5
dpq-run -q --compensate none --group 24 plain.h5 -o b.h5
ok 'a file of layers: the first line' same a.h5 out.h5 a
ok '... the second line' same b.h5 out.h5 b
plan 'c group=8'
no 'a line that matches no layer' 1 'plan:1: c: matches no layer of plain.h5' run --compensate none plain.h5
is '... before anything is written' "$(dpq-run -q --plan plan --compensate none plain.h5 2>err | wc -c)" 0
is '--layers that selects no layer: nothing is written' \
	"$(dpq-run -q --compensate none --layers c plain.h5 2>err | wc -c)" 0
no '... and a message' 1 'plain.h5: holds no linear layer that --layers selects' \
	dpq-run --compensate none --layers c plain.h5
no '... in a model with a configuration' 1 'holds no linear layer that --layers selects' \
	dpq-run --compensate none --layers c "$model"
plan 'a group=8'
ok 'a plan with --layers' run --compensate none --layers a plain.h5

# messages of errors have file and line
bad() { plan '# first' "$1"; no "$1" "${3:-2}" "^dpq-run: plan:2: $2" run --compensate none "$model"; }
bad '*/nothing group=8' '\*/nothing: matches no layer of .*llama-gqa.h5' 1
bad '* group=x' "--group: 'x' is neither a number of columns"
bad '* storage=uint9' "--storage: there is no format 'uint9'"
bad '* storage=' "--storage: there is no format ''"
bad '* damp=-1' "--damp: '-1' is not a number from 0 to 1000000"
bad '* compensate=all' "--compensate: 'all' is not one of both, storage, none"
bad '* static-groups=perhaps' "--static-groups: 'perhaps' is not one of no, yes"
bad '* act-mode=static-tensor' '--act-mode needs a format'
bad '* compute=e4m3fn top=500' '--top: 500 is not a number from 1 to 448'
bad '* compute=uint8' '--compute: uint8 has a zero point'
bad '* hessian=hess.h5' 'hessian: is not an option of a layer, expected one of storage, group, .*damp$'
bad '* order=order.h5' 'order: is not an option of a layer'
bad '* layers=a' 'layers: is not an option of a layer'
bad '* plan=plan' 'plan: is not an option of a layer'
bad '* speed=3' 'speed: is not an option, expected one of'
bad '*/down_proj' '\*/down_proj: is alone in a line, expected option=value or keep'
bad '* group' "'group' is neither option=value nor keep"
bad '* keep group=8' 'keep cannot be combined with option=value'
bad '* group=8 keep' 'keep cannot be combined with option=value'
no 'a missing plan' 1 'nowhere: cannot open' dpq-run --plan nowhere --compensate none "$model"
printf '\357\273\277*/down_proj group=8\n' >plan
ok 'a byte order mark is no part of the first pattern' run --compensate none "$model"
printf '\357\273\277' >plan
no '... alone it is an empty plan' 1 'plan: is empty' run --compensate none "$model"
printf '* group=8\0\n' >plan
no 'a plan with a NUL byte' 1 'plan: holds a NUL byte' run --compensate none "$model"
ok 'a bad plan leaves no result' \
	sh -c 'plan() { echo "* group=x" >plan; }; plan; rm -f bad.h5;
		! dpq-run -q --plan plan --compensate none "$0" -o bad.h5 2>err && [ ! -e bad.h5 ]' "$model"
: >plan
no 'an empty plan' 1 'plan: is empty, expected lines' run --compensate none "$model"
echo '# no layer differs' >plan
run --compensate none "$model"
dpq-run -q --compensate none "$model" -o option.h5
ok 'a plan of comments changes nothing' same option.h5 out.h5
printf '\r\n  # nothing\r\n* \t group=8\r\n' >plan
run --compensate none "$model"
dpq-run -q --compensate none --group 8 "$model" -o option.h5
ok 'blanks, tabs, CR LF' same option.h5 out.h5

# The range of an option is checked even if no layer uses it.
plan '* keep'
for option in top saturate; do
	no "--$option out of range" 2 "^dpq-run: --$option: 500 is not a number from 1 to 448" \
		dpq-run --plan plan --compute e4m3fn --$option 500 "$model"
done

# An option of the command line that has no effect on any layer because of the plan is named in a warning.
plan '* compensate=none'
warns 'damp under a plan that rounds' 'without effect here: .*--damp' \
	dpq-run --plan plan --hessian hess.h5 --damp 3 "$model" -o idle.h5
is '... is not in the history' "$(history idle.h5 | grep -c -- --damp)" 0
plan '* compute=none'
warns 'scale8 under a plan without arithmetic' 'without effect here: .*--scale8' \
	dpq-run --plan plan --compensate none --compute e4m3fn --scale8 channel "$model" -o idle.h5
is '... is not in the history' "$(history idle.h5 | grep -c -- --scale8)" 0
# without a configuration a pattern may match a layer that --layers leaves out, in a file and in a stream
plan 'b compensate=none'
for input in plain.h5 plain.stream; do
	ok "a plan with a layer outside --layers, $input" run --compensate none --layers a $input
done
plan '* storage=int4 storage=int8'
no 'an option twice in one line' 2 'plan:1: storage: is given twice in one line' \
	dpq-run --plan plan --compensate none "$model"
done_testing
