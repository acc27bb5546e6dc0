#!/usr/bin/env bash
# fpe2m2-figure7.sh -- FPE2M2 figure 7: products from packed weights against fp16, for 1 to 16 columns
#
# A matrix of 11008 × 4096 in groups of 128, from memory, times as many columns as
# sequences are decoded together. Times come from the measuring program of the
# source tree, build/tests/bench/products (`make bench` builds it), or from
# PTQ_PRODUCTS. Left: how many times faster than fp16 in the same run; right: the
# same as operations a second under the roofline of the machine: bytes of weights
# at the measured rate of reading, and the peak of fp32, which `kernels` beside that
# program measures. PTQ_RUNS: measurements of each (15).
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
products=$(realpath -m -- "${PTQ_PRODUCTS:-$here/../build/tests/bench/products}") kernels=${products%/*}/kernels
for program in "$products" "$kernels"; do
	[ -f "$program" ] && [ -x "$program" ] || fail 1 "$program: is not there: make bench builds it, or PTQ_PRODUCTS names it"
done
# Times are those of a machine, and of as many processors as it grants.
enter "$name" "$(uname -n; nproc; sha256sum <"$products"; sha256sum <"$kernels")"

say "measuring (a minute)"
keep batch.tsv "$products" -r "${PTQ_RUNS:-15}" batch
awk -F '\t' -v OFS='\t' '
	NR == 1 { print "format", "columns", "ms", "times_fp16", "gflops", "flops_a_byte"; next }
	FNR == NR { s[$1, $2] = $3; next }
	FNR > 1 && $1 != "read" { printf "%s\t%s\t%.4g\t%.3g\t%.4g\t%.4g\n", $1, $2, 1e3 * $3, s["f16", $2] / $3, 1e-9 * $5 / $3, $5 / $4 }
' batch.tsv batch.tsv >"$part/figure7.tsv"
mv -f "$part/figure7.tsv" .
keep peak.tsv "$kernels" peak
peak=$(awk -F '\t' '$1 == "peak-f32" && $2 == "ours" { print $3 }' peak.tsv)	# GF/s
rate=$(awk -F '\t' '$1 == "read" && $2 == 1 { print 1e-9 * $4 / $3 }' batch.tsv)	# GB/s

RATE=$rate PEAK=$peak plot figure7 <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid
rate = real(system("echo $RATE")); peak = real(system("echo $PEAK"))
formats = "e2m2 e2m2-int16 e2m2-half int5 nf5 e2m1 int4 bf16 f32 sgemm"
name(f) = f eq "e2m2-int16" ? "E2M2, 16-bit activations" : f eq "e2m2-half" ? "E2M2, the paper's conversion" : f eq "sgemm" ? "float, sgemm" : f
do for [i=1:10] { set linetype i lw 2 pt i ps 0.8 }
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1150,520 font "sans,13" background "white" } else { set terminal pngcairo size 1150,520 font "sans,11" }
	set output part."figure7.".t
	set multiplot layout 1,2 title "A packed matrix of 11008 × 4096 times a few columns, weights from memory" noenhanced
	set key top right samplen 2; set xlabel "columns (sequences decoded together)"; set ylabel "times as fast as fp16 in the same run"
	unset logscale; set xrange [0:17]; set yrange [0:4.5]; set xtics 1,3
	plot 1 lt -1 dt 2 title "fp16", for [i=1:10] "< grep '^".word(formats, i)."\t' figure7.tsv" using 2:4 with linespoints lt i title name(word(formats, i)) noenhanced
	set key bottom right; set xlabel "operations a byte of weights"; set ylabel "10⁹ operations a second"
	set logscale xy; set xrange [0.4:60]; set yrange [10:1000]; set xtics autofreq
	plot rate * x < peak ? rate * x : peak lt -1 dt 2 title sprintf("memory: %.1f GB/s; fp32: %.0f · 10⁹/s", rate, peak), \
		"< grep '^f16\t' figure7.tsv" using 6:5 with linespoints lt -1 pt 12 title "fp16", \
		for [i=1:10] "< grep '^".word(formats, i)."\t' figure7.tsv" using 6:5 with linespoints lt i notitle
	unset multiplot
}
G
say "the paper (RTX 4070 Ti, H100) prints its figure without numbers: E2M2 close to INT5, NF5 behind"
