# shellcheck shell=bash disable=SC2154
# page.sh -- results as one page of HTML
#
#   page ITEMS             prints the page of the results in $folder; ITEMS has the form that items.awk prints.
#                          failed[PIPELINE] marks pipelines that failed. $part is a scratch folder
#
# Style, plots and commands are part of the page. Only files of tables and the pages of docs are links. It has no
# scripts.
declare -A failed=() home=() missing=()

html() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'; }
relative() { realpath --relative-to="$folder" "$1" | sed 's/%/%25/g; s/#/%23/g; s/?/%3F/g' | html; }
about() {	# about PIPELINE: the comments at its top, after its name, as paragraphs
	sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$here/$1.sh" | sed '1,/ -- /s/^.* -- //' | html |
		awk 'BEGIN { RS = "" } { print "<p class=" (NR == 1 ? "asks" : "about") ">" $0 "</p>" }'
}
said() {	# said PIPELINE: its sentence about numbers of the paper that are in no column
	awk '/^say "the paper/ { on = 1; sub(/^say /, "") }
		on { more = sub(/\\$/, ""); gsub(/^[\t ]*"|" *$/, ""); text = text " " $0 }
		on && !more { print text; exit }' "$here/$1.sh" | html | sed 's/.*/<p class=said>&<\/p>/'
}
place_of() {	# place_of PIPELINE: sets $place, its folder of results, or $why it can have none
	place='' why=''
	"$here/$1.sh" --dry-run 2>"$part/why" | sed -n '3{p;q}' >"$part/place" || true
	if IFS= read -r place <"$part/place"; then
		place=${place#mkdir -p }
		eval "place=${place%% && cd *}"
	else why=$(tail -n 1 "$part/why" | html); fi
}
tables_of() {	# tables_of PIPELINE: names of its tables and plots
	sed '/^#/d' "$here/$1.sh" | grep -oE '(^|[^-])\b(tabulate|table|plot) [a-z][a-z0-9-]*' |
		awk '!seen[$2]++ { print $2 }'
}
histories() {	# of the files of $place: name, a line of the history; none without h5dump, or of damaged files
	local f
	command -v h5dump >/dev/null || return 0
	cd "$place" || return
	for f in *.h5 *.record; do
		[ -f "$f" ] && [ ! -L "$f" ] || continue
		{ h5dump -w 0 -y -a /history "$f" 2>/dev/null || true; } | awk -v f="$f" '
			on && /^   }/ { on = 0 } on { gsub(/^ *"|",?$/, ""); print f "\t" $0 } /DATA [{]/ { on = 1 }'
	done
}
rows() {	# rows PIPELINE TABLE: the table, and its plot
	local t=$place/$2 n runs=()
	n=$(($(wc -l <"$t.tsv") - 1))
	[ ! -e "$place/.steps/$2.runs" ] || runs=(f=runs "$place/.steps/$2.runs")
	[ $n -le 60 ] || echo "<details><summary>$2: $n rows</summary>"
	awk -v id="$1-$2" -v caption="$2" -f "$lib/numbers.awk" -f "$lib/page.awk" \
		${known[@]+"${known[@]}"} ${runs[@]+"${runs[@]}"} f=table "$t.tsv"
	[ $n -le 60 ] || echo "</details>"
	echo "<p class=files><a href=\"$(relative "$t.tsv")\">$2.tsv</a>, $(date -r "$t.tsv" '+%F %H:%M')</p>"
	[ ! -s "$t.svg" ] || echo "<figure><img alt=\"plot of $2: $title\"" \
		"src=\"data:image/svg+xml;base64,$(base64 -w 0 "$t.svg")\"></figure>"
}
results_of() {	# results_of PIPELINE: its tables, plots and commands
	local t there='' known=() title place why
	place_of "$1"
	about "$1" >"$part/about"
	cat "$part/about"
	title=$(awk 'BEGIN { RS = "</p>" } NR == 1 { gsub(/<[^>]*>/, ""); gsub(/\n/, " "); print }' "$part/about")
	[ -z "${failed[$1]-}" ] || echo "<p class=missing><code>pipelines/$1.sh</code> failed.</p>"
	if [ -e "$place/.steps/$1.commands" ]; then
		find "$place/.steps" -name '*.key' -printf '%f\t%TF %TH:%TM\n' | sed 's/\.key\t/\t/' >"$part/dates"
		(histories) >"$part/history"
		known=(f=dates "$part/dates" f=history "$part/history" f=commands "$place/.steps/$1.commands")
	fi
	for t in $(tables_of "$1"); do
		[ ! -s "$place/$t.tsv" ] || { rows "$1" "$t" && there=yes; }
	done
	said "$1"
	if [ -z "$there" ]; then
		missing[$1]=yes
		echo "<p class=missing>Missing: ${why:-<code>pipelines/$1.sh</code> makes it.}</p>"
	elif [ ${#known[@]} != 0 ]; then
		echo '<details class=steps><summary>All commands, and the histories of the files left</summary>'
		echo "<p><code>pipelines/$1.sh</code>, in <code>$(html <<<"$place")</code>:</p>"
		awk -f "$lib/numbers.awk" -f "$lib/page.awk" "${known[@]}"
		echo '</details>'
	fi
}
pages() {	# pages LINK...: to the pages of docs, where they are
	local link file text
	for link; do
		file=$here/../docs/${link%%#*} text=${link##*/}
		[ ! -f "$file" ] ||
			echo "<a href=\"$(relative "$file")$(html <<<"${link#"${link%%#*}"}")\">${text%.md*}</a>"
	done | paste -sd , | sed 's/,/, /g; s/./ — &/'
}
item() {	# item PAPER ID ITEM TITLE PIPELINES STATUS LINKS
	local p
	echo "<section id=\"$2\"><h3>${3^}: $(html <<<"$4")</h3>"
	# shellcheck disable=SC2086
	echo "<p class=\"status $(sed 's/[:,].*//; s/ /-/g' <<<"$6")\">$(html <<<"$6")$(pages $7)</p>"
	for p in ${5#-}; do
		if [ "${home[$p]}" = "$2" ]; then results_of "$p"
		else echo "<p>Its numbers are those of <a href=\"#${home[$p]}\">${home[$p]}</a>.</p>"; fi
	done
	echo '</section>'
}
contents() {	# contents ITEMS: links, each with the first words of its status
	awk -F '\t' '
		function html(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); return s }
		$1 != paper { if (paper != "") print "</ul>"; paper = $1; print "<h2>" paper "</h2>\n<ul>" }
		{
			status = class = $6
			sub(/[:,].*/, "", status)
			sub(/[:,].*/, "", class)
			gsub(/ /, "-", class)
			printf "<li class=\"%s\"><a href=\"#%s\">%s: ", html(class), $2, $3
			print html($4) "</a> <small>" html(status) "</small></li>"
		}
		END { print "</ul>" }' <<<"$1"
}
page() {
	local line fields paper='' p
	while IFS= read -r line; do
		IFS=$'\t' read -ra fields <<<"$line"
		for p in ${fields[4]#-}; do
			[[ -n "${home[$p]-}" && $p != "${fields[1]}"?([a-z]) ]] || home[$p]=${fields[1]}
		done
	done <<<"$1"
	while IFS= read -r line; do
		IFS=$'\t' read -ra fields <<<"$line"
		[ "${fields[0]}" = "$paper" ] || echo "<h2>${fields[0]}</h2>"
		paper=${fields[0]}
		item "${fields[@]}"
	done <<<"$1" >"$part/items"
	cat <<H
<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>ptqtools: tables and figures of four papers</title>
<style>
$(cat "$lib/page.css")
</style>
</head>
<body>
<header>
<h1>Tables and figures of four papers, with our numbers</h1>
<p>ptqtools $(eval-ppl --version | sed 's/.* //; q' | html), $(date '+%F %H:%M'), $(uname -n | html), $(nproc)
processors$(sed -n '/^model name/{s/.*:/,/; p; q}' /proc/cpuinfo | html). Columns in colour are the paper's numbers.
± is one standard error. The line below a row is the command that made its numbers: click it for all commands since the
import of the model. Hover over a number for all its digits.</p>
<p>Models: the embedded ones. Settings: $(for s in "${settings[@]}"; do
	[ -z "${!s-}" ] || printf '%s=%s, ' "$s" "${!s}"; done | html)the defaults in the help of the scripts. Agrees,
differs and the like are from docs/papers.md, for the runs of docs/results: they are not computed from the numbers
below.</p>
H
	[ ${#failed[@]} = 0 ] || echo "<p class=missing>Failed: $(linked "${!failed[@]}")</p>"
	[ ${#missing[@]} = 0 ] || echo "<p class=missing>Missing: $(linked "${!missing[@]}")</p>"
	echo '</header>'
	echo '<nav aria-label=Contents>'
	contents "$1"
	echo '</nav>'
	echo '<main>'
	cat "$part/items"
	echo '</main>'
	echo '</body>'
	echo '</html>'
}
linked() { for p; do echo "<a href=\"#${home[$p]}\">$p</a>"; done | sort | paste -sd , | sed 's/,/, /g'; }
