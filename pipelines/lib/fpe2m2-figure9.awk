# fpe2m2-figure9.awk -- percentiles of sigma over the channels of each layer, next to the sigma of normal weights
#
#	awk -f fpe2m2-figure9.awk GAUSSIAN reference.stats layer.tsv
#
# GAUSSIAN: one line for each number of inputs, with this number and the sigma of a channel of as many normal weights.
BEGIN {
	FS = OFS = "\t"
	print "layer", "block", "kind", "channels", "inputs", "p5", "p25", "median", "p75", "p95",
		"in_band_percent", "gaussian"
}
FNR == 1 { file++ }
file == 1 { split($0, g, " "); gaussian[g[1]] = g[2]; next }
FNR == 1 { for (i = 1; i <= NF; i++) column[i] = $i; next }
{ for (i = 1; i <= NF; i++) v[column[i]] = $i }
file == 2 { inputs[$1] = v["columns"]; next }
{
	block = match($1, /\/[0-9]+\//) ? substr($1, RSTART + 1, RLENGTH - 2) : 0
	kind = $1
	sub(/^.*\/[0-9]+\//, "", kind)
	print $1, $1 == "all" ? "" : block, kind, v["channels"], $1 == "all" ? "" : inputs[$1],
		v["twentieth"], v["quarter"], v["median"], v["three_quarters"], v["nineteen_twentieths"],
		100 * v["in_band"], gaussian[inputs[$1]]
}
