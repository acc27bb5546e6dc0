# answers.awk -- a row of the tables of accuracy, with the columns of vision.sh
#
#	awk -v easy=' TASK ... ' -v hard=' TASK ... ' -f answers.awk RUN.tsv
#
# Means over tasks and their standard errors are computed from the tasks' own: these contain the sums of x and x^2.
BEGIN { FS = OFS = "\t" }
function add(group, mark,  n, x, se) {
	if (!(mark in at)) return
	n = $2; x = $at[mark]; se = n > 1 ? $at[mark "_se"] : 0
	count[group, mark] += n; sum[group, mark] += n * x; squares[group, mark] += n * (se * se * (n - 1) + x * x)
}
function mean(group, mark,  n, m) {	# empty without such questions; 0 for the differences of the base from itself
	n = count[group, mark]; m = n ? sum[group, mark] / n : count[group, "acc"] ? 0 : ""
	return n && m * m < 1e-12 ? 0 : m
}
function error(group, mark,  n, m, v) {
	n = count[group, mark]; m = mean(group, mark)
	v = n > 1 ? (squares[group, mark] / n - m * m) / (n - 1) : 0
	return v > 1e-12 ? sqrt(v) : n ? 0 : m
}
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$1 == "all" { for (m in at) all[m] = $at[m]; next }
{
	group = index(easy, " " $1 " ") ? "easy" : index(hard, " " $1 " ") ? "hard" : "other"
	add(group, "acc")
	add(group, "paired_acc_delta")
}
END {
	print mean("easy", "acc"), mean("easy", "paired_acc_delta"), error("easy", "paired_acc_delta"),
		mean("hard", "acc"), mean("hard", "paired_acc_delta"), error("hard", "paired_acc_delta"),
		all["acc"], all["acc_se"], all["paired_acc_delta"] + 0, all["paired_acc_delta_se"] + 0,
		all["kl"], all["kl_se"], all["paired_kl_delta"] + 0, all["paired_kl_delta_se"] + 0, all["agreement"]
}
