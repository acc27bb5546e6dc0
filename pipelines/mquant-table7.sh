#!/usr/bin/env bash
# mquant-table7.sh -- MQuant tables 4 and 7: time of linear layers, scales by token, by tensor and by modality
#
# The linear layers of one block of Qwen2-VL-7B's language model, of random numbers. Prefill: 4096 visual tokens in
# three pictures, 64 of text around them; in W4A8 inputs become int8 under a scale of each token, of all, of each
# modality as tokens stand (MSQ), and with the visual tokens first (AIFS). Decoding: one row, weights from memory;
# packed: by the products of few columns, which leave words packed. How many times as fast as 16 bits, f16 or
# bf16, whichever is faster, beside the paper's times of all blocks. Times come from the measuring program of the
# source tree, build/tests/bench/modality (`make bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: measurements
# of each (2; 15 times as many of decoding); PTQ_THREADS: threads (all); with one, times are the thread's own.
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
