# shellcheck shell=bash
# fbquant.sh -- begins FBQuant's pipelines: quantized models by the commands given, and what is measured of each
#
# All scripts share a folder, so that no run is made twice. Weights are uintB in groups of PTQ_GROUP (128), ranks a
# 32nd of a layer's inputs, A and B in f16, unless a script says otherwise.
#
#   run NAME BASE COMMAND  the step of a run: of the model that the command writes, NAME.report, what it says of the
#                          layers; NAME.stats, of tensor-stats; NAME.tsv, its nll and divergence from the model,
#                          paired with BASE's, which keeps its record
#   row COLUMNS NAME       its numbers under $columns
#   error_of REPORT, heldout_of DIFF   the error of all layers, under the Hessians of the run and under others
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
begin fbquant "$@"
# shellcheck disable=SC2034
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits_a_weight output_error nll nll_rise nll_rise_se kl kl_se nll_delta nll_delta_se kl_delta kl_delta_se ppl'

run() {
	local record="--paired $2.record"
	[ "$1" != "$2" ] || record="-o $2.record"
	step "$3 -q --report $1.report -o $1.h5 && tensor-stats -q $1.h5 >$1.stats &&" \
		"eval-ppl --tokens test.h5 $window --reference model.h5 $record $1.h5 >$1.tsv && rm $1.h5"
}
row() { awk -f "$lib/report.awk" -f "$lib/fbquant.awk" "$2.stats" "$2.report" "$2.tsv"; }
error_of() { awk -F '\t' "$(cat "$lib/report.awk")"' $1 == "all" { print shown($2) }' "$1"; }
heldout_of() { awk -F '\t' '$1 == "all" { print $7 }' "$1"; }
