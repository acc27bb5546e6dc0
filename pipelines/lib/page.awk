# page.awk -- a table as HTML, each row with the commands that made it; or all steps of a pipeline
#
#   awk -v id=ID -v caption=TEXT -f numbers.awk -f page.awk f=dates DATES f=history HISTORY f=commands COMMANDS \
#       [f=runs RUNS f=table TABLE.tsv]
#
# DATES: name of a result, its date. HISTORY: file, a line of its history. COMMANDS, RUNS: .steps/*.commands and *.runs.
# Fields are separated by tabs. Without TABLE: the list of all steps.
BEGIN { FS = "\t" }

function html(s) {
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	gsub(/"/, "\\&quot;", s)
	return s
}
function head(s) { s = html(s); gsub(/_/, "_<wbr>", s); return s }

f == "dates" { made[$1] = $2 }
f == "history" { history[$1] = history[$1] html($2) "\n" }
f == "commands" {
	command[++steps] = $2
	results[steps] = $1
	n = split($1, name, " ")
	for (i = 1; i <= n; i++) {
		maker[name[i]] = steps
		stem = name[i]
		sub(/\.[^.]*$/, "", stem)
		if (("," of[stem] ",") !~ ("," steps ","))
			of[stem] = of[stem] (stem in of && of[stem] != "" ? "," : "") steps
	}
	date[steps] = made[name[n]]
}
f == "runs" { run[FNR] = $1; sub(/ .*/, "", run[FNR]) }
f == "table" {
	if (FNR == 1)
		columns = NF
	for (i = 1; i <= NF; i++)
		cell[FNR, i] = $i
	lines = FNR
}

# The steps that a step needs, and the step.
function need(step,   n, i, word) {
	if (needed[step])
		return
	needed[step] = 1
	n = split(command[step], word, /[^A-Za-z0-9_.\/+,:@%-]+/)
	for (i = 1; i <= n; i++)
		if (word[i] in maker)
			need(maker[word[i]])
}
function listed(step) {
	return "<li><code>" html(command[step]) "</code>" (date[step] == "" ? "" : " <time>" date[step] "</time>")
}
function commands(which,   n, own, i, text) {
	split("", needed)
	n = split(of[which], own, ",")
	if (!n)
		return
	for (i = 1; i <= n; i++)
		need(own[i])
	text = "<ol>\n"
	for (i = 1; i <= steps; i++)
		if (needed[i])
			text = text listed(i) "</li>\n"
	print "<tr class=how><td colspan=" shown "><details><summary><code>" html(command[own[n]]) "</code></summary>"
	print text "</ol></details></td></tr>"
}

function is_theirs(name) { return name ~ /^(paper|llama[0-9])/ }

# Columns in the order shown: ours, then the paper's; errors are next to their values.
function arrange(   i, p, name) {
	for (i = 1; i <= columns; i++)
		at[cell[1, i]] = i
	for (p = 0; p < 2; p++)
		for (i = 1; i <= columns; i++) {
			name = cell[1, i]
			if (name ~ /_se$/ && substr(name, 1, length(name) - 3) in at || is_theirs(name) != p)
				continue
			column[++shown] = i
			error[shown] = at[name "_se"]
			if (p)
				theirs++
		}
	for (labels = 1; labels < shown && is_label(column[labels + 1]); labels++)
		continue
}
function is_label(c,   r) {
	if (is_theirs(cell[1, c]))
		return 0
	for (r = 2; r <= lines; r++)
		if (cell[r, c] != "" && !is_number(cell[r, c]) && cell[r, c] !~ /^-?(nan|inf|-)$/)
			return 1
	return 0
}
function value(r, i,   x, exact, text) {
	exact = x = cell[r, column[i]]
	text = i > shown - theirs ? x : error[i] ? with_error(x, cell[r, error[i]]) : rounded(x)
	if (error[i] && cell[r, error[i]] != "")
		exact = x " ± " cell[r, error[i]]
	if (is_number(x)) {
		sub(/^-/, "−", text)
		sub(/e-/, "e−", text)
	}
	return (text == exact ? "" : " title=\"" html(exact) "\"") ">" html(text)
}
function side(i) { return i > shown - theirs ? " class=theirs" : "" }
function table(   r, i) {
	arrange()
	printf "<div class=scroll tabindex=0 role=region aria-label=\"%s\"><table id=\"%s\"><caption>%s</caption>\n", \
		caption, id, caption
	printf "<colgroup span=%d></colgroup>%s\n<thead>\n", shown - theirs, \
		theirs ? "<colgroup class=theirs span=" theirs "></colgroup>" : ""
	if (theirs)
		print "<tr><th colspan=" shown - theirs " scope=colgroup>ours</th>" \
			"<th class=theirs colspan=" theirs " scope=colgroup>the paper</th></tr>"
	printf "<tr>"
	for (i = 1; i <= shown; i++)
		printf "<th scope=col%s>%s%s</th>", i <= labels ? " class=label" : side(i), \
			head(cell[1, column[i]]), error[i] ? " ± se" : ""
	print "</tr>\n</thead>\n<tbody>"
	for (r = 2; r <= lines; r++) {
		printf "<tr>"
		for (i = 1; i <= shown; i++)
			if (i <= labels)
				printf "<th scope=row%s</th>", value(r, i)
			else
				printf "<td%s%s</td>", side(i), value(r, i)
		print "</tr>"
		commands(run[r])
	}
	print "</tbody>\n</table></div>"
}
END {
	if (f == "table") {
		table()
		exit
	}
	print "<ol>"
	for (i = 1; i <= steps; i++) {
		printf "%s", listed(i)
		n = split(results[i], name, " ")
		for (k = 1; k <= n; k++)
			if (name[k] in history)
				print "<pre>" html(name[k]) ":\n" history[name[k]] "</pre>"
		print "</li>"
	}
	print "</ol>"
}
