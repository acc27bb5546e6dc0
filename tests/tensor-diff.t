#!/bin/sh
# tensor-diff.t -- errors of one model against another, compared with numpy and with the reports of dpq-run
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5 biased=$top/tests/ref/qwen2-bias.h5

py make "$model" "$biased"

tensor-diff --reference w.h5 --hessian h.h5 v.h5 >a 2>err
ok 'the numbers are numpy'\''s' py numbers
tensor-diff -q -r one.h5 --hessian hand.h5 other.h5 >x 2>err
is 'by hand: E = (0, -1/2), H = (2 1; 1 4)' "$(sed -n 2p x | cut -f3,4,6,7 | xargs)" '0.125 0.01 0.5 0.00943396'
is '-q is silent' "$(grep -v "$unmade" err)" ''
is 'without --hessian no column output_error' \
	"$(tensor-diff -q -r one.h5 other.h5 | head -1 | xargs)" 'tensor storage mse weight_error sqnr largest'
is 'equal models' "$(tensor-diff -q -r w.h5 w.h5 | cut -f3- | xargs)" 'mse weight_error sqnr largest 0 0 inf 0 - - - -'
tensor-diff -r w.h5 --hessian h.h5 --json v.h5 >j 2>err
ok 'JSON' py as_json
tensor-diff -q -r w.h5 --hessian h.h5 v.h5 -o r.h5 >x
ok '-o does not change what is printed' cmp x a
ok 'the record' py record

# the same numbers as in the report of dpq-run, for every method, from files and pipes
hessian-accum -q --tokens tokens.h5 --ctx 50 --convention bos "$model" -o mh.h5
gar-order --group 16 mh.h5 -o mo.h5
for how in '--compensate none' '--order mo.h5' '--order mo.h5 --compute e4m3fn' \
	'--compute e4m3ieee --recipe inc --scale8 channel'; do
	# shellcheck disable=SC2086
	dpq-run --group 16 --hessian mh.h5 $how "$model" -o q.h5 2>&1 | grep -v "$unmade" >report
	tensor-diff -q --reference "$model" --hessian mh.h5 q.h5 >x
	# tolerance: float products of at most 44 numbers, printed with six digits
	ok "dpq-run $how reports the same" py same_report
done
dpq-run -q --group 16 --hessian mh.h5 --compute e4m3ieee --recipe inc --scale8 channel "$model" |
	tensor-diff -q --reference "$model" --hessian mh.h5 >y
ok 'a pipe: the same output as a file' cmp x y
dpq-run -q --group 16 --hessian mh.h5 --compute e4m3ieee --recipe inc --scale8 channel "$model" | cat >stream.h5
cat "$model" | cat >cat.h5
tensor-diff -q -j 3 --reference cat.h5 --hessian mh.h5 stream.h5 >y
ok 'a stream in a file, with other threads: the same output' cmp x y
is 'two quantized models' "$(tensor-diff -q -r stream.h5 q.h5 | cut -f3 | sort -u | xargs)" '- 0 mse'
tensor-diff -q -r stream.h5 --hessian mh.h5 q.h5 -o r.h5 >x
is 'the record has the history of each input' \
	"$(h5dump -a history:model -a history:reference -a history:hessian r.h5 | grep -o 'dpq-run\|hessian-accum' |
	xargs)" 'dpq-run dpq-run hessian-accum'

# changes of other weights
others() { tensor-diff -r "$1" "$2" 2>err | grep -v '_proj	\|^all\|^tensor' | cut -f1,2,6 | xargs; tail -1 err; }
is 'only layers have changed' "$(others "$model" q.h5)" "
tensor-diff: 0 of 7 other weights and biases differ"
is 'a norm has changed' \
	"$(others "$model" norm.h5 | sed 's/ [0-9.]*$//;1s/ [0-9.]*$//' | head -1)" '/model/norm/weight f32'
is 'an embedding has changed' "$(others "$model" embed.h5 | cut -d' ' -f1,2 | head -1)" '/model/embed_tokens/weight f32'
is 'a bias has changed' \
	"$(others "$biased" bias.h5 | cut -d' ' -f1,2 | head -1)" '/model/layers/0/self_attn/k_proj/bias f32'
others "$biased" gone.h5 >x
ok 'a missing bias: a warning' grep -q "warning: gone.h5: /model/layers/1/self_attn/v_proj/bias: is missing" err
is '... and it counts as different' "$(tail -1 x | sed 's/^tensor-diff: \([0-9]*\) of .*/\1 differ/')" '1 differ'
others gone.h5 "$biased" >x
ok 'a new bias: a warning' \
	grep -q "warning: gone.h5: /model/layers/1/self_attn/v_proj/bias: is missing; .*qwen2-bias.h5 has it" err
dpq-run -q --compensate none --group 8 --layers '*lm_head' "$model" | tensor-diff -q -r "$model" >x
is 'a quantized head has a row like a layer' "$(grep '^/lm_head' x | cut -f2)" uint4
tensor-diff -q -r "$model" --layers '*/0/*' --layers '!*_proj' norm.h5 >x 2>err
is '--layers: norms alone are not layers' \
	"$(cat err)" 'tensor-diff: norm.h5: holds no linear layer that --layers selects'
is '--layers selects layers and other weights' "$(
	tensor-diff -r "$model" --layers '*/0/*' norm.h5 2>&1 >x | tail -1
	cut -f1 x | grep -c /0/
)" "tensor-diff: 0 of 2 other weights and biases differ
7"

no 'a reference is expected' 2 '--reference MODEL is expected' tensor-diff v.h5
no 'a layer that the reference lacks' 1 'w.h5: /c: is missing; two.h5 has it' tensor-diff -r w.h5 two.h5
no 'a layer that the model lacks' 1 'w.h5: /c: is missing; two.h5 has it' tensor-diff -r two.h5 w.h5
no 'a block without a layer' 1 \
	'no-layer.h5: /model/layers/1/mlp/up_proj: (is missing; .*llama-gqa.h5 has it|has neither weight nor codes)' \
	tensor-diff -r "$model" no-layer.h5
no 'another shape' 1 'tall.h5: /a/weight: has shape .50, 100., expected .70, 100.' tensor-diff -r tall.h5 w.h5
no 'infinity' 1 'inf.h5: /a/weight: holds infinite' tensor-diff -r w.h5 inf.h5
no 'NaN in a norm' 1 'n.h5: /n/weight: has infinite numbers or NaN, or n0.h5 has' \
	tensor-diff -r n0.h5 n.h5
no 'a norm of integers' 1 'int.h5: /n/weight: is int32, expected f32, f16 or bf16' tensor-diff -r n0.h5 int.h5
no 'a Hessian of another width' 1 'small.h5: /a/hessian: has shape .50, 50., expected .100, 100.' \
	tensor-diff -r w.h5 --hessian small.h5 v.h5
no 'the Hessian of another model' 1 'elsewhere.h5: holds no Hessian of a layer of v.h5' \
	tensor-diff -r w.h5 --hessian elsewhere.h5 v.h5
no 'a Hessian without tokens' 1 "count: is not positive" tensor-diff -r w.h5 --hessian unseen.h5 v.h5
no 'NaN in the Hessian' 1 'nan-h.h5: /a/hessian: holds a number that is not finite' \
	tensor-diff -r w.h5 --hessian nan-h.h5 v.h5
no 'a missing reference' 1 'nothing.h5: cannot open: No such file' tensor-diff -r nothing.h5 w.h5
no 'a reference of another kind' 1 "h.h5: holds a 'hessian', expected 'model'" tensor-diff -r h.h5 w.h5
size=$(stat -c %s stream.h5); head -c $((size / 2)) stream.h5 >half.h5
no 'a stream cut short' 1 'half.h5: is cut short' tensor-diff -r "$model" half.h5
no 'a full disk' 1 'stdout.*cannot write' sh -c 'tensor-diff -q -r w.h5 v.h5 >/dev/full'
no 'an error with -o' 1 'w.h5: /a/weight' tensor-diff -r w.h5 tall.h5 -o bad.h5
is '... leaves no file' "$(find . -name bad.h5 -o -name '.ptq*')" ''
done_testing
