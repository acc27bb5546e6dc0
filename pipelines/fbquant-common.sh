# shellcheck shell=bash
# fbquant-common.sh -- shared by FBQuant's pipelines: makes quantized models by the commands given, and measures each
#
# All scripts share a folder, so that no run is made twice. Weights are uintB in groups of PTQ_GROUP (128), ranks a
# 32nd of a layer's inputs, A and B in f16, unless a script says otherwise.
#
#   run NAME BASE COMMAND...   the line that makes a run, unless it was made: of the model that the command writes,
#                          NAME.layers, what the command says of the layers; NAME.stats, of tensor-stats; NAME.tsv,
#                          its nll and divergence from the model, paired with BASE's, which keeps its record
#   made BASE...           the lines of standard input, those of the bases first
#   row NAME               its numbers under $columns
#   bits NAME              bits a weight of the run, everything counted
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
begin fbquant "$@"
# shellcheck disable=SC2034
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits_a_weight\toutput_error\tnll\tnll_rise\tnll_rise_se\tkl\tkl_se\tnll_delta\tnll_delta_se\tkl_delta\tkl_delta_se\tppl'

run() {
	local record="--paired $2.record" to=$part/$1
	[ "$1" != "$2" ] || record="-o $2.record"
	[ -e "$1.tsv" ] || echo "${*:3} -o $to.h5 2>$to.layers && tensor-stats -q $to.h5 >$to.stats &&" \
		"eval-ppl --tokens test.h5 ${window[*]} --reference model.h5 $record $to.h5 >$to.tsv && rm $to.h5 &&" \
		"mv -f $to.layers $to.stats $to.tsv . || { grep -e ^dpq-run: -e ^fbq-run: $to.layers >&2; exit 1; }"
}
made() {
	local lines
	lines=$(cat)
	{ grep -e '-o [^ ]*[.]record' <<<"$lines" || true; } | each
	{ grep -v -e '-o [^ ]*[.]record' <<<"$lines" || true; } | each
}
bits() { awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "bits") c = i } $1 == "all" { print $c }' "$1.stats"; }
row() { awk -v OFS='\t' -F '\t' -v bits="$(bits "$1")" '
	FILENAME ~ /layers$/ { if ($1 == "all") error = $2; next } { v[$1] = $2 }
	END { print bits, error, v["nll"], v["reference_nll_delta"], v["reference_nll_delta_se_windows"] + 0, v["kl"] + 0, v["kl_se_windows"] + 0,
		v["paired_nll_delta"] + 0, v["paired_nll_delta_se_windows"] + 0, v["paired_kl_delta"] + 0, v["paired_kl_delta_se_windows"] + 0, exp(v["nll"]) }' "$1.layers" "$1.tsv"; }
