# comparison.awk -- the numbers of a run, and their differences from those of the base, another run
#
#	awk -v columns="NAME ..." -f report.awk -f comparison.awk BASE.report RUN.report RUN.tsv
#
# output_error: geometric mean over layers of tr(E H E^T)/tr(W H W^T). error_percent: its change from the base's, with
# the standard error over layers. nll_rise: NLL of the run - NLL of the model. kl: KL divergence from the model.
# *_delta: run - base. *_se: standard error over windows. ppl, ppl_16: perplexity of the run and of the model.
# ppl_rise_percent: rise of the perplexity.
BEGIN { FS = OFS = "\t" }
FNR == 1 { file++ }
file == 1 { base[$1] = shown($2); next }
file == 2 && $1 ~ /^\// && shown($2) > 0 { d = log(shown($2) / base[$1]); n++; sum += d; squares += d * d }
file == 2 { if ($1 == "all") y["output_error"] = shown($2); next }
{ v[$1] = $2 }
END {
	m = n ? sum / n : 0
	y["error_percent"] = 100 * (exp(m) - 1)
	y["error_percent_se"] = 100 * exp(m) * (n > 1 ? sqrt((squares / n - m * m) / (n - 1)) : 0)
	y["nll"] = v["nll"]
	y["nll_rise"] = v["reference_nll_delta"]
	y["nll_rise_se"] = v["reference_nll_delta_se_windows"] + 0
	y["nll_delta"] = v["paired_nll_delta"] + 0
	y["nll_delta_se"] = v["paired_nll_delta_se_windows"] + 0
	y["kl"] = v["kl"] + 0
	y["kl_se"] = v["kl_se_windows"] + 0
	y["kl_delta"] = v["paired_kl_delta"] + 0
	y["kl_delta_se"] = v["paired_kl_delta_se_windows"] + 0
	y["ppl"] = exp(y["nll"])
	y["ppl_16"] = exp(y["nll"] - y["nll_rise"])
	y["ppl_rise_percent"] = 100 * (1 - exp(-y["nll_rise"]))
	columns_n = split(columns, column, " ")
	for (i = 1; i <= columns_n; i++) printf "%s%s", y[column[i]], i < columns_n ? OFS : "\n"
}
