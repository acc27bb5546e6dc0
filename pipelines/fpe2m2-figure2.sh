#!/usr/bin/env bash
# fpe2m2-figure2.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 figure 2: quality against the bits of a weight
#
# INT and E2Mx of 3 to 8 bits, rounded to nearest with one scale per row, rounded to nearest with one scale per
# PTQ_GROUP (128) columns, and by GPTQ with one scale per row. The paper's figure has accuracy on GSM8K; here it is
# KL divergence from the unquantized model and rise of the NLL. Bits count scales as they are stored, in 32 bits.
# Standard errors are over windows, and draws if there are several. docs/results/fpe2m2.md explains the columns.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
draws=${PTQ_DRAWS:-1}
begin fpe2m2 "$@"
for bits in 3 4 5 6 7 8; do for how in channel group gptq; do
	runs+=("int$bits-$how" "e2m$((bits - 3))-$how")
done; done
quantized "${runs[@]}"
run_steps

{
	printf 'family\tscales\tformat\t@\t%s\tpaper_table4\n' "$more"	# the paper's figure 2 has no numbers
	for r in "${runs[@]}"; do
		[[ $r = int* ]] && family=INT || family=E2Mx
		printf '%s\t%s\t%s\t@%s\t%s\n' $family "${r#*-}" "${r%-*}" "$r" "$(paper "$r")"
	done
} | tabulate figure2 "$columns" row
say "the paper's table 4, unquantized: 72.7"
plot figure2
