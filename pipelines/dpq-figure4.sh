#!/usr/bin/env bash
# dpq-figure4.sh -- DPQ figure 4: projected speed-up of W4A8 and W8A8 over W4A16
#
# Llama 2 70B and Qwen 2 72B on one Gaudi 2, Gaudi 3, H100 or H200. Only the shapes of the models are used; the man
# page of `roofline` lists what the projection takes into account. Prompts of 128 to 32768 tokens, and 128, 512 or
# 2048 generated tokens. The table has all four accelerators, the plot has the paper's two. The paper's figure has no
# numbers; its text has the largest speed-ups: 3 over W4A16, 1.4 over W8A8.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
enter "$name" ''

step "roofline --models llama-2-70b,qwen2-72b --hardware gaudi2,gaudi3,h100,h200 --formats W4A16,W8A8,W4A8" \
	"--prompt 128,256,512,1024,2048,4096,8192,16384,32768 --generate 128,512,2048 >figure4.tsv"
run_steps

show figure4
say "the largest speed-ups of W4A8"
awk -f "$lib/dpq-figure4.awk" figure4.tsv >"$part/largest.tsv"
table largest
plot figure4
say "the paper: up to 3 times W4A16, up to 1.4 times W8A8"
