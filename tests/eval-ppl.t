#!/bin/sh
# eval-ppl.t -- perplexity, divergence from a reference, rounded keys and values; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py make "$model"
run() { eval-ppl --ctx 20 --convention bos "$@"; }

run --tokens t.h5 "$model" >a
is 'the names of results' "$(cut -f1 a | xargs)" 'tokens nll nll_se ppl'
is 'the number of targets' "$(sed -n 's/^tokens.//p' a)" 494
run --tokens b.h5 "$model" >b
is 'the names of results, if the length of the text is known' "$(cut -f1 b | xargs)" \
	'tokens nll nll_se ppl bits_per_byte'
ok 'bits per byte' py bits_per_byte
run --tokens b.h5 --json "$model" >j
ok 'JSON' py as_json
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run --tokens t.h5 $how "$model" >x
	ok "the same with $how" cmp x a
done
# shellcheck disable=SC2002
cat "$model" | run --tokens t.h5 >x
ok 'the same from a pipe' cmp x a
run --tokens t.h5 "$model" -o r.h5 >/dev/null
ok 'the record' py record
dpq-run -q --compensate none --group 8 "$model" >rtn.h5
run --tokens t.h5 rtn.h5 -o q.h5 >/dev/null
run --tokens t.h5 rtn.h5 --paired r.h5 >p
ok 'paired differences' py paired
no 'a record of other windows' 1 'r.h5: /target: has other tokens, or other windows: 494 targets, expected 475' \
	eval-ppl --ctx 20 --tokens t.h5 --paired r.h5 "$model"
warns 'a record of another arithmetic' \
	'r.h5 was made with --compute-type f32, and this run with --compute-type bf16' \
	run --tokens t.h5 --compute-type bf16 --paired r.h5 "$model"
no 'a record of other tokens' 1 'r.h5: /target: has other tokens' run --tokens other.h5 --paired r.h5 "$model"

# with a reference model: results and record follow their formulas, and equal those of each model alone
run --tokens t.h5 rtn.h5 --reference "$model" -o against.h5 >k
is 'the names of results with a reference' "$(cut -f1 k | xargs)" "tokens nll nll_se ppl kl kl_se \
kl_se_windows kl_median kl_99 kl_99_9 kl_max top_agreement top_agreement_se delta_p delta_p_rms \
delta_p_1 delta_p_5 delta_p_25 delta_p_median delta_p_75 delta_p_95 delta_p_99 \
reference_nll_delta reference_nll_delta_se reference_nll_delta_se_windows"
ok 'both likelihoods equal those of each model alone' py both_alone
is 'the paired difference equals that of --paired' "$(tail -n 3 k | cut -d _ -f 2-)" "$(tail -n 3 p | cut -d _ -f 2-)"
ok 'results with a reference follow their formulas' py against
run --json --tokens t.h5 rtn.h5 --reference "$model" >j
ok 'JSON with a reference' py json_against
run --tokens t.h5 "$model" --reference "$model" >x
is 'a model as its own reference: all differences are exactly 0' "$(sed -n '/^kl/,$p' x | cut -f2 | xargs)" \
	"$(sed -n '/^kl/,$p' x | cut -f1 | sed 's/^top_agreement$/1/; t; s/.*/0/' | xargs)"
run --tokens t.h5 --reference "$model" <rtn.h5 >x && ok 'the model from standard input' cmp x k
# shellcheck disable=SC2002
cat "$model" | run --tokens t.h5 rtn.h5 --reference - >x
ok 'the reference from a pipe' cmp x k
# shellcheck disable=SC2016
bash \
	-c 'eval-ppl --ctx 20 --convention bos --tokens t.h5 --reference <(cat "$1") \
		<(dpq-run -q --compensate none --group 8 "$1")' x "$model" >x
ok 'both from pipes' cmp x k
run --tokens t.h5 --memory 0 rtn.h5 --reference "$model" >x && ok 'hidden states of both in files' cmp x k
for other in gpt2 llama-rope qwen2-bias; do	# other architectures, another number of blocks
	run --tokens t.h5 "$top/tests/ref/$other.h5" -o o.h5 >/dev/null
	run --tokens t.h5 "$top/tests/ref/$other.h5" --reference "$model" -o x.h5 >/dev/null
	ok "$other against llama-gqa" py other_architecture
done
for type in f32 bf16; do
	for j in 1 2 3; do run -j $j --compute-type $type --tokens t.h5 rtn.h5 --reference "$model" -o $j.h5 >$j; done
	ok "$type with a reference: the same bytes with 1, 2, 3 threads" \
		eval 'cmp 1.h5 2.h5 && cmp 1.h5 3.h5 && cmp 1 2 && cmp 1 3'
done
dpq-run -q --compensate none --group 8 "$model" | cat >stream
head -c $(($(wc -c <stream) - 100)) stream >clipped
py streams
mkdir refused
echo once >text
against() { run --tokens t.h5 "$model" --reference "$1" -o refused/r; }
for file in clipped:'is cut short' early:'the stream ends after' twice:'has data after' \
	nothing:'cannot open: No such file' text:'not an HDF5' \
	no-head.h5:'/lm_head: is missing' deep.h5:'has 2 blocks, expected 3 as in /config' no-q.h5:'q_proj' \
	nan.h5:'holds infinite'; do
	no "a bad reference: ${file%%:*}" 1 "^eval-ppl: ${file%%:*}: .*${file#*:}" against "${file%%:*}"
	no "a bad model with a reference: ${file%%:*}" 1 "^eval-ppl: ${file%%:*}: .*${file#*:}" \
		run --tokens t.h5 "${file%%:*}" --reference "$model" -o refused/r
done
no 'a reference that overflows' 1 'big.h5: has .*position 1 of window 1: numbers of the model overflow' against big.h5
no 'a reference with another vocabulary' 1 \
	"vocab.h5: /config: has a vocabulary of 62, .*llama-gqa.h5 has 61: only likelihoods" against vocab.h5
is 'no result was written' "$(ls -A refused)" ''
no 'both from standard input' 2 'standard input is named twice' \
	sh -c 'eval-ppl -q --ctx 20 --tokens t.h5 --reference - <"$1"' x "$model"
no 'a reference with fewer positions' 1 \
	'/gpt2.h5: /transformer/wpe: has 64 positions, the context needs 100: use a smaller --ctx' \
	eval-ppl --ctx 100 --tokens t.h5 "$model" --reference "$top/tests/ref/gpt2.h5"
no 'a reference with fewer positions, whose table begins with other rows' 1 \
	'/opt.h5: /model/decoder/embed_positions: has 40 positions, the context needs 41: use' eval-ppl \
	--ctx 41 --tokens t.h5 "$model" --reference "$top/tests/ref/opt.h5"

# --as-reference: a file of hidden states in place of the model, with the same results
for f in "$top"/tests/ref/*.h5; do
	case $(basename "$f" .h5) in hessians | checkpoints | conventions | fp4) continue ;; esac
	dpq-run -q --compensate none --group 4 "$f" >q.h5
	run --tokens t.h5 q.h5 --reference "$f" -o x.h5 >x
	run --tokens t.h5 --as-reference "$f" -o states.h5 >alone
	run --tokens t.h5 q.h5 --reference states.h5 -o y.h5 >y
	ok "$(basename "$f"): hidden states as the reference" \
		eval 'cmp x y && h5diff x.h5 y.h5 /kl && grep -q ^kl y'
	run --tokens t.h5 "$f" >x
	ok '... made while the model prints the same as without' cmp x alone
done
hadamard-rotate -q --seed 1 "$model" >rotated.h5
run --tokens t.h5 rtn.h5 --reference rotated.h5 >x
run --tokens t.h5 --as-reference rotated.h5 -o states.h5 >/dev/null
run --tokens t.h5 rtn.h5 --reference states.h5 >y
ok 'hidden states of a rotated model' eval 'cmp x y && grep -q ^kl y'
# shellcheck disable=SC2002
cat states.h5 | run --tokens t.h5 rtn.h5 --reference - >y
ok '... from a pipe' cmp x y
run --tokens t.h5 --memory 0 --as-reference "$model" -o states.h5 >/dev/null
run --tokens t.h5 --memory 0 rtn.h5 --reference states.h5 >y
ok 'hidden states kept in files' cmp k y
run --tokens t.h5 "$model" --paired states.h5 --reference states.h5 -o refused/r >x 2>err
is 'a file of hidden states is also a record, without a divergence' "$(cat err)" \
	'eval-ppl: states.h5: /kl: is missing; --reference and --paired together need a record with --reference'
run --tokens t.h5 rtn.h5 --paired states.h5 >x
ok '... for --paired' cmp x p
states='states.h5: /hidden_states: are of'
no 'hidden states of other tokens' 1 "$states other tokens or windows than other.h5: use the same --ctx" \
	run --tokens other.h5 "$model" --reference states.h5 -o refused/r
no 'hidden states of other windows' 1 "$states other tokens or windows than t.h5" \
	eval-ppl --ctx 21 --convention bos --limit 493 --tokens t.h5 "$model" --reference states.h5 -o refused/r
eval-ppl --ctx 20 --tokens t.h5 --as-reference "$model" -o adjacent.h5 >/dev/null
no '... with the same tokens in the same rows' 1 'adjacent.h5: /hidden_states: are of other tokens or windows' \
	eval-ppl --ctx 10 --tokens t.h5 "$model" --reference adjacent.h5 -o refused/r
no 'hidden states of another arithmetic' 1 "$states --compute-type f32, expected bf16" \
	run --compute-type bf16 --tokens t.h5 "$model" --reference states.h5 -o refused/r
no 'a record without hidden states' 1 "r.h5: holds a 'result' without /hidden_states, expected a 'model' or" \
	run --tokens t.h5 "$model" --reference r.h5 -o refused/r
no 'hidden states as the model' 1 "states.h5: holds a 'result', expected 'model'" \
	run --tokens t.h5 states.h5 -o refused/r
cp states.h5 spoilt.h5
py spoil_states spoilt.h5
no 'hidden states that are not finite' 1 'spoilt.h5: has .*position 3 of window 1: numbers of the model overflow' \
	run --tokens t.h5 "$model" --reference spoilt.h5 -o refused/r
cp t.h5 modality.h5
py set_modality modality.h5
cp "$model" headless.h5
py remove headless.h5 lm_head
no 'hidden states of more than text are refused before the model runs' 1 \
	'modality.h5: --as-reference needs tokens without images, /position' \
	run --tokens modality.h5 --as-reference headless.h5 -o refused/r
no '--as-reference without -o' 2 '--as-reference: -o FILE is expected' run --tokens t.h5 --as-reference "$model"
no '--as-reference to a full disk' 1 '/dev/full' run --tokens t.h5 --as-reference "$model" -o /dev/full
is 'no result was written' "$(ls -A refused)" ''

is 'gptq: one BOS, and the tail is dropped' "$(eval-ppl --ctx 20 --tokens t.h5 "$model" | sed -n 's/^tokens.//p')" \
	$((25 * 19))
is 'gptq without BOS' "$(eval-ppl --ctx 20 --tokens no-bos.h5 "$model" | sed -n 's/^tokens.//p')" $((25 * 19))
is '--limit' "$(run --limit 57 --tokens t.h5 "$model" | sed -n 's/^tokens.//p')" 57
ok 'f16 weights' run --tokens t.h5 half.h5
no_bias=$(run --tokens t.h5 "$model") bias=$(run --tokens t.h5 bias.h5)
ok 'a bias in the file is used, for any config' test "$bias" != "$no_bias"

no 'no --tokens' 2 '^eval-ppl: --tokens' run "$model"
no 'two models' 2 'operand|argument|more' run --tokens t.h5 "$model" "$model"
no 'a window of one id' 2 'ctx' eval-ppl --ctx 1 --tokens t.h5 "$model"
no 'not a tokens file' 1 'model' run --tokens "$model" "$model"
no 'an id beyond the vocabulary' 1 'high.h5: /tokens: id 61 at 1 ' eval-ppl --ctx 2 --tokens high.h5 "$model"
no 'a negative id' 1 'neg.h5: /tokens: id -1 at 1 ' eval-ppl --ctx 2 --tokens neg.h5 "$model"
no 'too few ids' 1 'short.h5: /tokens: 3 ids do not fill' run --tokens short.h5 "$model"
no '--convention bos without a BOS' 1 'no-bos.h5: /tokens: attribute bos_id is missing' run --tokens no-bos.h5 "$model"
no 'an unknown architecture' 1 "arch.h5: /config: unknown model_type 'odd', expected one of llama" \
	run --tokens t.h5 arch.h5
no 'rotary scaling' 1 \
	"rope.h5: /config: rotary scaling 'yarn' is not supported, expected default, linear, llama3 or longrope" run \
	--tokens t.h5 rope.h5
no 'a hidden size that is not a multiple of the heads' 1 'heads.h5: /config: hidden size 32 is not a multiple of 5' \
	run --tokens t.h5 heads.h5
no 'heads that are not a multiple of the key and value heads' 1 'groups.h5: /config: 4 attention heads' \
	run --tokens t.h5 groups.h5
no 'an absurd size' 1 "wide.h5: /config: 'hidden_size' must be" run --tokens t.h5 wide.h5
no 'an unknown activation' 1 "act.h5: /config: unknown activation 'relu7'" run --tokens t.h5 act.h5
no 'a block is missing' 1 'deep.h5: has 2 blocks, expected 3 as in /config' run --tokens t.h5 deep.h5
no 'a block too many' 1 'shallow.h5: /model/layers/1.*beyond the last block, expected 1' run --tokens t.h5 shallow.h5
for t in 'sample-tokens --length 8 -o x.h5' 'model-export -o exported' 'dpq-run --compensate none -o x.h5'; do
	# shellcheck disable=SC2086
	no "... ${t%% *}" 1 'shallow.h5: /model/layers/1.*beyond the last block, expected 1' $t -q shallow.h5
done
no 'tokens of another vocabulary' 1 't.h5: /tokens: made for a vocabulary of 61, vocab.h5 has 62' \
	run --tokens t.h5 vocab.h5
no 'no head' 1 'no-head.h5: /lm_head: is missing; a tied head' run --tokens t.h5 no-head.h5
no 'no embeddings' 1 \
	'no-embed.h5: /model/embed_tokens/weight: is missing or comes too late, expected before the blocks' \
	run --tokens t.h5 no-embed.h5
for f in wte wpe; do
	cp "$top/tests/ref/gpt2.h5" no-$f.h5
	py remove no-$f.h5 transformer/$f
	no "no $f" 1 "no-$f.h5: /transformer/$f/weight: is missing or comes too late, expected before the blocks" \
		run --tokens t.h5 no-$f.h5
done
no 'a missing weight' 1 'no-q.h5: /model/layers/1/self_attn/q_proj: ' run --tokens t.h5 no-q.h5
no 'NaN in a weight' 1 'nan.h5: /model/layers/0/mlp/up_proj/weight: holds infinite or undefined' \
	run --tokens t.h5 nan.h5
no 'infinity in a norm' 1 'inf.h5: /model/layers/0/input_layernorm/weight: holds' run --tokens t.h5 inf.h5
no 'a branch without branch_b' 1 'branch.h5: /model/layers/0/mlp/up_proj/branch_a: is present, but no branch_b' \
	run --tokens t.h5 branch.h5
no 'a model that overflows' 1 'overflow' run --tokens t.h5 big.h5
no 'a config that is not JSON' 1 'junk.h5: /config: not JSON' run --tokens t.h5 junk.h5
no 'no room for hidden states' 1 '/nowhere' env TMPDIR=/nowhere eval-ppl --ctx 20 --tokens t.h5 --memory 0 "$model"

# damaged quantized layers
dpq-run -q --compensate none --group 16 "$model" -o q.h5
ok 'a quantized model' run --tokens t.h5 q.h5
py quantized_faults
up=/model/layers/1/mlp/up_proj
no 'a code that the format does not have' 1 "code.h5: $up/codes: holds code 16, which is not valid in uint4" \
	run --tokens t.h5 code.h5
no 'a zero point that the format does not have' 1 \
	"sixteen.h5: $up/zero: holds zero point 16, the largest code of uint4 is 15" \
	run --tokens t.h5 sixteen.h5
no 'no scale' 1 "scale.h5: $up/scale: is missing" run --tokens t.h5 scale.h5
no 'zeros of another shape' 1 "zero.h5: $up/zero: has shape" run --tokens t.h5 zero.h5
no 'a negative scale' 1 "minus.h5: $up/scale: holds -1" run --tokens t.h5 minus.h5
no 'no group size' 1 "group.h5: $up: attribute group" run --tokens t.h5 group.h5
no 'an unknown storage format' 1 "format.h5: $up: attribute storage 'int99' is not a number format" \
	run --tokens t.h5 format.h5
no 'an unknown activation mode' 1 "act.h5: $up: attribute act_mode 'odd' is not known" run --tokens t.h5 act.h5
no 'an activation format with a zero point' 1 \
	"act-zero.h5: $up: attribute act_format is 'uint8', which has a zero point" \
	run --tokens t.h5 act-zero.h5
no 'a compute format with a zero point' 1 "compute-zero.h5: $up: attribute compute is 'uint8', which has a zero point" \
	run --tokens t.h5 compute-zero.h5
no 'a column in a group that does not exist' 1 "index.h5: $up/group_index: column 0 is in group 2 of 2" \
	run --tokens t.h5 index.h5
no 'no second scale' 1 "eight.h5: $up/scale8: is missing" run --tokens t.h5 eight.h5
no 'packed codes of a wrong number of columns' 1 "packed.h5: $up/packed: attribute columns" run --tokens t.h5 packed.h5
no 'an online Hadamard of one of two layers with the same input' 1 \
	"online.h5: $up: attribute online_hadamard is 16, expected 0: .*gate_proj has the same input" run \
	--tokens t.h5 online.h5
no 'an online Hadamard of an order that does not fit' 1 \
	"third.h5: $up: attribute online_hadamard is 3, expected the order of .* divides 32 columns, such as 32" run \
	--tokens t.h5 third.h5
no 'an online Hadamard of embeddings' 1 \
	"table.h5: /model/embed_tokens: attribute online_hadamard is only allowed in layers" run --tokens t.h5 table.h5

# rounded keys and values
run --tokens t.h5 --kv-format none "$model" >x && ok '--kv-format none changes nothing' cmp x a
run --tokens t.h5 --kv-format UINT4:4 "$model" -o kv.h5 >x
is 'the names of results with --kv-format' \
	"$(cut -f1 x | xargs) $(sed -n 's/^kv_bits.//p' x)" 'tokens nll nll_se ppl kv_bits 13'
is 'the history has the format' "$(h5dump -a /history kv.h5 | sed -n 's/.*(0): "//p' | sed 's/"$//')" \
	"eval-ppl $(cat "$top/VERSION") --ctx 20 --convention bos --kv-format uint4:4"
ok 'the record has the bits' py kv_bits
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run --tokens t.h5 --kv-format uint4:4 $how "$model" >y
	ok "rounded keys and values: the same with $how" cmp x y
done
is 'scales of 8 bits' "$(run --tokens t.h5 --kv-format mxfp4:8 "$model" | sed -n 's/^kv_bits	//p')" 5
run --tokens t.h5 --kv-format int4 "$model" >x
run --tokens t.h5 --kv-format int4:8 "$model" >y
ok 'the default group is all channels of a head' cmp x y
py rotated_keys "$top/tests/ref"
kl() { run --tokens t.h5 "$@" -o kl.h5 >kl && sed -n 's/^kl\t//p' kl; }
run --tokens t.h5 "$model" -o plain.h5 >/dev/null
eight=$(kl --kv-format int8 --reference "$model" "$model") four=$(kl --kv-format int4 --reference "$model" "$model") \
	two=$(kl --kv-format int2 --reference "$model" "$model")
ok "fewer bits, more divergence ($eight $four $two)" \
	awk "BEGIN { exit !(0 < $eight && 5 * $eight < $four && 2 * $four < $two) }"
ok 'the reference is not rounded' py reference_exact
# with and without rotary positions, with norms of heads, with other scales
for name in llama-gqa gpt2 opt neox-parallel gemma3 qwen3-window; do
	plain=$top/tests/ref/$name.h5
	same=$(kl --reference "$plain" "h-$name.h5") rounded=$(kl --kv-format uint4 --reference "$plain" "$plain") \
		turned=$(kl --kv-format uint4 --reference "$plain" "h-$name.h5")
	ok "$name: a Hadamard matrix changes only rounded formats ($same $rounded $turned)" \
		awk -v same="$same" -v rounded="$rounded" -v rotated="$turned" 'BEGIN {
			far = 1e4 * (same + 1e-12)
			exit !(same < 1e-10 && far < rounded && rounded < 0.1 && far < rotated && rotated < 0.1 &&
				rotated != rounded) }'
done
dpq-run -q --compensate none --group 8 h-llama-gqa.h5 | cat >stream
dpq-run -q --compensate none --group 8 h-llama-gqa.h5 -o h.h5
run --tokens t.h5 --kv-format int4 h.h5 >x
run --tokens t.h5 --kv-format int4 rtn.h5 >y
no 'a filter keeps the Hadamard matrix' 1 differ sh -c 'cmp x y >&2'
run --tokens t.h5 --kv-format int4 <stream >y; ok '... also in a stream' cmp x y
for g in 3 16; do
	no "groups of $g" 1 \
		"^eval-ppl: .*llama-gqa.h5: /config: heads have 8 channels; --kv-format is e2m1:$g, expected a group" \
		run --tokens t.h5 --kv-format e2m1:$g "$model" -o refused/r
done
for i in 0 1 2 3 4 5 6 7; do
	no "a bad attribute kv_hadamard, $i" 1 \
		"^eval-ppl: h$i.h5: /model/layers/1/self_attn: attribute kv_hadamard is" run --tokens t.h5 h$i.h5 \
		-o refused/r
done
no 'a format with a divisor of the whole tensor' 2 "--kv-format: 'nvfp4:8' divides its scales" \
	run --tokens t.h5 --kv-format nvfp4:8 "$model" -o refused/r
no 'a format whose own group does not divide a head' 1 'heads have 8 channels; --kv-format is mxfp4:32' \
	run --tokens t.h5 --kv-format mxfp4 "$model" -o refused/r
no 'keys that overflow' 1 'overflow' run --tokens t.h5 --kv-format uint4 big.h5 -o refused/r

# ... as the model specifies: attribute kv_format gives the same results as the option
for i in 4 8; do dpq-run -q --compensate none --group 8 --kv-format "UINT$i:4" "$model" -o "kv$i.h5"; done
dpq-run -q --compensate none --group 8 "$model" -o kv-none.h5
is 'the attribute and the history of a model with a format' \
	"$(h5dump -a /kv_format kv4.h5 | sed -n 's/.*(0): //p') $(h5dump -a /history kv4.h5 |
	grep -o -e '--kv-format [a-z0-9:]*')" '"uint4:4" --kv-format uint4:4'
run --tokens t.h5 --kv-format uint4:4 kv-none.h5 >x; run --tokens t.h5 kv4.h5 >y; ok '... the model is run with it' \
	cmp x y
dpq-run -q --compensate none --group 8 --kv-format uint4:4 <"$model" | tee stream | run --tokens t.h5 >y
ok '... through pipes' cmp x y
msq-calib -q --kv-format uint4:4 "$model" -o kv-plain.h5
ok 'msq-calib writes the attribute, and changes nothing else' py attributes_alone "$model"
hadamard-rotate -q --check kv-plain.h5 2>said | dpq-run -q --compensate none --group 8 | exmy-pack -q | tee stream |
	run --tokens t.h5 >y
s=$?
is '--check compares without rounded keys and values' "$s $(cat said)" '0 '
hadamard-rotate -q "$model" | dpq-run -q --compensate none --group 8 | exmy-pack -q |
	run --tokens t.h5 --kv-format uint4:4 >z
ok '... filters keep the attribute, in streams' cmp y z
run --tokens t.h5 kv-none.h5 >none
for m in kv4.h5 kv-none.h5; do
	run --tokens t.h5 --kv-format none $m >y; ok "$m: --kv-format none overrides the attribute" cmp none y
	run --tokens t.h5 --kv-format int3 $m >y
	run --tokens t.h5 --kv-format int3 kv8.h5 >z
	ok "$m: another --kv-format overrides the attribute" cmp y z
done
dpq-run -q --compensate none --group 8 --kv-format none kv-plain.h5 | run --tokens t.h5 >y
ok 'a filter removes the attribute with --kv-format none' cmp none y
dpq-run -q --compensate none --group 8 kv-plain.h5 | run --tokens t.h5 >y; ok '... and keeps it without the option' \
	cmp x y
kl --reference kv8.h5 kv4.h5 >/dev/null; cp kl.h5 both.h5; kl --kv-format int2 --reference kv8.h5 kv4.h5 >/dev/null
for i in 4 8; do run --tokens t.h5 kv$i.h5 -o alone$i.h5 >/dev/null; done
ok 'model and reference have their own formats, and the option is for the model' py kv_of_each
py kv_faults "$model"
for i in 0 1 2 3 4 5; do
	no "a bad attribute kv_format, $i" 1 \
		"^eval-ppl: bad$i.h5: /: attribute kv_format is '.*', expected a format" run --tokens t.h5 bad$i.h5 \
		-o refused/r
done
no '... a number' 1 '^eval-ppl: bad6.h5: /: attribute kv_format ' run --tokens t.h5 bad6.h5 -o refused/r
no '... of a reference' 1 "^eval-ppl: bad1.h5: /: attribute kv_format is 'int99'" \
	run --tokens t.h5 --reference bad1.h5 kv4.h5 -o refused/r
no '... groups that do not divide a head' 1 \
	'bad7.h5: /config: heads have 8 channels; kv_format is int4:3, expected' run --tokens t.h5 bad7.h5 -o refused/r
no 'a filter refuses groups that do not divide a head' 1 'heads have 8 channels; --kv-format is int4:3' \
	dpq-run -q --compensate none --group 8 --kv-format int4:3 "$model" -o refused/r
no '... and a format for matrices without a config' 1 'w.h5: /config: is missing; --kv-format' \
	dpq-run -q --compensate none --group 8 --kv-format int4 w.h5 -o refused/r
for i in 1 2; do
	dpq-run -q --compensate none --group 8 --kv-format int$((2 + 2 * i)) --layers "*/$((i - 1))/*" "$model" \
		-o half$i.h5
done
no 'two halves with different formats' 1 "half2.h5: /: attribute kv_format is 'int6', expected 'int4' as in half1.h5" \
	tensor-join -q half1.h5 half2.h5 -o refused/r
is 'no result was written' "$(ls -A refused)" ''

# Large enough for tiles and chunks: 1, 3, 4 and 60 windows; fewer chunks than threads, a remainder of chunks, two tiles
# of weights of the head
py wide_model
dpq-run -q --compensate none --storage int8 wide.h5 -o wide-int8.h5
for type in f32 bf16; do
	for ctx in 2000 700 512 35; do
		for j in 1 2 3; do
			eval-ppl -q -j $j --compute-type $type --ctx $ctx --tokens wide-tokens.h5 wide.h5 \
				-o $j.h5 >/dev/null
		done
		ok "$type, windows of $ctx: the same with 1, 2, 3 threads" py threads
		mv 1.h5 $type-$ctx.h5
	done
done
for j in 1 3; do
	eval-ppl -q -j $j --ctx 700 --tokens wide-tokens.h5 wide.h5 --reference wide-int8.h5 -o $j.h5 >/dev/null
done
ok 'two tiles of weights with a reference: the same with 1, 3 threads' cmp 1.h5 3.h5
ok 'the likelihood of the model equals that without a reference' py likelihood_alone
# seven layers per block and the head, each with factors rounded by at most 2^-9
ok 'bf16 is near f32, but not equal' py bf16_near
for j in 1 3; do
	eval-ppl -q -j $j --kv-format int4:16 --ctx 512 --tokens wide-tokens.h5 wide.h5 -o $j.h5 >/dev/null
done
ok 'rounded keys and values in chunks: the same with 1, 3 threads' cmp 1.h5 3.h5
no 'an unknown compute type' 2 'compute-type' run --compute-type f16 --tokens t.h5 "$model"

# likelihoods of transformers
for pair in stories260K:2.04588577 babyllama-105:1.09542030; do
	name=${pair%:*}
	if [ -z "$shared" ]; then skip "$name" 'no ../shared/data'; continue; fi
	model-import -q "$shared/$name" -o m.h5 && tokenize -q --model m.h5 "$shared/tinystories.txt" -o tokens.h5
	eval-ppl --tokens tokens.h5 --ctx 256 --convention bos --limit 4096 m.h5 >out
	echo "# $name: $(xargs <out), wanted nll ${pair#*:}"
	ok "$name" py known "${pair#*:}"
done
done_testing
