# dpq-figure4.awk -- the largest speed-ups of W4A8 for each model and accelerator, and the lengths at which they occur
#
#	awk -f dpq-figure4.awk figure4.tsv
BEGIN {
	FS = OFS = "\t"
	print "model", "hardware", "over_W4A16", "prompt", "generate", "over_W8A8", "prompt", "generate"
}
NR > 1 {
	k = $1 OFS $2
	if (!seen[k]++) keys[++n] = k
	if ($3 == "W8A8") w8 = $11
	if ($3 == "W4A8") {
		if ($12 > a[k]) { a[k] = $12; at[k] = $4 OFS $5 }
		if (w8 > 0 && $11 / w8 > b[k]) { b[k] = $11 / w8; bt[k] = $4 OFS $5 }
	}
}
END {
	for (i = 1; i <= n; i++) {
		k = keys[i]
		printf "%s\t%.2f\t%s\t%.2f\t%s\n", k, a[k], at[k], b[k], bt[k]
	}
}
