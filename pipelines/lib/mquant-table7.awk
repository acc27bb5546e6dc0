# mquant-table7.awk -- times of linear layers, and their speed relative to 16 bits
#
#	awk -f mquant-table7.awk layers.tsv decode.tsv
function number(v) { return v == "" ? "-" : sprintf("%.3g", v) }
function paper(stage, times,  p, i, n) {	# times: pairs of a name and the paper's ms
	n = split(times, p, " ")
	for (i = 1; i < n; i += 2) ms[stage, p[i]] = p[i + 1]
}
BEGIN {
	FS = OFS = "\t"
	paper("prefill", "w4a8-token 1253 w4a8-tensor 1016 w4a8-msq 1085 w4a8-msq-aifs 1017")
	paper("decode", "w4a8-token 16.4 w4a8-msq 13.06 w4a8-msq-packed 8.2")
	whole["prefill"] = 1690; whole["decode"] = 17.5
	print "stage", "what", "product", "ms", "times_16_bit", "paper_times", "times_token", "paper_times_token",
		"input_percent", "gops_or_gb"
}
FNR == 1 { stage = FILENAME == "layers.tsv" ? "prefill" : "decode"; next }
{
	n++; of[n] = stage; what[n] = $1; product[n] = $2
	prefill = stage == "prefill"
	s[n] = prefill ? $5 : $4
	share[n] = prefill && $1 ~ /w4a8/ ? 100 * $4 / $5 : ""
	rate[n] = 1e-9 * (prefill ? $6 / $5 : $3 / $4)
	if ($1 ~ /16$/ && (!(stage in base) || s[n] < base[stage])) base[stage] = s[n]
	if ($1 == "w4a8-token") token[stage] = s[n]
}
END {
	for (i = 1; i <= n; i++) {
		w = ms[of[i], what[i]]
		read = what[i] == "read"
		print of[i], what[i], product[i], sprintf("%.4g", 1e3 * s[i]),
			read ? "-" : sprintf("%.3g", base[of[i]] / s[i]), number(w == "" ? "" : whole[of[i]] / w),
			read ? "-" : sprintf("%.4g", token[of[i]] / s[i]),
			number(w == "" ? "" : ms[of[i], "w4a8-token"] / w), number(share[i]), sprintf("%.4g", rate[i])
	}
}
