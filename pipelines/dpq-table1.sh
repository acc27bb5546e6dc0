#!/usr/bin/env bash
# dpq-table1.sh [MODEL [QUESTIONS [CALIBRATION]]] -- DPQ table 1: W4A16 by GPTQ and W4A8 by DPQ on a model that sees pictures
#
# Weights of the language model's linear layers, as in the paper, in uint4 with zero points in groups of PTQ_GROUP (128) and
# scales of least squared error; the encoder and the projector stay in 16 bits. W4A16: GPTQ in the columns' own order (as the
# published checkpoints that the paper compares with) and in group-aware order; W4A8: DPQ for FP8 arithmetic with static
# scales of inputs, in group-aware order. acc_delta and kl_delta are against DPQ, paired, with standard errors over
# questions. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision "$name" "$@"
group=${PTQ_GROUP:-128}

for m in "${models[@]}"; do once "$m-order.h5" gar-order -q --group "$group" "$m-hessian.h5"; done
rows() { cat <<'R'
16	16	unquantized		53.77 81.78 58.20
GPTQ	W4A16	GPTQ	--reorder none	52.55 81.27 60.30
GPTQ-GAR	W4A16	GPTQ, GAR	--order @-order.h5	
DPQ	W4A8	DPQ	--compute e4m3fn --order @-order.h5	52.64 81.25 59.86
R
}
commands() {
	local m run options
	for m in "${models[@]}"; do rows | tr '\t' '|' | while IFS='|' read -r run _ _ options _; do
		if [ "$run" = 16 ]; then choose "$m-16" "$m-DPQ" "$(weights "$m" - none none)"
		else choose "$m-$run" "$m-DPQ" "$(weights "$m" "$m-hessian" none uint4 --group "$group" --scale-search mse "${options//@/$m}")"; fi
	done; done
}
say "quantizing and measuring"
commands | in_turn
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_mean\tpaper_mmmu\tpaper_mmbench\tpaper_mathvista\n' "$answered"
	for m in "${models[@]}"; do rows | tr '\t' '|' | while IFS='|' read -r run language way _ paper; do
		printf '%s\t16\t%s\t%s\t%s\t%s\n' "$m" "$language" "$way" "$(answers "$m-$run")" \
			"$(awk -v OFS='\t' '{ if (NF) print sprintf("%.2f", ($1 + $2 + $3) / 3), $1, $2, $3; else print "", "", "", "" }' <<<"$paper")"
	done; done
} >"$part/table1.tsv"
table table1
picture table1 "Weights of the language model in 4 bits, groups of $group; the paper: Qwen2-VL-7B" "DPQ" "paper: mean of 3 sets, %"
