#!/usr/bin/env bash
# mquant-table8.sh [MODEL [TEST [CALIBRATION]]] -- rotation with and without suppression of what it makes outliers
#
# MQuant table 8 on a language model: QuaRot, and QuaRot with rotation magnitude suppression (rms-suppress), weights in
# int4 by GPTQ with a scale a row (PTQ_GROUP: in groups), activations in int4 under 0.9 of each token's largest, keys and
# values in uint4 with a scale for each head of a token (W4A4KV4, as QuaRot has it), over PTQ_RUNS (3) rotations
# of other signs, each with its Hessians: what suppression changes is paired by window within a rotation, and its error is
# over rotations, too. ppl is perplexity, kl the divergence from the model in 16 bits. PTQ_LIMIT: first tokens of the
# calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-channel} runs=${PTQ_RUNS:-3}

calibrate
say "rotating"
for ((r = 1; r <= runs; r++)); do
	once quarot-$r.h5 hadamard-rotate -q --keys --seed $r model.h5
	once rms-$r.h5 rms-suppress -q quarot-$r.h5
	hessians quarot-$r	# of the other, too: what it computes is the same
	[ -e rms-$r-hessian.h5 ] || ln -s quarot-$r-hessian.h5 rms-$r-hessian.h5
done
way() { from=$2 kv=uint4 measure "$1" "QuaRot-$r" --storage int4 --group "$group" --reorder none --act-format int4 --act-mode dynamic-token --act-clip 0.9; }

say "quantizing and measuring"
for ((r = 1; r <= runs; r++)); do way QuaRot-$r quarot-$r; done | each
for ((r = 1; r <= runs; r++)); do way RMS-$r rms-$r; done | each
for ((r = 1; r <= runs; r++)); do for w in QuaRot RMS; do
	compared $w-$r QuaRot-$r | awk -v OFS='\t' -F '\t' -v r=$r -v w=$w '{ print w, r, exp($4 - $5), exp($4), $5, $6, $9, $10, $7, $8, $11, $12 }'
done; done | awk -v OFS='\t' -F '\t' '
	BEGIN { print "way", "rotation", "ppl_16", "ppl", "nll_rise", "nll_rise_se", "kl", "kl_se", "nll_delta", "nll_delta_se", "kl_delta", "kl_delta_se", "paper_7b", "paper_13b", "paper_70b" }
	function paper() { return $1 == "RMS" ? "6.04" OFS "5.32" OFS "3.67" : "6.10" OFS "5.40" OFS "3.79" }
	function se(sum, squares) { return n > 1 ? sqrt((squares / n - sum * sum / n / n) / (n - 1)) : 0 }
	{ print $0, paper() } $1 == "RMS" { n++; nll += $9; nll2 += $9 * $9; kl += $11; kl2 += $11 * $11 }
	END { print "RMS", "all", "", "", "", "", "", "", nll / n, se(nll, nll2), kl / n, se(kl, kl2), "", "", "" }' >"$part/table8.tsv"
table table8

plot table8 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set xtics scale 0 noenhanced; set key outside bottom center horizontal; set bars 0.6
set title "Rotation with and without suppression, W4A4KV4\nbars: one standard error over windows, paired; 'all': over rotations" noenhanced
set ylabel "what suppression changes, 1/1000 nat a token"; set xzeroaxis lt -1; set xrange [-0.5:*]; set offsets 0, 0.5, 0, 0; set xlabel "rotation"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 640,440 font "sans,13" background "white" } else { set terminal pngcairo size 640,440 font "sans,11" }
	set output part."table8.".t
	plot "< awk -F '\\t' '$1 == \"RMS\"' table8.tsv" using ($0 - 0.05):(1000 * $11):(1000 * $12):xtic(2) with yerrorbars title "KL from 16 bits" pt 7 lw 2 lc "#4477aa", \
		"" using ($0 + 0.05):(1000 * $9):(1000 * $10) with yerrorbars title "nll" pt 5 lw 2 lc "#cc6677"
}
G
say "the paper's: perplexity of WikiText-2, Llama 2, whose 16 bits have 5.47, 4.88, 3.32"
