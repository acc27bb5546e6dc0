# mquant-table3.awk -- speed-up of a block over 16 bits, by the size of the image
#
#	awk -f mquant-table3.awk block.tsv block.tsv
BEGIN {
	FS = OFS = "\t"
	n = split("280 560 1120 1680", side, " ")
	split("-10.14 -13.70 -15.10 -17.39", w4, " "); split("16.82 19.48 24.48 18.23", w4a8, " ")
	for (i = 1; i <= n; i++) { paper[side[i], "w4"] = w4[i]; paper[side[i], "w4a8-msq-aifs"] = w4a8[i] }
	print "side", "visual", "what", "seconds", "faster_percent", "paper_percent", "faster_than_token_percent",
		"prepare_seconds"
}
FNR == NR { s[$1, $4] = $6; next }
FNR > 1 {
	printf "%s\t%s\t%s\t%.4g\t%.1f\t%s\t%.1f\t%.3g\n", $1, $2, $4, $6, 100 * (s[$1, "f16"] / $6 - 1),
		($1, $4) in paper ? paper[$1, $4] : "-", 100 * (s[$1, "w4a8-token"] / $6 - 1), $5
}
