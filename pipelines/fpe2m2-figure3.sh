#!/usr/bin/env bash
# fpe2m2-figure3.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 figure 3: the best split of exponent and mantissa for
# weights of each sigma
#
# Every ExMy of 4, 5 and 6 bits (E0My has the values of E1M(y-1)) and, dashed, NF. The plot has the exact mean squared
# error on N(0, sigma²) truncated to [-1, 1], with grid and weights scaled to the same range. The table has the sigmas
# at which E2Mx is the best of them, and at which each has its largest lead. Dots: layers of MODEL, each at the mean
# sigma of its channels. Shaded: nine tenths of MODEL's channels. Dotted: the paper's 0.12 to 0.28.
# TEST and CALIBRATION are not read; they only select the results folder.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
begin fpe2m2 "$@"
exmy=e1m2,e2m1,e3m0,e1m3,e2m2,e3m1,e4m0,e1m4,e2m3,e3m2,e4m1,e5m0

step "exmy-sweep --tsv --table curve --formats $exmy,nf4,nf5,nf6 --sigma 0.02:0.5:0.005 >curve.tsv"
step "exmy-sweep --tsv --table best --formats $exmy >best.tsv"
step "exmy-sweep --tsv --table crossover --formats $exmy,nf4,nf5,nf6 >crossover.tsv"
step "exmy-sweep --tsv --table layer model.h5 >layer.tsv"
step "exmy-sweep --tsv --table error --formats $exmy model.h5 >error.tsv"
run_steps

low=$(cell layer.tsv twentieth all) high=$(cell layer.tsv nineteen_twentieths all)
awk -v low="$low" -v high="$high" -f "$lib/fpe2m2-figure3.awk" best.tsv crossover.tsv >"$part/figure3.tsv"
table figure3
low=$low high=$high plot figure3
say "what it is drawn from: $work/curve.tsv, best.tsv, crossover.tsv, layer.tsv, error.tsv"
