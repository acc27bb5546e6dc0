#!/bin/sh
# smooth-scale.t -- outliers of activations moved into the weights: SmoothQuant's factors, and SmoothAttention's;
# random factors
#
# Every reference model computes the same as before.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
attr() { py attr "$@"; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }

for name in llama-gqa llama-tied qwen2-bias gpt2 opt neox-parallel neox-serial gemma gemma2 phi3-window qwen2-moe \
	mixtral; do
	sample-tokens -q --length 320 --ctx 32 "$ref/$name.h5" -o "$name-t.h5"
	hessian-accum -q --tokens "$name-t.h5" --ctx 32 "$ref/$name.h5" -o "$name-h.h5"
	smooth-scale --check --hessian "$name-h.h5" "$ref/$name.h5" -o "$name.h5" 2>said; s=$?
	ok "$name: the logits stay the same, $(checked)" below "$(checked)" 1e-5
	is "$name: status" $s 0
done
hessian-accum -q --tokens opt-t.h5 --ctx 32 opt.h5 -o after.h5
# the factors by hand, α = 0.5, of blocks whose second norm is read by `up`
ok 'llama: factors of attention' py look "$ref" llama-gqa model/layers/0/input_layernorm \
	model/layers/0/self_attn/q_proj,model/layers/0/self_attn/k_proj,model/layers/0/self_attn/v_proj 0 0.5 \
	llama-gqa.h5
ok 'gpt2: a norm with gain and shift' py look "$ref" gpt2 transformer/h/1/ln_2 transformer/h/1/mlp/c_fc 0 0.5 gpt2.h5
ok 'gemma: a norm whose gain is 1 + weight' py look "$ref" gemma model/layers/0/post_attention_layernorm \
	model/layers/0/mlp/gate_proj,model/layers/0/mlp/up_proj 1 0.5 gemma.h5
smooth-scale -q --alpha 0.8 --hessian llama-gqa-h.h5 "$ref/llama-gqa.h5" -o strong.h5
ok 'factors with --alpha' py look "$ref" llama-gqa model/layers/1/post_attention_layernorm \
	model/layers/1/mlp/gate_proj,model/layers/1/mlp/up_proj 0 0.8 strong.h5
py linked "$ref/llama-tied.h5"
smooth-scale -q --hessian llama-tied-h.h5 link.h5 -o linked.h5
ok 'layers that do not read a norm, the final norm and a tied head are unchanged' py stays
ok 'inputs are divided by the factors' py inputs "$ref"
ok 'the same bytes for every -j' \
	sh -c 'smooth-scale -q -j 1 --hessian gpt2-h.h5 "$1" -o j1.h5 &&
		smooth-scale -q -j 3 --hessian gpt2-h.h5 "$1" -o j3.h5 && cmp j1.h5 j3.h5' x "$ref/gpt2.h5"
ok 'a stream: the same result' \
	sh -c 'cat "$1" | smooth-scale -q --hessian gpt2-h.h5 | cat >stream &&
		smooth-scale -q --hessian gpt2-h.h5 <"$1" -o r.h5 && h5diff r.h5 j1.h5' x "$ref/gpt2.h5"

# --- random factors ---
for name in llama-gqa llama-tied qwen2-bias gpt2 opt opt-post neox-parallel neox-serial gemma gemma2 phi3-window \
	qwen2-moe mixtral vision/llava-clip vision/qwen2-vl vision/qwen2.5-vl \
	vision/idefics3 vision/smolvlm; do
	out=random-$(basename $name).h5
	smooth-scale --random 1 --check "$ref/$name.h5" -o "$out" 2>said; s=$?
	ok "$name, --random: the logits stay the same, $(checked)" below "$(checked)" 1e-5
	is "$name, --random: status" $s 0
done
ok '... factors: uniform in log2 from 0 to 1/2, of norms, values and up projections' py random_factors "$ref" \
	llama-gqa random-llama-gqa.h5
for name in llama-gqa gpt2 gemma2; do
	py on_grid "$ref/$name.h5" $name-grid.h5
	smooth-scale -q --random 1 $name-grid.h5 -o $name-off.h5
done
is 'weights on a 4-bit grid of 4 columns: the share that stays on it' \
	"$(py still llama-gqa) $(py still gemma2)" '0.0 0.0'
is '... in a model whose down projections have inputs after a GELU: theirs' "$(py still gpt2 c_proj mlp)" 'mlp/c_proj'
is '... in the model before' "$(cp llama-gqa-grid.h5 same-grid.h5; cp same-grid.h5 same-off.h5; py still same)" 1.0
smooth-scale -q --random 1 -j 1 "$ref/llama-gqa.h5" -o j1.h5
smooth-scale -q --random 1 -j 3 "$ref/llama-gqa.h5" -o j3.h5
ok 'the same bytes for every -j' cmp j1.h5 j3.h5
smooth-scale -q --random 2 "$ref/llama-gqa.h5" -o other.h5
ok '... other factors for another seed' sh -c '! h5diff -q j1.h5 other.h5 /model'
model-import -q "$top/tests/tiny" -o tiny.h5
sample-tokens -q --length 320 --ctx 16 tiny.h5 -o tiny-t.h5
hessian-accum -q --tokens tiny-t.h5 --ctx 16 tiny.h5 -o tiny-h.h5
for i in 1 2; do smooth-scale -q --random $i tiny.h5 -o tiny-$i.h5; done
no 'Hessians of the input model do not fit' 1 'basis' smooth-scale -q --hessian tiny-h.h5 tiny-1.h5 -o r.h5
hessian-accum -q --tokens tiny-t.h5 --ctx 16 tiny-1.h5 -o tiny-1-h.h5
no '... nor those of another seed' 1 'basis' smooth-scale -q --hessian tiny-1-h.h5 tiny-2.h5 -o r.h5
ok '... but its own' smooth-scale -q --hessian tiny-1-h.h5 tiny-1.h5 -o own.h5
for o in '--hessian llama-gqa-h.h5' '--alpha 0.3' --force-basis; do
	# shellcheck disable=SC2086
	no "--random and $o" 2 "${o%% *}: --random does not use it" \
		smooth-scale --random 1 $o "$ref/llama-gqa.h5" -o r.h5
done
no 'no seed' 2 'random' smooth-scale --random x "$ref/llama-gqa.h5" -o r.h5

# --- Hessians of two modalities, and their sum as one Hessian; both are summed in the same steps ---
sample-tokens -q --length 512 --ctx 32 --seed 2 "$ref/llama-gqa.h5" -o more-t.h5
hessian-accum -q --tokens more-t.h5 --ctx 32 "$ref/llama-gqa.h5" -o more-h.h5
ok 'two modalities, and their sum' py modalities
for tool in smooth-scale awq-scale; do
	for h in one two llama-gqa-h; do $tool -q --hessian $h.h5 "$ref/llama-gqa.h5" -o $h-$tool.h5; done
	ok "$tool: modalities count together" h5diff one-$tool.h5 two-$tool.h5 /model
	ok '... and differ from one modality alone' sh -c "! h5diff -q llama-gqa-h-$tool.h5 two-$tool.h5 /model"
done
for h in one two; do tensor-stats -q $h.h5 >$h.stats; done
is 'tensor-stats: modalities count together' "$(cat two.stats)" "$(cat one.stats)"
ok '... in all layers' test "$(wc -l <two.stats)" -gt 8

# --- keys and queries (SmoothAttention) ---
for name in llama-gqa llama-tied qwen2-bias gpt2 opt neox-parallel neox-serial gemma gemma2 phi3-window qwen2-moe \
	mixtral; do
	smooth-scale --attention --tokens "$name-t.h5" --ctx 32 --check "$ref/$name.h5" -o "$name.h5" 2>said; s=$?
	ok "$name: the logits stay the same, $(checked)" below "$(checked)" 1e-5
	is "$name: status" $s 0
done
ok 'llama: factors of pairs of keys, shared by queries; other layers are unchanged' py paired "$ref/llama-gqa.h5" \
	llama-gqa.h5
ok 'gpt2: factors of single channels, in a layer of queries, keys and values' py single "$ref/gpt2.h5" gpt2.h5
ok '... neox, whose heads have channels without a pair' py part_paired "$ref/neox-parallel.h5" neox-parallel.h5
keys() { smooth-scale --attention --alpha "$1" --tokens llama-gqa-t.h5 --ctx 32 "$2" -o "$3"; }
keys 1 "$ref/llama-gqa.h5" one.h5 2>/dev/null
keys 1 one.h5 again.h5 2>said
is 'all keys by their maximum: it is 1 in every layer' "$(awk '/k_proj/ { print $2 == "1" && $3 == "1" }' said)" "1
1"
ok '... and in every pair: again changes nothing' py close one.h5 again.h5
keys 0 "$ref/llama-gqa.h5" zero.h5 2>/dev/null
ok 'no keys: unchanged' h5diff -q zero.h5 "$ref/llama-gqa.h5" /model
hadamard-rotate -q "$ref/llama-gqa.h5" -o h.h5
smooth-scale -q --attention --tokens llama-gqa-t.h5 --ctx 32 h.h5 -o hs.h5
is 'the basis of the inputs stays' "$(attr hs.h5 / basis)" "$(attr h.h5 / basis)"
is 'the history of the tokens' "$(attr hs.h5 / history:tokens | cut -d' ' -f1)" sample-tokens
is 'what it was calibrated on' "$(attr hs.h5 / calibration)" "$(attr llama-gqa-h.h5 / calibration)"
ok 'keys: the same bytes for every -j, and from a stream' \
	sh -c 'smooth-scale -q --attention --tokens llama-gqa-t.h5 --ctx 32 -j 3 "$1" -o j3.h5 &&
		smooth-scale -q --attention --tokens llama-gqa-t.h5 --ctx 32 -j 1 "$1" -o j1.h5 && cmp j1.h5 j3.h5 &&
		cat "$1" | smooth-scale -q --attention --tokens llama-gqa-t.h5 --ctx 32 | cat >s.h5 &&
		tensor-join -q s.h5 -o sj.h5 && h5diff sj.h5 j1.h5 /model' x "$ref/llama-gqa.h5"
for name in gemma3 qwen3-window qwen3-moe; do
	sample-tokens -q --length 64 --ctx 32 "$ref/$name.h5" -o "$name-t.h5"
	no "$name has norms of queries and keys" 1 "$name.h5: the attention of .* has norms of queries and keys" \
		smooth-scale --attention --tokens "$name-t.h5" --ctx 32 "$ref/$name.h5" -o r.h5
done
no 'keys without tokens' 2 '--tokens FILE is expected with --attention' smooth-scale --attention "$ref/gpt2.h5" -o r.h5
warns 'Hessians for keys' '--hessian .--attention.' smooth-scale --attention --hessian gpt2-h.h5 \
	--tokens gpt2-t.h5 --ctx 32 "$ref/gpt2.h5" -o x.h5
warns 'tokens without keys' '--tokens, --ctx .no --attention.' smooth-scale --hessian gpt2-h.h5 \
	--tokens gpt2-t.h5 --ctx 32 "$ref/gpt2.h5" -o x.h5

# --- rounded activations ---
msq-calib -q --act-format int4 --act-mode dynamic-token "$ref/llama-gqa.h5" -o rounded.h5
ok '--check does not round activations' smooth-scale --check --hessian llama-gqa-h.h5 rounded.h5 -o x.h5

# --- errors ---
rm -f r.h5
g=$ref/llama-gqa.h5
py damaged
no 'no Hessians' 2 '--hessian FILE, --random SEED or --attention is expected' smooth-scale "$g" -o r.h5
no 'Hessians of no layer' 1 'none.h5: holds no Hessian of a layer that reads a norm' \
	smooth-scale --hessian none.h5 "$g" -o r.h5
no 'no absmax' 1 'no-absmax.h5: /model/layers/0/self_attn/.*/absmax: is missing' \
	smooth-scale --hessian no-absmax.h5 "$g" -o r.h5
no 'another width' 1 'narrow.h5: /model/layers/0/self_attn/q_proj' smooth-scale --hessian narrow.h5 "$g" -o r.h5
no 'alpha above 1' 2 'alpha' smooth-scale --alpha 1.5 --hessian llama-gqa-h.h5 "$g" -o r.h5
no 'a model that is quantized' 1 'is quantized already' \
	sh -c 'dpq-run -q --compensate none --group 8 "$1" -o q.h5 &&
		smooth-scale -q --hessian llama-gqa-h.h5 q.h5 -o r.h5' x "$g"
ok 'errors leave no file' test ! -e r.h5
done_testing
