#!/usr/bin/env bash
# fp4.sh [MODEL [TEST [CALIBRATION]]] -- weights in MXFP4, NVFP4 and E2M1, by rounding and by GPTQ, with block Hadamards
#
# MXFP4: groups of 32 under powers of two; NVFP4: of 16 under e4m3 scales and a float a tensor; E2M1 and int4:
# of 32 under f16 scales. Each by rounding to nearest (RTN) and by GPTQ, columns unordered, of the model as it is and behind
# hadamard-rotate --block, the group's size (MR-GPTQ's companion of small groups), with Hessians of its own. Activations
# stay in 16 bits. bits: of a weight with its scales. kl is the divergence from the unquantized model, kl_delta and
# nll_delta what they are above the same without the Hadamard; all with standard errors over windows. PTQ_LIMIT: first
# tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"

calibrate
say "rotating"
for b in 16 32; do
	once block$b.h5 hadamard-rotate -q --block $b --seed 1 model.h5
	hessians block$b
done
formats() { cat <<'F'
MXFP4	32	--storage mxfp4
NVFP4	16	--storage nvfp4
E2M1	32	--storage e2m1 --group 32 --scale-dtype f16
int4	32	--storage int4 --group 32 --scale-dtype f16
F
}
ways() { printf 'RTN\tmodel\t--compensate none\nGPTQ\tmodel\t--reorder none\nRTN+H\tblock\t--compensate none\nGPTQ+H\tblock\t--reorder none\n'; }
bits() { dpq-run -q --compensate none --scale-search minmax "$@" model.h5 | tensor-stats -q | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "bits") c = i } END { print $c }'; }
commands() {
	formats | while IFS=$'\t' read -r format group options; do
		ways | tr '\t' '|' | while IFS='|' read -r way from more; do
			[ "$from" = model ] || from=block$group
			from=$from measure "$format-$way" "$format-${way%+H}" "$options" "$more"
		done
	done
}

say "quantizing and measuring"
commands | { grep -v -e ' --paired ' || true; } | each
commands | each
formats | while IFS=$'\t' read -r format _ options; do
	# shellcheck disable=SC2086
	keep "$format.bits" bits $options
done
{
	printf 'format\tway\tbits\toutput_error\tkl\tkl_se\tkl_delta\tkl_delta_se\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\n'
	formats | while IFS=$'\t' read -r format _; do
		ways | while IFS=$'\t' read -r way _; do
			compared "$format-$way" "$format-${way%+H}" | awk -v OFS='\t' -F '\t' -v f="$format" -v w="$way" -v b="$(cat "$format.bits")" '{
				print f, w, b, $1, $9, $10, $11, $12, $5, $6, $7, $8 }'
		done
	done
} >"$part/fp4.tsv"
table fp4

plot fp4 <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set title "What 4-bit weights under small groups cost (+H: behind Hadamards of the group's size)\nbars: one standard error over windows" noenhanced
set ylabel "KL from the unquantized model, nats a token"; set yrange [0:*]; set grid y; set border 3; set tics nomirror; set key outside right top; set xtics noenhanced
array way[4] = ["RTN", "GPTQ", "RTN+H", "GPTQ+H"]; array color[4] = ["#bbbbbb", "#4477aa", "#ccbb44", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,440 font "sans,14" background "white" } else { set terminal pngcairo size 820,440 font "sans,11" }
	set output part."fp4.".t
	plot for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' fp4.tsv" using 5:6:xtic(1) title way[i] noenhanced lc rgb color[i]
}
G
