# items.awk -- the tables and figures of docs/papers.md: paper, id, item, title, pipelines, status, links to results
#
# Fields are separated by tabs, pipelines and links by blanks; - is an empty field. An id has the form of a pipeline's
# name: dpq-table4.
BEGIN { FS = " *[|] *"; OFS = "\t" }
/^## / { paper = substr($0, 4) }
/^[|] (table|figure) [0-9]+: / {
	item = title = $2
	sub(/:.*/, "", item)
	sub(/^[^:]*: /, "", title)
	id = tolower(paper) "-" item
	gsub(/ /, "", id)
	rest = $3 $4
	pipelines = ""
	while (match(rest, /pipelines\/[a-z0-9-]+\.sh/)) {
		pipelines = pipelines (pipelines == "" ? "" : " ") substr(rest, RSTART + 10, RLENGTH - 13)
		rest = substr(rest, RSTART + RLENGTH)
	}
	links = ""
	rest = $6
	while (match(rest, /\]\([^)]*\)/)) {
		links = links (links == "" ? "" : " ") substr(rest, RSTART + 2, RLENGTH - 3)
		rest = substr(rest, RSTART + RLENGTH)
	}
	print paper, id, item, title, pipelines == "" ? "-" : pipelines, $5, links == "" ? "-" : links
}
