#!/usr/bin/env bash
# outliers.sh [MODEL [TEST [CALIBRATION]]] -- what smoothing, rotation and suppression leave of outliers
#
# kurtosis: of a layer's inputs over the calibration tokens, mean x⁴ / (mean x²)², 3 for a Gaussian. incoherence:
# of its weight, max|w| √(mn) / ‖W‖_F, of a Gaussian about √(2 ln mn). Geometric means over the layers of
# a kind, and the largest. The model as it is, behind smooth-scale (α = 0.5), behind hadamard-rotate, and with
# rms-suppress behind that, where the weight is what is left of it. check.tsv: what these filters' --check finds,
# max|Δ logit| / max|logit|. TEST is not read. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"

change() {	# change OUT COMMAND...: OUT.h5 and OUT.check, what --check found
	[ -e "$1.check" ] || {
		"${@:2}" --check -o "$1.h5" 2>"$part/$1.check" || { cat "$part/$1.check" >&2; exit 1; }
		mv -f "$part/$1.check" .
	}
}
ways() { printf 'model\tas it is\nsmooth\tSmoothQuant\nrotated\tQuaRot\nsplit\tQuaRot+RMS\n'; }

say "calibrating, smoothing and rotating"
tokens calib.h5 "$calib" 1
hessians model
change smooth smooth-scale --hessian model-hessian.h5 model.h5
change rotated hadamard-rotate --seed 1 model.h5
change split rms-suppress rotated.h5
hessians smooth rotated split
ways | while IFS=$'\t' read -r m _; do
	keep "$m.weights" tensor-stats -q "$m.h5"
	keep "$m.inputs" tensor-stats -q "$m-hessian.h5"
done

ways | while IFS=$'\t' read -r m way; do
	awk -F '\t' -v OFS='\t' -v way="$way" '
		function column(name,  i) { for (i = 1; i <= NF; i++) if ($i == name) return i }
		FNR == 1 { kurtosis = column("kurtosis"); incoherence = column("incoherence"); next }
		FNR != NR { k[$1] = $kurtosis; next }
		$1 in w || /^\// { w[$1] = $incoherence; if (!($1 in at)) { order[++n] = $1; at[$1] = n } }
		END {
			for (i = 1; i <= n; i++) {
				layer = order[i]; kind = layer; sub(/.*\//, "", kind)
				if (!(layer in k)) continue
				if (!(kind in all)) kinds[++m] = kind
				all[kind]++; lk[kind] += log(k[layer]); lw[kind] += log(w[layer])
				if (k[layer] > mk[kind]) mk[kind] = k[layer]
				if (w[layer] > mw[kind]) mw[kind] = w[layer]
			}
			for (j = 1; j <= m; j++) { kind = kinds[j]; c = all[kind]
				print way, kind, c, exp(lk[kind] / c), mk[kind], exp(lw[kind] / c), mw[kind] }
		}' "$m.weights" "$m.inputs"
done | sed '1i way\tkind\tlayers\tkurtosis\tkurtosis_max\tincoherence\tincoherence_max' >"$part/outliers.tsv"
table outliers
ways | tail -n +2 | while IFS=$'\t' read -r m way; do
	printf '%s\t%s\n' "$way" "$(sed -n 's/.*differ by at most \([^ ]*\) of the largest$/\1/p' "$m.check")"
done | sed '1i way\tlargest_difference' >"$part/check.tsv"
table check

plot outliers <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set xtics scale 0 rotate by -25 noenhanced; set bmargin 5; set key samplen 1
array way[4] = ["as it is", "SmoothQuant", "QuaRot", "QuaRot+RMS"]; array color[4] = ["#4477aa", "#ccbb44", "#cc6677", "#228833"]
rows(i) = "< awk -F '\\t' -v w='".way[i]."' '$1 == w' outliers.tsv"; at(n, i) = n + 0.14 * (i - 2.5)
set xrange [-0.5:*]; set offsets 0, 0.5, 0, 0
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 980,460 font "sans,13" background "white" } else { set terminal pngcairo size 980,460 font "sans,11" }
	set output part."outliers.".t
	set multiplot layout 1,2 title "Outliers of each kind of layer: geometric mean over layers (bars: up to the largest)" noenhanced
	set title "inputs: kurtosis, 3 for a Gaussian" noenhanced; set logscale y; set yrange [1:*]; set key top right
	plot for [i=1:4] rows(i) using (at($0, i)):4:4:5 with yerrorbars title way[i] lc rgb color[i] pt 7 lw 2, rows(1) using 0:4:xtic(2) with points ps 0 notitle
	set title "weights: incoherence" noenhanced; unset logscale y; set yrange [0:*]; set key off
	plot for [i=1:4] rows(i) using (at($0, i)):6:6:7 with yerrorbars lc rgb color[i] pt 7 lw 2, rows(1) using 0:6:xtic(2) with points ps 0
	unset multiplot
}
G
