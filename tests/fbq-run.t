#!/bin/sh
# fbq-run.t -- low-rank branches of every method and format; bad input
# h5py reads the files, and the model is compared with a plain one of the weights Q + B A.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref model=$top/tests/ref/llama-gqa.h5
up=/model/layers/0/mlp/up_proj
sample-tokens -q --length 320 --ctx 32 "$model" -o t.h5
hessian-accum -q --tokens t.h5 --ctx 32 "$model" -o h.h5
other() { fbq-run -j 1 --group 8 --rank 3 --hessian h.h5 "$@"; }
fbq() { other --steps 40 "$@"; }
column() {
	awk -F '\t' -v c="$1" \
		'$1 == "layer" { for (i = 1; i <= NF; i++) if ($i == c) k = i; next } $1 != "all" { print $k }' "$2"
}
mean() { awk -F '\t' '$1 == "all" { print $2 }' "$1"; }

# py plain makes the effective weight from the file, as any reader of the format would
words='4 + (32 + 4) * -(-n // 8) / n'
for method in fbquant lowrank svdquant loftq caldera eora; do
	steps=; [ $method = fbquant ] && steps='--steps 40'
	# shellcheck disable=SC2086
	other --method $method $steps "$model" -o $method.h5 2>$method.layers; s=$?
	is "$method: status" $s 0
	ok "$method: errors, bounds and bits as computed from the file" \
		py look $method.h5 "$model" h.h5 $method.layers "$words + 16 * 3 * (m + n) / (m * n)"
	py plain $method.h5 "$model" p.h5
	eval-ppl -q --tokens t.h5 --ctx 32 $method.h5 -o a.h5 >a.txt &&
		eval-ppl -q --tokens t.h5 --ctx 32 p.h5 -o b.h5 >b.txt
	ok "$method: the model equals the plain one of Q + B A" awk \
		-F '\t' '$1 == "nll" { if (FNR == NR) a = $2; else b = $2 }
			END { exit !(a > 1 && a - b < 2e-6 && b - a < 2e-6) }' a.txt b.txt
	ok "$method: tensor-diff includes the branch" \
		sh -c 'tensor-diff --hessian h.h5 --reference "$1" $2.h5 2>/dev/null |
			awk -F "\t" "\$1 == \"all\" { print \$NF }" |
			awk -v want="$3" "{ exit !(\$1 / want - 1 < 1e-3 && 1 - \$1 / want < 1e-3) }"' \
		x "$model" $method "$(mean $method.layers)"
	ok "$method: the same bytes for every -j" \
		sh -c 'for j in 1 3; do
			fbq-run -q --group 8 --rank 3 --hessian h.h5 --method $2 $3 -j $j --layers "*/0/*" \
				"$1" -o j$j.h5 || exit
		done
		cmp j1.h5 j3.h5' x "$model" $method "$steps"
done
other "$model" -o long.h5 2>long.layers
ok 'methods that use H have less output error than the others' awk -v f="$(mean long.layers)" \
	-v e="$(mean eora.layers)" -v c="$(mean caldera.layers)" -v l="$(mean lowrank.layers)" \
	'BEGIN { exit !(f < l && e < l && c < e) }'

# --- formats of the main path and of the branch ---
for storage in uint3 int4 e2m1 nf4 mxfp4 nvfp4; do
	ok "--storage $storage" \
		sh -c 'fbq-run --group 8 --rank 2 --steps 20 --storage $2 --hessian h.h5 "$1" -o s.h5 2>s.layers &&
			eval-ppl -q --tokens t.h5 --ctx 32 s.h5 >/dev/null' x "$model" $storage
done
for format in f32:32 bf16:16 int8:8+32 int4:8:4+32/8; do
	name=${format%:*} each=${format##*:}
	other --branch-format "$name" --method eora "$model" -o f.h5 2>f.layers
	case $name in
	int8) want="8 * 3 * (m + n) / (m * n) + 32 * (3 + m) / (m * n)" ;;
	int4:8) want="4 * 3 * (m + n) / (m * n) + 32 * (3 * -(-n // 8) + m) / (m * n)" ;;
	*) want="$each * 3 * (m + n) / (m * n)" ;;
	esac
	ok "--branch-format $name" py look f.h5 "$model" h.h5 f.layers "$words + $want"
done

# --- searched scales: the main path is that of dpq-run for W, or for W - B A ---
for search in mse hessian; do
	other --storage uint2 --method lowrank --scale-search $search "$model" -o fit.h5 2>fit-$search.layers
	dpq-run -q --storage uint2 --group 8 --compensate none --scale-search $search --hessian h.h5 "$model" -o rtn.h5
	ok "--scale-search $search: lowrank has the codes of dpq-run --compensate none" py same_codes fit.h5 rtn.h5
	other --storage uint2 --method caldera --steps 1 --scale-search $search "$model" -o fit.h5 2>/dev/null
	py less_branch fit.h5 "$model" less.h5
	dpq-run -q --storage uint2 --group 8 --reorder none --scale-search $search --hessian h.h5 less.h5 -o gptq.h5
	ok '... caldera with one step has those of dpq-run for W - B A' py same_codes fit.h5 gptq.h5
done
other --storage uint2 --method lowrank "$model" -o fit.h5 2>fit-minmax.layers
ok '... and each has less error than the one before: minmax, mse, hessian' awk -v a="$(mean fit-minmax.layers)" \
	-v b="$(mean fit-mse.layers)" -v c="$(mean fit-hessian.layers)" 'BEGIN { exit !(c < b && b < a) }'
ok '... the same bytes for every -j' sh -c 'for j in 1 3; do fbq-run -q --group 8 --rank 3 --hessian h.h5 \
	--method lowrank --scale-search hessian -j $j "$1" -o j$j.h5 || exit; done; cmp j1.h5 j3.h5' x "$model"
warns 'fbquant searches no scales' 'without effect here: --scale-search \(--method fbquant, which' \
	other --scale-search mse --steps 2 "$model" -o fit.h5
no '--scale-search hessian without --hessian' 2 'hessian FILE is needed for --scale-search hessian' \
	fbq-run --method lowrank --scale-search hessian "$model" -o x.h5

# --- a branch of a model that another tool has quantized ---
gar-order -q --group 8 h.h5 -o order.h5
dpq-run --group 8 --hessian h.h5 --order order.h5 "$model" -o gptq.h5 2>gptq.layers
for method in lowrank eora; do
	other --method $method --reference "$model" gptq.h5 -o after.h5 2>after.layers
	ok "GPTQ, then $method" py look after.h5 "$model" h.h5 after.layers "$words + 16 * 3 * (m + n) / (m * n)"
	ok '... the codes are unchanged' py codes_stay $up
done
ok '... and the output error is smaller' awk -v a="$(mean gptq.layers)" -v b="$(mean after.layers)" \
	'BEGIN { exit !(b < 0.95 * a) }'
hadamard-rotate -q "$model" -o rotated.h5
rms-suppress -q rotated.h5 -o split.h5
hessian-accum -q --tokens t.h5 --ctx 32 split.h5 -o split-h.h5
ok 'a rotated model with split columns' \
	sh -c 'fbq-run -q --group 8 --rank 3 --steps 40 --hessian split-h.h5 split.h5 -o s.h5 &&
		eval-ppl -q --tokens t.h5 --ctx 32 s.h5 >/dev/null'

# --- between rotations of each layer: the errors are those that tensor-diff finds without rotations ---
error() { tensor-diff -q --hessian h.h5 --reference "$model" "$1" | awk -F '\t' '$1 == "all" { print $NF }'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a / b - 1; exit !(d < by && -d < by) }'; }
nll() { eval-ppl -q --tokens t.h5 --ctx 32 "$1" | sed -n 's/^nll[[:space:]]*//p'; }
rotated() {	# rotated WHAT FILE: of layers in FILE.layers
	ok "$1: the error of the report" near "$(mean "$2.layers")" "$(error "$2.h5")" 1e-3
	rm -rf hf; model-export -q --to hf "$2.h5" -o hf 2>/dev/null; model-import -q hf -o dense.h5 2>/dev/null
	ok "$1: the likelihoods of the weight that it stands for" near "$(nll "$2.h5")" "$(nll dense.h5)" 2e-6
	ok "$1: layers with one input have the same signs" \
		h5diff "$2.h5" "$2.h5" $up/input_signs /model/layers/0/mlp/gate_proj/input_signs
}
for method in fbquant lowrank svdquant loftq caldera eora; do
	steps=; [ $method = fbquant ] && steps='--steps 40'
	# shellcheck disable=SC2086
	other --method $method $steps --layer-rotation two-sided "$model" -o between.h5 2>between.layers
	rotated "$method, rotated" between
done
dpq-run --group 8 --hessian h.h5 --layer-rotation two-sided "$model" -o two.h5 2>two.layers
for method in lowrank eora; do
	other --method $method --reference "$model" two.h5 -o between.h5 2>between.layers
	rotated "GPTQ, rotated, then $method" between
	ok '... the codes are unchanged' h5diff two.h5 between.h5 $up/codes
	ok '... and the rotation' h5diff two.h5 between.h5 $up/output_signs
done
ok '... and the output error is smaller' awk -v a="$(mean two.layers)" -v b="$(mean between.layers)" \
	'BEGIN { exit !(b < 0.95 * a) }'
warns '... --layer-rotation has no effect' 'without effect here: .*--layer-rotation .--reference: the codes stay' \
	other --method eora --reference "$model" --layer-rotation two-sided gptq.h5 -o x.h5
no 'a model that is rotated already' 1 'rotated.h5: .*down_proj: is rotated already' \
	other -q --method lowrank --layer-rotation two-sided --force-basis rotated.h5 -o x.h5

# --- packed, joined, streamed, resumed ---
exmy-pack -q fbquant.h5 -o packed.h5
eval-ppl -q --tokens t.h5 --ctx 32 packed.h5 >packed.txt; eval-ppl -q --tokens t.h5 --ctx 32 fbquant.h5 >codes.txt
ok 'packed: the same results' cmp packed.txt codes.txt
fbq -q --branch-format int8 "$model" -o eight.h5
exmy-pack -q eight.h5 -o packed.h5
ok '... with packed branches' \
	sh -c 'h5dump -d $1/branch_b/packed packed.h5 >/dev/null && exmy-pack -q --unpack packed.h5 -o back.h5 &&
		h5diff eight.h5 back.h5 $1' x $up
ok 'greedy text from packed words equals that from codes' \
	sh -c 'for m in packed eight; do sample-tokens -q --temperature 0 --length 40 --ctx 32 $m.h5 -o $m-t.h5; done;
		h5diff packed-t.h5 eight-t.h5 /tokens'
fbq -q --layers '*/0/*' "$model" -o first.h5; fbq -q --layers '*/1/*' "$model" -o second.h5
ok 'two jobs, joined, give the whole model' \
	sh -c 'tensor-join -q first.h5 second.h5 -o joined.h5 && h5diff joined.h5 fbquant.h5 /model'
ok 'a stream gives the same results' \
	sh -c 'cat "$1" | fbq-run -q --group 8 --rank 3 --steps 40 --hessian h.h5 | cat >stream &&
		fbq-run -q --group 8 --rank 3 --hessian h.h5 <stream >x 2>/dev/null;
		eval-ppl -q --tokens t.h5 --ctx 32 stream >s.txt && cmp s.txt codes.txt' x "$model"
fbq --resume "$model" -o r.h5 2>/dev/null
ok '--resume without an interruption' h5diff r.h5 fbquant.h5 /model
ln -s nowhere/r.h5 cut.h5	# no file can be created under this name: the run fails at its end
fbq --resume "$model" -o cut.h5 2>/dev/null
mv cut.h5.part parts; rm cut.h5
py part_without_branch
fbq --resume "$model" -o cut.h5 2>cut.layers
ok '... a run that was stopped in its second block continues' h5diff cut.h5 fbquant.h5 /model
is '... and reports the layers of both runs' "$(grep -v ^fbq cut.layers | cut -f 1,2)" \
	"$(grep -v ^fbq fbquant.layers | cut -f 1,2)"

# --- bad input ---
py four_columns
no 'rank 0' 2 '--rank: .0. is not .* from 1 to' fbq-run --rank 0 --hessian h.h5 "$model" -o x.h5
warns 'steps of a method of one step' 'without effect here: --steps \(a method of one step\)' \
	fbq-run --method lowrank --steps 3 --rank 2 --group 8 "$model" -o x.h5
ok '... make no difference' sh -c 'fbq-run -q --method lowrank --rank 2 --group 8 "$1" -o y.h5 &&
	h5diff x.h5 y.h5 /model' x "$model"
no 'a rank above the inputs' 1 'q_proj: .*expected a --rank up to .*, not 40' \
	fbq-run --rank 40 --hessian h.h5 "$model" -o x.h5
# one line: the error comes before any layer is quantized
no 'a rank above the outputs, of a later layer' 1 'k_proj: is 16 x 32, expected a --rank up to .*, not 20' \
	fbq-run --steps 2 --rank 20 --hessian h.h5 "$model" -o x.h5
no '... of a stream' 1 'k_proj: is 16 x 32, expected a --rank up to .*, not 20' \
	sh -c 'cat "$1" | fbq-run --steps 2 --rank 20 --hessian h.h5 -o x.h5' x "$model"
no '... of layers without a configuration' 1 \
	'^fbq-run: four.h5: /b: is 4 x 32, expected a --rank up to .*, not 8' fbq-run --method svdquant --group 8 \
	--rank 8 four.h5 -o x.h5
no 'a later block that is quantized already' 1 'layers/1/self_attn/q_proj: is quantized already, expected --ref' \
	fbq second.h5 -o x.h5
no 'no --hessian' 2 'hessian FILE is needed for --method fbquant' fbq-run "$model" -o x.h5
ok '... for a method that needs none' fbq-run -q --method svdquant --group 8 --rank 2 "$model" -o x.h5
no 'a Hessian of another model' 1 '^fbq-run: o.h5: .*is missing; the layer was not calibrated' \
	sh -c 'sample-tokens -q --length 64 --ctx 32 "$2" -o ot.h5 &&
		hessian-accum -q --tokens ot.h5 --ctx 32 "$2" -o o.h5 &&
		exec fbq-run -q --group 8 --rank 2 --hessian o.h5 "$1" -o x.h5' x "$model" "$ref/gpt2.h5"
hessian-accum -q --tokens t.h5 --ctx 32 --layers '!*o_proj' "$model" -o part.h5
warns 'a Hessian that is missing, for a method that needs none' \
	'part.h5: has no Hessian of /model/layers/0/self_attn/o_proj: its errors are those of the weights' \
	fbq-run -q --method lowrank --group 8 --rank 2 --hessian part.h5 "$model" -o x.h5
no 'quantized already' 1 'gptq.h5: .*is quantized already, expected --reference' fbq -q gptq.h5 -o x.h5
no 'a reference for a method that makes codes' 2 'computes codes; --reference requires' \
	fbq-run --hessian h.h5 --reference "$model" gptq.h5 -o x.h5
no 'a quantized reference' 1 'gptq.h5: .*is quantized, expected the weights before' \
	other -q --method eora --reference gptq.h5 gptq.h5 -o x.h5
no 'a reference of another shape' 1 'gpt2.h5: .*is missing' \
	other -q --method eora --reference "$ref/gpt2.h5" gptq.h5 -o x.h5
no 'an unknown method' 2 'method' fbq --method lora "$model" -o x.h5
no 'an unknown branch format' 2 "branch-format: there is no format 'f8'" fbq --branch-format f8 "$model" -o x.h5
no 'a branch type with groups' 2 "branch-format: there is no format 'f16'" fbq --branch-format f16:8 "$model" -o x.h5
warns 'options of another method' '--lr .a method that does not descend.; --steps .a method of one step.' \
	fbq --method eora --lr 0.1 "$model" -o x.h5
fbq --lr 1 "$model" -o wild.h5 2>wild.layers
ok 'a large learning rate: the best iterate is kept' \
	py look wild.h5 "$model" h.h5 wild.layers "$words + 16 * 3 * (m + n) / (m * n)"
no '0 steps' 2 '--steps: .0. is not .* from 1 to' fbq-run --steps 0 --hessian h.h5 "$model" -o x.h5
no 'the head' 1 'lm_head: is not a layer of a block' fbq-run -q --method lowrank --layers '*lm_head' "$model" -o x.h5
no 'a layer that has a branch' 1 'has a branch already' other -q --method eora --reference "$model" fbquant.h5 -o x.h5
dpq-run -q --group 8 --hessian h.h5 --layers '*/0/*' "$model" -o half.h5
warns 'layers that are not quantized' 'model/layers/1/.*is not quantized, and is not' \
	fbq-run -j 1 --rank 3 --hessian h.h5 --method eora --reference "$model" half.h5 -o x.h5
ok '... are unchanged' h5diff "$model" x.h5 /model/layers/1
no '--reference for an unquantized model' 1 'holds no quantized layer' \
	other -q --method eora --reference "$model" "$model" -o x.h5
ok 'the history of svdquant has the Hessian that chose the step' \
	sh -c 'fbq-run -q --group 8 --rank 2 --hessian h.h5 --method svdquant "$1" -o x.h5 &&
		h5dump -a "history:hessian" x.h5 >/dev/null' x "$model"
# split columns are 0 in codes and branch
py lone_layer
for method in fbquant svdquant caldera eora; do
	fbq-run -q --group 16 --rank 4 --steps 30 --hessian sph.h5 --method $method sp.h5 -o spo.h5 2>/dev/null
	ok "$method: split columns stay 0" py columns_out
done
# damaged files
py faults
for f in "no-b:branch_a: is present, but no branch_b" "rank:branch_b/weight: .*expected" \
	"nan:branch_a/weight: holds infinite" "loop:branch_a: has a branch_a" "bias:branch_a: has a bias" \
	"empty:branch_a: has neither" "huge:branch_a: is of rank 100, expected at most 32"; do
	no "a file with ${f#*:}" 1 "^eval-ppl: ${f%%:*}.h5: $up/${f#*:}" \
		eval-ppl -q --tokens t.h5 --ctx 32 "${f%%:*}.h5"
done
done_testing
