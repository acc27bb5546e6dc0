#!/usr/bin/env bash
# mquant-table6.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 6: weights alone quantized, by GPTQ, AWQ and MQuant
#
# Weights of the language model's linear layers in int8 or int4 in groups of PTQ_GROUP (128); encoder, projector and
# all activations in 16 bits. GPTQ: of the unchanged model. AWQ: awq-scale, then rounding to nearest. MQuant: converted,
# rotated, columns split, GPTQ. Two more rows: MQuant with encoder and projector in int4, too, and MQuant's W4A8 of
# table 2 with one scale per row. acc_delta and kl_delta are differences from GPTQ at 4 bits, paired, with standard
# errors over questions.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision mquant "$@"
group=${PTQ_GROUP:-128}

for m in "${models[@]}"; do
	variants "$m"
	awq_scaled "$m" int8 "$group"
	awq_scaled "$m" int4 "$group"
	w=$m-weights gptq=(--group "$group" --reorder none)
	choose "$m-16" "cat $m.h5"
	choose "$w-gptq8" "$(weights "$m" "$m-hessian" none int8 "${gptq[@]}")"
	choose "$w-gptq4" "$(weights "$m" "$m-hessian" none int4 "${gptq[@]}")"
	choose "$m-16-W8A16-AWQ" "$(awq "$m" int8 "$group")"
	choose "$m-16-W4A16-AWQ" "$(awq "$m" int4 "$group")"
	choose "$w-mquant4" "$(weights "$m-split" "$m-rotated-hessian" none int4 "${gptq[@]}")"
	choose "$w-mquant44" "$(weights "$m-split" "$m-rotated-hessian" int4 int4 "${gptq[@]}")"
	choose "$m-W4A8-W4A8-MQuant" "$(quantized MQuant "$m" int4 int4)"
done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	16	unquantized	@$m-16 $m-weights-gptq4	84.43
$m	16	W8A16	GPTQ	@$m-weights-gptq8 $m-weights-gptq4	84.33
$m	16	W4A16	GPTQ	@$m-weights-gptq4 $m-weights-gptq4	84.18
$m	16	W8A16	AWQ	@$m-16-W8A16-AWQ $m-weights-gptq4	
$m	16	W4A16	AWQ	@$m-16-W4A16-AWQ $m-weights-gptq4	83.93
$m	16	W4A16	MQuant	@$m-weights-mquant4 $m-weights-gptq4	84.55
$m	W4A16	W4A16	MQuant	@$m-weights-mquant44 $m-weights-gptq4	84.70
$m	W4A8	W4A8	MQuant, a scale a row	@$m-W4A8-W4A8-MQuant $m-weights-gptq4	84.32
T
}
rows | tabulate table6 "$answer_columns" answers
plot table6
