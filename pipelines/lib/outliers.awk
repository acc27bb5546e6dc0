# outliers.awk -- kurtosis of inputs and incoherence of weights by kind of layer: geometric means and maxima
#
#	awk -v way=NAME -f outliers.awk WEIGHTS.tsv INPUTS.tsv
#
# Both files are tables of tensor-stats, of a model and of its Hessians. Columns: way, kind, layers, kurtosis,
# kurtosis_max, incoherence, incoherence_max.
BEGIN { FS = OFS = "\t" }
function column(name,  i) { for (i = 1; i <= NF; i++) if ($i == name) return i }
FNR == 1 { kurtosis = column("kurtosis"); incoherence = column("incoherence"); next }
FNR != NR { k[$1] = $kurtosis; next }
$1 in w || /^\// { w[$1] = $incoherence; if (!($1 in at)) { order[++n] = $1; at[$1] = n } }
END {
	for (i = 1; i <= n; i++) {
		layer = kind = order[i]
		sub(/.*\//, "", kind)
		if (!(layer in k)) continue
		if (!(kind in all)) kinds[++m] = kind
		all[kind]++; lk[kind] += log(k[layer]); lw[kind] += log(w[layer])
		if (k[layer] > mk[kind]) mk[kind] = k[layer]
		if (w[layer] > mw[kind]) mw[kind] = w[layer]
	}
	for (j = 1; j <= m; j++) {
		kind = kinds[j]
		c = all[kind]
		print way, kind, c, exp(lk[kind] / c), mk[kind], exp(lw[kind] / c), mw[kind] }
}
