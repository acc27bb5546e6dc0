#!/bin/sh
# e8p.t -- dpq-run --storage e8p, trellis codes and --layer-rotation: codes of several weights between two rotations
#
# tests/e8p.c, trellis.c, ldlq.c and layer_rotation.c compare the numbers with plain arithmetic.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
py make
hessian-accum -q --tokens tokens.h5 --ctx 32 "$model" -o h.h5
dpq() { dpq-run -q --hessian h.h5 "$@" 2>err; }
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" 2>/dev/null | sed -n 's/^nll[[:space:]]*//p'; }
kl() { eval-ppl -q --tokens tokens.h5 --ctx 32 --reference "$model" "$@" 2>/dev/null | sed -n 's/^kl[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }'; }
runs() { [ "$(nll "$1")" ]; }
error() { tensor-diff -q --reference "$model" --hessian h.h5 "$@" 2>/dev/null | awk '$1 == "all" { print $NF }'; }

# --- rotations alone: a format of 8 bits in groups of 8 changes little, whatever the rotation ---
ok 'any storage can be rotated' dpq --storage uint8 --group 8 --layer-rotation two-sided "$model" -o r.h5
ok '... the model computes the same' less "$(kl r.h5)" 1e-4
ok '... also with --sequential' sh -c "dpq-run -q --sequential --tokens tokens.h5 --ctx 32 --storage uint8 --group 8 \
	--layer-rotation two-sided '$model' -o s.h5"
ok '... which replaces the rotation of inputs' less "$(kl s.h5)" 1e-4
up=model/layers/0/mlp/up_proj
is '... the members' "$(py attr r.h5 $up online_hadamard) $(py attr r.h5 $up output_hadamard)" '32 44'
ok '... layers with one input have the same signs' \
	h5diff r.h5 r.h5 /$up/input_signs /model/layers/0/mlp/gate_proj/input_signs
dpq --storage uint8 --group 8 --layer-rotation two-sided --seed 2 "$model" -o seed.h5
ok '... others with --seed' sh -c "! h5diff -q r.h5 seed.h5 /$up/input_signs"
warns 'no layer that can be rotated' \
	'llama-gqa.h5: no layer is rotated: those outside of blocks and those with the input of a router never are' \
	dpq-run -q --compensate none --storage uint8 --group 1 --layer-rotation two-sided --layers lm_head "$model" \
	-o head.h5
dpq --storage uint8 --group 8 --seed 2 "$model" -o plain.h5
ok '... --seed without a rotation' grep -q 'without effect here: --seed (--layer-rotation none)' err

# --- codes of several weights ---
for f in e8p e8p3 e8p4 1mad2 3inst3-10; do
	for rotation in two-sided none; do
		what="$f, $rotation"
		ok "$what" dpq --storage $f --layer-rotation $rotation --report $f.tsv "$model" -o $f.h5
		ok "$what: the error that tensor-diff finds" \
			near "$(error $f.h5)" "$(awk '$1 == "all" { print $2 }' $f.tsv)" 1e-6
		dpq --storage $f --layer-rotation $rotation --compensate none "$model" -o rtn.h5
		ok "$what: less than that of the nearest codes" less "$(error $f.h5)" "$(error rtn.h5)"
		rm -rf hf; model-export -q --to hf $f.h5 -o hf 2>/dev/null; model-import -q hf -o dense.h5 2>/dev/null
		ok "$what: the likelihoods of the weight that it stands for" near "$(nll $f.h5)" "$(nll dense.h5)" 1e-5
	done
done
dpq --storage e8p "$model" -o two.h5
ok 'layers of E8P are rotated by default' sh -c "[ '$(py attr two.h5 $up output_hadamard)' = 44 ]"
is 'bits per weight: codes of 2, one scale, a sign of each row and column' \
	"$(tensor-stats --layers /model/layers/0/self_attn/q_proj two.h5 | awk 'NR == 2 { print $7 }')" \
	"$(py bits 32 32)"
dpq -j 1 --storage e8p "$model" -o one.h5
ok 'the same on one thread' h5diff --exclude-attribute / two.h5 one.h5
dpq --storage e8p <"$model" | cat >stream.h5; tensor-join -q stream.h5 -o joined.h5
ok 'as a stream' h5diff --exclude-attribute / two.h5 joined.h5
ok '--compensate none needs no Hessian' dpq-run -q --storage e8p --compensate none "$model" -o n.h5
dpq --storage e8p --damp 0.1 --paths 4 --reorder full "$model" -o idle.h5
ok 'options without effect' grep -q 'without effect here: .*--reorder.*--paths (a storage with codes' err

# --- experts: the router is not rotated, so no layer with its input is ---
for m in mixtral qwen2-moe qwen3-moe; do
	moe=$top/tests/ref/$m.h5
	hessian-accum -q --tokens tokens.h5 --ctx 32 "$moe" -o moe-h.h5
	ok "$m in e8p" dpq-run -q --storage e8p --hessian moe-h.h5 "$moe" -o moe.h5
	ok '... runs' runs moe.h5
	ok '... with --sequential' dpq-run -q --storage e8p --sequential --tokens tokens.h5 --ctx 32 "$moe" -o moe.h5
	ok '... runs' runs moe.h5
	ok '... any storage that is rotated' dpq-run -q --storage uint8 --group 4 --compensate none \
		--layer-rotation two-sided "$moe" -o moe.h5
	ok '... computes the same' less "$(model=$moe; kl moe.h5)" 1e-3
	hessian-accum -q --tokens tokens.h5 --ctx 32 moe.h5 -o again.h5
	# codes of 8 bits change Hessians by 2 to 5 %; Hessians of rotated inputs differ by 90 to 110 %
	ok '... Hessians of experts are of inputs before the rotation' less "$(py sums moe-h.h5 again.h5)" 0.3
	is '... all layers are rotated but those with the input of the router' \
		"$(py rotated moe.h5)" "$(py unrouted moe.h5)"
done

# --- what is refused ---
no 'a Hessian is missing' 2 '--hessian FILE is needed' dpq-run -q --storage e8p "$model" -o x.h5
no 'a group that divides a code' 1 "llama-gqa.h5: /model/.*: a code of e8p is for 8 columns, expected a --group" \
	dpq-run -q --hessian h.h5 --storage e8p --group 12 "$model" -o x.h5
no 'Qronos' 2 'no quantizer makes codes of e8p under --compensate both --solver qronos; --solver gptq does' \
	dpq-run -q --hessian h.h5 --storage e8p --solver qronos "$model" -o x.h5
no 'to pack its codes' 1 'holds no layer with codes to pack; .*codes of several weights need no packing' \
	sh -c 'dpq-run -q --compensate none --storage e8p "$1" | exmy-pack -o x.h5' x "$model"
no 'a compute format' 2 '--compute: weights of e8p are multiplied as they are decoded' dpq-run -q --hessian h.h5 \
	--storage e8p --layer-rotation none --compute e4m3fn "$model" -o x.h5
no 'static scales of inputs' 2 '--layer-rotation two-sided: static scales' dpq-run -q --hessian h.h5 --storage e8p \
	--act-format int8 "$model" -o x.h5
printf '*/v_proj layer-rotation=none\n' >plan
no 'one of the layers with an input is not rotated' 1 \
	'v_proj: is not rotated, but .*q_proj, which has the same input, is rotated' \
	dpq-run -q --hessian h.h5 --storage e8p --plan plan "$model" -o x.h5
hadamard-rotate -q "$model" -o turned.h5 2>/dev/null
no 'a layer that is rotated already' 1 'turned.h5: .*down_proj: is rotated already, expected a layer without' \
	dpq-run -q --compensate none --storage e8p turned.h5 -o x.h5
printf '*/down_proj layer-rotation=none\n' >plan
ok '... it is quantized without a further rotation' \
	dpq-run -q --compensate none --storage e8p --plan plan turned.h5 -o t.h5
ok 'no file is left of a run that failed' test ! -e x.h5
done_testing
