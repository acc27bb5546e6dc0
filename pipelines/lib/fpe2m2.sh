# shellcheck shell=bash
# fpe2m2.sh -- for FPE2M2's tables and figures: the runs that tables 1, 3, 4 and figure 2 share
#
# A run is FORMAT-channel (one scale per row, rounded to nearest), FORMAT-group (one scale per PTQ_GROUP columns, 128)
# or FORMAT-gptq (one scale per row, error compensated in group-aware order). Scales are max|w| over the format's
# largest value, as in the paper. All scripts share a folder, so that no run is repeated. Draws change the
# weights of runs by GPTQ alone. With several draws the others are evaluated once, and a report for each draw has their
# output errors.
#
#   quantized RUN...       the steps of these runs, and of the runs that they are paired with
#   paper RUN              the average of Qwen2.5-7B-Instruct over eight tasks in the paper's table 4, or nothing
#   row COLUMNS RUN        its row of a table: $columns, then $more. bits: a weight, with scales in 32 bits
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns=$compared more=$'bits\tbits_16_bit_scales\tweight_error\ttop_agreement\tagainst'

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
quantized() {
	local r run command difference in='--hessian hessian.h5 model.h5'
	declare -A made=()
	calibrate
	step "gar-order --group channel hessian.h5 -o order.h5"
	for r; do for run in "$(pair "$r")" "$r"; do
		[ -z "${made[$run]-}" ] || continue
		made[$run]=yes
		command="dpq-run --storage ${run%-*} $(options "$run") --scale-search minmax"
		difference="tensor-diff -q --reference model.h5 $run.h5 >$run.diff"
		case $draws-$run in
			1-*|*-gptq) measure_file "$run" "$command $in" "$difference" ;;
			*)
				step "$command $in -q --report $run.report >/dev/null"
				step "$command model.h5 -q -o $run.h5 && $(measured "$run" "$difference")" ;;
		esac
	done; done
}
paper() { case $1 in
	int4-channel) echo 48.5 ;; int4-group) echo 69.4 ;; int4-gptq) echo 67.2 ;;
	e2m1-channel) echo 69.5 ;; e2m1-group) echo 71.2 ;; e2m1-gptq) echo 70.6 ;;
	int5-channel) echo 70.1 ;; int5-group) echo 71.4 ;; int5-gptq) echo 71.5 ;;
	e2m2-channel) echo 72.9 ;; e2m2-group) echo 72.7 ;; e2m2-gptq) echo 72.2 ;;
esac; }
row() {
	local bits error same code=${2%-*}
	case $code in
		e*) code=$((1 + ${code:1:1} + ${code:3:1})) ;;
		*) code=${code//[a-z]/} ;;
	esac
	bits=$(bits_of "$2")
	error=$(over_draws "$2.diff" all weight_error)
	same=$(over_draws "$2.tsv" top_agreement)
	comparison "$1" "$2" "$(pair "$2")" | tr -d '\n'
	printf '\t%s\t%s\t%s\t%s\t%s\n' "$bits" "$(awk "BEGIN { print ($code + $bits) / 2 }")" \
		"$error" "$same" "$(pair "$2")"
}
