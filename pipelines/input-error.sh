#!/usr/bin/env bash
# input-error.sh [MODEL [TEST [CALIBRATION]]] -- what compensation for the quantization error of the inputs is worth
#
# Weights of 2 to 4 bits with zero points, in groups of PTQ_GROUP (64), and of 3 and 4 bits with a scale for each
# channel, in group-aware order. gptq: no compensation for inputs. qep: the weights are corrected before GPTQ, by half
# of the correction, without down projections (QEP). qronos: all columns compensate it. one-shot: GPTQ with the Hessians
# of the unquantized model; QEP and Qronos with inputs x of its result, and the unquantized inputs (hessian-accum
# --pair). sequential: x comes from the layers that are quantized already. kl_delta, nll_delta: differences from GPTQ
# with the same calibration, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-64}
tokens="--tokens calib.h5 $window$limit" formats="uint2:$group uint3:$group uint4:$group uint3:channel uint4:channel"

calibrate
for format in $formats; do
	run=${format/:/-} solve="dpq-run --storage ${format%:*} --group ${format#*:}"
	step "$solve -q --hessian hessian.h5 model.h5 -o $run-first.h5"
	step "hessian-accum -q $tokens --pair model.h5 $run-first.h5 -o $run-cross.h5"
	measure "$run-gptq" "$solve --hessian hessian.h5 model.h5"
	measure "$run-gptq-sequential" "$solve --sequential $tokens model.h5"
	for method in 'qep --qep 0.5' 'qronos --solver qronos'; do
		measure "$run-${method%% *}" "$solve ${method#* } --hessian $run-cross.h5 model.h5"
		measure "$run-${method%% *}-sequential" \
			"$solve ${method#* } --sequential $tokens model.h5"
	done
done
run_steps

rows() {
	printf 'storage\tgroup\tmethod\tcalibration\t@\n'
	for format in $formats; do for kind in '' -sequential; do for method in gptq qep qronos; do
		printf '%s\t%s\t%s\t%s\t@%s\n' "${format%:*}" "${format#*:}" $method \
			"$([ "$kind" ] && echo sequential || echo one-shot)" \
			"${format/:/-}-$method$kind ${format/:/-}-gptq$kind"
	done; done; done
}
rows | tabulate input-error "$compared" comparison
plot input-error
