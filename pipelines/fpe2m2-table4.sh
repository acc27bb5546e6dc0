#!/usr/bin/env bash
# fpe2m2-table4.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 4: the gain of INT4, E2M1, INT5, E2M2 from groups
# and GPTQ
#
# One scale per row; one scale per PTQ_GROUP (128) columns; GPTQ with one scale per row. E2Mx is paired with the same
# format with one scale per row, INT with E2Mx of the same width and method. paper: average accuracy over eight tasks of
# Qwen2.5-7B-Instruct.
# Standard errors are over windows, and draws if there are several. docs/results/fpe2m2.md explains the columns.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
draws=${PTQ_DRAWS:-1}
begin fpe2m2 "$@"
runs=({int4,e2m1,int5,e2m2}-{channel,group,gptq})
quantized "${runs[@]}"
run_steps

{
	printf 'format\tscales\t@\t%s\tpaper\n' "$more"
	for r in "${runs[@]}"; do printf '%s\t%s\t@%s\t%s\n' "${r%-*}" "${r#*-}" "$r" "$(paper "$r")"; done
} | tabulate table4 "$columns" row
say "the paper, unquantized: 72.7"
plot table4
