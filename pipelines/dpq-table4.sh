#!/usr/bin/env bash
# dpq-table4.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 4: what the order of quantization is worth
#
# 4-bit weights in groups of PTQ_GROUP (128) with scales of least squared error, quantized
# by GPTQ (W4A16) and by DPQ for FP8 arithmetic with static activation scales
# (W4A8), in the columns' own order, by group-aware reordering, and by full
# reordering, which carries its order to inference. One calibration set, one
# test set; output_error is tr(E H Eᵀ)/tr(W H Wᵀ), geometric mean over layers;
# kl the divergence from the unquantized model, nll_rise the rise from its nll,
# kl_delta and nll_delta what they are above those of group-aware reordering: all
# paired, with standard errors over windows. PTQ_LIMIT: first tokens of the
# calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

calibrate

say "quantizing and measuring, six times"
take() {	# take ORDER [GROUP]: for both kinds of arithmetic
	once "$1.h5" gar-order -q --order "$1" ${2:+--group "$2"} hessian.h5
	for scheme in W4A16 W4A8; do
		[ $scheme = W4A8 ] && compute=e4m3fn || compute=none
		measure "$scheme-$1" $scheme-gar --storage uint4 --group "$group" --scale-search mse --compute $compute --order "$1.h5"
	done
}
take gar "$group" | each
for order in none full; do take $order; done | each

paper() { case $1 in W4A16-full) echo 6.597 5.45;; W4A16-gar) echo 6.600 5.48;; W4A16-none) echo 7.680 18.78;;
	W4A8-full) echo 6.679 6.59;; W4A8-gar) echo 6.704 6.95;; W4A8-none) echo 32.812 80.99;; esac; }
{
	printf 'scheme\torder\toutput_error\tkl\tkl_se\tkl_delta\tkl_delta_se\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tppl_rise_percent\tpaper_ppl\tpaper_rise_percent\n'
	for scheme in W4A16 W4A8; do for order in full gar none; do
		read -r ppl rise < <(paper $scheme-$order)
		compared $scheme-$order $scheme-gar | awk -v OFS='\t' -F '\t' -v s=$scheme -v o=$order -v p="$ppl" -v r="$rise" '{
			print s, o, $1, $9, $10, $11, $12, $5, $6, $7, $8, 100 * (1 - exp(-$5)), p, r }'
	done; done
} >"$part/table4.tsv"
table table4

group=$group plot table4 <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set datafile separator "\t"; set grid y; set border 3; set tics nomirror; set yrange [*<0:0<*]; set offsets 0, 0, graph 0.2, 0; group = system("echo $group")
about(s) = s.(s eq "W4A8" ? " (DPQ, FP8 arithmetic)" : " (GPTQ, 16-bit arithmetic)"); of(s) = "< grep '^".s."\t' table4.tsv"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 980,480 font "sans,13" background "white" } else { set terminal pngcairo size 980,480 font "sans,11" }
	set output part."table4.".t
	set multiplot layout 1,2 title "4-bit weights, groups of ".group.", by the order of quantization (bars: one standard error over windows)\nfull: all columns by importance   gar: within and between groups   none: as they stand" noenhanced
	set key top left Left reverse; set ylabel "KL from the unquantized model, nats a token"
	plot for [s in "W4A16 W4A8"] of(s) using 4:5:xtic(2) title about(s)
	set key off; set ylabel "rise of the nll, nats a token"
	plot for [s in "W4A16 W4A8"] of(s) using 8:9:xtic(2) title about(s)
	unset multiplot
}
G
