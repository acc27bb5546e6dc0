#!/usr/bin/env bash
# mquant-table4.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 4: scales of inputs by token, by tensor and by modality
#
# MQuant's model (converted, rotated, channels split off) with int4 weights of one scale a row by GPTQ; inputs of the language model's
# linear layers in int8, under a scale of each token (dynamic), one static scale a layer (static), one static scale for visual and one for text
# tokens (MSQ), and the same with the visual tokens of every question first (MSQ+AIFS); those of encoder and projector under static
# scales of a layer in each of these. AWQ: the language model alone, int4 in groups of PTQ_GROUP (128), inputs in 16 bits. acc_delta
# and kl_delta are against MSQ, paired, with standard errors over questions; the last lines say whether MSQ
# with and without AIFS gave the same answer to every question, which it must. Times are measured by mquant-table3.sh and
# mquant-table7.sh. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"
group=${PTQ_GROUP:-128}

say "smoothing, rotating, converting, calibrating"
for m in "${models[@]}"; do
	variants "$m"
	rounding "$m-split-static" "$m-split" --act-mode static-tensor
	once "$m-split-token.h5" msq-calib -q --act-format int8 --act-mode dynamic-token --layers '/model/layers/*' "$m-split-static.h5"
	awq_scaled "$m" int4 "$group"
done
four() { weights "$1" "$2" int4 int4 --group channel --reorder none; }
commands() {
	local m
	for m in "${models[@]}"; do
		choose "$m-W4A8-W4A8-MQuant" "$m-W4A8-W4A8-MQuant" "$(four "$m-split-msq" "$m-split-hessian")"
		choose "$m-16" "$m-W4A8-W4A8-MQuant" "$(weights "$m" - none none)"
		choose "$m-16-W4A16-AWQ" "$m-W4A8-W4A8-MQuant" "$(awq "$m" int4 "$group")"
		choose "$m-token" "$m-W4A8-W4A8-MQuant" "$(four "$m-split-token" "$m-split-hessian")"
		choose "$m-static" "$m-W4A8-W4A8-MQuant" "$(four "$m-split-static" "$m-split-hessian")"
		aifs=yes choose "$m-aifs" "$m-W4A8-W4A8-MQuant" "$(four "$m-split-msq" "$m-split-hessian")"
	done
}
say "quantizing and measuring"
commands | in_turn

rows() { cat <<'R'
16	16	16	unquantized	84.43
16-W4A16-AWQ	16	W4A16	AWQ, groups	83.93
token	W4A8	W4A8	token, dynamic	84.32
static	W4A8	W4A8	tensor, static	40.20
W4A8-W4A8-MQuant	W4A8	W4A8	MSQ	84.32
aifs	W4A8	W4A8	MSQ+AIFS	84.32
R
}
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_textvqa\n' "$answered"
	for m in "${models[@]}"; do rows | while IFS=$'\t' read -r run visual language way paper; do
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$visual" "$language" "$way" "$(answers "$m-$run")" "$paper"
	done; done
} >"$part/table4.tsv"
table table4
picture table4 "Scales of the language model's int8 inputs, 4-bit weights (AWQ: inputs in 16 bits)" "MSQ" "paper: TextVQA, Qwen2-VL-7B, %"
for m in "${models[@]}"; do
	awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "all" { same = $at["paired_same"] == 1 } END { exit !same }' "$m-aifs.tsv" ||
		fail 1 "$m: visual tokens first: another answer to some question, expected the same to all"
	say "$m: MSQ with visual tokens first: the same answer to all $(awk -F '\t' '$1 == "all" { print $2 }' "$m-aifs.tsv") questions"
done
