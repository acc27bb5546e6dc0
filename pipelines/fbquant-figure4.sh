#!/usr/bin/env bash
# fbquant-figure4.sh -- FBQuant figure 4: operations and time of a layer's main path and of its branch
#
# A layer of 4096 × 4096 in groups of 128, 4 and 3 bits, with a branch of f16: over ranks at one row of x, over
# rows of x at rank 128. Times come from the measuring program of the source tree, build/tests/bench/branches
# (`make bench` builds it), or from PTQ_BRANCHES. Left: multiplications and time of the branch as part of the
# main path's, one row of x; right: time beside the product without a branch, rank 128, as one product (fused)
# and as three (unfused). PTQ_RUNS: measurements of each (15); PTQ_THREADS: threads (all).
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
branches=$(realpath -m -- "${PTQ_BRANCHES:-$here/../build/tests/bench/branches}")
[ -f "$branches" ] && [ -x "$branches" ] || fail 1 "$branches: is not there: make bench builds it, or PTQ_BRANCHES names it"
# Times are those of a machine, and of as many processors as it grants.
enter "$name" "$(uname -n; nproc; echo "${PTQ_THREADS:-}"; sha256sum <"$branches")"

say "measuring (some minutes)"
keep layer.tsv "$branches" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-15}" layer
awk -F '\t' -v OFS='\t' '
	NR == 1 { print "format", "rank", "rows", "f16_ms", "packed_ms", "unfused_ms", "fused_ms", "read_ms", "macs_percent",
		"unfused_percent", "fused_percent", "fused_to_read"; next }
	FNR == NR { s[$5, $3, $4, $6] = $7; macs[$5, $3, $4, $6] = $8; next }
	$6 == "fused" { k = $5 SUBSEP $3 SUBSEP $4 SUBSEP; p = s[k "packed"]
		printf "%s\t%s\t%s\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.3g\t%.3g\t%.3g\n", $5, $3, $4, 1e3 * s[k "f16"], 1e3 * p,
			1e3 * s[k "unfused"], 1e3 * $7, 1e3 * s[k "read"], 100 * (macs[k "fused"] / macs[k "packed"] - 1),
			100 * (s[k "unfused"] / p - 1), 100 * ($7 / p - 1), ($7 - p) / s[k "read"] }
' layer.tsv layer.tsv >"$part/figure4.tsv"
table figure4

plot figure4 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid
do for [i=1:6] { set linetype i lw 2 pt i ps 0.9 }
at(f, c, v) = sprintf("< awk -F '\t' '$1 == \"%s\" && $%d == %d' figure4.tsv", f, c, v)
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1150,520 font "sans,13" background "white" } else { set terminal pngcairo size 1150,520 font "sans,11" }
	set output part."figure4.".t
	set multiplot layout 1,2 title "A packed layer of 4096 × 4096 with a branch of f16, weights from memory" noenhanced
	set key top left samplen 2; set xlabel "rank, one row of x"; set ylabel "more than without a branch, %"
	unset logscale; set xrange [0:270]; set xtics 0,64; set yrange [*:*]
	plot at("uint4", 3, 1) using 2:9 with linespoints lt -1 dt 2 pt 12 title "multiplications", \
		at("uint4", 3, 1) using 2:10 with linespoints lt 1 title "time, 4 bits, unfused", \
		at("uint4", 3, 1) using 2:11 with linespoints lt 2 title "4 bits, fused", \
		at("uint3", 3, 1) using 2:10 with linespoints lt 3 title "3 bits, unfused", \
		at("uint3", 3, 1) using 2:11 with linespoints lt 4 title "3 bits, fused"
	set key top left; set xlabel "rows of x, rank 128, 4 bits"; set ylabel "milliseconds"
	set logscale xy; set xrange [0.8:320]; set xtics (1, 2, 4, 8, 16, 64, 256); set yrange [*:*]
	plot at("uint4", 2, 128) using 3:4 with linespoints lt -1 pt 12 title "f16", \
		at("uint4", 2, 128) using 3:5 with linespoints lt 5 title "4 bits, no branch", \
		at("uint4", 2, 128) using 3:6 with linespoints lt 1 title "unfused", \
		at("uint4", 2, 128) using 3:7 with linespoints lt 2 title "fused"
	unset multiplot
}
G
say "the paper (RTX 3090, rank 128): 6.25 % more multiplications; unfused 20 % more time when prefilling, up to four times when decoding"
