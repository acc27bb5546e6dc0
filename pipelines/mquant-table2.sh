#!/usr/bin/env bash
# mquant-table2.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 2: RTN, SmoothQuant, QuaRot and MQuant
#
# Weights of all linear layers of encoder, projector and language model in int8 or int4, one scale a row, by rounding to
# nearest (RTN, SmoothQuant) or GPTQ (QuaRot, MQuant); their inputs in int8 under static scales of a tensor from the largest |x| of
# the calibration tokens, in MQuant's language model of a tensor and modality (MSQ). W8A8: all weights in int8; W8A8, W4A8: those
# of the encoder and projector in int8 and of the language model in int4 (the paper's W8A8); W4A8: all in int4 (its W4A8). SmoothQuant is
# smooth-scale (alpha 0.5) of all that norms feed; QuaRot turns the language model alone, since the encoder's norms are
# LayerNorms; MQuant converts those (ln2rms), turns the encoder, too, and takes channels out that this makes
# outliers (rms-suppress). Rotations have seed 1. Patches, embeddings and head stay in 16 bits.
# acc_delta, easy_delta, hard_delta and kl_delta are against MQuant with the same bits, paired, with standard errors over questions.
# The paper's accuracies stand beside its kind of encoder: Qwen2-VL-7B (pre-norm), GLM-4V-9B (post-norm).
# PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"

say "smoothing, rotating, converting, calibrating"
for m in "${models[@]}"; do variants "$m"; done
schemes() { printf 'W8A8 W8A8 int8 int8\nW8A8 W4A8 int8 int4\nW4A8 W4A8 int4 int4\n'; }
ways='RTN SmoothQuant QuaRot MQuant'
commands() {
	local m visual language v l way
	for m in "${models[@]}"; do
		choose "$m-16" "$m-W4A8-W4A8-MQuant" "$(weights "$m" - none none)"
		schemes | while read -r visual language v l; do for way in $ways; do
			choose "$m-$visual-$language-$way" "$m-$visual-$language-MQuant" "$(quantized "$way" "$m" "$v" "$l")"
		done; done
	done
}
say "quantizing and measuring"
commands | in_turn

# TextVQA of Qwen2-VL-7B, GLM-4V-9B
paper() { case $1 in 16) p='84.43 82.82';; W8A8-W4A8-RTN) p='33.92 7.05';; W8A8-W4A8-SmoothQuant) p='49.11 9.05';; W8A8-W4A8-QuaRot) p='79.36 82.00';;
	W8A8-W4A8-MQuant) p='84.43 82.06';; W4A8-W4A8-RTN) p='40.20 7.61';; W4A8-W4A8-SmoothQuant) p='46.25 9.85';; W4A8-W4A8-QuaRot) p='71.44 64.16';;
	W4A8-W4A8-MQuant) p='84.32 81.58';; *) p=' ';; esac; if [ "$m" = post ]; then echo "${p#* }"; else echo "${p% *}"; fi; }
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_textvqa\n' "$answered"
	for m in "${models[@]}"; do
		printf '%s\t16\t16\tunquantized\t%s\t%s\n' "$m" "$(answers "$m-16")" "$(paper 16)"
		schemes | while read -r visual language _; do for way in $ways; do
			r=$visual-$language-$way
			printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$visual" "$language" "$way" "$(answers "$m-$r")" "$(paper "$r")"
		done; done
	done
} >"$part/table2.tsv"
table table2
picture table2 "Weights and inputs quantized, static scales of inputs; the paper: Qwen2-VL-7B (pre-norm), GLM-4V-9B (post-norm)" "MQuant" "paper: TextVQA, %"
