#!/usr/bin/env bash
# smoothquant.sh [MODEL [TEST [CALIBRATION]]] -- rounded activations against how much of their outliers the weights take
#
# int8 weights of one scale a tensor, rounded to nearest, of the model as it is and behind smooth-scale with α from 0.25
# to 0.9; int8 activations under a scale of each token, and under static ones from the calibration tokens: from the largest
# |x| (SmoothQuant's O1 and O3), and from its percentile 99.99 (msq-calib --clip). int4 activations
# of tokens beside them, where smoothing has more to do. kl is the divergence from the model in
# 16 bits, kl_delta and nll_delta what they are above those at α = 0.5 with the same activations; with standard errors over
# windows, paired. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"

calibrate
say "smoothing"
alphas=(0.25 0.5 0.75 0.9)
[ -e none-hessian.h5 ] || ln -s hessian.h5 none-hessian.h5
[ -e none.h5 ] || ln -s model.h5 none.h5
for a in "${alphas[@]}"; do
	once "$a.h5" smooth-scale -q --alpha "$a" --hessian hessian.h5 model.h5
	hessians "$a"
done
for a in none "${alphas[@]}"; do
	once "$a-clip.h5" msq-calib -q --act-format int8 "${sets[@]}" --clip 99.99 "$a.h5"
	[ -e "$a-clip-hessian.h5" ] || ln -s "$a-hessian.h5" "$a-clip-hessian.h5"
done

inputs() { cat <<'I'
A8-token		--act-format int8 --act-mode dynamic-token
A8-static		--act-format int8 --act-mode static-tensor
A8-99.99	-clip	
A4-token		--act-format int4 --act-mode dynamic-token
I
}
commands() {
	inputs | tr '\t' '|' | while IFS='|' read -r input clip options; do
		for a in 0.5 none "${alphas[@]}"; do
			from=$a$clip measure "$input-$a" "$input-0.5" --storage int8 --group tensor --compensate none "$options"
		done
	done
}
say "quantizing and measuring"
commands | { grep -e '-o A[^ ]*-0.5.h5' || true; } | sort -u | each
commands | each
{
	printf 'activations\talpha\tkl\tkl_se\tkl_delta\tkl_delta_se\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\n'
	inputs | while IFS=$'\t' read -r input _; do
		for a in none "${alphas[@]}"; do
			compared "$input-$a" "$input-0.5" | awk -v OFS='\t' -F '\t' -v i="$input" -v a="$a" '{
				print i, a, $9, $10, $11, $12, $5, $6, $7, $8 }'
		done
	done
} >"$part/smoothquant.tsv"
table smoothquant

plot smoothquant <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set xtics scale 0 noenhanced; set logscale y; set key outside right top
set title "8-bit weights under rounded activations, by how much of the outliers the weights take\nbars: one standard error over windows" noenhanced
set ylabel "KL from the model in 16 bits, nats a token"; set xlabel "α of smooth-scale"; set xrange [-0.5:4.5]
rows(i) = "< awk -F '\\t' -v w='".input[i]."' '$1 == w' smoothquant.tsv"
array input[4] = ["A8-token", "A8-static", "A8-99.99", "A4-token"]; array color[4] = ["#4477aa", "#cc6677", "#ccbb44", "#228833"]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,440 font "sans,14" background "white" } else { set terminal pngcairo size 820,440 font "sans,11" }
	set output part."smoothquant.".t
	plot for [i=1:4] rows(i) using 0:3:4:xtic(2) with yerrorlines title input[i] noenhanced lc rgb color[i] pt 7 lw 2
}
G
