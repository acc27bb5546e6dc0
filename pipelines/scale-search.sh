#!/usr/bin/env bash
# scale-search.sh [MODEL [TEST [CALIBRATION]]] -- what a search of the groups' scales is worth
#
# Weights of 4 and 3 bits in groups of PTQ_GROUP (128) for 16-bit arithmetic, rounded to nearest and by GPTQ in
# group-aware order, under scales of the range (minmax), of least error (mse), of least error at the layer's
# output (hessian), and of ranges that were learned there (learned). error_percent: change of
# tr(E H Eᵀ)/tr(W H Wᵀ) from mse, geometric mean over layers, its standard error over layers. nll_delta,
# kl_delta: the same for nll and for KL from the unquantized model, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
: "${PTQ_TOKENS:=16320}"
begin "$name" "$@"
group=${PTQ_GROUP:-128}

runs() { for f in uint4 uint3 e2m1; do for c in none both; do for s in mse minmax hessian learned; do echo "$f $c $s"; done; done; done; }
take() {
	local order=
	[ "$2" = none ] || order='--order order.h5'
	measure "$1-$2-$3" "$1-$2-mse" --storage "$1" --group "$group" --compensate "$2" ${order:+"$order"} --scale-search "$3"
}

calibrate
once order.h5 gar-order --group "$group" hessian.h5

say "quantizing and measuring"
runs | grep mse | while read -r f c s; do take "$f" "$c" "$s"; done | each
runs | while read -r f c s; do take "$f" "$c" "$s"; done | each

{
	printf 'storage\tcompensate\tsearch\t%b\n' "$compared"
	runs | while read -r f c s; do
		values=$(compared "$f-$c-$s" "$f-$c-mse")
		printf '%s\t%s\t%s\t%s\n' "$f" "$c" "$s" "$values"
	done
} >"$part/scale-search.tsv"
table scale-search

plot scale-search <<'G'
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced; set grid x y; set key off
set bars 0.4; set yrange [-23.6:0.6]; set arrow 1 from 0, graph 0 to 0, graph 1 nohead lt -1; row(a, b, c) = a." ".b." ".c
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 980,640 font "sans,13" background "white" } else { set terminal pngcairo size 980,640 font "sans,11" }
	set output part."scale-search.".t
	set multiplot layout 1,2 title "Scales of groups: what a search changes from mse (bars: one standard error, over layers and over windows)" noenhanced
	set lmargin at screen 0.20; set rmargin at screen 0.58; set xlabel "change of the output error, %" noenhanced
	plot "scale-search.tsv" every ::1 using 5:(-$0):6:ytic(row(strcol(1), strcol(2), strcol(3))) with xerrorbars pt 7 ps 1 lw 2 lc "#4477aa"
	set lmargin at screen 0.62; set rmargin at screen 0.97; set xlabel "change of KL, 1/1000 nat" noenhanced; set format y ""
	plot "scale-search.tsv" every ::1 using (1000 * $14):(-$0):(1000 * $15) with xerrorbars pt 7 ps 1 lw 2 lc "#cc6677"
	unset multiplot; set format y; unset ytics; set ytics scale 0 noenhanced
}
G
