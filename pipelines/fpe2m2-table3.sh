#!/usr/bin/env bash
# fpe2m2-table3.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 3: five bits divided between exponent and mantissa
#
# One scale per row, rounded to nearest. E1M3 with the scale max|w|/3.75 is INT5 in every code.
# paper: average accuracy over eight tasks of Qwen2.5-7B-Instruct.
# Standard errors are over windows, and draws if there are several. docs/results/fpe2m2.md explains the columns.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
draws=${PTQ_DRAWS:-1}
begin fpe2m2 "$@"
quantized e1m3-channel e2m2-channel e3m1-channel e4m0-channel
run_steps

tabulate table3 "$columns" row <<T
format	@	$more	paper
e1m3	@e1m3-channel	70.1
e2m2	@e2m2-channel	72.9
e3m1	@e3m1-channel	70.3
e4m0	@e4m0-channel	59.2
T
peaks
say "the paper, unquantized: 72.7"
say "table: $work/table3.tsv"
