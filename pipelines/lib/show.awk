# show.awk -- a table for readers: numbers rounded, X ± X_se in one column, columns aligned
#
#   awk -v shown='NAME NAME=HEAD ...' -f numbers.awk -f show.awk TABLE.tsv
#
# shown: the columns with their heads, in which _ is a blank; the default is all columns.
BEGIN { FS = "\t" }

function width(s) { gsub(/[\200-\277]/, "", s); return length(s) }	# bytes that begin a character

NR == 1 {
	for (i = 1; i <= NF; i++)
		at[$i] = i
	n = split(shown, want, " ")
	for (i = 1; !n && i <= NF; i++)
		if ($i !~ /_se$/ || !(substr($i, 1, length($i) - 3) in at))
			want[++m] = $i
	n = n ? n : m
	for (i = 1; i <= n; i++) {
		name = head = want[i]
		if (sub(/=.*/, "", name)) {
			sub(/^[^=]*=/, "", head)
			gsub(/_/, " ", head)
		}
		from[i] = at[name]
		error[i] = at[name "_se"]
		line[1, i] = head
	}
	next
}
{ for (i = 1; i <= n; i++) line[NR, i] = error[i] ? with_error($from[i], $error[i]) : rounded($from[i]) }

END {
	for (r = 1; r <= NR; r++)
		for (i = 1; i <= n; i++)
			if (width(line[r, i]) > most[i])
				most[i] = width(line[r, i])
	for (r = 1; r <= NR; r++)
		for (i = 1; i <= n; i++)
			printf "%s%s", line[r, i], i < n ? sprintf("%*s", most[i] - width(line[r, i]) + 2, "") : "\n"
}
