#!/usr/bin/env bash
# quarot.sh [MODEL [TEST [CALIBRATION]]] -- 4-bit weights under 8-bit and 4-bit activations, with and without rotation
#
# int4 weights of one scale a row (PTQ_GROUP: in groups) by GPTQ, columns unordered, or by rounding to nearest (RTN);
# activations of every linear layer in 16 bits (W4A16), int8 (W4A8) or int4 (W4A4) under a scale of each token, and in W4A4KV4
# keys and values in uint4, a scale and a zero point for each head of a token. The model as it is,
# behind smooth-scale (SmoothQuant), behind hadamard-rotate (QuaRot), and with the channels taken out that the
# rotation makes outliers (QuaRot+RMS: MQuant's rms-suppress). Each has Hessians of its own, but the last, which computes
# what the rotated model does.
# kl is the divergence from the model in 16 bits, nll_rise the rise from its nll, kl_delta and nll_delta what they
# are above QuaRot's in the same scheme; all paired, with standard errors over windows. PTQ_LIMIT: first
# tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-channel}

calibrate
say "smoothing and rotating"
once smooth.h5 smooth-scale -q --hessian hessian.h5 model.h5
once rotated.h5 hadamard-rotate -q --keys --seed 1 model.h5
once split.h5 rms-suppress -q rotated.h5
hessians smooth rotated
[ -e split-hessian.h5 ] || ln -s rotated-hessian.h5 split-hessian.h5	# what it computes is the same

ways() { cat <<'W'
RTN	model	--compensate none
GPTQ	model	--reorder none
SmoothQuant	smooth	--reorder none
QuaRot	rotated	--reorder none
QuaRot+RMS	split	--reorder none
W
}
schemes() { printf 'W4A16|--act-mode none|\nW4A8|--act-format int8 --act-mode dynamic-token|\n'
	printf 'W4A4|--act-format int4 --act-mode dynamic-token|\nW4A4KV4|--act-format int4 --act-mode dynamic-token|uint4\n'; }
commands() {
	local scheme act kv way from options
	schemes | while IFS='|' read -r scheme act kv; do
		ways | while IFS=$'\t' read -r way from options; do
			from=$from kv=$kv measure "$scheme-$way" "$scheme-QuaRot" --storage int4 --group "$group" "$act" "$options"
		done
	done
}

say "quantizing and measuring"
commands | { grep -e '-o W[^ ]*-QuaRot.h5' || true; } | each
commands | each
{
	printf 'scheme\tway\toutput_error\tkl\tkl_se\tkl_delta\tkl_delta_se\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tppl_rise_percent\n'
	schemes | while IFS='|' read -r scheme _; do
		ways | while IFS=$'\t' read -r way _; do
			compared "$scheme-$way" "$scheme-QuaRot" | awk -v OFS='\t' -F '\t' -v s="$scheme" -v w="$way" '{
				print s, w, $1, $9, $10, $11, $12, $5, $6, $7, $8, 100 * (1 - exp(-$5)) }'
		done
	done
} >"$part/quarot.tsv"
table quarot

plot quarot <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set title "What 4-bit weights cost under rounded activations\nbars: one standard error over windows" noenhanced
set ylabel "KL from the 16-bit model, nats a token"; set logscale y; set grid y; set border 3; set tics nomirror; set key outside right top; set xtics noenhanced
array way[5] = ["RTN", "GPTQ", "SmoothQuant", "QuaRot", "QuaRot+RMS"]; array color[5] = ["#bbbbbb", "#4477aa", "#ccbb44", "#cc6677", "#228833"]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,440 font "sans,14" background "white" } else { set terminal pngcairo size 820,440 font "sans,11" }
	set output part."quarot.".t
	plot for [i=1:5] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' quarot.tsv" using 4:5:xtic(1) title way[i] lc rgb color[i]
}
G
