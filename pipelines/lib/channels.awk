# channels.awk -- tensor-stats --channels of one layer, before and after a rotation
#
# Files: rotated.channels.tsv and split.channels.tsv, to find the layer; then that of each way, with the variable `way`
# before it. The layer is, of those that rms-suppress changed (if none: of all), the one in which the largest magnitude
# of a rotated channel exceeds the mean over channels most.
BEGIN { FS = OFS = "\t" }
FNR == 1 { file++; if (file == 1) for (i = 1; i <= NF; i++) column[$i] = i; next }
{ x = $column["absmax"] }
file == 1 { at[$1, $2] = x; sum[$1] += x; n[$1]++; if (x > max[$1]) max[$1] = x }
file == 2 && at[$1, $2] != x { split_[$1] = any = 1 }
file <= 2 { next }
layer == "" {
	for (l in n) {
		excess = max[l] * n[l] / sum[l]
		if (any && !(l in split_)) continue
		if (excess > most || (excess == most && l < layer)) { most = excess; layer = l }
	}
	print "way", "layer", "channel", "rms", "absmax"
}
$1 == layer { print way, $0 }
