#!/usr/bin/env bash
# fbquant-overfit.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant section 3.1: a branch that is fitted to few tokens
#
# Weights of 3 bits (uint3) in groups of 128 with branches of rank in/32 in f16, calibrated on the first 256, 1024,
# 4096 and 16384 tokens of the calibration set, or on as many at random places (PTQ_DRAWS). Methods: a plain SVD of the
# error (it uses no tokens), EoRA, CALDERA, FBQuant. calibration_error and heldout_error: geometric mean over layers of
# tr(E H E^T)/tr(W H W^T), with the Hessians of these tokens and of the test set. kl_delta, nll_delta: paired
# differences from FBQuant with as many tokens. The paper's claim: a branch that is fitted without feedback has a small
# loss on the calibration tokens and a large loss on others. With feedback it has not, because the weights stay within
# half a step of W.
set -euo pipefail
# shellcheck source=pipelines/lib/fbquant.sh
. "$(dirname "$0")/lib/fbquant.sh"
draws=${PTQ_DRAWS:-1}
begin fbquant "$@"
texts
step "hessian-accum --tokens test.h5 $window model.h5 -o heldout.h5"
for n in 256 1024 4096 16384; do
	step "hessian-accum --tokens calib.h5 $window --limit $n model.h5 -o first$n.h5"
	for method in lowrank eora caldera fbquant; do
		run=few$n-$method
		measure_file $run \
			"fbq-run --method $method --storage uint3 --group $group --hessian first$n.h5 model.h5" \
			"tensor-diff -q --hessian heldout.h5 --reference model.h5 $run.h5 >$run.diff"
	done
done
run_steps

both() {
	local two
	two=$(errors "$@")
	row "${1#* * }" "${@:2}" | sed "s/^/$two\t/"
}
rows() {
	printf 'tokens\tway\t@\n'
	for n in 256 1024 4096 16384; do for method in lowrank eora caldera fbquant; do
		printf '%s\t%s\t@%s\n' $n $method "few$n-$method few$n-fbquant"
	done; done
}
rows | tabulate overfit "calibration_error heldout_error $columns" both
plot overfit
