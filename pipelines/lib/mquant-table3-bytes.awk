# mquant-table3-bytes.awk -- GiB of the language model at 1120 x 1120, as in the paper, and MiB of a block
#
#	awk -f mquant-table3-bytes.awk memory.tsv
BEGIN {
	FS = OFS = "\t"
	paper["f16"] = 16.58; paper["w4"] = 7.56; paper["w4a8-msq-aifs"] = 6.61
	ends = 2 * 152064 * 3584 * 2	# embedding and head
	print "what", "model_gib", "saved_percent", "paper_gib", "paper_percent", "block_stored_mib",
		"block_prepared_mib", "peak_mib"
}
NR > 1 {
	model = (28 * $2 + ends) / 2 ^ 30
	if ($1 == "f16") all = model
	size = saved = "-"
	if ($1 in paper) { size = paper[$1]; saved = sprintf("%.1f", 100 * (paper["f16"] / paper[$1] - 1)) }
	printf "%s\t%.4g\t%.1f\t%s\t%s\t%.0f\t%.0f\t%.0f\n", $1, model, 100 * (all / model - 1), size, saved,
		$2 / 2 ^ 20, $3 / 2 ^ 20, $4 / 2 ^ 20
}
