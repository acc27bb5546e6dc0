#!/usr/bin/env bash
# mixed-bits.sh [MODEL [TEST [CALIBRATION]]] -- one format for all layers, or a format for each block or layer
#
# Weights of 2 to 6 bits in groups of PTQ_GROUP (64) with zero points and 16-bit scales, by GPTQ in group-aware order.
# block, layer: plan-bits chooses the bits of each block or layer, from 2048 tokens of the calibration set, for as many
# bits as one format of 3, 4 or 5 bits for all layers has. By layer, KL are measured with 3 bits and follow for
# other bits from output errors. predicted: the sum of the KL of single blocks or layers on these tokens.
# kl_delta, nll_delta: differences from one format of as many bits, paired, with standard errors over windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-64}

calibrate
step "gar-order --group $group hessian.h5 -o order.h5"
solve="dpq-run --group $group --scale-dtype f16 --order order.h5 --hessian hessian.h5 model.h5"
candidates=
for bits in 3 2 4 5 6; do	# the first one is measured by layer
	step "$solve -q --storage uint$bits -o uint$bits.h5 && tensor-stats uint$bits.h5 >uint$bits.stats"
	measure uint$bits "$solve --storage uint$bits"
	candidates+=" uint$bits.h5"
done
text="--tokens calib.h5 $window --limit 2K"
step "plan-bits -q --reference model.h5 $text --target-bits 64$candidates -o block.costs >block-all.plan"
step "plan-bits -q --reference model.h5 $text --by layer --hessian hessian.h5 --target-bits 64$candidates" \
	"-o layer.costs >layer-all.plan"
for by in block layer; do for bits in 3 4 5; do
	step "plan-bits -q --reference model.h5 --costs $by.costs --by $by" \
		"--target-bits \$(tail -n 1 uint$bits.stats | awk '{ print \$7 + 1e-5 }')$candidates >$by-$bits.plan"
	measure $by-$bits "$solve --plan $by-$bits.plan"
done; done
run_steps

row() {	# row COLUMNS RUN BASE: with the bits per weight and the prediction, means over draws
	local files bits predicted=-
	case $2 in
		uint*) bits=$(bits_of "$2") ;;
		*)
			files_of "$2.plan"
			bits=$(awk 'FNR == 1 { s += $3; n++ } END { print s / n }' "${files[@]}")
			predicted=$(awk 'FNR == 2 { s += $3; n++ } END { print s / n }' "${files[@]}") ;;
	esac
	comparison "$1" "$2" "$3" "$bits" | awk -v p="$predicted" '{ print $0 "\t" p }'
}
tabulate mixed-bits "bits_a_weight $compared" row <<'T'
format	for	@	predicted
uint2	all	@uint2 uint2
uint3	all	@uint3 uint3
uint4	all	@uint4 uint4
uint5	all	@uint5 uint5
uint6	all	@uint6 uint6
as uint3	block	@block-3 uint3
as uint4	block	@block-4 uint4
as uint5	block	@block-5 uint5
as uint3	layer	@layer-3 uint3
as uint4	layer	@layer-4 uint4
as uint5	layer	@layer-5 uint5
T
plot mixed-bits
