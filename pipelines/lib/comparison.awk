# comparison.awk -- the numbers of a run, and their differences from those of the base, another run
#
#	awk -v columns="NAME ..." -v reports=N -f report.awk -f comparison.awk \
#		BASE.report BASE.draw1.report ... RUN.report RUN.draw1.report ... RECORDS [ANSWERS]
#
# RECORDS and ANSWERS are what eval-compare prints of the records of all draws, and of those of the questions. reports:
# the number of reports of each run, 0 without them.
#
# output_error: geometric mean over layers of tr(E H E^T)/tr(W H W^T). error_percent: its change from the base's, with
# the standard error over layers. nll_rise: NLL of the run - NLL of the model. kl: KL divergence from the model.
# *_delta: run - base. *_se: standard error, over windows or questions, and draws. ppl, ppl_16: perplexity of the run
# and of the model. ppl_rise_percent: rise of the perplexity. bits_a_weight: the variable bits.
#
# All are means over draws (of logarithms: output errors). *_se of one window: 0. *_df: degrees of freedom of *_se.
# *_se_draws, *_se_windows: its parts. *_separated: yes, no, or - without a verdict.
BEGIN {
	FS = OFS = "\t"
	for (i = 1; i <= 2 * reports; i++) {
		for (lines = 0; (getline line < ARGV[i]) > 0; last = line) if (!lines++) head = line
		close(ARGV[i])
		if (lines < 2 || last !~ /^all(\t|$)/ || split(head, in_head) != split(last, in_last)) {
			print ARGV[i] ": does not end with a whole line \"all\": remove this damaged file, and " \
				"the next run makes it again" > "/dev/stderr"
			failed = 1
			exit 1
		}
	}
}
FNR == 1 { file++ }
file <= reports { base[file, $1] = shown($2); next }
file <= 2 * reports && $1 ~ /^\// && shown($2) > 0 {
	d = log(shown($2) / base[file - reports, $1])
	if (!($1 in change)) layer[++n] = $1
	change[$1] += d / reports
}
file <= 2 * reports { if ($1 == "all") { error = shown($2); logs += error > 0 ? log(error) / reports : 0 } next }
FNR == 1 { for (i = 1; i <= NF; i++) name[i] = $i; next }
{
	for (i = 2; i <= NF; i++)
		y[$1 (name[i] == "mean" ? "" : "_" name[i])] = name[i] ~ /^se(_|$)/ && $i == "-" ? 0 : $i
}
END {
	if (failed) exit 1
	for (i = 1; i <= n; i++) { d = change[layer[i]]; sum += d; squares += d * d }
	m = n ? sum / n : 0
	y["output_error"] = error > 0 ? exp(logs) : error
	y["error_percent"] = 100 * (exp(m) - 1)
	y["error_percent_se"] = 100 * exp(m) * (n > 1 ? sqrt((squares / n - m * m) / (n - 1)) : 0)
	y["ppl"] = exp(y["nll"])
	y["ppl_16"] = exp(y["nll"] - y["nll_rise"])
	y["ppl_rise_percent"] = 100 * (1 - exp(-y["nll_rise"]))
	y["bits_a_weight"] = bits
	columns_n = split(columns, column, " ")
	for (i = 1; i <= columns_n; i++)
		if (!(column[i] in y)) {
			print "there is no column \"" column[i] "\"; comparison.awk lists them, such as kl, " \
				"nll_delta, ppl" > "/dev/stderr"
			exit 1
		}
	for (i = 1; i <= columns_n; i++) printf "%s%s", y[column[i]], i < columns_n ? OFS : "\n"
}
