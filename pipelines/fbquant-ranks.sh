#!/usr/bin/env bash
# fbquant-ranks.sh [MODEL [TEST [CALIBRATION]]] -- the gain from a branch's rank: loss and divergence against bits
#
# Weights of 3 bits (uint3) in groups of 128 with branches of rank 1 to 32 in f16: a plain SVD of the error, EoRA, and
# FBQuant; FBQuant's branch of the highest rank also in int8. For comparison at equal bits: GPTQ without a branch in
# groups of 128, 64 and 32, and with 4 bits. PTQ_RANKS: other ranks, separated by blanks. kl: KL divergence from the
# unquantized model, with its standard error over windows. kl_delta, nll_delta: differences from FBQuant of the same
# rank; of int8 and GPTQ, from FBQuant of the highest. output_error: geometric mean over layers of
# tr(E H E^T)/tr(W H W^T).
set -euo pipefail
# shellcheck source=pipelines/lib/fbquant.sh
. "$(dirname "$0")/lib/fbquant.sh"
draws=${PTQ_DRAWS:-1}
begin fbquant "$@"
ranks=${PTQ_RANKS:-1 2 4 8 16 32} last=${PTQ_RANKS:+${PTQ_RANKS##* }} last=${last:-32}
in='--hessian hessian.h5 model.h5'
calibrate
for rank in $ranks; do for method in lowrank eora fbquant; do
	measure_file "r$rank-$method" "fbq-run --method $method --rank $rank --storage uint3 --group $group $in"
done; done
measure_file "r$last-fbquant-int8" "fbq-run --rank $last --branch-format int8 --storage uint3 --group $group $in"
measure_file r0-gptq-3-128 "dpq-run --reorder none --storage uint3 --group 128 $in"
measure_file r0-gptq-3-64 "dpq-run --reorder none --storage uint3 --group 64 $in"
measure_file r0-gptq-3-32 "dpq-run --reorder none --storage uint3 --group 32 $in"
measure_file r0-gptq-4-128 "dpq-run --reorder none --storage uint4 --group 128 $in"
run_steps

rows() {
	local base=r$last-fbquant
	printf 'way\trank\t@\n'
	for rank in $ranks; do for method in lowrank eora fbquant; do
		printf '%s\t%s\t@%s\n' $method "$rank" "r$rank-$method r$rank-fbquant"
	done; done
	printf 'fbquant-int8\t%s\t@%s\n' "$last" "r$last-fbquant-int8 $base"
	for way in gptq-3-128 gptq-3-64 gptq-3-32 gptq-4-128; do printf '%s\t0\t@%s\n' $way "r0-$way $base"; done
}
rows | tabulate ranks "$columns" row
plot ranks
