#!/usr/bin/env bash
# scale-search.sh [MODEL [TEST [CALIBRATION]]] -- the gain from a search of the groups' scales
#
# Weights of 4 and 3 bits in groups of PTQ_GROUP (128) for 16-bit arithmetic, rounded to nearest and by GPTQ in
# group-aware order. Scales: of the whole range (minmax), of the smallest error of weights (mse), of the smallest error
# of the layer's output (hessian), and from ranges learned on that output (learned). error_percent: change of
# tr(E H Eᵀ)/tr(W H Wᵀ) from mse, geometric mean over layers, with its standard error over layers. nll_delta,
# kl_delta: changes of NLL and of KL from the unquantized model, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
: "${PTQ_TOKENS:=16320}"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-128}

calibrate
step "gar-order --group $group hessian.h5 -o order.h5"
in='--hessian hessian.h5 model.h5'
for format in uint4 uint3 e2m1; do for search in mse minmax hessian learned; do
	measure $format-none-$search \
		"dpq-run --storage $format --group $group --compensate none --scale-search $search $in"
	measure $format-both-$search \
		"dpq-run --storage $format --group $group --compensate both --order order.h5 --scale-search $search $in"
done; done
run_steps

rows() {
	printf 'storage\tcompensate\tsearch\t@\n'
	for format in uint4 uint3 e2m1; do for way in none both; do for search in mse minmax hessian learned; do
		printf '%s\t%s\t%s\t@%s\n' $format $way $search "$format-$way-$search $format-$way-mse"
	done; done; done
}
rows | tabulate scale-search "$compared" comparison
plot scale-search
