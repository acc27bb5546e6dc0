#!/usr/bin/env bash
# fbquant-figure4.sh -- FBQuant figure 4: operations and time of a layer's main path and of its branch
#
# A layer of 4096 × 4096 in groups of 128, 4 and 3 bits, with a branch of f16: over ranks at one row of x, over
# rows of x at rank 128. Times come from the measuring program of the source tree, build/tests/bench/branches
# (`make bench` builds it), or from PTQ_BRANCHES. Left: multiplications and time of the branch in per cent of
# the main path, one row of x; right: time over that of fp16, rank 128. The branch is computed in one product with
# the main path (fused) or as separate products (unfused). PTQ_RUNS: measurements of each (15); PTQ_THREADS: threads
# (all).
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
