#!/usr/bin/env bash
# mquant-table5.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 5: what each of its parts adds
#
# W4A8 in encoder, projector and language model: int4 weights of one scale a row by GPTQ, int8 inputs under static scales of a
# layer, the language model rotated (the paper's "static": QuaRot); then with static scales of each modality in the language
# model (MSQ; what AIFS does to the order of tokens changes no answer: mquant-table4.sh); then with the encoder's norms converted
# (ln2rms) and the encoder and projector rotated, too; then with the channels split off that the rotation makes outliers (RMS):
# MQuant. acc_delta and kl_delta are against MQuant, paired, with standard errors over questions; each part's own
# step is paired in steps.tsv, and that of MSQ where nothing is rotated and weights are rounded to nearest. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"

say "smoothing, rotating, converting, calibrating"
for m in "${models[@]}"; do
	variants "$m"
	rounding "$m-msq" "$m" --act-mode static-modality
done
ways=(QuaRot QuaRot+MSQ QuaRot+MSQ+LN2RMS MQuant)
commands() {
	local m way
	for m in "${models[@]}"; do for way in RTN "${ways[@]}"; do
		choose "$m-W4A8-W4A8-$way" "$m-W4A8-W4A8-MQuant" "$(quantized "$way" "$m" int4 int4)"
	done; done
}
steps() {
	local m i
	for m in "${models[@]}"; do
		choose "$m-step-0" "$m-W4A8-W4A8-RTN" "$(weights "$m-msq" "$m-hessian" int4 int4 --group channel --compensate none)"
		for i in 1 2 3; do
			choose "$m-step-$i" "$m-W4A8-W4A8-${ways[i - 1]}" "$(quantized "${ways[i]}" "$m" int4 int4)"
		done
	done
}
say "quantizing and measuring"
commands | in_turn
steps | in_turn
paper() { case $1 in QuaRot) echo 71.44;; QuaRot+MSQ) echo 78.95;; QuaRot+MSQ+LN2RMS) echo 82.48;; MQuant) echo 84.32;; esac; }
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_textvqa\n' "$answered"
	for m in "${models[@]}"; do for way in "${ways[@]}"; do
		printf '%s\tW4A8\tW4A8\t%s\t%s\t%s\n' "$m" "$way" "$(answers "$m-W4A8-W4A8-$way")" "$(paper "$way")"
	done; done
} >"$part/table5.tsv"
table table5
{
	printf 'model\tpart\tacc_delta\tacc_delta_se\tkl_delta\tkl_delta_se\n'
	adds=('MSQ on RTN' MSQ LN2RMS RMS)
	for m in "${models[@]}"; do for i in 0 1 2 3; do
		printf '%s\t%s\t%s\n' "$m" "${adds[i]}" "$(answers "$m-step-$i" | cut -f 9,10,13,14)"
	done; done
} >"$part/steps.tsv"
table steps
picture table5 "W4A8 in encoder, projector and language model: what each part adds" "MQuant" "paper: TextVQA, Qwen2-VL-7B, %"
