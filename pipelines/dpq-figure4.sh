#!/usr/bin/env bash
# dpq-figure4.sh -- DPQ figure 4: projected speed-up of W4A8 and W8A8 over W4A16
#
# Llama 2 70B and Qwen 2 72B on one Gaudi 2, Gaudi 3, H100 or H200, by their shapes
# alone: `roofline` says what is taken into account. Prompts of 128 to 32768 tokens,
# 128, 512 or 2048 generated. The table has all four accelerators, the plot the
# paper's two. The paper prints no numbers beside its figure but the largest
# speed-ups: 3 over W4A16, 1.4 over W8A8.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
command -v roofline >/dev/null || fail 1 "roofline: is not installed"
enter "$name" "$(sha256sum <"$(type -P roofline)")"

roofline --models llama-2-70b,qwen2-72b --hardware gaudi2,gaudi3,h100,h200 --formats W4A16,W8A8,W4A8 \
	--prompt 128,256,512,1024,2048,4096,8192,16384,32768 --generate 128,512,2048 >"$part/figure4.tsv"
table figure4

{
	printf 'model\thardware\tover_W4A16\tprompt\tgenerate\tover_W8A8\tprompt\tgenerate\n'
	awk -F '\t' -v OFS='\t' 'NR > 1 { k = $1 OFS $2; if (!seen[k]++) keys[++n] = k
		if ($3 == "W8A8") w8 = $11
		if ($3 == "W4A8") {
			if ($12 > a[k]) { a[k] = $12; at[k] = $4 OFS $5 }
			if (w8 > 0 && $11 / w8 > b[k]) { b[k] = $11 / w8; bt[k] = $4 OFS $5 }
		} }
		END { for (i = 1; i <= n; i++) printf "%s\t%.2f\t%s\t%.2f\t%s\n", keys[i], a[keys[i]], at[keys[i]], b[keys[i]], bt[keys[i]] }' figure4.tsv
} >"$part/largest.tsv"
say "the largest speed-ups of W4A8"
table largest

plot figure4 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set logscale x 2; set xrange [110:38000]; set yrange [0:3.1]
set xtics ("128" 128, "512" 512, "2k" 2048, "8k" 8192, "32k" 32768)
model(i) = word("llama-2-70b qwen2-72b", i); on(k) = word("gaudi2 gaudi3", k); format(f) = word("W8A8 W4A8", f); color(f) = f == 1 ? "#4477aa" : "#cc3311"
of(i, k, f, m) = "< awk -F '\t' '$1 == \"".model(i)."\" && $2 == \"".on(k)."\" && $3 == \"".format(f)."\" && $5 == ".m."' figure4.tsv"
label(i, k) = (i == 1 ? "Llama 2 70B" : "Qwen 2 72B")." on ".(k == 1 ? "Gaudi 2" : "Gaudi 3")
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1060,760 font "sans,13" background "white" } else { set terminal pngcairo size 1060,760 font "sans,11" }
	set output part."figure4.".t
	set multiplot layout 2,2 title "Projected speed-up over W4A16, and the paper's largest (dotted: 3 over W4A16)\n" noenhanced
	do for [i=1:2] { do for [k=1:2] {
		set title label(i, k) noenhanced; if (i == 2) { set xlabel "prompt, tokens" } else { unset xlabel }
		if (k == 1) { set ylabel "times the rate of W4A16" } else { unset ylabel }
		if (i == 1 && k == 2) { set key top left Left reverse samplen 3 maxrows 4 width -2 } else { set key off }
		plot 3 dt 3 lc "#777777" notitle, 1 lc "#228833" lw 2 title "W4A16", \
			for [f=1:2] for [m=1:3] of(i, k, f, word("128 512 2048", m)) using 4:12 with linespoints dt m pt 4 + 2 * f + (f == 2) ps 0.7 lw 2 lc rgb color(f) \
			title format(f).", ".word("128 512 2048", m)." generated"
	} }
	unset multiplot
}
G
say "the paper: up to 3 times W4A16, up to 1.4 times W8A8"
