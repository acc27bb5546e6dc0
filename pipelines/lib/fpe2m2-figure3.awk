# fpe2m2-figure3.awk -- the sigmas at which E2Mx is the best ExMy of its width, and the sigma of its largest lead
#
#	awk -v low=SIGMA -v high=SIGMA -f fpe2m2-figure3.awk best.tsv crossover.tsv
#
# low, high: percentiles 5 and 95 of sigma over the model's channels.
BEGIN { FS = OFS = "\t" }
FNR == NR { bits[$1] = $2; at[$1] = $3; lead[$1] = $5; next }
$1 ~ /^nf/ || $2 ~ /^nf/ { next }
$2 ~ /^e2/ && $1 ~ /^e[3-9]/ && $4 > from[$2] { from[$2] = $4 }
$1 ~ /^e2/ && $2 ~ /^e1/ && $4 > to[$1] { to[$1] = $4 }
END {
	print "bits", "format", "best_from", "best_to", "leads_most_at", "lead",
		"paper_optimum", "paper_from", "paper_to", "model_5_percent", "model_95_percent"
	n = split("e2m1 e2m2 e2m3", format, " ")
	for (i = 1; i <= n; i++) {
		f = format[i]
		print bits[f], f, from[f], to[f], at[f], lead[f], 0.25, 0.12, 0.28, low, high
	}
}
