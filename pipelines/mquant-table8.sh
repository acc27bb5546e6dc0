#!/usr/bin/env bash
# mquant-table8.sh [MODEL [TEST [CALIBRATION]]] -- rotation with and without suppression of the outliers that it makes
#
# MQuant table 8 on a language model: QuaRot, and QuaRot with rotation magnitude suppression (rms-suppress). Weights in
# int4 by GPTQ with one scale per row (PTQ_GROUP: in groups), activations in int4 with a range of 0.9 times the largest
# of each token, keys and values in uint4 with one scale per head of a token (W4A4KV4, as in QuaRot). Repeated over
# PTQ_RUNS (3) rotations with other signs, each with its Hessians. The change by suppression is paired by window within
# a rotation, and its error is also over rotations. ppl: perplexity. kl: KL divergence from the model in 16 bits.
# PTQ_LIMIT: only the first tokens of the calibration set.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-channel} runs=${PTQ_RUNS:-3}

calibrate
for ((r = 1; r <= runs; r++)); do
	step "hadamard-rotate -q --keys --seed $r model.h5 -o quarot-$r.h5"
	step "rms-suppress -q quarot-$r.h5 -o rms-$r.h5"
	hessians quarot-$r	# also for the other model, which computes the same
	weights="dpq-run --storage int4 --group $group --reorder none"
	weights+=" --act-format int4 --act-mode dynamic-token --act-clip 0.9 --hessian quarot-$r-hessian.h5"
	measure QuaRot-$r QuaRot-$r "$weights quarot-$r.h5" --kv-format uint4
	measure RMS-$r QuaRot-$r "$weights rms-$r.h5" --kv-format uint4
done
run_steps

rows() {
	printf 'way\trotation\t@\tpaper_7b\tpaper_13b\tpaper_70b\n'
	for ((r = 1; r <= runs; r++)); do
		printf 'QuaRot\t%d\t@QuaRot-%d QuaRot-%d\t6.10\t5.40\t3.79\n' $r $r $r
		printf 'RMS\t%d\t@RMS-%d QuaRot-%d\t6.04\t5.32\t3.67\n' $r $r $r
	done
}
rows | tabulate rotations 'ppl_16 ppl nll_rise nll_rise_se kl kl_se nll_delta nll_delta_se kl_delta kl_delta_se' \
	comparison >/dev/null
awk -f "$lib/mquant-table8.awk" rotations.tsv >"$part/table8.tsv"
table table8
plot table8
say "the paper's: perplexity of WikiText-2, Llama 2, whose 16 bits have 5.47, 4.88, 3.32"
