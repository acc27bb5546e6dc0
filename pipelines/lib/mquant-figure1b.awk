# mquant-figure1b.awk -- ranges of the inputs of a language model's layers, for visual and for text tokens
#
#	awk -v model=NAME -f report.awk -f mquant-figure1b.awk P50.report P99.report P99.99.report
#
# Reports of msq-calib --clip P. Layers with the same inputs have one row, with the name of the first: of queries, keys
# and values, and of gate and up.
BEGIN {
	FS = "[\t ]"
	OFS = "\t"
	split("q_proj o_proj gate_proj down_proj", layer)
}
FNR == 1 { file++ }
!/^\/model\// { next }
{
	split($1, part, "/")
	b = part[4]
	if (b >= blocks) blocks = b + 1
	largest[b, part[6], $2] = shown($3)
	clip[b, part[6], $2, file] = shown($4)
}
function line(b, l, w, ratio) {
	print model, b, l, w, clip[b, l, w, 1], clip[b, l, w, 2], clip[b, l, w, 3], largest[b, l, w], ratio
}
END {
	for (b = 0; b < blocks; b++) for (i = 1; i <= 4; i++) {
		line(b, layer[i], "visual", largest[b, layer[i], "visual"] / largest[b, layer[i], "text"])
		line(b, layer[i], "text", "")
	}
}
