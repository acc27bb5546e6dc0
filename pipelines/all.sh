#!/usr/bin/env bash
# all.sh [PIPELINE...] -- every table and figure of the papers next to ours, on one page
#
# Runs each PIPELINE (for example dpq-table4) on the embedded models. The default is every pipeline that
# docs/papers.md names for a table or a figure. Then writes PTQ_RESULTS/index.html (results/index.html): the finished
# tables and plots, the paper's numbers next to ours, and for each row the commands that made it. Finished steps are
# not repeated. A pipeline that fails is named, here and on the page, and the status is 1. Pipelines that measure time
# need the programs of `make bench`.
#
# All pipelines take roughly two hours of processor time. This is an estimate from a few measured steps: about 30
# seconds for each of some 180 quantized models, and minutes for FBQuant's branches and the measurements of time.
#
# --page: runs nothing, and writes the page from the results that exist.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=pipelines/lib/page.sh
. "$lib/page.sh"
about_inputs() { :; }
page=''
for a in "$@"; do
	shift
	if [ "$a" = --page ]; then page=yes; else set -- "$@" "$a"; fi
done
arguments 99 "$@"
items=$(awk -f "$lib/items.awk" "$here/../docs/papers.md")
mapfile -t pipelines < <(cut -f 5 <<<"$items" | tr ' ' '\n' | awk '$0 != "-" && !seen[$0]++')
for p in "${operands[@]}"; do
	[[ " ${pipelines[*]} " = *" $p "* ]] || fail 2 "$p: no table or figure of docs/papers.md names this pipeline"
done
[ ${#operands[@]} = 0 ] || pipelines=("${operands[@]}")

status=0 part=''
trap leave EXIT
if [ -z "$page" ]; then
	for p in "${pipelines[@]}"; do
		option=()
		[ $mode = make ] || option=("--$mode")
		"$here/$p.sh" ${option[@]+"${option[@]}"} || { failed[$p]=yes status=1; say "$p: failed"; }
	done
fi
[ $mode = make ] || exit $status

command -v h5dump >/dev/null || say 'h5dump is not installed: the page has no histories of files'
folder=${PTQ_RESULTS:-results}
mkdir -p -- "$folder"
folder=$(realpath -- "$folder")
part=$(mktemp -d "$folder/part.XXXXXX")
page "$items" >"$part/index.html"
mv -f "$part/index.html" "$folder"
say "page: $folder/index.html"
exit $status
