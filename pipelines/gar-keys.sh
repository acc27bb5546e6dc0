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
# mean over layers, its standard error over layers. nll_delta, kl_delta: the same
# for nll and for KL from the unquantized model, paired, with standard errors over
# windows. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
: "${PTQ_TOKENS:=16320}"
begin "$name" "$@"
group=${PTQ_GROUP:-32}

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

calibrate
# shellcheck disable=SC2086
orders | while IFS=$'\t' read -r order options _; do
	[[ $options = --order* ]] || options+=" --group $group"
	once "$order.order" gar-order -q $options hessian.h5
done

say "quantizing and measuring"
for scheme in W4A16 W4A8; do take $scheme max ""; done | each
orders | while IFS=$'\t' read -r order _ static; do for scheme in W4A16 W4A8; do take $scheme "$order" "$static"; done; done | each

{
	printf 'scheme\torder\t%b\n' "$compared"
	for scheme in W4A16 W4A8; do orders | while IFS=$'\t' read -r order _; do
		values=$(compared "$scheme-$order" $scheme-max)
		printf '%s\t%s\t%s\n' $scheme "$order" "$values"
	done; done
} >"$part/keys.tsv"
table keys

plot keys <<'G'
set datafile separator "\t"; set border 3; set tics nomirror; set xtics scale 0 noenhanced; set grid y; set xzeroaxis lt -1; set xrange [-0.6:8.6]
set linetype 1 lc "#4477aa" lw 2 pt 5; set linetype 2 lc "#cc6677" lw 2 pt 7; set bars 0.4; set lmargin 11; set bmargin 3
label(o) = o eq "max" ? "max\n(paper)" : o[strlen(o)-5:] eq "static" ? o[:strlen(o)-7].",\nstatic" : o
scheme(i) = word("W4A16 W4A8", i); about(i) = scheme(i).(i == 1 ? " (GPTQ, 16-bit arithmetic)" : " (DPQ, FP8 arithmetic)")
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 820,640 font "sans,13" background "white" } else { set terminal pngcairo size 820,640 font "sans,11" }
	set output part."keys.".t
	set multiplot layout 2,1 title "4-bit weights quantized in different orders, against groups ranked by their largest diagonal (max)\nbars: one standard error, over layers and over windows" noenhanced
	do for [p=0:1] {
		set ylabel p ? "change of KL from the\nunquantized model,\n1/1000 nat a token" : "change of the\noutput error, %"; if (p) { set key off } else { set key top left Left reverse }
		plot "< grep W4A16 keys.tsv" using 0:(0):xtic(label(strcol(2))) with dots lc bgnd notitle, for [i=1:2] "< grep '^".scheme(i)."\t' keys.tsv" \
			using ($0 + 0.16 * (i - 1.5)):(p ? 1000 * $13 : $4):(p ? 1000 * $14 : $5) with yerrorbars lt i title about(i)
	}
	unset multiplot
}
G
say "the paper (Llama-3.1-8B, perplexity, W4A16 and W4A8): full 6.597 6.679, gar by max 6.600 6.704, none 7.680 32.812"
