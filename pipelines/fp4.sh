#!/usr/bin/env bash
# fp4.sh [MODEL [TEST [CALIBRATION]]] -- weights in MXFP4, NVFP4 and E2M1, by rounding and by GPTQ, with block Hadamards
#
# MXFP4: groups of 32, scales are powers of two. NVFP4: groups of 16, e4m3 scales and one float per tensor. E2M1 and
# int4: groups of 32, f16 scales. Each by rounding to nearest (RTN) and by GPTQ without column order, on the unchanged
# model and after hadamard-rotate --block of the group's size (as MR-GPTQ does for small groups), with Hessians of each
# model. Activations stay in 16 bits. bits: per weight, with its scales. kl: KL divergence from the unquantized model.
# kl_delta and nll_delta: differences from the same row without the Hadamard. All have standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group='16 or 32'	# for the plot

calibrate
for size in 16 32; do
	step "hadamard-rotate -q --block $size --seed 1 model.h5 -o block$size.h5"
	hessians block$size
done
format() {	# format NAME SIZE OPTIONS: measures a format in groups of SIZE by each method; NAME.stats has its bits
	local h="--hessian hessian.h5 model.h5" rotated="--hessian block$2-hessian.h5 block$2.h5"
	measure $1-RTN "dpq-run $3 --compensate none $h"
	measure $1-GPTQ "dpq-run $3 --reorder none $h"
	measure $1-RTN+H "dpq-run $3 --compensate none $rotated"
	measure $1-GPTQ+H "dpq-run $3 --reorder none $rotated"
	step "dpq-run -q --compensate none --scale-search minmax $3 model.h5 | tensor-stats -q >$1.stats"
}
format MXFP4 32 '--storage mxfp4'
format NVFP4 16 '--storage nvfp4'
format E2M1 32 '--storage e2m1 --group 32 --scale-dtype f16'
format int4 32 '--storage int4 --group 32 --scale-dtype f16'
run_steps

columns='output_error kl kl_se kl_delta kl_delta_se nll_rise nll_rise_se nll_delta nll_delta_se'
rows() {
	printf 'format\tway\tbits\t@\n'
	for format in MXFP4 NVFP4 E2M1 int4; do for way in RTN GPTQ RTN+H GPTQ+H; do
		bits=$(cell $format.stats bits all)
		printf '%s\t%s\t%s\t@%s\n' $format $way "$bits" "$format-$way $format-${way%+H}"
	done; done
}
rows | tabulate fp4 "$columns" comparison
plot fp4
