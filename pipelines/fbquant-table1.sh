#!/usr/bin/env bash
# fbquant-table1.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant table 1: ways to quantize weights to 4 and 3 bits in groups of 128
#
# RTN: rounding to nearest, ranges as they are (minmax), as all methods with a branch round. GPTQ: dpq-run, whose scales
# are searched (mse), columns unordered; GPTQ-GAR: in group-aware order. AWQ: awq-scale, then RTN. OmniQuant: clipping
# learned by gradient (dpq-run --scale-search learned), nothing compensated. CALDERA, SVDQuant, FBQuant: with a branch of
# rank in/32 in f16; beside the paper's rows LoftQ, EoRA and a plain SVD of the error. +EoRA: a branch for what GPTQ has
# left, in either order; that inside CALDERA has none. A branch of this rank costs about one bit: GPTQ-32 and GPTQ-GAR-32
# spend that on groups of 32 instead, and what 4 bits give without a branch stands above the rows of 3 bits.
# bits_a_weight counts codes, scales, zero points and branches. kl is the divergence from the unquantized model, nll_rise
# the rise from its nll; kl_delta and nll_delta what they are above FBQuant's at the same bits; all paired, with standard
# errors over windows. paper_ppl: of Llama-2-7B on WikiText2, from 5.12. PTQ_GROUP: another group; PTQ_LIMIT: first tokens
# of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/fbquant-common.sh
. "$(dirname "$0")/fbquant-common.sh"

calibrate
for b in 4 3; do once awq$b.h5 awq-scale -q --storage uint$b --group "$group" --hessian hessian.h5 model.h5; done
ways() { cat <<W
RTN	dpq-run --compensate none --scale-search minmax --storage uint$1 --group $group --hessian hessian.h5 model.h5
GPTQ	dpq-run --reorder none --storage uint$1 --group $group --hessian hessian.h5 model.h5
GPTQ-GAR	dpq-run --reorder gar --storage uint$1 --group $group --hessian hessian.h5 model.h5
AWQ	dpq-run --compensate none --scale-search minmax --storage uint$1 --group $group awq$1.h5
OmniQuant	dpq-run --compensate none --scale-search learned --storage uint$1 --group $group --hessian hessian.h5 model.h5
SVD	fbq-run --method lowrank --storage uint$1 --group $group --hessian hessian.h5 model.h5
LoftQ	fbq-run --method loftq --storage uint$1 --group $group --hessian hessian.h5 model.h5
SVDQuant	fbq-run --method svdquant --storage uint$1 --group $group --hessian hessian.h5 model.h5
EoRA	fbq-run --method eora --storage uint$1 --group $group --hessian hessian.h5 model.h5
CALDERA	fbq-run --method caldera --storage uint$1 --group $group --hessian hessian.h5 model.h5
GPTQ+EoRA	dpq-run -q --reorder none --storage uint$1 --group $group --hessian hessian.h5 model.h5 | fbq-run --method eora --hessian hessian.h5 --reference model.h5
GPTQ-GAR+EoRA	dpq-run -q --reorder gar --storage uint$1 --group $group --hessian hessian.h5 model.h5 | fbq-run --method eora --hessian hessian.h5 --reference model.h5
GPTQ-32	dpq-run --reorder none --storage uint$1 --group 32 --hessian hessian.h5 model.h5
GPTQ-GAR-32	dpq-run --reorder gar --storage uint$1 --group 32 --hessian hessian.h5 model.h5
FBQuant	fbq-run --storage uint$1 --group $group --hessian hessian.h5 model.h5
W
}
paper() { case $1-$2 in 4-RTN) echo 5.27;; 4-GPTQ) echo 5.27;; 4-AWQ) echo 5.23;; 4-OmniQuant) echo 5.23;; 4-CALDERA) echo 5.26;; 4-SVDQuant) echo 5.30;;
	4-FBQuant) echo 5.18;; 3-RTN) echo 6.08;; 3-GPTQ) echo 5.96;; 3-AWQ) echo 5.82;; 3-OmniQuant) echo 5.78;; 3-CALDERA) echo 5.84;;
	3-SVDQuant) echo 6.90;; 3-FBQuant) echo 5.59;; *) echo ;; esac; }

say "quantizing and measuring"
for b in 4 3; do ways $b | while IFS=$'\t' read -r way command; do run "w$b-$way" "w$b-FBQuant" "$command"; done; done | made
{
	printf 'bits\tway\t%b\tpaper_ppl\n' "$columns"
	for b in 4 3; do ways $b | while IFS=$'\t' read -r way _; do printf '%s\t%s\t%s\t%s\n' $b "$way" "$(row "w$b-$way")" "$(paper $b "$way")"; done; done
} >"$part/table1.tsv"
table table1

plot table1 <<'G'
set style data histogram; set style histogram errorbars gap 1 lw 1.5; set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set ylabel "KL from the unquantized model, nats a token" noenhanced; set yrange [0:*]; set grid y; set border 3; set tics nomirror; unset key; set xtics rotate by -40 noenhanced
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1100,480 font "sans,14" background "white" } else { set terminal pngcairo size 1100,480 font "sans,11" }
	set output part."table1.".t
	set multiplot layout 1,2 title "Weights of 4 and 3 bits, without a branch and with one; bars: one standard error over windows" noenhanced
	do for [b=3:4] {
		set title sprintf("%d bits", 7 - b)
		plot sprintf("< awk -F '\\t' '$1 == %d' table1.tsv", 7 - b) using 8:9:xtic(2) lc rgb (b == 3 ? "#4477aa" : "#cc6677")
	}
	unset multiplot
}
G
