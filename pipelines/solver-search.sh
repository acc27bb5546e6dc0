#!/usr/bin/env bash
# solver-search.sh [MODEL [TEST [CALIBRATION]]] -- what several paths of codes, and scales for given codes, add to GPTQ
#
# Weights of 3 bits in groups of PTQ_GROUP (64) for 16-bit arithmetic, by GPTQ in group-aware order. Scales come from
# the search `mse`, or `hessian`. dpq-run --paths keeps K paths of codes of a row, --turns computes scales for codes and
# codes for scales in turns. error_percent: change of tr(E H Eᵀ)/tr(W H Wᵀ) from gptq, geometric mean over layers, with
# its standard error over layers. nll_delta, kl_delta: changes of NLL and of KL from the unquantized model, paired, with
# standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
: "${PTQ_TOKENS:=16320}"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-64}

calibrate
step "gar-order --group $group hessian.h5 -o order.h5"
solve="dpq-run --storage uint3 --group $group --order order.h5" in='--hessian hessian.h5 model.h5'
measure gptq "$solve $in"
measure scales "$solve --scale-search hessian $in"
measure paths-4 "$solve --paths 4 $in"
measure turns-1 "$solve --turns 1 $in"
measure both "$solve --paths 4 --turns 1 $in"
run_steps

tabulate solver-search "$compared" comparison <<'T'
run	method	@
gptq	GPTQ	@gptq gptq
scales	scales by output error	@scales gptq
paths-4	4 paths of codes	@paths-4 gptq
turns-1	1 turn of scales and codes	@turns-1 gptq
both	4 paths, 1 turn	@both gptq
T
plot solver-search
