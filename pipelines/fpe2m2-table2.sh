#!/usr/bin/env bash
# fpe2m2-table2.sh [MODEL [QUESTIONS [CALIBRATION]]] -- FPE2M2 table 2: INT4, INT5, NF5 and E2M2 on a model that sees pictures
#
# Weights of all linear layers of encoder, projector and language model, rounded to nearest under one scale a row, which is max|w| over the
# format's largest value; inputs stay in 16 bits. acc_delta and kl_delta are against E2M2, paired, with standard errors over
# questions. paper_mean is the paper's average over five sets of questions about pictures (Qwen2-VL-7B), paper_mme its MME score.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision "$name" "$@"

rows() { cat <<'R'
16	unquantized	76.4	2325.3
int4	INT4	71.4	2248.5
int5	INT5	75.9	2283.6
nf5	NF5	76.2	2313.9
e2m2	E2M2	76.5	2321
R
}
commands() {
	local m run
	for m in "${models[@]}"; do rows | while read -r run _; do
		if [ "$run" = 16 ]; then choose "$m-16" "$m-e2m2" "$(weights "$m" - none none)"
		else choose "$m-$run" "$m-e2m2" "$(weights "$m" "$m-hessian" "$run" "$run" --group channel --compensate none --scale-search minmax)"; fi
	done; done
}
say "quantizing and measuring"
commands | in_turn
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_mean\tpaper_mme\n' "$answered"
	for m in "${models[@]}"; do rows | while read -r run way mean mme; do
		bits=W${run//[a-z]/}A16
		case $run in e2m2) bits=W5A16 ;; 16) bits=16 ;; esac
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$bits" "$bits" "$way" "$(answers "$m-$run")" "$mean" "$mme"
	done; done
} >"$part/table2.tsv"
table table2
picture table2 "4 and 5 bits, a scale a row, rounded to nearest; the paper: Qwen2-VL-7B" "E2M2" "paper: mean of 5 sets, %"
