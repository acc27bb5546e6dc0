#!/usr/bin/env bash
# fbquant-defaults.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant's learning rate, steps and start: the study of
# fbq-run's defaults
#
# Only the layers of the second block, in 3 bits (uint3) and 4 bits (uint4), groups of 128, branches of rank in/32.
# Learning rates at 100, 200, 400 and 800 steps from the usual start, and starts A ~ N(0, s^2) at the usual rate and
# 400 steps. calibration_error and heldout_error: geometric mean over layers of tr(E H E^T)/tr(W H W^T), with the
# Hessians that the branch was fitted to and with the Hessians of the test set. The defaults are the row with the
# smallest error, or the fewest steps within 2 % of it.
set -euo pipefail
# shellcheck source=pipelines/lib/fbquant.sh
. "$(dirname "$0")/lib/fbquant.sh"
begin fbquant "$@"
calibrate
step "hessian-accum --tokens test.h5 $window model.h5 -o heldout.h5"
ways() {
	local b steps lr sigma
	for b in 3 4; do
		for steps in 100 200 400 800; do for lr in 0.0005 0.001 0.002 0.005 0.01 0.03; do
			printf '%s\t%s\t%s\tusual\n' $b $steps $lr
		done; done
		for sigma in 0.003 0.01 0.03 0.1 0.3; do printf '%s\t400\t0.002\t%s\n' $b $sigma; done
	done
}
while IFS=$'\t' read -r b steps lr sigma; do
	run=default-$b-$steps-$lr-$sigma start=" --init-sigma $sigma"
	[ "$sigma" != usual ] || start=
	step "fbq-run -q --layers '*/1/*' --storage uint$b --group $group --steps $steps --lr $lr$start" \
		"--hessian hessian.h5 --report $run.report model.h5 -o $run.h5 &&" \
		"tensor-diff -q --layers '*/1/*' --hessian heldout.h5 --reference model.h5 $run.h5 >$run.diff &&" \
		"rm $run.h5"
done < <(ways)
run_steps

rows() {
	printf 'bits\tsteps\tlr\tsigma\t@\n'
	ways | while IFS=$'\t' read -r b steps lr sigma; do
		printf '%s\t%s\t%s\t%s\t@%s\n' "$b" "$steps" "$lr" "$sigma" "default-$b-$steps-$lr-$sigma"
	done
}
rows | tabulate defaults 'calibration_error heldout_error' errors
plot defaults
