#!/usr/bin/env bash
# fbquant-figure7.sh -- FBQuant figure 7: tokens a second of Llama-2-7B's linear layers, one row of x
#
# fp16, and 4 or 3 bits in groups of 128: without a branch, with a branch of rank 128 in f16 as three products
# (plain), and as one product (fused). Measured are the seven linear layers of each of the 32 blocks, with weights
# from memory. Attention, norms and head are not included, so these are rates of linear layers only. Times come from
# the measuring program build/tests/bench/branches of the source tree (`make bench` builds it), or from PTQ_BRANCHES.
# PTQ_RUNS: number of measurements (15). PTQ_THREADS: threads (all).
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
branches=$(program PTQ_BRANCHES branches)
enter "$name" "$(machine; echo "${PTQ_THREADS:-}")"

keep model.tsv "$branches" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-15}" model
run_steps

awk -f "$lib/fbquant-figure7.awk" model.tsv >"$part/figure7.tsv"
table figure7
about="groups of 128, ${PTQ_THREADS:-$(nproc)} threads" plot figure7
say "the paper (RTX 3090, whole model): fp16 48 tokens a second, int4 with a plain branch 46, FBQuant 61"
