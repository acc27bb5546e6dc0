#!/usr/bin/env bash
# mquant-table7.sh -- MQuant tables 4 and 7: time of linear layers, scales per token, per tensor and per modality
#
# The linear layers of one block of Qwen2-VL-7B's language model with random weights. Prefill: 4096 visual tokens in
# three images, with 64 tokens of text around them. In W4A8 activations become int8, with one scale per token, per
# tensor, per modality with tokens in their order (MSQ), or per modality with visual tokens first (AIFS). Decoding: one
# row, weights from memory; packed: products of few columns, which read packed words. The table has the speed relative
# to 16 bits (the faster of f16 and bf16), next to the paper's times of all blocks. Times come from the measuring
# program build/tests/bench/modality of the source tree (`make bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: number
# of measurements (2; 15 times as many for decoding). PTQ_THREADS: threads (all); with one thread, its processor time is
# measured.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
modality=$(program PTQ_MODALITY modality) runs=${PTQ_RUNS:-2}
enter "$name" "$(machine; echo "${PTQ_THREADS:-}")"

keep layers.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "$runs" layers
keep decode.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "$((runs < 6 ? 15 * runs : 101))" decode
run_steps

awk -f "$lib/mquant-table7.awk" layers.tsv decode.tsv >"$part/table7.tsv"
table table7
about="${PTQ_THREADS:-$(nproc)} threads" plot table7
say "the paper, ms, prefill: BF16 1690, by token 1253, by modality 1085, visual first 1017;" \
	"decoding: 17.5, 16.4, 13.06, packed 8.2"
