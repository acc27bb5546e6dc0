#!/bin/sh
# rotations.t -- layers with rotated inputs and outputs: input_signs, online_hadamard, output_hadamard, output_signs
#
# The rotated model is made here in float64 from a plain model: Ŵ = R_out W R_inᵀ.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
py rotate "$model" rotated.h5
py make
up=/model/layers/0/mlp/up_proj
nll() { eval-ppl --tokens tokens.h5 --ctx 32 "$@" | sed -n 's/^nll[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }

# Rounding the rotated weights to float changes a logit of this model, and a mean likelihood, by some 1e-6.
ok 'the forward pass undoes the rotations' near "$(nll rotated.h5)" "$(nll "$model")" 2e-6
divergence=$(eval-ppl --tokens tokens.h5 --ctx 32 --reference "$model" rotated.h5 | sed -n 's/^kl_max[[:space:]]*//p')
ok '... at every token' awk -v kl="$divergence" 'BEGIN { exit !(kl != "" && kl < 1e-9) }'
ok '... in bf16 as exactly as for the plain model' near "$(nll --compute-type bf16 rotated.h5)" "$(nll "$model")" 0.01
ok '... token by token' sh -c "sample-tokens --length 62 --ctx 32 --temperature 0 '$model' -o a.h5
	sample-tokens --length 62 --ctx 32 --temperature 0 rotated.h5 -o b.h5; h5diff a.h5 b.h5 /tokens"
cp rotated.h5 unsigned.h5
py remove unsigned.h5 "$up/output_signs"
ok '... and without signs of outputs the result differs' \
	sh -c "! awk 'BEGIN { d = $(nll unsigned.h5) - $(nll "$model"); exit !(d < 1e-3 && -d < 1e-3) }'"
py ones unsigned.h5 ones.h5 "$up"
is '... which are 1 then' "$(nll ones.h5)" "$(nll unsigned.h5)"

# --- tools that support rotations ---
dpq-run -q --compensate none --storage uint4 --group 4 rotated.h5 -o q.h5
for layer in self_attn/q_proj self_attn/v_proj self_attn/k_proj mlp/up_proj mlp/down_proj; do
	path=model/layers/1/$layer
	ok "$layer: tensor-diff's error equals that of the matrix without rotations" near \
		"$(tensor-diff --reference rotated.h5 --layers "/$path" q.h5 |
		awk -v p="/$path" '$1 == p { print $4 }')" \
		"$(py dense "$model" q.h5 "$path")" 1e-6
done
ok 'tensor-diff with a reference without rotations: the weight is rotated back' near \
	"$(tensor-diff --reference "$model" --layers "$up" q.h5 | awk -v p="$up" '$1 == p { print $4 }')" \
	"$(py dense "$model" q.h5 "${up#/}")" 1e-6
exmy-pack q.h5 -o p.h5
ok 'packed: the same likelihoods' near "$(nll p.h5)" "$(nll q.h5)" 1e-6
exmy-pack --unpack p.h5 -o u.h5
ok 'unpacked: the file before packing' h5diff --exclude-attribute / q.h5 u.h5
for i in 1 2; do dpq-run -q --compensate none --storage uint4 --group 4 --shard $i/2 rotated.h5 -o part$i.h5; done
tensor-join -q part1.h5 part2.h5 -o j.h5
ok 'joined from shards: the same model' h5diff --exclude-attribute / q.h5 j.h5
bits() {
	tensor-stats --layers "$up" "$1" |
		awk -v p="$up" \
			'$1 == p { for (i = 1; i <= NF; i++) if (at[i] == "bits") print $i }
			NR == 1 { for (i = 1; i <= NF; i++) at[i] = $i }'
}
dpq-run -q --compensate none --storage uint4 --group 4 "$model" -o plain.h5
ok 'a sign counts as one bit' near "$(bits q.h5)" \
	"$(awk -v b="$(bits plain.h5)" -v m="$(py signs "$model" "$up")" 'BEGIN { print b + m }')" 1e-4
hessian-accum -q --tokens tokens.h5 --ctx 32 rotated.h5 -o h.h5
hessian-accum -q --tokens tokens.h5 --ctx 32 "$model" -o plain-h.h5
small() { awk -v a="$1" 'BEGIN { exit !(a != "" && a < 1e-4) }'; }
ok 'Hessians are of inputs before the signs: those of the model without rotations' small "$(py sums plain-h.h5 h.h5)"
hessian-accum -q --tokens tokens.h5 --ctx 32 --pair "$model" rotated.h5 -o pair.h5
ok '... and cross moments' small "$(py sums plain-h.h5 pair.h5)"
error() { tensor-diff -q --hessian plain-h.h5 --reference "$@" | awk '$1 == "all" { print $NF }'; }
ok "... tensor-diff's output error is that without rotations" \
	near "$(error rotated.h5 q.h5)" "$(error "$model" q.h5)" 1e-6
dpq-run --hessian h.h5 --storage uint4 --group 4 rotated.h5 -o solved.h5 2>solved.layers
ok '... and so is the error of GPTQ' near "$(awk '$1 == "all" { print $2 }' solved.layers)" \
	"$(error "$model" solved.h5)" 1e-6
ok '... and of Qronos from these cross moments' dpq-run -q --hessian pair.h5 --solver qronos --storage uint4 --group 4 \
	rotated.h5 -o qronos.h5
ok '... which is GPTQ, as the inputs are the same' near "$(error "$model" qronos.h5)" "$(error "$model" solved.h5)" 1e-4
ok 'GPTQ uses the Hessian of the rotated inputs' sh -c '
	dpq-run -q --hessian h.h5 --storage uint4 --group 4 rotated.h5 |
		tensor-diff -q --hessian h.h5 --reference rotated.h5 >solved
	tensor-diff -q --hessian h.h5 --reference rotated.h5 q.h5 >nearest
	awk "\$1 == \"all\" { e[++n] = \$NF } END { exit !(n == 2 && e[1] > 0 && e[1] < e[2]) }" solved nearest'
fbq-run -q --rank 2 --hessian h.h5 rotated.h5 -o f.h5
ok 'a branch between the rotations' near "$(nll f.h5)" "$(nll rotated.h5)" 0.2
fbq-run -q --method eora --rank 2 --hessian h.h5 --reference rotated.h5 q.h5 -o f.h5
fbq-run -q --force-basis --method eora --rank 2 --hessian h.h5 --reference "$model" q.h5 -o r.h5 2>/dev/null
ok 'fbq-run --reference without rotations: its weight is rotated' near "$(nll r.h5)" "$(nll f.h5)" 1e-5
ok '... the codes are unchanged' h5diff q.h5 r.h5 "$up/codes"

# --- tools that do not support rotations ---
for tool in 'smooth-scale --hessian h.h5' 'awq-scale --hessian h.h5'; do
	# shellcheck disable=SC2086
	no "$tool" 1 "rotated.h5: /model/layers/0/[a-z_/]*: has input_signs, expected a layer without" \
		$tool -q rotated.h5 -o r.h5
done
outputs() {	# TOOL FILE LAYER: only signs of outputs, all 1
	py ones "$top/tests/ref/$2" outputs.h5 "$3"
	no "$1" 1 "outputs.h5: $3: has output_signs, expected a layer without" "$1" -q outputs.h5 -o r.h5
}
outputs ln2rms gpt2.h5 /transformer/h/0/mlp/c_fc
outputs hadamard-rotate llama-gqa.h5 "$up"
no 'static scales by dpq-run' 1 'rotated.h5: /model/.*: has input_signs, and a static scale would be' \
	dpq-run -q --hessian h.h5 --act-mode static-tensor --act-format int8 rotated.h5 -o r.h5
no '... by msq-calib' 1 'rotated.h5: /model/.*: has input_signs, and a static scale would be' \
	msq-calib -q --act-format int8 --tokens tokens.h5 --ctx 32 rotated.h5 -o r.h5
no '--qep' 1 'rotated.h5: /model/.*: has input_signs, expected a layer without for --qep' \
	dpq-run -q --hessian pair.h5 --qep 0.5 rotated.h5 -o r.h5
no 'qep-correct' 1 'rotated.h5: /model/.*: has input_signs, expected a layer without' \
	qep-correct -q --hessian pair.h5 rotated.h5 -o r.h5
no rms-suppress 1 'rotated.h5: .*/[a-z]*_proj: has input_signs, expected a layer with an online Hadamard alone' \
	rms-suppress -q rotated.h5 -o r.h5
py faults "$up"
no '... fbq-run --reference, too' 1 'ones.h5: /model/layers/0/.*: is rotated or split otherwise than in q.h5' \
	fbq-run -q --force-basis --method lowrank --rank 2 --reference ones.h5 q.h5 -o r.h5
no 'tensor-diff of models that are rotated otherwise' 1 \
	"q.h5: $up: has another rotation than in other.h5" tensor-diff --reference other.h5 q.h5
no 'a sign of 0' 1 "zero.h5: $up/input_signs: holds 0 at 3, expected 1 or -1" \
	eval-ppl --tokens tokens.h5 --ctx 32 zero.h5
no 'signs of only one of two layers with the same input' 1 \
	"other.h5: $up/input_signs: differ from those of .*gate_proj, which has the same input" \
	eval-ppl --tokens tokens.h5 --ctx 32 other.h5
no 'an order that does not divide the rows' 1 \
	"order.h5: $up: attribute output_hadamard is 3, expected the order .* rows" \
	eval-ppl --tokens tokens.h5 --ctx 32 order.h5
no 'too few signs' 1 "short.h5: $up/output_signs" eval-ppl --tokens tokens.h5 --ctx 32 short.h5
no 'signs of embeddings' 1 'table.h5: /model/embed_tokens: output_signs is only allowed in layers of blocks' \
	eval-ppl --tokens tokens.h5 --ctx 32 table.h5
done_testing
