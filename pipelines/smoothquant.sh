#!/usr/bin/env bash
# smoothquant.sh [MODEL [TEST [CALIBRATION]]] -- rounded activations against the share of outliers moved to the weights
#
# int8 weights of one scale per tensor, rounded to nearest, of the unchanged model and after smooth-scale with α from
# 0.25 to 0.9. int8 activations with one scale per token, and with static scales from the calibration tokens: from the
# largest |x| (SmoothQuant's O1 and O3), and from its percentile 99.99 (msq-calib --clip). Also int4 activations with
# one scale per token, where smoothing has a larger effect. kl: KL divergence from the model in 16 bits. kl_delta and
# nll_delta: differences from α = 0.5 with the same activations. All have standard errors over windows, paired.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=tensor

calibrate
for alpha in 0.25 0.5 0.75 0.9; do
	step "smooth-scale -q --alpha $alpha --hessian hessian.h5 model.h5 -o $alpha.h5"
	hessians $alpha
done
alphas='none 0.25 0.5 0.75 0.9'
for alpha in $alphas; do
	m=$alpha.h5 h=$alpha-hessian.h5
	[ $alpha != none ] || m=model.h5 h=hessian.h5
	step "msq-calib -q --act-format int8 --tokens calib.h5 $window$limit --clip 99.99 $m -o $alpha-clip.h5"
	weights="dpq-run --storage int8 --group $group --compensate none"
	measure A8-token-$alpha "$weights --act-format int8 --act-mode dynamic-token --hessian $h $m"
	measure A8-static-$alpha "$weights --act-format int8 --act-mode static-tensor --hessian $h $m"
	measure A8-99.99-$alpha "$weights --hessian $h $alpha-clip.h5"
	measure A4-token-$alpha "$weights --act-format int4 --act-mode dynamic-token --hessian $h $m"
done
run_steps

rows() {
	printf 'activations\talpha\t@\n'
	for input in A8-token A8-static A8-99.99 A4-token; do for alpha in $alphas; do
		printf '%s\t%s\t@%s\n' $input $alpha "$input-$alpha $input-0.5"
	done; done
}
rows | tabulate smoothquant 'kl kl_se kl_delta kl_delta_se nll_rise nll_rise_se nll_delta nll_delta_se' comparison
plot smoothquant
