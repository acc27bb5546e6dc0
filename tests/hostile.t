#!/bin/sh
# hostile.t -- mistakes of users: numbers, names, roles of files, files of another model, files edited by hand
# Each mistake is refused with one line that says what is wrong, or causes a warning. No wrong result has status 0.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 ASAN_OPTIONS=handle_sigbus=0
mkdir out
printf 'once on\n' >text
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 64 --ctx 8 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 model.h5 -o hessian.h5
gar-order -q --group 4 hessian.h5 -o order.h5
dpq-run -q --compensate none --group 4 model.h5 -o codes.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 --pair model.h5 codes.h5 -o cross.h5
exmy-pack -q codes.h5 -o packed.h5
exmy-sweep --formats int4 --sigma 0.1 -o sweep.h5
eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -o result.h5 >/dev/null
printf '{"task": "t", "context": "once ", "answer": "on", "match": "exact"}\n' >answers.jsonl
printf '{"task": "t", "context": "once ", "choices": ["on", "no one"], "gold": 0}\n' >questions.jsonl
evaluate() { eval-ppl -q --tokens tokens.h5 --ctx 8 "$@"; }
rtn() { dpq-run -q --compensate none --group 4 "$@" -o out/r; }
solve() { dpq-run -q --group 4 --hessian hessian.h5 "$@" model.h5 -o out/r; }

# --- numbers ---
numbers() {	# numbers TOOL OPTION REST VALUE...: each value is wrong usage, and the message names the option
	t=$1 option=$2 rest=$3; shift 3
	for value; do
		# shellcheck disable=SC2086
		no "$t --$option '$value'" 2 "^$t: (--$option|-[a-z]): " "$t" "--$option=$value" $rest -o out/r
	done
}
sizes="'' ' 5' '5 ' +5 -1 0x10 1e3 5.0 five 5k K 5KK 99999999999999999999 18446744073709551616 17179869184G"
eval "numbers eval-ppl ctx '--tokens tokens.h5 model.h5' 0 1 16777217 $sizes"
eval "numbers eval-ppl limit '--tokens tokens.h5 model.h5' $sizes"
eval "numbers eval-generate max '--questions answers.jsonl model.h5' 0 1048577 $sizes"
eval "numbers questions-import number '--task gsm8k items.jsonl' $sizes"
eval "numbers eval-choice limit '--questions questions.jsonl model.h5' $sizes"
eval "numbers hessian-accum memory '--tokens tokens.h5 model.h5' $sizes"
eval "numbers sample-tokens length model.h5 0 1073741825 $sizes"
eval "numbers sample-tokens seed model.h5 $sizes"
eval "numbers gar-order threads hessian.h5 $sizes"
reals="'' ' 1' '1 ' +1 0x1p3 nan inf -inf 1e999 1,5 one ."
eval "numbers dpq-run damp '--hessian hessian.h5 model.h5' -1 1e39 1000001 $reals"
eval "numbers sample-tokens temperature model.h5 -1 1e7 $reals"
eval "numbers dpq-run top '--compute e4m3fn --hessian hessian.h5 model.h5' 0 -5 1e-30 1e30 449 $reals"
eval "numbers dpq-run saturate '--compute e4m3fn --hessian hessian.h5 model.h5' 0 -3 1e-10 449 $reals"
numbers dpq-run group '--compensate none model.h5' '' 0 -1 ' 32' +32 3.5 1000000001 2000000000 99999999999999999999 rows
numbers gar-order group hessian.h5 '' 0 ' 32' +32 1000000001 99999999999999999999
numbers hessian-accum shard '--tokens tokens.h5 model.h5' '' 1 1/ /2 0/2 3/2 ' 1/2' '1/ 2' +1/2 1/-2 1/2/3 1/2x \
	2/18446744073709551615 1/9007199254740992
numbers dpq-run shard '--compensate none model.h5' '' 1 1/ /2 0/2 3/2 ' 1/2' +1/2 1/2/3 1/2x AUTO
numbers exmy-sweep sigma '--formats int4' '' 0 -0.1 nan 1e300 1e-300 ' 0.1' 0.1,,0.2 0.1, ,0.1 0.1:0.2 0.2:0.1:0.01 \
	0.1:0.2:0 \
	0.1:0.2:-1 0.1:0.2:0.1:0.1 0:1:0.1
no 'exmy-sweep: too many sigmas' 2 "'0.1:0.2:1e-12' has 1e.11 points, expected at most" \
	exmy-sweep --sigma 0.1:0.2:1e-12 -o out/r
numbers exmy-sweep monte-carlo '--formats int4' -1 1e3 2G 18446744073709551616
numbers exmy-sweep band '--tsv model.h5' '' 0.1 0.2:0.1 -1:1 ' 0:1' 0:1: nan:1
numbers exmy-sweep formats '' '' int4, ,int4 int4,,int5 e8m8
numbers roofline group '' '' 0 -1 ' 32' 16777217 channel
numbers roofline kv-bits '' '' 0 -1 33 8.0
numbers roofline prompt '' '' 0 -1 1e3 ' 5' 1048577 5, ,5 5,,5 18446744073709551616
numbers roofline formats '' '' W4 W4A8, W0A8 W17A16 W4A12 e4m3fn 'W4A8 '
numbers eval-ppl stride '--convention sliding --tokens tokens.h5 model.h5' '' 0 -1 ' 5' 16777217 99999999999999999999
numbers eval-ppl kv-format '--tokens tokens.h5 model.h5' '' int4: :8 int4:0 int4:-1 int4:+8 'int4: 8' int4:8:8 \
	int4:eight int9 none:8 \
	int4:1000000001 int4:99999999999999999999
numbers sample-tokens kv-format 'model.h5' '' int4:0 none:8 e8m8
is 'no file was written' "$(ls -A out)" ''

# --- names, options and formats ---
truncate -s 1G large-plan
no 'a plan of 1 GiB' 1 'large-plan: is larger than [0-9]* MiB' solve --plan large-plan
seq 50000 >long
ok 'a long text from a pipe: the same tokens' \
	sh -c 'tokenize --bytes -o out/pipe <long && cat long | tokenize --bytes -o out/long &&
		h5diff out/pipe out/long /tokens'
rm -f out/*
no 'an abbreviation of two options' 2 '--comp is ambiguous: --compute, --compensate' dpq-run --comp none
ok 'an abbreviation of one option' sh -c 'dpq-run -q --compen none model.h5 -o out/r && rm out/r'
no 'a file without a name' 1 "^dpq-run: '': cannot open: No such file" dpq-run --compensate none '' -o out/r
no 'an unknown choice' 2 "--recipe: 'best' is not one of late, paper, inc" dpq-run --recipe best
for v in storge:storage hesian:hessian groups:group Storage:storage; do
	no "option ${v%:*}: did you mean --${v#*:}?" 2 "no option --${v%:*}; did you mean --${v#*:}\\?$" \
		dpq-run "--${v%:*}"
done
for v in act-order:reorder group_size:group bits:storage percdamp:damp; do
	no "option ${v%:*}, a name in other toolkits" 2 "no option --${v%:*}; did you mean --${v#*:}\\?$" \
		dpq-run "--${v%:*}" 4
done
no '... with a value' 2 'no option --storge=int4; did you mean --storage\?$' dpq-run --storge=int4
no 'an unknown option, with no similar one' 2 'no option --xyz$' dpq-run --xyz
for v in "model:eval-ppl --tokens tokens.h5" "tokens:eval-ppl model.h5 --tokens" "hessian:dpq-run model.h5 --hessian" \
	"order:dpq-run model.h5 --hessian hessian.h5 --order"; do
	case $v in model*) by=model-import ;; tokens*) by=tokenize ;; hessian*) by=hessian-accum ;; *) by=gar-order ;; \
		esac
	# shellcheck disable=SC2086
	no "a text as a file of kind ${v%%:*}: the message names its tool" 1 "text: is not an HDF5 file; $by makes" \
		${v#*:} text
	# shellcheck disable=SC2086
	no "a folder as a file of kind ${v%%:*}" 1 "out: is a folder, expected a file; $by makes" ${v#*:} out
done
no 'a text from a pipe' 1 'stdin>: is not an HDF5 file or stream, or begins with a user block; model-import makes' \
	sh -c 'cat text | eval-ppl --tokens tokens.h5'
no 'a missing argument' 2 '--group needs an argument' dpq-run --group
no 'an argument too many' 2 '--static-groups takes no argument' dpq-run --static-groups=yes
no 'an operand too many' 2 'one operand too many: codes.h5' eval-ppl --tokens tokens.h5 model.h5 codes.h5
no '... of a tool whose other inputs are options' 2 \
	'too many: codes.h5; further inputs follow options: --reference, --hessian$' tensor-diff model.h5 codes.h5
no 'no --tokens' 2 '--tokens FILE is expected' eval-ppl model.h5
for v in q4_0:int4 fp8:e4m3fn FP8_E5M2:e5m2ieee mxfp6:e2m3 nvfp3:nvfp4 int9:int8 e5m3:e4m3 e4m3fm:e4m3fn; do
	no "format ${v%:*}: did you mean ${v#*:}?" 2 "did you mean ${v#*:}\\?" dpq-run --storage "${v%:*}"
done
no 'an unknown format, with no similar one' 2 "no format 'e8m8', expected one of" dpq-run --storage e8m8
for v in e4m3:e4m3fn e5m2:e5m2ieee; do
	warns "format ${v%:*} is not FP8" "FP8 of hardware is ${v#*:}" \
		dpq-run --compensate none --storage "${v%:*}" model.h5 -o out/r
done
no 'an empty name of an input' 2 '--hessian: the name is empty, expected the name of a file' \
	dpq-run --hessian '' model.h5
no 'an empty name of a result' 2 '--output: the name is empty, expected the name of a file' \
	dpq-run -o '' model.h5
no 'a table of a model without one' 2 '--table error needs a MODEL' exmy-sweep --tsv --table error
no 'a plot whose name gnuplot would run' 2 'control character' \
	exmy-sweep --plot "$(printf 'a\nsystem("touch PWN")\n#.svg')"
mkdir fake; printf '#!/bin/sh\ncat >/dev/null\n' >fake/gnuplot; chmod +x fake/gnuplot
no 'a gnuplot that draws nothing' 1 'gnuplot could not write it' \
	env PATH="$tmp/fake:$PATH" exmy-sweep --formats int4 --sigma 0.1 --plot x.svg -o out/r
no 'a plot of an unknown kind' 2 'ends in .svg, .png or .pdf' exmy-sweep --plot x.gif
ok '... no name of a plot is run' test ! -e PWN
ok 'a sweep reads no model from standard input, unless it is named' exmy-sweep --tsv --formats int4 --sigma 0.1 -o out/r
no '... named' 1 '<stdin>: is empty' exmy-sweep --formats int4 -o out/r -
rm -f out/*

# --- options without effect ---
history() { h5dump -a /history "$1" | sed -n 's/.*(0): "//p' | sed 's/"$//'; }	# the last command
warns '--compensate none: options of compensation' \
	'without effect here: --static-groups, --group-view, --damp .--compensate none.$' \
	dpq-run --compensate none --group 4 --damp 0.5 --group-view block --static-groups model.h5 -o out/r
is '... are left out of the history' "$(history out/r)" "dpq-run $(cat "$top/VERSION") --group 4 --compensate none"
ok '... and change nothing' sh -c 'h5diff out/r codes.h5'
warns '--compute none: options of FP8' '--round-first, --scale8, --top, --saturate .--compute none.; --pow2-scale' \
	dpq-run --compensate none --group 4 --top 0 --saturate -3 --scale8 channel --pow2-scale yes \
	--round-first yes model.h5 -o out/r
ok '... change nothing' sh -c 'h5diff out/r codes.h5'
warns 'one group per row' '--group-view .one group per row.' \
	dpq-run --group channel --group-view block --hessian hessian.h5 model.h5 -o out/r
warns 'groups that are static' '--group-view .--static-groups.' \
	dpq-run --group 4 --static-groups --group-view block --hessian hessian.h5 model.h5 -o out/r
warns 'naive compensation without FP8' '--compensate .--compute none.' \
	dpq-run --group 4 --compensate storage --hessian hessian.h5 model.h5 -o out/r
warns 'formats of activations that are not rounded' '--act-format .--act-mode none.' \
	dpq-run --compensate none --act-mode none --act-format int8 model.h5 -o out/r
warns 'a key without groups' '--key, --group .--order none or full.' \
	gar-order --order full --key mean --group 4 hessian.h5 -o out/r
warns 'a cache in a format that is not the FP8 of hardware' '--kv-format: e4m3 .*FP8 of hardware is e4m3fn' \
	sample-tokens --kv-format e4m3 --length 8 --ctx 8 model.h5 -o out/r
warns 'a seed for greedy decoding' '--seed .--temperature 0.' \
	sample-tokens --temperature 0 --seed 5 --length 8 --ctx 8 model.h5 -o out/r
warns 'the sum of Hessians: options of a model' \
	'--convention .no model is run.; --shard .1/1 is all.; --ctx, --limit .Hessian' \
	hessian-accum --ctx 5 --limit 3 --convention bos --shard 1/1 hessian.h5 -o out/r
ok '... the sum is complete' test \
	-n \
	"$(h5dump -d /model/layers/0/mlp/up_proj/count out/r |
	grep "$(h5dump -d /model/layers/0/mlp/up_proj/count hessian.h5 | grep '(0)')")"
warns 'special tokens of bytes' '--special .--bytes.' tokenize --bytes --special text -o out/r
warns 'a sweep without a model' '--layers .no MODEL.; --seed .no --monte-carlo.; --band .neither' \
	exmy-sweep --layers x --seed 1 --band 0:1 --formats int4 -o out/r
ok 'earlier names of options' sh -c '
	sample-tokens -q --tokens 8 --ctx 8 model.h5 -o out/a &&
	sample-tokens -q --length 8 --ctx 8 model.h5 -o out/b && cmp out/a out/b &&
	eval-ppl -q --tokens tokens.h5 --ctx 8 codes.h5 --against model.h5 -o out/c >out/d &&
	eval-ppl -q --tokens tokens.h5 --ctx 8 codes.h5 --reference model.h5 -o out/e >out/f &&
	cmp out/c out/e && cmp out/d out/f'
is '... are the current names in histories' "$(history out/a)" "sample-tokens $(cat "$top/VERSION") --length 8 --ctx 8"
rm -f out/*

# --- files of a wrong kind ---
kinds='model tokens hessian order sweep result'
role() {	# role NAME KINDS COMMAND...: with each file of another kind in the place of @
	name=$1 right=$2; shift 2
	for kind in $kinds; do
		case " $right " in *" $kind "*) continue ;; esac
		words=
		for w; do [ "$w" = @ ] && w=$kind.h5; words="$words $w"; done
		# shellcheck disable=SC2086
		no "$name: $kind" 1 "^${1%% *}: $kind.h5: holds an? '?$kind'?" $words
	done
}
# the message has the kind first: holds a 'tokens', expected 'model'
role 'dpq-run MODEL' model dpq-run -q --compensate none @ -o out/r
role 'dpq-run --hessian' hessian dpq-run -q --hessian @ model.h5 -o out/r
role 'dpq-run --order' order dpq-run -q --hessian hessian.h5 --order @ model.h5 -o out/r
role 'dpq-run --tokens' tokens dpq-run -q --sequential --tokens @ --ctx 8 model.h5 -o out/r
role 'gar-order' hessian gar-order -q @ -o out/r
role 'hessian-accum' 'model hessian' hessian-accum -q @ -o out/r
role 'hessian-accum, of several' hessian hessian-accum -q hessian.h5 @ -o out/r
role 'hessian-accum --tokens' tokens hessian-accum -q --tokens @ --ctx 8 model.h5 -o out/r
role 'sample-tokens' model sample-tokens -q --length 8 @ -o out/r
role 'tokenize --model' model tokenize --model @ text -o out/r
role 'tokenize --decode' tokens tokenize --model model.h5 --decode @ -o out/r
role 'eval-ppl MODEL' model eval-ppl -q --tokens tokens.h5 --ctx 8 @ -o out/r
role 'eval-ppl --tokens' tokens eval-ppl -q --tokens @ --ctx 8 model.h5 -o out/r
role 'eval-ppl --reference' model eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 --reference @ -o out/r
role 'eval-ppl --paired' result eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 --paired @ -o out/r
role 'eval-compare' result eval-compare -q result.h5 @ -o out/r
role 'plan-bits' model plan-bits -q --target-bits 64 --reference model.h5 --tokens tokens.h5 --ctx 8 @
role 'plan-bits --reference' model plan-bits -q --target-bits 64 --reference @ --tokens tokens.h5 --ctx 8 codes.h5
role 'plan-bits --tokens' tokens plan-bits -q --target-bits 64 --reference model.h5 --tokens @ --ctx 8 codes.h5
role 'plan-bits --costs' result plan-bits -q --target-bits 64 --reference model.h5 --costs @ codes.h5
role 'plan-bits --hessian' hessian plan-bits -q --target-bits 64 --by layer --hessian @ \
	--reference model.h5 --tokens tokens.h5 --ctx 8 codes.h5
role 'eval-choice' model eval-choice -q --questions questions.jsonl @ -o out/r
role 'eval-choice --reference' model eval-choice -q --questions questions.jsonl model.h5 --reference @ -o out/r
role 'eval-choice --paired' result eval-choice -q --questions questions.jsonl model.h5 --paired @ -o out/r
role 'eval-generate' model eval-generate -q --max 4 --questions answers.jsonl @ -o out/r
role 'eval-generate --paired' result eval-generate -q --questions answers.jsonl model.h5 --paired @ -o out/r
role 'aifs-order' tokens aifs-order -q @ -o out/r
role 'exmy-pack' model exmy-pack -q @ -o out/r
role 'model-export' model model-export -q @ -o out/r
role 'ln2rms' model ln2rms -q @ -o out/r
role 'hadamard-rotate' model hadamard-rotate -q @ -o out/r
role 'fbq-run' model fbq-run -q --group 8 --rank 2 --steps 2 --hessian hessian.h5 @ -o out/r
role 'fbq-run --hessian' hessian fbq-run -q --group 8 --rank 2 --method eora --hessian @ model.h5 -o out/r
role 'fbq-run --reference' model fbq-run -q --group 8 --rank 2 --method lowrank --reference @ codes.h5 -o out/r
role 'smooth-scale' model smooth-scale -q --hessian hessian.h5 @ -o out/r
role 'smooth-scale --hessian' hessian smooth-scale -q --hessian @ model.h5 -o out/r
role 'awq-scale' model awq-scale -q --group 4 --hessian hessian.h5 @ -o out/r
role 'awq-scale --hessian' hessian awq-scale -q --group 4 --hessian @ model.h5 -o out/r
role 'qep-correct' model qep-correct -q --hessian cross.h5 @ -o out/r
role 'qep-correct --hessian' hessian qep-correct -q --hessian @ model.h5 -o out/r
role 'hessian-accum --pair' model hessian-accum -q --tokens tokens.h5 --ctx 8 --pair @ model.h5 -o out/r
role 'rms-suppress' model rms-suppress -q @ -o out/r
role 'msq-calib' model msq-calib -q --act-format int8 --tokens tokens.h5 --ctx 8 @ -o out/r
role 'msq-calib --tokens' tokens msq-calib -q --act-format int8 --tokens @ --ctx 8 model.h5 -o out/r
role 'hadamard-rotate --load' rotation hadamard-rotate -q --load @ model.h5 -o out/r
role 'exmy-sweep' model exmy-sweep -q --formats int4 @ -o out/r
role 'roofline' model roofline --models @ -o out/r
role 'tensor-join' model tensor-join -q codes.h5 @ -o out/r
role 'tensor-stats' 'model hessian' tensor-stats -q @ -o out/r
role 'tensor-diff MODEL' model tensor-diff -q --reference model.h5 @ -o out/r
role 'tensor-diff --reference' model tensor-diff -q --reference @ model.h5 -o out/r
role 'tensor-diff --hessian' hessian tensor-diff -q --reference model.h5 --hessian @ codes.h5 -o out/r
for kind in $kinds; do ok "tensor-info: $kind" tensor-info $kind.h5; done
no 'a folder as a model' 1 'tiny: is a folder' rtn "$top/tests/tiny"
no 'a model file as a folder' 1 'model.h5: cannot be imported, expected a Hugging Face folder' \
	model-import -q model.h5 -o out/r
no 'standard input for two inputs' 2 'standard input is named twice' sh -c 'tensor-diff --reference - <model.h5'
no '... of Hessians' 2 'standard input is named twice' sh -c 'hessian-accum - - -o out/r <hessian.h5'
is 'no file was written' "$(ls -A out)" ''

# --- files of another model, edited files ---
py faults
refused() { no "$1.h5" 1 "^[a-z-]*: $1.h5: .*$2" "$3" "$1.h5"; }
of_tokens() { eval-ppl -q --tokens "$1" --ctx 8 model.h5 -o out/r; }
of_hessian() { dpq-run -q --group 4 --hessian "$1" model.h5 -o out/r; }
of_order() { dpq-run -q --group 4 --hessian hessian.h5 --order "$1" model.h5 -o out/r; }
of_model() { eval-ppl -q --tokens tokens.h5 --ctx 8 "$1" -o out/r; }
refused vocab 'made for a vocabulary of 999, model.h5 has' of_tokens
no 'Hessians of tokens for another vocabulary' 1 'vocab.h5: .*made for a vocabulary of 999' \
	hessian-accum -q --tokens vocab.h5 --ctx 8 model.h5 -o out/r
ok '... with --force-tokens' eval-ppl -q --force-tokens --tokens vocab.h5 --ctx 8 model.h5
warns 'tokens of another tokenizer' 'made by another tokenizer' eval-ppl --tokens digest.h5 --ctx 8 model.h5
warns 'tokens without attributes' 'no BOS is put before the text' eval-ppl --tokens bare.h5 --ctx 8 model.h5
eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 >one; eval-ppl -q --tokens true.h5 --ctx 8 model.h5 >true
ok 'an attribute True of h5py is 1' cmp one true
refused half 'attribute vocab is not a size' of_tokens
refused wide 'holds int64 values that do not fit int32' of_tokens
refused minus 'is not in the model.s vocabulary' of_tokens
refused real 'is f32, expected int32' of_tokens
refused short-sequences '/sequence: expected offsets from 0 to the number of tokens, 64' of_tokens
refused no-sequences '/sequence: expected offsets from 0' of_tokens
refused empty-sequence '/sequence: sequence 1 has no tokens' of_tokens
refused real-sequences '/sequence: is f64' of_tokens
refused minus-position '/position: token 0 has -1, expected a number from 0 to' of_tokens
refused three-positions '/position: has 3 numbers per token' of_tokens
refused far-position '/position: a token is at position 1048577, the model has' of_tokens
refused few-positions '/position: expected one number a token' of_tokens
refused large-index '/index: token 63 has 64, expected a number from 0 to 63' of_tokens
refused long-index '/index: a sequence of 64 tokens was reordered .*: expected --ctx 65' of_tokens
refused twice-index '/index: token 3 has 2, expected each number from 0 to 7 once in its sequence' of_tokens
no 'a limit within a reordered sequence' 1 'long-index.h5: /index: --limit ends within the first sequence' \
	eval-ppl -q --tokens long-index.h5 --limit 9 --ctx 65 model.h5
refused real-modality '/modality: is f64' of_tokens
refused few-modalities '/modality: has shape' of_tokens
refused images '/image_span: ' of_tokens
switched() { aifs-order -q "$1" -o out/r; }
refused empty-sequence '/sequence: sequence 1 has no tokens' switched
refused large-index '/index: token 63 has 64, expected a number from 0 to 63' switched
refused twice-index '/index: token 3 has 2, expected each number from 0 to 7 once in its sequence' switched
refused few-modalities '/modality: has shape' switched
refused real '/tokens: is f32, expected int32' switched
refused skew 'hessian: is not symmetric: row and column 1' of_hessian
ok 'inputs whose squares are below the least float' of_hessian faint.h5
refused beyond 'hessian: is not a sum of products: an element of row 1 exceeds' of_hessian
refused nan-hessian 'holds a number that is not finite' of_hessian
refused small-hessian 'has shape' of_hessian
refused no-count 'count: is not positive' of_hessian
refused few-layers 'layers/1/.*is missing; the layer was not calibrated' of_hessian
no 'Hessians of two models' 1 'few-layers.h5: .*(another model|holds)' \
	hessian-accum -q hessian.h5 few-layers.h5 -o out/r
ok 'a Hessian near the largest float' \
	dpq-run --group 4 --hessian large.h5 --layers '*/0/mlp/up_proj' model.h5 -o out/large
is '... its error is not printed as 0' \
	"$(dpq-run --group 4 --hessian large.h5 --layers '*/0/mlp/up_proj' model.h5 -o out/large 2>&1 |
	awk '$1 ~ /up_proj/ { print $2 == 0 }')" 0
refused no-group 'has no attribute group' of_order
ok 'an order without attributes' of_order no-attributes.h5
no 'an order for another group' 1 'order.h5: was made with --group 4, this has --group 8' \
	dpq-run -q --group 8 --hessian hessian.h5 --order order.h5 model.h5 -o out/r
refused twice-order 'not a permutation' of_order
refused both 'has both weight and codes, expected one of them' of_model
refused two-codes 'has both packed and codes' of_model
refused bits 'attribute bits must be the width of the storage format, 4, not 5' of_model
ok 'a layer without attribute bits' of_model bits-none.h5
refused minus-codes 'holds int64 values that do not fit uint8' of_model
refused large-codes 'holds int32 values that do not fit uint8' of_model
refused signed-packed 'holds int32 values that do not fit uint32' of_model
ok 'packed words as int32, all positive' of_model small-packed.h5
refused scale8 'scale8: is present, but attribute compute names no format' of_model
refused large-scale 'holds f64 values that do not fit f32' of_model
ok 'scales for two modalities, tokens of one' of_model modality-scales.h5
ok 'scales for one modality' of_model one-modality.h5
ok 'a filter keeps scales for two modalities' exmy-pack -q modality-scales.h5 -o out/p
refused mode-none 'no attribute act_mode specifies' of_model
refused mode-number 'attribute act_mode is not one text' of_model
refused many-scales 'act_scale: has 8 values, expected 1' of_model
refused saturate 'attribute saturate is present, but attribute compute names no format' of_model
refused storage 'attribute storage is not one text' of_model
dpq-run -q --compensate none --storage int5 --group 4 model.h5 -o int5.h5
py zero_point int5.h5
refused int5 'zero: is present, but the storage format has no zero point' of_model
# scale types
for s in mxfp4 nvfp4 'int4 --scale-dtype bf16' 'e2m1 --scale-dtype f16'; do
	# shellcheck disable=SC2086
	dpq-run -q --compensate none --storage $s --group 4 model.h5 -o "${s%% *}.h5"
done
dpq-run -q --compensate none --act-mode none --compute int8 --scale8 channel --scale-dtype u8 --group 4 model.h5 \
	-o uint4.h5
py quantized_faults
refused mx-three 'up_proj/scale: holds 3, which is not a number of e8m0' of_model
refused mx-small 'up_proj/scale: holds 2.938.*e-39, which is not a number of e8m0' of_model
refused mx-zero 'up_proj/scale: holds 0, expected positive' of_model
refused mx-nan 'up_proj/scale: holds nan' of_model
refused mx-f32 'attribute scale_dtype is f32, the scales of mxfp4 are e8m0' of_model
refused mx-divided 'scale_tensor: is present, but scale_dtype is not e4m3fn' of_model
ok 'mxfp4 without attribute scale_dtype' of_model mx-none.h5
refused nv-odd 'holds 17, which is not a number of e4m3fn' of_model
refused nv-large 'holds 480, which is not a number of e4m3fn' of_model
refused nv-none 'up_proj/scale_tensor: is missing' of_model
for v in zero nan inf minus; do refused nv-$v 'scale_tensor: holds .*, expected positive' of_model; done
refused nv-tiny 'scale_tensor: is 1e-38, by which scales overflow or become zero' of_model
refused nv-two 'scale_tensor: has shape .2., expected .1.' of_model
refused bf-odd 'which is not a number of bf16' of_model
refused bf-word "attribute scale_dtype 'bfloat16' is not known, expected one of f32, bf16, f16, e8m0, e4m3fn, u8" \
	of_model
refused bf-number 'attribute scale_dtype is not one text' of_model
ok 'scales without attribute scale_dtype are floats' of_model bf-left.h5
refused half-large 'holds 65536, which is not a number of f16' of_model
for v in half:1.5 zero:0 large:256; do
	refused "u8-${v%:*}" "up_proj/scale: holds ${v#*:}, which is not a number of u8|expected positive" of_model
done
refused u8-alone \
	'up_proj/scale: multiplies scale8 .scale_dtype u8., but attribute compute names no format' of_model
refused half-e4m3 'scale_tensor: is missing' of_model
for f in mxfp4 nvfp4; do
	exmy-pack -q $f.h5 -o $f-packed.h5
	ok "$f packed and unpacked" sh -c "exmy-pack -q --unpack $f-packed.h5 -o out/u && h5diff out/u $f.h5 /model"
done
rm -f out/*
ok 'tensor-info: a weight under another name' tensor-info misnamed.h5
for t in 'dpq-run -q --compensate none' 'tensor-stats -q' 'exmy-sweep -q --formats int4' \
	'hessian-accum -q --tokens tokens.h5 --ctx 8'; do
	no "${t%% *}: a weight under another name" 1 'misnamed.h5: .*up_proj: has neither weight nor codes' \
		$t misnamed.h5 -o out/r
done
no 'tensor-stats: codes under another name' 1 'up_proj: has neither weight nor codes' tensor-stats misnamed-codes.h5
no 'more tokens than a count holds' 1 'count: is .*, the sum of all counts overflows' \
	hessian-accum -q many-tokens.h5 hessian.h5 -o out/r
no 'the sum of Hessians that are not symmetric' 1 'skew.h5: .*is not symmetric: row and column 1' \
	hessian-accum -q hessian.h5 skew.h5 -o out/r
no 'the sum of Hessians that are not finite' 1 'nan-hessian.h5: .*holds a number that is not finite' \
	hessian-accum -q hessian.h5 nan-hessian.h5 -o out/r
refused no-bos 'add_bos is 1, but there is no bos_id' of_tokens
refused add-five 'add_bos is 5, expected 0 or 1' of_tokens
warns '--force-tokens without need' '--force-tokens .the vocabularies have one size.' \
	eval-ppl --force-tokens --tokens tokens.h5 --ctx 8 model.h5
is 'a name with a newline is one row' "$(tensor-stats table.h5 | cut -f1 | sed 1d | xargs)" '/a?b?all all'
is '... also in a report' "$(dpq-run --compensate none table.h5 -o out/r 2>&1 | grep -c 'a?b?all')" 1
refused number 'attribute ptq_version is not one text' of_model
refused version "has ptq_version '2'" of_model
refused lzf 'is compressed by filter 32000 (.*), which this HDF5 library lacks' of_model
refused block 'has an HDF5 user block' of_model
no '... from a pipe' 1 'or begins with a user block' sh -c 'cat block.h5 | tensor-stats'
refused overflow 'has .*numbers of the model overflow' of_model
refused norm 'has .*numbers of the model overflow' of_model
refused norm-odd "/model/norm: attribute norm is 'odd', expected rms or layer" of_model
ok 'a norm with attribute norm' of_model norm-layer.h5
refused norm-none '/model/norm: is missing; the model has no head' of_model
refused gain-none '/model/layers/1/input_layernorm/weight: is missing' of_model
no 'tokens sampled from a model that overflows' 1 'overflow.h5: logits are not finite' \
	sample-tokens -q --length 8 --ctx 8 overflow.h5 -o out/r
no 'Hessians of a model that overflows' 1 'norm.h5: .*overflow' \
	hessian-accum -q --tokens tokens.h5 --ctx 8 norm.h5 -o out/r
no '... with --sequential' 1 'norm.h5: .*overflow' \
	dpq-run -q --group 4 --layers lm_head --sequential --tokens tokens.h5 --ctx 8 norm.h5 -o out/r
ok 'the newest format of HDF5' \
	sh -c 'dpq-run -q --compensate none --group 4 latest.h5 -o out/l && h5diff out/l codes.h5 /model /model &&
		h5diff latest.h5 out/l /note'
ok '... as a stream' \
	sh -c 'dpq-run -q --compensate none --group 4 latest.h5 | exmy-pack -q -o out/l &&
		h5diff out/l packed.h5 /model /model'
# codes without a value
for f in int4:15 int8:255 e4m3fn:127 e4m3fn:255 e4m3ieee:120 e5m2ieee:124 e5m2ieee:255 int5:31; do
	dpq-run -q --compensate none --storage "${f%:*}" --group 4 model.h5 -o value.h5
	py set_code value.h5 "${f#*:}"
	no "${f%:*} has no code ${f#*:}" 1 \
		"value.h5: /model/layers/1/mlp/up_proj/codes: holds code .*, which is not valid in ${f%:*}" \
		of_model value.h5
	no '... nor can it be packed' 1 'is not valid in' exmy-pack -q value.h5 -o out/r
done
# codes in all layers, with embeddings and head
dpq-run -q --compensate none --group 4 --layers '*' model.h5 -o all.h5
ok 'embeddings and head are packed' \
	sh -c 'exmy-pack -q all.h5 -o all-packed.h5 && ! h5ls -r all-packed.h5 | grep -q codes'
ok '... and unpacked' \
	sh -c 'exmy-pack -q --unpack all-packed.h5 -o all-codes.h5 && h5diff all.h5 all-codes.h5 /model /model'
dpq-run -q --compensate none --group 4 --layers '*embed*' --layers '*lm_head*' model.h5 -o ends.h5
ok '... also if no other layer has codes' exmy-pack -q ends.h5 -o out/p
tensor-diff --reference all.h5 model.h5 >table 2>&1
is 'an embedding with codes in the reference only' \
	"$(grep -c '^/model/embed_tokens.*f32' table) $(grep -c missing table)" '1 0'
for reference in packed:codes packed:packed codes:packed all-packed:all; do
	tensor-diff --reference "${reference%:*}.h5" "${reference#*:}.h5" >table 2>&1; s=$?
	is "the difference of ${reference#*:} from ${reference%:*}" \
		"$s $(awk -F '\t' '$1 ~ "^/" && $3 != 0' table | wc -l) $(
			grep -c ': 0 of [0-9]* other weights and biases differ' table)" '0 0 1'
done
ok 'the history has the inputs of inputs' sh -c '
	dpq-run -q --group 4 --hessian hessian.h5 model.h5 -o out/h &&
	h5dump -A out/h | grep -q "history:hessian:tokens\"" &&
	h5dump -A out/h | grep -q "history:hessian:tokens:model\""'
ok '... of orders, and of each summed file' sh -c '
	dpq-run -q --group 4 --hessian hessian.h5 --order order.h5 model.h5 -o out/h &&
	h5dump -A out/h | grep -q "history:order:tokens\"" &&
	hessian-accum -q hessian.h5 hessian.h5 -o out/h && h5dump -A out/h | grep -q "history:input2:tokens\""'
tokenize --model model.h5 text -o out/t
is '... and the digest of a text' \
	"$(history out/t)" "tokenize $(cat "$top/VERSION") text-sha256:$(sha256sum text | cut -d' ' -f1)"

# --- errors that can be found before the work are found before the work ---
# the models overflow, which a run reports at its end
for c in "eval-ppl -q --tokens tokens.h5 --ctx 8 overflow.h5" "sample-tokens -q --length 8 --ctx 8 overflow.h5" \
	"hessian-accum -q --tokens tokens.h5 --ctx 8 norm.h5"; do
	t=${c%% *}
	no "$t: a folder that does not exist" 1 'cannot create a file in its folder' $c -o no/such/r
	no "$t: the name of a folder" 1 'DIR/: names a folder' $c -o DIR/
	no "$t: a name of 256 letters" 1 'File name too long' $c -o "$(printf %0256d 1)"
done
# the stream ends in its first block: a tool that reads Hessians block by block would report that
no 'a missing Hessian of the last layer' 1 'few-layers.h5: .*layers/1/.*is missing' \
	sh -c 'model-import -q "$1/tests/tiny" | head -c 20000 |
		dpq-run -q --group 4 --hessian few-layers.h5 -o out/r' x "$top"
no 'paired with a file that does not exist' 1 'nosuch.h5: cannot open' \
	eval-ppl -q --tokens tokens.h5 --ctx 8 overflow.h5 --paired nosuch.h5
no 'paired with other windows' 1 'has other tokens' \
	eval-ppl -q --tokens tokens.h5 --ctx 4 overflow.h5 --paired result.h5
no 'Hessians of an embedding' 1 '--layers selects no linear layer that has inputs' \
	hessian-accum -q --tokens tokens.h5 --ctx 8 --layers '*embed*' model.h5 -o out/r
no 'Hessians if all layers are excluded' 1 '--layers selects no linear layer that has inputs' \
	hessian-accum -q --tokens tokens.h5 --ctx 8 --layers '!*_proj' model.h5 -o out/r
no 'a Hessian of the head' 1 'hessian.h5: /.*(embed_tokens|lm_head)/hessian: is missing' \
	sh -c 'model-import -q "$1/tests/tiny" | head -c 20000 |
		dpq-run -q --group 4 --layers "*" --hessian hessian.h5 -o out/r' x "$top"
no 'a sweep of no layer' 1 'model.h5: holds no linear layer that --layers selects' \
	exmy-sweep -q --formats int4 --layers '*/mpl/*' model.h5 -o out/r
no 'Hessians of no layer' 1 'model.h5: --layers selects no linear layer that has inputs' \
	hessian-accum -q --tokens tokens.h5 --ctx 8 --layers '*/mpl/*' model.h5 -o out/r
no 'orders of no layer' 1 'holds no layer that --layers selects' gar-order -q --layers '*/mpl/*' hessian.h5 -o out/none
no 'activations of no layer' 1 'holds no layer with a hessian that --layers selects' \
	hessian-accum -q --layers '*/mpl/*' hessian.h5 -o out/none

# --- streams with repeated parts, files that change during a run ---
model-import -q "$top/tests/tiny" | cat >stream
py streams
no 'a block twice in a stream, to a file' 1 \
	'exists already; an earlier part of the input, or a link to the same group, holds it too' rtn doubled
no 'a block twice in a stream, run' 1 'block 1 was expected' of_model doubled
no '... with --sequential' 1 'block 1 was expected' \
	dpq-run -q --group 4 --sequential --tokens tokens.h5 --ctx 8 doubled -o out/r
for c in 'dpq-run -q --group 4 --sequential --tokens tokens.h5 --ctx 8 model.h5 -o tokens.h5' \
	'dpq-run -q --group 4 --hessian hessian.h5 model.h5 -o hessian.h5' \
	'eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -o tokens.h5' \
	'eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -o model.h5' 'tokenize --bytes text -o text'; do
	before=$(cat hessian.h5 tokens.h5 model.h5 text | sha256sum)
	no "${c%% *}: a result with the name of an input of another kind" 1 'is an input \(' $c
	is '... which is unchanged' "$(cat hessian.h5 tokens.h5 model.h5 text | sha256sum)" "$before"
done
cp model.h5 own.h5
ok 'a result with the name of its input model' \
	sh -c 'dpq-run -q --compensate none --group 4 own.h5 -o own.h5 && h5diff own.h5 codes.h5 /model /model'
cp hessian.h5 errors.h5
rm -f out/*
# shellcheck disable=SC2016
is 'standard error that is an input' "$(
	sh -c 'dpq-run --group 4 --hessian errors.h5 model.h5 -o out/r 2<>errors.h5; echo $?'
	cmp errors.h5 hessian.h5 && ls out/r 2>&1
)" "1
ls: cannot access 'out/r': No such file or directory"
mkfifo pipe
# meanwhile NAME FILE CHANGE SAYS COMMAND...: input.h5, a copy of FILE, is changed while the command waits for its model
# from a pipe
meanwhile() {
	name=$1 file=$2 change=$3 says=$4; shift 4
	cp "$file" input.h5; rm -f out/*
	"$@" <pipe >said 2>error & pid=$!
	exec 3>pipe
	head -c 300 model.h5 >&3
	until grep -q input.h5 /proc/$pid/maps; do grep -q . /proc/$pid/maps ||
		{ echo "$name: ends before it maps its file" >&2; break; }; sleep 0.1; done
	$change
	tail -c +301 model.h5 >&3 2>/dev/null
	exec 3>&-
	wait $pid; s=$?
	is "$name" "$s $(cat error)" "1 ${1##*/}: $says"
	is '... and no output, no result' "$(cat said; ls -A out)" ''
}
shrink() { : >input.h5; }
touch_byte() { py touch_byte; }
for how in shrink touch_byte; do
	[ $how = shrink ] && says='an input file shrank or could not be read while it was in use' ||
		says='input.h5: was changed while it was read'
	meanwhile "tensor-diff --reference: $how" model.h5 $how "$says" tensor-diff -q --reference input.h5
	meanwhile "eval-ppl --tokens: $how" tokens.h5 $how "$says" eval-ppl -q --tokens input.h5 --ctx 8
	meanwhile "dpq-run --hessian: $how" hessian.h5 $how "$says" dpq-run -q --group 4 --hessian input.h5 -o out/r
done

# --- threads, progress ---
gar-order -q -v -j 1000000 hessian.h5 -o out/r 2>many; gar-order -q -j 1 hessian.h5 -o out/one
is '-j 1000000: eight threads per processor' "$(grep -c 'threads, not 1000000: at most 8 per processor' many)" 1
ok '... with the same result' cmp out/r out/one
eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -j 100000 >many
eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -j 1 >one
ok '... and the same likelihoods' cmp many one
if py terminal_there 2>/dev/null; then
ok 'the end of progress is shown once' py end_shown_once
ok 'a terminal gets columns, HDF5 is refused in both ways' py terminal
else
	for what in 'the end of progress is shown once' 'a terminal gets columns, HDF5 is refused in both ways'; do
		skip "$what" 'no pseudo-terminal is available'
	done
fi
ok 'JSON has every digit' sh -c 'eval-ppl --json --tokens tokens.h5 --ctx 8 model.h5 -o out/r >json'
is '... of the record' "$(py record_json)" 'True True'
ok '... also of tables' sh -c 'tensor-stats --json model.h5 -o out/r >json'
is '... of their file' "$(py table_json)" 'True 14'

# --- names of results ---
ln -s nowhere dangling
ok 'a link whose target does not exist yet' \
	sh -c 'gar-order -q hessian.h5 -o dangling && test -L dangling && test -f nowhere'
ln -s loop-b loop-a; ln -s loop-a loop-b
no 'links in a circle' 1 'cannot write: Too many levels' gar-order -q hessian.h5 -o loop-a
mkdir far; ln -s ../out/deep far/link
ok 'a link in another folder' \
	sh -c 'gar-order -q hessian.h5 -o far/link && test -L far/link && test -f out/deep &&
		test -z "$(ls -A far | grep -v link)"'
echo old >locked; chmod 444 locked; chmod 777 .
as_other="setpriv --reuid 65534 --clear-groups"
[ "$(id -u)" = 0 ] || as_other=
if $as_other test -x "$(command -v gar-order)" 2>/dev/null && $as_other test -r "$tmp" 2>/dev/null; then
	no 'a file without write permission' 1 'locked: cannot write: Permission denied' \
		$as_other gar-order -q hessian.h5 -o locked
else
	skip 'a file without write permission' 'no other user is available, or it cannot read the tools'
fi
is '... is unchanged' "$(cat locked)" old
is 'no file is left' "$(find . -name '.ptq*')" ''
done_testing
