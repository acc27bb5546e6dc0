#!/usr/bin/env bash
# sequential.sh [MODEL [TEST [CALIBRATION]]] -- what it is worth to calibrate behind quantized layers
#
# 4-bit weights in groups of PTQ_GROUP (128), by GPTQ (W4A16) and by DPQ for FP8
# arithmetic with static activation scales (W4A8), in three orders: with the Hessians of the
# unquantized model (one-shot), and with each layer's Hessian of what the quantized
# layers before it make of the same tokens (sequential). nll_rise and kl are from the
# unquantized model, nll_delta and kl_delta are sequential less one-shot; all are
# paired, with standard errors over windows. Times are of both ways from tokens to quantized model, alternating,
# medians of PTQ_RUNS (3) runs. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
begin "$name" "$@"
weights="--storage uint4 --group ${PTQ_GROUP:-128}" tokens="--tokens calib.h5 ${window[*]} ${PTQ_LIMIT:+--limit $PTQ_LIMIT}"

compute() { case $1 in W4A8) echo e4m3fn;; *) echo none;; esac; }
order() { case $1 in gar) echo "--order gar --group ${PTQ_GROUP:-128}";; *) echo "--order $1";; esac; }
both() { for s in W4A16 W4A8; do for o in none gar full; do "$@" $s $o; done; done; }
one_shot() { measure "$1-$2" "$1-$2" "$weights" --compute "$(compute "$1")" --order "$2.h5"; }
sequential() { measure "$1-$2-sequential" "$1-$2" "$weights" --compute "$(compute "$1")" --sequential "$tokens" --reorder "$2"; }

calibrate
# shellcheck disable=SC2046
for o in none gar full; do once $o.h5 gar-order -q $(order $o) hessian.h5; done
say "quantizing and measuring, twelve times"
both one_shot | each
both sequential | each
rows() {
	local suffix numbers
	for suffix in '' -sequential; do
		numbers=$(compared "$1-$2$suffix" "$1-$2" | cut -f 1,4-12)
		suffix=${suffix#-}
		printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${suffix:-one-shot}" "$numbers"
	done
}
{
	printf 'scheme\torder\tcalibration\toutput_error\tnll\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tkl\tkl_se\tkl_delta\tkl_delta_se\n'
	both rows
} >"$part/sequential.tsv"
table sequential

# shellcheck disable=SC2046,SC2086
in_turn() {
	hessian-accum -q $tokens model.h5 -o "$part/h.h5" && gar-order -q $(order gar) "$part/h.h5" -o "$part/o.h5" &&
		dpq-run -q $weights --compute "$1" --hessian "$part/h.h5" --order "$part/o.h5" model.h5 -o "$part/q.h5"
}
# shellcheck disable=SC2086
at_once() { dpq-run -q $weights --compute "$1" --sequential $tokens --reorder gar model.h5 -o "$part/q.h5"; }
seconds() { local TIMEFORMAT='%R %U %S'; { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ printf "\t%s\t%s", $1, $2 + $3 }'; }
median() { awk -F '\t' -v s="$1" '$1 == s { print '"$2"' }' "$part/times" | sort -g | awk '{ v[NR] = $1 } END { printf "\t%.3g", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
say "timing, with gar"
for ((i = 0; i < ${PTQ_RUNS:-3}; i++)); do for s in W4A16 W4A8; do
	one=$(seconds in_turn "$(compute $s)")
	two=$(seconds at_once "$(compute $s)")
	echo "$s$one$two"
done; done >"$part/times"
{
	printf 'scheme\tone_shot\tsequential\tratio\tratio_of_processor_time\n'
	# shellcheck disable=SC2016
	for s in W4A16 W4A8; do echo "$s$(for value in '$2' '$4' '$4 / $2' '$5 / $3'; do median $s "$value"; done)"; done
} >"$part/seconds.tsv"
table seconds

plot sequential <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set ylabel "KL from the unquantized model,\nnats a token"; set yrange [0:*]; set grid y; set border 3; set tics nomirror; set lmargin 12
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,440 font "sans,13" background "white" } else { set terminal pngcairo size 820,440 font "sans,11" }
	set output part."sequential.".t
	set multiplot layout 1,2 title "Calibrated on the unquantized model, and behind quantized layers\nbars: one standard error over windows" noenhanced
	do for [s in "W4A16 W4A8"] {
		set title s
		plot for [c in "one-shot sequential"] "< grep '^".s."\t.*".c."' sequential.tsv" using 10:11:xtic(2) title c
	}
	unset multiplot
}
G
