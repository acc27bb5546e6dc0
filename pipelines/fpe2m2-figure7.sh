#!/usr/bin/env bash
# fpe2m2-figure7.sh -- FPE2M2 figure 7: products from packed weights against fp16, for 1 to 16 columns
#
# A matrix of 11008 × 4096 in groups of 128, read from memory. Each sequence that is decoded adds one column. Upper
# plot: speed relative to fp16 in the same run. Lower plot: operations per second, under the roofline of the machine.
# The roofline is the bytes of weights at the measured rate of reading, and the peak of fp32. Times come from the
# measuring program build/tests/bench/products of the source tree (`make bench` builds it), or from PTQ_PRODUCTS; the
# program `kernels` next to it measures the peak. PTQ_RUNS: number of measurements (15).
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
products=$(program PTQ_PRODUCTS products kernels)
kernels=$(dirname "$products")/kernels
enter "$name" "$(machine)"

keep batch.tsv "$products" -r "${PTQ_RUNS:-15}" batch
keep peak.tsv "$kernels" peak
run_steps

awk -f "$lib/fpe2m2-figure7.awk" batch.tsv batch.tsv >"$part/figure7.tsv"
mv -f "$part/figure7.tsv" .
# in 10⁹ operations and 10⁹ bytes per second
peak=$(awk -F '\t' '$1 == "peak-f32" && $2 == "ours" { print $3 }' peak.tsv)
rate=$(awk -F '\t' '$1 == "read" && $2 == 1 { print 1e-9 * $4 / $3 }' batch.tsv)
about="groups of 128" RATE=$rate PEAK=$peak plot figure7
say "the paper (RTX 4070 Ti, H100) prints its figure without numbers: E2M2 close to INT5, NF5 slower"
