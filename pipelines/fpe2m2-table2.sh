#!/usr/bin/env bash
# fpe2m2-table2.sh [MODEL [QUESTIONS [CALIBRATION]]] -- FPE2M2 table 2: INT4, INT5, NF5 and E2M2 on a
# vision-language model
#
# Weights of all linear layers of encoder, projector and language model, rounded to nearest with one scale per row,
# max|w| over the format's largest value. Activations stay in 16 bits. acc_delta and kl_delta are differences from
# E2M2, paired, with standard errors over questions. paper_mean: the paper's average over five sets of questions about
# images (Qwen2-VL-7B). paper_mme: its MME score. CALIBRATION is not read; it only selects the folder of results.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
vision "$name" "$@"

for m in "${models[@]}"; do
	choose "$m-16" "cat $m.h5"
	for format in int4 int5 nf5 e2m2; do
		choose "$m-$format" \
			"dpq-run -q --storage $format --group channel --compensate none --scale-search minmax $m.h5"
	done
done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_mean\tpaper_mme\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	16	unquantized	@$m-16 $m-e2m2	76.4	2325.3
$m	W4A16	W4A16	INT4	@$m-int4 $m-e2m2	71.4	2248.5
$m	W5A16	W5A16	INT5	@$m-int5 $m-e2m2	75.9	2283.6
$m	W5A16	W5A16	NF5	@$m-nf5 $m-e2m2	76.2	2313.9
$m	W5A16	W5A16	E2M2	@$m-e2m2 $m-e2m2	76.5	2321
T
}
rows | tabulate table2 "$answer_columns" answers
plot table2
