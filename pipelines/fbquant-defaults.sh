#!/usr/bin/env bash
# fbquant-defaults.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant's learning rate, steps and start: the study of fbq-run's defaults
#
# Layers of the second block alone, in 3 bits (uint3) and 4 (uint4), groups of 128, branches of rank in/32. Learning rates at
# 100, 200, 400 and 800 steps from the usual start, and starts A ~ N(0, s^2) at the usual rate and 400 steps.
# calibration_error and heldout_error: the geometric mean of the layers' tr(E H E^T)/tr(W H W^T) under the Hessians that
# the branch was fitted to and those of the test set. The defaults are the row whose error is least, or the fewest steps
# within 2 % of it.
set -euo pipefail
# shellcheck source=pipelines/fbquant-common.sh
. "$(dirname "$0")/fbquant-common.sh"

calibrate
once heldout.h5 hessian-accum --tokens test.h5 "${window[@]}" model.h5
ways() {
	local b steps lr sigma
	for b in 3 4; do
		for steps in 100 200 400 800; do for lr in 0.0005 0.001 0.002 0.005 0.01 0.03; do printf '%s\t%s\t%s\tusual\n' $b $steps $lr; done; done
		for sigma in 0.003 0.01 0.03 0.1 0.3; do printf '%s\t400\t0.002\t%s\n' $b $sigma; done
	done
}
commands() {
	local b steps lr sigma to
	ways | while IFS=$'\t' read -r b steps lr sigma; do
		to=$part/default-$b-$steps-$lr-$sigma
		[ -e "${to##*/}.diff" ] || echo "fbq-run --layers '*/1/*' --storage uint$b --group $group --steps $steps --lr $lr $([ "$sigma" = usual ] || echo "--init-sigma $sigma")" \
			"--hessian hessian.h5 model.h5 -o $to.h5 2>$to.layers && tensor-diff -q --layers '*/1/*' --hessian heldout.h5 --reference model.h5 $to.h5 >$to.diff &&" \
			"rm $to.h5 && mv -f $to.layers $to.diff . || { grep ^fbq-run: $to.layers >&2; exit 1; }"
	done
}

say "quantizing"
commands | each
{
	printf 'bits\tsteps\tlr\tsigma\tcalibration_error\theldout_error\n'
	ways | while IFS=$'\t' read -r b steps lr sigma; do
		run=default-$b-$steps-$lr-$sigma
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$b" "$steps" "$lr" "$sigma" "$(awk -F '\t' '$1 == "all" { print $2 }' "$run.layers")" \
			"$(awk -F '\t' '$1 == "all" { print $7 }' "$run.diff")"
	done
} >"$part/defaults.tsv"
table defaults

plot defaults <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key outside right top; set logscale xy
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1100,440 font "sans,14" background "white" } else { set terminal pngcairo size 1100,440 font "sans,11" }
	set output part."defaults.".t
	set multiplot layout 1,2 title "FBQuant's loss on its calibration (dashed) and held out" noenhanced
	do for [b in "3 4"] {
		set title b." bits"; set xlabel "learning rate"; set ylabel "relative output error of a layer"
		plot for [i=1:4] "< awk -F '\\t' -v b=".b." -v s=".word("100 200 400 800", i)." '$1 == b && $2 == s && $4 == \"usual\"' defaults.tsv" using 3:6 with linespoints pt 7 lw 2 lc i title word("100 200 400 800", i)." steps", \
			for [i=1:4] "< awk -F '\\t' -v b=".b." -v s=".word("100 200 400 800", i)." '$1 == b && $2 == s && $4 == \"usual\"' defaults.tsv" using 3:5 with linespoints pt 6 dt 2 lc i notitle
	}
	unset multiplot
}
G
