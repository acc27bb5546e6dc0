#!/usr/bin/env bash
# quarot.sh [MODEL [TEST [CALIBRATION]]] -- 4-bit weights under 8-bit and 4-bit activations, with and without rotation
#
# int4 weights of one scale a row (PTQ_GROUP: in groups) by GPTQ, columns unordered, or by rounding to nearest (RTN);
# activations of every linear layer in 16 bits (W4A16), int8 (W4A8) or int4 (W4A4) under a scale of each token, and in
# W4A4KV4 keys and values in uint4, a scale and a zero point for each head of a token. The model as it is, behind
# smooth-scale (SmoothQuant), behind hadamard-rotate (QuaRot), and with the channels taken out that the rotation makes
# outliers (QuaRot+RMS: MQuant's rms-suppress). Each has Hessians of its own, but the last, which computes what the
# rotated model does. kl is the divergence from the model in 16 bits, nll_rise the rise from its nll, kl_delta and
# nll_delta what they are above QuaRot's in the same scheme; all paired, with standard errors over windows. PTQ_LIMIT:
# first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-channel}

calibrate
step "smooth-scale -q --hessian hessian.h5 model.h5 -o smooth.h5"
step "hadamard-rotate -q --keys --seed 1 model.h5 -o rotated.h5"
step "rms-suppress -q rotated.h5 -o split.h5"
hessians smooth rotated	# the last of the split model, too: what it computes is the same

scheme() {	# scheme NAME INPUTS [OPTION...]: measures each model under these inputs; OPTIONs are eval-ppl's
	local weights="dpq-run --storage int4 --group $group $2"
	measure $1-RTN $1-QuaRot "$weights --compensate none --hessian hessian.h5 model.h5" "${@:3}"
	measure $1-GPTQ $1-QuaRot "$weights --reorder none --hessian hessian.h5 model.h5" "${@:3}"
	measure $1-SmoothQuant $1-QuaRot "$weights --reorder none --hessian smooth-hessian.h5 smooth.h5" "${@:3}"
	measure $1-QuaRot $1-QuaRot "$weights --reorder none --hessian rotated-hessian.h5 rotated.h5" "${@:3}"
	measure $1-QuaRot+RMS $1-QuaRot "$weights --reorder none --hessian rotated-hessian.h5 split.h5" "${@:3}"
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
