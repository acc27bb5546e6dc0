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
calibrate
for b in 4 3; do quantized $b RTN AWQ OmniQuant QuaRot FBQuant; done
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
