#!/usr/bin/env bash
# fbquant-figure4.sh -- FBQuant figure 4: operations and time of a layer's main path and of its branch
#
# A layer of 4096 × 4096 in groups of 128, 4 and 3 bits, with a branch in f16: several ranks with one row of x, and
# several numbers of rows of x at rank 128. Left plot: multiplications and time of the branch in per cent of the main
# path, one row of x. Right plot: time relative to fp16, rank 128. fused: the branch is computed in one product with
# the main path; unfused: as separate products. Times come from the measuring program build/tests/bench/branches of
# the source tree (`make bench` builds it), or from PTQ_BRANCHES. PTQ_RUNS: number of measurements (15).
# PTQ_THREADS: threads (all).
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
branches=$(program PTQ_BRANCHES branches)
enter "$name" "$(machine; echo "${PTQ_THREADS:-}")"

keep layer.tsv "$branches" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-15}" layer
run_steps

awk -f "$lib/fbquant-figure4.awk" layer.tsv layer.tsv >"$part/figure4.tsv"
table figure4
about="groups of 128, ${PTQ_THREADS:-$(nproc)} threads" plot figure4
say "the paper (RTX 3090, rank 128): 6.25 % more multiplications;" \
	"unfused 20 % more time when prefilling, up to four times when decoding"
