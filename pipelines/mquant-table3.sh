#!/usr/bin/env bash
# mquant-table3.sh -- MQuant tables 3 and 10, figure 6: time and memory of a prefill by the size of an image
#
# One block of Qwen2-VL-7B's language model with random weights; the prompt is an image with 15 tokens of text around
# it. Weights in f16; in 4 bits (groups of 128) with 16-bit activations; and in 4 bits with activations in int8, with
# one scale per token, or one scale per modality and visual tokens first. Times, and as in the paper the speed-up over
# 16 bits in %. Memory: bytes of 28 such blocks in their file, with embedding and head in 16 bits, and peak memory of a
# process with one block. Times come from the measuring program build/tests/bench/modality of the source tree (`make
# bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: number of measurements (3). PTQ_THREADS: threads (all); with one
# thread, its processor time is measured.
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
say "the paper (RTX 6000 Ada): figure 6 without numbers, 20 % over a scale per token and 80 % over 16 bits"
