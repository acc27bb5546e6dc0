#!/usr/bin/env bash
# dpq-table2.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 2: what it is worth to compensate both roundings
#
# 4-bit weights in groups of PTQ_GROUP (128). For 16-bit arithmetic (W4A16):
# rounding to nearest, and GPTQ in three orders. For FP8 arithmetic with static
# activation scales (W4A8): rounding to nearest, GPTQ carried over naively (only
# the storage error is compensated), and DPQ (both are) by each of the three
# recipes. For each the relative output error tr(E H Eᵀ)/tr(W H Wᵀ), geometric
# mean over layers, and the rise in nll, paired by token. PTQ_LIMIT: first
# tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

calibrate
for order in none gar full; do once $order.h5 gar-order -q --order $order --group "$group" hessian.h5; done
once reference.h5 eval-ppl --tokens test.h5 "${window[@]}" model.h5 >/dev/null

methods() { cat <<'M'
W4A16	RTN	--compensate none
W4A16	GPTQ, none	--order none.h5
W4A16	GPTQ, gar	--order gar.h5
W4A16	GPTQ, full	--order full.h5
W4A8	RTN	--compute e4m3fn --compensate none
W4A8	GPTQ naive, gar	--compute e4m3fn --compensate storage --order gar.h5
W4A8	DPQ, none	--compute e4m3fn --order none.h5
W4A8	DPQ, gar	--compute e4m3fn --order gar.h5
W4A8	DPQ, full	--compute e4m3fn --order full.h5
W4A8	DPQ, gar, paper	--compute e4m3fn --order gar.h5 --recipe paper
W4A8	DPQ, gar, inc (240)	--compute e4m3ieee --order gar.h5 --recipe inc
M
}
file() { echo "$*" | tr ' ' - | tr -cd 'A-Za-z0-9-'; }

say "quantizing and measuring"
methods | while IFS=$'\t' read -r scheme method options; do
	measure "$(file "$scheme $method")" reference --group "$group" "$options"
done | each

{
	printf 'scheme\tmethod\toutput_error\tnll\tnll_rise\tnll_rise_se\tppl\n'
	methods | while IFS=$'\t' read -r scheme method _; do
		out=$(file "$scheme $method")
		awk -v OFS='\t' -F '\t' -v s="$scheme" -v m="$method" 'FNR == NR { e = $1 == "geometric mean" ? $2 : e; next } { v[$1] = $2 }
			END { print s, m, e, v["nll"], v["paired_delta"], v["paired_delta_se"], v["ppl"] }' "$out.layers" "$out.tsv"
	done
} >"$part/table2.tsv"
table table2

plot table2 <<'G'
set style data boxes; set boxwidth 0.6; set style fill solid 0.8 border lc "black"
set title "Relative output error of the weights by method (geometric mean over layers)" noenhanced
set ylabel "tr(E H Eᵀ) / tr(W H Wᵀ)" noenhanced; set yrange [0:*]; set grid y; set border 3; set tics nomirror
set xtics rotate by -35 noenhanced; set key off; set bmargin 9; set rmargin 18; set datafile separator "\t"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 860,520 font "sans,13" background "white" } else { set terminal pngcairo size 860,520 font "sans,11" }
	set output part."table2.".t
	plot "table2.tsv" using 0:3:xtic(sprintf("%s %s", strcol(1), strcol(2))) every ::1 lc "#4477aa"
}
G
say "the paper (Llama-2-7B, mean accuracy of five tasks): BF16 68.64, DPQ 68.15, naive GPTQ 64.69, RTN 63.54"
