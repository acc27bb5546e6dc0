#!/usr/bin/env bash
# plots.sh [PLOT...] -- draws these plots of this folder, or all, again from its tables, as `plot` of the pipelines draws
# them (make plots)
#
# A line for each plot, with | between: its name, which its table has, too; the script in pipelines/plots, whose name
# ends in that of the pipeline's table; the model, the groups and the number of tokens; more, with ; between: variables
# of the script, draws=N for a table of N draws, and NAME.tsv=TABLE for further tables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$PWD drawn='' here=$(realpath ../../pipelines) part=.
# shellcheck source=pipelines/lib/tables.sh
. "$here/lib/tables.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

one() {	# one PLOT SCRIPT ABOUT MORE, in an empty folder
	local name=$1 table=$2 variables v
	case $2 in
		mquant-table9) table=tokens ;;
		gar-keys|*-table[0-9]*|*-figure[0-9]*|fbquant-*|*-channels) table=${2#*-} ;;
	esac
	ln -s "$folder/$name.tsv" "$table.tsv"
	IFS=';' read -ra variables <<<"$4"
	for v in "${variables[@]}"; do case $v in
		*.tsv=*) ln -s "$folder/${v#*=}" "${v%%=*}" ;;
		*) export "${v?}" ;;
	esac; done
	about=$3 model=${3%%,*} draw "$table" "$here/plots/$2.gp"
	mv "$table.svg" "$folder/$name.svg"
}
while IFS='|' read -r plot script about more; do
	[[ $# = 0 || " $* " = *" $plot "* ]] || continue
	drawn+=" $plot "
	mkdir "$tmp/$plot"
	(cd "$tmp/$plot" && one "$plot" "$script" "$about" "$more")
done <<'T'
dpq-figure4|dpq-figure4||
dpq-table1|dpq-table1|data/vlm, groups of 128, 528 questions|draws=5
dpq-table2-prose|dpq-table2|the embedded model, groups of 128, 32640 tokens|draws=5
dpq-table2-babyllama|dpq-table2|babyllama-105, groups of 32, 128 KiB of text|draws=5
dpq-table2-gemma3-scaled|dpq-table2|Gemma 3 270M (channels scaled), groups of 128, 9198 tokens|draws=3
dpq-table2-smollm2-rotated|dpq-table2|SmolLM2-135M, rotated, groups of 128, 9198 tokens|draws=3
dpq-table2-smollm2|dpq-table2|SmolLM2-135M, groups of 128, 9198 tokens|draws=5
dpq-table3-babyllama|dpq-table3|babyllama-105, groups of 32, 128 KiB of text|draws=5
dpq-table3-gemma3-scaled|dpq-table3|Gemma 3 270M (channels scaled), groups of 128, 9198 tokens|draws=3
dpq-table3-smollm2|dpq-table3|SmolLM2-135M, groups of 128, 9198 tokens|draws=5
dpq-table4-prose|dpq-table4|the embedded model, groups of 128, 32640 tokens, one draw|
fbquant-defaults-prose|fbquant-defaults|the embedded model, groups of 128, 32640 tokens|
fbquant-figure2-prose|fbquant-figure2|the embedded model, groups of 128, 32640 tokens|draws=5
fbquant-figure4|fbquant-figure4|groups of 128, one thread|
fbquant-figure7|fbquant-figure7|groups of 128, two threads|
fbquant-overfit-prose|fbquant-overfit|the embedded model, groups of 128, test set of 32640 tokens|draws=5
fbquant-ranks-prose|fbquant-ranks|the embedded model, groups of 128, 32640 tokens|draws=5
fbquant-table1-prose|fbquant-table1|the embedded model, groups of 128, 32640 tokens|draws=5
fbquant-table1-smollm2|fbquant-table1|SmolLM2-135M, groups of 128, 9198 tokens|draws=5
fbquant-table1-gemma3|fbquant-table1|Gemma 3 270M (channels scaled), groups of 128, 4088 tokens|draws=3
fp4-prose|fp4|the embedded model, groups of 16 or 32, 32640 tokens|draws=5
fpe2m2-figure2-babyllama|fpe2m2-figure2|babyllama-105, groups of 32, 128 KiB of text|draws=5
fpe2m2-figure2-gemma3|fpe2m2-figure2|Gemma 3 270M (channels scaled), groups of 128, 9198 tokens|draws=3
fpe2m2-figure2-prose|fpe2m2-figure2|the embedded model, groups of 128, 32640 tokens|draws=5
fpe2m2-figure2-smollm2|fpe2m2-figure2|SmolLM2-135M (channels scaled), groups of 128, 9198 tokens|draws=5
fpe2m2-figure3-babyllama|fpe2m2-figure3|babyllama-105|low=0.278737;high=0.429642;curve.tsv=fpe2m2-curve.tsv;error.tsv=fpe2m2-error-babyllama.tsv
fpe2m2-figure3-gemma3|fpe2m2-figure3|Gemma 3 270M (channels scaled)|low=0.180499;high=0.324996;curve.tsv=fpe2m2-curve.tsv;error.tsv=fpe2m2-error-gemma3.tsv
fpe2m2-figure3-prose|fpe2m2-figure3|the embedded model|low=0.264899;high=0.387003;curve.tsv=fpe2m2-curve.tsv;error.tsv=fpe2m2-error-prose.tsv
fpe2m2-figure3-smollm2|fpe2m2-figure3|SmolLM2-135M|low=0.20896;high=0.344568;curve.tsv=fpe2m2-curve.tsv;error.tsv=fpe2m2-error-smollm2.tsv
fpe2m2-figure7|fpe2m2-figure7|groups of 128, two threads|RATE=36.3;PEAK=395
fpe2m2-figure9-babyllama|fpe2m2-figure9|babyllama-105|
fpe2m2-figure9-gemma3|fpe2m2-figure9|Gemma 3 270M|
fpe2m2-figure9-prose|fpe2m2-figure9|the embedded model|
fpe2m2-figure9-smollm2|fpe2m2-figure9|SmolLM2-135M|
fpe2m2-table2|fpe2m2-table2|data/vlm, one scale per row, 528 questions|
fpe2m2-table4-babyllama|fpe2m2-table4|babyllama-105, groups of 32, 128 KiB of text|draws=5
fpe2m2-table4-prose|fpe2m2-table4|the embedded model, groups of 128, 32640 tokens|draws=5
fpe2m2-table4-smollm2|fpe2m2-table4|SmolLM2-135M (channels scaled), groups of 128, 9198 tokens|draws=5
fpe2m2-table4-gemma3|fpe2m2-table4|Gemma 3 270M (channels scaled), groups of 128, 9198 tokens|draws=3
frontier-gemma3|frontier|Gemma 3 270M (channels scaled), groups of 64, 4088 tokens, one draw|
frontier-prose|frontier|the embedded model, groups of 64, 32640 tokens|draws=3
frontier-smollm2|frontier|SmolLM2-135M (channels scaled), groups of 64, 9198 tokens, one draw|
gar-keys-babyllama|gar-keys|babyllama-105, groups of 32, 128 KiB of text|draws=5
gar-keys-gemma3|gar-keys|Gemma 3 270M (channels scaled), groups of 32, 4088 tokens|draws=3
gar-keys-prose|gar-keys|the embedded model, groups of 32, 16320 tokens|draws=5
gar-keys-smollm2|gar-keys|SmolLM2-135M, groups of 32, 9198 tokens|draws=5
input-error-prose|input-error|the embedded model, 16320 tokens|draws=3
mixed-bits-prose|mixed-bits|the embedded model, groups of 64, 32640 tokens|draws=3
mquant-figure1b|mquant-figure1b|data/vlm|
mquant-tokens|mquant-table9||
mquant-table1|mquant-table1|data/vlm, 528 questions|draws=5
mquant-table2|mquant-table2|data/vlm, 528 questions|draws=5
mquant-table3|mquant-table3|one thread|bytes.tsv=mquant-table3-bytes.tsv
mquant-table4|mquant-table4|data/vlm, groups of 128, 528 questions|draws=5
mquant-table5|mquant-table5|data/vlm, 528 questions|draws=5
mquant-table6|mquant-table6|data/vlm, groups of 128, 528 questions|draws=5
mquant-table7|mquant-table7|one thread|
outliers-channels-prose|outliers-channels|the embedded model|
outliers-channels-smollm2|outliers-channels|SmolLM2-135M|
outliers-prose|outliers|the embedded model, 32640 tokens|
outliers-smollm2|outliers|SmolLM2-135M, 16384 tokens|
quarot-prose|quarot|the embedded model, one scale per row, 32640 tokens|draws=5
quarot-smollm2|quarot|SmolLM2-135M, one scale per row, 9198 tokens|draws=3
recipes-babyllama|recipes|babyllama-105, groups of 32, 128 KiB of text|draws=5
recipes-gemma3|recipes|Gemma 3 270M (channels scaled), groups of 32, 4088 tokens|draws=3
recipes-prose|recipes|the embedded model, groups of 32, 16320 tokens|draws=5
recipes-smollm2|recipes|SmolLM2-135M, groups of 32, 9198 tokens|draws=5
scale-search-prose|scale-search|the embedded model, groups of 128, 16320 tokens|draws=5
sequential-babyllama|sequential|babyllama-105, groups of 32, 128 KiB of text|draws=5
smoothquant-prose|smoothquant|the embedded model, one scale per tensor, 32640 tokens|draws=5
solver-search-smollm2|solver-search|SmolLM2-135M, groups of 64, 9198 tokens|draws=3
T
for plot; do
	[[ $drawn = *" $plot "* ]] || { echo "plots.sh: $plot: no such plot; expected a name as in this file" >&2; exit 2; }
done
