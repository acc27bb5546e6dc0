#!/usr/bin/env bash
# fbquant-overfit.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant section 3.1: a branch that is fitted to few tokens
#
# Weights of 3 bits (uint3) in groups of 128 with branches of rank in/32 in f16, calibrated on the first 256, 1024, 4096,
# 16384 tokens of the calibration set: a plain SVD of the error, which knows no tokens, EoRA, CALDERA, FBQuant.
# calibration_error and heldout_error: the geometric mean of the layers' tr(E H E^T)/tr(W H W^T) under the Hessians of
# these tokens and of the test set. The paper holds that branches fitted without feedback have a small loss on what they
# were fitted to and a large one elsewhere, and that feedback, whose weights stay within half a cell of W, does not.
set -euo pipefail
# shellcheck source=pipelines/fbquant-common.sh
. "$(dirname "$0")/fbquant-common.sh"

calibrate
once heldout.h5 hessian-accum --tokens test.h5 "${window[@]}" model.h5
counts='256 1024 4096 16384'
for n in $counts; do once "first$n.h5" hessian-accum --tokens calib.h5 "${window[@]}" --limit "$n" model.h5; done
ways() { for n in $counts; do for m in lowrank eora caldera fbquant; do printf '%s\t%s\n' "$n" $m; done; done; }
commands() {	# run's, with the error under the held-out Hessians beside it
	local n m to
	ways | while IFS=$'\t' read -r n m; do
		to=$part/few$n-$m
		[ -e "few$n-$m.tsv" ] || echo "fbq-run --method $m --storage uint3 --group $group --hessian first$n.h5 model.h5 -o $to.h5 2>$to.layers &&" \
			"tensor-diff -q --hessian heldout.h5 --reference model.h5 $to.h5 >$to.diff && tensor-stats -q $to.h5 >$to.stats &&" \
			"eval-ppl --tokens test.h5 ${window[*]} --reference model.h5 $to.h5 >$to.tsv && rm $to.h5 && mv -f $to.layers $to.diff $to.stats $to.tsv . ||" \
			"{ grep ^fbq-run: $to.layers >&2; exit 1; }"
	done
}

say "quantizing and measuring"
commands | each
{
	printf 'tokens\tway\tcalibration_error\theldout_error\t%b\n' "$columns"
	ways | while IFS=$'\t' read -r n m; do
		numbers=$(row "few$n-$m")
		printf '%s\t%s\t%s\t%s\t%s\n' "$n" "$m" "$(cut -f 2 <<<"$numbers")" "$(awk -F '\t' '$1 == "all" { print $7 }' "few$n-$m.diff")" "$numbers"
	done
} >"$part/overfit.tsv"
table overfit

plot overfit <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key outside right top
set xlabel "tokens of the calibration"; set logscale x 2; set logscale y
array way[4] = ["lowrank", "eora", "caldera", "fbquant"]; array label[4] = ["SVD of the error", "EoRA", "CALDERA", "FBQuant"]; array color[4] = ["#bbbbbb", "#4477aa", "#228833", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 900,460 font "sans,14" background "white" } else { set terminal pngcairo size 900,460 font "sans,11" }
	set output part."overfit.".t
	set title "Branches beside weights of 3 bits: error where they were fitted (dashed) and on the test set" noenhanced
	set ylabel "relative output error of a layer"
	plot for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' overfit.tsv" using 1:4 with linespoints pt 7 lw 2 lc rgb color[i] title label[i], \
		for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' overfit.tsv" using 1:3 with linespoints pt 6 dt 2 lc rgb color[i] notitle
}
G
