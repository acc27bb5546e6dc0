# fpe2m2.awk -- a row of FPE2M2's tables, with the columns of fpe2m2.sh
#
#	awk -v base=RUN -f report.awk -f fpe2m2.awk RUN.stats RUN.diff RUN.report RUN.tsv
#
# base: the run that it is paired with, or empty. bits: bits per weight with scales of 32 bits. With scales of 16 bits
# the part above the format's own bits is half as large.
BEGIN { FS = OFS = "\t" }
FILENAME == ARGV[1] && $1 == "all" { bits = $7 }
FILENAME == ARGV[1] && $1 != "layer" && $1 != "all" { format = $2 }
FILENAME == ARGV[2] && $1 == "all" { weight = $4 }
FILENAME == ARGV[3] && $1 == "all" { output = shown($2) }
FILENAME == ARGV[4] { v[$1] = $2 }
END {
	split(format, n, /[a-z]/)
	code = format ~ /^e/ ? 1 + n[2] + n[3] : n[length(n)]
	print bits, code + (bits - code) / 2, weight, output,
		v["nll"], v["reference_nll_delta"], v["reference_nll_delta_se"], v["kl"], v["kl_se"],
		v["top_agreement"], base, base == "" ? "" : v["paired_nll_delta"],
		base == "" ? "" : v["paired_nll_delta_se"]
}
