#!/usr/bin/env bash
# fbquant-figure7.sh -- FBQuant figure 7: tokens a second of Llama-2-7B's linear layers, one row of x
#
# fp16, and 4 or 3 bits in groups of 128: without a branch, with one of rank 128 in f16 as three products (plain),
# and as one (fused). The seven linear layers of each of the 32 blocks, weights from memory; no attention, norms
# or head, so that these are rates of linear layers only. Times come from the measuring program of the source
# tree, build/tests/bench/branches (`make bench` builds it), or from PTQ_BRANCHES. PTQ_RUNS: measurements of
# each (15); PTQ_THREADS: threads (all).
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
branches=$(realpath -m -- "${PTQ_BRANCHES:-$here/../build/tests/bench/branches}")
[ -f "$branches" ] && [ -x "$branches" ] || fail 1 "$branches: is not there: make bench builds it, or PTQ_BRANCHES names it"
# Times are those of a machine, and of as many processors as it grants.
enter "$name" "$(uname -n; nproc; echo "${PTQ_THREADS:-}"; sha256sum <"$branches")"

say "measuring (a minute)"
keep model.tsv "$branches" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-15}" model
# a block: four layers of 4096 × 4096, two of 11008 × 4096, one of 4096 × 11008
awk -F '\t' -v OFS='\t' '
	NR > 1 { block[$5, $6] += $7 * ($1 == $2 ? 4 : $1 > $2 ? 2 : 1) }
	END {
		split("packed unfused fused", way, " "); split("uint4 uint3", format, " "); split("61 46 61", paper, " ")
		print "format", "way", "tokens_a_second", "times_fp16", "paper_tokens_a_second"
		for (f = 1; f <= 2; f++) {
			w = block[format[f], "f16"]
			if (f == 1) printf "f16\tplain\t%.4g\t1\t48\n", 1 / (32 * w)
			for (i = 1; i <= 3; i++)
				printf "%s\t%s\t%.4g\t%.3g\t%s\n", format[f], way[i], 1 / (32 * block[format[f], way[i]]),
					w / block[format[f], way[i]], (f == 1 && i != 1) ? paper[i] : "-"
		}
	}' model.tsv >"$part/figure7.tsv"
table figure7

plot figure7 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; unset key; set bmargin 4; set offsets 0, 0, graph 0.1, 0
set style fill solid 0.6; set boxwidth 0.7; set yrange [0:*]; set ylabel "tokens a second, linear layers only"
label(f, w) = f eq "f16" ? "fp16" : (f eq "uint4" ? "4 bits" : "3 bits").(w eq "packed" ? "" : w eq "fused" ? "\nfused" : "\nunfused")
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 900,480 font "sans,13" background "white" } else { set terminal pngcairo size 900,480 font "sans,11" }
	set output part."figure7.".t
	set title "Linear layers of Llama-2-7B, one row of x, branch of rank 128 in f16" noenhanced
	plot "figure7.tsv" using 0:3:xticlabels(label(strcol(1), strcol(2))) every ::1 with boxes lt 1, \
		"" using 0:3:(sprintf("%.3g", $3)) every ::1 with labels offset 0,0.7
}
G
say "the paper (RTX 3090, whole model): fp16 48 tokens a second, int4 with a plain branch 46, FBQuant 61"
