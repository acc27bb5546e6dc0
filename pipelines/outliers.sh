#!/usr/bin/env bash
# outliers.sh [MODEL [TEST [CALIBRATION]]] -- outliers after smoothing, rotation and suppression
#
# kurtosis: of a layer's inputs over the calibration tokens, mean x⁴ / (mean x²)², 3 for a Gaussian. incoherence: of its
# weight, max|w| √(mn) / ‖W‖_F, about √(2 ln mn) for a Gaussian. The table has geometric means over the layers of a
# kind, and maxima. Models: unchanged, after smooth-scale (α = 0.5), after hadamard-rotate, and after hadamard-rotate
# and rms-suppress, where the weight is the one without the split columns. check.tsv: max|Δ logit| / max|logit| by
# --check of these filters. channels.tsv: the largest magnitude and the root mean square of each input channel of one
# weight, before and after the rotation: of the layer in which a rotated channel exceeds the mean most. TEST is not
# read.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
begin "$name" "$@"

tokens calib.h5 "$calib" 1
step "smooth-scale --check --hessian model-hessian.h5 model.h5 -o smooth.h5 2>smooth.check"
step "hadamard-rotate --check --seed 1 model.h5 -o rotated.h5 2>rotated.check"
step "rms-suppress --check rotated.h5 -o split.h5 2>split.check"
hessians model smooth rotated split
for m in model smooth rotated split; do
	step "tensor-stats -q $m.h5 >$m.weights.tsv"
	step "tensor-stats -q $m-hessian.h5 >$m.inputs.tsv"
done
for m in model rotated split; do step "tensor-stats -q --channels $m.h5 >$m.channels.tsv"; done
run_steps

ways() { printf 'model\tas it is\nsmooth\tSmoothQuant\nrotated\tQuaRot\nsplit\tQuaRot+RMS\n'; }
{
	printf 'way\tkind\tlayers\tkurtosis\tkurtosis_max\tincoherence\tincoherence_max\n'
	ways | while IFS=$'\t' read -r m way; do
		awk -v way="$way" -f "$lib/outliers.awk" "$m.weights.tsv" "$m.inputs.tsv"
	done
} >"$part/outliers.tsv"
table outliers
{
	printf 'way\tlargest_difference\n'
	ways | tail -n +2 | while IFS=$'\t' read -r m way; do
		printf '%s\t%s\n' "$way" "$(sed -n 's/.*differ by at most \([^ ]*\) of the largest$/\1/p' "$m.check")"
	done
} >"$part/check.tsv"
table check
awk -f "$lib/channels.awk" rotated.channels.tsv split.channels.tsv way=model model.channels.tsv \
	way=rotated rotated.channels.tsv way=split split.channels.tsv >"$part/channels.tsv"
mv -f "$part/channels.tsv" .
plot channels outliers-channels.gp
plot outliers
