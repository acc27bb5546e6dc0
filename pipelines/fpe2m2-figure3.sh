#!/usr/bin/env bash
# fpe2m2-figure3.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 figure 3: which split of exponent and mantissa suits which weights
#
# Every ExMy of 4, 5 and 6 bits (E0My has the values of E1M(y-1)) and, dashed, NF:
# the exact mean squared error on N(0, sigma²) truncated to [-1, 1], grid and
# weights scaled to the same range; where E2Mx is the best of them, and where each
# leads by most. Dots: layers of MODEL, each at the mean sigma of its channels.
# Shaded: nine tenths of MODEL's channels; dotted: the paper's 0.12 to 0.28.
# TEST and CALIBRATION are not read; they only select the results folder.
set -euo pipefail
# shellcheck source=pipelines/fpe2m2-common.sh
. "$(dirname "$0")/fpe2m2-common.sh"
exmy=e1m2,e2m1,e3m0,e1m3,e2m2,e3m1,e4m0,e1m4,e2m3,e3m2,e4m1,e5m0

say "figure 3: curves, minima, crossovers, layers"
keep curve.tsv exmy-sweep --tsv --table curve --formats $exmy,nf4,nf5,nf6 --sigma 0.02:0.5:0.005
keep best.tsv exmy-sweep --tsv --table best --formats $exmy
keep crossover.tsv exmy-sweep --tsv --table crossover --formats $exmy,nf4,nf5,nf6
keep layer.tsv exmy-sweep --tsv --table layer model.h5
keep error.tsv exmy-sweep --tsv --table error --formats $exmy model.h5

# Column NAME of the row whose first field is KEY.
cell() { awk -F '\t' -v name="$2" -v key="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } $1 == key { print $c }' "$1"; }
low=$(cell layer.tsv twentieth all) high=$(cell layer.tsv nineteen_twentieths all)
{
	printf 'bits\tformat\tbest_from\tbest_to\tleads_most_at\tlead\tpaper_optimum\tpaper_from\tpaper_to\tmodel_5_percent\tmodel_95_percent\n'
	for format in e2m1 e2m2 e2m3; do
		awk -v OFS='\t' -F '\t' -v f=$format -v low="$low" -v high="$high" '
			FNR == NR { if ($1 == f) { bits = $2; at = $3; lead = $5 } next }
			$1 ~ /^nf/ || $2 ~ /^nf/ || ($1 == f && $2 == f) { next }
			$2 == f && $1 ~ /^e[3-9]/ && $4 > from { from = $4 }
			$1 == f && $2 ~ /^e1/ && $4 > to { to = $4 }
			END { print bits, f, from, to, at, lead, 0.25, 0.12, 0.28, low, high }' best.tsv crossover.tsv
	done
} >"$part/figure3.tsv"
table figure3

low=$low high=$high plot figure3 <<'G'
set datafile separator "\t"; set logscale y; set format y "10^{%T}"; set grid; set border 3; set tics nomirror; set xrange [0:0.5]; set xtics 0.1; set yrange [1e-6:1e-2]; set bmargin 8; set lmargin 9; set rmargin 2
array title[3] = ["4 bits", "5 bits", "6 bits"]; array formats[3] = ["e1m2 e2m1 e3m0", "e1m3 e2m2 e3m1 e4m0", "e1m4 e2m3 e3m2 e4m1 e5m0"]
array color[5] = ["#4477aa", "#cc3311", "#228833", "#ee8866", "#aa3377"]
also(f) = f[2:2] eq "1" ? " = int".(f[4:4] + 2) : ""
low = real(system("echo $low")); high = real(system("echo $high"))
set object 1 rectangle from low, graph 0 to high, graph 1 behind fillcolor rgb "#e4e4e4" fillstyle solid noborder
set arrow 1 from 0.12, graph 0 to 0.12, graph 1 nohead dashtype 3 lw 2 lc "#666666"; set arrow 2 from 0.28, graph 0 to 0.28, graph 1 nohead dashtype 3 lw 2 lc "#666666"
set label 1 "model" at (low + high) / 2, graph 0.97 center tc "#444444"; set label 2 "paper" at 0.2, graph 0.97 center tc "#444444"
set xlabel "σ of the weights of a channel, largest |w| = 1" noenhanced; set key outside bottom center horizontal maxrows 3 samplen 2 noenhanced
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1180,540 font "sans,13" background "white" } else { set terminal pngcairo size 1180,540 font "sans,11" }
	set output part."figure3.".t
	set multiplot layout 1,3 title "Mean squared error of number formats on Gaussian weights, exact; dots: the layers of the model" noenhanced
	do for [p=1:3] {
		set title title[p]; set ylabel p == 1 ? "mean squared error, in (largest |w|)²" : "" noenhanced
		plot for [i=1:words(formats[p])] "< awk '$1 == \"".word(formats[p], i)."\"' curve.tsv" using 3:4 with lines lw 2 lc rgb color[i] title word(formats[p], i).also(word(formats[p], i)), \
			"< awk '$1 == \"nf".(p + 3)."\"' curve.tsv" using 3:4 with lines lw 2 dt 2 lc "#888888" title "nf".(p + 3), \
			for [i=1:words(formats[p])] "< awk '$2 == \"".word(formats[p], i)."\"' error.tsv" using 3:4 with points pt 7 ps 0.4 lc rgb color[i] notitle
	}
	unset multiplot
}
G
say "what it is drawn from: $work/curve.tsv, best.tsv, crossover.tsv, layer.tsv, error.tsv"
