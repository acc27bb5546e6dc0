#!/usr/bin/env bash
# fbquant-ranks.sh [MODEL [TEST [CALIBRATION]]] -- what a branch's rank is worth: loss and divergence against bits
#
# Weights of 3 bits (uint3) in groups of 128 with branches of rank 1 to 32, stored in f16: a plain SVD of the error,
# EoRA, and FBQuant; FBQuant's of the highest rank also in int8. GPTQ without a branch in groups of 128, 64 and 32, and with 4 bits,
# for what else the bits could buy. PTQ_RANKS: other ranks, between blanks. kl is the divergence from the unquantized model, with its standard error over
# windows; output_error the geometric mean of the layers' tr(E H E^T)/tr(W H W^T).
set -euo pipefail
# shellcheck source=pipelines/fbquant-common.sh
. "$(dirname "$0")/fbquant-common.sh"

ranks=${PTQ_RANKS:-1 2 4 8 16 32}
last=${ranks##* }
calibrate
ways() {
	local r m
	for r in $ranks; do
		for m in lowrank eora fbquant; do printf '%s\t%s\tfbq-run --method %s --rank %s --storage uint3 --group %s --hessian hessian.h5 model.h5\n' $m $r $m $r "$group"; done
	done
	printf 'fbquant-int8\t%s\tfbq-run --rank %s --branch-format int8 --storage uint3 --group %s --hessian hessian.h5 model.h5\n' "$last" "$last" "$group"
	for m in 3-128 3-64 3-32 4-128; do printf 'gptq-%s\t0\tdpq-run --reorder none --storage uint%s --group %s --hessian hessian.h5 model.h5\n' $m ${m%-*} ${m#*-}; done
}

say "quantizing and measuring"
ways | while IFS=$'\t' read -r way rank command; do run "r$rank-$way" "r$last-fbquant" "$command"; done | made
{
	printf 'way\trank\t%b\n' "$columns"
	ways | while IFS=$'\t' read -r way rank _; do printf '%s\t%s\t%s\n' "$way" "$rank" "$(row "r$rank-$way")"; done
} >"$part/ranks.tsv"
table ranks

plot ranks <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key top right
set xlabel "bits a weight, branch included"; set logscale y
array way[3] = ["lowrank", "eora", "fbquant"]; array label[3] = ["SVD of the error", "EoRA", "FBQuant"]; array color[3] = ["#bbbbbb", "#4477aa", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1100,460 font "sans,14" background "white" } else { set terminal pngcairo size 1100,460 font "sans,11" }
	set output part."ranks.".t
	set multiplot layout 1,2 title "Weights of 3 bits in groups of 128 with branches of rank 1, 2, 4, ... 32" noenhanced
	do for [c in "4 8"] {
		set ylabel (c eq "4" ? "relative output error of a layer" : "KL from the unquantized model, nats a token")
		plot for [i=1:3] "< awk -F '\\t' -v w='".way[i]."' '$1 == w' ranks.tsv" using 3:int(c) with linespoints pt 7 lw 2 lc rgb color[i] title label[i], \
			"< grep ^fbquant-int8 ranks.tsv" using 3:int(c) with points pt 8 ps 1.3 lc rgb "#cc6677" title "FBQuant, the highest rank in int8", \
			"< grep ^gptq ranks.tsv" using 3:int(c):(substr(strcol(1), 6, 12)) with labels point pt 5 lc rgb "#228833" left offset 0.6,0.3 title "GPTQ, bits-group"
	}
	unset multiplot
}
G
