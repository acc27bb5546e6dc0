#!/usr/bin/env bash
# fbquant-figure7.sh -- FBQuant figure 7: tokens a second of Llama-2-7B's linear layers, one row of x
#
# fp16, and 4 or 3 bits in groups of 128: without a branch, with one of rank 128 in f16 as three products (plain),
# and as one (fused). The seven linear layers of each of the 32 blocks, weights from memory; no attention, norms
# or head, so that these are rates of linear layers only. Times come from the measuring program of the source
# tree, build/tests/bench/branches (`make bench` builds it), or from PTQ_BRANCHES. PTQ_RUNS: measurements of
# each (15); PTQ_THREADS: threads (all).
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
