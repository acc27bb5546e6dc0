#!/usr/bin/env bash
# sequential.sh [MODEL [TEST [CALIBRATION]]] -- the gain from calibration on the outputs of quantized layers
#
# 4-bit weights in groups of PTQ_GROUP (128), by GPTQ (W4A16) and by DPQ for FP8 arithmetic with static activation
# scales (W4A8), in three column orders. one-shot: with the Hessians of the unquantized model. sequential: each layer
# is calibrated on the outputs of the quantized layers before it, for the same tokens. nll_rise and kl: from the
# unquantized model. nll_delta and kl_delta: sequential minus one-shot. All are paired, with standard errors over
# windows. Times are from tokens to quantized model, both methods in turn, medians of PTQ_RUNS (3) runs.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-128}
weights="dpq-run --storage uint4 --group $group" tokens="--tokens calib.h5 $window$limit"
gar="--order gar --group $group" runs=${PTQ_RUNS:-3}

calibrate
step "gar-order -q --order none hessian.h5 -o none.h5"
step "gar-order -q $gar hessian.h5 -o gar.h5"
step "gar-order -q --order full hessian.h5 -o full.h5"
for order in none gar full; do
	for scheme in W4A16-none W4A8-e4m3fn; do
		base=${scheme%-*}-$order compute="--compute ${scheme#*-}"
		measure $base "$weights $compute --order $order.h5 --hessian hessian.h5 model.h5"
		measure $base-sequential "$weights $compute --reorder $order --sequential $tokens model.h5"
	done
done
for ((i = 1; i <= runs; i++)); do for scheme in W4A16-none W4A8-e4m3fn; do
	compute="--compute ${scheme#*-}" to=seconds-${scheme%-*}
	alone "bash -c 'TIMEFORMAT=\"%R %U %S\"; time {" \
		"hessian-accum -q $tokens model.h5 -o h.h5 && gar-order -q $gar h.h5 -o o.h5 &&" \
		"$weights -q $compute --order o.h5 --hessian h.h5 model.h5 -o q.h5 ; } 2>/dev/null'" \
		"2>$to-one-shot-$i.txt && rm h.h5 o.h5 q.h5"
	alone "bash -c 'TIMEFORMAT=\"%R %U %S\"; time {" \
		"$weights -q $compute --reorder gar --sequential $tokens model.h5 -o q.h5 ; } 2>/dev/null'" \
		"2>$to-sequential-$i.txt && rm q.h5"
done; done
run_steps

rows() {
	printf 'scheme\torder\tcalibration\t@\n'
	for scheme in W4A16 W4A8; do for order in none gar full; do
		printf '%s\t%s\tone-shot\t@%s\n' $scheme $order "$scheme-$order $scheme-$order"
		printf '%s\t%s\tsequential\t@%s\n' $scheme $order "$scheme-$order-sequential $scheme-$order"
	done; done
}
columns='output_error nll nll_rise nll_rise_se nll_delta nll_delta_se kl kl_se kl_delta kl_delta_se'
rows | tabulate sequential "$columns" comparison
awk -f "$lib/sequential.awk" seconds-*.txt >"$part/seconds.tsv"
table seconds
plot sequential
