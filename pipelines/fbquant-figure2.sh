#!/usr/bin/env bash
# fbquant-figure2.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant figure 2: clamping, rotation and sub-branch
#
# The paper's figure draws three categories of methods; here each is measured, next to round-to-nearest (RTN), which all
# of them use, with the whole range of a group of 128. Clamping: AWQ's scaling and clipping, and the clipping that
# OmniQuant learns (dpq-run --scale-search learned). Rotation: QuaRot (hadamard-rotate --seed 1). Sub-branch: FBQuant,
# of rank in/32 in f16, which costs about one bit. kl_delta and nll_delta: differences from RTN at the same bits. The
# other columns are those of fbquant-table1, whose runs are shared. PTQ_GROUP: another group size.
set -euo pipefail
# shellcheck source=pipelines/lib/fbquant.sh
. "$(dirname "$0")/lib/fbquant.sh"
draws=${PTQ_DRAWS:-1}
begin fbquant "$@"
in='--hessian hessian.h5 model.h5'
calibrate
step "hadamard-rotate --seed 1 model.h5 -o rotated.h5"
for b in 4 3; do
	weights="--storage uint$b --group $group"
	step "awq-scale -q $weights $in -o awq$b.h5"
	measure_file w$b-RTN "dpq-run --compensate none --scale-search minmax $weights $in"
	measure_file w$b-AWQ "dpq-run --compensate none --scale-search minmax $weights awq$b.h5"
	measure_file w$b-OmniQuant "dpq-run --compensate none --scale-search learned $weights $in"
	measure_file w$b-QuaRot "dpq-run --compensate none --scale-search minmax $weights rotated.h5"
	measure_file w$b-FBQuant "fbq-run $weights $in"
done
run_steps

tabulate figure2 "$columns" row <<'T'
bits	way	@
4	RTN	@w4-RTN w4-RTN
4	clamping (AWQ)	@w4-AWQ w4-RTN
4	clamping (OmniQuant)	@w4-OmniQuant w4-RTN
4	rotation (QuaRot)	@w4-QuaRot w4-RTN
4	sub-branch (FBQuant)	@w4-FBQuant w4-RTN
3	RTN	@w3-RTN w3-RTN
3	clamping (AWQ)	@w3-AWQ w3-RTN
3	clamping (OmniQuant)	@w3-OmniQuant w3-RTN
3	rotation (QuaRot)	@w3-QuaRot w3-RTN
3	sub-branch (FBQuant)	@w3-FBQuant w3-RTN
T
plot figure2
