# shellcheck shell=bash
# dpq.sh -- for DPQ's tables 2, 3 and 4
#
# All scripts share a folder, so that no run is repeated.
#
#   $group, $in, $columns  PTQ_GROUP (128), the inputs of dpq-run, the usual columns of a table
#   ordered ORDER...       calibrates; makes the column orders ORDER.h5, and by them the runs W4A16-ORDER by GPTQ and
#                          W4A8-ORDER by DPQ, for FP8 arithmetic with static activation scales; weights are uint4
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
group=${PTQ_GROUP:-128} in='--hessian hessian.h5 model.h5'
# shellcheck disable=SC2034
columns='output_error kl kl_se kl_delta kl_delta_se nll_rise nll_rise_se nll_delta nll_delta_se ppl_rise_percent'

ordered() {
	local order groups
	calibrate
	for order; do
		groups=''
		[ $order != gar ] || groups=" --group $group"
		step "gar-order -q --order $order$groups hessian.h5 -o $order.h5"
		measure W4A16-$order "dpq-run --group $group --compute none --order $order.h5 $in"
		measure W4A8-$order "dpq-run --group $group --compute e4m3fn --order $order.h5 $in"
	done
}
