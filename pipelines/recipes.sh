#!/usr/bin/env bash
# recipes.sh [MODEL [TEST [CALIBRATION]]] -- DPQ as printed, as released, and ours: what each choice costs
#
# 4-bit weights in groups of PTQ_GROUP (32) for FP8 arithmetic with static
# activation scales, by the recipe `late`; by the paper to the letter, which
# rounds weights to FP8 before it codes them; by the released code (`inc`, on
# Gaudi 2's FP8 as there, and on E4M3FN); and by `late` with one choice at a time changed.
# error_percent: change of tr(E H Eᵀ)/tr(W H Wᵀ) from late, geometric mean over
# layers, its standard error over layers. nll_delta, kl_delta: the same for nll and
# for KL from the unquantized model, paired, with standard errors over windows. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
: "${PTQ_TOKENS:=16320}"
begin "$name" "$@"
group=${PTQ_GROUP:-32}

choices() { cat <<'C'
late	late	--compute e4m3fn
paper	paper: rounds to FP8 first	--compute e4m3fn --recipe paper
inc-240	inc: released code, FP8 to 240	--compute e4m3ieee --recipe inc
inc-448	inc, FP8 to 448	--compute e4m3fn --recipe inc
block	parameters by blocks of 128	--compute e4m3fn --group-view block
original	parameters uncompensated	--compute e4m3fn --group-view original
minmax	no scale search	--compute e4m3fn --scale-search minmax
ieee	FP8 to 240	--compute e4m3ieee
top	top 14/15, saturating there	--compute e4m3fn --top 416 --saturate 416
real	FP8 scales of any value	--compute e4m3fn --pow2-scale no
channel	an FP8 scale a channel	--compute e4m3fn --scale8 channel
dynamic	activation scales by token	--compute e4m3fn --act-mode dynamic-token
exact	activations not rounded	--compute e4m3fn --act-mode none
C
}
take() { measure "$1" late --storage uint4 --group "$group" --order order.h5 "$2"; }

calibrate
once order.h5 gar-order --group "$group" hessian.h5

say "quantizing and measuring"
take late "--compute e4m3fn" | each
choices | while IFS=$'\t' read -r run _ options; do take "$run" "$options"; done | each

{
	printf 'run\tchoice\t%b\n' "$compared"
	choices | while IFS=$'\t' read -r run choice _; do
		values=$(compared "$run" late)
		printf '%s\t%s\t%s\n' "$run" "$choice" "$values"
	done
} >"$part/recipes.tsv"
table recipes

plot recipes <<'G'
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced; set grid x y; set key off
set bars 0.4; set yrange [-12.6:0.6]; set arrow 1 from 0, graph 0 to 0, graph 1 nohead lt -1
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 980,520 font "sans,13" background "white" } else { set terminal pngcairo size 980,520 font "sans,11" }
	set output part."recipes.".t
	set multiplot layout 1,2 title "Dual precision quantization: what a choice changes from the recipe late (bars: one standard error, over layers and over windows)" noenhanced
	set lmargin at screen 0.26; set rmargin at screen 0.60; set xlabel "change of the output error, %" noenhanced
	plot "recipes.tsv" every ::1 using 4:(-$0):5:ytic(strcol(2)) with xerrorbars pt 7 ps 1.2 lw 2 lc "#4477aa"
	set lmargin at screen 0.66; set rmargin at screen 0.97; set xlabel "change of KL from the unquantized model, 1/1000 nat" noenhanced; set format y ""
	plot "recipes.tsv" every ::1 using (1000 * $13):(-$0):(1000 * $14) with xerrorbars pt 7 ps 1.2 lw 2 lc "#cc6677"
	unset multiplot; set format y; unset ytics; set ytics scale 0 noenhanced
}
G
