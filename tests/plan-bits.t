#!/bin/sh
# plan-bits.t -- formats of blocks and layers for a budget: each KL against eval-ppl of a model made by dpq-run, the
# plan against enumeration
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5 experts=$top/tests/ref/qwen2-moe.h5
text='--tokens tokens.h5 --ctx 50 --convention bos'

py make
# shellcheck disable=SC2086
hessian-accum -q $text "$model" -o hess.h5
for b in 2 3 5; do dpq-run -q --storage uint$b --group 16 --hessian hess.h5 "$model" -o q$b.h5 2>>err; done
# shellcheck disable=SC2086
plans() { plan-bits -q --reference "$model" $text "$@"; }
# the KL of the model that dpq-run makes by a plan, in the digits of eval-ppl
# shellcheck disable=SC2086
kl() {
	{ dpq-run -q --plan "$1" --group 16 "$2" "$3" "$4" | eval-ppl -q $text --reference "$4"; } 2>>err |
		sed -n 's/^kl	//p'
}
# lines PLAN: those of units, after '* keep'
lines() { grep -v -e '^#' -e '^\* keep$' "$1"; }
# measured PLAN: the measured KL; made PLAN OPTION... MODEL: that of the model that dpq-run makes, with warnings in err
measured() { sed -n 's/.*predicted, \([^ ]*\) .*/\1/p' "$1"; }
# shellcheck disable=SC2086
made() {
	p=$1; shift
	dpq-run -q --plan "$p" --hessian hess.h5 "$@" -o made.h5 2>err
	printf '%.4g' "$(eval-ppl -q $text --reference "$model" made.h5 2>/dev/null | sed -n 's/^kl	//p')"
}
# kl_of FILE UNIT CANDIDATE: the KL in a file of -o
kl_of() { py kl "$@"; }

plans --target-bits 5.2 q2.h5 q3.h5 q5.h5 -o costs.h5 >plan 2>err
is '-q is silent' "$(grep -v "$unmade" err)" ''
ok 'the plan has the least sum of all that fit' py best "$model" costs.h5 plan 5.2
is 'the units are the blocks' "$(lines plan | cut -d' ' -f1 | xargs)" '/model/layers/0/* /model/layers/1/*'
for unit in 0 1; do
	for c in 0:2 1:3 2:5; do
		printf '* keep\n/model/layers/%s/* storage=uint%s\n' $unit ${c#*:} >one
		is "block $unit in uint${c#*:}: the KL is that of eval-ppl" "$(kl_of costs.h5 $unit ${c%:*})" \
			"$(kl one --hessian hess.h5 "$model")"
	done
done
is 'the measured KL is that of the plan' "$(measured plan)" "$(made plan "$model")"
is '... whose settings all have an effect' "$(grep 'without effect' err)" ''
plans --layers '!*down_proj' --target-bits 64 q3.h5 >part
is 'layers that --layers leaves out are kept' "$(measured part)" "$(made part "$model")"
dpq-run -q --layers '!*down_proj' --storage uint3 --group 16 --hessian hess.h5 "$model" -o some.h5 2>>err
plans --target-bits 64 some.h5 >part
is '... and those that no candidate has quantized' "$(measured part)" "$(made part "$model")"
plans --costs costs.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5 >x
ok '--costs: the same plan' cmp x plan
cp plan blocks.plan
plan-bits -q --reference "$model" --costs costs.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5 -o again.h5 >x
is '... -o of --costs says on which tokens and by which command the KL were measured' \
	"$(tensor-info --json again.h5 |
		jq -c '.attributes.evaluation, (.history[] | select(.of == "costs").commands)')" \
	"$(tensor-info --json costs.h5 | jq -c '.attributes.evaluation, .history[0].commands')"
is '--costs without --tokens: the KL is not measured' \
	"$(sed 's/, [^ ]* ± [^ ]* measured on [0-9]* tokens//' plan)" "$(cat x)"
plans -j 3 --target-bits 5.2 q2.h5 q3.h5 q5.h5 >x
ok 'other threads: the same plan' cmp x plan
plans --memory 0 --target-bits 5.2 q2.h5 q3.h5 q5.h5 >x
ok 'hidden states in a file: the same plan' cmp x plan
plans --target-bits 64 q2.h5 "$model" q5.h5 >x
is 'a candidate that is not quantized: keep, without a loss' "$(lines x | sed 's/,.*KL/ KL/' | cut -d' ' -f2- |
	sort -u | sed "s|$model|MODEL|")" 'keep  # MODEL KL 0'

# layers
plans --by layer --target-bits 5.1 q2.h5 q3.h5 q5.h5 -o layers.h5 >plan
ok 'by layer: the plan is as good as the best of an exact search' py best "$model" layers.h5 plan 5.1
printf '* keep\n/model/layers/1/mlp/down_proj storage=uint2\n' >one
at=$(lines plan | grep -n '/1/mlp/down_proj' | cut -d: -f1)
is '... a KL is that of eval-ppl' "$(kl_of layers.h5 $((at - 1)) 0)" "$(kl one --hessian hess.h5 "$model")"
plans --by layer --layers '*_proj' --layers '!*/q_proj' --target-bits 5.1 q2.h5 q3.h5 q5.h5 >x
is '--layers: only these' "$(grep -c q_proj x) $(lines x | wc -l | xargs)" '0 12'
is '... and dpq-run keeps all others' "$(measured x)" "$(made x "$model")"
plans --by layer --hessian hess.h5 --target-bits 5.1 q2.h5 q3.h5 q5.h5 -o scaled.h5 >x
for b in 2 3 5; do tensor-diff -q --reference "$model" --hessian hess.h5 q$b.h5 >diff$b; done
ok '--hessian: the first column is measured, the others follow from output errors' \
	py scaled layers.h5 scaled.h5 diff2 diff3 diff5

# rotated layers: codes of E8P
dpq-run -q --storage e8p --hessian hess.h5 "$model" -o e8p.h5 2>>err
plans --target-bits 5 q5.h5 e8p.h5 -o e8p.costs >plan
is 'E8P: one block has it' "$(lines plan | sed 's/.*s\(.[01]\).*storage=\([^ ]*\).*/\1 \2/' | xargs)" '/0 uint5 /1 e8p'
is '... the measured KL is that of the plan' "$(measured plan)" "$(made plan "$model")"
is '... whose settings all have an effect' "$(grep 'without effect' err)" ''
ok '... with the codes of the candidate' h5diff made.h5 e8p.h5 /model/layers/1
ok '... whatever the options of the command line are' sh -c "dpq-run -q --hessian hess.h5 --plan plan --group 8 \
	--layer-rotation two-sided --storage uint8 '$model' -o made.h5 && h5diff made.h5 q5.h5 /model/layers/0"
printf '* keep\n/model/layers/1/* storage=e8p group=tensor\n' >one
is '... a KL is that of eval-ppl' "$(kl_of e8p.costs 1 1)" "$(kl one --hessian hess.h5 "$model")"
no 'E8P by layer: rotations of layers with one input' 1 \
	'e8p.h5: /model/layers/0/.*: has another rotation than .*, which has the same input: expected all of them' \
	plans --by layer --target-bits 4 q5.h5 e8p.h5
for b in 3 5; do
	dpq-run -q --storage uint$b --group 16 --layer-rotation two-sided --hessian hess.h5 "$model" -o r$b.h5 2>>err
done
plans --by layer --target-bits 64 r3.h5 e8p.h5 r5.h5 -o rotated.costs >x
plans --by layer --costs rotated.costs --target-bits 7 r3.h5 r5.h5 >plan
is '... all between the same rotations: the measured KL is that of the plan' "$(measured plan)" \
	"$(made plan "$model")"
is '... the plan mixes formats of layers with one input' \
	"$(lines plan | grep -e 1/mlp/gate_proj -e 1/mlp/up_proj | grep -c uint5)" 1
at=$(lines x | grep -n '/1/mlp/up_proj' | cut -d: -f1)
model-export -q --to hf r3.h5 -o hf 2>/dev/null && model-import -q hf -o dense.h5 2>/dev/null
py replaced "$model" dense.h5 model/layers/1/mlp/up_proj alone.h5
# shellcheck disable=SC2086
ok '... the KL of one layer is that of its weight without rotations' awk -v a="$(kl_of rotated.costs $((at - 1)) 0)" \
	-v b="$(eval-ppl -q $text --reference "$model" alone.h5 2>/dev/null | sed -n 's/^kl[[:space:]]*//p')" \
	'BEGIN { exit !(b > 0 && a / b - 1 < 1e-3 && 1 - a / b < 1e-3) }'
dpq-run -q --storage uint3 --group 16 --layer-rotation two-sided --act-mode dynamic-token --act-format int8 \
	--hessian hess.h5 "$model" -o a3.h5 2>>err
no '... but not with rounded inputs' 1 'a3.h5: /model/.*: rounds its rotated inputs, .* expected --by block' \
	plans --by layer --target-bits 64 a3.h5
no '... some layers of a block' 1 'e8p.h5: .*/q_proj: has another rotation than .*[kv]_proj, which has' \
	plans --layers '*q_proj' --target-bits 4 q5.h5 e8p.h5
plans --by layer --layers '*down_proj' --target-bits 64 e8p.h5 -o down.costs >x
printf '* keep\n/model/layers/1/mlp/down_proj storage=e8p group=tensor\n' >one
is '... but a layer that has its input alone: its KL' "$(kl_of down.costs 1 0)" \
	"$(kl one --hessian hess.h5 "$model")"
plans --by layer --layers '*down_proj' --hessian hess.h5 --target-bits 64 q2.h5 e8p.h5 -o scaled.h5 >x
tensor-diff -q --reference "$model" --hessian hess.h5 e8p.h5 >diffe8p
plans --by layer --layers '*down_proj' --target-bits 64 q2.h5 e8p.h5 -o down.costs >x
ok '... --hessian: output errors of the weight without rotations' py scaled down.costs scaled.h5 diff2 diffe8p
dpq-run -q --storage e8p --group 16 --hessian hess.h5 "$model" -o e8p16.h5 2>>err
plans --target-bits 64 e8p16.h5 >x
is '... in groups, under another type of scales and Qronos' "$(measured x)" \
	"$(made x --scale-dtype f16 --solver qronos "$model")"
dpq-run -q --storage e8p --seed 2 --hessian hess.h5 "$model" -o seed.h5 2>>err
no 'other signs' 1 'seed.h5: .*_proj: is rotated with other signs than in e8p.h5, expected candidates of one --seed' \
	plans --target-bits 4 q5.h5 e8p.h5 seed.h5

# a model whose layers are rotated before they are quantized: in uint5, so that a wrong rotation has a large KL
rotated=signs.h5
py signs "$model" $rotated
for b in 3 5; do dpq-run -q --compensate none --storage uint$b --group 16 $rotated -o s$b.h5; done
# shellcheck disable=SC2086
plan-bits -q --by layer --reference $rotated $text --target-bits 64 s3.h5 s5.h5 -o s.costs >plan
is 'rotations of the model itself, by layer: the predicted KL is small' \
	"$(awk '/predicted/ { print ($3 < 0.1 && $3 > 0) }' plan)" 1
is '... and measured' "$(awk '/predicted/ { print ($5 / $3 < 1.5 && $3 / $5 < 1.5) }' plan)" 1

# what lines say of inputs and compute formats
dpq-run -q --storage int4 --group 16 --compute e4m3fn --scale8 channel --act-mode dynamic-token --act-clip 0.9 \
	--hessian hess.h5 "$model" -o fp8.h5 2>>err
dpq-run -q --storage int4 --group channel --act-format int8 --hessian hess.h5 "$model" -o int8.h5 2>>err
dpq-run -q --storage e2m1 --scale-dtype e4m3fn --compute none --hessian hess.h5 --group 16 "$model" -o fp4.h5 2>>err
dpq-run -q --storage mxfp4 --hessian hess.h5 "$model" -o mxfp4.h5 2>>err
for f in fp8 int8 fp4 mxfp4; do
	plans --target-bits 64 $f.h5 >plan
	is "$f: the measured KL is that of the plan" "$(measured plan)" "$(made plan "$model")"
	is '... whose settings all have an effect' "$(grep 'without effect' err)" ''
	ok '... with the codes and inputs of the candidate' h5diff made.h5 $f.h5 /model
done

# blocks of GGUF, which have no group and no compensation, with codes of GPTQ
printf '* storage=iq4_nl compensate=none\n*/down_proj storage=uint5 group=16 compensate=both\n' >blocks
dpq-run -q --plan blocks --hessian hess.h5 "$model" -o blocks.h5 2>>err
plans --target-bits 4.7 q2.h5 blocks.h5 >plan
is 'blocks of GGUF: one block has them' "$(grep -c storage=iq4_nl plan) $(lines plan | grep -c '\*.*=uint2')" '6 1'
is '... the measured KL is that of the plan' "$(measured plan)" "$(made plan "$model")"
is '... whose settings all have an effect' "$(grep 'without effect' err)" ''

# experts
# shellcheck disable=SC2086
for b in 2 4; do dpq-run -q --compensate none --storage uint$b --group 16 "$experts" -o e$b.h5; done
# shellcheck disable=SC2086
plan-bits -q --by layer --reference "$experts" $text --target-bits 5.5 e2.h5 e4.h5 -o e.h5 >plan
is 'all experts of a block are one unit' "$(grep -c 'experts/\*/down_proj' plan)" \
	"$(py blocks "$experts")"
at=$(lines plan | grep -n '/1/mlp/experts/\*/down_proj' | cut -d: -f1)
printf '* keep\n/model/layers/1/mlp/experts/*/down_proj storage=uint2\n' >one
is '... whose KL is that of eval-ppl' "$(kl_of e.h5 $((at - 1)) 0)" "$(kl one --compensate none "$experts")"

# sizes
plans --costs costs.h5 --target-size "$(py size "$model" 5.2)" q2.h5 q3.h5 q5.h5 >x
plans --costs costs.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5 >y
ok '--target-size: the same as the bits, and all other weights as they are stored' cmp x y
py tie "$model" tied.h5
plan-bits -q --reference tied.h5 --costs costs.h5 --force-basis --target-size "$(py size tied.h5 5.2)" \
	q2.h5 q3.h5 q5.h5 >x
is '... and a tied head counts once' "$(grep -v '^#' x)" "$(grep -v '^#' y)"
plans --costs costs.h5 --target-bits 64 q2.h5 q3.h5 q5.h5 >y
for size in 9223372036854775807 18446744073709551615; do
	plans --costs costs.h5 --target-size $size q2.h5 q3.h5 q5.h5 >x
	ok "--target-size $size: the largest" cmp x y
done

# some of the stored candidates
plans --costs costs.h5 --target-bits 4.8 q5.h5 q2.h5 >x
plans --target-bits 4.8 q5.h5 q2.h5 >y
ok '--costs: fewer candidates, in another order: the plan of these' cmp x y
cp q5.h5 again.h5
plans --costs costs.h5 --target-bits 4.8 q5.h5 q2.h5 again.h5 >x
is '... and one of them twice' "$(grep -v '^#' x)" "$(grep -v '^#' y)"
dpq-run -q --storage uint5 --group 16 --compensate none "$model" -o rtn5.h5
plans --target-bits 64 q2.h5 q5.h5 rtn5.h5 -o two.costs >x
plans --costs two.costs --target-bits 64 rtn5.h5 q5.h5 >y
is '... several of the same formats: that of the same commands' "$(lines y | sed 's/.*KL //')" \
	"$(for unit in 0 1; do printf '%.3g\n' "$(kl_of two.costs $unit 1)"; done)"
plans --costs two.costs --target-bits 64 rtn5.h5 >y 2>said
is '... only one of them' "$(lines y | sed 's/.*KL //'; grep 'KLs are those' said)" \
	"$(for unit in 0 1; do printf '%.3g\n' "$(kl_of two.costs $unit 2)"; done)"
dpq-run -q --storage uint5 --group 16 --compensate none --scale-search minmax "$model" -o other5.h5
no '... and one of other commands' 1 \
	'two.costs: has 2 candidates with the formats of other5.h5, not exactly one by the same commands' \
	plans --costs two.costs --target-bits 64 other5.h5 q2.h5
py without_history q5.h5 rtn5.h5
plans --target-bits 64 hand-q5.h5 hand-rtn5.h5 -o hand.costs >x
no '... two that no command made' 1 \
	'hand.costs: has 2 candidates with the formats of hand-rtn5.h5, not exactly one by the same commands' \
	plans --costs hand.costs --target-bits 64 hand-rtn5.h5
py one_history rtn5.h5 q5.h5
plans --target-bits 64 rtn5.h5 twin-q5.h5 -o twin.costs >x
no '... two of the same commands with other KLs' 1 \
	'twin.costs: has 2 candidates with the formats of twin-q5.h5, not exactly one by the same commands' \
	plans --costs twin.costs --target-bits 64 twin-q5.h5
plans --costs costs.h5 --target-bits 64 rtn5.h5 >y 2>said
ok '... where the file has one of these formats: a warning' \
	grep -q 'warning: rtn5.h5: its KLs are those of a candidate of the same formats that other commands made' said

# mistakes
py bad
no 'no candidates' 2 'CANDIDATE... is expected' plans --target-bits 4
no 'no budget' 2 'one of --target-bits and --target-size' plans q2.h5
no 'two budgets' 2 'one of --target-bits and --target-size' plans --target-bits 4 --target-size 1G q2.h5
no 'no reference' 2 '--reference MODEL is expected' plan-bits --target-bits 4 q2.h5
no 'no tokens' 2 '--tokens FILE is expected' plan-bits --reference "$model" --target-bits 4 q2.h5
no '--hessian by block' 2 '--hessian requires --by layer' plans --hessian hess.h5 --target-bits 4 q2.h5
no 'too few bits' 1 'the smallest candidates have 4.1623 bits per weight' \
	plans --costs costs.h5 --target-bits 1 q2.h5 q3.h5 q5.h5
no '... which is known before anything is measured' 1 'the smallest candidates have 4.1623 bits per weight' \
	plan-bits -q --reference "$model" --tokens missing.h5 --target-bits 1 q2.h5 q3.h5
dpq-run -q --compensate none --storage uint2 --group 16 --scale-dtype f16 "$model" -o up.h5	# 3.14474 bits
no '... rounded up' 1 'the smallest candidates have 3.1448 bits' \
	plan-bits -q --reference "$model" --tokens missing.h5 --target-bits 1 up.h5
no '... so that it is enough' 1 'missing.h5: cannot open' \
	plan-bits -q --reference "$model" --tokens missing.h5 --target-bits 3.1448 up.h5
no 'too small a size' 1 'bytes outside of the layers of the plan' \
	plans --costs costs.h5 --target-size 1 q2.h5 q3.h5 q5.h5
for f in nf4 int4; do dpq-run -q --storage $f --group 16 --hessian hess.h5 "$model" -o $f.h5 2>>err; done
plans --target-bits 64 q2.h5 nf4.h5 -o same.h5 >x
no '... of another format of the same size' 1 \
	'same.h5: /lines: is of other candidates: int4.h5 has .*storage=int4 .*, expected .*storage=nf4 ' \
	plans --costs same.h5 --target-bits 5.2 q2.h5 int4.h5
no '... of another size' 1 'other.h5: /size: is of other candidates: /model/layers/0/\* in q2.h5 has [0-9]* bits' \
	plans --costs other.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
no '... of fewer candidates' 1 'same.h5: /lines: is of other candidates: q3.h5 has .*storage=uint3 .*, expected ' \
	plans --costs same.h5 --target-bits 4.5 q2.h5 q3.h5 nf4.h5
no '... of layers' 1 'layers.h5: /kl: is of 14 blocks or layers, expected 2; --by and --layers must be those' \
	plans --costs layers.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
eval-ppl -q $text q2.h5 -o record.h5 >x
no '... of another tool' 1 'record.h5: has no KL of units, expected a file of plan-bits -o' \
	plans --costs record.h5 --target-bits 5.2 q2.h5
no '... without formats' 1 'bare.h5: /lines: is missing' plans --costs bare.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
cp q3.h5 renamed.h5
plans --costs costs.h5 --target-bits 5.2 q2.h5 renamed.h5 q5.h5 | sed 's/renamed/q3/' >x
ok 'names of files may change' cmp x blocks.plan
cp q3.h5 'new
line.h5'
plans --costs costs.h5 --target-bits 5.2 q2.h5 'new
line.h5' q5.h5 | sed 's/new?line/q3/' >x
ok '... and have a newline' cmp x blocks.plan
no '... that are not finite' 1 'bad.h5: /kl: has nan' plans --costs bad.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
no '... without candidates' 1 'none.h5: /kl: ' plans --costs none.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
no '... whose text is too long' 1 'more.h5: /lines: has 12 entries, expected 6' \
	plans --costs more.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
no '... whose text is cut' 1 'short.h5: /lines: has 5 entries, expected 6' \
	plans --costs short.h5 --target-bits 5.2 q2.h5 q3.h5 q5.h5
no 'only the model itself' 1 'llama-gqa.h5: has no quantized linear layer in a block' plans --target-bits 4 "$model"
no 'a candidate without a layer' 1 'less.h5: /model/layers/1/mlp/up_proj: is missing' \
	plans --target-bits 4 q2.h5 less.h5
no 'another model' 1 'e2.h5: ' plans --target-bits 4 q2.h5 e2.h5
no 'a reference that is quantized differently from the candidates: no error of the first' 1 \
	'has no output error' plans --by layer --hessian hess.h5 --target-bits 5 "$model" q2.h5
dpq-run -q --storage uint3 --group 16 --kv-format uint4 --hessian hess.h5 "$model" -o kv.h5
no 'a candidate with rounded keys and values, which the reference has not' 1 \
	"kv.h5: /: attribute kv_format is 'uint4', expected 'none' as in .*llama-gqa.h5" \
	plans --target-bits 4 q2.h5 kv.h5
dpq-run -q --storage uint3 --group 16 --shard 1/2 --hessian hess.h5 "$model" -o half.h5
no 'a shard of a candidate' 1 'half.h5: is one of several shards, expected a whole model .tensor-join joins shards.' \
	plans --target-bits 64 half.h5
no 'a quantized reference, for which dpq-run can apply no plan' 1 \
	'q5.h5: /model/layers/0/.*_proj: is quantized already, expected the model before quantization' \
	plan-bits --reference q5.h5 --tokens tokens.h5 --target-bits 4 q2.h5 q3.h5
fbq-run -q --hessian hess.h5 --storage uint2 --group 16 --method lowrank "$model" -o branch.h5 2>>err
no 'a branch' 1 'branch.h5: .*_proj: has a low-rank branch, which no plan of dpq-run makes' \
	plans --target-bits 4 q5.h5 branch.h5
no 'split columns' 1 'split.h5: .*/down_proj: has other split columns than the model of --reference' \
	plans --target-bits 4 q5.h5 split.h5
no 'scales of modalities' 1 'modality.h5: .*/down_proj: has an input scale for each modality, which no plan' \
	plans --target-bits 4 q5.h5 modality.h5
no 'a full disk' 1 '<stdout>: cannot write: No space left' sh -c "plan-bits -q --reference '$model' $text \
	--target-bits 64 q2.h5 q3.h5 -o full.h5 >/dev/full"
ok '... and no file is left' sh -c '! ls full.h5*'
done_testing
