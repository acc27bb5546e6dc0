#!/bin/sh
# qronos.t -- dpq-run --solver qronos, compared with its definition in float64, with GPTQ and qep-correct; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make "$top/tests/ref" llama-gqa mixtral
m=llama-gqa.h5 h=llama-gqa-c.h5
for name in llama-gqa mixtral; do
	dpq-run -q --compensate none --storage int3 --group 8 $name.h5 -o q.h5
	hessian-accum -q --tokens t.h5 --ctx 32 --pair $name.h5 q.h5 -o $name-c.h5
	py same_inputs $name-c.h5 $name-same.h5
done

# ordered ORDER GROUP HESSIANS: order.h5
ordered() {
	case $1 in
	gar) gar-order -q --group "$2" "$3" -o order.h5 ;;
	*) gar-order -q --order "$1" "$3" -o order.h5 ;;
	esac
}
# the definition: the first column by itself, least squares for the rest, then GPTQ, under the scales of the result
held() {	# held NAME ORDER OPTION...
	name=$1 order=$2; shift 2
	ordered "${order%:*}" "${order#*:}" $name-c.h5
	dpq-run -q --solver qronos --hessian $name-c.h5 --order order.h5 "$@" $name.h5 -o out.h5
	dpq-run -q --hessian $name-c.h5 --order order.h5 "$@" $name.h5 -o gptq.h5
	damp=$(echo "$*" | sed -n 's/.*--damp \([^ ]*\).*/\1/p')
	ok "$name, order $order, $*: the definition in float64" \
		py definition $name.h5 $name-c.h5 order.h5 out.h5 gptq.h5 "${damp:-0.01}"
}
held llama-gqa none:8 --storage int3 --group 8
held llama-gqa gar:8 --storage uint4 --group 8
held llama-gqa full:8 --storage int4 --group 8 --damp 0.1
held llama-gqa full:channel --storage uint3 --group channel --scale-search minmax
held llama-gqa gar:16 --storage e2m1 --group 16 --damp 0.001 --group-view block
held mixtral gar:8 --storage int3 --group 8

# x of both models equal: GPTQ, code for code, in any format, group and order
for o in '--storage int3 --group 8 --reorder none' '--storage uint4 --group 8 --reorder gar' \
	'--storage e2m1 --group channel --reorder full' '--compute e4m3fn --group 16' '--storage int2 --group tensor' \
	'--storage int3 --group 8 --paths 4' '--storage int3 --group 8 --layer-rotation two-sided' \
	'--storage uint3 --group 8 --turns 1' '--recipe inc --group 8 --static-groups'; do
	for name in llama-gqa mixtral; do
		# shellcheck disable=SC2086
		dpq-run -q $o --hessian $name-same.h5 $name.h5 -o gptq.h5
		# shellcheck disable=SC2086
		dpq-run -q $o --solver qronos --hessian $name-same.h5 $name.h5 -o out.h5
		ok "$name $o: with equal inputs the bytes of GPTQ" py same_codes gptq.h5 out.h5
	done
done

# qep-correct --alpha 1 and GPTQ: rows whose first code agrees agree in all. Scales that are powers of two are mostly
# those of the other weight.
for order in none full; do
	for g in 8 channel; do
		o="--storage int3 --group $g --scale-dtype e8m0 --scale-search minmax --reorder $order"
		# shellcheck disable=SC2086
		dpq-run -q $o --solver qronos --hessian $h $m -o out.h5
		# shellcheck disable=SC2086
		qep-correct -q --alpha 1 --damp 0.01 --skip none --hessian $h $m | dpq-run -q $o --hessian $h -o qep.h5
		ordered $order $g $h
		ok "order $order, group $g: as qep-correct and GPTQ, if the first code is the same" \
			py same_rows qep.h5 out.h5 order.h5
	done
done

# QEP in the run of a solver is that of qep-correct
for o in '' '--layer-rotation two-sided'; do
	for damp in 1 0.01; do
		# shellcheck disable=SC2086
		dpq-run -q $o --storage int3 --group 8 --qep 0.5 --qep-damp $damp --hessian $h $m -o out.h5
		# shellcheck disable=SC2086
		qep-correct -q --alpha 0.5 --damp $damp --hessian $h $m |
			dpq-run -q $o --storage int3 --group 8 --hessian $h -o qep.h5
		ok "--qep-damp $damp $o: the codes of qep-correct and GPTQ" py same_codes qep.h5 out.h5
	done
done
printf '*/up_proj qep=0\n*/down_proj qep=1\n' >plan
dpq-run -q --storage int3 --group 8 --qep 0.5 --qep-skip '*/q_proj' --plan plan --hessian $h $m -o out.h5
qep-correct -q --layers '*/[kvo]_proj' --layers '*/gate_proj' --skip none --hessian $h $m -o half.h5
qep-correct -q --layers '*/down_proj' --alpha 1 --skip none --hessian $h half.h5 |
	dpq-run -q --storage int3 --group 8 --hessian $h -o qep.h5
ok '... layers without, by --qep-skip and by a plan' py same_codes qep.h5 out.h5
echo '*/down_proj qep=0.5' >plan
warns 'QEP of layers that are skipped by default' \
	'no layer is corrected: --qep-skip leaves out all that have --qep .default: down projections' \
	dpq-run -q --plan plan --hessian $h $m -o out.h5
warns '... and by --qep-skip' 'no layer is corrected: --qep-skip leaves out all that have --qep$' \
	dpq-run -q --qep 0.5 --qep-skip '*' --hessian $h $m -o out.h5

dpq-run -q --solver qronos --group 8 --hessian $h $m -o whole.h5
for how in '-j 1' '-j 3'; do
	# shellcheck disable=SC2086
	dpq-run -q $how --solver qronos --group 8 --hessian $h $m -o x.h5
	ok "the same with $how" cmp x.h5 whole.h5
done
echo '*/down_proj solver=gptq' >plan
dpq-run -q --solver qronos --group 8 --plan plan --hessian $h $m -o x.h5
dpq-run -q --group 8 --hessian $h $m -o gptq.h5
ok 'a plan: the solver of a layer' py plan whole.h5 gptq.h5 x.h5
is 'the history has the solver' "$(py arguments whole.h5 | grep -c -- '--solver qronos')" 1
py indefinite $h bad.h5
dpq-run --solver qronos --group 8 --damp 1e-7 --hessian bad.h5 $m -o x.h5 2>report
ok 'a Hessian that needs more damping' awk -F '\t' '$4 > 1.5e-7 { more = 1 } END { exit !more }' report
damp=$(awk -F '\t' '/0.self_attn.q_proj/ { print $4 }' report)
for o in "--damp $damp" '--damp 1e-7'; do
	# shellcheck disable=SC2086
	dpq-run -q --solver qronos --group 8 $o --layers '*/0/self_attn/q_proj' --hessian bad.h5 $m -o "x${o##* }.h5"
done
ok '... is corrected with that too' py same_codes x1e-7.h5 "x$damp.h5"

hessian-accum -q --tokens t.h5 --ctx 32 $m -o plain-h.h5
no 'Hessians without cross moments' 1 'plain-h.h5: /model/layers/0/self_attn/q_proj/cross: is missing' \
	dpq-run -q --solver qronos --group 8 --hessian plain-h.h5 $m -o no.h5
no 'no Hessians' 2 'needs --hessian FILE|--hessian FILE is needed' dpq-run --solver qronos $m
py spoil $h nan.h5
no 'cross moments that are not finite' 1 'nan.h5: /model/layers/1/self_attn/o_proj/cross: holds a number that is not' \
	dpq-run -q --solver qronos --group 8 --hessian nan.h5 $m -o no.h5
ok '... which GPTQ does not read' dpq-run -q --group 8 --hessian nan.h5 $m -o x.h5
hadamard-rotate -q $m | rms-suppress -q -o split.h5
hessian-accum -q --tokens t.h5 --ctx 32 --pair split.h5 split.h5 -o split-c.h5
no 'split columns' 1 '/model/layers/0/mlp/down_proj: has split columns' \
	dpq-run -q --solver qronos --group 8 --hessian split-c.h5 split.h5 -o no.h5
warns 'without compensation' 'without effect here: --solver .--compensate none.' \
	dpq-run --solver qronos --compensate none --group 8 $m -o x.h5
ok 'no file is left' sh -c '! ls ./*.tmp no.h5 2>/dev/null | grep .'
done_testing
