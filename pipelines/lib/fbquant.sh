# shellcheck shell=bash
# fbquant.sh -- for FBQuant's pipelines
#
# All scripts share a folder, so that no run is repeated. By default weights are uintB in groups of PTQ_GROUP (128),
# ranks are a 32nd of a layer's inputs, and A and B are in f16.
#
#   quantized BITS WAY...  the steps of the runs wBITS-WAY; WAY: see fbquant-table1.sh and fbquant-figure2.sh
#   row COLUMNS RUN BASE   the numbers of a run that measure_file made
#   errors COLUMNS RUN     the error of all layers, with the Hessians of the run and with others (RUN.diff)
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2034
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits_a_weight output_error nll nll_rise nll_rise_se kl kl_se nll_delta nll_delta_se kl_delta kl_delta_se ppl'

quantized() {
	local way command weights="--storage uint$1 --group $group" in='--hessian hessian.h5 model.h5' eora rtn
	rtn="dpq-run --compensate none --scale-search minmax $weights"
	eora='fbq-run --method eora --hessian hessian.h5 --reference model.h5'
	for way in "${@:2}"; do
		case $way in
			RTN) command="$rtn $in" ;;
			AWQ)
				step "awq-scale -q $weights $in -o awq$1.h5"
				command="$rtn awq$1.h5" ;;
			OmniQuant) command="dpq-run --compensate none --scale-search learned $weights $in" ;;
			QuaRot)
				step "hadamard-rotate --seed 1 model.h5 -o rotated.h5"
				command="$rtn rotated.h5" ;;
			GPTQ) command="dpq-run --reorder none $weights $in" ;;
			GPTQ-GAR) command="dpq-run --reorder gar $weights $in" ;;
			GPTQ-32) command="dpq-run --reorder none --storage uint$1 --group 32 $in" ;;
			GPTQ-GAR-32) command="dpq-run --reorder gar --storage uint$1 --group 32 $in" ;;
			GPTQ+EoRA) command="dpq-run -q --reorder none $weights $in | $eora" ;;
			GPTQ-GAR+EoRA) command="dpq-run -q --reorder gar $weights $in | $eora" ;;
			FBQuant) command="fbq-run $weights $in" ;;
			SVD) command="fbq-run --method lowrank $weights $in" ;;
			LoftQ|SVDQuant|EoRA|CALDERA) command="fbq-run --method ${way,,} $weights $in" ;;
			*) fail 1 "$way: no such way" ;;
		esac
		measure_file "w$1-$way" "$command"
	done
}
row() {
	local bits
	bits=$(bits_of "$2")
	comparison "$1" "$2" "$3" "$bits"
}
errors() {
	local heldout
	heldout=$(over_draws "$2.diff" all output_error)
	over_draws "$2.report" all | sed "s/\$/\t$heldout/"
}
