#!/usr/bin/env bash
# mquant-weights.sh [MODEL [TEST [CALIBRATION]]] -- MQuant table 6 on a language model: weights alone, GPTQ, AWQ, MQuant
#
# Weights in int8 or int4 in groups of PTQ_GROUP (128), all activations in 16 bits. GPTQ: of the unchanged model,
# columns unordered, scales of least squared error. AWQ: awq-scale, then rounding to nearest with the whole range.
# MQuant: rotated, columns split by rms-suppress, GPTQ. Draws (PTQ_DRAWS) have other signs of the rotation, too. A model
# that cannot be rotated, since it has norms after its residual branches or is rotated already, has no MQuant.
# kl and nll_rise: KL divergence and rise of the NLL from the model in 16 bits. kl_delta and nll_delta: differences from
# GPTQ at the same bits, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-128}
if rotatable; then without='no row'; else without=MQuant; fi

calibrate
if [ "$without" != MQuant ]; then
	step "hadamard-rotate -q --seed 1 model.h5 -o rotated.h5"
	step "rms-suppress -q rotated.h5 -o split.h5"
	hessians rotated	# also for the split model, which computes the same
fi
for b in 8 4; do
	weights="dpq-run --storage int$b --group $group"
	step "awq-scale -q --storage int$b --group $group --hessian hessian.h5 model.h5 -o awq$b.h5"
	measure W${b}A16-GPTQ "$weights --reorder none --hessian hessian.h5 model.h5"
	measure W${b}A16-AWQ "$weights --compensate none --scale-search minmax awq$b.h5"
	[ "$without" = MQuant ] ||
		measure W${b}A16-MQuant "$weights --reorder none --hessian rotated-hessian.h5 split.h5"
done
run_steps

columns='kl kl_se kl_delta kl_delta_se nll_rise nll_rise_se nll_delta nll_delta_se ppl'
sed "/$without/d" <<'T' | tabulate weights "$columns" comparison
scheme	way	@	paper_textvqa
W8A16	GPTQ	@W8A16-GPTQ W8A16-GPTQ	84.33
W8A16	AWQ	@W8A16-AWQ W8A16-GPTQ	
W8A16	MQuant	@W8A16-MQuant W8A16-GPTQ	
W4A16	GPTQ	@W4A16-GPTQ W4A16-GPTQ	84.18
W4A16	AWQ	@W4A16-AWQ W4A16-GPTQ	83.93
W4A16	MQuant	@W4A16-MQuant W4A16-GPTQ	84.55
T
peaks
say "the paper: accuracy on TextVQA, %, of Qwen2-VL-7B, which has 84.43 in 16 bits"
say "table: $work/weights.tsv"
