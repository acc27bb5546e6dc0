# frontier.awk -- adds the column kl_times_gptq: KL over that of GPTQ without rotation at as many bits per weight
#
#	awk -f frontier.awk TABLE.tsv TABLE.tsv
#
# The logarithm of GPTQ's KL is linear in bits between its rows, and constant below the fewest bits and above the most.
BEGIN { FS = OFS = "\t" }
FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
NR == FNR {
	if ($1 == "gptq" && $2 == "none" && !(n && $at["bits_a_weight"] <= bits[n])) {
		bits[++n] = $at["bits_a_weight"]
		kl[n] = log($at["kl"])
	}
	next
}
FNR == 1 { print $0, "kl_times_gptq"; next }
{
	b = $at["bits_a_weight"]
	b = b < bits[1] ? bits[1] : b > bits[n] ? bits[n] : b
	for (i = 2; i < n && bits[i] < b; ) i++
	slope = (kl[i] - kl[i - 1]) / (bits[i] - bits[i - 1])
	print $0, sprintf("%.4g", $at["kl"] / exp(kl[i] + slope * (b - bits[i])))
}
