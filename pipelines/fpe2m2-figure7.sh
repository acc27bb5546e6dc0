#!/usr/bin/env bash
# fpe2m2-figure7.sh -- FPE2M2 figure 7: products from packed weights against fp16, for 1 to 16 columns
#
# A matrix of 11008 × 4096 in groups of 128, from memory, times as many columns as
# sequences are decoded together. Times come from the measuring program of the
# source tree, build/tests/bench/products (`make bench` builds it), or from
# PTQ_PRODUCTS. Above: times as fast as fp16 in the same run; below: the same
# as operations per second under the roofline of the machine: bytes of weights at
# the measured rate of reading, and the peak of fp32, which `kernels` next to that
# program measures. PTQ_RUNS: measurements of each (15).
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
products=$(program PTQ_PRODUCTS products kernels) kernels=$(dirname "$products")/kernels
enter "$name" "$(machine)"

keep batch.tsv "$products" -r "${PTQ_RUNS:-15}" batch
keep peak.tsv "$kernels" peak
run_steps

awk -f "$lib/fpe2m2-figure7.awk" batch.tsv batch.tsv >"$part/figure7.tsv"
mv -f "$part/figure7.tsv" .
# 10⁹ operations and bytes a second
peak=$(awk -F '\t' '$1 == "peak-f32" && $2 == "ours" { print $3 }' peak.tsv)
rate=$(awk -F '\t' '$1 == "read" && $2 == 1 { print 1e-9 * $4 / $3 }' batch.tsv)
about="groups of 128" RATE=$rate PEAK=$peak plot figure7
say "the paper (RTX 4070 Ti, H100) prints its figure without numbers: E2M2 close to INT5, NF5 behind"
