#!/usr/bin/env bash
# dpq-table1.sh [MODEL [QUESTIONS [CALIBRATION]]] -- DPQ table 1: W4A16 by GPTQ and W4A8 by DPQ on a
# vision-language model
#
# Quantized are, as in the paper, the weights of the language model's linear layers: uint4 with zero points, groups of
# PTQ_GROUP (128), searched scales (mse). The encoder and the projector stay in 16 bits. W4A16: GPTQ without column
# order (as the published checkpoints that the paper compares with) and in group-aware order. W4A8: DPQ for FP8
# arithmetic with static activation scales, in group-aware order. acc_delta and kl_delta are differences from DPQ,
# paired, with standard errors over questions.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision "$name" "$@"
group=${PTQ_GROUP:-128}

for m in "${models[@]}"; do
	weights="dpq-run -q --layers '/model/layers/*' --storage uint4 --group $group --scale-search mse"
	in="--hessian $m-hessian.h5 $m.h5"
	calibration "$m"
	hessian "$m" "$m"
	step "gar-order -q --group $group $m-hessian.h5 -o $m-order.h5"
	choose "$m-16" "cat $m.h5"
	choose "$m-GPTQ" "$weights --reorder none $in"
	choose "$m-GPTQ-GAR" "$weights --order $m-order.h5 $in"
	choose "$m-DPQ" "$weights --compute e4m3fn --order $m-order.h5 $in"
done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_mean\tpaper_mmmu\tpaper_mmbench\tpaper_mathvista\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	16	unquantized	@$m-16 $m-DPQ	64.58	53.77	81.78	58.20
$m	16	W4A16	GPTQ	@$m-GPTQ $m-DPQ	64.71	52.55	81.27	60.30
$m	16	W4A16	GPTQ, GAR	@$m-GPTQ-GAR $m-DPQ				
$m	16	W4A8	DPQ	@$m-DPQ $m-DPQ	64.58	52.64	81.25	59.86
T
}
rows | tabulate table1 "$answer_columns" answers
plot table1
