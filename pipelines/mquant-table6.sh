#!/usr/bin/env bash
# mquant-table6.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 6: weights alone quantized, by GPTQ, AWQ and MQuant
#
# Weights of the language model's linear layers in int8 or int4 in groups of PTQ_GROUP (128), encoder, projector and all inputs in
# 16 bits: GPTQ (the model as it is), AWQ (awq-scale, rounded to nearest), MQuant (converted, rotated, channels split off, GPTQ). MQuant with
# encoder and projector in int4, too; and MQuant's W4A8 of table 2, a scale a row. acc_delta and kl_delta are against GPTQ at 4 bits, paired, with
# standard errors over questions. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"
group=${PTQ_GROUP:-128}

say "scaling, rotating, converting, calibrating"
for m in "${models[@]}"; do
	variants "$m"
	for f in int8 int4; do awq_scaled "$m" $f "$group"; done
done
rows() { cat <<'R'
16	16	16	unquantized	84.43
gptq8	16	W8A16	GPTQ	84.33
gptq4	16	W4A16	GPTQ	84.18
awq8	16	W8A16	AWQ	
awq4	16	W4A16	AWQ	83.93
mquant4	16	W4A16	MQuant	84.55
mquant44	W4A16	W4A16	MQuant	84.70
mquant48	W4A8	W4A8	MQuant, a scale a row	84.32
R
}
source_of() { case $1 in	# source_of RUN M
	16) weights "$2" - none none ;;
	gptq*) weights "$2" "$2-hessian" none "int${1#gptq}" --group "$group" --reorder none ;;
	awq*) awq "$2" "int${1#awq}" "$group" ;;
	mquant4) weights "$2-split" "$2-split-hessian" none int4 --group "$group" --reorder none ;;
	mquant44) weights "$2-split" "$2-split-hessian" int4 int4 --group "$group" --reorder none ;;
	mquant48) quantized MQuant "$2" int4 int4 ;;
esac; }
commands() {
	local m run
	for m in "${models[@]}"; do rows | while IFS=$'\t' read -r run _; do
		choose "$m-weights-$run" "$m-weights-gptq4" "$(source_of "$run" "$m")"
	done; done
}
say "quantizing and measuring"
commands | in_turn
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_textvqa\n' "$answered"
	for m in "${models[@]}"; do rows | while IFS=$'\t' read -r run visual language way paper; do
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$visual" "$language" "$way" "$(answers "$m-weights-$run")" "$paper"
	done; done
} >"$part/table6.tsv"
table table6
picture table6 "Weights alone, in groups of $group; the last row with int8 inputs" "GPTQ at 4 bits" "paper: TextVQA, Qwen2-VL-7B, %"
