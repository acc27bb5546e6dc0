#!/usr/bin/env bash
# gar-keys.sh [MODEL [TEST [CALIBRATION]]] -- by what to rank the groups of group-aware reordering
#
# DPQ ranks groups by their largest diagonal element of H and leaves other
# criteria open (section 4.4, appendix A). Here each of them, against the columns' own
# order and full reordering: carried to inference, and with static groups
# (parameters of the original groups of uncompensated weights), which for
# comparison the paper's key gets too. 4-bit weights in groups of PTQ_GROUP (32:
# there must be groups to rank), for 16-bit arithmetic (W4A16) and FP8 (W4A8).
# error_percent: change of tr(E H Eᵀ)/tr(W H Wᵀ) from the paper's key, geometric
# mean over layers, its standard error over layers. nll_delta: the same for the
# nll, paired by token. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
PTQ_TOKENS=${PTQ_TOKENS:-16320} . "$(dirname "$0")/common.sh" gar-keys "$@"
cd "$work"
group=${PTQ_GROUP:-32} limit=(${PTQ_LIMIT:+--limit "$PTQ_LIMIT"})

orders() { cat <<'O'
max	--key max
top10	--key top10
mean	--key mean
sum	--key sum
median	--key median
max-static	--key max	--static-groups
none	--order none
full	--order full
full-static	--order full	--static-groups
O
}

take() { measure "$1-$2" "$1-max" --storage uint4 --group "$group" --compute "$([ $1 = W4A8 ] && echo e4m3fn || echo none)" --order "$2.order" "$3"; }

say "calibrating"
once hessian.h5 hessian-accum --tokens calib.h5 "${window[@]}" "${limit[@]}" "$model"
[ -e reference.tsv ] || { eval-ppl --tokens test.h5 "${window[@]}" "$model" >reference.part && mv reference.part reference.tsv; }
# shellcheck disable=SC2086
orders | while IFS=$'\t' read -r order options _; do once "$order.order" gar-order --group "$group" $options hessian.h5; done

say "quantizing and measuring"
for scheme in W4A16 W4A8; do take $scheme max ""; done | each
orders | while IFS=$'\t' read -r order _ static; do for scheme in W4A16 W4A8; do take $scheme "$order" "$static"; done; done | each

{
	printf 'scheme\torder\toutput_error\terror_percent\terror_percent_se\tnll\tnll_rise\tnll_delta\tnll_delta_se\n'
	for scheme in W4A16 W4A8; do orders | while IFS=$'\t' read -r order _; do
		printf '%s\t%s\t%s\n' $scheme "$order" "$(compared "$scheme-$order" $scheme-max)"
	done; done
} >keys.tsv
show keys.tsv

gnuplot <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set xzeroaxis lt -1; set pointsize 1.3
set xtics noenhanced; set xrange [-0.6:8.6]; set linetype 1 lc "#4477aa" lw 2; set linetype 2 lc "#cc6677" lw 2; set bars 0.4
label(o) = o eq "max-static" ? "max,\nstatic" : o eq "full-static" ? "full,\nstatic" : o eq "max" ? "max\n(paper)" : o
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,640 font "sans,13" background "white" } else { set terminal pngcairo size 820,640 font "sans,11" }
	set output "keys.".t
	set multiplot layout 2,1 title "4-bit weights quantized in different orders, against groups ranked by their largest diagonal (max)\nbars: one standard error" noenhanced
	set ylabel "output error, %" noenhanced; set key top left
	plot for [i=1:2] s=word("W4A16 W4A8", i) "< grep '^".s."\t' keys.tsv" using ($0 + 0.16 * (i - 1.5)):4:5:xtic(label(strcol(2))) with yerrorbars pt 5 + 2 * (i - 1) lt i title s.(i == 1 ? " (GPTQ, 16-bit arithmetic)" : " (DPQ, FP8 arithmetic)")
	set ylabel "nll, nats a token" noenhanced; set key off
	plot for [i=1:2] s=word("W4A16 W4A8", i) "< grep '^".s."\t' keys.tsv" using ($0 + 0.16 * (i - 1.5)):8:9:xtic(label(strcol(2))) with yerrorbars pt 5 + 2 * (i - 1) lt i
	unset multiplot
}
G
say "table: $work/keys.tsv  plot: $work/keys.svg, $work/keys.png"
say "the paper (Llama-3.1-8B, perplexity, W4A16 and W4A8): full 6.597 6.679, gar by max 6.600 6.704, none 7.680 32.812"
