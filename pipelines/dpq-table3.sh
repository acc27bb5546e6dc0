#!/usr/bin/env bash
# dpq-table3.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 3: precisions, by full order and by group-aware reordering
#
# 16 bits; W8A8 (weights and activations in FP8, one scale per tensor); W4A16 by GPTQ and W4A8 by DPQ with 4-bit weights
# in groups of PTQ_GROUP (128), each by full order (the paper's *) and by group-aware reordering. The paper has
# perplexities and accuracies; here there are NLL and KL divergence. nll_rise and kl: from the 16-bit model. nll_delta
# and kl_delta: differences from W4A8 with group-aware reordering. All are paired, with standard errors over windows and
# draws.
set -euo pipefail
# shellcheck source=pipelines/lib/dpq.sh
. "$(dirname "$0")/lib/dpq.sh"
draws=${PTQ_DRAWS:-1}
begin dpq "$@"
ordered full gar
measure W8A8 "dpq-run --storage e4m3fn --group tensor --compensate none --act-format e4m3fn $in"
run_steps

columns='output_error nll nll_rise nll_rise_se nll_delta nll_delta_se kl kl_se kl_delta kl_delta_se ppl_rise_percent'
row() {	# the row of the model itself has no comparison
	[ "$2" = reference ] || { comparison "$@"; return; }
	local name value values=''
	for name in $1; do
		case $name in
			*_delta*) value='' ;;
			nll) value=$(awk '$1 == "nll" { print $2 }' reference.tsv) ;;
			acc*) value=$(cell model.choice "$name" all) ;;
			*) value=0 ;;
		esac
		values+=$'\t'$value
	done
	echo "${values#?}"
}
tabulate table3 "$columns" row <<'T'
scheme	order	@	llama2_7b_ppl	llama2_7b_rise_percent	llama3_8b_ppl	llama3_8b_rise_percent
16-bit	-	@reference	5.472	0	6.238	0
W8A8	-	@W8A8 W4A8-gar	5.502	0.55	6.311	1.15
W4A16	full	@W4A16-full W4A8-gar	5.629	2.79	6.597	5.45
W4A8	full	@W4A8-full W4A8-gar	5.662	3.36	6.935	10.04
W4A16	gar	@W4A16-gar W4A8-gar	5.745	4.75	6.631	5.93
W4A8	gar	@W4A8-gar W4A8-gar	5.781	5.34	6.704	6.95
T
plot table3
