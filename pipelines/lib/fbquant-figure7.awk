# fbquant-figure7.awk -- tokens a second of the linear layers of Llama-2-7B
#
#	awk -f fbquant-figure7.awk model.tsv
#
# A block: four layers of 4096 x 4096, two of 11008 x 4096, one of 4096 x 11008.
BEGIN { FS = OFS = "\t" }
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
}
