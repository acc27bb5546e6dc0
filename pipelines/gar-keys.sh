#!/usr/bin/env bash
# gar-keys.sh [MODEL [TEST [CALIBRATION]]] -- keys that rank the groups in group-aware reordering
#
# DPQ ranks groups by their largest diagonal element of H and leaves other criteria open (section 4.4, appendix A).
# Compared are the keys (not `sum`, which ranks groups of one size as `mean` does), the storage order and full
# reordering. Full reordering is measured in two forms: with its groups stored for inference, and with static groups
# (parameters of the original groups of uncompensated weights). For comparison the paper's key is measured with static
# groups, too. 4-bit weights in groups of PTQ_GROUP (32, so that layers have several groups to rank), for 16-bit
# arithmetic (W4A16) and FP8 (W4A8). error_percent: change of tr(E H Eᵀ)/tr(W H Wᵀ) from the paper's key, geometric
# mean over layers, with its standard error over layers.
# nll_delta, kl_delta: changes of NLL and of KL from the unquantized model, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
: "${PTQ_TOKENS:=16320}"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-32}

calibrate
step "gar-order -q --key max --group $group hessian.h5 -o max.order"
step "gar-order -q --key top10 --group $group hessian.h5 -o top10.order"
step "gar-order -q --key mean --group $group hessian.h5 -o mean.order"
step "gar-order -q --key median --group $group hessian.h5 -o median.order"
step "gar-order -q --order none hessian.h5 -o none.order"
step "gar-order -q --order full hessian.h5 -o full.order"
for scheme in W4A16-none W4A8-e4m3fn; do
	weights="dpq-run --storage uint4 --group $group --compute ${scheme#*-}" in='--hessian hessian.h5 model.h5'
	for order in max top10 mean median none full; do
		measure ${scheme%-*}-$order "$weights --order $order.order $in"
	done
	for order in max full; do
		measure ${scheme%-*}-$order-static "$weights --order $order.order --static-groups $in"
	done
done
run_steps

rows() {
	printf 'scheme\torder\t@\n'
	for scheme in W4A16 W4A8; do
		for order in max top10 mean median max-static none full full-static; do
			printf '%s\t%s\t@%s\n' $scheme $order "$scheme-$order $scheme-max"
		done
	done
}
rows | tabulate keys "$compared" comparison
plot keys
say "the paper (Llama-3.1-8B, perplexity, W4A16 and W4A8): full 6.597 6.679, gar by max 6.600 6.704, none 7.680 32.812"
