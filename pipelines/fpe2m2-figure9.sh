#!/usr/bin/env bash
# fpe2m2-figure9.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 figure 9: the spread of the weights of a model's layers
#
# sigma: standard deviation of the weights of an output channel, divided by their largest magnitude. The table has
# its percentiles over the channels of every layer, and the share of channels between 0.12 and 0.28, where the paper
# finds 97 %. gaussian: sigma of a channel of normal weights with the same number of inputs (its largest weight is at
# the median of such maxima). It shows that a narrow layer has a large sigma in any model. TEST and CALIBRATION are
# not read; they only select the results folder.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
begin fpe2m2 "$@"
step "exmy-sweep --tsv --table layer model.h5 >layer.tsv"
step "tensor-stats model.h5 >reference.stats"
run_steps

# for each number of inputs: the sigma of a channel of normal weights
cut -f 6 reference.stats | grep -x '[0-9][0-9]*' | sort -nu | while read -r n; do
	gnuplot -d -e "set print '-'; print sprintf('%d %.4f', $n, 1 / invnorm((1 + 0.5 ** (1.0 / $n)) / 2))"
done >"$part/gaussian"
awk -f "$lib/fpe2m2-figure9.awk" "$part/gaussian" reference.stats layer.tsv >"$part/figure9.tsv"
table figure9
plot figure9
