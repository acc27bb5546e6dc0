# shellcheck shell=bash
# fpe2m2-common.sh -- begins FPE2M2's tables and figures; the runs that tables 1, 3, 4 and figure 2 have in common
#
# A run is FORMAT-channel (one scale a row, rounded to nearest), FORMAT-group
# (one for PTQ_GROUP columns, 128) or FORMAT-gptq (one a row, error compensated
# in group-aware order); scales are max|w| over the format's largest value, as
# the paper has them. Of each the bits stored, the error of weights and outputs,
# and on the test set nll and divergence from the unquantized model, paired by
# token with it and with another run. All scripts share a folder, so that no run
# is made twice. PTQ_LIMIT: first tokens of the calibration set only.
#
#   quantized RUN...       make these runs
#   row RUN                its line of a table, under $columns; of the model itself if RUN is unquantized-...
#   picture TABLE TITLE LABEL BITS PAPER   divergence, rise of the nll and the paper's numbers of TABLE.tsv: LABEL of a
#                          row in gnuplot's words, BITS the first of $columns, PAPER what the paper's number is
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
begin fpe2m2 "$@"
group=${PTQ_GROUP:-128}
# shellcheck disable=SC2034
columns='bits\tbits_16_bit_scales\tweight_error\toutput_error\tnll\tnll_rise\tnll_rise_se\tkl\tkl_se\ttop_agreement\tagainst\tnll_delta\tnll_delta_se'

# The run that a run is paired with: E2Mx with its scales and as many bits; of E2Mx itself that with a scale a row.
pair() {
	local format=${1%-*} how=${1#*-} bits
	case $format in
		e2m*) echo "$format-channel" ;;
		e*) echo "e2m$((${format:1:1} + ${format:3:1} - 2))-$how" ;;
		*) bits=${format//[a-z]/}; echo "e2m$((bits - 3))-$how" ;;
	esac
}
options() { case ${1#*-} in channel) echo "--group channel --compensate none";; group) echo "--group $group --compensate none";;
	gptq) echo "--group channel --order order.h5";; esac; }
run() {	# the command that makes a run, unless it was made
	local record='' to=$part/$1
	[[ $1 = e2m* ]] && record="-o $1.record"
	[ "$(pair "$1")" = "$1" ] || record+=" --paired $(pair "$1").record"
	[ -e "$1.tsv" ] || echo "dpq-run --storage ${1%-*} $(options "$1") --scale-search minmax --hessian hessian.h5 model.h5 -o $to.h5 2>$to.layers &&" \
		"tensor-stats $to.h5 >$to.stats && tensor-diff -q --reference model.h5 $to.h5 >$to.diff &&" \
		"eval-ppl --tokens test.h5 ${window[*]} $record $to.h5 >$to.paired &&" \
		"eval-ppl --tokens test.h5 ${window[*]} --reference model.h5 $to.h5 >$to.tsv && rm $to.h5 &&" \
		"mv -f $to.layers $to.stats $to.diff $to.paired $to.tsv . || { grep ^dpq-run: $to.layers >&2; exit 1; }"
}
# Those that others are paired with come before them: E2Mx with a scale a row, then the other E2Mx.
quantized() {
	local r runs
	calibrate
	once order.h5 gar-order --group channel hessian.h5
	keep reference.stats tensor-stats model.h5
	keep reference.tsv eval-ppl --tokens test.h5 "${window[@]}" model.h5
	runs=$(for r in "$@"; do echo "$r"; pair "$r"; pair "$(pair "$r")"; done | sort -u)
	say "quantizing and measuring: ${runs//$'\n'/ }"
	for r in $runs; do case $r in e2m*-channel) run "$r";; esac; done | each
	for r in $runs; do case $r in e2m*-channel) ;; e2m*) run "$r";; esac; done | each
	for r in $runs; do case $r in e2m*) ;; *) run "$r";; esac; done | each
}
row() { if [[ $1 = unquantized-* ]]; then unquantized; else awk -v OFS='\t' -F '\t' -v against="$(pair "$1")" -v run="$1" '
	FILENAME ~ /stats$/ { if ($1 != "layer" && $1 != "all") format = $2; if ($1 == "all") bits = $7; next }
	$1 == "all" { if (FILENAME ~ /diff$/) weight = $4; else output = $2; next }
	FILENAME ~ /tsv$/ { v[$1] = $2 } FILENAME ~ /paired$/ { pair[$1] = $2 }
	END { split(format, n, /[a-z]/); code = format ~ /^e/ ? 1 + n[2] + n[3] : n[length(n)]
		print bits, code + (bits - code) / 2, weight, output, v["nll"], v["reference_nll_delta"], v["reference_nll_delta_se"], v["kl"], v["kl_se"],
			v["top_agreement"], against == run ? "" : against, against == run ? "" : pair["paired_nll_delta"], against == run ? "" : pair["paired_nll_delta_se"] }' \
	"$1.stats" "$1.diff" "$1.layers" "$1.paired" "$1.tsv"; fi; }
unquantized() { awk -v OFS='\t' -F '\t' 'FNR == NR { if ($1 != "layer" && $1 != "all") bits = $2 == "f32" ? 32 : 16; next } { v[$1] = $2 }
	END { print bits, bits, 0, 0, v["nll"], 0, 0, 0, 0, 1, "", "", "" }' reference.stats reference.tsv; }
picture() { sed "s/@LABEL/$3/" <<'G' | table=$1 title=$2 bits=$4 paper=$5 plot "$1"
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced; set grid x y; set key off; set bars 0.4
table = system("echo $table"); bits = int(system("echo $bits")); rows = int(system("grep -c . $table.tsv")) - 1
label(dummy) = @LABEL
file = table.".tsv"; set yrange [-rows + 0.4:0.6]
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1180,150 + 34 * rows font "sans,13" background "white" } else { set terminal pngcairo size 1180,150 + 34 * rows font "sans,11" }
	set output part.table.".".t
	set multiplot title system("echo \"$title\"")."\nbars: one standard error over tokens" noenhanced
	set tmargin 4; set bmargin 4; set format y "%s"
	set lmargin at screen 0.13; set rmargin at screen 0.42; set xlabel "KL divergence from the unquantized model, nats a token" noenhanced; set logscale x; set format x "10^{%T}"
	plot file every ::1 using (column(bits + 7) > 0 ? column(bits + 7) : NaN):(-$0):(column(bits + 8)):ytic(label(0)) with xerrorbars pt 7 ps 1.2 lw 2 lc "#4477aa"
	set format y ""; unset logscale x; set format x "%g"
	set lmargin at screen 0.45; set rmargin at screen 0.70; set xlabel "rise of the nll, 1/1000 nat a token" noenhanced
	plot file every ::1 using (1000 * column(bits + 5)):(-$0):(1000 * column(bits + 6)) with xerrorbars pt 7 ps 1.2 lw 2 lc "#cc6677"
	set lmargin at screen 0.74; set rmargin at screen 0.97; set xlabel system("echo \"$paper\"") noenhanced
	plot file every ::1 using (column(bits + 13)):(-$0) with points pt 5 ps 1.2 lc "#777777"
	unset multiplot; unset ytics; set ytics scale 0 noenhanced
}
G
}
