#!/usr/bin/env bash
# mquant-table2.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 2: RTN, SmoothQuant, QuaRot and MQuant
#
# Weights of all linear layers of encoder, projector and language model in int8 or int4, one scale per row, by rounding
# to nearest (RTN, SmoothQuant) or GPTQ (QuaRot, MQuant). Activations in int8 with static scales per tensor from the
# largest |x| of the calibration tokens; in MQuant's language model per tensor and modality (MSQ). W8A8: all weights in
# int8. W8A8, W4A8: encoder and projector in int8, language model in int4 (the paper's W8A8). W4A8: all in int4 (the
# paper's W4A8). SmoothQuant: smooth-scale (alpha 0.5) on all layers that read norms. QuaRot rotates only the language
# model, because the encoder's norms are LayerNorms. MQuant converts them (ln2rms), rotates the encoder, too, and splits
# the columns that become outliers (rms-suppress). Rotations have seed 1. Patch embedding, token embeddings and head
# stay in 16 bits. acc_delta and kl_delta are differences from MQuant with the same bits (unquantized: W4A8 in both
# parts), paired, with standard errors over questions. The paper's accuracies are in the rows of the same kind of
# encoder: Qwen2-VL-7B (pre-norm), GLM-4V-9B (post-norm).
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision mquant "$@"

for m in "${models[@]}"; do
	variants "$m"
	choose "$m-16" "cat $m.h5"
	for way in RTN SmoothQuant QuaRot MQuant; do
		choose "$m-W8A8-W8A8-$way" "$(quantized $way "$m" int8 int8)"
		choose "$m-W8A8-W4A8-$way" "$(quantized $way "$m" int8 int4)"
		choose "$m-W4A8-W4A8-$way" "$(quantized $way "$m" int4 int4)"
	done
done
run_steps

# paper: TextVQA of GLM-4V-9B for post, and of Qwen2-VL-7B for any other model
rows() {
	local m run base visual language way qwen glm
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do while read -r visual language way qwen glm; do
		[ "$m" = post ] || glm=$qwen
		run=$m-$visual-$language-$way base=$m-$visual-$language-MQuant
		[ "$way" != unquantized ] || run=$m-16 base=$m-W4A8-W4A8-MQuant
		printf '%s\t%s\t%s\t%s\t@%s %s\t%s\n' "$m" "$visual" "$language" "$way" "$run" "$base" "${glm#-}"
	done <<'T'; done
16 16 unquantized 84.43 82.82
W8A8 W8A8 RTN - -
W8A8 W8A8 SmoothQuant - -
W8A8 W8A8 QuaRot - -
W8A8 W8A8 MQuant - -
W8A8 W4A8 RTN 33.92 7.05
W8A8 W4A8 SmoothQuant 49.11 9.05
W8A8 W4A8 QuaRot 79.36 82.00
W8A8 W4A8 MQuant 84.43 82.06
W4A8 W4A8 RTN 40.20 7.61
W4A8 W4A8 SmoothQuant 46.25 9.85
W4A8 W4A8 QuaRot 71.44 64.16
W4A8 W4A8 MQuant 84.32 81.58
T
}
rows | tabulate table2 "$answer_columns" answers
plot table2
