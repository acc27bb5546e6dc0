# shellcheck shell=bash
# fpe2m2.sh -- the start of FPE2M2's tables and figures; the runs that tables 1, 3, 4 and figure 2 share
#
# A run is FORMAT-channel (one scale per row, rounded to nearest), FORMAT-group (one scale per PTQ_GROUP columns, 128)
# or FORMAT-gptq (one scale per row, error compensated in group-aware order). Scales are max|w| over the format's
# largest value, as in the paper. Measured are the bits stored, the errors of weights and outputs, and on the test set
# NLL and divergence from the unquantized model, paired by token with it and with another run. All scripts share a
# folder, so that no run is repeated. PTQ_LIMIT: only the first tokens of the calibration set.
#
#   quantized RUN...       the steps of these runs, and of the runs that they are paired with
#   row COLUMNS RUN        its row of a table, in the order of $columns; the row of the model if RUN is reference
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
begin fpe2m2 "$@"
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits bits_16_bit_scales weight_error output_error nll nll_rise nll_rise_se kl kl_se top_agreement against
	nll_delta nll_delta_se'

# The run that a run is paired with: E2Mx with the same scales and as many bits; for E2Mx, E2Mx with one scale per row.
pair() {
	local format=${1%-*} how=${1#*-} bits
	case $format in
		e2m*) echo "$format-channel" ;;
		e*) echo "e2m$((${format:1:1} + ${format:3:1} - 2))-$how" ;;
		*) bits=${format//[a-z]/}; echo "e2m$((bits - 3))-$how" ;;
	esac
}
options() { case ${1#*-} in
	channel) echo "--group channel --compensate none" ;;
	group) echo "--group $group --compensate none" ;;
	gptq) echo "--group channel --order order.h5" ;;
esac; }
run() {	# the steps of a run
	local record=''
	[[ $1 = e2m* ]] && record+=" -o $1.record"
	[ "$(pair "$1")" = "$1" ] || record+=" --paired $(pair "$1").record"
	step "dpq-run -q --storage ${1%-*} $(options "$1") --scale-search minmax --hessian hessian.h5" \
		"--report $1.report model.h5 -o $1.h5 &&" \
		"tensor-stats $1.h5 >$1.stats && tensor-diff -q --reference model.h5 $1.h5 >$1.diff &&" \
		"eval-ppl --tokens test.h5 $window --reference reference.h5$record $1.h5 >$1.tsv && rm $1.h5"
}
quantized() {
	local r
	calibrate
	step "gar-order --group channel hessian.h5 -o order.h5"
	step "tensor-stats model.h5 >reference.stats"
	for r; do
		run "$(pair "$(pair "$r")")"
		run "$(pair "$r")"
		run "$r"
	done
}
row() {
	local base
	if [ "$2" = reference ]; then
		awk -f "$lib/fpe2m2-model.awk" reference.stats reference.tsv
	else
		base=$(pair "$2")
		awk -v base="${base#"$2"}" -f "$lib/report.awk" -f "$lib/fpe2m2.awk" \
			"$2.stats" "$2.diff" "$2.report" "$2.tsv"
	fi
}
