#!/usr/bin/env bash
# mquant-table8.sh [MODEL [TEST [CALIBRATION]]] -- rotation with and without suppression of the outliers that it makes
#
# MQuant table 8 on a language model: QuaRot, and QuaRot with rotation magnitude suppression (rms-suppress). Weights in
# int4 by GPTQ with one scale per row (PTQ_GROUP: in groups), activations in int4 with a range of 0.9 times the largest
# of each token, keys and values in uint4 with one scale per head of a token (W4A4KV4, as in QuaRot). Draws (PTQ_DRAWS)
# have other signs of the rotation, too. ppl: perplexity; ppl_16: in 16 bits. kl and nll_rise: KL divergence and rise of
# the NLL from the model in 16 bits. kl_delta and nll_delta: differences from QuaRot, paired, with standard errors over
# windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-channel}

texts
step "hadamard-rotate -q --keys --seed 1 model.h5 -o quarot.h5"
step "rms-suppress -q quarot.h5 -o rms.h5"
hessians quarot	# also for the other model, which computes the same
weights="dpq-run --storage int4 --group $group --reorder none"
weights+=" --act-format int4 --act-mode dynamic-token --act-clip 0.9 --hessian quarot-hessian.h5"
measure QuaRot "$weights quarot.h5" --kv-format uint4
measure RMS "$weights rms.h5" --kv-format uint4
run_steps

[ "$draws" = 1 ] && rotation=1 || rotation=all
tabulate table8 "ppl_16 ppl $compared" comparison <<T
way	rotation	@	paper_7b	paper_13b	paper_70b
QuaRot	$rotation	@QuaRot QuaRot	6.10	5.40	3.79
RMS	$rotation	@RMS QuaRot	6.04	5.32	3.67
T
peaks
say "the paper's: perplexity of WikiText-2, Llama 2, whose 16 bits have 5.47, 4.88, 3.32"
say "table: $work/table8.tsv"
