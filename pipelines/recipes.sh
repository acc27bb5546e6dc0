#!/usr/bin/env bash
# recipes.sh [MODEL [TEST [CALIBRATION]]] -- DPQ as printed, as released, and ours: the cost of each choice
#
# 4-bit weights in groups of PTQ_GROUP (32) for FP8 arithmetic with static activation scales. Recipes: `late`; `paper`,
# which follows the paper's algorithm 1 and rounds weights to FP8 before it codes them; `inc`, the released code, on
# Gaudi 2's FP8 (as there) and on E4M3FN; and `late` with one choice changed at a time. error_percent: change of
# tr(E H Eᵀ)/tr(W H Wᵀ) from late, geometric mean over layers, with its standard error over layers. nll_delta, kl_delta:
# changes of NLL and of KL from the unquantized model, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
: "${PTQ_TOKENS:=16320}"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-32}

calibrate
step "gar-order --group $group hessian.h5 -o order.h5"
weights="dpq-run --storage uint4 --group $group --order order.h5" in='--hessian hessian.h5 model.h5'
measure late "$weights --compute e4m3fn $in"
measure paper "$weights --compute e4m3fn --recipe paper $in"
measure inc-240 "$weights --compute e4m3ieee --recipe inc $in"
measure inc-448 "$weights --compute e4m3fn --recipe inc $in"
measure block "$weights --compute e4m3fn --group-view block $in"
measure original "$weights --compute e4m3fn --group-view original $in"
measure minmax "$weights --compute e4m3fn --scale-search minmax $in"
measure ieee "$weights --compute e4m3ieee $in"
measure top "$weights --compute e4m3fn --top 416 --saturate 416 $in"
measure real "$weights --compute e4m3fn --pow2-scale no $in"
measure channel "$weights --compute e4m3fn --scale8 channel $in"
measure dynamic "$weights --compute e4m3fn --act-mode dynamic-token $in"
measure exact "$weights --compute e4m3fn --act-mode none $in"
run_steps

tabulate recipes "$compared" comparison <<'T'
run	choice	@
late	late	@late late
paper	paper	@paper late
inc-240	inc, max 240	@inc-240 late
inc-448	inc, max 448	@inc-448 late
block	blocks of 128	@block late
original	uncompensated	@original late
minmax	no scale search	@minmax late
ieee	max 240	@ieee late
top	max × 14/15	@top late
real	any FP8 scale	@real late
channel	FP8 scale per channel	@channel late
dynamic	dynamic activations	@dynamic late
exact	16-bit activations	@exact late
T
plot recipes
