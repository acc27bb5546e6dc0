#!/usr/bin/env bash
# fpe2m2-table3.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 3: how five bits are shared out between exponent and mantissa
#
# A scale a row, rounded to nearest. E1M3 under max|w|/3.75 is INT5 in every code.
# paper: average accuracy over eight tasks of Qwen2.5-7B-Instruct.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=pipelines/fpe2m2-common.sh
. "$here/fpe2m2-common.sh"
quantized e1m3-channel e2m2-channel e3m1-channel e4m0-channel

{
	printf 'format\t%b\tpaper\n' "$columns"
	while read -r format accuracy; do
		printf '%s\t%s\t%s\n' "$format" "$([ "$format" = unquantized ] && unquantized || row "$format-channel")" "$accuracy"
	done <<'P'
unquantized 72.7
e1m3 70.1
e2m2 72.9
e3m1 70.3
e4m0 59.2
P
} >table3.tsv
show table3.tsv
picture table3 "Five bits shared out between exponent and mantissa, a scale a row, rounded to nearest" 'strcol(1)' 2 "paper: accuracy of Qwen2.5-7B, %"
say "table: $work/table3.tsv  plot: $work/table3.svg, $work/table3.png"
