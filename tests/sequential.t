#!/bin/sh
# sequential.t -- dpq-run --sequential, compared with its definition
#
# The definition is carried out by the tools on files: Hessians of the layers that read one input, in a model whose
# earlier layers are quantized; quantization of these layers; then the next. Members and attributes of all groups must
# agree bit for bit: in both forms windows go through a block in the same tiles and are summed in the same order.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
ref=$top/tests/ref llama=$top/tests/ref/llama-gqa.h5

py make

# definition OUT MODEL ORDER[:KEY] STAGES OPTION...: a stage is a list of layers, with :GROUP if it is not 8. $pair: the
# option of the unquantized model
calib='--tokens tokens.h5' window='--ctx 50 --convention bos' type='' pair=
definition() {
	out=$1 order=${3%:*} key=${3#"${3%:*}"} stages=$4
	cp "$2" now.h5
	shift 4
	for stage in $stages; do
		layers=$(echo ",${stage%:*}" | sed 's/,/ --layers /g') group=${stage#"${stage%:*}"}
		[ "$group" ] || group=8
		# shellcheck disable=SC2086
		{
			hessian-accum -q -j 1 $calib $window $type $pair $layers now.h5 -o stage-h.h5 &&
			gar-order -q -j 1 --order $order ${key:+--key ${key#:}} --group "${group#:}" stage-h.h5 \
				-o stage-o.h5 &&
			dpq-run -q -j 1 --hessian stage-h.h5 --order stage-o.h5 "$@" $layers now.h5 -o next.h5 &&
			mv next.h5 now.h5
		} 2>>definition.err || return
	done
	mv now.h5 "$out"
}
# sequential OUT MODEL ORDER[:KEY] OPTION...
sequential() {
	out=$1 model=$2 order=${3%:*} key=${3#"${3%:*}"}
	shift 3
	# shellcheck disable=SC2086
	dpq-run -q --sequential $calib $window $type --reorder $order ${key:+--key ${key#:}} "$@" "$model" -o "$out"
}
# held NAME MODEL ORDER[:KEY] STAGES OPTION...: both forms for the layers of the stages; they are compared at the end
held=0
held() {
	held=$((held + 1)) name=$1 m=$2 o=$3 st=$4 all=$(echo "$4" | sed 's/:[0-9]*$//' | tr ',\n' '  ')
	shift 4
	definition $held.plain.h5 "$m" "$o" "$st" --group 8 "$@"
	# shellcheck disable=SC2046,SC2086
	sequential $held.h5 "$m" "$o" --group 8 "$@" $(printf ' --layers %s' $all)
	# shellcheck disable=SC2086
	set -- $all
	echo "$held.h5 $held.plain.h5 $(($# - ${kept:-0}))" >>pairs
	echo "$name" >>names
}
stages() { for i in 0 1; do for s; do echo "$s" | sed "s/@/$i/g"; done; done; }
a=model/layers/@/self_attn m=model/layers/@/mlp
llama_stages=$(stages $a/q_proj,$a/k_proj,$a/v_proj $a/o_proj $m/gate_proj,$m/up_proj $m/down_proj)
few_stages=$(echo "$llama_stages" | grep -v 'layers/1/.*\(o_proj\|mlp\)')
a=gpt_neox/layers/@/attention m=gpt_neox/layers/@/mlp
neox_stages=$(stages $a/q_proj,$a/k_proj,$a/v_proj $a/dense $m/dense_h_to_4h $m/dense_4h_to_h)
a=transformer/h/@
gpt2_stages=$(stages $a/attn/c_attn $a/attn/c_proj $a/mlp/c_fc $a/mlp/c_proj)
held 'Llama, W4A16, columns in storage order' "$llama" none "$llama_stages"
held 'Llama, W4A8, gar' "$llama" gar "$llama_stages" --compute e4m3fn
held 'Llama, W4A8, full order, groups stored' "$llama" full "$few_stages" --compute e4m3fn
held 'Llama, gar by another key' "$llama" gar:sum "$few_stages" --storage e2m1
held 'Llama, rounded to nearest, static scales of activations' "$llama" none "$few_stages" --storage e4m3fn \
	--compensate none --act-format e4m3fn
held 'norms of heads, windows of attention, activations by token' "$ref/qwen3-window.h5" gar "$few_stages" \
	--act-format int8 --act-mode dynamic-token
held 'one layer for queries, keys and values; learned positions; biases' "$ref/gpt2.h5" gar "$gpt2_stages" \
	--compute e4m3fn
held 'parallel blocks: the MLP reads the input of the block' "$ref/neox-parallel.h5" gar "$neox_stages"
held 'the same class, serial' "$ref/neox-serial.h5" full "$(echo "$neox_stages" | grep /0/)"
type='--compute-type bf16'
held 'products of bf16' "$llama" gar "$few_stages" --compute e4m3fn
type=
msq-calib -q --kv-format uint2:4 "$llama" -o kv.h5
held 'keys and values in 2 bits, by the attribute of the model' kv.h5 none "$(echo "$llama_stages" | grep /0/)"
# shellcheck disable=SC2046,SC2086
sequential kv-option.h5 "$llama" none --group 8 --kv-format uint2:4 \
	$(echo "$llama_stages" | grep /0/ | tr ', ' '\n\n' | sed 's/^/--layers /')
echo "kv-option.h5 $held.h5 7" >>pairs; echo '... by the option' >>names

# QEP and Qronos: cross moments with the inputs of the unquantized model
pair="--pair $llama"
held 'Qronos' "$llama" gar "$llama_stages" --storage int3 --solver qronos
held 'Qronos between rotations' "$llama" none "$few_stages" --storage int3 --solver qronos --layer-rotation two-sided
held 'QEP, inputs by token in 8 bits' "$llama" gar "$llama_stages" --storage int3 --qep 0.5 \
	--act-format int8 --act-mode dynamic-token
held 'QEP of all layers and round to nearest' "$llama" none "$few_stages" --storage int3 --qep 1 --qep-damp 0.1 \
	--qep-skip none --compensate none
held 'QEP and E8P' "$llama" none "$few_stages" --storage e8p --qep 0.5
pair="--pair $ref/neox-parallel.h5"
held 'Qronos in parallel blocks, and of the head' "$ref/neox-parallel.h5" gar "$neox_stages embed_out" --solver qronos
pair="--pair kv.h5"
held 'Qronos of a model with keys and values in 2 bits' kv.h5 none "$few_stages" --solver qronos
pair=

# layers that are kept, not selected or in other groups, embeddings and the head
cat >plan.txt <<'P'
*/0/*/up_proj	keep
*/v_proj	storage=int8
*/down_proj	group=16
P
kept=1
held 'a plan: kept layers run unquantized, the order of a layer is by its group size' "$llama" gar \
	"$(echo "$llama_stages" | sed '/down/s/$/:16/')" --compute e4m3fn --plan plan.txt
kept=
held 'some layers, and the head' "$llama" gar "$(echo "$few_stages" | grep -v o_proj) lm_head"
held '... in parallel blocks' "$ref/neox-parallel.h5" gar "$(echo "$neox_stages" | grep 4h_to_h) embed_out"
echo '*embed_tokens compensate=none' >embed.txt
dpq-run -q --compensate none --group 8 --layers model/embed_tokens "$llama" -o embedded.h5
definition plain.h5 embedded.h5 none "$few_stages" --group 8
# shellcheck disable=SC2046
sequential seq.h5 "$llama" none --group 8 --plan embed.txt --layers '*embed_tokens' \
	$(echo "$few_stages" | tr , '\n' | sed 's/^/--layers /')
echo 'seq.h5 plain.h5 11' >>pairs; echo 'blocks read the rounded embeddings' >>names

# experts with fewer tokens than inputs, without the router: their prior comes from the inputs of the router
calib='--tokens sparse.h5' window='--ctx 20'
experts() {
	for i in 0 1 2 3; do
		for w; do
			printf '%s' "$c"
			printf 'model/layers/0/block_sparse_moe/experts/%s/%s' $i "$w"
			c=,
		done
	done
}
held 'experts only' "$ref/mixtral.h5" gar "$(c='' experts w1 w3) $(c='' experts w2)"
ok '... have a prior' \
	sh -c 'hessian-accum -q --tokens sparse.h5 --ctx 20 "$1" -o sparse-h.h5 &&
		h5ls -r sparse-h.h5 | grep -q experts/0/w1/prior/count' x "$ref/mixtral.h5"
pair="--pair $ref/mixtral.h5"
held '... Qronos' "$ref/mixtral.h5" gar "$(c='' experts w1 w3) $(c='' experts w2)" --storage int3 --solver qronos
calib='--tokens tokens.h5'
a=model/layers/@/self_attn e=model/layers/1/mlp
shared=$(stages $a/q_proj,$a/k_proj,$a/v_proj $a/o_proj)
sparse=$(for p in gate up down; do for i in 0 1 2 3 4; do echo $e/experts/$i/${p}_proj; done; done)
pair="--pair $ref/qwen2-moe.h5"
held 'Qronos of all layers of a block with experts and a shared expert' "$ref/qwen2-moe.h5" gar \
	"$(echo "$shared" | grep /1/) $e/shared_expert/gate_proj,$e/shared_expert/up_proj $e/shared_expert/down_proj \
	$(echo "$sparse" | grep -v down | paste -sd,) $(echo "$sparse" | grep down | paste -sd,)" \
	--storage int3 --solver qronos
held '... QEP' "$ref/qwen2-moe.h5" gar \
	"$(echo "$shared" | grep /1/) $e/shared_expert/gate_proj,$e/shared_expert/up_proj $e/shared_expert/down_proj \
	$(echo "$sparse" | grep -v down | paste -sd,) $(echo "$sparse" | grep down | paste -sd,)" \
	--storage int3 --qep 0.5 --qep-skip none
pair=
calib='--tokens tokens.h5' window='--ctx 50 --convention bos'

py same_layers <pairs >results
while IFS='	' read -r name result; do is "$name" "$result" same; done <<X
$(paste names results)
X
is 'the definition has no errors' "$(grep -v ': warning: ' definition.err)" ''

# the result differs from one-shot calibration, except for the first input of the first block
# shellcheck disable=SC2086
hessian-accum -q $calib $window "$llama" -o h.h5
gar-order -q --group 8 h.h5 -o o.h5
dpq-run -q --hessian h.h5 --order o.h5 --group 8 --compute e4m3fn "$llama" -o shot.h5
echo '2.h5 shot.h5 14' | py same_layers | tr ' ' '\n' >differ
ok 'one-shot Hessians give other codes' grep -q 0/self_attn/o_proj/codes differ
is '... except for layers without a quantized layer before them' "$(grep -c '0/self_attn/[qkv]_proj' differ)" 0
sequential gptq.h5 "$llama" gar --storage int3 --group 8
for o in '--solver qronos' '--qep 1'; do
	# shellcheck disable=SC2086
	sequential x.h5 "$llama" gar --storage int3 --group 8 $o
	echo 'x.h5 gptq.h5 14' | py same_layers | tr ' ' '\n' >differ
	is "with $o the first input has no error, and its layers are those of GPTQ" \
		"$(grep -c '0/self_attn/[qkv]_proj' differ)$(grep -c 0/self_attn/o_proj/codes differ)" 01
done

# the same bytes with other threads, memory and streams
model-import -q "$top/tests/tiny" -o tiny.h5
model-import -q "$top/tests/tiny" | cat >stream
sample-tokens -q --length 512 --ctx 16 --seed 1 tiny.h5 -o text.h5
s='--sequential --tokens text.h5 --ctx 16 --reorder gar --group 8 --compute e4m3fn'
# shellcheck disable=SC2086
{
	dpq-run -q $s -j 1 tiny.h5 -o one.h5
	dpq-run -q $s -j 2 --memory 0 tiny.h5 -o two.h5
	dpq-run -q $s <stream >three.h5
	dpq-run -q $s <stream | cat >four
}
is 'all layers are quantized' "$(h5ls -r one.h5 | grep -c /codes)" 14
ok 'the same bytes on two threads, with hidden states in a file' cmp one.h5 two.h5
ok '... from a stream to a file' cmp one.h5 three.h5
eval-ppl -q --tokens text.h5 --ctx 16 one.h5 >file.tsv
ok '... from a stream to a stream the same model' sh -c 'eval-ppl -q --tokens text.h5 --ctx 16 four | cmp file.tsv -'
history() { py history "$1"; }
is 'the history has the options that change the result, and the history of the tokens' "$(history two.h5)" \
	'--reorder gar --group 8 --compute e4m3fn --sequential --ctx 16
history:tokens history:tokens:model'

# the same with a second pass of the unquantized layers
s="$s --storage int3 --solver qronos"
# shellcheck disable=SC2086
{
	dpq-run -q $s -j 1 tiny.h5 -o one.h5
	dpq-run -q $s -j 2 --memory 0 tiny.h5 -o two.h5
	dpq-run -q $s <stream >three.h5
}
ok 'Qronos: the same bytes on two threads, with hidden states in a file' cmp one.h5 two.h5
ok '... from a stream' cmp one.h5 three.h5

# options that exclude each other, or have no effect
no '--sequential with --hessian' 2 \
	'replaces --hessian' dpq-run --sequential --tokens text.h5 --hessian h.h5 tiny.h5 -o bad.h5
no 'an order from a file' 2 '.-sequential replaces --hessian, and --reorder replaces --order' \
	dpq-run --sequential --tokens text.h5 --order o.h5 tiny.h5 -o bad.h5
no 'no tokens' 2 '.-tokens FILE is expected with --sequential' dpq-run --sequential tiny.h5 -o bad.h5
no 'tokens without --sequential' 2 \
	'.-tokens requires --sequential' dpq-run --tokens text.h5 --hessian h.h5 tiny.h5 -o bad.h5
no 'shards' 2 'shard' dpq-run --sequential --tokens text.h5 --shard 1/2 tiny.h5 -o bad.h5
warns 'settings of a calibration without --sequential' '.-ctx .without --sequential' \
	dpq-run --compensate none --group 8 --ctx 16 tiny.h5 -o plain.h5
warns 'an order without compensation' '.-reorder, --key .--compensate none' \
	dpq-run --compensate none --group 8 --reorder gar --key sum tiny.h5 -o plain.h5
warns 'a key without groups' '.-key .--reorder none or full' \
	dpq-run --sequential --tokens text.h5 --ctx 16 --group 8 --reorder full --key sum tiny.h5 -o x.h5
warns 'rounding to nearest needs no calibration' '.-sequential, --ctx .it serves the report only' \
	dpq-run --compensate none --group 8 --sequential --tokens text.h5 --ctx 16 tiny.h5 -o x.h5
is '... and --sequential does not change the result' "$(echo 'x.h5 plain.h5 14' | py same_layers; history x.h5)" "same
$(history plain.h5)"
no 'QEP without a calibration' 2 '--qep needs --hessian FILE with cross moments' \
	dpq-run --qep 0.5 --compensate none tiny.h5 -o bad.h5
no 'QEP of a calibration without cross moments' 1 'h.h5: /model/layers/0/self_attn/q_proj/cross: is missing' \
	dpq-run -q --qep 0.5 --group 8 --hessian h.h5 "$llama" -o bad.h5
no 'QEP and Qronos' 2 '--qep: --solver qronos compensates the error of inputs too' \
	dpq-run --sequential --tokens text.h5 --qep 0.5 --solver qronos tiny.h5 -o bad.h5
warns 'settings of QEP without it' '.-qep-damp .no --qep.' \
	dpq-run --sequential --tokens text.h5 --ctx 16 --group 8 --qep-damp 1 tiny.h5 -o x.h5
warns 'layers without QEP, without QEP' '.-qep-skip .no --qep.' \
	dpq-run --sequential --tokens text.h5 --ctx 16 --group 8 --qep-skip none tiny.h5 -o x.h5
warns '--qep-skip of no layer' 'tiny.h5: --qep-skip matches no layer that --layers selects' \
	dpq-run --sequential --tokens text.h5 --ctx 16 --group 8 --qep 0.5 --qep-skip '*/q_porj' --layers '*/0/*' \
	tiny.h5 -o x.h5
no 'static scales without a calibration' 2 'need --hessian FILE or --sequential' \
	dpq-run --storage e4m3fn --compensate none --act-format e4m3fn tiny.h5 -o bad.h5

# bad input: one line of message, and no file
# shellcheck disable=SC2317
bad() { dpq-run -q --sequential --ctx 50 --group 8 "$@" -o bad.h5; }
no 'too few tokens' 1 'few.h5: .*window' bad --tokens few.h5 "$llama"
no 'tokens of another vocabulary' 1 'vocab.h5: ' bad --tokens vocab.h5 "$llama"
ok '... are allowed with --force-tokens' \
	dpq-run -q --sequential --ctx 50 --group 8 --force-tokens --tokens vocab.h5 "$llama" -o x.h5
no 'ids beyond the vocabulary' 1 'ids.h5: ' bad --tokens ids.h5 "$llama"
no 'a file that has no tokens' 1 "layer.h5: .*'model', expected 'tokens'" bad --tokens layer.h5 "$llama"
no 'a layer without a model' 1 'layer.h5: /config: is missing; --sequential runs the model' \
	bad --tokens tokens.h5 layer.h5
no 'a layer that is quantized already' 1 'one.h5: /model/layers/0/self_attn/.*: is quantized already' \
	bad --tokens text.h5 one.h5
no 'compensation of embeddings' 1 'embed_tokens: reads token ids' bad --tokens tokens.h5 --layers '*' "$llama"
no 'no selected layer' 1 'holds no linear layer' bad --tokens tokens.h5 --layers nothing "$llama"
head -c $(($(wc -c <stream) * 2 / 3)) stream >clipped
no 'a stream cut short' 1 'clipped: is cut short' bad --tokens text.h5 clipped
py faults
no 'infinity in a weight' 1 'o_proj/weight' bad --tokens text.h5 nan.h5
no 'a stream without its last part' 1 'headless: ' bad --tokens text.h5 headless
no 'a stream without its first part' 1 'blocks: ' bad --tokens text.h5 blocks
is 'errors leave no file' "$(find . -name bad.h5 -o -name '.ptq*')" ""
done_testing
