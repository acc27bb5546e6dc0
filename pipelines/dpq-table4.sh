#!/usr/bin/env bash
# dpq-table4.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 4: what the order of quantization is worth
#
# 4-bit weights in groups of PTQ_GROUP (128) with scales of least squared error, quantized
# by GPTQ (W4A16) and by DPQ for FP8 arithmetic with static activation scales
# (W4A8), in the columns' own order, by group-aware reordering, and by full
# reordering, which carries its order to inference. One calibration set, one
# test set; output_error is tr(E H Eᵀ)/tr(W H Wᵀ), geometric mean over layers;
# differences in nll are paired by token. PTQ_LIMIT: first tokens of the calibration
# set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

calibrate
once reference.h5 eval-ppl --tokens test.h5 "${window[@]}" model.h5 >/dev/null

say "quantizing and measuring, six times"
for order in none gar full; do
	once $order.h5 gar-order -q --order $order --group "$group" hessian.h5
	for scheme in W4A16 W4A8; do
		[ $scheme = W4A8 ] && compute=e4m3fn || compute=none
		measure $scheme-$order reference --storage uint4 --group "$group" --scale-search mse --compute $compute --order $order.h5
	done
done | each

paper() { case $1 in W4A16-full) echo 6.597 5.45;; W4A16-gar) echo 6.600 5.48;; W4A16-none) echo 7.680 18.78;;
	W4A8-full) echo 6.679 6.59;; W4A8-gar) echo 6.704 6.95;; W4A8-none) echo 32.812 80.99;; esac; }
{
	printf 'scheme\torder\toutput_error\tnll\tnll_rise\tnll_rise_se\tppl\tppl_rise_percent\tpaper_ppl\tpaper_rise_percent\n'
	for scheme in W4A16 W4A8; do for order in full gar none; do
		read -r ppl rise < <(paper $scheme-$order)
		awk -v OFS='\t' -F '\t' -v s=$scheme -v o=$order -v p="$ppl" -v r="$rise" '
			FNR == NR { e = $1 == "geometric mean" ? $2 : e; next } { v[$1] = $2 } END {
			print s, o, e, v["nll"], v["paired_delta"], v["paired_delta_se"], v["ppl"], 100 * (1 - exp(-v["paired_delta"])), p, r }' $scheme-$order.layers $scheme-$order.tsv
	done; done
} >"$part/table4.tsv"
table table4

plot table4 <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set title "Rise of the negative log-likelihood by the order of quantization\n4-bit weights, groups of 128; bars: one paired standard error" noenhanced
set ylabel "rise in nll, nats a token"; set yrange [*<0:0<*]; set key outside top center horizontal; set grid y; set border 3; set tics nomirror; set bmargin 4
set xlabel "full: all columns by importance   gar: within and between groups   none: as they stand"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 760,480 font "sans,14" background "white" } else { set terminal pngcairo size 760,480 font "sans,11" }
	set output part."table4.".t
	plot for [s in "W4A16 W4A8"] "< grep '^".s."\t' table4.tsv" using 5:6:xtic(2) title s.(s eq "W4A8" ? " (DPQ, FP8 arithmetic)" : " (GPTQ, 16-bit arithmetic)")
}
G
