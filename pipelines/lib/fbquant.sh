# shellcheck shell=bash
# fbquant.sh -- for FBQuant's pipelines
#
# All scripts share a folder, so that no run is repeated. By default weights are uintB in groups of PTQ_GROUP (128),
# ranks are a 32nd of a layer's inputs, and A and B are in f16.
#
#   row COLUMNS RUN BASE   the numbers of a run that measure_file made
#   errors COLUMNS RUN     the error of all layers, with the Hessians of the run and with others (RUN.diff)
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2034
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits_a_weight output_error nll nll_rise nll_rise_se kl kl_se nll_delta nll_delta_se kl_delta kl_delta_se ppl'

row() { comparison "$1" "$2" "$3" "$(bits_of "$2")"; }
errors() {
	local heldout
	heldout=$(over_draws "$2.diff" all output_error)
	over_draws "$2.report" all | sed "s/\$/\t$heldout/"
}
