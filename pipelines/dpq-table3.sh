#!/usr/bin/env bash
# dpq-table3.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 3: precisions, by full order and by group-aware reordering
#
# 16 bits; W8A8 (weights and activations rounded to FP8, a scale a tensor); 4-bit
# weights in groups of PTQ_GROUP (128), W4A16 by GPTQ and W4A8 by DPQ, each by
# full order (the paper's *) and by group-aware reordering. In place of
# accuracies the nll and the divergence from the 16-bit model: nll_rise and kl are
# from the 16-bit model, nll_delta and kl_delta what they are above those of W4A8
# with group-aware reordering; all are paired, with standard errors over windows. PTQ_LIMIT: first tokens of the
# calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

schemes() { cat <<'S'
W8A8	-	--storage e4m3fn --group tensor --compensate none --act-format e4m3fn	5.502	0.55	6.311	1.15
W4A16	full	--compute none	5.629	2.79	6.597	5.45
W4A8	full	--compute e4m3fn	5.662	3.36	6.935	10.04
W4A16	gar	--compute none	5.745	4.75	6.631	5.93
W4A8	gar	--compute e4m3fn	5.781	5.34	6.704	6.95
S
}
commands() { schemes | while IFS=$'\t' read -r scheme order options _; do
	[ "$scheme" = W8A8 ] || options+=" --group $group --order $order.h5"
	measure "$scheme$order" W4A8gar "$options"
done; }

calibrate
once gar.h5 gar-order -q --group "$group" hessian.h5
once full.h5 gar-order -q --order full hessian.h5
keep reference.tsv eval-ppl --tokens test.h5 "${window[@]}" model.h5

say "quantizing and measuring, five times"
commands | { grep -e '-o W4A8gar.h5' || true; } | each
commands | each
{
	printf 'scheme\torder\toutput_error\tnll\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tkl\tkl_se\tkl_delta\tkl_delta_se\tppl_rise_percent\tllama2_7b_ppl\tllama2_7b_rise_percent\tllama3_8b_ppl\tllama3_8b_rise_percent\n'
	awk -F '\t' '$1 == "nll" { printf "16-bit\t-\t0\t%s\t0\t0\t\t\t0\t0\t\t\t0\t5.472\t0\t6.238\t0\n", $2 }' reference.tsv
	schemes | while IFS=$'\t' read -r scheme order _ paper; do
		numbers=$(compared "$scheme$order" W4A8gar | cut -f 1,4-12 | awk -F '\t' '{ print $0 "\t" 100 * (1 - exp(-$3)) }')
		printf '%s\t%s\t%s\t%s\n' "$scheme" "$order" "$numbers" "$paper"
	done
} >"$part/table3.tsv"
table table3

plot table3 <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set title "What a precision costs, by the order of quantization\nbars: one standard error over windows, paired with the 16-bit model" noenhanced
set ylabel "nats a token"; set yrange [*<0:0<*]; set key top left Left reverse; set grid y; set border 3; set tics nomirror; set datafile separator "\t"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 760,480 font "sans,14" background "white" } else { set terminal pngcairo size 760,480 font "sans,11" }
	set output part."table3.".t
	plot "table3.tsv" using 5:6:xtic(strcol(2) eq "-" ? strcol(1) : strcol(1).", ".strcol(2)) every ::2 title "rise of the nll", "" using 9:10 every ::2 title "divergence from the 16-bit model"
}
G
