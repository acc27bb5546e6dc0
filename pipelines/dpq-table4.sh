#!/usr/bin/env bash
# dpq-table4.sh [MODEL [TEST [CALIBRATION]]] -- DPQ table 4: the gain from the order of quantization
#
# 4-bit weights in groups of PTQ_GROUP (128) with searched scales (mse), quantized by GPTQ (W4A16) and by DPQ for FP8
# arithmetic with static activation scales (W4A8). Columns in storage order, by group-aware reordering, and by full
# reordering, whose groups must be stored for inference. All rows use one calibration set and one test set.
# output_error: tr(E H Eᵀ)/tr(W H Wᵀ), geometric mean over layers. kl and nll_rise: KL divergence and rise of the NLL
# from the unquantized model. kl_delta and nll_delta: differences from group-aware reordering. All are paired, with
# standard errors over windows and draws.
set -euo pipefail
# shellcheck source=pipelines/lib/dpq.sh
. "$(dirname "$0")/lib/dpq.sh"
draws=${PTQ_DRAWS:-1}
begin dpq "$@"
ordered none gar full
run_steps

heads='scheme order output_error=output_error kl=KL kl_delta=ΔKL_vs_GAR paper_ppl=paper:_perplexity'
tabulate table4 "$columns" comparison "$heads" <<'T'
scheme	order	@	paper_ppl	paper_rise_percent
W4A16	full	@W4A16-full W4A16-gar	6.597	5.45
W4A16	gar	@W4A16-gar W4A16-gar	6.600	5.48
W4A16	none	@W4A16-none W4A16-gar	7.680	18.78
W4A8	full	@W4A8-full W4A8-gar	6.679	6.59
W4A8	gar	@W4A8-gar W4A8-gar	6.704	6.95
W4A8	none	@W4A8-none W4A8-gar	32.812	80.99
T
say "output error: of layers, relative; KL: divergence from the unquantized model, nats a token, ± standard error;" \
	"paper: an 8B model, 6.238 unquantized"
plot table4
