# fbquant.awk -- a row of FBQuant's tables, with the columns of fbquant.sh
#
#	awk -f report.awk -f fbquant.awk RUN.stats RUN.report RUN.tsv
BEGIN { FS = OFS = "\t" }
FILENAME == ARGV[1] && FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "bits") c = i }
FILENAME == ARGV[1] { if ($1 == "all") bits = $c; next }
FILENAME == ARGV[2] { if ($1 == "all") error = shown($2); next }
{ v[$1] = $2 }
END {
	print bits, error, v["nll"], v["reference_nll_delta"], v["reference_nll_delta_se_windows"] + 0, v["kl"] + 0,
		v["kl_se_windows"] + 0, v["paired_nll_delta"] + 0, v["paired_nll_delta_se_windows"] + 0,
		v["paired_kl_delta"] + 0, v["paired_kl_delta_se_windows"] + 0, exp(v["nll"])
}
