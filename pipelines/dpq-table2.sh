#!/usr/bin/env bash
# dpq-table2.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 2: what it is worth to compensate both roundings
#
# 4-bit weights in groups of PTQ_GROUP (128). For 16-bit arithmetic (W4A16):
# rounding to nearest, and GPTQ in three orders. For FP8 arithmetic with static
# activation scales (W4A8): rounding to nearest, GPTQ carried over naively (only
# the storage error is compensated), and DPQ (both are) by each of the three
# recipes. For each the relative output error tr(E H Eᵀ)/tr(W H Wᵀ), geometric
# mean over layers, the divergence kl from the unquantized model and nll_rise, the
# rise from its nll; kl_delta and nll_delta: what they are above those of GPTQ, gar
# (W4A16) and of DPQ, gar (W4A8). All paired, with standard errors over windows.
# PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

calibrate
once gar.h5 gar-order -q --group "$group" hessian.h5
for order in none full; do once $order.h5 gar-order -q --order $order hessian.h5; done

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
base() { [ "$1" = W4A8 ] && echo W4A8-DPQ-gar || echo W4A16-GPTQ-gar; }

say "quantizing and measuring"
take() { while IFS=$'\t' read -r scheme method options; do
	measure "$(file "$scheme $method")" "$(base "$scheme")" --group "$group" "$options"
done; }
methods | grep -E $'\t(GPTQ|DPQ), gar\t' | take | each
methods | take | each

{
	printf 'scheme\tmethod\toutput_error\tkl\tkl_se\tkl_delta\tkl_delta_se\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tppl_rise_percent\n'
	methods | while IFS=$'\t' read -r scheme method _; do
		compared "$(file "$scheme $method")" "$(base "$scheme")" | awk -v OFS='\t' -F '\t' -v s="$scheme" -v m="$method" '{
			print s, m, $1, $9, $10, $11, $12, $5, $6, $7, $8, 100 * (1 - exp(-$5)) }'
	done
} >"$part/table2.tsv"
table table2

plot table2 <<'G'
set style data boxes; set boxwidth 0.6; set style fill solid 0.8 border lc "black"; set datafile separator "\t"
set yrange [0:*]; set xrange [-0.6:10.6]; set grid y; set border 3; set tics nomirror; set key off; set xtics rotate by -35 noenhanced; set rmargin 17; set bmargin 8; set bars 0.6
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1240,520 font "sans,13" background "white" } else { set terminal pngcairo size 1240,520 font "sans,11" }
	set output part."table2.".t
	set multiplot layout 1,2 title "4-bit weights by method (bars: one standard error over windows)" noenhanced
	set ylabel "output error tr(E H Eᵀ)/tr(W H Wᵀ)" noenhanced
	plot "table2.tsv" using 0:3:xtic(sprintf("%s %s", strcol(1), strcol(2))) every ::1 lc "#4477aa"
	set ylabel "KL from the unquantized model, nats a token" noenhanced
	plot "table2.tsv" using 0:4:5:xtic(sprintf("%s %s", strcol(1), strcol(2))) every ::1 with boxerrorbars lc "#cc6677"
	unset multiplot
}
G
say "the paper (Llama-2-7B, mean accuracy of five tasks): BF16 68.64, DPQ 68.15, naive GPTQ 64.69, RTN 63.54"
