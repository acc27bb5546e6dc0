#!/usr/bin/env bash
# mquant-figure1b.sh [MODEL [QUESTIONS [CALIBRATION]]] -- how large visual and text tokens are in the language model
#
# Of the inputs of every linear layer of the language model, over the calibration tokens: the median |x|, the
# percentiles 99 and 99.99, and the largest, of visual and of text tokens (what msq-calib --act-mode static-modality
# would take for a range), and the ratio of the two largest. The paper (Qwen-VL) has visual tokens from -20 to 10
# and few text tokens beyond 0.5. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"

percentiles=(50 99 99.99)
ranges() {
	msq-calib --act-format int8 --act-mode static-modality --layers '/model/layers/*' --tokens "$1-calib.h5" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"} \
		--clip "$2" "$1.h5" -o "$part/discard" 2>"$part/said" || { cat "$part/said" >&2; return 1; }
	cat "$part/said"
}
say "measuring"
for m in "${models[@]}"; do for p in "${percentiles[@]}"; do keep "$m-range-$p.tsv" ranges "$m" "$p"; done; done

# Layers that read the same, once: by their first, of queries, keys and values, and of gate and up.
{
	printf 'model\tblock\tinput\tmodality\tp50\tp99\tp99.99\tlargest\tlargest_visual_over_text\n'
	for m in "${models[@]}"; do
		awk -v OFS='\t' -v m="$m" -F '[\t ]' '
			BEGIN { split("q_proj o_proj gate_proj down_proj", layer) }
			!/^\/model\// { next }
			{ split($1, part, "/"); b = part[4]; l = part[6]; if (b >= blocks) blocks = b + 1; largest[b, l, $2] = $3; clip[b, l, $2, FILENAME] = $4 }
			END { for (b = 0; b < blocks; b++) for (i = 1; i <= 4; i++) for (k = 1; k <= 2; k++) {
				l = layer[i]; w = k == 1 ? "visual" : "text"
				print m, b, l, w, clip[b, l, w, ARGV[1]], clip[b, l, w, ARGV[2]], clip[b, l, w, ARGV[3]], largest[b, l, w],
					k == 1 ? largest[b, l, "visual"] / largest[b, l, "text"] : "" } }' \
			"$m-range-50.tsv" "$m-range-99.tsv" "$m-range-99.99.tsv"
	done
} >"$part/figure1b.tsv"
table figure1b

models=${models[*]} plot figure1b <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set logscale y; set xtics scale 0 rotate by -60 noenhanced; set bars 0.6
models = system("echo $models"); n = words(models)
about(m) = m eq "pre" ? "pre-norm encoder" : m eq "post" ? "post-norm encoder" : m
of(m, w) = "< awk -F '\\t' '$1 == \"".m."\" && $4 == \"".w."\"' figure1b.tsv"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 620 * n,480 font "sans,13" background "white" } else { set terminal pngcairo size 620 * n,480 font "sans,11" }
	set output part."figure1b.".t
	set multiplot layout 1,n title "Inputs of the language model's layers, visual and text tokens\nbox: median to percentile 99, whisker: percentile 99.99, point: largest" noenhanced
	set style fill solid 0.5; set boxwidth 0.3; set ylabel "|x|"; set key top left Left reverse horizontal; set xrange [-0.7:15.7]; set yrange [0.05:200]
	do for [m in models] {
		set title about(m) noenhanced
		plot of(m, "visual") using ($0 - 0.18):5:5:7:6:xtic(stringcolumn(2)." ".stringcolumn(3)) with candlesticks notitle lc rgb "#4477aa", \
			"" using ($0 - 0.18):8 with points pt 7 ps 0.9 lc rgb "#4477aa" title "visual", \
			of(m, "text") using ($0 + 0.18):5:5:7:6 with candlesticks notitle lc rgb "#cc6677", \
			"" using ($0 + 0.18):8 with points pt 7 ps 0.9 lc rgb "#cc6677" title "text"
		unset ylabel
	}
	unset multiplot
}
G
