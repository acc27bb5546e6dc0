# rows.awk -- a table as rows of points: the gnuplot commands that rows.gp loads
#
#	awk -v rows=COLUMNS -v series=COLUMN -v panels=PANELS -v names=NAMES -v paper=TEXT -f rows.awk TABLE.tsv
#
# rows: one row of the plot for each combination of values of these columns; a value equal to that of the column before
# is left out. series: one colour for each value of this column. panels: [log:]COLUMN[/ERROR][@KEY=VALUE], separated by
# blanks: one panel with the values of COLUMN, on a logarithmic axis if log, with error bars of ERROR (COLUMN_se) or up
# to COLUMN_max, in the rows where KEY is VALUE. A|B: B if the table has no A. A+B: the columns are the series.
# names: NAME=TEXT, separated by semicolons: texts in place of values and columns. paper: the axis of columns paper_*.
# Rows whose values are all 0 or absent are left out.
BEGIN {
	FS = "\t"
	axis("kl", "KL divergence", "nats per token", 1)
	axis("kl_delta", "change of KL divergence", "nats per token", 1)
	axis("kl_percent", "change of KL divergence", "%", 1)
	axis("nll_rise", "rise of NLL", "nats per token", 1)
	axis("nll_delta", "change of NLL", "nats per token", 1)
	axis("output_error", "output error", "relative", 1)
	axis("error_percent", "change of output error", "%", 1)
	axis("acc", "right answers", "%", 100)
	axis("tokens_a_second", "here, linear layers", "tokens per second", 1)
	axis("kurtosis", "kurtosis of the inputs", "3 for a Gaussian", 1)
	axis("incoherence", "incoherence of the weights", "max|w| √(mn) / ‖W‖", 1)
	axis("times_16_bit", "speed", "times that of 16 bits", 1)
	n = split(names, pair, ";")
	for (i = 1; i <= n; i++) {
		eq = index(pair[i], "=")
		text[substr(pair[i], 1, eq - 1)] = substr(pair[i], eq + 1)
	}
}
function axis(column, what, unit, factor) { head[column] = what; units[column] = unit; times[column] = factor }
function named(s) { return s in text ? text[s] : s }
function quoted(s) { gsub(/[\\"]/, "\\\\&", s); gsub(/\n/, "\\n", s); return "\"" s "\"" }
function width(s) { gsub(/[\200-\277]/, "", s); return length(s) }
function is_number(s) { return s ~ /^[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?$/ }
function nice(range,   unit) {	# a step of about this size: 1, 2 or 5 times a power of ten
	unit = 10 ^ floor(log(range) / log(10))
	return range > 5 * unit ? 10 * unit : range > 2 * unit ? 5 * unit : range > unit ? 2 * unit : unit
}
function floor(x) { return x < int(x) ? int(x) - 1 : int(x) }
function first(alternatives,   a, n, i) {	# the first of these columns that exists in the table
	n = split(alternatives, a, "|")
	for (i = 1; i < n && !(a[i] in at); i++);
	return a[i]
}

NR == 1 {
	for (i = 1; i <= NF; i++)
		at[$i] = i
	P = split(panels, panel, " ")
	for (p = 1; p <= P; p++) {
		is_log[p] = sub(/^log:/, "", panel[p])
		if (split(panel[p], half, "@") > 1) {
			split(half[2], condition, "=")
			key[p] = condition[1]
			wanted[p] = condition[2]
		}
		C[p] = split(half[1], column, /[+]/)
		for (c = 1; c <= C[p]; c++) {
			split(column[c], half, "/")
			of[p, c] = first(half[1])
			error_of[p, c] = half[2] ? half[2] : of[p, c] "_se"
		}
	}
	K = split(rows, row_columns, " ")
	next
}
{
	row = before = ""
	for (k = 1; k <= K; k++) {
		cell = $at[row_columns[k]]
		if (cell != "-" && cell != before && named(cell) != "")
			row = row (row == "" ? "" : ", ") named(cell)
		before = cell
	}
	for (p = 1; p <= P; p++) if (!key[p] || $at[key[p]] == wanted[p]) for (c = 1; c <= C[p]; c++) {
		x = $at[of[p, c]]
		s = C[p] > 1 ? named(of[p, c]) : series ? named($at[series]) : "all"
		if (!(of[p, c] in at) || !is_number(x) || is_log[p] && x <= 0)
			continue
		se = error_of[p, c] in at && is_number($at[error_of[p, c]]) ? $at[error_of[p, c]] : 0
		most = of[p, c] "_max" in at ? $at[of[p, c] "_max"] : x + se
		M++
		of_panel[M] = p; of_row[M] = row; of_series[M] = s
		value[M] = x; low[M] = most > x + se ? x : x - se; high[M] = most
		if (x != 0 || se != 0)
			counts[row] = 1
		if (!(row in place) && !(row in seen)) {
			seen[row] = 1
			order[++N] = row
		}
		if (!(s in series_place)) {
			series_place[s] = ++S
			series_name[S] = s
		}
	}
}
END {
	for (i = 1; i <= N; i++)
		if (order[i] in counts)
			label[place[order[i]] = ++R] = order[i]
	for (m = 1; m <= M; m++) {
		p = of_panel[m]
		if (!(of_row[m] in place))
			continue
		if (!(p in smallest) || value[m] < smallest[p])
			smallest[p] = value[m]
		if (!(p in least) || low[m] < least[p])
			least[p] = low[m]
		if (!(p in greatest) || high[m] > greatest[p])
			greatest[p] = high[m]
	}
	printf "R = %d; S = %d; P = %d\n", R, S, P
	print "array name[S]; array caption[P]; array axis[P]; array from[P]; array to[P]"
	print "array islog[P]; array ticks[P]"
	for (s = 1; s <= S; s++)
		printf "name[%d] = %s\n", s, quoted(series_name[s])
	for (p = 1; p <= P; p++)
		print_axis(p)
	for (r = 1; r <= R; r++) {
		tick = tick (r > 1 ? ", " : "") quoted(label[r]) " -" r
		blank = blank (r > 1 ? ", " : "") "\"\" -" r
		if (width(label[r]) > widest)
			widest = width(label[r])
	}
	gsub(/'/, "''", tick)
	printf "labels = 'set ytics (%s)'\nblanks = 'set ytics (%s)'\nwidest = %d\n", tick, blank, widest
	print "$points << END\npanel\trow\tseries\tvalue\tlow\thigh"
	for (m = 1; m <= M; m++) if (of_row[m] in place) {
		p = of_panel[m]
		printf "%d\t%d\t%d\t%.8g\t%.8g\t%.8g\n", p, place[of_row[m]],
			series_place[of_series[m]], value[m] * scale[p], low[m] * scale[p], high[m] * scale[p]
	}
	print "END"
}
function print_axis(p,   c, what, unit, lo, hi, pad, t, n, list, k, m) {
	c = of[p, 1]
	scale[p] = c in times ? times[c] : 1
	unit = units[c]
	lo = least[p]; hi = greatest[p]
	if (unit ~ /^(nats|relative)/ && hi < 0.1) {
		scale[p] = 1000
		unit = unit == "relative" ? "10⁻³" : "10⁻³ " unit
	}
	lo *= scale[p]; hi *= scale[p]
	if (is_log[p]) {
		if (lo <= 0)	# a bar that reaches 0
			lo = smallest[p] * scale[p] / 2
		pad = (hi / lo) ^ 0.06 * 1.03
		lo /= pad; hi *= pad
		n = log(hi / lo) / log(10)	# decades
		m = nice((hi - lo) / 4)
		for (k = floor(lo / m) + 1; n < 0.8 && k * m <= hi; k++)
			list = list (list == "" ? "" : ", ") sprintf("%g", k * m)
		for (k = floor(log(lo) / log(10)); n >= 0.8 && 10 ^ k <= hi; k += n > (P > 2 ? 2.5 : 4.5) ? 2 : 1)
			for (m = 1; m <= (n > (P > 2 ? 1.6 : 2.2) ? 1 : 5); m += m == 1 ? 1 : 3)
				if (m * 10 ^ k >= lo && m * 10 ^ k <= hi)
					list = list (list == "" ? "" : ", ") sprintf("%g", m * 10 ^ k)
		for (k = floor(log(lo) / log(10)); 10 ^ k <= hi; k++)
			for (m = 1; m < 10; m++)
				if (m * 10 ^ k >= lo && m * 10 ^ k <= hi)
					list = list sprintf(", \"\" %g 1", m * 10 ^ k)
		gsub(/e[+]0?/, "e", list)
		t = "set xtics (" list ")"
	} else {
		if (c ~ /_(delta|percent)$/ || c ~ /tokens/ || c !~ /^(acc|paper)/ && lo > 0 && lo < 0.7 * hi) {
			if (lo > 0) lo = 0
			if (hi < 0) hi = 0
		}
		pad = hi > lo ? 0.05 * (hi - lo) : 1
		t = "set xtics " sprintf("%g", nice((hi - lo + 2 * pad) / (P > 2 ? 4 : 6)))
		lo -= lo == 0 ? 0.4 * pad : pad
		hi += hi == 0 ? 0.4 * pad : pad
	}
	what = c ~ /^paper/ && paper ? paper : head[c] (unit == "%" ? ", " : "\n") unit
	if (c in text && C[p] == 1)
		what = text[c]
	if (is_log[p])
		sub(/\n|$/, " (log scale)&", what)
	printf "caption[%d] = %s; axis[%d] = %s\n", p, quoted(key[p] ? named(wanted[p]) : ""), p, quoted(what)
	printf "from[%d] = %g; to[%d] = %g; islog[%d] = %d; ticks[%d] = '%s'\n", p, lo, p, hi, p, is_log[p], p, t
}
