# fbquant-figure4.awk -- time and multiplications of a layer with a branch, relative to its main path
#
#	awk -f fbquant-figure4.awk layer.tsv layer.tsv
BEGIN {
	FS = OFS = "\t"
	print "format", "rank", "rows", "f16_ms", "packed_ms", "unfused_ms", "fused_ms", "read_ms", "macs_percent",
		"unfused_percent", "fused_percent", "fused_to_read"
}
FNR == 1 { next }
FNR == NR { s[$5, $3, $4, $6] = $7; macs[$5, $3, $4, $6] = $8; next }
$6 == "fused" {
	k = $5 SUBSEP $3 SUBSEP $4 SUBSEP
	p = s[k "packed"]
	printf "%s\t%s\t%s\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.3g\t%.3g\t%.3g\n", $5, $3, $4,
		1e3 * s[k "f16"], 1e3 * p, 1e3 * s[k "unfused"], 1e3 * $7, 1e3 * s[k "read"],
		100 * (macs[k "fused"] / macs[k "packed"] - 1), 100 * (s[k "unfused"] / p - 1), 100 * ($7 / p - 1),
		($7 - p) / s[k "read"]
}
