#!/usr/bin/env bash
# quarot.sh [MODEL [TEST [CALIBRATION]]] -- 4-bit weights with 8-bit and 4-bit activations, with and without rotation
#
# int4 weights of one scale per row (PTQ_GROUP: in groups) by GPTQ without column order, or by rounding to nearest
# (RTN). Activations of every linear layer in 16 bits (W4A16), int8 (W4A8) or int4 (W4A4) with one scale per token. In
# W4A4KV4 also keys and values in uint4, with one scale and one zero point per head of a token. Models: unchanged, after
# smooth-scale (SmoothQuant), after hadamard-rotate (QuaRot), and after hadamard-rotate and rms-suppress, which splits
# the columns that become outliers (QuaRot+RMS). Each has its Hessians, except the last, which computes the same as the
# rotated model. kl and nll_rise: KL divergence and rise of the NLL from the model in 16 bits. kl_delta and nll_delta:
# differences from QuaRot in the same scheme. All are paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-channel}

calibrate
step "smooth-scale -q --hessian hessian.h5 model.h5 -o smooth.h5"
step "hadamard-rotate -q --keys --seed 1 model.h5 -o rotated.h5"
step "rms-suppress -q rotated.h5 -o split.h5"
hessians smooth rotated	# rotated also for the split model, which computes the same

scheme() {	# scheme NAME INPUTS [OPTION...]: measures each model with inputs rounded so; OPTIONs are eval-ppl's
	local weights="dpq-run --storage int4 --group $group $2"
	measure $1-RTN "$weights --compensate none --hessian hessian.h5 model.h5" "${@:3}"
	measure $1-GPTQ "$weights --reorder none --hessian hessian.h5 model.h5" "${@:3}"
	measure $1-SmoothQuant "$weights --reorder none --hessian smooth-hessian.h5 smooth.h5" "${@:3}"
	measure $1-QuaRot "$weights --reorder none --hessian rotated-hessian.h5 rotated.h5" "${@:3}"
	measure $1-QuaRot+RMS "$weights --reorder none --hessian rotated-hessian.h5 split.h5" "${@:3}"
}
scheme W4A16 '--act-mode none'
scheme W4A8 '--act-format int8 --act-mode dynamic-token'
scheme W4A4 '--act-format int4 --act-mode dynamic-token'
scheme W4A4KV4 '--act-format int4 --act-mode dynamic-token' --kv-format uint4
run_steps

columns='output_error kl kl_se kl_delta kl_delta_se nll_rise nll_rise_se nll_delta nll_delta_se ppl_rise_percent'
rows() {
	printf 'scheme\tway\t@\n'
	for scheme in W4A16 W4A8 W4A4 W4A4KV4; do for way in RTN GPTQ SmoothQuant QuaRot QuaRot+RMS; do
		printf '%s\t%s\t@%s\n' $scheme $way "$scheme-$way $scheme-QuaRot"
	done; done
}
rows | tabulate quarot "$columns" comparison
plot quarot
