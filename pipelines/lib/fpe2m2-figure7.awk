# fpe2m2-figure7.awk -- rates of products, and their speed relative to fp16
#
#	awk -f fpe2m2-figure7.awk batch.tsv batch.tsv
BEGIN { FS = OFS = "\t" }
NR == 1 { print "format", "columns", "ms", "times_fp16", "gflops", "flops_a_byte"; next }
FNR == NR { s[$1, $2] = $3; next }
FNR > 1 && $1 != "read" {
	printf "%s\t%s\t%.4g\t%.3g\t%.4g\t%.4g\n", $1, $2, 1e3 * $3, s["f16", $2] / $3, 1e-9 * $5 / $3, $5 / $4
}
