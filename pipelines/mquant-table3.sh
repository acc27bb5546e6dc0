#!/usr/bin/env bash
# mquant-table3.sh -- MQuant tables 3 and 10, figure 6: time and memory of a prefill by the size of a picture
#
# One block of Qwen2-VL-7B's language model, of random numbers, a picture of so many pixels between 15 tokens of
# text: weights in f16, in 4 bits only (groups of 128), and in 4 bits with inputs rounded to int8 under a scale of
# each token, or of each modality with the visual tokens first. Times as in the paper, how much faster than 16
# bits, in %. Memory: bytes of 28 such blocks in their file, with embedding and head in 16 bits, and what a process
# with one block held. Times come from the measuring program of the source tree, build/tests/bench/modality
# (`make bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: measurements of each (3); PTQ_THREADS: threads (all);
# with one, times are the thread's own.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
modality=$(program PTQ_MODALITY modality)
enter "$name" "$(machine; echo "${PTQ_THREADS:-}")"

keep block.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-3}" block
keep memory.tsv "$modality" -j "${PTQ_THREADS:-0}" -r 1 memory
run_steps

awk -f "$lib/mquant-table3.awk" block.tsv block.tsv >"$part/table3.tsv"
table table3
awk -f "$lib/mquant-table3-bytes.awk" memory.tsv >"$part/bytes.tsv"
table bytes
about="${PTQ_THREADS:-$(nproc)} threads" plot table3
say "the paper (RTX 6000 Ada): figure 6 without numbers, 20 % over a scale a token and 80 % over 16 bits"
