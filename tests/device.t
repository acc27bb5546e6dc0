#!/bin/sh
# device.t -- models on a device: likelihoods, Hessians and codes next to those of the processor
#
# The device is build/plain.so, the kernels of lib/cuda on the processor (tests/cuda). With PTQ_DEVICE=cuda
# in the environment, it is the GPU.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
d=${PTQ_DEVICE:-${PTQ_BUILD:-$top/build}/plain.so}
unset PTQ_DEVICE
case $d in
*/*) [ -e "$d" ] || { skip 'models on a device' "$d is missing: make test-programs builds it"; done_testing; } ;;
esac
py tokens
ppl() { eval-ppl -q --tokens t.h5 --ctx 24 "$@"; }
sums() { hessian-accum -q --tokens t.h5 --ctx 24 "$@"; }

# Sums of some 50 numbers in another order change a logit of these models by some 1e-6 of it; in bf16, a number
# that is rounded to its other neighbour changes one by up to 2^-9 of it, and logits are up to 5.
both() {	# both NAME MODEL [OPTION...]: likelihoods in f32 and bf16
	name=$1 of=$2
	shift 2
	for type in f32 bf16; do
		ppl "$@" --compute-type $type "$of" -o here.h5 >/dev/null 2>&1
		ppl "$@" --compute-type $type --device "$d" "$of" -o there.h5 >/dev/null 2>there.err
		by=2e-5
		[ $type = f32 ] || by=0.06
		ok "likelihoods: $name, $type" py nll here.h5 there.h5 $by
	done
}
for f in "$top"/tests/ref/*.h5; do
	case $(basename "$f" .h5) in
	hessians | checkpoints | conventions | fp4) ;;
	*moe | mixtral) no "$(basename "$f"): experts" 1 'experts run on the processor only' ppl --device "$d" "$f" ;;
	*)
		both "$(basename "$f" .h5)" "$f"
		sums "$f" -o here.h5 && sums --device "$d" "$f" -o there.h5
		ok "Hessians: $(basename "$f" .h5)" py hessians here.h5 there.h5 1e-5
		;;
	esac
done
model=$top/tests/ref/llama-gqa.h5
sums --compute-type bf16 "$model" -o here.h5
sums --compute-type bf16 --device "$d" "$model" -o there.h5
ok 'Hessians of inputs in bf16' py hessians here.h5 there.h5 0.02

# --- layers: quantized, packed, with rounded inputs, branches, rotations ---
sums "$model" -o h.h5
dpq-run -q --compensate none --storage uint4 --group 8 "$model" -o uint4.h5
both 'codes' uint4.h5
exmy-pack -q uint4.h5 -o packed.h5
both 'packed codes' packed.h5
ppl --device "$d" uint4.h5 --reference "$model" >here
ppl --device "$d" --as-reference "$model" -o states.h5 >/dev/null
ppl --device "$d" uint4.h5 --reference states.h5 >there
ok 'hidden states as the reference: the same numbers' eval 'cmp here there && grep -q ^kl there'
# few tokens: packed words are multiplied as they are stored
few() {	# few NAME MODEL
	eval-ppl -q --tokens t.h5 --ctx 12 --limit 12 "$2" | sed -n 's/^nll[[:space:]]//p' >here
	eval-ppl -q --tokens t.h5 --ctx 12 --limit 12 --device "$d" "$2" | sed -n 's/^nll[[:space:]]//p' >there
	ok "few tokens: $1" awk 'NR == 1 { a = $1 } NR == 2 { near = a - $1 < 2e-5 && $1 - a < 2e-5 }
		END { exit !(a > 0 && near) }' here there
}
for format in uint4 int3 e2m2 nf4 uint8; do
	dpq-run -q --compensate none --storage $format --group 32 "$model" | exmy-pack -q -o packed.h5
	few $format packed.h5
done
dpq-run -q --hessian h.h5 --compute e4m3fn --group 8 "$model" -o dpq.h5
ppl dpq.h5 -o here.h5 >/dev/null 2>&1 && ppl --device "$d" dpq.h5 -o there.h5 >/dev/null 2>&1
ok 'likelihoods: a compute format' py few here.h5 there.h5 1e-3 0.1
for act in int8 e4m3fn e2m1; do
	msq-calib -q --act-mode dynamic-token --act-clip 0.9 --act-format $act "$model" -o act.h5
	ppl act.h5 -o here.h5 >/dev/null && ppl --device "$d" act.h5 -o there.h5 >/dev/null
	# an input near a tie goes to the other neighbour, in all later tokens of its window
	ok "likelihoods: inputs rounded to $act" py few here.h5 there.h5 1e-3 0.1
done
for act in int8 int5; do
	msq-calib -q --act-mode dynamic-token --act-format $act "$model" |
		dpq-run -q --compensate none --storage $act --group channel -o act.h5
	ppl act.h5 -o here.h5 >/dev/null && ppl --device "$d" act.h5 -o there.h5 >/dev/null
	ok "likelihoods: integers of 8 bits, $act" py few here.h5 there.h5 1e-3 0.1
done
msq-calib -q --act-mode dynamic-token --act-format e4m3fn "$model" |
	dpq-run -q --hessian h.h5 --compute e4m3fn --group 8 -o fp8.h5 2>err
ppl fp8.h5 -o here.h5 >/dev/null && ppl --device "$d" --compute-type bf16 fp8.h5 -o there.h5 >/dev/null
ok 'likelihoods: bytes of FP8' py few here.h5 there.h5 0.05 0.1
msq-calib -q --tokens t.h5 --ctx 24 --act-format int8 "$model" -o static.h5
both 'static input scales' static.h5
fbq-run -q --rank 3 --hessian h.h5 --group 8 "$model" -o branch.h5
both 'a branch' branch.h5
fbq-run -q --rank 3 --hessian h.h5 --group 32 "$model" | exmy-pack -q -o packed.h5
few 'a branch' packed.h5
hadamard-rotate -q --keys "$model" -o rotated.h5
both 'rotated, with online matrices' rotated.h5

# --- the method itself ---
for form in 'uint4 --compute e4m3fn' 'int3 --reorder full' 'nf4 --scale-dtype f16' 'e2m1 --paths 2'; do
	# shellcheck disable=SC2086
	dpq-run --hessian h.h5 --group 8 --storage $form "$model" -o here.h5 2>here
	# shellcheck disable=SC2086
	dpq-run --hessian h.h5 --group 8 --storage $form --device "$d" "$model" -o there.h5 2>there
	ok "the same codes except for near ties: $form" py codes here.h5 there.h5 0.005
done
py extreme "$model"
for form in 'int4 --scale-search mse' 'uint1 --scale-search minmax' 'e2m1 --scale-search mse'; do
	# shellcheck disable=SC2086
	dpq-run -q --hessian h.h5 --group 8 --storage $form extreme.h5 -o here.h5
	# shellcheck disable=SC2086
	dpq-run -q --hessian h.h5 --group 8 --storage $form --device "$d" extreme.h5 -o there.h5
	ok "weights next to the least and the largest float: $form" py codes here.h5 there.h5 0.005
	ok '... the same scales, none 0 or infinite' py scales here.h5 there.h5
done
ok 'what a device does not quantize is said' grep -q 'is quantized by the processor: no device has --paths' there
dpq-run -q --sequential --tokens t.h5 --ctx 24 --group 8 "$model" -o here.h5
dpq-run -q --sequential --tokens t.h5 --ctx 24 --group 8 --device "$d" "$model" -o there.h5
ok 'sequential: the same codes, except near ties' py codes here.h5 there.h5 0.01
ppl --reference "$model" uint4.h5 | grep -v '^kl_max\|^delta_p\|^top\|_median\|_99' >here
ppl --reference "$model" --device "$d" uint4.h5 | grep -v '^kl_max\|^delta_p\|^top\|_median\|_99' >there
ok 'divergence from a reference' sh -c \
	"paste here there | awk '{ e = \$2 - \$4; e = e < 0 ? -e : e; bad += e > 1e-5 * (1 + \$2) }
		END { exit !(NR > 4 && !bad) }'"
ppl "$model" -o here.h5 >/dev/null
PTQ_DEVICE=$d eval-ppl -q --tokens t.h5 --ctx 24 "$model" -o there.h5 >/dev/null
ok 'PTQ_DEVICE' py nll here.h5 there.h5 2e-5
for tool in "eval-ppl --tokens t.h5 --ctx 24" "hessian-accum --tokens t.h5 --ctx 24" \
	"dpq-run --hessian h.h5 --group 8" "msq-calib --act-format int8 --tokens t.h5 --ctx 24"; do
	# shellcheck disable=SC2086
	PTQ_DEVICE=$d $tool -q "$model" -o named.h5 >/dev/null 2>&1
	ok "PTQ_DEVICE is in the history: ${tool%% *}" sh -c "tensor-info named.h5 | grep -q -e '--device $d'"
done
PTQ_DEVICE='' ppl --device cpu "$model" -o there.h5 >/dev/null
ok 'the processor by name: the same bits' h5diff here.h5 there.h5 /nll_of_target

smooth-scale -q --attention --tokens t.h5 --ctx 24 "$model" -o here.h5
smooth-scale -q --attention --tokens t.h5 --ctx 24 --device "$d" "$model" -o there.h5
ppl here.h5 -o here.r >/dev/null && ppl there.h5 -o there.r >/dev/null
ok 'keys and queries scaled by inputs of layers' py nll here.r there.r 2e-5

# --- what does not run there ---
no 'a device that does not exist' 1 'there is no module nothing.so' ppl --device nothing "$model"
no 'an empty name is not the processor' 2 'the name is empty' ppl --device '' "$model"
echo x >bad.so
no 'a file that is no module' 1 'bad.so' ppl --device ./bad.so "$model"
case $d in
*/*)
	version=$(eval-ppl --version | sed -n '1s/.* //p')
	LC_ALL=C sed "s/$version/${version%?}x/g" "$d" >other.so
	no 'a module of another version, by its file' 1 \
		"^eval-ppl: ./other.so: is a module of version ${version%?}x, this is version $version" \
		ppl --device ./other.so "$model"
	;;
esac
no 'keys and values in a format' 1 'runs on the processor only' ppl --device "$d" --kv-format int8 "$model"
msq-calib -q --kv-format int8 "$model" -o kv.h5
no 'keys and values in the format of a reference' 1 '^eval-ppl: kv.h5: .* runs on the processor only' \
	ppl --device "$d" --reference kv.h5 "$model"
py spoil "$top/tests/ref/qwen2-moe.h5" spoilt.h5
no 'experts after a block without: before that block is read' 1 'block 1: experts run on the processor only' \
	ppl --device "$d" spoilt.h5
PTQ_DEVICE=nothing dpq-run -q --compensate none --group 8 "$model" -o here.h5
ok 'no device is opened for rounding to nearest' sh -c 'exit "$1"' sh $?
hadamard-rotate -q "$model" | rms-suppress -q -o split.h5
no 'split columns, by the file that has them' 1 \
	'^eval-ppl: split.h5: /model/layers/0/mlp/down_proj: split columns run on the processor' \
	ppl --device "$d" --reference split.h5 "$model"
no '--pair' 1 "^hessian-accum: $model: --pair runs on the processor only" \
	sums --device "$d" --pair "$model" "$model" -o no.h5
no 'int16' 1 "^eval-ppl: $model: --compute-type int16 runs on the processor only" \
	ppl --device "$d" --compute-type int16 "$model"
done_testing
