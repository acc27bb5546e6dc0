# shellcheck shell=bash
# fbquant.sh -- for FBQuant's pipelines
#
# All scripts share a folder, so that no run is repeated. By default weights are uintB in groups of PTQ_GROUP (128),
# ranks are a 32nd of a layer's inputs, and A and B are in f16.
#
#   row COLUMNS NAME       the numbers of a run that measure_file made
#   error_of REPORT, heldout_of DIFF   the error of all layers, with the Hessians of the run and with others
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2034
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits_a_weight output_error nll nll_rise nll_rise_se kl kl_se nll_delta nll_delta_se kl_delta kl_delta_se ppl'

row() { comparison "$1" "$2" "$2" "$(bits_of "$2")"; }
error_of() { awk -F '\t' "$(cat "$lib/report.awk")"' $1 == "all" { print shown($2) }' "$1"; }
heldout_of() { awk -F '\t' '$1 == "all" { print $7 }' "$1"; }
