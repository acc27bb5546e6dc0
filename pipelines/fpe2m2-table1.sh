#!/usr/bin/env bash
# fpe2m2-table1.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 1: INT4, INT5, NF5 and E2M2 with a scale a row
#
# Rounded to nearest. Likelihood and divergence from the unquantized model stand
# in the place of the paper's accuracies: paper_mean is the mean over its seven
# models of their averages over eight tasks, paper_7b that of Qwen2.5-7B.
set -euo pipefail
# shellcheck source=pipelines/fpe2m2-common.sh
. "$(dirname "$0")/fpe2m2-common.sh"
quantized int4-channel int5-channel nf5-channel e2m2-channel

# Averages of Qwen2.5 3B, 7B, 14B, 72B, LLaMA3 8B, DPSK-DS-Qwen 14B, DPSK-DS-Llama 8B
paper() { cat <<'P'
unquantized	57.1 72.7 71.6 79.9 58.4 72.9 57.2
int4	21.4 48.5 65.3 69.1 39.9 65.8 49.0
int5	55.9 70.1 68.9 78.9 54.8 69.5 56.0
nf5	57.2 72.5 71.1 79.9 57.2 72.7 56.9
e2m2	57.4 72.9 72.2 79.8 57.2 72.7 57.1
P
}
{
	printf 'format\t%b\tpaper_mean\tpaper_7b\n' "$columns"
	paper | while IFS=$'\t' read -r format accuracies; do
		values=$(row "$format-channel")
		printf '%s\t%s\t%s\n' "$format" "$values" \
			"$(awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%.2f\t%s", s / NF, $2 }' <<<"$accuracies")"
	done
} >"$part/table1.tsv"
table table1
picture table1 "4 and 5 bits, a scale a row, rounded to nearest" 'strcol(1)' 2 "paper: mean accuracy of 7 models, %"
