#!/usr/bin/env bash
# mquant-table5.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 5: the gain from each of its parts
#
# W4A8 in encoder, projector and language model: int4 weights of one scale per row by GPTQ. The first row has int8
# activations with static scales per layer and a rotated language model (the paper's "static": QuaRot). Each further row
# adds a part: static scales per modality in the language model (MSQ; AIFS changes no answer, see mquant-table4.sh); the
# conversion of the encoder's norms (ln2rms) and the rotation of encoder and projector; and split columns for the
# outliers that the rotation makes (RMS), which is MQuant. acc_delta and kl_delta are differences from MQuant, paired,
# with standard errors over questions. steps.tsv has the paired gain of each part, and the gain of MSQ without rotation
# and with weights rounded to nearest.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision mquant "$@"

for m in "${models[@]}"; do
	variants "$m"
	rounding "$m-msq" "$m" --act-mode static-modality
	for way in RTN QuaRot QuaRot+MSQ QuaRot+MSQ+LN2RMS MQuant; do
		choose "$m-W4A8-W4A8-$way" "$(quantized "$way" "$m" int4 int4)"
	done
	choose "$m-W4A8-W4A8-RTN+MSQ" "$(weights "$m-msq" "$m-hessian" int4 int4 --group channel --compensate none)"
done
run_steps

rows() {
	local m w
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do w=$m-W4A8-W4A8; cat <<T; done
$m	W4A8	W4A8	QuaRot	@$w-QuaRot $w-MQuant	71.44
$m	W4A8	W4A8	QuaRot+MSQ	@$w-QuaRot+MSQ $w-MQuant	78.95
$m	W4A8	W4A8	QuaRot+MSQ+LN2RMS	@$w-QuaRot+MSQ+LN2RMS $w-MQuant	82.48
$m	W4A8	W4A8	MQuant	@$w-MQuant $w-MQuant	84.32
T
}
rows | tabulate table5 "$answer_columns" answers
steps() {
	local m w
	printf 'model\tpart\t@\n'
	for m in "${models[@]}"; do w=$m-W4A8-W4A8; cat <<T; done
$m	MSQ on RTN	@$w-RTN+MSQ $w-RTN
$m	MSQ	@$w-QuaRot+MSQ $w-QuaRot
$m	LN2RMS	@$w-QuaRot+MSQ+LN2RMS $w-QuaRot+MSQ
$m	RMS	@$w-MQuant $w-QuaRot+MSQ+LN2RMS
T
}
steps | tabulate steps 'acc_delta acc_delta_se kl_delta kl_delta_se' answers
plot table5
