#!/usr/bin/env bash
# fpe2m2-figure2.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 figure 2: quality against the bits of a weight
#
# INT and E2Mx of 3 to 8 bits, rounded to nearest with a scale a row, with a
# scale for PTQ_GROUP (128) columns, and by GPTQ with a scale a row. The paper's
# figure has accuracy on GSM8K; here divergence from the unquantized model and the
# rise of the nll. Bits count scales as they are stored, in 32 bits.
set -euo pipefail
# shellcheck source=pipelines/fpe2m2-common.sh
. "$(dirname "$0")/fpe2m2-common.sh"
runs=$(for bits in 3 4 5 6 7 8; do for how in channel group gptq; do echo "int$bits-$how e2m$((bits - 3))-$how"; done; done)
# shellcheck disable=SC2086
quantized $runs

# Averages over eight tasks of Qwen2.5-7B-Instruct from the paper's table 4: figure 2 prints no numbers.
paper() { case $1 in int4-channel) echo 48.5;; int4-group) echo 69.4;; int4-gptq) echo 67.2;; e2m1-channel) echo 69.5;;
	e2m1-group) echo 71.2;; e2m1-gptq) echo 70.6;; int5-channel) echo 70.1;; int5-group) echo 71.4;; int5-gptq) echo 71.5;;
	e2m2-channel) echo 72.9;; e2m2-group) echo 72.7;; e2m2-gptq) echo 72.2;; *) echo;; esac; }
{
	printf 'family\tscales\tformat\t%b\tpaper_table4\n' "$columns"
	values=$(row unquantized-)
	printf 'unquantized\t-\tunquantized\t%s\t72.7\n' "$values"
	for r in $runs; do
		values=$(row "$r")
		[[ $r = int* ]] && family=INT || family=E2Mx
		printf '%s\t%s\t%s\t%s\t%s\n' $family "${r#*-}" "${r%-*}" "$values" "$(paper "$r")"
	done
} >"$part/figure2.tsv"
table figure2

group=$group plot figure2 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set bars 0.4; set logscale y; set format y "10^{%T}"; set xrange [2.9:*]
group = system("echo $group"); how(k) = word("channel group gptq", k); name(k) = k == 1 ? "a scale a row" : k == 2 ? "groups of ".group : "GPTQ, a scale a row"
of(f, k) = "< awk -F '\t' '$1 == \"".f."\" && $2 == \"".how(k)."\"' figure2.tsv | sort -t '\t' -k 4,4g"
array point[3] = [7, 5, 9]; color(f) = f eq "INT" ? "#4477aa" : "#cc3311"; low = 1e-5
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1100,560 font "sans,13" background "white" } else { set terminal pngcairo size 1100,560 font "sans,11" }
	set output part."figure2.".t
	set multiplot layout 1,2 title "What quantization of the weights costs, against the bits of a weight (bars: one standard error over tokens)" noenhanced
	set xlabel "bits a weight, with 32-bit scales" noenhanced; set key bottom left Left reverse samplen 3 noenhanced
	set ylabel "KL divergence from the unquantized model, nats a token" noenhanced
	plot for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:11 with linespoints dt k pt point[k] lw 2 lc rgb color(f) title f.", ".name(k), \
		for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:11:12 with yerrorbars pt point[k] lc rgb color(f) notitle
	set ylabel "rise of the nll, nats a token (where it is above 0)" noenhanced; set yrange [low:*]; set key off
	plot for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:($9 > 0 ? $9 : NaN) with linespoints dt k pt point[k] lw 2 lc rgb color(f), \
		for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:($9 > 0 ? $9 : NaN):($9 - $10 > low ? $9 - $10 : low):($9 + $10) with yerrorbars pt point[k] lc rgb color(f)
	unset multiplot; set yrange [*:*]
}
G
